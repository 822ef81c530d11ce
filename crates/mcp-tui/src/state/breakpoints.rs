//! What is held, and the rules that judge: breakpoints can be changed here, rules in their file.

#[cfg(test)]
pub(crate) mod tests;

use mcp_control::api::{Answered, Breakpoint, Owner, Policy, Rule};

use super::common::Common;
use super::cursor::Cursor;
use super::prompt::Asking;
use crate::command::Command;
use crate::news::{Act, Effect};

#[derive(Default)]
pub(crate) struct Breakpoints {
    /// The rules as they were told last, or why there are none.
    pub rules: Option<Result<Policy, String>>,
    /// The selected line: breakpoints first, then rules, then answers.
    at: usize,
    /// What is shown of breakpoints, and of rules and answers.
    pub above: Cursor,
    pub below: Cursor,
}

/// A line of the screen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item<'a> {
    Breakpoint(&'a Breakpoint),
    /// With its place in the order, from 1.
    Rule(usize, &'a Rule),
    Answer(&'a Answered),
}

impl Breakpoints {
    /// The screen is shown.
    pub(crate) fn enter(&mut self, common: &mut Common) {
        if common.recording.is_none() && common.ended.is_none() {
            common.wish(Effect::Policy);
        }
    }

    pub(crate) fn policy(&mut self, policy: Result<Policy, String>) {
        self.rules = Some(policy);
    }

    /// Everything that can be selected, in order.
    pub(crate) fn items<'a>(&'a self, common: &'a Common) -> Vec<Item<'a>> {
        let breakpoints = breakpoints(common).iter().map(Item::Breakpoint);
        let policy = self.rules.as_ref().and_then(|rules| rules.as_ref().ok());
        let rules = policy.into_iter().flat_map(|policy| (1..).zip(&policy.rules));
        let answers = policy.into_iter().flat_map(|policy| &policy.answers);
        breakpoints.chain(rules.map(|(place, rule)| Item::Rule(place, rule))).chain(answers.map(Item::Answer)).collect()
    }

    /// The line that is selected.
    pub(crate) fn place(&self, common: &Common) -> usize {
        self.at.min(self.items(common).len().saturating_sub(1))
    }

    pub(crate) fn select_line(&mut self, line: usize) {
        self.at = line;
    }

    /// Does what the command says, if that is this screen's to do.
    pub(crate) fn command(&mut self, command: Command, common: &mut Common) -> bool {
        let count = breakpoints(common).len();
        let items = self.items(common);
        let at = self.at.min(items.len().saturating_sub(1));
        let breakpoint = match items.get(at) {
            Some(Item::Breakpoint(breakpoint)) => Some((breakpoint.name.clone(), breakpoint.filter.clone())),
            _ => None,
        };
        match (command, breakpoint) {
            (Command::Remove, Some((name, _))) => common.act(Act::RemoveBreakpoint(name)),
            (Command::ChangeBreakpoint | Command::Open, Some((name, filter))) => {
                common.prompt(Asking::Breakpoint(Some(name)), &filter);
            }
            (Command::Remove | Command::ChangeBreakpoint, None) => common.say(match items.get(at) {
                None => "there is no breakpoint; `b` sets one",
                Some(_) => "rules are changed in their file; they count once it is written",
            }),
            (Command::Copy, _) => match items.get(at).map(Item::filter) {
                Some(filter) => common.wish(Effect::Copy(filter)),
                None => common.say("nothing is selected"),
            },
            // From one list to the other.
            (Command::NextPane | Command::PreviousPane, _) => {
                self.at = if at < count { count.min(items.len().saturating_sub(1)) } else { 0 };
            }
            (command, _) => {
                let len = items.len();
                // A screen is what the list has that one is in.
                let mut cursor = if at < count { self.above } else { self.below };
                cursor.at = at;
                let is_moved = cursor.motion(command, len);
                self.at = cursor.at;
                return is_moved;
            }
        }
        true
    }
}

/// What is set now; nothing while a recording is shown.
pub(crate) fn breakpoints(common: &Common) -> &[Breakpoint] {
    match (&common.standing, &common.recording) {
        (Some(standing), None) => &standing.breakpoints,
        _ => &[],
    }
}

/// Whether it holds as things stand.
pub(crate) fn holds_now(breakpoint: &Breakpoint, common: &Common) -> bool {
    let has_face = common.standing.as_ref().is_some_and(|standing| standing.has_face);
    has_face || matches!(breakpoint.owner, Owner::Command | Owner::Policy)
}

impl Item<'_> {
    fn filter(&self) -> String {
        match self {
            Self::Breakpoint(breakpoint) => breakpoint.filter.clone(),
            Self::Rule(_, rule) => rule.filter.clone(),
            Self::Answer(answer) => answer.rule.clone(),
        }
    }
}
