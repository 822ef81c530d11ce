//! A large session file, read message by message: what stands before the messages is read first, what
//! stands after them last. That is how the program writes it; a file in another order, or one with
//! HTTP exchanges, whose place among the messages is only known at the end, is gone through twice instead.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use mcp_wire::scan;
use serde::Deserialize;

use super::exchanges::{self, Listed};
use super::metadata;
use super::read::{Envelope, FileSession};
use crate::StoreError;
use crate::exchange::SessionEntry;
use crate::recorded::Transport;
use crate::session::{Conversations, Summary};

/// A smaller file is gone through in no time, and then known as a whole.
const STREAMED_FROM: u64 = 1024 * 1024;
/// What stands before the messages fits in here, notes included.
const OPENING_MAX: usize = 64 * 1024;
const READ_BYTES: usize = 256 * 1024;

pub struct FileStream {
    path: PathBuf,
    items: Items<File>,
    summary: Summary,
    conversations: Conversations,
    /// What stood after the messages and has not been given out.
    rest: std::vec::IntoIter<SessionEntry>,
    is_whole: bool,
}

impl FileStream {
    /// `None` if the file has to be gone through twice.
    pub fn open(path: &Path) -> Result<Option<Self>, StoreError> {
        let mut file = File::open(path).map_err(StoreError::io("open", path))?;
        let len = file.metadata().map_err(StoreError::io("look at", path))?.len();
        if len < STREAMED_FROM {
            return Ok(None);
        }
        let mut beginning = vec![0; OPENING_MAX];
        file.read_exact(&mut beginning).map_err(StoreError::io("read", path))?;
        let Some(messages_at) = messages_at(&beginning) else { return Ok(None) };
        let opening = [&beginning[..messages_at], b"]}"].concat();
        let Ok(session) = FileSession::parse(&opening[..], path) else { return Ok(None) };
        if session.header.transport != Transport::Stdio
            || memchr::memmem::find(&beginning[messages_at..], b"\"exchange\"").is_some()
        {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(messages_at as u64)).map_err(StoreError::io("read", path))?;
        Ok(Some(Self {
            path: path.to_owned(),
            items: Items::new(file),
            summary: session.summary(),
            conversations: Conversations::default(),
            rest: Vec::new().into_iter(),
            is_whole: false,
        }))
    }

    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    pub fn next_entry(&mut self) -> Result<Option<SessionEntry>, StoreError> {
        if self.is_whole {
            return Ok(self.rest.next());
        }
        match self.items.next().map_err(StoreError::io("read", &self.path))? {
            Item::Value(item) => {
                let message = Envelope::parse(item, &self.summary.header.id, self.summary.messages);
                let message = message.map_err(|fault| fault.at(&self.path))?;
                self.summary.messages += 1;
                self.summary.last_ns = message.time_ns;
                self.conversations.add(message.conversation);
                self.summary.several_conversations = self.conversations.several;
                Ok(Some(SessionEntry::Message(message)))
            }
            Item::End => {
                self.take_rest()?;
                self.next_entry()
            }
            Item::Bad => Err(StoreError::not_a_session(&self.path, "it breaks off among its messages")),
        }
    }

    fn take_rest(&mut self) -> Result<(), StoreError> {
        #[derive(Deserialize)]
        struct Closing {
            #[serde(default)]
            exchanges: Option<Vec<Listed>>,
            #[serde(default)]
            metadata: metadata::Listed,
        }
        let rest = self.items.rest().map_err(StoreError::io("read", &self.path))?;
        let members = rest.trim_ascii_start();
        let object = [b"{", members.strip_prefix(b",").unwrap_or(members)].concat();
        let closing: Closing = serde_json::from_slice(&object)
            .map_err(|error| StoreError::not_a_session(&self.path, format!("after its messages: {error}")))?;
        metadata::take(closing.metadata, &mut self.summary.header);
        self.summary.notes.clone_from(&self.summary.header.notes);
        self.rest = exchanges::in_order(closing.exchanges.unwrap_or_default()).into_iter();
        self.summary.has_exchanges = self.rest.len() > 0;
        self.is_whole = true;
        Ok(())
    }
}

/// Where the first message begins, if `messages` is the first member that does not end in `beginning`.
fn messages_at(beginning: &[u8]) -> Option<usize> {
    let (_, last) = scan::object_members(beginning).last()?;
    let mut at = last.range().end;
    for expected in [&b","[..], b"\"messages\"", b":", b"["] {
        at += beginning[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        at += beginning[at..].strip_prefix(expected).map(|_| expected.len())?;
    }
    Some(at)
}

/// The items of a JSON list, one at a time, from a source of any length.
struct Items<R> {
    input: R,
    buffer: Vec<u8>,
    /// Where what has not been given out begins.
    at: usize,
}

enum Item<'a> {
    Value(&'a [u8]),
    /// The closing bracket; what follows is not read yet.
    End,
    Bad,
}

impl<R: Read> Items<R> {
    fn new(input: R) -> Self {
        Self { input, buffer: Vec::new(), at: 0 }
    }

    fn next(&mut self) -> io::Result<Item<'_>> {
        loop {
            match self.buffer.get(self.at).copied() {
                Some(b' ' | b'\n' | b'\r' | b'\t' | b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Item::End);
                }
                Some(b'{') => break,
                Some(_) => return Ok(Item::Bad),
                None if self.read_more()? => {}
                None => return Ok(Item::Bad),
            }
        }
        let mut end = Ending::default();
        let mut length = 0;
        loop {
            if let Some(found) = end.look(&self.buffer[self.at + length..]) {
                let start = self.at;
                self.at += length + found;
                return Ok(Item::Value(&self.buffer[start..self.at]));
            }
            length = self.buffer.len() - self.at;
            if !self.read_more()? {
                return Ok(Item::Bad);
            }
        }
    }

    /// Everything that is left.
    fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut rest = self.buffer.split_off(self.at);
        self.input.read_to_end(&mut rest)?;
        Ok(rest)
    }

    /// Reads on, keeping what has not been given out. Whether there was more.
    fn read_more(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let read = self.input.by_ref().take(READ_BYTES as u64).read_to_end(&mut self.buffer)?;
        Ok(read > 0)
    }
}

/// Finds the end of an object, in as many pieces as it comes in.
#[derive(Default)]
struct Ending {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Ending {
    /// How many bytes of `piece` belong to the object, if it ends there.
    fn look(&mut self, piece: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(byte) = piece.get(at) {
            at += 1;
            if self.escaped {
                self.escaped = false;
            } else if self.in_string {
                match byte {
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => at += memchr::memchr2(b'"', b'\\', &piece[at..]).unwrap_or(piece.len() - at),
                }
            } else {
                match byte {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => {
                        self.depth = self.depth.saturating_sub(1);
                        if self.depth == 0 {
                            return Some(at);
                        }
                    }
                    _ => {}
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a little at a time, as a slow disk would.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(out.len()).min(self.0.len());
            out[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[track_caller]
    fn check(list: &str, expected: &[&str], rest: Option<&str>) {
        for step in [1, 2, 7, 1000] {
            let mut items = Items::new(Slow(list.as_bytes(), step));
            let mut found = Vec::new();
            let ended = loop {
                match items.next().unwrap() {
                    Item::Value(item) => found.push(String::from_utf8(item.to_vec()).unwrap()),
                    Item::End => break Some(String::from_utf8(items.rest().unwrap()).unwrap()),
                    Item::Bad => break None,
                }
            };
            assert_eq!(
                (found, ended.as_deref()),
                (expected.iter().map(|it| (*it).to_owned()).collect(), rest),
                "{list}"
            );
        }
    }

    #[test]
    fn items_are_found_however_they_arrive() {
        check("]", &[], Some(""));
        check(
            " {\"a\":\"}\\\"]\"} ,\n{\"b\":[{},[]]}\n],\"x\":1}",
            &["{\"a\":\"}\\\"]\"}", "{\"b\":[{},[]]}"],
            Some(",\"x\":1}"),
        );
        check("{\"a\":\"\\\\\"},{}]", &["{\"a\":\"\\\\\"}", "{}"], Some(""));
        check("{\"a\":", &[], None);
        check("{}", &["{}"], None);
        check("1]", &[], None);
        check("", &[], None);
    }
}
