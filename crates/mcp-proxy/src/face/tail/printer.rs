//! What `tail` prints of each event: a line for people, or an object for scripts.

use std::collections::{HashSet, VecDeque};
use std::io;

use mcp_control::api::{Event, Governed, Held, Message, Mode, Outcome, Question, Snapshot, Verdict};
use mcp_store::{OutcomeKind, VerdictKind};
use mcp_wire::inert::inert;
use mcp_wire::visible::visible;
use serde_json::json;

use crate::face::show;
use crate::inspect::hold;
use crate::inspect::lines::{Lines, about};
use crate::inspect::ruling;
use crate::report::{ColorChoice, Page, Style, duration};

/// Printed messages whose later outcome `tail --filter` prints; it leaves out the outcomes of others. More than are
/// held at once.
const REMEMBERED: usize = 16_384;

pub(super) struct Printer {
    page: Page,
    lines: Lines,
    json: bool,
    is_filtered: bool,
    printed: VecDeque<u64>,
    first_conversation: Option<u32>,
    /// Held before anybody listened, and not printed so far.
    held_before: Vec<Held>,
    /// Printed as held, and not yet what came of it.
    held: HashSet<u64>,
    /// Those of them that a rule asks about.
    asked: HashSet<u64>,
    /// The last message that rules denied. That it went nowhere is said with it.
    denied: Option<u64>,
    mode: Mode,
    policy: Option<Governed>,
    /// Stands in advice where several instances run.
    which: String,
}

impl Printer {
    pub(super) fn new(json: bool, is_filtered: bool, which: String, color: ColorChoice) -> Self {
        Self {
            page: Page::new(color),
            lines: Lines::default(),
            json,
            is_filtered,
            printed: VecDeque::new(),
            first_conversation: None,
            held_before: Vec::new(),
            held: HashSet::new(),
            asked: HashSet::new(),
            denied: None,
            mode: Mode::Passthrough,
            policy: None,
            which,
        }
    }

    /// A message; after it, that it is held if that happened before anybody listened.
    pub(super) fn message(&mut self, message: &Message) -> io::Result<()> {
        self.message_itself(message)?;
        let held_before = self.held_before.extract_if(.., |held| held.sequence <= message.sequence);
        let held: Vec<Held> = held_before.collect();
        held.iter().try_for_each(|held| self.held(held))
    }

    /// How things stand as the stream begins. Messages after `last` are still to come.
    pub(super) fn begin(&mut self, snapshot: Snapshot, last: u64) -> io::Result<()> {
        self.mode = snapshot.mode;
        self.policy = snapshot.instance.policy;
        let (past, to_come): (Vec<Held>, _) = snapshot.held.into_iter().partition(|held| held.sequence <= last);
        self.held_before = to_come;
        past.iter().try_for_each(|held| self.held(held))
    }

    /// How things stand after something was not told: what of it is new.
    pub(super) fn go_on(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        self.mode(snapshot.mode)?;
        if let Some(policy) = &snapshot.instance.policy {
            self.policy(policy)?;
        }
        let held: HashSet<u64> = snapshot.held.iter().map(|held| held.sequence).collect();
        self.held.retain(|sequence| held.contains(sequence));
        self.asked.retain(|sequence| held.contains(sequence));
        snapshot.held.iter().try_for_each(|held| self.held(held))
    }

    /// These are printed next. If they are of several conversations, the first line says so already.
    pub(super) fn expect<'a>(&mut self, messages: impl IntoIterator<Item = &'a Message>) {
        messages.into_iter().for_each(|message| self.learn_conversation(message));
    }

    /// From the second conversation on, lines say which they belong to.
    fn learn_conversation(&mut self, message: &Message) {
        let first = *self.first_conversation.get_or_insert(message.conversation);
        self.lines.show_conversation |= message.conversation != first;
    }

    fn message_itself(&mut self, message: &Message) -> io::Result<()> {
        if self.is_filtered {
            if self.printed.len() == REMEMBERED {
                self.printed.pop_front();
            }
            self.printed.push_back(message.sequence);
        }
        if self.json {
            let line = serde_json::to_string(message).expect("plain data always serialises");
            return self.page.line(&inert(&line));
        }
        self.learn_conversation(message);
        if message.verdict.as_deref() == Some(VerdictKind::Deny.as_str()) {
            self.denied = Some(message.sequence);
        }
        let line = self.lines.line(&self.page, &show::told(message));
        self.page.line(&line)
    }

    /// What is not a message. Who is in control and which breakpoints there are is not told here.
    pub(super) fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Held(held) => self.held(held),
            Event::Outcome(outcome) if self.is_of_interest(outcome.sequence) => self.outcome(outcome),
            Event::Verdict(verdict) if self.is_of_interest(verdict.sequence) => self.verdict(verdict),
            Event::Gap(gap) if self.json => self.object(json!({ "kind": "gap", "missed": gap.missed })),
            Event::Gap(gap) => {
                let missed = if gap.missed == 1 { "1 event".to_owned() } else { format!("{} events", gap.missed) };
                let verb = if gap.missed == 1 { "was" } else { "were" };
                self.bad(&format!("… {missed} {verb} not told; `mcp-proxy inspect` has all messages"))
            }
            Event::Mode(change) => self.mode(change.mode),
            Event::Policy(policy) => self.policy(policy),
            _ => Ok(()),
        }
    }

    fn mode(&mut self, mode: Mode) -> io::Result<()> {
        if std::mem::replace(&mut self.mode, mode) == mode {
            return Ok(());
        }
        match mode {
            _ if self.json => self.object(json!({ "kind": "mode", "mode": mode })),
            Mode::Intercept => self.faint("… from here on every message is held"),
            Mode::Passthrough => self.faint("… from here on messages pass"),
        }
    }

    fn policy(&mut self, policy: &Governed) -> io::Result<()> {
        if self.policy.replace(policy.clone()).as_ref() == Some(policy) {
            return Ok(());
        }
        if self.json {
            return self.object(json!({ "kind": "policy", "policy": policy }));
        }
        let (rules, version) = (policy.rules, visible(&policy.version));
        let rules = if rules == 1 { "1 rule".to_owned() } else { format!("{rules} rules") };
        self.faint(&format!("… from here on {rules} of version {version} count"))
    }

    fn held(&mut self, held: &Held) -> io::Result<()> {
        // Whoever watches is somebody who can be asked, whatever else they want to see.
        if !(held.asks.is_some() || self.is_of_interest(held.sequence)) || !self.held.insert(held.sequence) {
            return Ok(());
        }
        let limit = held.released_in_ms;
        if self.json {
            let (sequence, why) = (held.sequence, &held.why);
            let mut object = json!({ "kind": "held", "sequence": sequence, "why": why, "released_in_ms": limit });
            if let Some(question) = &held.asks {
                self.asked.insert(sequence);
                object["asks"] = json!(question);
            }
            return self.object(object);
        }
        match &held.asks {
            Some(question) => self.question(held, question),
            None => {
                let limit = limit.map(|ms| format!(" for up to {}", duration(ms * 1_000_000))).unwrap_or_default();
                self.faint(&format!("#{:03} ⏸ held by {}{limit}", held.sequence, visible(&held.why)))
            }
        }
    }

    /// What a rule asks, and what answers it.
    fn question(&mut self, held: &Held, question: &Question) -> io::Result<()> {
        let (sequence, which) = (held.sequence, &self.which);
        let about = about(question.method.as_deref().unwrap_or_default(), question.tool.as_deref());
        let said = question.message.as_ref().map(|said| format!(": {}", visible(said))).unwrap_or_default();
        let limit = held.released_in_ms.map(|ms| format!(", or {} in {}", show::ends(held), duration(ms * 1_000_000)));
        let lines = [
            format!("#{sequence:03} ⏸ rule \"{}\" asks about {about}{said}", visible(&question.rule)),
            format!(
                "     `mcp-proxy approve{which} {sequence}` or `mcp-proxy deny{which} {sequence}`{}",
                limit.unwrap_or_default()
            ),
        ];
        self.asked.insert(sequence);
        lines.iter().try_for_each(|line| {
            let line = self.page.styled(Style::Heading, line);
            self.page.line(&line)
        })
    }

    fn outcome(&mut self, outcome: &Outcome) -> io::Result<()> {
        self.held.remove(&outcome.sequence);
        let was_asked = self.asked.remove(&outcome.sequence);
        if self.json {
            return self.object(json!({
                "kind": "outcome",
                "sequence": outcome.sequence,
                "outcome": outcome.what,
                "decided_by": Some(&outcome.by).filter(|by| !by.is_empty()),
                "held_ns": outcome.held_ns,
                "modified": outcome.edited,
            }));
        }
        if self.denied == Some(outcome.sequence) && outcome.held_ns == 0 {
            return Ok(());
        }
        let by = if outcome.by.is_empty() { String::new() } else { format!(" by {}", visible(&outcome.by)) };
        let word = match outcome.what {
            OutcomeKind::Forwarded if was_asked => "approved",
            OutcomeKind::Modified if was_asked => "approved, edited",
            OutcomeKind::Refused if was_asked => "denied",
            what => hold::word(what),
        };
        let held = if outcome.held_ns == 0 { String::new() } else { format!("⏸ {} ", duration(outcome.held_ns)) };
        self.faint(&format!("#{:03} {held}{word}{by}", outcome.sequence))
    }

    fn verdict(&mut self, verdict: &Verdict) -> io::Result<()> {
        if self.json {
            return self.object(json!({
                "kind": "verdict",
                "sequence": verdict.sequence,
                "verdict": verdict.verdict,
                "rule": verdict.rule,
                "op": verdict.op,
                "audit_id": verdict.audit_id,
            }));
        }
        // Of what is held, the outcome tells it.
        if self.held.contains(&verdict.sequence) {
            return Ok(());
        }
        let Some(what) = VerdictKind::from_name(&verdict.verdict) else { return Ok(()) };
        let said = ruling::said(ruling::word(what), verdict.rule.as_deref());
        self.faint(&format!("#{:03} {said}", verdict.sequence))
    }

    fn is_of_interest(&self, sequence: u64) -> bool {
        !self.is_filtered || self.printed.contains(&sequence) || self.asked.contains(&sequence)
    }

    fn object(&mut self, object: serde_json::Value) -> io::Result<()> {
        self.page.line(&inert(&object.to_string()))
    }

    fn faint(&mut self, text: &str) -> io::Result<()> {
        let line = self.page.styled(Style::Faint, text);
        self.page.line(&line)
    }

    fn bad(&mut self, text: &str) -> io::Result<()> {
        let line = self.page.styled(Style::Bad, text);
        self.page.line(&line)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.page.flush()
    }

    pub(super) fn end(self) -> io::Result<()> {
        self.page.end()
    }
}
