//! `sessions search`: messages by their words, over all recordings.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::process::ExitCode;

use clap::Args;
use mcp_filter::Filter;
use mcp_store::index::{Hit, MessageReader, Piece, Query, Snippets, pick, text_of};
use mcp_store::recorded::{message_id, timestamp};
use mcp_store::{Catalogue, Entry, Index, StateDir, StoreError, Story, Told};
use mcp_wire::visible::visible;
use serde_json::{Value, json};
use uuid::Uuid;

use super::indexing::{self, Brought};
use crate::failure::{Failure, exit};
use crate::progress::{Unit, Waiter};
use crate::report::{ColorChoice, Page, Style, say};

/// Hits in one list; a script that needs more reads the recording.
const LIMIT_MAX: u64 = 1_000_000;

#[derive(Args)]
pub(crate) struct SearchArgs {
    /// Words that must all be there; "words in a row", and beginnings of words with *
    #[arg(required_unless_present = "filter", value_name = "QUERY", allow_negative_numbers = true)]
    query: Vec<String>,
    /// Find only messages that match, such as `tool:write_* status:err`; see `mcp-proxy help filter`
    #[arg(long, value_name = "EXPR")]
    filter: Option<String>,
    /// Search only this session: its id, the beginning of it, or its name
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Show no more than this many messages
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=LIMIT_MAX))]
    limit: u64,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// What is searched for.
struct Search<'a> {
    query: Option<Query>,
    filter: Option<Filter>,
    /// Whether health checks and discovery are found.
    takes_own: bool,
    /// The sessions that are searched, newest first; all there are, or one.
    entries: Vec<&'a Entry>,
    session: Option<Uuid>,
    limit: usize,
    waiter: &'a Waiter,
}

pub(crate) fn search(
    args: &SearchArgs,
    catalogue: &Catalogue,
    state: &StateDir,
    color: ColorChoice,
) -> Result<ExitCode, Failure> {
    let query = if args.query.is_empty() { None } else { Some(query(&args.query.join(" "))?) };
    let filter = args.filter.as_deref().map(Filter::parse).transpose()?;
    let session = args.session.as_deref().map(|wanted| catalogue.find(wanted)).transpose()?;
    let session = session.map(|entry| entry.header.id);
    let all = catalogue.entries()?;
    let entries = all.iter().filter(|entry| session.is_none_or(|id| id == entry.header.id)).collect();
    let takes_own = filter.as_ref().is_some_and(Filter::has_origin);
    let limit = args.limit as usize;
    let search = Search { query, filter, takes_own, entries, session, limit, waiter: &Waiter::Command };
    let hits = search.run(state, &all)?;
    show(&hits, args, &search, &all, color)
}

/// The newest messages with these words, the newest first, each with the pieces of it around them.
pub(crate) fn by_words(
    typed: &str,
    limit: usize,
    state: &StateDir,
    waiter: &Waiter,
) -> Result<Vec<(Hit, Vec<Piece>)>, Failure> {
    let query = Some(query(typed)?);
    let all = Catalogue::open(state)?.entries()?;
    let limit = limit.min(LIMIT_MAX as usize);
    let entries = all.iter().collect();
    let search = Search { query, filter: None, takes_own: false, entries, session: None, limit, waiter };
    let hits = search.run(state, &all)?;
    let mut found = Vec::new();
    search.each_piece(&hits, &all, |hit, pieces| {
        found.push((hit.clone(), pieces));
        Ok(())
    })?;
    Ok(found)
}

fn query(typed: &str) -> Result<Query, Failure> {
    let nothing = || {
        Failure::usage(format!("there is no letter and no digit in `{}` to search for", visible(typed)))
            .hint("give words, \"words in a row\", or the beginning of a word with a * after it")
    };
    Query::parse(typed).ok_or_else(nothing)
}

impl Search<'_> {
    /// Up to one more than will be shown.
    fn run(&self, state: &StateDir, all: &[Entry]) -> Result<Vec<Hit>, Failure> {
        if self.query.is_none() {
            return Ok(self.by_filter_alone()?);
        }
        let found = indexing::with_index(state, self.waiter, |index| self.by_words(index, all))?;
        found.map_err(indexing::interrupted)
    }

    /// Gives out what is shown of each message.
    fn each_piece(
        &self,
        hits: &[Hit],
        entries: &[Entry],
        mut take: impl FnMut(&Hit, Vec<Piece>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let snippets = self.query.as_ref().map(Snippets::new).transpose()?;
        let mut reader = MessageReader::new(entries);
        for hit in hits.iter().take(self.limit) {
            let text = reader.read(hit).map(|message| text_of(&message)).unwrap_or_default();
            let pieces = match &snippets {
                Some(snippets) => snippets.of(&text)?,
                None => beginning(&text),
            };
            take(hit, pieces)?;
        }
        Ok(())
    }

    /// Up to one more than will be shown; or, if it was interrupted, how many messages were indexed.
    fn by_words(&self, index: &mut Index, all: &[Entry]) -> Result<Result<Vec<Hit>, u64>, StoreError> {
        match indexing::bring_up_to_date(index, all, self.waiter) {
            Ok(Brought::UpToDate(_)) => {}
            Ok(Brought::Interrupted(messages)) => return Ok(Err(messages)),
            Err(error) if error.is_busy_cache() => {
                self.waiter.say("mcp-proxy: another command is indexing; the newest messages are not searched yet");
            }
            Err(error) => return Err(error),
        }
        let query = self.query.as_ref().expect("there are words to search for");
        let mut hits = Vec::new();
        // Of the session that is being searched, if a filter has to look at all its messages.
        let mut of_session: Vec<Hit> = Vec::new();
        let needs_story = self.filter.as_ref().is_some_and(|filter| filter.needs().story || filter.needs().headers);
        let mut reader = MessageReader::new(all);
        index.search(query, self.session.as_ref(), |hit| {
            if hit.is_own && !self.takes_own {
                return Ok(ControlFlow::Continue(()));
            }
            if needs_story {
                if of_session.first().is_some_and(|other| other.session != hit.session) {
                    self.pick(&std::mem::take(&mut of_session), &mut hits)?;
                }
                of_session.push(hit);
            } else if self.matches(&hit, &mut reader) {
                hits.push(hit);
            }
            Ok::<_, StoreError>(self.enough(&hits))
        })?;
        if hits.len() <= self.limit {
            self.pick(&of_session, &mut hits)?;
        }
        Ok(Ok(hits))
    }

    fn enough(&self, hits: &[Hit]) -> ControlFlow<()> {
        let is_enough = hits.len() > self.limit || self.waiter.has_left();
        if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Whether a message matches that is judged by itself.
    fn matches(&self, hit: &Hit, reader: &mut MessageReader) -> bool {
        let Some(filter) = &self.filter else { return true };
        let (Some(entry), Some(message)) = (self.entry(&hit.session), reader.read(hit)) else { return false };
        filter.matches(&Story::of(&entry.header).tell(message))
    }

    /// Adds those of one session's hits that match, where that depends on the messages before them.
    fn pick(&self, of_session: &[Hit], hits: &mut Vec<Hit>) -> Result<(), StoreError> {
        let Some(entry) = of_session.first().and_then(|hit| self.entry(&hit.session)) else { return Ok(()) };
        let places: HashSet<u64> = of_session.iter().map(|hit| hit.place).collect();
        hits.extend(pick(entry, Some(&places), self.limit + 1, |told| self.judge(told))?);
        Ok(())
    }

    fn by_filter_alone(&self) -> Result<Vec<Hit>, StoreError> {
        let total = self.entries.iter().map(|entry| entry.messages).sum();
        let progress = self.waiter.begin("searching", Unit::Messages, Some(total));
        let mut hits = Vec::new();
        for entry in &self.entries {
            hits.extend(pick(entry, None, self.limit + 1, |told| {
                let _ = progress.advance(1);
                self.judge(told)
            })?);
            if self.enough(&hits).is_break() {
                break;
            }
        }
        Ok(hits)
    }

    fn judge(&self, told: &Told) -> ControlFlow<(), bool> {
        if self.waiter.has_left() {
            return ControlFlow::Break(());
        }
        let is_listed = self.takes_own || !told.is_own();
        ControlFlow::Continue(is_listed && self.filter.as_ref().is_none_or(|filter| filter.matches(told)))
    }

    fn entry(&self, session: &Uuid) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.header.id == *session).copied()
    }
}

fn show(
    hits: &[Hit],
    args: &SearchArgs,
    search: &Search,
    entries: &[Entry],
    color: ColorChoice,
) -> Result<ExitCode, Failure> {
    let mut page = Page::new(color);
    search.each_piece(hits, entries, |hit, pieces| {
        let line = if args.json { as_json(hit, &pieces) } else { as_line(&page, hit, &pieces) };
        Ok(page.line(&line)?)
    })?;
    page.end()?;
    if search.waiter.has_left() {
        return Err(Failure::new(exit::INTERRUPTED, "interrupted; there may be more than was shown"));
    }
    if hits.is_empty() {
        say("nothing found");
        return Ok(ExitCode::from(exit::NEGATIVE));
    }
    if hits.len() as u64 > args.limit {
        say(&format!("there is more than the newest {}; --limit N shows it", args.limit));
    }
    Ok(ExitCode::SUCCESS)
}

/// `e8fbca27 #003 → tools/call [read_file] … path /etc/«passwd»`
fn as_line(page: &Page, hit: &Hit, pieces: &[Piece]) -> String {
    let mut parts = vec![
        hit.session.to_string()[..8].to_owned(),
        page.styled(Style::Faint, &format!("#{:03}", hit.sequence)),
        hit.direction.arrow().to_string(),
        what(hit),
    ];
    parts.extend(hit.status.as_ref().filter(|status| *status != "ok").map(|status| page.styled(Style::Bad, status)));
    format!("{}  {}", parts.join(" "), snippet(pieces, |found| page.styled(Style::Heading, &found)))
}

/// `tools/call [read_file]`
pub(crate) fn what(hit: &Hit) -> String {
    let method = hit.method.as_deref().map_or_else(|| hit.kind.clone(), |method| visible(method).to_string());
    match &hit.tool {
        Some(tool) => format!("{method} [{}]", visible(tool)),
        None => method,
    }
}

/// The pieces on one line, with « and » around what was found.
pub(crate) fn snippet(pieces: &[Piece], style: impl Fn(String) -> String) -> String {
    let shown = pieces.iter().map(|piece| {
        let text = visible(&on_one_line(&piece.text)).to_string();
        if piece.is_hit { style(format!("«{text}»")) } else { text }
    });
    shown.collect::<String>().trim().to_owned()
}

/// An id as it was: 1 and "1" are two.
fn id_as_json(id: &str) -> Value {
    serde_json::from_str(id).unwrap_or_else(|_| id.into())
}

fn as_json(hit: &Hit, pieces: &[Piece]) -> String {
    let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
    let found: Vec<&str> = pieces.iter().filter(|piece| piece.is_hit).map(|piece| piece.text.as_str()).collect();
    json!({
        "session": hit.session,
        "id": message_id(&hit.session, hit.sequence),
        "sequence": hit.sequence,
        "timestamp": timestamp(hit.time_ns),
        "direction": hit.direction,
        "kind": hit.kind,
        "method": hit.method,
        "tool": hit.tool,
        "jsonrpc_id": hit.jsonrpc_id.as_deref().map(id_as_json),
        "status": hit.status,
        "size": hit.size,
        "snippet": text,
        "found": found,
    })
    .to_string()
}

/// Shown of a message that was found by other things than its words.
fn beginning(text: &str) -> Vec<Piece> {
    /// Characters shown of a message that another filter than its words found.
    const SHOWN: usize = 120;
    let text = on_one_line(text);
    let shown = match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    vec![Piece { text: shown, is_hit: false }]
}

/// Blanks and line breaks say little in a list of hits.
fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_whitespace() {
            line.push(c);
        } else if !line.ends_with(' ') {
            line.push(' ');
        }
    }
    line
}
