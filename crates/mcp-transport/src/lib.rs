//! Every byte that crosses the process boundary. Owns the read and write loops, and the processes
//! that servers are.

pub mod child;
pub mod connect;
pub mod http;
mod os;
pub mod peer;
pub mod signals;
pub mod stdio;

pub use os::{give_back_large_buffers, let_go_of_code, own_program, stand_back};
