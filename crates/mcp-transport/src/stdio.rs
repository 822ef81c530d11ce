//! MCP over pipes: the client on our standard input and output, the server's process behind pipes
//! of its own.

pub mod client;
pub mod pipe;
pub mod relay;
pub mod session;
pub mod stderr;
pub mod through;
pub mod writer;

pub use session::{Ended, Options, serve};
