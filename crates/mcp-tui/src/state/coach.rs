//! Leads a newcomer through the demo, one step after the other. A step is done by doing it, in whatever
//! order, and stays done; each can be skipped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use mcp_control::api::Mode;

use crate::command::{Command, Screen};
use crate::news::Act;
use crate::state::common::{Common, is_to_server};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Watch,
    Filter,
    Hold,
    Edit,
    Forward,
    Replay,
    Deny,
    Save,
    Done,
}

impl Step {
    /// All that can be done, in the order in which the coach asks for them.
    const TO_DO: [Self; 8] =
        [Self::Watch, Self::Filter, Self::Hold, Self::Edit, Self::Forward, Self::Replay, Self::Deny, Self::Save];

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// How far the coach has come, shared with the demo's client.
#[derive(Clone, Debug, Default)]
pub struct Stage(Arc<Progress>);

#[derive(Debug, Default)]
struct Progress {
    /// A bit for each step that is done.
    done: AtomicU32,
    is_holding: AtomicBool,
}

impl Stage {
    /// The first step that is not done.
    pub fn step(&self) -> Step {
        Step::TO_DO.into_iter().find(|step| !self.is_done(*step)).unwrap_or(Step::Done)
    }

    fn is_done(&self, step: Step) -> bool {
        self.0.done.load(Ordering::Relaxed) & step.bit() != 0
    }

    fn complete(&self, step: Step) {
        self.0.done.fetch_or(step.bit(), Ordering::Relaxed);
    }

    fn hold(&self, is_holding: bool) {
        self.0.is_holding.store(is_holding, Ordering::Relaxed);
    }

    /// The client is to call a tool that a rule asks about.
    pub fn wants_a_question(&self) -> bool {
        self.step() == Step::Deny
    }

    /// The next call is held or about to be, and needs numbers that can be changed.
    pub fn wants_numbers(&self) -> bool {
        self.0.is_holding.load(Ordering::Relaxed) || matches!(self.step(), Step::Hold | Step::Edit)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Coach {
    stage: Stage,
    /// Keys that moved through the list or into a message.
    moves: usize,
}

/// Moves after which moving about is understood.
const MOVES: usize = 3;

impl Coach {
    pub(crate) fn new(stage: Stage) -> Self {
        Self { stage, moves: 0 }
    }

    pub(crate) fn step(&self) -> Step {
        self.stage.step()
    }

    /// The number of the current step, from 1, and how many there are.
    pub(crate) fn progress(&self) -> (usize, usize) {
        let all = Step::TO_DO;
        let at = all.iter().position(|step| *step == self.step()).unwrap_or(all.len());
        (at + 1, all.len())
    }

    /// Steps after the current one that are done already.
    pub(crate) fn done_ahead(&self) -> usize {
        let (at, _) = self.progress();
        Step::TO_DO.into_iter().skip(at).filter(|step| self.stage.is_done(*step)).count()
    }

    /// The instructions of the current step, two lines that fit 80 columns.
    pub(crate) fn words(&self, common: &Common, is_filtered: bool) -> [&'static str; 2] {
        let is_holding = common.mode() == Mode::Intercept;
        let (step, held) = (self.step(), common.held());
        match step {
            Step::Watch => [
                "A client and a server talk, and every message passes here. k moves up, j down.",
                "enter opens a message, tab leads back, v changes the view, G follows again.",
            ],
            Step::Filter => [
                "Press / and type  tool:add  and then enter. The list shows only what matches.",
                "The same language sets breakpoints, writes rules and picks what is exported.",
            ],
            Step::Hold if common.screen != Screen::Traffic => [
                "Press 1 for the messages, and then i. From now on each of them waits for you.",
                "The client notices nothing but the time it takes.",
            ],
            Step::Hold if is_filtered => [
                "Press esc, which takes the filter away, and then i: all messages wait for you.",
                "The client notices nothing but the time it takes.",
            ],
            Step::Hold => [
                "Press i: from now on every message waits for you.",
                "The client notices nothing but the time it takes.",
            ],
            Step::Edit if held.is_empty() && !is_holding => [
                "Nothing is held. Press i, and the next call waits for you.",
                "Then press m, change a number in it, and ctrl-s sends it on.",
            ],
            Step::Edit if held.is_empty() => [
                "The next call is about to be held. Press m then, change a number in it,",
                "and ctrl-s sends it on. v shows under Diff what came and what was sent.",
            ],
            Step::Edit if !held.iter().any(|held| is_to_server(&held.message)) => [
                "An answer is held. Press F, which sends on everything: a call comes next.",
                "Then press m, change a number in it, and ctrl-s sends it on.",
            ],
            Step::Edit => [
                "A call is held. Press m, change a number in it, and ctrl-s sends it on.",
                "v then shows under Diff what came and what was sent.",
            ],
            Step::Forward if held.is_empty() && !is_holding => [
                "Nothing is held. Press i, and f sends a held message on as it came, F all.",
                "Then press i once more, and everything passes by itself again.",
            ],
            Step::Forward => [
                "Answers are held too. f sends the selected one on as it came, F all of them.",
                "Then press i once more, and everything passes by itself again.",
            ],
            Step::Replay | Step::Deny if is_holding => [
                "Every message is still held, so that the client waits.",
                "Press i, and everything passes by itself again.",
            ],
            Step::Replay => [
                "Select a tools/call with an arrow to the right and press r: it is sent again.",
                "r again makes another run, and c compares the runs. 1 leads back here.",
            ],
            Step::Deny => [
                "A rule asks before a note is deleted, and the client wants to. Press 2.",
                "D and then o denies it, A and then o approves it; the audit (8) has it.",
            ],
            Step::Save => [
                "Press s and then enter: the whole session is written to a file, as evidence.",
                "x writes it as a report, a page, HAR or a script, with secrets masked.",
            ],
            Step::Done => [
                "That is all of it, and q leaves. In a client's config your own server is:",
                "mcp-proxy run -- YOUR-SERVER    and from any terminal:  mcp-proxy attach",
            ],
        }
    }

    /// On to the next step, done or not.
    pub(crate) fn skip(&mut self) {
        self.stage.complete(self.step());
    }

    /// A command was carried out on its screen; `has_moved` if another message is selected for it.
    pub(crate) fn did(&mut self, command: Command, has_moved: bool, common: &Common) {
        self.moves += usize::from(has_moved || matches!(command, Command::Open | Command::NextView));
        if self.moves >= MOVES {
            self.stage.complete(Step::Watch);
        }
        // Before the proxy is asked, so that the next call is one to be changed.
        if command == Command::Hold && common.mode() == Mode::Passthrough {
            self.stage.hold(true);
        }
    }

    pub(crate) fn filtered(&mut self) {
        self.stage.complete(Step::Filter);
    }

    /// A session was written to a file.
    pub(crate) fn saved(&mut self) {
        self.stage.complete(Step::Save);
    }

    /// The proxy did it.
    pub(crate) fn acted(&mut self, act: &Act, common: &Common) {
        let is_edit =
            matches!(act, Act::Modify(..)) || matches!(act, Act::Approve(_, approve) if approve.raw.is_some());
        if is_edit {
            self.stage.complete(Step::Edit);
        }
        match act {
            Act::Mode(mode) => {
                self.stage.hold(*mode == Mode::Intercept);
                self.stage.complete(if *mode == Mode::Intercept { Step::Hold } else { Step::Forward });
            }
            // What a breakpoint held; while everything is held, the step lasts until that ends.
            Act::Forward(_) | Act::ForwardAll if common.mode() == Mode::Passthrough => {
                self.stage.complete(Step::Forward);
            }
            Act::Replay { .. } => self.stage.complete(Step::Replay),
            Act::Approve(..) | Act::Deny(..) => self.stage.complete(Step::Deny),
            Act::Save(_) => self.stage.complete(Step::Save),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
