//! What waits for a decision.

use super::common::Common;
use crate::command::Command;

#[derive(Default)]
pub struct HeldScreen {
    /// The message that is looked at, even if it is held no longer.
    selected: Option<u64>,
}

impl HeldScreen {
    /// The screen is shown.
    pub fn enter(&mut self, _common: &mut Common) {}

    /// The held message that commands are about.
    pub fn selected(&self, common: &Common) -> Option<u64> {
        let held = common.held();
        let selected = self.selected.filter(|selected| held.iter().any(|held| held.sequence == *selected));
        selected.or(held.first().map(|held| held.sequence))
    }

    /// Does what the command says, if that is this screen's to do.
    pub fn command(&mut self, _command: Command, _common: &mut Common) -> bool {
        false
    }
}
