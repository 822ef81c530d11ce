//! What happens, as it happens.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::api::breakpoint::Breakpoints;
use crate::api::held::{Held, Outcome};
use crate::api::lease::LeaseState;
use crate::api::message::Message;
use crate::api::policy::Governed;
use crate::api::snapshot::{ModeChange, Snapshot};

#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    /// Begin with the messages after this sequence; absent: with what happens from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Only messages that match. Everything else is told nevertheless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 16384)]
    pub filter: Option<String>,
    /// The lease by which this face is present while the stream is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 64)]
    pub lease: Option<String>,
    /// The most messages in a second that this face wants to be told as they pass; absent: 10,000. A burst
    /// of a thousand after quiet times is told whole. Those beyond are missed, and counted by a `gap`.
    /// Everything else is told nevertheless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 10000)]
    pub per_second: Option<u32>,
}

/// One event of the stream; its name is the SSE event's, its content the data.
#[derive(Clone, Debug)]
pub enum Event {
    /// The first, and again after a gap.
    Snapshot(Box<Snapshot>),
    Message(Box<Message>),
    /// A message was held.
    Held(Box<Held>),
    Outcome(Outcome),
    /// What rules decided about a message that was told before.
    Verdict(Verdict),
    /// Somebody marked a message, or noted something beside it.
    Marked(Marked),
    Mode(ModeChange),
    Breakpoints(Breakpoints),
    /// Other rules count from now on.
    Policy(Governed),
    Lease(LeaseState),
    /// Something happened where a message should have been.
    Fault(Box<Message>),
    Gap(Gap),
    /// Always the last.
    End(Ended),
}

/// Events that were not told: more happened than is told at a time, or this face did not keep up.
/// Messages among them are in the history, and a snapshot follows that says how things stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Gap {
    pub missed: u64,
}

/// What rules decided about a message, in the words of its members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Verdict {
    pub sequence: u64,
    pub verdict: String,
    #[serde(default)]
    pub rule: Option<String>,
    #[serde(default)]
    pub op: Option<String>,
    #[serde(default)]
    pub audit_id: Option<String>,
}

/// What is written beside a message now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Marked {
    pub sequence: u64,
    #[serde(default)]
    pub mark: Option<String>,
    #[serde(default)]
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ended {
    /// In plain words.
    pub why: String,
}

/// Names each event as the stream does.
macro_rules! named {
    ($($variant:ident => $name:literal),+ $(,)?) => {
        impl Event {
            /// The name it has in the stream.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name),+
                }
            }

            /// Reads an event of the stream. `None` for a name that this version does not know.
            pub fn parse(name: &str, data: &[u8]) -> Result<Option<Self>, serde_json::Error> {
                Ok(Some(match name {
                    $($name => Self::$variant(serde_json::from_slice(data)?),)+
                    _ => return Ok(None),
                }))
            }

            /// What it says, as JSON.
            pub fn data(&self) -> String {
                let json = match self {
                    $(Self::$variant(said) => serde_json::to_string(said)),+
                };
                json.expect("plain data always serialises")
            }
        }
    };
}

named! {
    Snapshot => "snapshot",
    Message => "message",
    Held => "held",
    Outcome => "outcome",
    Verdict => "verdict",
    Marked => "marked",
    Mode => "mode",
    Breakpoints => "breakpoints",
    Policy => "policy",
    Lease => "lease",
    Fault => "fault",
    Gap => "gap",
    End => "end",
}
