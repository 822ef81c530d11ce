//! The writing end of a segment: records gather until `commit`, which is one write for them all.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use mcp_wire::gather::{COPY_BELOW, Gather, SLICES};

use super::repeated::{HeadKey, Written};
use super::sparse::{Growth, SparseIndex};
use super::{CHECKSUM, EVENT_ID_MAX, End, Link, MAGIC, Mark, Outcome, RecordHead, RecordKind, Verdict, checksum};
use crate::StoreError;
use crate::recorded::{Direction, SessionHeader};
use crate::state_dir::create_private;
use crate::synced::{OnSynced, Sync};

#[derive(Debug)]
pub struct SegmentWriter {
    path: PathBuf,
    file: File,
    gather: Gather,
    /// Everything before this is whole; a failed write is cut back to it.
    whole_len: u64,
    /// Records gathered since the last commit, and how many of them are messages.
    gathered: u64,
    messages: u64,
    /// Since something could not be written at all: how many messages.
    lost: Option<u64>,
    /// Outcomes, marks, and verdicts that do not stand behind their message.
    amendments: u64,
    /// The message that the next record follows.
    last: Option<u64>,
    heads: Written,
    index: Arc<SparseIndex>,
    growth: Growth,
    sync: Sync,
}

impl SegmentWriter {
    /// Begins a segment at `path`, which must not exist. It is locked while it is being written.
    pub fn create(path: &Path, header: &SessionHeader) -> Result<Self, StoreError> {
        Self::create_watched(path, header, None)
    }

    /// The same, with somebody who wants to know how it grows.
    pub fn create_watched(
        path: &Path,
        header: &SessionHeader,
        on_synced: Option<OnSynced>,
    ) -> Result<Self, StoreError> {
        let file = create_private(path).map_err(StoreError::io("create", path))?;
        let begin = || -> io::Result<Self> {
            // A command that lists sessions may be looking at it for a moment.
            file.lock()?;
            let json = serde_json::to_vec(header)?;
            let mut gather = Gather::default();
            gather.copy(MAGIC);
            gather.copy(&(json.len() as u32).to_le_bytes());
            gather.copy(&crc32fast::hash(&json).to_le_bytes());
            gather.copy(&json);
            let sync = Sync::start("segment-sync", file.try_clone()?, on_synced)?;
            let path = path.to_owned();
            let (lost, heads) = (None, Written::default());
            let (index, growth) = (Arc::default(), Growth::default());
            let mut writer = Self {
                path,
                file,
                gather,
                whole_len: 0,
                gathered: 0,
                messages: 0,
                lost,
                amendments: 0,
                last: None,
                heads,
                index,
                growth,
                sync,
            };
            writer.write_gathered()?;
            Ok(writer)
        };
        begin().map_err(|error| {
            let _ = std::fs::remove_file(path);
            StoreError::io("write", path)(error)
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn len(&self) -> u64 {
        self.whole_len
    }

    /// Where to begin reading it, as far as it is written. Anybody may have it.
    pub fn index(&self) -> Arc<SparseIndex> {
        Arc::clone(&self.index)
    }

    pub fn is_empty(&self) -> bool {
        self.whole_len == 0
    }

    /// Adds a record to the next commit. Large payloads are shared, not copied.
    pub fn push(&mut self, head: &RecordHead, payload: &Bytes) {
        let head = RecordHead { flags: head.flags & !(RecordHead::LINKED | RecordHead::JUDGED), ..*head };
        self.push_record(&head, &[], payload);
    }

    /// The same, for a message that came in an HTTP exchange, in the SSE event of this id if it has one.
    pub fn push_linked(&mut self, head: &RecordHead, exchange: u64, event_id: &[u8], payload: &Bytes) {
        self.push_message(head, Some((exchange, event_id)), None, payload);
    }

    /// The same for any message: the exchange and the event that it came in, if it did, and what rules decided about it.
    pub fn push_message(
        &mut self,
        head: &RecordHead,
        way: Option<(u64, &[u8])>,
        verdict: Option<&Verdict>,
        payload: &Bytes,
    ) {
        let (mut flags, none) = (head.flags & !(RecordHead::LINKED | RecordHead::JUDGED), &[][..]);
        let (link, (fixed, rule));
        let mut words = [none; 5];
        if let Some((exchange, event_id)) = way {
            flags |= RecordHead::LINKED;
            let event_id = &event_id[..event_id.len().min(EVENT_ID_MAX)];
            link = Link::encode(exchange, event_id);
            (words[0], words[1]) = (&link, event_id);
        }
        let verdict_len;
        if let Some(verdict) = verdict {
            flags |= RecordHead::JUDGED;
            (fixed, rule) = verdict.encode();
            verdict_len = ((fixed.len() + rule.len()) as u16).to_le_bytes();
            (words[2], words[3], words[4]) = (&verdict_len, &fixed, rule.as_bytes());
        }
        self.push_record(&RecordHead { flags, ..*head }, &words, payload);
    }

    /// Adds the head of an HTTP exchange. `text` is asked for only if no head like it was written.
    pub fn push_exchange_head(&mut self, head: &RecordHead, key: HeadKey, text: impl FnOnce() -> Vec<u8>) {
        let plain = head.flags & !(RecordHead::LINKED | RecordHead::REPEATED);
        let length = key.content_length.map(u64::to_le_bytes);
        match self.heads.find(key) {
            Some(number) => {
                let head = RecordHead { flags: plain | RecordHead::REPEATED, correlated: number, ..*head };
                self.push_record(&head, &[length.as_ref().map_or(&[][..], |length| length)], &Bytes::new());
            }
            None => {
                let head = RecordHead { flags: plain, correlated: self.heads.add(key), ..*head };
                self.push_record(&head, &[&text()], &Bytes::new());
            }
        }
    }

    /// Adds how a hold of the message `head.correlated` ended.
    pub fn push_outcome(&mut self, head: &RecordHead, outcome: &Outcome) {
        self.amendments += 1;
        let edited = outcome.edited.clone().unwrap_or_default();
        self.push_record(&about_message(head, RecordKind::Outcome), &[&outcome.encode()], &edited);
    }

    /// Adds what somebody wrote beside the message `head.correlated`.
    pub fn push_mark(&mut self, head: &RecordHead, mark: &Mark) {
        self.amendments += 1;
        self.push_record(&about_message(head, RecordKind::Mark), &[&mark.encode()], &Bytes::new());
    }

    /// Adds what rules decided about the message `head.correlated`.
    pub fn push_verdict(&mut self, head: &RecordHead, verdict: &Verdict) {
        let is_adjoined = self.last == Some(head.correlated);
        self.amendments += u64::from(!is_adjoined);
        let mut head = about_message(head, RecordKind::Verdict);
        head.flags |= if is_adjoined { RecordHead::ADJOINED } else { 0 };
        let (fixed, rule) = verdict.encode();
        self.push_record(&head, &[&fixed, rule.as_bytes()], &Bytes::new());
    }

    /// Adds with which server a conversation of a gateway is.
    pub fn push_leg(&mut self, time_ns: u64, conversation: u32, server: &str) {
        let head = RecordHead { conversation, ..bookkeeping(RecordKind::Leg, time_ns) };
        self.push_record(&head, &[server.as_bytes()], &Bytes::new());
    }

    /// Adds a record that says `words` and then `payload`. What is copied of it is put together where it
    /// waits, and its checksum is taken there in one go.
    fn push_record(&mut self, head: &RecordHead, words: &[&[u8]], payload: &Bytes) {
        if let Some(lost) = self.lost.filter(|_| self.gathered == 0) {
            let count = lost.to_string();
            let gap = RecordHead { kind: RecordKind::Gap, flags: 0, correlated: 0, ..*head };
            self.gather.copy(&gap.encode(count.as_bytes()));
            self.gather.copy(count.as_bytes());
        }
        self.growth.add(head, self.whole_len + self.gather.len() as u64);
        let (copied, shared): (&[u8], _) =
            if payload.len() < COPY_BELOW { (payload, None) } else { (&[], Some(payload)) };
        let length = words.iter().map(|word| word.len()).sum::<usize>() + payload.len();
        self.gather.compose(|gathered| {
            let start = gathered.len();
            gathered.extend_from_slice(&head.unchecked(length));
            words.iter().for_each(|word| gathered.extend_from_slice(word));
            gathered.extend_from_slice(copied);
            let record = &mut gathered[start..];
            let checksum = checksum(record, shared.map_or(&[][..], |shared| shared));
            record[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        });
        if let Some(shared) = shared {
            self.gather.share(shared);
        }
        self.gathered += 1;
        self.last = head.kind.is_message().then_some(head.sequence);
        self.messages += u64::from(head.kind.is_message());
    }

    /// What the next commit will write.
    pub fn gathered_bytes(&self) -> usize {
        self.gather.len()
    }

    /// Hands everything gathered to the kernel in one write: from then on it survives this process.
    pub fn commit(&mut self) -> io::Result<()> {
        if self.gathered == 0 {
            return Ok(());
        }
        let result = self.write_gathered();
        match result {
            Ok(()) => self.lost = None,
            Err(_) => self.lost = Some(self.lost.unwrap_or(0) + self.messages),
        }
        (self.gathered, self.messages) = (0, 0);
        // Some disks fail only when they are made to keep what they took.
        result.and_then(|()| self.sync.take_error().map_or(Ok(()), Err))
    }

    /// Writes the last record and waits for the disk.
    pub fn finish(mut self, time_ns: u64, end: &End) -> io::Result<()> {
        // What is still gathered may be too much for the disk; the end is small and may fit.
        let _ = self.commit();
        let end = end.clone().with_amendments(self.amendments);
        let payload = Bytes::from(serde_json::to_vec(&end)?);
        self.push(&bookkeeping(RecordKind::End, time_ns), &payload);
        self.commit()
    }

    fn write_gathered(&mut self) -> io::Result<()> {
        let mut written = 0;
        while !self.gather.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            match self.file.write_vectored(self.gather.slices(&mut slices)) {
                Ok(0) => return self.cut_back(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.gather.advance(count);
                    written += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.cut_back(error),
            }
        }
        self.whole_len += written;
        self.index.publish(&mut self.growth, self.whole_len);
        self.sync.soon();
        Ok(())
    }

    /// Removes what a failed write left, so that the next record follows a whole one.
    fn cut_back(&mut self, error: io::Error) -> io::Result<()> {
        self.heads.forget();
        self.growth.forget();
        self.gather.clear();
        let _ = self.file.set_len(self.whole_len);
        Err(error)
    }
}

/// The head of a record that says more about an earlier one.
fn about_message(head: &RecordHead, kind: RecordKind) -> RecordHead {
    RecordHead { kind, sequence: 0, flags: head.flags & RecordHead::FROM_PROXY, ..*head }
}

pub(super) fn bookkeeping(kind: RecordKind, time_ns: u64) -> RecordHead {
    RecordHead {
        kind,
        direction: Direction::ClientToServer,
        flags: 0,
        conversation: 0,
        sequence: 0,
        time_ns,
        correlated: 0,
    }
}
