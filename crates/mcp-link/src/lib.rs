//! The runtime of a conversation. A [`Link`] joins a client side and a server side: each message passes the pipeline
//! there and goes to the other side. The [`Runtime`] owns the pipeline, writes the recording and releases held messages;
//! [`serve()`] runs a front from its first client to its last. Sides live elsewhere: pipes, sockets and processes in the
//! transport, many servers as one in the gateway, memory in playbooks.

pub mod link;
pub mod queue;
pub mod runtime;
pub mod serve;
pub mod side;

pub use link::Link;
pub use runtime::Runtime;
pub use serve::{Ended, Front, Interrupts, serve};
pub use side::{
    Alive, Backend, ClientSide, Connector, Exchanges, Passed, ServerSide, Unready, UpstreamClient, Waiting,
};

/// Messages of one read that are passed on before the next are judged, so that their reader works meanwhile and
/// sleeps less. Fewer would cost slow peers more reads.
pub const PASSED_TOGETHER: usize = 32;
