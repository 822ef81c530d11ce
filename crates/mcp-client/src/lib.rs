//! A client of MCP servers. [`ProxyClient`] lists, describes and uses tools, resources and prompts, whether a server
//! has them itself or keeps them behind a proxy tool; its callers need not know which. What a server says stays the
//! JSON it said.
//!
//! Nothing happens before the first request: then the server is started or spoken to, asked which revision it knows,
//! and introduced to. Requests may be in flight at once. One whose future is dropped is taken back.

mod client;
mod connection;
mod error;
mod listing;
mod native;
mod opening;
mod proxy;
mod questions;
mod streams;

pub use client::{Client, Options, Progress, Speaks, Use};
pub use error::{ClientError, RpcError};
pub use listing::{Listing, member, text_member};
pub use mcp_proxy_tool::Type;
pub use proxy::{Mode, ProxyClient, ToolResult};
pub use questions::{NobodyAnswers, Questions};
