//! Everything that is shown, without a terminal: keys, news and time come in, effects are left behind.
//!
//! A screen is a struct with `enter`, `command` and whatever news concerns it. What screens share is
//! [`common::Common`]; what one wants of another goes through it too.

pub(crate) mod audit;
pub(crate) mod breakpoints;
pub(crate) mod cache;
pub(crate) mod coach;
pub(crate) mod common;
pub(crate) mod cursor;
pub(crate) mod detail;
pub(crate) mod editor;
pub(crate) mod fate;
pub(crate) mod held;
pub(crate) mod menu;
pub(crate) mod palette;
pub(crate) mod prompt;
pub(crate) mod repeater;
pub(crate) mod servers;
pub(crate) mod sessions;
pub(crate) mod tools;
pub(crate) mod traffic;
pub(crate) mod waterfall;
