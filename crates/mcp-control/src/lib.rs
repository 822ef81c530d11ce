//! How faces and running proxies meet, and what they say to each other. Every face (the commands, a
//! terminal, a page) speaks through the control API and has no other way in. Uses none of the other
//! crates: whoever speaks to an instance needs only this one. The server is the program's.

pub mod api;
pub mod client;
pub mod instances;

pub use client::{Address, Client, ClientError, Events};
pub use instances::Instances;
