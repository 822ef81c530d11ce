//! The session file, as `--session-file` writes it.

use std::io::{self, Seek, SeekFrom, Write};

use super::{Ending, Exporter};
use crate::exchange::SessionEntry;
use crate::session::Summary;
use crate::session_file::{
    ExchangeList, Metadata, Statuses, write_closing, write_end_of_messages, write_listed, write_opening,
};
use crate::story::Told;

#[derive(Default)]
pub(super) struct Json {
    notes: std::collections::BTreeMap<String, String>,
    json_notes: std::collections::BTreeSet<String>,
    statuses: Statuses,
    has_messages: bool,
    /// Exchanges stand after the messages in the document. Until then they are in a file without a
    /// name: there may be as many of them as messages.
    exchanges: Option<(ExchangeList, std::fs::File)>,
}

impl Exporter for Json {
    fn begin(&mut self, out: &mut dyn Write, session: &Summary) -> io::Result<()> {
        self.notes.clone_from(&session.notes);
        self.json_notes.clone_from(&session.header.json_notes);
        if session.has_exchanges {
            self.exchanges = Some((ExchangeList::default(), tempfile::tempfile()?));
        }
        write_opening(out, &session.header, session.ended_ns)
    }

    fn exchange(&mut self, _out: &mut dyn Write, entry: &SessionEntry) -> io::Result<()> {
        self.statuses.hear(entry);
        match &mut self.exchanges {
            Some((list, file)) => list.hear(file, entry.clone()),
            None => Ok(()),
        }
    }

    fn message(&mut self, out: &mut dyn Write, message: &Told) -> io::Result<()> {
        let is_first = !std::mem::replace(&mut self.has_messages, true);
        write_listed(out, &message.recorded, self.statuses.of(&message.recorded), is_first)
    }

    fn end(&mut self, out: &mut dyn Write, _ending: &Ending) -> io::Result<()> {
        write_end_of_messages(out, !self.has_messages)?;
        if let Some((list, mut file)) = self.exchanges.take() {
            list.end(&mut file)?;
            file.seek(SeekFrom::Start(0))?;
            write!(out, "  \"exchanges\": [")?;
            io::copy(&mut file, out)?;
        }
        write_closing(out, &Metadata { notes: &self.notes, json: &self.json_notes })
    }
}
