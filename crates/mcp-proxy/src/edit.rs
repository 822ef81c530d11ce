//! Messages changed before they are sent: what replaying and holding them have in common.

pub(crate) mod assignment;
pub(crate) mod editor;

pub(crate) use assignment::{Assignment, assignment};
