//! What the server offers.

use mcp_control::api::{Message, Page};

use super::common::Common;
use crate::command::Command;
use crate::news::Ticket;

#[derive(Default)]
pub struct Tools {}

impl Tools {
    /// The screen is shown.
    pub fn enter(&mut self, _common: &mut Common) {}

    /// Does what the command says, if that is this screen's to do.
    pub fn command(&mut self, _command: Command, _common: &mut Common) -> bool {
        false
    }

    pub fn see(&mut self, _message: &Message) {}

    pub fn page(&mut self, _ticket: Ticket, _page: Result<Page, String>, _common: &mut Common) {}

    /// What the tool's schema says of a whole `tools/call`, if both are known: good or bad, in a line.
    pub fn check_call(&self, _message: &str) -> Option<(bool, String)> {
        None
    }

    /// The same of arguments.
    pub fn check_arguments(&self, _tool: &str, _arguments: &str) -> Option<(bool, String)> {
        None
    }

    /// Calls a tool with these arguments, in the repeater.
    pub fn call(&mut self, _tool: &str, _arguments: &str, _common: &mut Common) {}
}
