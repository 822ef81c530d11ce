//! The tool that reaches everything, and those of servers that are looked behind.

use mcp_gateway::settings::{ProxyToolMode, ProxyToolSettings, UnwrapTool};
use mcp_proxy_tool::definition::DEFAULT_NAME;
use mcp_proxy_tool::shape::Dialect;

use crate::config::{Located, Value, said};
use crate::gateway::fields::{Fields, Reader};
use crate::gateway::ids;
use crate::gateway::keys::PROXY_TOOL;

const MODES: [(&str, ProxyToolMode); 2] = [("beside", ProxyToolMode::Beside), ("instead", ProxyToolMode::Instead)];

const DIALECTS: [(&str, Dialect); 2] = [("extension", Dialect::Extension), ("magg", Dialect::Magg)];

/// `proxy_tool` of the gateway.
pub(super) fn read(top: &Fields<'_>, reader: &mut Reader<'_>) -> Option<ProxyToolSettings> {
    let located = top.get("proxy_tool", reader)?;
    let (name, mode, dialect) = match &located.value {
        Value::Flag(false) => return None,
        Value::Flag(true) => (None, None, None),
        Value::Table(_) => {
            let fields = reader.fields(located, "`proxy_tool`", PROXY_TOOL)?;
            let name = fields.get("name", reader).map(|name| tool_name(name, "`name`", reader));
            (name, fields.word("mode", &MODES, reader), fields.word("dialect", &DIALECTS, reader))
        }
        _ => (Some(tool_name(located, "`proxy_tool`", reader)), None, None),
    };
    let name = name.unwrap_or_else(|| Some(DEFAULT_NAME.to_owned()))?;
    Some(ProxyToolSettings { name, mode: mode.unwrap_or_default(), dialect: dialect.unwrap_or_default() })
}

/// `unwrap_proxy_tool` of a server.
pub(super) fn unwrapped(fields: &Fields<'_>, reader: &mut Reader<'_>) -> Option<UnwrapTool> {
    let located = fields.get("unwrap_proxy_tool", reader)?;
    match &located.value {
        Value::Flag(false) => None,
        Value::Flag(true) => Some(UnwrapTool::Found),
        _ => tool_name(located, "`unwrap_proxy_tool`", reader).map(UnwrapTool::Named),
    }
}

fn tool_name(located: &Located, what: &str, reader: &mut Reader<'_>) -> Option<String> {
    let name = reader.text(located, what)?.value;
    if let Err(why) = ids::check_tool(&name) {
        reader.wrong(&located.span, format!("no tool can be called {}: {why}", said(&name)), "`proxy` would do");
        return None;
    }
    Some(name)
}
