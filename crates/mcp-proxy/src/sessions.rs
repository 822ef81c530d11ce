//! The recorded sessions: list, show, search, annotate, import, remove.

mod import;
mod indexing;
mod prune;
pub(crate) mod search;

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Subcommand;
use mcp_engine::pipeline::wall_ns;
use mcp_store::{Catalogue, Entry, Session, StateDir, segment};
use mcp_wire::visible::visible;
use serde_json::json;

use crate::cli::pair;
use crate::failure::{Failure, quoted};
use crate::inspect::print_header;
use crate::progress::Progress;
use crate::report::{self, ColorChoice, Page, Style, say};

#[derive(Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions, newest first
    List {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Show what is known of a session, without its messages
    Show {
        /// Its id, the beginning of it, or its name [default: `last`, the newest]
        session: Option<String>,
    },
    /// Find messages by their words, newest first
    Search(search::SearchArgs),
    /// Remove recordings for good
    Rm {
        /// Their ids, the beginnings of them, or their names
        #[arg(required = true)]
        sessions: Vec<String>,
    },
    /// Remove old recordings for good; nothing is removed by itself
    Prune(prune::PruneArgs),
    /// Take session files and recordings into the store
    Import(import::ImportArgs),
    /// Add notes to a session that has ended
    Note {
        /// Its id, the beginning of it, or its name
        session: String,
        /// What to note
        #[arg(required = true, value_name = "K=V", value_parser = pair)]
        notes: Vec<(String, String)>,
    },
    /// Make the index that `search` uses anew; only needed if it is in doubt
    Reindex,
}

pub(crate) use prune::age;

pub(crate) fn sessions(command: &SessionsCommand, state: &StateDir, color: ColorChoice) -> Result<ExitCode, Failure> {
    let reading = Progress::waiting("reading sessions");
    let catalogue = Catalogue::open(state)?;
    drop(reading);
    catalogue.findings.iter().for_each(|finding| say(&format!("mcp-proxy: {finding}")));
    match command {
        SessionsCommand::List { json: true } => list_json(&catalogue)?,
        SessionsCommand::List { json: false } => list(&catalogue, color)?,
        SessionsCommand::Show { session } => {
            let (entry, note) = catalogue.find_to_read(session.as_deref())?;
            note.iter().for_each(|note| say(&format!("mcp-proxy: {note}")));
            show(&entry, color)?;
        }
        SessionsCommand::Search(args) => return search::search(args, &catalogue, state, color),
        SessionsCommand::Rm { sessions } => remove(&catalogue, sessions, state)?,
        SessionsCommand::Prune(args) => prune::prune(args, &catalogue, state, wall_ns(), color)?,
        SessionsCommand::Import(args) => import::import(args, &catalogue, state)?,
        SessionsCommand::Note { session, notes } => {
            let entry = catalogue.find(session)?;
            let notes: BTreeMap<String, String> = notes.iter().cloned().collect();
            segment::append_note(&entry.path, wall_ns(), &notes)?;
        }
        SessionsCommand::Reindex => indexing::reindex(&catalogue.entries()?, state)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(catalogue: &Catalogue, color: ColorChoice) -> Result<(), Failure> {
    let entries = catalogue.entries()?;
    let mut page = Page::new(color);
    if entries.is_empty() {
        page.line("no sessions are recorded yet; `mcp-proxy run -- CMD` records one")?;
        return Ok(page.end()?);
    }
    let heading =
        format!("{:<8}  {:<19}  {:<11}  {:>8}  {:>9}  SERVER", "ID", "STARTED (UTC)", "STATE", "MESSAGES", "SIZE");
    page.line(&page.styled(Style::Heading, &heading))?;
    let (used, width) = (heading.len() - "SERVER".len(), report::terminal_width());
    for entry in entries {
        let started = entry.header.started_at().strftime("%Y-%m-%d %H:%M:%S").to_string();
        page.line(&format!(
            "{:<8}  {started:<19}  {:<11}  {:>8}  {:>9}  {}",
            &entry.header.id.to_string()[..8],
            state_of(&entry),
            entry.messages,
            report::size(entry.bytes),
            report::rest_of_line(&visible(&server_of(&entry)).to_string(), used, width),
        ))?;
    }
    Ok(page.end()?)
}

fn list_json(catalogue: &Catalogue) -> Result<(), Failure> {
    let mut page = Page::new(ColorChoice::Never);
    for entry in catalogue.entries()? {
        let object = json!({
            "id": entry.header.id,
            "name": entry.header.name,
            "started_at": entry.header.started_at(),
            "ended_at": entry.ended_ns.map(mcp_store::recorded::timestamp),
            "state": state_of(&entry),
            "transport": entry.header.transport,
            "server_command": entry.header.server_command,
            "server_url": entry.header.server_url,
            "messages": entry.messages,
            "bytes": entry.bytes,
            "metadata": entry.notes,
            "warnings": entry.warnings,
            "path": entry.path,
        });
        page.line(&object.to_string())?;
    }
    Ok(page.end()?)
}

fn state_of(entry: &Entry) -> &'static str {
    match (entry.live, entry.ended_ns, entry.interrupted) {
        (true, ..) => "running",
        (false, Some(_), false) => "ended",
        _ => "interrupted",
    }
}

fn server_of(entry: &Entry) -> String {
    let header = &entry.header;
    let server = header.server_command.as_deref().or(header.server_url.as_deref()).unwrap_or("unknown");
    match &header.name {
        Some(name) => format!("{name}: {server}"),
        None => server.to_owned(),
    }
}

fn show(entry: &Entry, color: ColorChoice) -> Result<(), Failure> {
    let session = Session::open_segment(&entry.path)?;
    let mut page = Page::new(color);
    print_header(&mut page, session.summary())?;
    let size = report::size(entry.bytes);
    page.line(&format!(
        "{} {size} in {}",
        page.styled(Style::Heading, &format!("{:<12}", "recording")),
        quoted(&entry.path)
    ))?;
    let words = session.summary().end.as_ref().map(|end| end.last_words.as_str()).unwrap_or_default();
    if !words.is_empty() {
        page.line(&page.styled(Style::Heading, "last words"))?;
        for line in words.lines() {
            page.line(&format!("  {}", visible(line)))?;
        }
    }
    Ok(page.end()?)
}

/// All are found before any is removed, so that a slip removes nothing.
fn remove(catalogue: &Catalogue, wanted: &[String], state: &StateDir) -> Result<(), Failure> {
    let entries = wanted.iter().map(|wanted| catalogue.find(wanted)).collect::<Result<Vec<_>, _>>()?;
    let mut removed = Vec::new();
    let outcome = entries.iter().try_for_each(|entry| {
        catalogue.remove(entry)?;
        removed.push(entry.header.id);
        say(&format!("removed {}", entry.header.id));
        Ok(())
    });
    indexing::forget(&removed, state);
    outcome
}
