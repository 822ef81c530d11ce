//! The end of held messages without a decision from here: at their time, and once control is left.

use mcp_control::api::{Held, OnDetach, Owner, Permission};

use super::common::Common;
use crate::text;

/// What becomes of a message at its time, in a word: `denied`.
pub(crate) fn at_its_time(held: &Held) -> &'static str {
    match held.asks.as_ref().map(|question| question.on_timeout) {
        None => "forwarded",
        Some(Permission::Allow) => "approved",
        Some(Permission::Deny) => "denied",
    }
}

/// A time that is left, to the second: `25 s`, `1m 40s`.
pub(crate) fn seconds(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => text::age(ms),
    }
}

/// What becomes of a message once its controller leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fate {
    end: End,
    /// At its time, and not at once.
    waits: bool,
    is_question: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// There is no time limit.
    Held,
    Forwarded,
    AnsweredWithError,
    Dropped,
    Approved,
    Denied,
}

impl End {
    fn word(self) -> &'static str {
        match self {
            Self::Held => "stay held",
            Self::Forwarded => "be forwarded",
            Self::AnsweredWithError => "be answered with an error",
            Self::Dropped => "be dropped",
            Self::Approved => "be approved",
            Self::Denied => "be denied",
        }
    }
}

impl Fate {
    fn of(held: &Held, common: &Common) -> Self {
        let Some(standing) = &common.standing else {
            return Self { end: End::Forwarded, waits: false, is_question: false };
        };
        let Some(question) = &held.asks else {
            return match (stays(held, common), standing.on_detach) {
                (true, _) => Self::in_time(End::Forwarded, held, false),
                (false, OnDetach::Forward) => Self { end: End::Forwarded, waits: false, is_question: false },
                (false, OnDetach::Error) => Self { end: End::AnsweredWithError, waits: false, is_question: false },
                (false, OnDetach::Drop) => Self { end: End::Dropped, waits: false, is_question: false },
            };
        };
        // Only an approval, or a time-out before an audience, lets a question's message pass.
        let has_audience = question.in_client || standing.faces > 1;
        match (has_audience, question.on_timeout) {
            (true, Permission::Allow) => Self::in_time(End::Approved, held, true),
            (false, _) if question.timeout_ms.is_none() => Self { end: End::Denied, waits: false, is_question: true },
            _ => Self::in_time(End::Denied, held, true),
        }
    }

    fn in_time(end: End, held: &Held, is_question: bool) -> Self {
        let has_time = held.released_in_ms.is_some();
        Self { end: if has_time { end } else { End::Held }, waits: has_time, is_question }
    }

    /// `will be denied in 25 s unless answered elsewhere`
    fn told(self, count: usize, first: Option<u64>) -> String {
        let time = match first.filter(|_| self.waits) {
            Some(ms) if count > 1 => format!(", the first in {},", seconds(ms)),
            Some(ms) => format!(" in {}", seconds(ms)),
            None => String::new(),
        };
        let unless = if self.is_question { " unless answered elsewhere" } else { "" };
        format!("will {}{time}{unless}", self.end.word())
    }
}

/// A breakpoint that a command set holds on without a face.
fn stays(held: &Held, common: &Common) -> bool {
    let Some(standing) = &common.standing else { return false };
    let owner = match held.why.as_str() {
        "intercept" => Some(standing.mode_owner),
        why => standing.breakpoints.iter().find(|other| other.name == why).map(|breakpoint| breakpoint.owner),
    };
    owner == Some(Owner::Command)
}

/// `will be forwarded`, `will be denied in 25 s unless answered elsewhere`
pub(crate) fn once_left(held: &Held, common: &Common) -> String {
    Fate::of(held, common).told(1, common.remaining(held))
}

/// `1 message is held and will be forwarded. Leave?`
pub(crate) fn leaving(common: &Common) -> String {
    let mut kinds: Vec<(Fate, usize, Option<u64>)> = Vec::new();
    for held in common.held_by_us() {
        let (fate, left) = (Fate::of(held, common), common.remaining(held));
        match kinds.iter_mut().find(|(other, ..)| *other == fate) {
            Some((_, count, first)) => (*count, *first) = (*count + 1, (*first).min(left)),
            None => kinds.push((fate, 1, left)),
        }
    }
    let sentences = kinds.into_iter().map(|(fate, count, first)| {
        let are = if count == 1 { "message is" } else { "messages are" };
        format!("{count} {are} held and {}. ", fate.told(count, first))
    });
    format!("{}Leave?", sentences.collect::<String>())
}

#[cfg(test)]
mod tests {
    use mcp_control::api::{Breakpoint, Question};

    use super::*;
    use crate::testing::{app, call, held};

    /// What is held, and what leaving makes of it.
    #[track_caller]
    fn leaving_is(list: Vec<Held>, change: impl FnOnce(&mut Common), expected: &str) {
        let mut common = app().common;
        common.standing.as_mut().unwrap().held = list;
        change(&mut common);
        assert_eq!(leaving(&common), expected);
    }

    fn asked(left: u64, change: impl FnOnce(&mut Question)) -> Held {
        let mut question = Question {
            rule: "ask-first".into(),
            message: None,
            method: Some("tools/call".into()),
            tool: Some("write".into()),
            operation: Some("write".into()),
            timeout_ms: Some(120_000),
            on_timeout: Permission::Deny,
            in_client: false,
        };
        change(&mut question);
        Held { asks: Some(question), released_in_ms: Some(left), ..held(call(left, "write", "{}"), "ask-first") }
    }

    fn on_detach(on_detach: OnDetach) -> impl FnOnce(&mut Common) {
        move |common| common.standing.as_mut().unwrap().on_detach = on_detach
    }

    #[test]
    fn what_a_breakpoint_holds_follows_the_flag() {
        let one = || vec![held(call(2, "write", "{}"), "b1")];
        leaving_is(Vec::new(), |_| {}, "Leave?");
        leaving_is(one(), |_| {}, "1 message is held and will be forwarded. Leave?");
        let error = "1 message is held and will be answered with an error. Leave?";
        leaving_is(one(), on_detach(OnDetach::Error), error);
        let two = vec![held(call(2, "write", "{}"), "b1"), held(call(3, "write", "{}"), "b1")];
        leaving_is(two, on_detach(OnDetach::Drop), "2 messages are held and will be dropped. Leave?");
    }

    #[test]
    fn what_a_command_holds_stays() {
        let breakpoint = |owner| Breakpoint { name: "b1".into(), filter: "tool:write".into(), owner, hits: 1 };
        let by =
            |owner| move |common: &mut Common| common.standing.as_mut().unwrap().breakpoints = vec![breakpoint(owner)];
        let one = || vec![held(call(2, "write", "{}"), "b1")];
        leaving_is(one(), by(Owner::Command), "1 message is held and will be forwarded in 41 s. Leave?");
        leaving_is(one(), by(Owner::Start), "1 message is held and will be forwarded. Leave?");
        let unlimited = vec![Held { released_in_ms: None, ..held(call(2, "write", "{}"), "b1") }];
        leaving_is(unlimited, by(Owner::Command), "1 message is held and will stay held. Leave?");
    }

    #[test]
    fn what_a_rule_asks_about_is_never_forwarded() {
        let denied = "1 message is held and will be denied in 25 s unless answered elsewhere. Leave?";
        leaving_is(vec![asked(25_000, |_| {})], on_detach(OnDetach::Forward), denied);
        // Without an audience a time-out denies whatever it allows before one.
        leaving_is(vec![asked(25_000, |question| question.on_timeout = Permission::Allow)], |_| {}, denied);
        let in_client = |question: &mut Question| (question.on_timeout, question.in_client) = (Permission::Allow, true);
        let approved = "1 message is held and will be approved in 25 s unless answered elsewhere. Leave?";
        leaving_is(vec![asked(25_000, in_client)], |_| {}, approved);
        // A rule without a time-out of its own waits for faces only.
        let at_once = "1 message is held and will be denied unless answered elsewhere. Leave?";
        leaving_is(vec![asked(25_000, |question| question.timeout_ms = None)], |_| {}, at_once);
        let watched = |common: &mut Common| common.standing.as_mut().unwrap().faces = 2;
        leaving_is(vec![asked(25_000, |question| question.timeout_ms = None)], watched, denied);
    }

    #[test]
    fn each_kind_is_told_and_the_clock_runs() {
        let list = vec![asked(40_000, |_| {}), held(call(2, "write", "{}"), "b1"), asked(25_000, |_| {})];
        let told = "2 messages are held and will be denied, the first in 20 s, unless answered elsewhere. \
            1 message is held and will be forwarded. Leave?";
        leaving_is(list, |common| common.tick(5_000), told);
    }

    #[test]
    fn whoever_only_watches_leaves_nothing_behind() {
        leaving_is(vec![held(call(2, "write", "{}"), "b1")], |common| common.has_lease = false, "Leave?");
    }
}
