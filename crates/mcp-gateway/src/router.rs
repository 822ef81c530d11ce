//! Many servers as one: what their things are called towards clients, and what is said in the name of all of
//! them. Everything here is a function of bytes; who is asked when, and who waits, is for others.
//!
//! What a server said is never written anew. Names, addresses and task ids in it are replaced where they
//! stand, `_meta` is added to, and all else leaves as it came: schemas, numbers, key order and blanks.

pub mod cursor;
pub mod era;
pub mod merge;
mod names;
mod namespace;
mod place;
pub mod rewrite;
#[cfg(test)]
mod schema;
mod template;

pub use names::{Claimant, Collision, Found, Names};
pub use namespace::Namespace;
pub use rewrite::{Item, Page, RefKind};

/// Keys of ours in `_meta`. The prefix is a domain name in reverse, as the protocol asks; those whose second
/// label is `mcp` or `modelcontextprotocol` belong to the protocol.
pub mod meta {
    /// Of a listed item: the id of the server that has it.
    pub const SERVER: &str = "io.github.mcp-proxy/server";
    /// Of a listed item: what its server calls it, name or address.
    pub const ORIGINAL: &str = "io.github.mcp-proxy/original";
    /// Of a merged list: the servers that are not in it, and why.
    pub const ABSENT: &str = "io.github.mcp-proxy/absent";
    /// Of a merged list: the servers of which not all items are in it, and why.
    pub const CUT: &str = "io.github.mcp-proxy/cut";
    /// Of a notification of progress: what came of an operation that is done, of several.
    pub const PARTIAL: &str = "io.github.mcp-proxy/partial";
}

/// The lists that servers have, each with what it lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListKind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl ListKind {
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    pub fn from_method(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// The request that asks for it.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// The capability by which a server says that it has it.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        }
    }

    /// The member of the result that holds it.
    pub fn result_key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The member of an item that its users name.
    pub fn name_key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}
