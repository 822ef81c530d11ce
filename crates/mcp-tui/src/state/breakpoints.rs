//! What is held, and the rules that judge.

use mcp_control::api::Policy;

use super::common::Common;
use crate::command::Command;

#[derive(Default)]
pub struct Breakpoints {}

impl Breakpoints {
    /// The screen is shown.
    pub fn enter(&mut self, _common: &mut Common) {}

    /// Does what the command says, if that is this screen's to do.
    pub fn command(&mut self, _command: Command, _common: &mut Common) -> bool {
        false
    }

    pub fn policy(&mut self, _policy: Result<Policy, String>) {}
}
