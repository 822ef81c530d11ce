//! How faces and running proxies meet, and what they say to each other. Every face (the commands, a
//! terminal, a page) speaks through the control API and has no other way in. Of the other
//! crates it uses the vocabulary of `mcp-wire`: a client of an instance needs no more. The server is the program's.

pub mod api;
pub mod client;
pub mod instances;

pub use client::{Address, Client, ClientError, Events};
pub use instances::Instances;
