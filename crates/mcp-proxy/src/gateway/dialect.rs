//! Files of servers as clients write them, read as they stand. Which client's a file is shows in what is in
//! it, not in its name. Whatever it is, it is translated into the gateway's own form, in which every value
//! still knows its place in the file; what only the client understands is left out, and told.

mod entry;
mod registry;
mod variables;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::fields::Reader;
use super::ids;
use super::keys::{TOP, names};
use crate::config::{Located, Member, Mistake, Value, each, member, said};
use entry::Entry;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Native,
    /// Claude Desktop, Cursor, Windsurf, Gemini, Cline, Copilot, LM Studio, Kiro and their like.
    McpServers,
    ClaudeCode,
    Amp,
    VsCode,
    Codex,
    Zed,
    Opencode,
    Goose,
    Continue,
    Vibe,
    Registry,
}

impl Dialect {
    /// What a file of it is, for people.
    pub fn about(self) -> &'static str {
        match self {
            Self::Native => "a gateway's own configuration",
            Self::McpServers => "a client's file with `mcpServers` (Claude, Cursor, Windsurf, Gemini and others)",
            Self::ClaudeCode => "Claude Code's file, for everywhere and for this directory",
            Self::Amp => "Amp's settings (`amp.mcpServers`)",
            Self::VsCode => "VS Code's file (`servers` and `inputs`)",
            Self::Codex => "Codex's file (`mcp_servers`)",
            Self::Zed => "Zed's settings (`context_servers`)",
            Self::Opencode => "opencode's file (`mcp`)",
            Self::Goose => "Goose's file (`extensions`)",
            Self::Continue => "Continue's file (a list of `mcpServers`)",
            Self::Vibe => "Mistral Vibe's file (a list of `mcp_servers`)",
            Self::Registry => "a registry's description of a server (`server.json`)",
        }
    }
}

/// What Claude Code keeps about the servers of a project.
const OF_PROJECTS: [&str; 2] = ["mcpServers", "disabledMcpServers"];

/// A server as its client has it.
struct Found<'t> {
    /// What the client calls it, and where.
    name: &'t str,
    name_at: Range<usize>,
    entry: &'t Located,
    /// The client has switched it off somewhere else.
    is_off: bool,
}

/// The configuration in the gateway's own form, and what it was.
pub(super) fn translated(root: &Located, reader: &mut Reader<'_>) -> Option<(Dialect, Located)> {
    let top = reader.reading.table(root, "a configuration")?;
    let dialect = recognised(top, root, reader)?;
    let of = |key: &str| member(top, key).map(|member| &member.value);
    let within = |key: &str, inner: &str| of(key).and_then(|located| inside(located, inner));
    let found = match dialect {
        Dialect::Native => return Some((dialect, root.clone())),
        Dialect::Registry => return registry::translated(top, root, reader).map(|native| (dialect, native)),
        Dialect::McpServers => {
            let mut found = in_table(of("mcpServers")?, reader);
            // Gemini's lists of servers that it uses, and of those that it does not.
            let (allowed, excluded) = (within("mcp", "allowed"), within("mcp", "excluded"));
            for server in &mut found {
                server.is_off = allowed.is_some_and(|allowed| !lists(allowed, server.name))
                    || excluded.is_some_and(|excluded| lists(excluded, server.name));
            }
            found
        }
        Dialect::ClaudeCode => of_claude_code(top, reader),
        Dialect::Amp => in_table(of("amp.mcpServers")?, reader),
        Dialect::VsCode => in_table(of("servers").or(within("mcp", "servers"))?, reader),
        Dialect::Codex => in_table(of("mcp_servers")?, reader),
        Dialect::Zed => in_table(of("context_servers")?, reader),
        Dialect::Opencode => in_table(of("mcp")?, reader),
        Dialect::Goose => in_table(of("extensions")?, reader),
        Dialect::Continue => in_list(of("mcpServers")?, reader),
        Dialect::Vibe => in_list(of("mcp_servers")?, reader),
    };
    let inputs = of("inputs").or(within("mcp", "inputs"));
    let servers = servers(found, dialect, inputs, reader);
    Some((dialect, in_native_form(servers, root)))
}

/// `{"servers": …}`, at the place of the file's own.
fn in_native_form(servers: Vec<Member>, root: &Located) -> Located {
    let place = root.span.start..root.span.start;
    let servers = Located { value: Value::Table(servers), span: place.clone() };
    let top = vec![Member { key: "servers".into(), key_span: place, value: servers }];
    Located { value: Value::Table(top), span: root.span.clone() }
}

fn recognised(top: &[Member], root: &Located, reader: &mut Reader<'_>) -> Option<Dialect> {
    let of = |key: &str| member(top, key).map(|member| &member.value.value);
    let is_list = |value: &Value| matches!(value, Value::List(_));
    if let (Some(servers), Some(others)) = (member(top, "servers"), member(top, "mcpServers")) {
        let mistake = Mistake::at(others.key_span.clone(), "this file has `servers` and `mcpServers`");
        reader.reading.mistakes.add(mistake.other("only one can count; `servers` is", servers.key_span.start));
        return None;
    }
    let dialect = if let Some(servers) = of("servers") {
        if is_of_vs_code(servers, top) { Dialect::VsCode } else { Dialect::Native }
    } else if of("projects").is_some_and(|projects| has_members(projects, |entry| has(entry, &OF_PROJECTS))) {
        Dialect::ClaudeCode
    } else if let Some(servers) = of("mcpServers") {
        if is_list(servers) { Dialect::Continue } else { Dialect::McpServers }
    } else if of("amp.mcpServers").is_some() {
        Dialect::Amp
    } else if let Some(servers) = of("mcp_servers") {
        if is_list(servers) { Dialect::Vibe } else { Dialect::Codex }
    } else if of("context_servers").is_some() {
        Dialect::Zed
    } else if of("extensions").is_some_and(|all| has_members(all, |entry| has(entry, &["cmd", "uri", "type"]))) {
        Dialect::Goose
    } else if let Some(mcp) = of("mcp") {
        if has(mcp, &["servers"]) { Dialect::VsCode } else { Dialect::Opencode }
    } else if of("packages").is_some_and(is_list) || of("remotes").is_some_and(is_list) {
        Dialect::Registry
    } else if top.iter().any(|member| names(TOP).contains(&member.key.as_str())) {
        Dialect::Native
    } else {
        unrecognised(top, root, reader);
        return None;
    };
    Some(dialect)
}

/// A table of servers, which could be ours, too. Only VS Code has `inputs`, and says `type` where we say
/// `transport`.
fn is_of_vs_code(servers: &Value, top: &[Member]) -> bool {
    if !matches!(servers, Value::Table(_)) {
        return false;
    }
    let others = || top.iter().map(|member| member.key.as_str()).filter(|key| *key != "servers");
    let is_ours = others().any(|key| names(TOP).contains(&key));
    others().any(|key| key == "inputs") || !is_ours && has_members(servers, |entry| has(entry, &["type"]))
}

fn unrecognised(top: &[Member], root: &Located, reader: &mut Reader<'_>) {
    const HOMES: [&str; 7] =
        ["servers", "mcpServers", "amp.mcpServers", "mcp_servers", "context_servers", "extensions", "mcp"];
    let slip = top.iter().find_map(|member| mcp_filter::nearest(&member.key, HOMES).map(|near| (member, near)));
    let mistake = match slip {
        Some((member, near)) => Mistake::at(member.key_span.clone(), format!("unknown key {}", said(&member.key)))
            .help(format!("did you mean `{near}`?")),
        None => Mistake::at(root.span.start..root.span.start, "there are no servers in this file")
            .help("they stand under `servers`, or under `mcpServers` and the like in a client's file"),
    };
    reader.reading.mistakes.add(mistake);
}

fn has(value: &Value, keys: &[&str]) -> bool {
    matches!(value, Value::Table(members) if keys.iter().any(|key| member(members, key).is_some()))
}

fn has_members(value: &Value, is_one: impl Fn(&Value) -> bool) -> bool {
    matches!(value, Value::Table(members) if members.iter().any(|member| is_one(&member.value.value)))
}

fn inside<'t>(located: &'t Located, key: &str) -> Option<&'t Located> {
    match &located.value {
        Value::Table(members) => member(members, key).map(|member| &member.value),
        _ => None,
    }
}

/// `name: {…}`
fn in_table<'t>(servers: &'t Located, reader: &mut Reader<'_>) -> Vec<Found<'t>> {
    let members = reader.reading.table(servers, "what has the servers").unwrap_or_default();
    let found = |member: &'t Member| Found {
        name: &member.key,
        name_at: member.key_span.clone(),
        entry: &member.value,
        is_off: false,
    };
    each(members).map(found).collect()
}

/// `{name: …, …}`
fn in_list<'t>(servers: &'t Located, reader: &mut Reader<'_>) -> Vec<Found<'t>> {
    let mut found = Vec::new();
    for entry in reader.reading.list(servers, "what has the servers").unwrap_or_default() {
        let Some(members) = reader.reading.table(entry, "a server") else { continue };
        let Some(name) = member(members, "name") else {
            reader.wrong(&entry.span, "this server has no `name`", "its names begin with it");
            continue;
        };
        if let Some(text) = reader.reading.text(&name.value, "`name`") {
            found.push(Found { name: text, name_at: name.value.span.clone(), entry, is_off: false });
        }
    }
    found
}

/// Those for everywhere, and those of the project that the working directory is in, which count before
/// them.
fn of_claude_code<'t>(top: &'t [Member], reader: &mut Reader<'_>) -> Vec<Found<'t>> {
    let mut found = member(top, "mcpServers").map(|all| in_table(&all.value, reader)).unwrap_or_default();
    let projects = member(top, "projects").and_then(|projects| match &projects.value.value {
        Value::Table(members) => Some(members),
        _ => None,
    });
    let cwd = reader.world.cwd.clone();
    let here = cwd.ancestors().find_map(|dir| member(projects?, dir.to_str()?));
    if let Some(servers) = here.and_then(|project| inside(&project.value, "mcpServers")) {
        let own = in_table(servers, reader);
        found.retain(|other| own.iter().all(|server| server.name != other.name));
        found.extend(own);
    }
    let off = here.and_then(|project| inside(&project.value, "disabledMcpServers"));
    for server in &mut found {
        server.is_off = off.is_some_and(|off| lists(off, server.name));
    }
    found
}

/// Whether a list has this text.
fn lists(list: &Located, text: &str) -> bool {
    let is_it = |item: &Located| matches!(&item.value, Value::Text(item) if item == text);
    matches!(&list.value, Value::List(items) if items.iter().any(is_it))
}

fn servers(found: Vec<Found<'_>>, dialect: Dialect, inputs: Option<&Located>, reader: &mut Reader<'_>) -> Vec<Member> {
    let (mut servers, mut ids, mut clashes) = (Vec::new(), HashMap::new(), HashSet::new());
    for Found { name, name_at, entry, is_off } in found {
        let Some(members) = reader.reading.table(entry, "a server") else { continue };
        let id = ids::tidied(name);
        if id.is_empty() {
            reader.wrong(&name_at, "this server has no name", "its names begin with it");
            continue;
        }
        let Some(translated) = Entry::new(members, dialect, inputs, reader).translated(name, &name_at, is_off) else {
            continue;
        };
        if let Some((other, first)) = ids.insert(id.clone(), (name, name_at.start))
            && clashes.insert(id.clone())
        {
            let what = format!("{} and {} would both be the server `{id}`", said(other), said(name));
            reader.reading.mistakes.add(Mistake::at(name_at.clone(), what).other("rename either; the other is", first));
            continue;
        }
        let value = Located { value: Value::Table(translated), span: entry.span.clone() };
        servers.push(Member { key: id, key_span: name_at, value });
    }
    servers
}
