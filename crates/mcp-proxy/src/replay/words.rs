//! What came of a replay, as people read it: a line for each call that differs, where and how, and a
//! last line that counts.

use std::time::Duration;

use mcp_engine::compare::{Change, Difference, Excerpt};
use mcp_engine::replay::{NoAnswer, Outcome, Outcomes, Tally, Verdict};
use mcp_wire::visible::{visible, visible_bytes};

use super::Played;
use crate::failure::{Failure, exit};
use crate::report::{self, ColorChoice, Page, Style};

/// Characters of a value that are shown, and how many of them stand before the first difference.
const SHOWN: usize = 160;
const BEFORE: usize = 40;

pub(super) fn print(played: &Played, verbose: bool, color: ColorChoice) -> Result<(), Failure> {
    let mut page = Page::new(color);
    let recorded = &played.recorded.id.to_string()[..8];
    page.line(&format!("session {recorded} against {}", visible(&played.target)))?;
    for outcome in &played.outcomes.calls {
        print_outcome(&mut page, played, outcome, verbose)?;
    }
    print_heard(&mut page, played, verbose)?;
    page.line("")?;
    page.line(&summary(&page, played))?;
    Ok(page.end()?)
}

fn print_outcome(page: &mut Page, played: &Played, outcome: &Outcome, verbose: bool) -> Result<(), Failure> {
    let (style, what) = verdict(outcome, played.timeout);
    if !verbose && !matches!(outcome.verdict, Verdict::Drifted(_) | Verdict::NoAnswer(_)) {
        return Ok(());
    }
    let line = played.transcript.line(outcome.line);
    let number = page.styled(Style::Faint, &format!("#{:03}", line.sequence));
    let id = line.message.peek().id.map(|span| visible_bytes(line.message.slice(span))).unwrap_or_default();
    let took = outcome.took_ns.map(|ns| format!(" {}", report::duration(ns))).unwrap_or_default();
    page.line(&format!("{number} {} id={id}{took} {}", visible(&line.call()), page.styled(style, &what)))?;
    if let Verdict::Drifted(found) = &outcome.verdict {
        for difference in &found.kept {
            print_difference(page, difference)?;
        }
        if found.more > 0 {
            page.line(&format!("    and {} more differences", found.more))?;
        }
    }
    Ok(())
}

/// How an answer came out, in words.
pub(super) fn verdict(outcome: &Outcome, timeout: Duration) -> (Style, String) {
    match &outcome.verdict {
        Verdict::Same => (Style::Good, "same".into()),
        Verdict::Drifted(found) => {
            let places = match found.count() {
                0 => String::new(),
                1 => " at 1 place".into(),
                count => format!(" at {count} places"),
            };
            let rounds = match outcome.extra_rounds {
                0 => String::new(),
                1 => ", and the server wanted one round more".into(),
                rounds => format!(", and the server wanted {rounds} rounds more"),
            };
            (Style::Bad, format!("drifted{places}{rounds}"))
        }
        Verdict::NoAnswer(why) => (Style::Bad, no_answer(why, timeout)),
        Verdict::NotCompared(why) => (Style::Faint, format!("not compared: {why}")),
        Verdict::Skipped(why) => (Style::Faint, format!("skipped: {why}")),
    }
}

fn no_answer(why: &NoAnswer, timeout: Duration) -> String {
    let limit = || report::duration(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
    match why {
        NoAnswer::InTime => format!("no answer in time ({} beyond the recorded)", limit()),
        NoAnswer::AsRecorded => format!("no answer within {}; the recording has none either", limit()),
        NoAnswer::Gone => "no answer: the conversation ended".into(),
        NoAnswer::NotSent => "not sent: the conversation had ended".into(),
        NoAnswer::Refused(text) => format!("no answer: {}", visible(text)),
    }
}

fn print_difference(page: &mut Page, difference: &Difference) -> Result<(), Failure> {
    let path = visible(&difference.path.to_string()).to_string();
    let (removed, added) = match &difference.change {
        Change::Changed { recorded, now } => {
            let from = common_start(&recorded.text, &now.text).saturating_sub(BEFORE);
            (Some(shown(recorded, from)), Some(shown(now, from)))
        }
        Change::Missing { recorded } => (Some(shown(recorded, 0)), None),
        Change::Added { now } => (None, Some(shown(now, 0))),
        Change::Reordered => return Ok(page.line(&format!("    {path}: the same items in another order"))?),
    };
    page.line(&format!("    {path}"))?;
    if let Some(removed) = removed {
        page.line(&page.styled(Style::Bad, &format!("      - {removed}")))?;
    }
    if let Some(added) = added {
        page.line(&page.styled(Style::Good, &format!("      + {added}")))?;
    }
    Ok(())
}

/// Characters that two texts begin with alike.
fn common_start(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}

/// A value, or the piece of it from `from` on.
fn shown(value: &Excerpt, from: usize) -> String {
    let count = value.text.chars().count();
    let from = if count <= SHOWN { 0 } else { from.min(count - SHOWN) };
    let piece: String = value.text.chars().skip(from).take(SHOWN).collect();
    let is_cut = |at_edge: bool| if at_edge { "" } else { "…" };
    let before = is_cut(from == 0 && value.from == 0);
    let after = is_cut(from + SHOWN >= count && value.from + value.text.len() >= value.len);
    let size = if value.is_whole() { String::new() } else { format!(" ({})", report::size(value.len as u64)) };
    format!("{before}{}{after}{size}", visible(&piece))
}

fn print_heard(page: &mut Page, played: &Played, verbose: bool) -> Result<(), Failure> {
    for (method, count) in &played.outcomes.heard {
        if verbose || count.now != count.recorded {
            let line =
                format!("{} came {}, in the recording {}", visible(method), times(count.now), times(count.recorded));
            let is_drift = played.compares_notifications && count.now != count.recorded;
            page.line(&if is_drift { page.styled(Style::Bad, &line) } else { line })?;
        }
    }
    let outcomes = &played.outcomes;
    for (count, one, many) in [
        (outcomes.stray, "answer came that nobody waited for", "answers came that nobody waited for"),
        (outcomes.strange, "message came that is none", "messages came that are none"),
        (
            outcomes.unanswered_questions,
            "question has no answer in the recording",
            "questions have no answer in the recording",
        ),
    ] {
        if count > 0 {
            page.line(&format!("{count} {}", if count == 1 { one } else { many }))?;
        }
    }
    Ok(())
}

fn times(count: u64) -> String {
    match count {
        0 => "never".into(),
        1 => "once".into(),
        count => format!("{count} times"),
    }
}

fn summary(page: &Page, played: &Played) -> String {
    let counts = counts(&played.outcomes.tally());
    let style = if played.is_drifted() { Style::Bad } else { Style::Good };
    let took = report::duration(u64::try_from(played.took.as_nanos()).unwrap_or(u64::MAX));
    let interrupted = if played.interrupted { "interrupted: " } else { "" };
    let recorded_as = match &played.recorded_as {
        Some(header) => format!("; recorded as {}", &header.id.to_string()[..8]),
        None => String::new(),
    };
    format!("{interrupted}{} in {took}{recorded_as}", page.styled(style, &counts))
}

pub(super) fn counts(tally: &Tally) -> String {
    let Tally { same, drifted, no_answer, not_compared, skipped } = tally;
    let mut counts = format!("{same} same, {drifted} drifted, {no_answer} without an answer");
    if *not_compared > 0 {
        counts.push_str(&format!(", {not_compared} not compared"));
    }
    if *skipped > 0 {
        counts.push_str(&format!(", {skipped} skipped"));
    }
    counts
}

/// The server did not answer a single call.
pub(super) fn nothing_answered(
    outcomes: &Outcomes,
    timeout: Duration,
    status: Option<&str>,
    last_words: &str,
) -> Failure {
    let why = outcomes.calls.iter().find_map(|outcome| match &outcome.verdict {
        Verdict::NoAnswer(NoAnswer::Refused(text)) => Some(visible(text).to_string()),
        Verdict::NoAnswer(why @ (NoAnswer::InTime | NoAnswer::AsRecorded)) => Some(no_answer(why, timeout)),
        _ => None,
    });
    let how = status.map(|status| format!("it ended with {status}"));
    let why = why.or(how).unwrap_or_else(|| "the conversation ended".into());
    Failure::new(exit::CANNOT_RUN, format!("the server answered nothing ({why})"))
        .evidence("its last words", last_words)
}
