//! The meaning of a message: the capability it asks for, under its own name. A call of a proxy tool means the
//! capabilities that its arguments name; every other message means what it says.

mod through;

use std::sync::LazyLock;

use mcp_wire::fold::skeleton;
use mcp_wire::strict::{self, JudgedKeys};
use mcp_wire::{Kind, Message, scan};

/// What a message asks for.
#[derive(Debug)]
pub(crate) enum Meaning {
    /// What it says.
    Itself,
    /// What it says, and these uses of other things: it has the shape of a call of somebody's proxy tool.
    Also(Vec<Message>),
    /// These, whatever it says: the tool is only how they are reached.
    Instead(Vec<Message>),
    /// It can be read two ways.
    Unclear(String),
}

/// The members by which a proxy tool goes.
static KEYS: LazyLock<JudgedKeys> = LazyLock::new(|| JudgedKeys::new(["action", "type", "path", "args", "operations"]));
static ACTION: LazyLock<String> = LazyLock::new(|| skeleton("action").into());

/// What `said` asks for, where `unwraps` is the proxy tool through which everything of the server is reached.
pub(crate) fn meaning(said: &Message, unwraps: Option<&str>) -> Meaning {
    if said.kind() != Kind::Request || said.method().as_deref() != Some("tools/call") {
        return Meaning::Itself;
    }
    let Some(arguments) = scan::member_at(said.bytes(), ["params", "arguments"]) else { return Meaning::Itself };
    let arguments = said.slice(arguments);
    let is_unwrapped = unwraps.is_some() && said.name().as_deref() == unwraps;
    if !is_unwrapped && !may_use_others(arguments) {
        return Meaning::Itself;
    }
    // What one server reads as a path, another must not read as something else.
    if let Err(unfit) = strict::check(said, &KEYS) {
        return Meaning::Unclear(unfit.to_string());
    }
    match through::uses(said, arguments, is_unwrapped) {
        Err(why) => Meaning::Unclear(why),
        Ok(uses) if uses.is_empty() => Meaning::Itself,
        Ok(uses) if is_unwrapped => Meaning::Instead(uses),
        Ok(uses) => Meaning::Also(uses),
    }
}

/// What a message uses besides what it says, as far as that is clear: each as a request of its own.
pub fn uses_of(said: &Message) -> Vec<Message> {
    match meaning(said, None) {
        Meaning::Also(uses) => uses,
        Meaning::Itself | Meaning::Instead(_) | Meaning::Unclear(_) => Vec::new(),
    }
}

/// Whether a server could take these arguments for those of a proxy tool that is to use something. Every spelling
/// counts that somebody may take for the right one: what is ambiguous is found out afterwards.
fn may_use_others(arguments: &[u8]) -> bool {
    let is_use = |text: &str| ["call", "batch"].iter().any(|action| text.trim().eq_ignore_ascii_case(action));
    let mut actions = scan::object_members(arguments).filter(|(key, _)| skeleton(key) == **ACTION);
    actions.any(|(_, span)| scan::decode_string(&arguments[span.range()]).is_some_and(|text| is_use(&text)))
}

#[cfg(test)]
mod tests;
