//! Hands what passes to the store. On the path this is a copy of a few bytes or a shared handle per
//! message, and one write for many: after they have left, or before if the evidence must be complete.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use mcp_store::segment::OnSynced;
use mcp_store::{
    End, HeadKey, Mark, Outcome, RecordHead, RecordKind, Said, SegmentWriter, SessionHeader, SparseIndex, StoreError,
    Transport, Verdict,
};
use uuid::Uuid;

use crate::backlog::Backlog;
use crate::envelope::{Lane, ProxyMessage, Side, Upstream};

/// A session is divided when it reaches any of these. Tables of readers, such as `AMENDED_MAX`, are as large as one
/// session.
const SESSION_MESSAGES_MAX: u64 = 1_000_000;
const SESSION_BYTES_MAX: u64 = 1 << 30;
const SESSION_NS_MAX: u64 = 24 * 3600 * 1_000_000_000;

/// When a message counts as kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Written right after it was passed on, or with what follows at once; a kill may lose the last of them.
    Normal,
    /// Written before it is passed on.
    Strict,
}

/// What to do when the store cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStoreFailure {
    Forward,
    Stop,
}

#[derive(Clone)]
pub struct RecorderOptions {
    pub evidence: Evidence,
    pub on_failure: OnStoreFailure,
    /// Somebody who wants to know how the recording grows.
    pub on_synced: Option<OnSynced>,
}

/// The store failed, and the user said that nothing may then pass.
#[derive(Debug, thiserror::Error)]
#[error("the recording cannot be written")]
pub struct StoreFailed(#[source] pub io::Error);

/// Chooses where the segment of a session goes.
pub type Place = Box<dyn Fn(&Uuid) -> PathBuf + Send>;

/// Which HTTP exchange something belongs to, and which side of it said it.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeMark {
    pub number: u64,
    pub conversation: u32,
    pub from: Side,
    pub transport: Transport,
}

impl ExchangeMark {
    fn head(&self, kind: RecordKind, time_ns: u64) -> RecordHead {
        RecordHead {
            kind,
            direction: self.from.direction(),
            flags: RecordHead::arrived_on(self.transport),
            conversation: self.conversation,
            sequence: self.number,
            time_ns,
            correlated: 0,
        }
    }
}

pub struct Recorder {
    capture: Option<Capture>,
    /// What is kept in memory where nothing is recorded.
    backlog: Option<Backlog>,
    options: RecorderOptions,
    /// Told once, when writing first fails and when it works again.
    trouble: Option<String>,
    /// What has to be written before it works again: as much as could not be written at once. A disk
    /// that is nearly full takes a little now and then.
    owed_bytes: usize,
    may_divide: bool,
    /// The newest message, and what was decided about the next before it is recorded.
    newest: u64,
    decided: Option<(u64, Verdict)>,
}

struct Capture {
    writer: SegmentWriter,
    header: SessionHeader,
    place: Place,
    on_synced: Option<OnSynced>,
    /// Sequences count from 1 in each session; these many came before it.
    earlier: u64,
    messages: u64,
    part: u32,
    /// Sessions that are full and on their way to the disk.
    ending: Vec<JoinHandle<()>>,
    /// Every session of this run, the current one last.
    sessions: Vec<(SessionHeader, PathBuf)>,
    /// How many messages came before each of them.
    began: Vec<u64>,
    /// With which servers of a gateway conversations are that have not ended.
    legs: BTreeMap<u32, Arc<str>>,
}

/// Conversations with servers that the next session names again; past this the oldest are left out.
const LEGS_MAX: usize = 65_536;

impl Recorder {
    /// Records nothing.
    pub fn off() -> Self {
        let options =
            RecorderOptions { evidence: Evidence::Normal, on_failure: OnStoreFailure::Forward, on_synced: None };
        Self::with(None, options)
    }

    /// Records nothing, and keeps the last messages in memory for those who watch.
    pub fn in_memory() -> Self {
        Self { backlog: Some(Backlog::default()), ..Self::off() }
    }

    /// What is kept in memory, if that is all there is.
    pub fn backlog(&self) -> Option<&Backlog> {
        self.backlog.as_ref()
    }

    /// Begins the session `header` describes.
    pub fn begin(header: SessionHeader, place: Place, options: RecorderOptions) -> Result<Self, StoreError> {
        let path = place(&header.id);
        let on_synced = options.on_synced.clone();
        let writer = SegmentWriter::create_watched(&path, &header, on_synced.clone())?;
        let sessions = vec![(header.clone(), path)];
        let capture = Capture {
            writer,
            header,
            place,
            on_synced,
            earlier: 0,
            messages: 0,
            part: 1,
            ending: Vec::new(),
            sessions,
            began: vec![0],
            legs: BTreeMap::new(),
        };
        Ok(Self::with(Some(capture), options))
    }

    fn with(capture: Option<Capture>, options: RecorderOptions) -> Self {
        Self {
            capture,
            backlog: None,
            options,
            trouble: None,
            owed_bytes: 0,
            may_divide: true,
            newest: 0,
            decided: None,
        }
    }

    pub fn is_strict(&self) -> bool {
        self.options.evidence == Evidence::Strict
    }

    /// Whether anything is kept at all.
    pub fn is_on(&self) -> bool {
        self.capture.is_some()
    }

    pub fn message(&mut self, message: &ProxyMessage, lane: Lane<'_>, flags: u16) {
        self.newest = message.sequence;
        let decided = self.decided.take_if(|(sequence, _)| *sequence <= message.sequence);
        let verdict = decided.map(|(_, verdict)| verdict);
        let Some(capture) = &mut self.capture else {
            let Some(backlog) = &mut self.backlog else { return };
            backlog.message(message, lane, flags);
            if let Some(verdict) = verdict {
                backlog.say(message.sequence, Said::Verdict(verdict));
            }
            return;
        };
        let flags = flags | RecordHead::arrived_on(lane.transport);
        let head = capture.head(RecordKind::Message, message.from, message.sequence, message.time_ns, flags);
        let parent = lane.parent_of(message).and_then(|parent| parent.checked_sub(capture.earlier));
        let (correlated, caused) = match (message.correlated, parent) {
            (None, Some(parent)) if parent > 0 => (parent, RecordHead::CAUSED),
            (correlated, _) => (correlated.map_or(0, |sequence| sequence.saturating_sub(capture.earlier)), 0),
        };
        let head = RecordHead { correlated, conversation: message.conversation, flags: head.flags | caused, ..head };
        capture.messages += 1;
        let way = (lane.exchange > 0).then_some((lane.exchange, lane.event_id));
        capture.writer.push_message(&head, way, verdict.as_ref(), message.message.bytes());
    }

    /// Records with which server of a gateway a conversation is that begins.
    pub fn begin_leg(&mut self, conversation: u32, upstream: Upstream, server: &Arc<str>, time_ns: u64) {
        if let Some(backlog) = &mut self.backlog {
            backlog.meet_server(upstream, server);
        }
        let Some(capture) = &mut self.capture else { return };
        capture.writer.push_leg(time_ns, conversation, server);
        if capture.legs.len() >= LEGS_MAX {
            capture.legs.pop_first();
        }
        capture.legs.insert(conversation, Arc::clone(server));
    }

    /// Nothing more is said in such a conversation.
    pub fn end_leg(&mut self, conversation: u32) {
        if let Some(capture) = &mut self.capture {
            capture.legs.remove(&conversation);
        }
    }

    /// Records that something happened where a message should have been.
    pub fn event(
        &mut self,
        (conversation, upstream): (u32, Upstream),
        from: Side,
        sequence: u64,
        time_ns: u64,
        text: &str,
    ) {
        let Some(capture) = &mut self.capture else {
            let backlog = self.backlog.iter_mut();
            return backlog.for_each(|backlog| backlog.event((conversation, upstream), from, sequence, time_ns, text));
        };
        let head = capture.head(RecordKind::Event, from, sequence, time_ns, 0);
        capture.messages += 1;
        capture.writer.push(&RecordHead { conversation, ..head }, &Bytes::copy_from_slice(text.as_bytes()));
    }

    /// Records what became of a message that was recorded as held.
    pub fn outcome(&mut self, message: &ProxyMessage, time_ns: u64, outcome: &Outcome) {
        if let Some(backlog) = &mut self.backlog {
            backlog.say(message.sequence, Said::Outcome(outcome.clone()));
        }
        let Some(capture) = &mut self.capture else { return };
        let Some(head) = capture.about(message.sequence, time_ns) else { return };
        let head = RecordHead { direction: message.from.direction(), conversation: message.conversation, ..head };
        capture.writer.push_outcome(&head, outcome);
    }

    /// Records what rules decided about a message, also if that is about to be recorded next.
    pub fn verdict(&mut self, message: &ProxyMessage, time_ns: u64, verdict: &Verdict) {
        if message.sequence > self.newest {
            self.decided = Some((message.sequence, verdict.clone()));
            return;
        }
        if let Some(backlog) = &mut self.backlog {
            backlog.say(message.sequence, Said::Verdict(verdict.clone()));
        }
        let Some(capture) = &mut self.capture else { return };
        let Some(head) = capture.about(message.sequence, time_ns) else { return };
        let head = RecordHead { direction: message.from.direction(), conversation: message.conversation, ..head };
        capture.writer.push_verdict(&head, verdict);
    }

    /// Records what somebody wrote beside a message.
    pub fn mark(&mut self, sequence: u64, time_ns: u64, mark: &Mark) {
        if let Some(backlog) = &mut self.backlog {
            backlog.say(sequence, Said::Mark(mark.clone()));
        }
        let Some(capture) = &mut self.capture else { return };
        let Some(head) = capture.about(sequence, time_ns) else { return };
        capture.writer.push_mark(&head, mark);
    }

    /// Records notes about the session.
    pub fn note(&mut self, time_ns: u64, notes: &BTreeMap<String, String>) {
        let Some(capture) = &mut self.capture else { return };
        let head = RecordHead { kind: RecordKind::Note, ..capture.bookkeeping(time_ns) };
        // A map of strings is always JSON.
        let notes = serde_json::to_vec(notes).unwrap_or_default();
        capture.writer.push(&head, &notes.into());
    }

    /// Whether the session may be divided now. While messages of it are held it is not: what becomes of
    /// them belongs where they are.
    pub fn may_divide(&mut self, may: bool) {
        self.may_divide = may;
    }

    /// The session that is recorded, and its segment.
    pub fn current(&self) -> Option<(&SessionHeader, &Path)> {
        let (header, path) = self.capture.as_ref()?.sessions.last()?;
        Some((header, path))
    }

    /// The segments of all sessions of this run, each with how many messages came before it.
    pub fn segments(&self) -> impl Iterator<Item = (&Path, u64)> {
        let sessions = self.capture.iter().flat_map(|capture| capture.sessions.iter().zip(&capture.began));
        sessions.map(|((_, path), began)| (path.as_path(), *began))
    }

    /// Where to begin reading in the segment of the current session, as far as it is written.
    pub fn index(&self) -> Option<Arc<SparseIndex>> {
        Some(self.capture.as_ref()?.writer.index())
    }

    /// How many messages came before those of the current session.
    pub fn earlier(&self) -> u64 {
        self.capture.as_ref().map_or(0, |capture| capture.earlier)
    }

    /// Records the head of an HTTP request or of its response, as text with its secrets masked, and whether the
    /// exchange is over with it. The text is not even made if a head like it was recorded before.
    pub fn exchange_head(
        &mut self,
        exchange: &ExchangeMark,
        time_ns: u64,
        key: HeadKey,
        text: impl FnOnce() -> Vec<u8>,
        is_over: bool,
    ) {
        let Some(capture) = &mut self.capture else { return };
        let mut head = exchange.head(RecordKind::Exchange, time_ns);
        head.flags |= if is_over { RecordHead::ENDS } else { 0 };
        capture.writer.push_exchange_head(&head, key, text);
    }

    /// Records how an exchange ended; empty if it ended as it should.
    pub fn exchange_end(&mut self, exchange: &ExchangeMark, time_ns: u64, how: &str) {
        let Some(capture) = &mut self.capture else { return };
        let how = Bytes::copy_from_slice(how.as_bytes());
        capture.writer.push(&exchange.head(RecordKind::ExchangeEnd, time_ns), &how);
    }

    /// Writes what was recorded since the last time. Fails only if nothing may pass unrecorded.
    pub fn commit(&mut self, now_ns: u64) -> Result<(), StoreFailed> {
        let Some(capture) = &mut self.capture else { return Ok(()) };
        let bytes = capture.writer.gathered_bytes();
        match capture.writer.commit() {
            Ok(()) => {
                if self.owed_bytes > 0 && self.owed_bytes <= bytes {
                    self.trouble = Some("the recording can be written again".into());
                }
                self.owed_bytes = self.owed_bytes.saturating_sub(bytes);
                if self.may_divide
                    && capture.is_full(now_ns)
                    && let Err(error) = capture.divide(now_ns)
                {
                    // The old session goes on; the next batch tries again.
                    self.trouble = Some(format!("a new session cannot be begun: {error}"));
                }
                Ok(())
            }
            Err(error) if self.options.on_failure == OnStoreFailure::Stop => Err(StoreFailed(error)),
            Err(error) => {
                let was_fine = self.owed_bytes == 0;
                self.owed_bytes = self.owed_bytes.max(bytes).max(1);
                if was_fine {
                    self.trouble = Some(format!(
                        "the recording cannot be written ({error}); messages pass unrecorded until it can"
                    ));
                }
                Ok(())
            }
        }
    }

    /// What the user should be told about the store, once.
    pub fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// Ends the recording. Returns the sessions of this run with their segments, and whether the last
    /// of them could be ended.
    pub fn finish(self, now_ns: u64, end: &End) -> (Vec<(SessionHeader, PathBuf)>, io::Result<()>) {
        let Some(capture) = self.capture else { return (Vec::new(), Ok(())) };
        let finished = capture.writer.finish(now_ns, end);
        for ending in capture.ending {
            let _ = ending.join();
        }
        (capture.sessions, finished)
    }
}

impl Capture {
    fn head(&self, kind: RecordKind, from: Side, sequence: u64, time_ns: u64, flags: u16) -> RecordHead {
        RecordHead {
            kind,
            direction: from.direction(),
            flags,
            conversation: 0,
            sequence: sequence - self.earlier,
            time_ns,
            correlated: 0,
        }
    }

    /// For a record about the message `sequence`, if that is in this session.
    fn about(&self, sequence: u64, time_ns: u64) -> Option<RecordHead> {
        let correlated = sequence.checked_sub(self.earlier).filter(|sequence| *sequence > 0)?;
        Some(RecordHead { correlated, ..self.bookkeeping(time_ns) })
    }

    fn bookkeeping(&self, time_ns: u64) -> RecordHead {
        RecordHead { sequence: 0, ..self.head(RecordKind::Note, Side::Client, self.earlier, time_ns, 0) }
    }

    fn is_full(&self, now_ns: u64) -> bool {
        self.messages >= SESSION_MESSAGES_MAX
            || self.writer.len() >= SESSION_BYTES_MAX
            || now_ns.saturating_sub(self.header.started_ns) >= SESSION_NS_MAX
    }

    /// Goes on in a new session. The old one ends on a thread of its own: its last bytes have to
    /// reach the disk, and the path does not wait for that.
    fn divide(&mut self, now_ns: u64) -> Result<(), StoreError> {
        let id = Uuid::new_v4();
        let header = SessionHeader {
            id,
            started_ns: now_ns,
            continues: Some(self.header.id),
            session_file: self.header.session_file.as_deref().map(|file| numbered(file, self.part, self.part + 1)),
            ..self.header.clone()
        };
        let path = (self.place)(&id);
        let full =
            std::mem::replace(&mut self.writer, SegmentWriter::create_watched(&path, &header, self.on_synced.clone())?);
        let end = End { continued_in: Some(id), ..End::default() };
        self.ending.retain(|ending| !ending.is_finished());
        self.ending.push(std::thread::spawn(move || drop(full.finish(now_ns, &end))));
        self.earlier += self.messages;
        self.messages = 0;
        self.part += 1;
        self.sessions.push((header.clone(), path));
        self.began.push(self.earlier);
        self.header = header;
        for (conversation, server) in &self.legs {
            self.writer.push_leg(now_ns, *conversation, server);
        }
        Ok(())
    }
}

/// `session.json` goes on in `session-2.json`, and that in `session-3.json`.
pub fn numbered(file: &Path, part: u32, next: u32) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let stem = stem.strip_suffix(&format!("-{part}")).unwrap_or(&stem);
    let name = match file.extension() {
        Some(extension) => format!("{stem}-{next}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{next}"),
    };
    file.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(sequence: u64) -> ProxyMessage {
        ProxyMessage {
            sequence,
            time_ns: 1,
            from: Side::Client,
            conversation: 1,
            upstream: crate::envelope::Upstream::ONLY,
            message: mcp_wire::Message::new(Bytes::from_static(b"{}")),
            ending: mcp_wire::Ending::Lf,
            bom: false,
            correlated: None,
        }
    }

    fn begin(place: Place) -> Recorder {
        let header = SessionHeader::begun(Uuid::from_u128(1), 0, Transport::Stdio);
        let options =
            RecorderOptions { evidence: Evidence::Normal, on_failure: OnStoreFailure::Forward, on_synced: None };
        Recorder::begin(header, place, options).unwrap()
    }

    /// What was decided is recorded with its message, whichever is handed over first.
    #[test]
    fn verdicts_stand_behind_their_messages() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.mcpseg");
        let place = path.clone();
        let mut recorder = begin(Box::new(move |_| place.clone()));
        let verdict = |rule: &str| Verdict {
            what: mcp_store::VerdictKind::Deny,
            rule: Some(rule.into()),
            operation: None,
            audit: None,
        };
        recorder.message(&message(1), Lane::PIPE, 0);
        recorder.verdict(&message(1), 2, &verdict("after"));
        recorder.verdict(&message(2), 2, &verdict("before"));
        recorder.message(&message(2), Lane::PIPE, 0);
        recorder.message(&message(3), Lane::PIPE, 0);
        recorder.verdict(&message(1), 3, &verdict("late"));
        recorder.finish(4, &End::default()).1.unwrap();
        let mut rules = Vec::new();
        let session = mcp_store::Session::open_segment(&path).unwrap();
        session
            .for_each(|message| -> Result<(), StoreError> {
                rules.push(message.verdict.and_then(|verdict| verdict.rule).map(|rule| rule.to_string()));
                Ok(())
            })
            .unwrap();
        assert_eq!(rules, [Some("late".to_owned()), Some("before".to_owned()), None]);
        assert_eq!(session.summary().amendments, 1, "the others need no looking for");
    }

    /// A server that a conversation is with is known in every part of a long run, and what a message was made of
    /// as far as that is in the same part.
    #[test]
    fn a_session_that_goes_on_says_again_with_which_servers_conversations_are() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().to_owned();
        let mut recorder = begin(Box::new(move |id| place.join(id.to_string())));
        for (conversation, server) in [(1, "gone"), (2, "files")] {
            recorder.begin_leg(conversation, Upstream::nth(conversation as usize - 1), &server.into(), 1);
        }
        recorder.end_leg(1);
        let speaker = crate::Speaker::default();
        let pass = |recorder: &mut Recorder, sequence: u64, parent: u64| {
            let behalf = crate::Behalf { parent, speaker: &speaker, conversation: 9 };
            let message = ProxyMessage { conversation: 2, ..message(sequence) };
            recorder.message(&message, Lane { behalf: Some(behalf), ..Lane::PIPE }, 0);
        };
        pass(&mut recorder, 1, 0);
        pass(&mut recorder, 2, 1);
        recorder.commit(2).unwrap();
        recorder.capture.as_mut().unwrap().divide(3).unwrap();
        pass(&mut recorder, 3, 2);
        pass(&mut recorder, 4, 3);
        let (sessions, ended) = recorder.finish(4, &End::default());
        ended.unwrap();
        let read = |(_, path): &(SessionHeader, PathBuf)| {
            let mut links = Vec::new();
            let session = mcp_store::Session::open_segment(path).unwrap();
            let read = session.for_each(|message| -> Result<(), StoreError> {
                links.push((message.upstream.map(|server| server.to_string()), message.parent));
                Ok(())
            });
            read.unwrap();
            links
        };
        let files = Some("files".to_owned());
        let expected = [(files.clone(), None), (files, Some(1))];
        assert_eq!(sessions.iter().map(read).collect::<Vec<_>>(), [expected.clone(), expected]);
    }

    #[test]
    fn the_parts_of_a_long_run_get_numbered_files() {
        assert_eq!(numbered(Path::new("/a/s.json"), 1, 2), Path::new("/a/s-2.json"));
        assert_eq!(numbered(Path::new("/a/s-2.json"), 2, 3), Path::new("/a/s-3.json"));
        assert_eq!(numbered(Path::new("s"), 1, 2), Path::new("s-2"));
    }
}
