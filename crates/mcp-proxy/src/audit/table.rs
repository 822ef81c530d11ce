//! Decisions as a table for people, each on a line, with the outcome at its end.

use mcp_store::audit::ledger::{DecisionRow, Entry, OutcomeRow};
use mcp_store::recorded::timestamp;
use mcp_wire::visible::visible;
use uuid::Uuid;

use crate::report::{Page, Style, duration};

/// What a column is called, how wide it is where nothing is known of what will be in it, and at most.
const COLUMNS: [(&str, usize, usize); 11] = [
    ("ID", 12, 20),
    ("TIME (UTC)", 23, 23),
    ("CLIENT", 14, 24),
    ("SERVER", 10, 20),
    ("WHAT", 28, 48),
    ("OP", 7, 7),
    ("VERDICT", 7, 7),
    ("RULE", 20, 32),
    ("BY", 7, 20),
    ("OUTCOME", 10, 24),
    ("TOOK", 0, 0),
];
const VERDICT: usize = 6;
/// Who lets pass what is done with a gateway's own tool.
const GATEWAY: &str = "gateway";

pub(crate) struct Table {
    widths: [usize; COLUMNS.len()],
}

impl Table {
    /// As wide as these need it.
    pub(crate) fn fitting(entries: &[Entry]) -> Self {
        let mut widths = COLUMNS.map(|(name, ..)| name.len());
        for entry in entries {
            if let Entry::Decision(row) = entry {
                let cells = cells(row);
                widths.iter_mut().zip(&cells).for_each(|(width, cell)| *width = (*width).max(cell.chars().count()));
            }
        }
        Self { widths }
    }

    /// For what is yet to come.
    pub(crate) fn open() -> Self {
        Self { widths: COLUMNS.map(|(_, width, _)| width) }
    }

    pub(crate) fn print(&self, page: &mut Page, entries: &[Entry]) -> std::io::Result<()> {
        self.print_heading(page)?;
        entries.iter().try_for_each(|entry| self.print_entry(page, entry))
    }

    pub(crate) fn print_heading(&self, page: &mut Page) -> std::io::Result<()> {
        let heading = self.joined(&COLUMNS.map(|(name, ..)| name.to_owned()), |_, cell| cell);
        page.line(&page.styled(Style::Heading, &heading))
    }

    pub(crate) fn print_entry(&self, page: &mut Page, entry: &Entry) -> std::io::Result<()> {
        let line = match entry {
            Entry::Decision(row) => self.joined(&cells(row), |column, cell| {
                if column == VERDICT { page.styled(verdict_style(row.record.verdict()), &cell) } else { cell }
            }),
            Entry::Note(note) => {
                let (id, time) = (short_id(&note.instance, note.seq), time(note.time_ns));
                let text = page.styled(Style::Faint, &format!("note: {}", visible(&note.text)));
                format!("{id:<width$}  {time:<23}  {text}", width = self.widths[0])
            }
        };
        page.line(&line)
    }

    /// A call whose decision was shown before has come back.
    pub(crate) fn print_outcome(&self, page: &mut Page, row: &DecisionRow, time_ns: u64) -> std::io::Result<()> {
        let Some(outcome) = &row.outcome else { return Ok(()) };
        let (id, time) = (short_id(&row.instance, row.record.seq), time(time_ns));
        let style = if outcome.status == "ok" { Style::Good } else { Style::Bad };
        let how = page.styled(style, &words(outcome));
        let took = duration(outcome.latency_us.saturating_mul(1_000));
        page.line(&format!(
            "{id:<width$}  {time:<23}  {} returned: {how} after {took}",
            what(row),
            width = self.widths[0]
        ))
    }

    fn joined(&self, cells: &[String; COLUMNS.len()], style: impl Fn(usize, String) -> String) -> String {
        let padded = cells.iter().zip(&self.widths).enumerate().map(|(column, (cell, width))| {
            let blanks = " ".repeat(width.saturating_sub(cell.chars().count()));
            style(column, cell.clone()) + &blanks
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}

fn cells(row: &DecisionRow) -> [String; COLUMNS.len()] {
    let outcome = row.outcome.as_ref();
    let cells = [
        short_id(&row.instance, row.record.seq),
        time(row.record.time_ns()),
        shown(row.record.client.as_deref()),
        shown(row.record.server.as_deref()),
        what(row),
        shown(row.record.operation.as_deref()),
        shown(Some(row.record.verdict())),
        shown(row.record.rule.as_deref()),
        shown(row.record.actor.as_deref()),
        outcome.map(words).unwrap_or_default(),
        outcome.map(|outcome| duration(outcome.latency_us.saturating_mul(1_000))).unwrap_or_default(),
    ];
    let mut columns = COLUMNS.iter();
    cells.map(|cell| match columns.next() {
        Some((_, _, most)) if *most > 0 => cut(cell, *most),
        _ => cell,
    })
}

/// The tool of a call; of anything else, the method and what it is about.
fn what(row: &DecisionRow) -> String {
    match (row.record.method.as_deref(), tool(row)) {
        (Some("tools/call"), Some(tool)) => tool,
        (Some(method), Some(tool)) => format!("{} {tool}", visible(method)),
        (method, tool) => tool.unwrap_or_else(|| shown(method)),
    }
}

/// What it is about; of a gateway's own tool, which only leads to others, also what was done with it:
/// `proxy: list prompt`.
pub(crate) fn tool(row: &DecisionRow) -> Option<String> {
    let tool = visible(row.record.tool.as_deref()?);
    Some(match row.record.why.as_deref().filter(|_| row.record.actor.as_deref() == Some(GATEWAY)) {
        Some(does) => format!("{tool}: {}", visible(does)),
        None => tool.to_string(),
    })
}

/// `ok`, `error -32602`
pub(crate) fn words(outcome: &OutcomeRow) -> String {
    let status = visible(&outcome.status);
    match outcome.code {
        Some(code) => format!("{status} {code}"),
        None => status.to_string(),
    }
}

fn verdict_style(verdict: &str) -> Style {
    match verdict {
        "allow" => Style::Good,
        "deny" => Style::Bad,
        _ => Style::Faint,
    }
}

/// As much of an id as tells it apart from others, and as `audit show` takes it.
pub(crate) fn short_id(instance: &Uuid, seq: u64) -> String {
    format!("{}/{seq}", &instance.to_string()[..8])
}

pub(crate) fn time(time_ns: u64) -> String {
    timestamp(time_ns).strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

fn shown(text: Option<&str>) -> String {
    text.map(|text| visible(text).to_string()).unwrap_or_default()
}

fn cut(cell: String, most: usize) -> String {
    match cell.char_indices().nth(most) {
        Some(_) => cell.chars().take(most - 1).chain(['…']).collect(),
        None => cell,
    }
}
