//! Everything that is shown, without a terminal: keys, news and time come in, effects are left behind.
//!
//! A screen is a struct with `enter`, `command` and whatever news concerns it. What screens share is
//! [`common::Common`]; what one wants of another goes through it too.

pub mod audit;
pub mod breakpoints;
pub mod cache;
pub mod coach;
pub mod common;
pub mod cursor;
pub mod detail;
pub mod editor;
pub mod fate;
pub mod held;
pub mod menu;
pub mod palette;
pub mod prompt;
pub mod repeater;
pub mod servers;
pub mod sessions;
pub mod tools;
pub mod traffic;
pub mod waterfall;
