//! Operations over time.

use mcp_control::api::{Message, Page};

use super::common::Common;
use crate::command::Command;
use crate::news::Ticket;

#[derive(Default)]
pub struct Waterfall {}

impl Waterfall {
    /// The screen is shown.
    pub fn enter(&mut self, _common: &mut Common) {}

    /// Does what the command says, if that is this screen's to do.
    pub fn command(&mut self, _command: Command, _common: &mut Common) -> bool {
        false
    }

    pub fn see(&mut self, _message: &Message) {}

    pub fn page(&mut self, _ticket: Ticket, _page: Result<Page, String>, _common: &mut Common) {}

    pub fn tick(&mut self, _common: &mut Common) {}
}
