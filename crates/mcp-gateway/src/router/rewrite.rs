//! Names, addresses and task ids, changed where they stand: in lists and other answers towards the client,
//! in requests towards the server.

mod links;
mod list;
mod request;

pub use super::place::Edits;
pub use links::{answer, notification};
pub use list::{Item, Page, page};
pub use request::{RefKind, completion_ref, request, respelled};

#[cfg(test)]
mod tests;
