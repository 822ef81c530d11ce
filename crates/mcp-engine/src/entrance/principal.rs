//! Who a client is, and what it may use.

use std::sync::Arc;

use mcp_filter::Glob;

use super::NamedToken;

/// What everybody is called where nobody has to show anything.
pub const ANONYMOUS: &str = "anonymous";
/// What stands between a server and the name that it gives something. No server's id has it in it.
const SEPARATOR: &str = "__";

#[derive(Debug)]
pub struct Principal {
    pub name: Arc<str>,
    /// None if every server may be used; the same of tools.
    servers: Option<Vec<Glob>>,
    tools: Option<Vec<ToolPattern>>,
}

#[derive(Debug)]
struct ToolPattern {
    server: Option<Glob>,
    tool: Glob,
}

impl ToolPattern {
    /// What has the separator in it names a server first, always: otherwise a server could give its tool a
    /// name that begins like another server's.
    fn new(pattern: &str) -> Self {
        match pattern.split_once(SEPARATOR) {
            Some((server, tool)) => Self { server: Some(Glob::new(server)), tool: Glob::new(tool) },
            None => Self { server: None, tool: Glob::new(pattern) },
        }
    }

    fn matches(&self, server: &str, tool: &str) -> bool {
        self.server.as_ref().is_none_or(|pattern| pattern.matches(server)) && self.tool.matches(tool)
    }
}

impl Principal {
    /// Somebody who may use everything.
    pub fn unrestricted(name: &str) -> Self {
        Self { name: name.into(), servers: None, tools: None }
    }

    pub(super) fn of_token(named: &NamedToken) -> Self {
        let globs = |patterns: &Vec<String>| patterns.iter().map(|pattern| Glob::new(pattern)).collect();
        let tools = |patterns: &Vec<String>| patterns.iter().map(|pattern| ToolPattern::new(pattern)).collect();
        Self {
            name: named.name.as_str().into(),
            servers: named.servers.as_ref().map(globs),
            tools: named.tools.as_ref().map(tools),
        }
    }

    pub fn may_use_server(&self, server: &str) -> bool {
        self.servers.as_ref().is_none_or(|allowed| allowed.iter().any(|pattern| pattern.matches(server)))
    }

    /// Whether a tool may be called and seen, by the name that its server gives it.
    pub fn may_use_tool(&self, server: &str, tool: &str) -> bool {
        self.may_use_server(server)
            && self.tools.as_ref().is_none_or(|allowed| allowed.iter().any(|pattern| pattern.matches(server, tool)))
    }

    /// Whether both are the same client, as far as anybody here can tell.
    pub fn is(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
