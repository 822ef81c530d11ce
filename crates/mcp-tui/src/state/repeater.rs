//! Requests that are sent again.

use mcp_control::api::{Message, Page};

use super::common::{Common, Repeat};
use crate::command::Command;
use crate::news::Ticket;

#[derive(Default)]
pub struct Repeater {}

impl Repeater {
    /// The screen is shown.
    pub fn enter(&mut self, _common: &mut Common) {}

    /// Does what the command says, if that is this screen's to do.
    pub fn command(&mut self, _command: Command, _common: &mut Common) -> bool {
        false
    }

    /// Takes a request that some other screen wants sent.
    pub fn take(&mut self, _repeat: Repeat, _common: &mut Common) {}

    /// A run was sent, as such a message.
    pub fn sent(&mut self, _run: u64, _sequence: u64, _common: &mut Common) {}

    pub fn refused(&mut self, _run: u64, _words: String) {}

    /// A message passed; it may answer a run.
    pub fn see(&mut self, _message: &Message, _common: &mut Common) {}

    pub fn page(&mut self, _ticket: Ticket, _page: Result<Page, String>, _common: &mut Common) {}

    /// The request was edited.
    pub fn edited(&mut self, _run: u64, _raw: &str, _common: &mut Common) {}

    /// Paths that comparisons leave out, with blanks between them.
    pub fn set_ignored(&mut self, _paths: &str, _common: &mut Common) {}

    pub fn tick(&mut self, _common: &mut Common) {}
}
