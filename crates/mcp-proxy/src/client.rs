//! `list`, `info` and `call`: this program as a client of a server, for people and scripts. What it sends goes through
//! the ordinary proxy, so it is recorded and judged like everything else, over any transport.

mod args;
mod arguments;
mod call;
mod filter;
mod info;
mod known;
mod list;
mod questions;
mod schema;
mod show;
mod target;
mod told;
mod wait;
mod words;

pub(crate) use call::{CallArgs, call};
pub(crate) use info::{InfoArgs, info};
pub(crate) use list::{ListArgs, list};
