//! What was decided.

use super::common::Common;
use crate::command::Command;
use crate::library::{Decision, Trouble};

#[derive(Default)]
pub struct Audit {}

impl Audit {
    /// The screen is shown.
    pub fn enter(&mut self, _common: &mut Common) {}

    /// Does what the command says, if that is this screen's to do.
    pub fn command(&mut self, _command: Command, _common: &mut Common) -> bool {
        false
    }

    pub fn list(&mut self, _decisions: Result<Vec<Decision>, Trouble>, _common: &mut Common) {}
}
