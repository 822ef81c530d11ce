//! The recordings as the terminal is given them: sessions in the store, session files, the audit log. What
//! is said of them is what the commands say; here it only gets another form. Nothing is written to the
//! terminal, which belongs to whoever draws there.

mod comparison;
mod recording;
mod rows;

use std::sync::Arc;

use clap::ValueEnum;
use mcp_filter::Filter;
use mcp_store::redact::Redactor;
use mcp_store::{Catalogue, Session, StateDir};
use mcp_tui::library::{
    Comparison, Decision, Export, Exported, Hit, Library, Recording, SessionRef, SessionRow, Trouble, Work,
};
use mcp_wire::visible::{visible, visible_lines};

use crate::audit;
use crate::export::{self, FormatArg, Output, Part};
use crate::failure::Failure;
use crate::progress::{Interrupted, Waiter};
use crate::sessions::search;

/// What is recorded below `state`.
pub fn library(state: &StateDir) -> Arc<dyn Library> {
    Arc::new(Shelf { state: state.clone() })
}

struct Shelf {
    state: StateDir,
}

impl Library for Shelf {
    fn sessions(&self) -> Result<Vec<SessionRow>, Trouble> {
        let entries = Catalogue::open(&self.state).and_then(|catalogue| catalogue.entries());
        Ok(entries.map_err(trouble)?.iter().map(rows::of_entry).collect())
    }

    fn search(&self, words: &str, limit: usize) -> Result<Vec<Hit>, Trouble> {
        let found = search::by_words(words, limit, &self.state, &nobody()).map_err(trouble)?;
        Ok(found.iter().map(|(hit, pieces)| rows::of_hit(hit, pieces)).collect())
    }

    fn open(&self, session: &SessionRef, work: &Work) -> Result<Arc<dyn Recording>, Trouble> {
        let opened = recording::open(session, &self.state, work).map_err(trouble)?;
        Ok(Arc::new(opened))
    }

    fn export(&self, export: &Export, work: &Work) -> Result<Exported, Trouble> {
        self.write(export, &Waiter::Face(work.clone())).map_err(trouble)
    }

    fn compare(&self, left: &SessionRef, right: &SessionRef, work: &Work) -> Result<Comparison, Trouble> {
        let waiter = Waiter::Face(work.clone());
        let compare = || comparison::compare(&self.session(left, &waiter)?, &self.session(right, &waiter)?, &waiter);
        compare().map_err(trouble)
    }

    fn audit(&self, filter: Option<&str>, limit: usize) -> Result<Vec<Decision>, Trouble> {
        let found = audit::decisions(filter, limit, &self.state, &nobody()).map_err(trouble)?;
        Ok(found.iter().map(rows::of_decision).collect())
    }
}

impl Shelf {
    /// A session to be read from its beginning.
    fn session(&self, wanted: &SessionRef, waiter: &Waiter) -> Result<Session, Failure> {
        let session = match wanted {
            SessionRef::Stored(id) => Session::open_segment(&Catalogue::open(&self.state)?.find(id)?.path)?,
            SessionRef::File(path) => Session::open(path, Some(&self.state))?,
        };
        if waiter.has_left() { Err(Interrupted.into()) } else { Ok(session) }
    }

    fn write(&self, wanted: &Export, waiter: &Waiter) -> Result<Exported, Failure> {
        let Ok(format) = FormatArg::from_str(&wanted.format, false) else {
            return Err(Failure::usage(format!("there is no format `{}`", visible(&wanted.format))));
        };
        let part = Part { filter: filter(wanted.filter.as_deref())?, ..Part::default() };
        let output = Output::file(&wanted.file, wanted.overwrite)?;
        let format = format.into();
        let masks = wanted.redact && !export::is_evidence(format, &wanted.file);
        let redactor = if masks { Redactor::default() } else { Redactor::off() };
        let session = self.session(&wanted.session, waiter)?;
        let outcome = export::write(&session, format, &part, redactor, output, waiter)?;
        match outcome.is_partial {
            true => Err(export::interrupted(&wanted.file, &outcome, true)),
            false => Ok(Exported { file: wanted.file.clone(), messages: outcome.messages, masked: outcome.masked }),
        }
    }
}

/// Work whose progress nobody asks for, and that nobody can stop.
fn nobody() -> Waiter {
    Waiter::Face(Work::default())
}

/// The filter of a list. An empty one asks for everything but health checks and discovery.
fn list_filter(expression: Option<&str>) -> Result<Option<Filter>, Failure> {
    Ok(Some(Filter::of_list(expression)?))
}

/// An empty one asks for everything.
fn filter(expression: Option<&str>) -> Result<Option<Filter>, Failure> {
    let expression = expression.filter(|expression| !expression.trim().is_empty());
    Ok(expression.map(Filter::parse).transpose()?)
}

/// What happened, without the advice, which is about commands.
fn trouble(failure: impl Into<Failure>) -> Trouble {
    visible_lines(failure.into().what()).to_string()
}
