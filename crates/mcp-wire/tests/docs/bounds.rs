//! `docs/bounds.md`, written from the doc comments of the constants.

use crate::{ROOT, Source, sources};

/// A bound is a constant of one of these types that is not among [`NO_BOUNDS`].
const TYPES: &[&str] = &["usize", "u32", "u64", "i32", "i64", "c_int", "Duration", "Timespec", "Room"];

/// Layouts, formats, codes and units, each as `FILE`, `DIRECTORY/` or `FILE NAME`.
const NO_BOUNDS: &[&str] = &[
    "mcp-client/src/questions.rs METHOD_NOT_FOUND",
    "mcp-control/src/instances/alive.rs STARTED_AFTER_STATE",
    "mcp-engine/src/backlog.rs HEAD_BYTES",
    "mcp-engine/src/bus/pace.rs MESSAGE",
    "mcp-engine/src/pipeline/unknown.rs DIGITS",
    "mcp-engine/src/policy/operation/reference.rs",
    "mcp-filter/src/reference.rs",
    "mcp-proxy/src/audit/table.rs",
    "mcp-proxy/src/client/questions.rs DECLINED",
    "mcp-proxy/src/face/ps/table.rs",
    "mcp-proxy/src/gateway/reference.rs",
    "mcp-proxy/src/run.rs SIGKILL",
    "mcp-proxy/src/run.rs SIGTERM",
    "mcp-store/src/audit/ledger.rs SEQ_BITS",
    "mcp-store/src/audit/line.rs",
    "mcp-store/src/index.rs PLACE_BITS",
    "mcp-store/src/segment.rs HEAD_LEN",
    "mcp-store/src/segment.rs LINK_LEN",
    "mcp-store/src/segment/outcome.rs FIXED_LEN",
    "mcp-store/src/segment/verdict.rs FIXED_LEN",
    "mcp-store/src/session_file/exchanges.rs",
    "mcp-transport/src/child/guard.rs LEN",
    "mcp-tui/src/json.rs NONE",
    "mcp-tui/src/mouse.rs",
    "mcp-tui/src/text/units.rs",
    "mcp-tui/src/view/",
    "mcp-wire/src/reply.rs",
    "mcp-wire/src/strict/print.rs",
];

const OPENING: &str = "# Bounds

Every queue, table, buffer and wait has a bound, and the bound is a named constant with a reason. This page is written
from the doc comments of the constants: `UPDATE_DOCS=1 cargo test -p mcp-wire --test docs` writes it. Do not edit it.

A bound is a constant of a type for sizes, counts or times (`usize`, `u32`, `u64`, `Duration`), except layouts, formats
and units. Beyond these:

- A head of HTTP has at most 100 headers, from clients and from servers. That is hyper's own limit; any other setting
  copies the whole table with every request.
- A 503 of the listener tells its client to retry after 5 s.
- A server may take any time to answer, unless a gateway's configuration says otherwise.
- A queue of the bus is as deep as its subscriber asks for.
- A conversation that is replayed or mocked is read into memory whole, a segment record by record, and a large session
  file message by message.
";

struct Bound {
    file: String,
    name: String,
    value: String,
    reason: String,
}

/// The bounds of one file. A constant right below another, without a comment of its own, shares the other's reason.
fn bounds_of(source: &Source) -> Vec<Bound> {
    let mut found = Vec::new();
    let mut reason = String::new();
    let mut is_shared = false;
    let mut lines = source.text.lines().map(str::trim).take_while(|line| *line != "mod tests {");
    while let Some(line) = lines.next() {
        if let Some(comment) = line.strip_prefix("///") {
            if std::mem::take(&mut is_shared) {
                reason.clear();
            }
            reason = format!("{reason} {}", comment.trim()).trim().to_owned();
        } else if let Some((name, kind, value)) = constant(line) {
            let mut value = value.trim().to_owned();
            while !value.ends_with(';') {
                value = format!("{value} {}", lines.next().unwrap()).trim().to_owned();
            }
            if TYPES.contains(&kind) && !is_no_bound(&source.path, name) {
                let value = value.trim_end_matches(';').to_owned();
                found.push(Bound { file: source.path.clone(), name: name.to_owned(), value, reason: reason.clone() });
            }
            is_shared = true;
        } else if !line.starts_with("#[") {
            reason.clear();
        }
    }
    found
}

fn is_no_bound(path: &str, name: &str) -> bool {
    NO_BOUNDS.iter().any(|other| match other.split_once(' ') {
        Some((file, constant)) => file == path && constant == name,
        None => *other == path || (other.ends_with('/') && path.starts_with(other)),
    })
}

/// Name, type and the beginning of the value, if the line begins a constant.
fn constant(line: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = line.split_once("const ")?;
    let (name, rest) = rest.split_once(": ")?;
    let (kind, value) = rest.split_once('=')?;
    let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let is_item = before.is_empty() || (before.starts_with("pub") && !before.contains("fn "));
    (is_name && is_item).then_some((name, kind.trim().rsplit("::").next().unwrap(), value))
}

fn page(bounds: &[Bound]) -> String {
    let mut page = OPENING.to_owned();
    let mut last = "";
    for Bound { file, name, value, reason } in bounds {
        let (group, inside) = file.split_once("/src/").unwrap();
        if group != last {
            page += &format!("\n## {group}\n\n| constant | value | file | reason |\n|---|---|---|---|\n");
            last = group;
        }
        let value = value.trim_start_matches("std::time::");
        let reason = reason.replace("[`", "`").replace("`]", "`").replace('|', "\\|");
        page += &format!("| `{name}` | `{value}` | `{inside}` | {reason} |\n");
    }
    page
}

/// `UPDATE_DOCS=1 cargo test -p mcp-wire --test docs` writes the page.
#[test]
fn bounds_are_current() {
    let sources = sources();
    let bounds: Vec<Bound> = sources.iter().flat_map(bounds_of).collect();
    let without: Vec<String> = bounds
        .iter()
        .filter(|bound| bound.reason.is_empty())
        .map(|bound| format!("crates/{}: {}", bound.file, bound.name))
        .collect();
    assert!(without.is_empty(), "bounds without a doc comment that gives the reason:\n{}", without.join("\n"));
    let path = format!("{ROOT}/docs/bounds.md");
    let page = page(&bounds);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/bounds.md is stale: `UPDATE_DOCS=1 cargo test -p mcp-wire --test docs` writes it");
}
