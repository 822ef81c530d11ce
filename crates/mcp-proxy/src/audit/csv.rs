//! Decisions for spreadsheets: one line each, the outcome beside the decision.

use std::process::ExitCode;

use mcp_store::audit::Ledger;
use mcp_store::audit::ledger::{DecisionRow, Entry};
use mcp_store::recorded::timestamp;
use mcp_wire::visible::visible;

use super::Choice;
use crate::failure::Failure;
use crate::report::{ColorChoice, Page};

const HEADING: &str = "id,time,session,sequence,client,server,direction,method,tool,operation,verdict,rule,rules,actor,\
                       why,held_ms,outcome,code,latency_ms,answer_session,answer_sequence";

pub(super) fn print(choice: &Choice, ledger: &Ledger) -> Result<ExitCode, Failure> {
    let mut page = Page::new(ColorChoice::Never);
    // The line break that the format asks for.
    page.raw(format!("{HEADING}\r\n").as_bytes())?;
    choice.each(ledger, |entry| {
        if let Entry::Decision(row) = &entry {
            page.raw(format!("{}\r\n", line(row)).as_bytes())?;
        }
        Ok(())
    })?;
    page.end()?;
    Ok(ExitCode::SUCCESS)
}

fn line(row: &DecisionRow) -> String {
    let outcome = row.outcome.as_ref();
    let answer = outcome.and_then(|outcome| outcome.answer);
    let text = |text: &Option<String>| text.as_deref().map(cell).unwrap_or_default();
    let milliseconds = |us: u64| format!("{}.{:03}", us / 1_000, us % 1_000);
    [
        row.id(),
        timestamp(row.record.time_ns()).to_string(),
        row.message().map(|message| message.session.to_string()).unwrap_or_default(),
        row.message().map(|message| message.sequence.to_string()).unwrap_or_default(),
        text(&row.record.client),
        text(&row.record.server),
        text(&row.record.direction),
        text(&row.record.method),
        text(&row.record.tool),
        text(&row.record.operation),
        cell(row.record.verdict()),
        text(&row.record.rule),
        text(&row.record.rules),
        text(&row.record.actor),
        text(&row.record.why),
        row.record.held_us().map(milliseconds).unwrap_or_default(),
        outcome.map(|outcome| cell(&outcome.status)).unwrap_or_default(),
        outcome.and_then(|outcome| outcome.code).map(|code| code.to_string()).unwrap_or_default(),
        outcome.map(|outcome| milliseconds(outcome.latency_us)).unwrap_or_default(),
        answer.map(|answer| answer.session.to_string()).unwrap_or_default(),
        answer.map(|answer| answer.sequence.to_string()).unwrap_or_default(),
    ]
    .join(",")
}

/// Text that a spreadsheet takes as text. What begins like a formula would be computed, whoever wrote it,
/// so an apostrophe stands before it, as people who mean text type one.
fn cell(text: &str) -> String {
    let text = visible(text).to_string();
    let is_formula = text
        .trim_start()
        .starts_with(['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}', '\u{2409}', '\u{240d}']);
    let text = if is_formula { format!("'{text}") } else { text };
    if text.contains(['"', ',', ' ', '\'', ';']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(cell(text), expected);
    }

    #[test]
    fn nothing_is_computed_by_whoever_opens_it() {
        check("read_file", "read_file");
        check("two words", "\"two words\"");
        check("a,b;\"c\"", "\"a,b;\"\"c\"\"\"");
        check("=HYPERLINK(\"http://x\")", "\"'=HYPERLINK(\"\"http://x\"\")\"");
        check("+1", "\"'+1\"");
        check("-2+3|cmd", "\"'-2+3|cmd\"");
        check("@SUM(A1)", "\"'@SUM(A1)\"");
        check("  =1", "\"'  =1\"");
        check("\t=1", "\"'\u{2409}=1\"");
        check("\u{ff1d}1", "\"'\u{ff1d}1\"");
        check("one\r\n=2", "one\u{240d}\u{240a}=2");
    }
}
