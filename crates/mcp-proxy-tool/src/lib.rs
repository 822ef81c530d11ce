//! The MCP Proxy Extension: one tool that lists, describes and calls whatever there is. What a caller of the tool
//! means, what it is answered, and how its answers become native ones again. Text in, text out: who has the
//! capabilities, and how they are reached, is for others to know.

pub mod arguments;
pub mod definition;
pub mod detect;
pub mod index;
mod members;
pub mod schema;
pub mod select;
pub mod shape;
pub mod unwrap;
pub mod wrap;

pub use schema::SCHEMA;

/// What a capability is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Tool,
    Resource,
    Prompt,
}

impl Type {
    pub const ALL: [Self; 3] = [Self::Tool, Self::Resource, Self::Prompt];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// The method that uses one: `tools/call`, `resources/read`, `prompts/get`.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tool => "tools/call",
            Self::Resource => "resources/read",
            Self::Prompt => "prompts/get",
        }
    }
}
