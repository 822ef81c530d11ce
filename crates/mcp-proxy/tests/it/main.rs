//! The program, end to end: real processes, real pipes, a home of its own for each test.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bad_input;
mod bridge_bad_input;
mod bridge_crowds;
mod bridge_endings;
mod bridge_event_ids;
mod bridge_kit;
mod bridge_line_breaks;
mod bridge_reopen;
mod bridge_sessions;
mod bridge_sse_client;
mod bridge_sse_server;
mod bridge_to_http;
mod bridge_tools;
mod commands;
mod disconnects;
mod durability;
mod endings;
mod exchanges;
mod framing;
mod http_bad_input;
mod http_bad_server;
mod http_endings;
mod http_exchanges;
mod http_identity;
mod http_inspect;
mod http_kit;
mod http_login;
mod http_paths;
mod http_streams;
mod http_tls;
mod hygiene;
mod identity;
mod identity_to_client;
mod identity_to_server;
mod inspect;
mod kit;
mod pipes;
mod readme;
mod replay;
mod replay_edits;
mod replay_targets;
mod resumption;
mod store;
mod tools_kit;
