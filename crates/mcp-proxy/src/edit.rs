//! Messages changed before they are sent: what replaying and holding them have in common.

pub mod assignment;
pub mod editor;

pub use assignment::{Assignment, assignment};
