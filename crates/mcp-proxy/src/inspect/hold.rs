//! What rules decided about a message, what became of it if it was held, and what somebody wrote beside
//! it, in words.

use mcp_store::{Amendment, Mark, Outcome, OutcomeKind, Recorded, Said};
use mcp_wire::visible::{visible, visible_lines};

use super::lines::cut;
use super::ruling;
use crate::report::{self, Page, Style};

/// Characters of a mark and of a decider's name in a line; a face may send any.
const WORDS_SHOWN: usize = 72;

/// `⏸ 3.2s`, `edited`, `★ look here`: as much as a line has room for.
pub(crate) fn signs(page: &Page, recorded: &Recorded) -> Vec<String> {
    let mut signs = Vec::new();
    signs.extend(recorded.verdict.as_deref().and_then(|verdict| ruling::sign(page, verdict)));
    if !recorded.is_denied() {
        signs.extend(hold_signs(page, recorded));
    }
    signs.extend(recorded.mark.as_ref().map(|mark| star(mark)));
    signs
}

fn hold_signs(page: &Page, recorded: &Recorded) -> Vec<String> {
    let mut signs = Vec::new();
    match (recorded.held, recorded.held_ns, recorded.outcome) {
        (true, Some(held_ns), Some(_)) => signs.push(format!("⏸ {}", report::duration(held_ns))),
        (true, ..) => signs.push(page.styled(Style::Bad, "⏸ held")),
        (false, ..) => {}
    }
    let is_edited = recorded.modified && recorded.outcome != Some(OutcomeKind::Modified);
    signs.extend(is_edited.then(|| page.styled(Style::Bad, word(OutcomeKind::Modified))));
    signs.extend(recorded.outcome.and_then(|outcome| sign(page, outcome)));
    signs
}

/// What is not as if nobody had looked at it.
fn sign(page: &Page, outcome: OutcomeKind) -> Option<String> {
    match outcome {
        OutcomeKind::Forwarded => None,
        OutcomeKind::Released => Some(page.styled(Style::Faint, word(outcome))),
        _ => Some(page.styled(Style::Bad, word(outcome))),
    }
}

pub(crate) fn word(outcome: OutcomeKind) -> &'static str {
    match outcome {
        OutcomeKind::Modified => "edited",
        OutcomeKind::Answered => "answered in its place",
        other => other.as_str(),
    }
}

fn star(mark: &str) -> String {
    format!("★ {}", cut(mark.as_bytes(), WORDS_SHOWN))
}

/// What `-v` says of it: who decided, why, and the whole note.
pub(crate) fn details(page: &Page, recorded: &Recorded) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(recorded.verdict.as_deref().map(|verdict| ruling::detail(recorded, verdict)));
    if (recorded.held || recorded.outcome.is_some()) && !recorded.is_denied() {
        let held = recorded.held_ns.map(|ns| format!("held {}", report::duration(ns)));
        let held = held.or(recorded.held.then(|| "held".to_owned()));
        let decided = recorded.outcome.map(|outcome| {
            let by = recorded.decided_by.as_ref().map(|by| format!(" by {}", cut(by.as_bytes(), WORDS_SHOWN)));
            let why = recorded.why.as_ref().map(|why| format!(" ({})", visible(why)));
            format!("{}{}{}", word(outcome), by.unwrap_or_default(), why.unwrap_or_default())
        });
        lines.push([held, decided].into_iter().flatten().collect::<Vec<_>>().join(", "));
    }
    let note = recorded.note.as_ref().map(|note| visible_lines(note).to_string());
    lines.extend(note.iter().flat_map(|note| note.lines()).map(|line| format!("note: {line}")));
    lines.iter().map(|line| page.styled(Style::Faint, &format!("    {line}"))).collect()
}

/// A line for what was said of a message that stands further up.
pub(crate) fn line(page: &Page, amendment: &Amendment) -> String {
    let number = page.styled(Style::Faint, &format!("#{:03}", amendment.sequence));
    let said = match &amendment.said {
        Said::Outcome(Outcome { what, by, held_ns, .. }) => {
            let by = if by.is_empty() { String::new() } else { format!(" by {}", cut(by.as_bytes(), WORDS_SHOWN)) };
            let held = if *held_ns == 0 { String::new() } else { format!("⏸ {} ", report::duration(*held_ns)) };
            format!("{held}{}{by}", word(*what))
        }
        Said::Verdict(verdict) => ruling::said(ruling::word(verdict.what), verdict.rule.as_deref()),
        Said::Mark(Mark { mark: Some(mark), .. }) => star(mark),
        Said::Mark(Mark { note: Some(note), .. }) => format!("note: {}", cut(note.as_bytes(), WORDS_SHOWN)),
        Said::Mark(_) => "no longer marked".to_owned(),
    };
    format!("{number} {} {said}", amendment.direction.arrow())
}
