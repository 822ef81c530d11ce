//! A line an object: the session without its messages first, then each message with the members that
//! it has in a session file. For `grep`, `jq` and whatever reads line by line.

use std::io::{self, Write};

use mcp_wire::inert::inert;

use super::{Ending, Exporter};
use crate::exchange::SessionEntry;
use crate::recorded::timestamp;
use crate::session::Summary;
use crate::session_file::{Layout, Object, Statuses, write_message};
use crate::story::Told;

#[derive(Default)]
pub(super) struct Ndjson {
    statuses: Statuses,
    line: Vec<u8>,
}

impl Exporter for Ndjson {
    fn begin(&mut self, out: &mut dyn Write, session: &Summary) -> io::Result<()> {
        let header = &session.header;
        let mut object = Object::begin(&mut self.line, Layout::Line)?;
        object.member("id", &header.id)?;
        object.member("started_at", &header.started_at().to_string())?;
        object.member("ended_at", &session.ended_ns.map(|ns| timestamp(ns).to_string()))?;
        object.member("transport", &header.transport)?;
        object.member("server_command", &header.server_command)?;
        object.member("server_url", &header.server_url)?;
        object.member("metadata", &session.metadata())?;
        object.end()?;
        self.end_line(out)
    }

    fn exchange(&mut self, _out: &mut dyn Write, entry: &SessionEntry) -> io::Result<()> {
        self.statuses.hear(entry);
        Ok(())
    }

    fn message(&mut self, out: &mut dyn Write, message: &Told) -> io::Result<()> {
        write_message(&mut self.line, Layout::Line, &message.recorded, self.statuses.of(&message.recorded))?;
        self.end_line(out)
    }

    fn end(&mut self, _out: &mut dyn Write, _ending: &Ending) -> io::Result<()> {
        Ok(())
    }
}

impl Ndjson {
    fn end_line(&mut self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", inert(&String::from_utf8_lossy(&self.line)))?;
        self.line.clear();
        Ok(())
    }
}
