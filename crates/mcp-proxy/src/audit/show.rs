//! `audit show`: everything about one decision, and where to look further.

use std::process::ExitCode;

use mcp_store::audit::ledger::{DecisionRow, Entry};
use mcp_store::audit::{Ledger, LogFiles, MessageId};
use mcp_store::recorded::timestamp;
use mcp_wire::visible::visible;

use super::find_instance;
use crate::failure::{Failure, quoted};
use crate::report::{ColorChoice, Page, Style, duration};

pub(super) fn show(id: &str, ledger: &Ledger, logs: &[LogFiles], color: ColorChoice) -> Result<ExitCode, Failure> {
    let wrong = || {
        Failure::usage(format!("`{}` is not the id of a decision", visible(id)))
            .hint("it is INSTANCE/NUMBER, as `mcp-proxy audit` lists it")
    };
    let (instance, number) = id.split_once('/').ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let instance = find_instance(instance, ledger, logs)?;
    let mut page = Page::new(color);
    match ledger.find(&instance, number)? {
        Some(Entry::Decision(row)) => print(&mut page, &row, logs)?,
        Some(Entry::Note(note)) => {
            page.line(&format!("{}  {}", timestamp(note.time_ns), visible(&note.text)))?;
        }
        None => {
            return Err(Failure::usage(format!("there is no decision {number} in the log of {instance}"))
                .hint(format!("`mcp-proxy audit --instance {instance}` lists what is there")));
        }
    }
    page.end()?;
    Ok(ExitCode::SUCCESS)
}

fn print(page: &mut Page, row: &DecisionRow, logs: &[LogFiles]) -> Result<(), Failure> {
    let verdict = visible(row.record.verdict()).to_string();
    page.line(&page.styled(Style::Heading, &format!("{verdict} {}", row.id())))?;
    let direction = row.record.direction.as_deref().map(|direction| direction.replace('_', " "));
    let outcome = row.outcome.as_ref().map(|outcome| {
        let code = outcome.code.map(|code| format!(" {code}")).unwrap_or_default();
        format!("{}{code} after {}", outcome.status, duration(outcome.latency_us.saturating_mul(1_000)))
    });
    let log = logs.iter().find(|log| log.instance == row.instance);
    let file = log.map_or_else(|| "gone".to_owned(), |log| quoted(&log.path(1)));
    for (name, value) in [
        ("time", Some(timestamp(row.record.time_ns()).to_string())),
        ("client", row.record.client.clone()),
        ("server", row.record.server.clone()),
        ("direction", direction),
        ("method", row.record.method.clone()),
        ("tool", row.record.tool.clone()),
        ("operation", row.record.operation.clone()),
        ("rule", row.record.rule.clone()),
        ("rules", row.record.rules.clone()),
        ("decided by", row.record.actor.clone()),
        ("why", row.record.why.clone()),
        ("held for", row.record.held_us().map(|us| duration(us.saturating_mul(1_000)))),
        ("outcome", Some(outcome.unwrap_or_else(|| no_outcome(row).to_owned()))),
        ("message", row.message().map(|message| look_at(&message))),
        ("answer", row.outcome.as_ref().and_then(|outcome| outcome.answer).map(|answer| look_at(&answer))),
        ("log", Some(file)),
    ] {
        if let Some(value) = value {
            page.line(&format!("  {:<12}{}", name, visible(&value)))?;
        }
    }
    Ok(())
}

fn no_outcome(row: &DecisionRow) -> &'static str {
    match row.record.verdict() {
        "deny" => "it went no further",
        "observe" => "not this rule's to know; the rules after it decided",
        _ => "none is known",
    }
}

fn look_at(message: &MessageId) -> String {
    format!("mcp-proxy inspect {} -v --filter seq:{}", message.session, message.sequence)
}
