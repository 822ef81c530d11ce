//! Files that people write by hand: JSON with comments, TOML or YAML, by the file's name. All three are
//! read into one tree that knows where everything stands, so that whatever is wrong can be shown where
//! it is. What the file is about is left to whoever reads the tree.

mod json;
mod mistake;
mod place;
mod read;
mod source;
mod toml;
mod tree;
mod yaml;

pub(crate) use mistake::{Mistake, Mistakes, said};
pub(crate) use place::within;
pub(crate) use read::{Reading, each, member};
pub(crate) use source::{Source, expand_home};
pub(crate) use tree::{Located, Member, Value};

#[cfg(test)]
mod tests;
