//! Leads a newcomer through what can be done, one step after the other. A step is done when it was
//! done, not when it was read; each can be skipped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_control::api::Mode;

use crate::command::Command;
use crate::news::Act;

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
    const ALL: [Self; 9] = [
        Self::Watch,
        Self::Filter,
        Self::Hold,
        Self::Edit,
        Self::Forward,
        Self::Replay,
        Self::Deny,
        Self::Save,
        Self::Done,
    ];

    fn at(number: usize) -> Self {
        Self::ALL[number.min(Self::ALL.len() - 1)]
    }
}

/// How far the coach has come, for whoever plays the other parts.
#[derive(Clone, Debug, Default)]
pub struct Stage(Arc<AtomicUsize>);

impl Stage {
    pub fn step(&self) -> Step {
        Step::at(self.0.load(Ordering::Relaxed))
    }

    fn advance(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Something is to be asked about.
    pub fn wants_a_question(&self) -> bool {
        self.step() == Step::Deny
    }
}

#[derive(Debug, Default)]
pub struct Coach {
    stage: Stage,
    /// Keys that moved through the list.
    moves: usize,
}

/// Moves that show that somebody has found out how to.
const MOVES: usize = 3;

impl Coach {
    pub fn new(stage: Stage) -> Self {
        Self { stage, moves: 0 }
    }

    pub fn step(&self) -> Step {
        self.stage.step()
    }

    /// Which step it is, from 1, and of how many.
    pub fn progress(&self) -> (usize, usize) {
        let at = Step::ALL.iter().position(|step| *step == self.step()).unwrap_or(0);
        (at + 1, Step::ALL.len() - 1)
    }

    /// What to do, in two lines.
    pub fn words(&self) -> [&'static str; 2] {
        match self.step() {
            Step::Watch => [
                "A client and a server talk, and every message passes here. Move with j and k.",
                "enter goes into a message, tab back to the list, v shows it another way, G follows what comes.",
            ],
            Step::Filter => [
                "Press / and type  tool:add  and then enter. The list shows only what matches.",
                "The same language sets breakpoints, writes rules and picks what is exported.",
            ],
            Step::Hold => [
                "Press esc, which takes the filter away, and then i. From now on every message waits for you.",
                "The client notices nothing but the time it takes.",
            ],
            Step::Edit => [
                "A message is held. Press m, change a number in it, then ctrl-s: the server gets what you wrote.",
                "v then shows under Diff what it was, against what was sent.",
            ],
            Step::Forward => [
                "Answers are held too. f sends the selected one on as it came, F sends on all of them.",
                "Then press i once more, and everything passes by itself again.",
            ],
            Step::Replay => [
                "Select a tools/call (a line with an arrow to the right) and press r: it is sent once more.",
                "r again makes another run, and c compares the runs. 1 leads back here.",
            ],
            Step::Deny => [
                "A rule asks before anything is deleted, and the client wants to delete a note. Press 2.",
                "D and then o denies it, A and then o approves; the client is told, and the audit (8) has it.",
            ],
            Step::Save => [
                "Press s and then enter: the whole session is written to a file, as evidence.",
                "x writes it as a report, a page, HAR or a script, with secrets masked.",
            ],
            Step::Done => [
                "That is all of it. q leaves. Your own server goes behind it with:  mcp-proxy run -- YOUR-SERVER",
                "and from any other terminal:  mcp-proxy attach",
            ],
        }
    }

    fn done(&mut self, step: Step) {
        if self.step() == step {
            self.stage.advance();
        }
    }

    /// On to the next step, done or not.
    pub fn skip(&mut self) {
        if self.step() != Step::Done {
            self.stage.advance();
        }
    }

    pub fn did(&mut self, command: Command) {
        let moved = matches!(
            command,
            Command::Down | Command::Up | Command::Open | Command::NextView | Command::PageUp | Command::PageDown
        );
        self.moves += usize::from(moved);
        if self.moves >= MOVES {
            self.done(Step::Watch);
        }
    }

    pub fn filtered(&mut self) {
        self.done(Step::Filter);
    }

    /// A session was written to a file.
    pub fn saved(&mut self) {
        self.done(Step::Save);
    }

    pub fn acted(&mut self, act: &Act) {
        match act {
            Act::Mode(Mode::Intercept) => self.done(Step::Hold),
            Act::Modify(..) => self.done(Step::Edit),
            Act::Mode(Mode::Passthrough) => self.done(Step::Forward),
            Act::Replay { .. } => self.done(Step::Replay),
            Act::Approve(..) | Act::Deny(..) => self.done(Step::Deny),
            Act::Save(_) => self.done(Step::Save),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use mcp_control::api::{Deny, Modify};
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn each_step_is_done_by_doing_it() {
        let mut coach = Coach::default();
        let raw = || RawValue::from_string("{}".into()).unwrap();
        coach.acted(&Act::Save("/tmp/x".into()));
        assert_eq!(coach.step(), Step::Watch, "out of turn");
        (0..MOVES).for_each(|_| coach.did(Command::Down));
        assert_eq!(coach.step(), Step::Filter);
        coach.filtered();
        coach.acted(&Act::Mode(Mode::Intercept));
        assert_eq!(coach.step(), Step::Edit);
        coach.acted(&Act::Modify(7, Modify { raw: raw(), raw_headers: false, confirm: false }));
        coach.acted(&Act::Mode(Mode::Passthrough));
        assert_eq!(coach.step(), Step::Replay);
        coach.skip();
        assert!(coach.stage.wants_a_question());
        coach.acted(&Act::Deny(9, Deny::default()));
        coach.acted(&Act::Save("/tmp/x".into()));
        assert_eq!((coach.step(), coach.progress()), (Step::Done, (9, 8)));
        coach.skip();
        assert_eq!(coach.step(), Step::Done);
    }
}
