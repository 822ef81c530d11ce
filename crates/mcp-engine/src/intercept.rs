//! Messages that somebody wants to see before they go on. In passthrough mode, the only one there
//! is while no face can attach, everything goes on at once.

use crate::policy::Judged;

/// Where a judged message goes.
#[must_use]
#[derive(Debug)]
pub enum Passed {
    Onward(Judged),
}

#[derive(Debug, Default)]
pub struct Intercept {}

impl Intercept {
    pub fn pass(&self, judged: Judged) -> Passed {
        Passed::Onward(judged)
    }
}
