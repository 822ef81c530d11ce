//! The audit log: a line for every decision that rules or people made, and one for how the call went.
//! Lines are JSON, redacted, numbered, and the hash of each depends on that of the one before it, so that
//! whoever changes, drops or moves one has to change every line after it.
//!
//! An instance writes one log, in parts of a bounded size. `docs/audit.md` describes the lines.

mod files;
pub mod ledger;
mod line;
mod log;
mod read;
mod record;
mod recorded;
mod tails;
mod verify;
mod words;

use uuid::Uuid;

use crate::recorded::Direction;

pub use files::{LogFiles, logs};
pub use ledger::Ledger;
pub use log::AuditLog;
pub use read::LineReader;
pub use record::{Kind, MessageId, Record};
pub use recorded::recorded;
pub use verify::{Fault, Standing, Verified, Witness, Wrong, verify};

/// What a log says first.
#[derive(Clone, Copy, Debug)]
pub struct Begin<'a> {
    pub time_ns: u64,
    pub instance: Uuid,
    /// The program that writes it, and its version.
    pub program: &'a str,
    pub server: Option<&'a str>,
    /// Which text the rules were read from, as `Decision::rules_version`.
    pub rules_version: &'a str,
}

/// What was decided about one message.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'a> {
    pub time_ns: u64,
    /// The message: which recording it is in, and its number there.
    pub session: Uuid,
    pub sequence: u64,
    /// 0 where there can be only one.
    pub conversation: u32,
    pub client: Option<&'a str>,
    pub server: Option<&'a str>,
    pub direction: Direction,
    pub method: &'a str,
    /// The tool, the prompt or the address of the resource.
    pub tool: Option<&'a str>,
    pub operation: Option<&'static str>,
    pub verdict: &'static str,
    pub rule: Option<&'a str>,
    /// Which text the rules were read from.
    pub rules_version: &'a str,
    /// `rule`, or who decided.
    pub actor: &'a str,
    pub why: Option<&'a str>,
    /// How long it waited for a decision.
    pub held_ns: u64,
}

/// How a call went on that was decided about.
#[derive(Clone, Copy, Debug)]
pub struct CallOutcome {
    /// The number of the decision.
    pub of: u64,
    pub time_ns: u64,
    /// The answer: which recording it is in, and its number there. 0 if there is none.
    pub session: Uuid,
    pub sequence: u64,
    /// `ok`, `error`, `input_required`, `cancelled`, `lost`, or what else became of it.
    pub status: &'static str,
    pub code: Option<i64>,
    pub latency_ns: u64,
}
