//! Recordings.

use super::common::Common;
use crate::command::Command;
use crate::library::{Comparison, Hit, SessionRow, Trouble};

#[derive(Default)]
pub struct Sessions {}

impl Sessions {
    /// The screen is shown.
    pub fn enter(&mut self, _common: &mut Common) {}

    /// Does what the command says, if that is this screen's to do.
    pub fn command(&mut self, _command: Command, _common: &mut Common) -> bool {
        false
    }

    /// Looks for words in all sessions.
    pub fn search(&mut self, _words: String, _common: &mut Common) {}

    pub fn list(&mut self, _rows: Result<Vec<SessionRow>, Trouble>, _common: &mut Common) {}

    pub fn hits(&mut self, _hits: Result<Vec<Hit>, Trouble>, _common: &mut Common) {}

    pub fn compared(&mut self, _comparison: Result<Comparison, Trouble>, _common: &mut Common) {}
}
