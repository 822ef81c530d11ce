//! Many servers behind one endpoint. A client's conversation ends here and so does each connection to a server; messages
//! between them are told apart by ids of the gateway's own, and carry the names that either side knows.
//!
//! No I/O: a [`mcp_link::Connector`] reaches each server and a [`mcp_link::ClientSide`] each client, so that a playbook
//! can run a whole gateway in memory under paused time.

pub mod board;
mod catalog;
mod client;
mod elicitation;
mod gateway;
mod lifecycle;
mod notifications;
mod proxy_tool;
pub mod router;
pub mod settings;
mod subscriptions;
mod upstream;

pub use gateway::Gateway;
