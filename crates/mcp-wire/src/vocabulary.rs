//! The words that recordings, the data plane, the control API and faces share for messages, for what was decided about
//! them, and for what holds and carries them.
//!
//! Types of the control API's OpenAPI document take their description from the doc comment: types that the document
//! leaves undescribed have a plain comment instead.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use utoipa::ToSchema;

use crate::scan::Kind;

/// Gives each variant its word.
macro_rules! words {
    ($name:ident { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl $name {
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|word| word.as_str() == name)
            }
        }
    };
}

/// An end of a conversation, as the proxy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    Client,
    Server,
}

impl Side {
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// The direction of what this side sends.
    pub fn direction(self) -> Direction {
        match self {
            Self::Client => Direction::ClientToServer,
            Self::Server => Direction::ServerToClient,
        }
    }
}

// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub enum Direction {
    ClientToServer,
    ServerToClient,
}

words!(Direction { ClientToServer => "client_to_server", ServerToClient => "server_to_client" });

impl Direction {
    pub fn other(self) -> Self {
        self.sender().other().direction()
    }

    pub fn sender(self) -> Side {
        match self {
            Self::ClientToServer => Side::Client,
            Self::ServerToClient => Side::Server,
        }
    }

    pub fn arrow(self) -> char {
        match self {
            Self::ClientToServer => '→',
            Self::ServerToClient => '←',
        }
    }
}

// The transport of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub enum Transport {
    Stdio,
    Sse,
    StreamableHttp,
}

words!(Transport { Stdio => "stdio", Sse => "sse", StreamableHttp => "streamable_http" });

/// What a message is, in the words that the filter field `kind` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(ToSchema), schema(as = Kind))]
pub enum MessageKind {
    Request,
    Response,
    /// A response that carries an error.
    Error,
    Notification,
    Batch,
    /// JSON, but not JSON-RPC.
    #[cfg_attr(feature = "serde", serde(rename = "json"))]
    OtherJson,
    #[cfg_attr(feature = "serde", serde(rename = "bytes"))]
    NotJson,
    /// A line of the server's standard output that was no message.
    Noise,
    /// What happened instead of a message.
    Event,
}

words!(MessageKind {
    Request => "request",
    Response => "response",
    Error => "error",
    Notification => "notification",
    Batch => "batch",
    OtherJson => "json",
    NotJson => "bytes",
    Noise => "noise",
    Event => "event",
});

impl From<Kind> for MessageKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Request => Self::Request,
            Kind::Response => Self::Response,
            Kind::Error => Self::Error,
            Kind::Notification => Self::Notification,
            Kind::Batch => Self::Batch,
            Kind::OtherJson => Self::OtherJson,
            Kind::NotJson => Self::NotJson,
        }
    }
}

// How a hold ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub enum OutcomeKind {
    /// Forwarded as it came.
    Forwarded,
    /// Something else was forwarded in its place.
    Modified,
    /// Dropped; the sender was not told.
    Dropped,
    /// Dropped; the sender of a request got an error.
    Refused,
    /// Dropped; the sender of a request got a composed answer.
    Answered,
    /// Its sender cancelled it before it was forwarded.
    Cancelled,
    /// Forwarded without a decision: the limit, a face that left, the end of intercepting.
    Released,
    /// Its receiver is gone.
    Discarded,
}

words!(OutcomeKind {
    Forwarded => "forwarded",
    Modified => "modified",
    Dropped => "dropped",
    Refused => "refused",
    Answered => "answered",
    Cancelled => "cancelled",
    Released => "released",
    Discarded => "discarded",
});

impl OutcomeKind {
    /// Whether the other side got the message, as it was or changed.
    pub fn reached_the_other_side(self) -> bool {
        matches!(self, Self::Forwarded | Self::Modified | Self::Released)
    }
}

/// What a rule says of what it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(ToSchema), schema(as = VerdictKind))]
pub enum VerdictKind {
    Allow,
    Deny,
    /// A person decides; another verdict then says what.
    Ask,
    /// The match is noted, and the rules after it decide.
    Observe,
}

words!(VerdictKind { Allow => "allow", Deny => "deny", Ask => "ask", Observe => "observe" });

impl From<Permission> for VerdictKind {
    fn from(permission: Permission) -> Self {
        match permission {
            Permission::Allow => Self::Allow,
            Permission::Deny => Self::Deny,
        }
    }
}

// A decision that leaves nothing open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub enum Permission {
    #[default]
    Allow,
    Deny,
}

words!(Permission { Allow => "allow", Deny => "deny" });

/// How long an answer counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub enum Lasting {
    /// For this message.
    #[default]
    Once,
    /// For everything the same rule asks about the same tool, prompt or resource, while the proxy runs.
    Session,
    /// As `Session`, and written beside the rules: it counts for as long as the rule is there.
    Rule,
}

// Whether messages are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub enum Mode {
    /// Every message is forwarded at once, save what a breakpoint holds.
    Passthrough,
    /// Every message is held; only while a face has the lease, unless a command wanted it so.
    Intercept,
}

/// Who set it, which decides whether it holds while no face has the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub enum Owner {
    /// A flag of the command line; holds only while a face has the lease.
    Start,
    /// The face with the lease; holds only while a face has the lease.
    Face,
    /// A command at run time; holds up to the limit.
    Command,
    /// A rule that asks; holds until it is answered, or up to its limit.
    Policy,
}

/// What happens to held messages when the face with the lease leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub enum OnDetach {
    Forward,
    /// The sender of a request gets an error.
    Error,
    Drop,
}

// How a server of a gateway is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub enum ServerState {
    /// No client needed it yet, or for long; the next one that does starts it.
    Stopped,
    Starting,
    Ready,
    /// A ping is unanswered, and nothing was heard since. It may be busy with calls.
    NotResponding,
    /// Its last calls failed on their way.
    Failing,
    /// It answered with HTTP status 401 or 403.
    NeedsLogin,
    /// It has failed, and is started again.
    Restarting,
    /// It failed over and over; it is still tried.
    Down,
    Disabled,
}

impl ServerState {
    /// In words for people, which its JSON is not.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::NotResponding => "not responding",
            Self::Failing => "failing",
            Self::NeedsLogin => "needs login",
            Self::Restarting => "restarting",
            Self::Down => "down",
            Self::Disabled => "disabled",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_written_in_one_way() {
        macro_rules! check {
            ($($name:ident),+) => {
                $(for word in $name::ALL {
                    assert_eq!($name::from_name(word.as_str()), Some(word));
                    #[cfg(feature = "serde")]
                    assert_eq!(serde_json::to_string(&word).unwrap(), format!("\"{}\"", word.as_str()));
                })+
            };
        }
        check!(Direction, Transport, MessageKind, OutcomeKind, VerdictKind, Permission);
        assert_eq!(OutcomeKind::from_name("eaten"), None);
    }

    #[test]
    fn a_direction_is_that_of_its_sender() {
        for direction in Direction::ALL {
            assert_eq!(direction.sender().direction(), direction);
            assert_ne!(direction.other(), direction);
        }
    }
}
