//! Playbooks of the gateway: conversations over memory sides under paused time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod kit;

mod answers;
mod calls;
mod eras;
mod given_up;
mod lists;
mod no_io;
mod proxy_tool;
mod questions;
mod restarts;
mod routing;
mod subscriptions;
mod unwrapping;
