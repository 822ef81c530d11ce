//! `ps`: the running instances. Each is asked at the same time and for a moment only, so that one that
//! is stuck holds up nobody.

use std::time::Duration;

use clap::Args;
use mcp_control::api::{Mode, Snapshot};
use mcp_control::instances::Running;
use mcp_control::{Address, Client, Instances};
use mcp_store::StateDir;
use mcp_wire::visible::visible;
use serde_json::json;
use tokio::task::JoinSet;

use super::runtime;
use crate::failure::Failure;
use crate::report::{ColorChoice, Page, Style};

/// An instance that has not answered by now is shown as one that does not.
const PATIENCE: Duration = Duration::from_secs(1);
/// Characters that are shown of a name, and of a command line; `--json` has all of them.
const NAME_SHOWN: usize = 24;
const SERVER_SHOWN: usize = 60;

#[derive(Args)]
pub struct PsArgs {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

struct Row {
    running: Running,
    /// Absent if it did not answer.
    snapshot: Option<Snapshot>,
}

pub fn ps(args: &PsArgs, state: &StateDir, color: ColorChoice) -> Result<(), Failure> {
    let running = Instances::below(state.root()).list()?;
    let rows = runtime()?.block_on(ask_all(running));
    let mut page = Page::new(color);
    if args.json {
        rows.iter().try_for_each(|row| page.line(&crate::inspect::json::inert(&row.json().to_string())))?;
    } else if rows.is_empty() {
        page.line("no instance is running; start one with `mcp-proxy run -- CMD`, or a client whose config says so")?;
    } else {
        print(&mut page, &rows)?;
    }
    Ok(page.end()?)
}

async fn ask_all(running: Vec<Running>) -> Vec<Row> {
    let mut asked = JoinSet::new();
    for (at, running) in running.into_iter().enumerate() {
        asked.spawn(async move {
            let client = Client::new(Address::Socket(running.socket.clone()));
            let answer = tokio::time::timeout(PATIENCE, client.snapshot()).await;
            (at, Row { running, snapshot: answer.ok().and_then(Result::ok) })
        });
    }
    let mut rows = asked.join_all().await;
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn print(page: &mut Page, rows: &[Row]) -> Result<(), Failure> {
    let headings =
        ["ID", "NAME", "CLIENT", "REVISION", "TRANSPORT", "AGE", "MESSAGES", "HELD", "MODE", "CONTROLLED BY", "SERVER"];
    let cells: Vec<[String; 11]> = rows.iter().map(Row::cells).collect();
    let width = |column: usize| {
        let cells = cells.iter().map(|row| row[column].chars().count());
        cells.chain([headings[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let line = |row: &[String; 11]| {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    page.line(&page.styled(Style::Heading, &line(&headings.map(str::to_owned))))?;
    cells.iter().try_for_each(|row| page.line(&line(row)))?;
    Ok(())
}

impl Row {
    fn cells(&self) -> [String; 11] {
        let description = &self.running.description;
        let unknown = || "-".to_owned();
        let shown = |text: Option<&str>| text.map_or_else(unknown, |text| cut(text, NAME_SHOWN));
        let told = |tell: &dyn Fn(&Snapshot) -> String| self.snapshot.as_ref().map_or_else(unknown, tell);
        [
            description.short_id(),
            shown(description.name.as_deref()),
            shown(self.clients().as_deref()),
            shown(self.revision()),
            format!("{}→{}", visible(&description.client_transport), visible(&description.server_transport)),
            age(self.age_s()),
            told(&|snapshot| snapshot.instance.messages.to_string()),
            told(&|snapshot| snapshot.instance.held.to_string()),
            self.snapshot.as_ref().map_or_else(|| "does not answer".to_owned(), mode),
            shown(self.snapshot.as_ref().and_then(|snapshot| Some(snapshot.lease.as_ref()?.holder.as_str()))),
            cut(description.server(), SERVER_SHOWN),
        ]
    }

    /// The newest client, and how many others there are.
    fn clients(&self) -> Option<String> {
        let speakers = &self.snapshot.as_ref()?.instance.conversations;
        let newest = speakers.iter().rev().find_map(|speaker| speaker.client.clone())?;
        let others = speakers.iter().filter(|speaker| speaker.client.is_some()).count() - 1;
        Some(if others == 0 { newest } else { format!("{newest} +{others}") })
    }

    fn revision(&self) -> Option<&str> {
        self.snapshot.as_ref()?.instance.conversations.iter().rev().find_map(|speaker| speaker.revision.as_deref())
    }

    fn age_s(&self) -> u64 {
        let age = jiff::Timestamp::now().duration_since(self.running.description.started_at);
        u64::try_from(age.as_secs()).unwrap_or_default()
    }

    fn json(&self) -> serde_json::Value {
        let description = &self.running.description;
        let snapshot = self.snapshot.as_ref();
        let instance = snapshot.map(|snapshot| &snapshot.instance);
        json!({
            "id": description.id,
            "name": description.name,
            "answers": snapshot.is_some(),
            "pid": description.pid,
            "version": description.version,
            "started_at": description.started_at,
            "age_s": self.age_s(),
            "server_command": description.server_command,
            "server_url": description.server_url,
            "client_transport": description.client_transport,
            "server_transport": description.server_transport,
            "listen": instance.map(|instance| &instance.listen),
            "session": instance.and_then(|instance| instance.session.as_ref()),
            "conversations": instance.map(|instance| &instance.conversations),
            "messages": instance.map(|instance| instance.messages),
            "held": instance.map(|instance| instance.held),
            "mode": snapshot.map(|snapshot| snapshot.mode),
            "breakpoints": snapshot.map(|snapshot| &snapshot.breakpoints),
            "controlled_by": snapshot.and_then(|snapshot| Some(&snapshot.lease.as_ref()?.holder)),
            "faces": snapshot.map(|snapshot| snapshot.faces),
            "socket": self.running.socket,
        })
    }
}

fn mode(snapshot: &Snapshot) -> String {
    match (snapshot.mode, snapshot.breakpoints.len()) {
        (Mode::Intercept, _) => "holds all".into(),
        (Mode::Passthrough, 0) => "passes all".into(),
        (Mode::Passthrough, 1) => "1 breakpoint".into(),
        (Mode::Passthrough, count) => format!("{count} breakpoints"),
    }
}

fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

fn cut(text: &str, shown: usize) -> String {
    crate::inspect::lines::cut(text.as_bytes(), shown)
}
