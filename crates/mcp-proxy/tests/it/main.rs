//! The program, end to end: real processes, real pipes, a home of its own for each test.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bad_input;
mod commands;
mod durability;
mod endings;
mod exchanges;
mod framing;
mod hygiene;
mod identity;
mod kit;
mod pipes;
mod readme;
mod store;
