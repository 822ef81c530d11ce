//! Named filters that hold what they match.

use std::sync::Arc;

use mcp_filter::Filter;

use super::Owner;

/// Breakpoints at once: more than a person keeps in mind, and each costs every message a little.
const BREAKPOINTS_MAX: usize = 64;
/// Characters of a breakpoint's name: a person types it.
const NAME_MAX: usize = 64;

#[derive(Clone, Debug)]
pub struct Breakpoint {
    pub name: Arc<str>,
    pub filter: Filter,
    pub owner: Owner,
    /// Messages that it has held.
    pub hits: u64,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BreakpointError {
    #[error("there are {BREAKPOINTS_MAX} breakpoints already; remove one first")]
    TooMany,
    #[error("a name has up to {NAME_MAX} letters, digits, `-`, `_` and `.`, and one of them is no digit")]
    Name,
    #[error("there is a breakpoint `{0}` already; remove it first, or choose another name")]
    Taken(Arc<str>),
}

/// Adds a breakpoint; one without a name is given one.
pub(super) fn add(
    breakpoints: &mut Vec<Breakpoint>,
    name: Option<String>,
    filter: Filter,
    owner: Owner,
) -> Result<Arc<str>, BreakpointError> {
    if breakpoints.len() >= BREAKPOINTS_MAX {
        return Err(BreakpointError::TooMany);
    }
    let name: Arc<str> = match name {
        Some(name) if !is_name(&name) => return Err(BreakpointError::Name),
        Some(name) => name.into(),
        None => unused_name(breakpoints),
    };
    if breakpoints.iter().any(|breakpoint| breakpoint.name == name) {
        return Err(BreakpointError::Taken(name));
    }
    breakpoints.push(Breakpoint { name: Arc::clone(&name), filter, owner, hits: 0 });
    Ok(name)
}

/// A name is typed and shown, and is told apart from the number of a message.
fn is_name(name: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_fine) && !name.bytes().all(|byte| byte.is_ascii_digit())
}

fn unused_name(breakpoints: &[Breakpoint]) -> Arc<str> {
    let names = (1..).map(|number: usize| format!("b{number}"));
    let is_free = |name: &String| breakpoints.iter().all(|breakpoint| *breakpoint.name != **name);
    names.into_iter().find(is_free).unwrap_or_default().into()
}
