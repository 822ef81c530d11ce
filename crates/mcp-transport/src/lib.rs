//! Every byte that crosses the process boundary. Owns the read and write loops, and the processes
//! that servers are.

pub mod child;
mod os;

pub use os::give_back_large_buffers;
pub mod stdio;
