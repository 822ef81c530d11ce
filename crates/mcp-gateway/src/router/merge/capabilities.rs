//! What all servers can do together. A client that is told so asks for it, so nothing is declared that would
//! not be delivered, and nothing that a strict reader would refuse the whole answer for.

use std::collections::BTreeMap;

use bytes::Bytes;
use mcp_wire::{Era, scan};

use super::Part;
use crate::router::place::{composed, is_sound};

/// Bytes of one server's description of one capability; no known one needs as many.
const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Capabilities of one kind, of all servers together.
const MEMBERS_MAX: usize = 256;

/// Names and JSON; sorted, so that the same servers are always introduced alike.
type Members = BTreeMap<String, Bytes>;

/// The union of what the servers declare, for a client of this era. Of what two declare, the first counts,
/// except that `true` wins. With servers `missing`, everything common is declared in advance: a client that
/// is not told of a capability never asks for it.
pub fn capabilities(parts: &[Part<'_>], missing: usize, era: Era, tool: OwnTool) -> Bytes {
    let mut union = Union::default();
    if missing > 0 {
        union.common();
    }
    for part in parts {
        union.add(part.answer, era);
    }
    match tool {
        OwnTool::None => {}
        OwnTool::Beside => drop(union.groups.entry("tools").or_default()),
        // The list of one tool never changes, and there is no other.
        OwnTool::Instead => {
            union.groups.retain(|group, _| !matches!(*group, "tools" | "prompts" | "resources" | "completions"));
            union.groups.insert("tools", Members::new());
        }
    }
    union.written()
}

/// Whether there is a tool beside what the servers have, or instead of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnTool {
    #[default]
    None,
    Beside,
    Instead,
}

#[derive(Default)]
struct Union {
    /// Those that are merged member by member.
    groups: BTreeMap<&'static str, Members>,
    others: Members,
    /// Of tasks as the last revision with a handshake has them: what the gateway routes.
    tasks_cancel: bool,
    tasks_of_tools: bool,
}

impl Union {
    fn common(&mut self) {
        for group in ["tools", "prompts", "resources"] {
            put(self.groups.entry(group).or_default(), "listChanged", Bytes::from_static(b"true"));
        }
        put(self.groups.entry("resources").or_default(), "subscribe", Bytes::from_static(b"true"));
        self.groups.entry("logging").or_default();
        self.groups.entry("completions").or_default();
    }

    fn add(&mut self, answer: &Bytes, era: Era) {
        let is_modern = scan::member_at(answer, ["result", "supportedVersions"]).is_some();
        let Some(declared) = scan::member_at(answer, ["result", "capabilities"]) else { return };
        let declared = answer.slice(declared.range());
        for (name, value) in scan::object_members(&declared) {
            let value = declared.slice(value.range());
            if value.len() > VALUE_BYTES_MAX || !is_sound(&value) {
                continue;
            }
            match &*name {
                "tools" => self.group("tools", &value, is_flag),
                "prompts" => self.group("prompts", &value, is_flag),
                "resources" => self.group("resources", &value, is_flag),
                "logging" => self.group("logging", &value, |_, _| true),
                "completions" => self.group("completions", &value, |_, _| true),
                "experimental" => self.group("experimental", &value, |_, value| value.starts_with(b"{")),
                // Extensions of the modern era work by what a legacy client cannot say.
                "extensions" if era == Era::Legacy && is_modern => {}
                "extensions" => self.group("extensions", &value, |_, value| value.starts_with(b"{")),
                "tasks" if era == Era::Legacy => self.tasks(&value),
                "tasks" => {}
                _ => put(&mut self.others, &name, value),
            }
        }
    }

    fn group(&mut self, group: &'static str, object: &Bytes, fits: impl Fn(&str, &[u8]) -> bool) {
        if !object.starts_with(b"{") {
            return;
        }
        let members = self.groups.entry(group).or_default();
        for (name, value) in scan::object_members(object) {
            let value = object.slice(value.range());
            if fits(&name, &value) {
                put(members, &name, value);
            }
        }
    }

    /// Tasks are found by their ids, which tell whose they are; there is no list of all of them.
    fn tasks(&mut self, declared: &[u8]) {
        let has = |path: &[&str]| {
            let value = scan::member_at(declared, path.iter().copied());
            value.is_some_and(|value| declared[value.range()].starts_with(b"{"))
        };
        self.tasks_cancel |= has(&["cancel"]);
        self.tasks_of_tools |= has(&["requests", "tools", "call"]);
    }

    fn written(self) -> Bytes {
        let object = |members: &Members| {
            let members: Vec<_> = members.iter().map(|(name, json)| (name.as_str(), json.clone())).collect();
            composed(&members)
        };
        let mut whole: Members = self.others;
        for (group, members) in &self.groups {
            whole.insert((*group).into(), object(members));
        }
        if self.tasks_of_tools {
            let cancel = if self.tasks_cancel { r#""cancel":{},"# } else { "" };
            let tasks = format!(r#"{{{cancel}"requests":{{"tools":{{"call":{{}}}}}}}}"#);
            whole.insert("tasks".into(), tasks.into());
        }
        object(&whole)
    }
}

/// Nothing is known here beside the two flags, and those that are no flags would be refused.
fn is_flag(name: &str, value: &[u8]) -> bool {
    !matches!(name, "listChanged" | "subscribe") || matches!(value, b"true" | b"false")
}

fn put(members: &mut Members, name: &str, value: Bytes) {
    let is_taken = match members.get(name) {
        Some(known) => &value[..] != b"true" || &known[..] != b"false",
        None => members.len() >= MEMBERS_MAX,
    };
    if !is_taken {
        members.insert(name.to_owned(), value);
    }
}
