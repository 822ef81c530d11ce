//! The servers of a gateway. They are looked at about once a second while somebody sees them, and not at
//! all otherwise.

#[cfg(test)]
mod tests;

use mcp_control::api::{self, Code, Server, ServerState};

use super::common::Common;
use super::cursor::{Cursor, Scroll};
use super::menu::Choice;
use crate::command::{Command, Screen};
use crate::news::{Act, Effect, Refused};
use crate::text;

/// Pause before the next look at a gateway's servers while they are shown, in milliseconds.
const LOOK_EVERY: u64 = 1_000;

#[derive(Default)]
pub(crate) struct Servers {
    /// Absent until they came.
    pub servers: Option<Vec<Server>>,
    pub trouble: Option<String>,
    /// This instance has one server only, in its own words.
    pub no_gateway: Option<String>,
    pub cursor: Cursor,
    /// Keys go to what is known of one server, and not to the list.
    pub is_on_facts: bool,
    pub facts: Scroll,
    /// When to look again; absent while an answer is awaited.
    due: Option<u64>,
}

impl Servers {
    /// The screen is shown.
    pub(crate) fn enter(&mut self, common: &mut Common) {
        self.due = None;
        if can_look(common) {
            common.wish(Effect::Servers);
        }
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, common: &mut Common) {
        let is_due = self.due.is_some_and(|due| due <= common.now);
        if is_due && common.screen == Screen::Servers && can_look(common) {
            self.enter(common);
        }
    }

    pub(crate) fn list(&mut self, servers: Result<api::Servers, Refused>, common: &Common) {
        self.due = Some(common.now + LOOK_EVERY);
        match servers {
            Ok(api::Servers { servers }) => {
                let selected = self.selected().map(|server| server.id.clone());
                let at = selected.and_then(|id| servers.iter().position(|server| server.id == id));
                self.cursor.at = at.unwrap_or(self.cursor.at);
                (self.servers, self.trouble, self.no_gateway) = (Some(servers), None, None);
            }
            // It will never be one.
            Err(Refused { code: Some(Code::NotFound), words }) => (self.no_gateway, self.due) = (Some(words), None),
            Err(refused) => self.trouble = Some(refused.words),
        }
    }

    pub(crate) fn selected(&self) -> Option<&Server> {
        self.servers.as_ref()?.get(self.cursor.at)
    }

    /// A line was clicked.
    pub(crate) fn select(&mut self, line: usize) {
        (self.cursor.at, self.facts, self.is_on_facts) = (line, Scroll::default(), false);
    }

    /// Does what the command says, if that is this screen's to do.
    pub(crate) fn command(&mut self, command: Command, common: &mut Common) -> bool {
        if self.is_on_facts && self.facts.motion(command) {
            return true;
        }
        if self.cursor.motion(command, self.servers.as_ref().map_or(0, Vec::len)) {
            self.facts = Scroll::default();
            return true;
        }
        match command {
            Command::NextPane | Command::PreviousPane => self.is_on_facts = !self.is_on_facts,
            Command::Open => self.is_on_facts = true,
            Command::Back if common.job.is_none() && self.is_on_facts => self.is_on_facts = false,
            Command::RestartServer | Command::DisableServer | Command::Copy => match self.selected() {
                Some(server) => act(command, server, common),
                None => common.say("there is no server"),
            },
            _ => return false,
        }
        true
    }

    /// Something was done to a server, and shows soon.
    pub(crate) fn acted(&mut self, common: &mut Common) {
        if common.screen == Screen::Servers {
            self.enter(common);
        }
    }
}

/// A recording has no servers that could be looked at.
fn can_look(common: &Common) -> bool {
    common.recording.is_none() && common.ended.is_none()
}

fn act(command: Command, server: &Server, common: &mut Common) {
    if command == Command::Copy {
        let json = serde_json::to_string_pretty(server).expect("plain data always serialises");
        return common.wish(Effect::Copy(json));
    }
    if let Some(words) = common.cannot_act() {
        return common.complain(words);
    }
    let (id, name) = (server.id.clone(), text::clean(&server.id).into_owned());
    let is_disabled = server.state == ServerState::Disabled;
    match (command, is_disabled) {
        (Command::RestartServer, true) => common.say(format!("{name} is disabled; `d` enables it")),
        (Command::RestartServer, false) => common.menu(
            format!("Restart {name}?{}", waiting(server)),
            [('r', "end it, and start it again", Choice::RestartServer(id))],
        ),
        (_, true) => common.act(Act::EnableServer(id)),
        (_, false) => common.menu(
            format!("Disable {name}?{}", waiting(server)),
            [('d', "end it, and offer nothing of it until it is enabled", Choice::DisableServer(id))],
        ),
    }
}

/// What it costs.
fn waiting(server: &Server) -> String {
    match server.in_flight {
        0 => String::new(),
        1 => " 1 call waits for it".to_owned(),
        calls => format!(" {calls} calls wait for it"),
    }
}
