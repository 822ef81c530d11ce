//! What was decided, on disk before it counts. The log itself is the store's; here is known which calls
//! still have no outcome, and what to do when the log cannot be written.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use foldhash::fast::RandomState;
use mcp_store::audit::{AuditLog, CallOutcome, Decision};
use mcp_store::story::Status;
use mcp_wire::{Id, Message};
use uuid::Uuid;

use crate::conversation::Speaker;
use crate::envelope::{ProxyMessage, Side};
use crate::record::Recorder;

/// Calls that wait for their outcome, in two halves; when the young one is full, the old one is forgotten.
/// A call that its client gave up may never have one.
const OPEN_MAX: usize = 65_536;
/// Calls in batches that wait for their outcome. Further ones get none.
const OPEN_ITEMS_MAX: usize = 4_096;

pub struct Audit {
    log: AuditLog,
    instance: Uuid,
    server: Option<Arc<str>>,
    /// The version of the rules that count.
    rules_version: Arc<str>,
    recording: Recording,
    open: OpenCalls,
    /// Items of batches: by conversation, sender and id.
    open_items: HashMap<(u32, Side, Id), Open, RandomState>,
    /// Messages of this batch that must not leave before the log is written.
    unsealed: Vec<u64>,
    is_failing: bool,
    trouble: Option<String>,
    /// As if the disk were full.
    #[cfg(test)]
    pub(crate) is_full: bool,
}

/// By the sequence of the request.
#[derive(Default)]
struct OpenCalls {
    young: HashMap<u64, Open, RandomState>,
    old: HashMap<u64, Open, RandomState>,
}

impl OpenCalls {
    /// What it was that was open under this number before comes back.
    fn insert(&mut self, sequence: u64, open: Open) -> Option<Open> {
        if self.young.len() >= OPEN_MAX / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        let before = self.young.insert(sequence, open);
        if self.old.is_empty() { before } else { before.or_else(|| self.old.remove(&sequence)) }
    }

    fn remove(&mut self, sequence: u64) -> Option<Open> {
        self.young.remove(&sequence).or_else(|| self.old.remove(&sequence))
    }

    /// Takes out those of which this is true.
    fn take_where(&mut self, is_meant: impl Fn(&Open) -> bool) -> Vec<Open> {
        let mut taken = Vec::new();
        for half in [&mut self.young, &mut self.old] {
            taken.extend(half.extract_if(|_, open| is_meant(open)).map(|(_, open)| open));
        }
        taken
    }
}

#[derive(Clone, Copy)]
struct Open {
    number: u64,
    time_ns: u64,
    conversation: u32,
}

/// Something that was decided, besides what the message itself tells.
pub(crate) struct Decided<'a> {
    pub message: &'a ProxyMessage,
    pub method: &'a str,
    pub tool: Option<&'a str>,
    pub speaker: &'a Speaker,
    /// The server of a gateway.
    pub server: Option<&'a str>,
    pub operation: Option<&'static str>,
    pub verdict: &'static str,
    pub rule: Option<&'a str>,
    pub actor: &'a str,
    pub why: Option<&'a str>,
    pub held_ns: u64,
    /// It goes on, once this is written.
    pub goes_on: bool,
    /// What becomes of it is to be known.
    pub is_call: bool,
    /// Its id, if it is an item of a batch.
    pub item: Option<Id>,
}

/// Where messages are found: a session, and how many messages of this run came before it. Messages count
/// from 1 in each session. Without a recording the run stands for the session.
#[derive(Clone, Copy)]
struct Recording {
    session: Uuid,
    earlier: u64,
}

impl Audit {
    /// `server` is what the log calls the server, where rules give it no name.
    pub fn new(log: AuditLog, instance: Uuid, server: Option<Arc<str>>) -> Self {
        // Its start says that a log is not open.
        let is_failing = !log.is_open();
        Self {
            log,
            instance,
            server,
            rules_version: "".into(),
            recording: Recording { session: instance, earlier: 0 },
            open: OpenCalls::default(),
            open_items: HashMap::default(),
            unsealed: Vec::new(),
            is_failing,
            trouble: None,
            #[cfg(test)]
            is_full: false,
        }
    }

    /// From now on decisions are by the rules of this version.
    pub(crate) fn judge_by(&mut self, version: &Arc<str>) {
        self.rules_version = Arc::clone(version);
    }

    /// From now on messages are found in the session that `recorder` records.
    pub(crate) fn follow(&mut self, recorder: &Recorder) {
        let session = recorder.current().map_or(self.instance, |(header, _)| header.id);
        self.recording = Recording { session, earlier: recorder.earlier() };
    }

    /// What a record is known by everywhere.
    pub(crate) fn id(&self, number: u64) -> String {
        self.log.id(number)
    }

    /// Which run of the proxy this is.
    pub(crate) fn instance(&self) -> Uuid {
        self.instance
    }

    pub(crate) fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    pub(crate) fn decide(&mut self, time_ns: u64, decided: &Decided<'_>) -> u64 {
        let Decided { message, speaker, .. } = decided;
        let number = self.log.decision(&Decision {
            time_ns,
            sequence: message.sequence.saturating_sub(self.recording.earlier),
            session: self.recording.session,
            conversation: message.conversation,
            client: speaker.client.as_deref(),
            server: decided.server.or(self.server.as_deref()),
            direction: message.from.direction(),
            method: decided.method,
            tool: decided.tool,
            operation: decided.operation,
            verdict: decided.verdict,
            rule: decided.rule,
            rules_version: &self.rules_version,
            actor: decided.actor,
            why: decided.why,
            held_ns: decided.held_ns,
        });
        if decided.goes_on {
            let open = Open { number, time_ns, conversation: message.conversation };
            if let Some(id) = &decided.item {
                if self.open_items.len() < OPEN_ITEMS_MAX {
                    self.open_items.insert((message.conversation, message.from, id.clone()), open);
                }
            } else if decided.is_call
                && let Some(before) = self.open.insert(message.sequence, open)
            {
                self.log.outcome(&self.recording.without_answer(before, "replaced", time_ns));
            }
            self.unsealed.push(message.sequence);
        }
        number
    }

    /// The request `sequence` has an answer.
    #[inline]
    pub(crate) fn answered(&mut self, request: u64, answer: &ProxyMessage) {
        if let Some(open) = self.open.remove(request) {
            self.returned(open, answer, &answer.message);
        }
    }

    /// Whether calls that came in batches have no answer yet.
    #[inline]
    pub(crate) fn awaits_items(&self) -> bool {
        !self.open_items.is_empty()
    }

    /// An answer, or one of a batch of them, may be to a call that came in a batch.
    pub(crate) fn answered_item(&mut self, answer: &ProxyMessage, item: &Message) {
        let Some(id) = item.id() else { return };
        if let Some(open) = self.open_items.remove(&(answer.conversation, answer.from.other(), id)) {
            self.returned(open, answer, item);
        }
    }

    fn returned(&mut self, open: Open, answer: &ProxyMessage, said: &Message) {
        let status = Status::of_answer(said);
        self.log.outcome(&CallOutcome {
            of: open.number,
            time_ns: answer.time_ns,
            session: self.recording.session,
            sequence: answer.sequence.saturating_sub(self.recording.earlier),
            status: status.as_ref().map_or("ok", word),
            code: status.as_ref().and_then(|status| status.code()),
            latency_ns: answer.time_ns.saturating_sub(open.time_ns),
        });
    }

    /// Other rules count from now on.
    pub(crate) fn rules_changed(&mut self, time_ns: u64, version: &Arc<str>) {
        self.judge_by(version);
        self.log.rules_changed(time_ns, version, "other rules count from now on");
    }

    /// Whether messages wait for the log.
    #[inline]
    pub(crate) fn is_unsealed(&self) -> bool {
        !self.unsealed.is_empty()
    }

    /// Writes what was decided. If that fails, the messages come back that it was about.
    pub(crate) fn seal(&mut self) -> Result<(), Vec<u64>> {
        let unsealed = std::mem::take(&mut self.unsealed);
        match self.flush() {
            Ok(()) => {
                // Its room is of use again.
                self.unsealed = unsealed;
                self.unsealed.clear();
                Ok(())
            }
            Err(_) => Err(unsealed),
        }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let was_open = self.log.is_open();
        let flushed = self.log.flush();
        #[cfg(test)]
        let flushed = if self.is_full { Err(io::ErrorKind::StorageFull.into()) } else { flushed };
        if let Err(error) = &flushed
            && !std::mem::replace(&mut self.is_failing, true)
        {
            self.trouble = Some(format!("the audit cannot be written: {error}"));
        }
        if !was_open && flushed.is_ok() {
            self.trouble = Some("the audit log is open, decisions are written".into());
        }
        if let Some(error) = self.log.take_copy_error() {
            self.trouble = Some(format!("audit lines cannot be written to the file of --log: {error}"));
        }
        self.is_failing &= flushed.is_err();
        flushed
    }

    /// Whether decisions reach the log, as far as was tried.
    pub(crate) fn is_written(&self) -> bool {
        !self.is_failing
    }

    /// A call did not go on after all.
    pub(crate) fn ended(&mut self, sequence: u64, status: &'static str, time_ns: u64) {
        if let Some(open) = self.open.remove(sequence) {
            self.log.outcome(&self.recording.without_answer(open, status, time_ns));
        }
    }

    /// Nothing more comes back in a conversation.
    pub(crate) fn lost(&mut self, conversation: u32, time_ns: u64) {
        self.lose(|open| open.conversation == conversation, time_ns);
    }

    fn lose(&mut self, is_meant: impl Fn(&Open) -> bool, time_ns: u64) {
        let mut lost: Vec<Open> = self.open.take_where(&is_meant);
        lost.extend(self.open_items.extract_if(|_, open| is_meant(open)).map(|(_, open)| open));
        lost.sort_by_key(|open| open.number);
        for open in lost {
            self.log.outcome(&self.recording.without_answer(open, "lost", time_ns));
        }
    }

    pub(crate) fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// Closes the log.
    pub(crate) fn finish(mut self, time_ns: u64) -> io::Result<()> {
        self.lose(|_| true, time_ns);
        self.log.end(time_ns)
    }
}

impl Recording {
    fn without_answer(self, open: Open, status: &'static str, time_ns: u64) -> CallOutcome {
        let latency_ns = time_ns.saturating_sub(open.time_ns);
        CallOutcome { of: open.number, time_ns, session: self.session, sequence: 0, status, code: None, latency_ns }
    }
}

fn word(status: &Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::InputRequired => "input_required",
        Status::Err(_) => "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_never_return_do_not_keep_others_from_their_outcome() {
        let mut open = OpenCalls::default();
        let call = |number| Open { number, time_ns: 0, conversation: 0 };
        (0..10 * OPEN_MAX as u64).for_each(|number| assert!(open.insert(number, call(number)).is_none()));
        assert!(open.young.len() + open.old.len() <= OPEN_MAX);
        let last = 10 * OPEN_MAX as u64 - 1;
        assert_eq!(open.remove(last).map(|open| open.number), Some(last));
        assert!(open.remove(last).is_none() && open.remove(0).is_none());
    }
}
