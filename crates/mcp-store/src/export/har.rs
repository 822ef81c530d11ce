//! HAR 1.2, which browsers and HTTP tools open. HTTP exchanges stand in it as they were; messages that
//! crossed a pipe are mapped, a call to an entry, and every such entry says so.

mod body;
mod entry;
mod open;

use std::io::{self, Write};

use mcp_wire::inert::inert;
use serde_json::{Value, json};

use super::{Ending, Exporter, counted};
use crate::exchange::SessionEntry;
use crate::recorded::Direction;
use crate::session::Summary;
use crate::story::{MessageKind, Told};
use entry::Naming;
use open::{Call, Calls, Exchanges};

#[derive(Default)]
pub(super) struct Har {
    naming: Naming,
    exchanges: Exchanges,
    calls: Calls,
    has_entries: bool,
    /// Noise and events, which no HTTP carried.
    left_out: u64,
}

impl Exporter for Har {
    fn begin(&mut self, out: &mut dyn Write, session: &Summary) -> io::Result<()> {
        self.naming = Naming::of(session);
        let creator = json!({ "name": "mcp-proxy", "version": env!("CARGO_PKG_VERSION") });
        write!(out, "{{\"log\":{{\"version\":\"1.2\",\"creator\":{creator},")?;
        let header = &session.header;
        let facts = json!({
            "id": header.id,
            "started_at": header.started_at(),
            "ended_at": session.ended_ns.map(crate::recorded::timestamp),
            "transport": header.transport,
            "server_command": header.server_command,
            "server_url": header.server_url,
            "metadata": session.notes,
        });
        write!(out, "\"_session\":{},\"entries\":[", inert(&facts.to_string()))
    }

    fn exchange(&mut self, out: &mut dyn Write, entry: &SessionEntry) -> io::Result<()> {
        let over = self.exchanges.hear(entry);
        over.iter().try_for_each(|exchange| self.entry(out, exchange.entry(&self.naming)))
    }

    fn message(&mut self, out: &mut dyn Write, message: &Told) -> io::Result<()> {
        match message.kind {
            MessageKind::Noise | MessageKind::Event => {
                self.left_out += 1;
                Ok(())
            }
            MessageKind::Response | MessageKind::Error => self.answer(out, message),
            MessageKind::Request => self.request(out, message),
            _ => self.single(out, message),
        }
    }

    fn end(&mut self, out: &mut dyn Write, ending: &Ending) -> io::Result<()> {
        for call in self.calls.drain() {
            self.unanswered(out, &call)?;
        }
        for exchange in self.exchanges.drain() {
            self.entry(out, exchange.entry(&self.naming))?;
        }
        let mut comment = "Entries whose `_transport` is stdio are messages that crossed a pipe; their addresses and \
                           statuses are what HTTP would have had."
            .to_owned();
        if ending.is_redacted {
            comment.push_str(&format!(" {} secrets are masked as ***.", ending.masked));
        }
        if ending.is_partial {
            comment.push_str(" This is a part: the export was interrupted.");
        }
        writeln!(out, "\n],\"comment\":{}}}}}", json!(comment))
    }

    fn left_out(&self) -> Option<String> {
        (self.left_out > 0).then(|| {
            format!(
                "{} of noise or of what happened instead of a message, which have no place in a HAR",
                counted(self.left_out, "line")
            )
        })
    }
}

impl Har {
    fn request(&mut self, out: &mut dyn Write, message: &Told) -> io::Result<()> {
        let call = Call::of(message);
        if let Some(number) = call.exchange {
            self.exchanges.add(number, message.recorded.direction, message);
        }
        for call in self.calls.add(call) {
            self.unanswered(out, &call)?;
        }
        self.let_go(out)
    }

    /// An answer stands in the exchange that it came in, and in the one that its request came in, where
    /// client and server speak different transports.
    fn answer(&mut self, out: &mut dyn Write, message: &Told) -> io::Result<()> {
        let call = message.answers.and_then(|sequence| self.calls.take(sequence));
        let place = |number| self.exchanges.place(number, message.recorded.conversation);
        let came_in = message.recorded.exchange.map(place);
        let asked_in = call.as_ref().and_then(|call| call.exchange).map(place);
        let direction = message.recorded.direction;
        if let Some(number) = came_in {
            self.exchanges.add(number, direction, message);
            if let Some(call) = call.as_ref().filter(|_| direction == Direction::ServerToClient && asked_in != came_in)
            {
                self.exchanges.lend(number, call);
            }
        }
        match (asked_in, &call) {
            (Some(number), _) if asked_in != came_in && direction == Direction::ServerToClient => {
                self.exchanges.add(number, direction, message);
            }
            (None, Some(call)) => self.entry(out, entry::mapped(&self.naming, call, Some(message)))?,
            (None, None) if came_in.is_none() => self.single(out, message)?,
            _ => {}
        }
        self.let_go(out)
    }

    /// A message that nothing answers.
    fn single(&mut self, out: &mut dyn Write, message: &Told) -> io::Result<()> {
        match message.recorded.exchange {
            Some(number) => {
                let number = self.exchanges.place(number, message.recorded.conversation);
                self.exchanges.add(number, message.recorded.direction, message);
                self.let_go(out)
            }
            None => self.entry(out, entry::mapped(&self.naming, &Call::of(message), None)),
        }
    }

    fn unanswered(&mut self, out: &mut dyn Write, call: &Call) -> io::Result<()> {
        match call.exchange {
            Some(_) => Ok(()),
            None => self.entry(out, entry::mapped(&self.naming, call, None)),
        }
    }

    /// Writes exchanges that there is no room to wait for.
    fn let_go(&mut self, out: &mut dyn Write) -> io::Result<()> {
        while let Some(exchange) = self.exchanges.pop_excess() {
            self.entry(out, exchange.entry(&self.naming))?;
        }
        Ok(())
    }

    fn entry(&mut self, out: &mut dyn Write, entry: Value) -> io::Result<()> {
        let comma = if std::mem::replace(&mut self.has_entries, true) { "," } else { "" };
        write!(out, "{comma}\n{}", inert(&entry.to_string()))
    }
}
