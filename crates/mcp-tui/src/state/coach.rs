//! Leads through what can be done, step by step.

use crate::command::Command;
use crate::news::Act;

#[derive(Default)]
pub struct Coach {}

impl Coach {
    pub fn did(&mut self, _command: Command) {}
    pub fn filtered(&mut self) {}
    pub fn held(&mut self) {}
    pub fn acted(&mut self, _act: &Act) {}
}
