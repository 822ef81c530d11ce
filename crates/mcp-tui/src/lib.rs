//! The terminal face: a client of the control API that draws. It knows instances by what they tell and
//! recordings by the [`library`] it is given, and nothing of the data path.

pub mod clipboard;
pub mod diff;
pub mod json;
pub mod library;
pub mod percentile;
pub mod schema;
pub mod text;
