//! MCP messages as bytes: what a message says about itself, how to change one part of it, and how
//! messages are cut from a stream. No async, no I/O, no clock: everything here can be tested and
//! fuzzed by calling it.

#[cfg(any(test, feature = "checks"))]
pub mod checks;
pub mod elicit;
pub mod fit;
pub mod fold;
pub mod framing;
pub mod gather;
pub mod id;
pub mod inert;
pub mod layout;
pub mod message;
pub mod mirror;
pub mod proxied;
pub mod reply;
pub mod revision;
pub mod scan;
pub mod splice;
pub mod strict;
pub mod visible;
pub mod vocabulary;

pub use framing::sse::{SseCut, SseDeframer, SseEvent};
pub use framing::{Cut, Deframer, Ending, Frame, FrameRef, Framing};
pub use gather::Gather;
pub use id::Id;
pub use message::Message;
pub use revision::{Era, Revision};
pub use scan::{Ambiguity, Kind, Peek, Span};
pub use vocabulary::{
    Direction, Lasting, MessageKind, Mode, OnDetach, OutcomeKind, Owner, Permission, ServerState, Side, Transport,
    VerdictKind,
};
