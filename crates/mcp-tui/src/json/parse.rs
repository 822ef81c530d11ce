//! One pass over JSON text that notes where every value stands. It is strict: what it reads is JSON. It
//! has no limit of depth, for it keeps its own stack; its limit is the number of values.

use super::{NONE, Node, Shape};

/// Values of one document that can be folded; the rest is text. Each costs memory, and a message of 64 MiB can have
/// thirty million.
pub(super) const NODES_MAX: usize = 2_000_000;

/// Why a text is no JSON, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}, at byte {at}")]
pub(crate) struct Fault {
    pub at: usize,
    pub words: &'static str,
}

pub(super) fn nodes(text: &str) -> Result<Vec<Node>, Fault> {
    nodes_up_to(text, NODES_MAX)
}

pub(super) fn nodes_up_to(text: &str, nodes_max: usize) -> Result<Vec<Node>, Fault> {
    let mut reader = Reader { text, json: text.as_bytes(), at: 0, nodes: Vec::new(), open: NONE };
    if u32::try_from(text.len()).is_err() {
        return Err(reader.fault("it is too long to show"));
    }
    reader.document(nodes_max)?;
    reader.nodes.shrink_to_fit();
    Ok(reader.nodes)
}

/// The length of the string that starts these bytes, with its quotes. It was read before.
pub(super) fn string_len(json: &[u8]) -> usize {
    let mut at = 1;
    while json[at] != b'"' {
        at += if json[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

struct Reader<'a> {
    text: &'a str,
    json: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    /// The innermost container that is not closed.
    open: u32,
}

impl Reader<'_> {
    fn document(&mut self, nodes_max: usize) -> Result<(), Fault> {
        self.blanks();
        self.value(NONE)?;
        while self.open != NONE {
            self.blanks();
            if self.closes()? {
                continue;
            }
            if self.nodes.len() + 1 >= nodes_max {
                self.rest();
                return Ok(());
            }
            let key = self.key()?;
            self.value(key)?;
        }
        self.blanks();
        if self.at < self.json.len() { Err(self.fault("something follows the value")) } else { Ok(()) }
    }

    /// Whether the container ends here. If not, the cursor ends where the next member or item starts.
    fn closes(&mut self) -> Result<bool, Fault> {
        let container = &self.nodes[self.open as usize];
        let (close, is_first) = (if container.shape == Shape::Object { b'}' } else { b']' }, container.children == 0);
        match self.byte() {
            Some(byte) if byte == close => {
                self.at += 1;
                self.close();
                return Ok(true);
            }
            Some(b',') if !is_first => {
                self.at += 1;
                self.blanks();
            }
            Some(_) if is_first => {}
            Some(_) => return Err(self.fault("a comma or the end of the list is missing")),
            None => return Err(self.fault("it ends too early")),
        }
        Ok(false)
    }

    fn close(&mut self) {
        let after = self.nodes.len() as u32;
        let container = &mut self.nodes[self.open as usize];
        container.end = self.at as u32;
        container.after = after;
        self.open = container.parent;
    }

    /// Everything that is left, as one leaf. It is not looked at.
    fn rest(&mut self) {
        let start = self.at;
        self.at = self.json.len();
        self.push(NONE, start, Shape::Rest);
        while self.open != NONE {
            self.close();
        }
    }

    fn key(&mut self) -> Result<u32, Fault> {
        if self.nodes[self.open as usize].shape == Shape::Array {
            return Ok(NONE);
        }
        let start = self.at;
        if self.byte() != Some(b'"') {
            return Err(self.fault("a key is missing"));
        }
        self.string()?;
        self.blanks();
        if self.byte() != Some(b':') {
            return Err(self.fault("a colon is missing"));
        }
        self.at += 1;
        self.blanks();
        Ok(start as u32)
    }

    fn value(&mut self, key: u32) -> Result<(), Fault> {
        let start = self.at;
        let shape = match self.byte() {
            Some(b'{') => return self.opens(key, Shape::Object),
            Some(b'[') => return self.opens(key, Shape::Array),
            Some(b'"') => self.string().map(|()| Shape::String)?,
            Some(b'-' | b'0'..=b'9') => self.number().map(|()| Shape::Number)?,
            Some(b't') => self.word("true").map(|()| Shape::Bool)?,
            Some(b'f') => self.word("false").map(|()| Shape::Bool)?,
            Some(b'n') => self.word("null").map(|()| Shape::Null)?,
            Some(_) => return Err(self.fault("a value is missing")),
            None => return Err(self.fault("it ends too early")),
        };
        self.push(key, start, shape);
        Ok(())
    }

    fn opens(&mut self, key: u32, shape: Shape) -> Result<(), Fault> {
        let start = self.at;
        self.at += 1;
        self.open = self.push(key, start, shape);
        Ok(())
    }

    fn push(&mut self, key: u32, start: usize, shape: Shape) -> u32 {
        let id = self.nodes.len() as u32;
        let parent = self.open;
        let mut order = 0;
        if let Some(container) = self.nodes.get_mut(parent as usize) {
            order = container.children;
            container.children += 1;
        }
        let (start, end, after) = (start as u32, self.at as u32, id + 1);
        self.nodes.push(Node { start, end, key, parent, after, children: 0, order, shape });
        id
    }

    fn string(&mut self) -> Result<(), Fault> {
        self.at += 1;
        loop {
            let rest = &self.json[self.at..];
            let Some(found) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)) else {
                self.at = self.json.len();
                return Err(self.fault("a string is not closed"));
            };
            self.at += found + 1;
            match rest[found] {
                b'"' => return Ok(()),
                b'\\' => self.escape()?,
                _ => return Err(self.fault("a control character stands in a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        let digits = match self.byte() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 0,
            Some(b'u') => 4,
            _ => return Err(self.fault("no such escape")),
        };
        self.at += 1;
        match self.json.get(self.at..self.at + digits) {
            Some(hex) if hex.iter().all(u8::is_ascii_hexdigit) => self.at += digits,
            _ => return Err(self.fault("an escape needs four digits")),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        if self.byte() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.byte() {
            self.at += 1;
        }
        if self.at == start { Err(self.fault("a digit is missing")) } else { Ok(()) }
    }

    fn word(&mut self, word: &str) -> Result<(), Fault> {
        if !self.json[self.at..].starts_with(word.as_bytes()) {
            return Err(self.fault("a value is missing"));
        }
        self.at += word.len();
        Ok(())
    }

    fn byte(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.byte() {
            self.at += 1;
        }
    }

    fn fault(&self, words: &'static str) -> Fault {
        Fault { at: self.text.floor_char_boundary(self.at), words }
    }
}
