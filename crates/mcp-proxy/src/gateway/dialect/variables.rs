//! What clients let people write in place of a value, in the gateway's own way of writing it.

use std::borrow::Cow;

use super::Dialect;
use crate::config::{Located, Value, member};
use crate::gateway::world::World;

/// Where a text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A word of a command, where `${…}` may be meant for a shell.
    Command,
    /// A variable of the server's environment.
    Environment,
    Other,
}

/// What cannot be written otherwise.
#[derive(Debug)]
pub(super) struct Unknown {
    pub what: String,
    pub help: String,
    /// The text is kept as it is, and somebody is told.
    pub is_harmless: bool,
}

pub(super) struct Variables<'a> {
    pub dialect: Dialect,
    pub world: &'a World,
    pub inputs: Option<&'a Located>,
}

impl Variables<'_> {
    /// The text in the gateway's own form, in which only `${env:…}` and `${file:…}` mean something; and
    /// what was kept as it is.
    pub(super) fn rewritten(&self, text: &str, place: Place) -> Result<(String, Vec<Unknown>), Unknown> {
        let text = self.without_braces(text, place);
        let (mut written, mut rest, mut kept) = (String::new(), &*text, Vec::new());
        while let Some(at) = rest.find("${") {
            let Some(length) = rest[at..].find('}') else { break };
            written.push_str(&rest[..at]);
            let whole = &rest[at..=at + length];
            let meaning = match self.meaning(&whole[2..length], place) {
                Err(unknown) if unknown.is_harmless => {
                    kept.push(unknown);
                    None
                }
                other => other?,
            };
            // What means nothing stays as it stands.
            written.push_str(&meaning.unwrap_or_else(|| format!("${whole}")));
            rest = &rest[at + length + 1..];
        }
        // Brackets that are never closed mean nothing to anybody.
        written.push_str(rest);
        Ok((written, kept))
    }

    /// Ways of writing that have no `${…}`.
    fn without_braces<'t>(&self, text: &'t str, place: Place) -> Cow<'t, str> {
        let is_name =
            |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match self.dialect {
            Dialect::Opencode if text.contains("{env:") || text.contains("{file:") => {
                let dollars = text.replace("${", "{").replace("{env:", "${env:").replace("{file:", "${file:");
                Cow::Owned(dollars)
            }
            Dialect::Continue if text.contains("${{") => Cow::Owned(secrets(text)),
            // Gemini's way. A variable that is to begin with a dollar is not heard of.
            Dialect::McpServers if place == Place::Environment => match text.strip_prefix('$') {
                Some(name) if is_name(name) && !name.starts_with(|c: char| c.is_ascii_digit()) => {
                    Cow::Owned(format!("${{env:{name}}}"))
                }
                _ => Cow::Borrowed(text),
            },
            _ => Cow::Borrowed(text),
        }
    }

    /// What `${inner}` means, in our own form; `None` if it means nothing.
    fn meaning(&self, inner: &str, place: Place) -> Result<Option<String>, Unknown> {
        if inner.starts_with("env:") || inner.starts_with("file:") {
            return Ok(Some(format!("${{{inner}}}")));
        }
        if let Some(input) = inner.strip_prefix("input:") {
            return self.input(input).map(Some);
        }
        let directory = |path: &str| Ok(Some(path.replace("${", "$${")));
        let cwd = || self.world.cwd.to_string_lossy().into_owned();
        match (inner, self.has_folders()) {
            ("workspaceFolder", true) => return directory(&cwd()),
            ("workspaceFolderBasename", true) => return directory(cwd().rsplit('/').next().unwrap_or_default()),
            ("userHome", true) => return directory(self.world.home().unwrap_or("/")),
            ("pathSeparator" | "/", true) => return Ok(Some("/".into())),
            _ => {}
        }
        if self.has_plain_variables() { self.plain(inner, place) } else { Ok(None) }
    }

    fn has_folders(&self) -> bool {
        matches!(self.dialect, Dialect::VsCode | Dialect::McpServers | Dialect::ClaudeCode | Dialect::Amp)
    }

    fn has_plain_variables(&self) -> bool {
        matches!(self.dialect, Dialect::McpServers | Dialect::ClaudeCode | Dialect::Amp)
    }

    /// `${NAME}` and `${NAME:-default}`
    fn plain(&self, inner: &str, place: Place) -> Result<Option<String>, Unknown> {
        let name = inner.split(":-").next().unwrap_or_default();
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !is_name {
            return Ok(None);
        }
        let is_known = name.len() < inner.len() || self.world.variable(name).is_some();
        // A client that has no variables leaves this to a shell.
        if place == Place::Command && !is_known {
            let what = format!("`{name}` is not set in the environment, so `${{{name}}}` stays as it is");
            return Err(Unknown { what, help: "set it if it is meant as a variable".into(), is_harmless: true });
        }
        Ok(Some(format!("${{env:{inner}}}")))
    }

    /// What the client would ask its user for.
    fn input(&self, name: &str) -> Result<String, Unknown> {
        if let Some(value) = self.world.input(name) {
            return Ok(value.replace("${", "$${"));
        }
        let in_capitals = name.to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let is_set = |variable: &&str| self.world.variable(variable).is_some_and(|value| !value.is_empty());
        if let Some(variable) = [name, &in_capitals].into_iter().find(is_set) {
            return Ok(format!("${{env:{variable}}}"));
        }
        match self.default_of(name) {
            Some(default) => Ok(default.replace("${", "$${")),
            None => Err(Unknown {
                what: format!("the client would ask for `{name}` here, and a gateway has nobody to ask"),
                help: format!("set {in_capitals} in the environment, or give --input {name}=VALUE"),
                is_harmless: false,
            }),
        }
    }

    fn default_of(&self, name: &str) -> Option<&str> {
        let Value::List(inputs) = &self.inputs?.value else { return None };
        let text = |members, key| match member(members, key).map(|member| &member.value.value) {
            Some(Value::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        inputs.iter().find_map(|input| match &input.value {
            Value::Table(members) if text(members, "id") == Some(name) => {
                text(members, "default").filter(|default| !default.is_empty())
            }
            _ => None,
        })
    }
}

/// `${{ secrets.NAME }}` of Continue, which we look for in the environment.
fn secrets(text: &str) -> String {
    let (mut written, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("${{") {
        let Some(length) = rest[at..].find("}}") else { break };
        let inner = rest[at + 3..at + length].trim();
        written.push_str(&rest[..at]);
        match inner.strip_prefix("secrets.").or(inner.strip_prefix("inputs.")) {
            Some(name) => written.push_str(&format!("${{env:{name}}}")),
            None => written.push_str(&rest[at..at + length + 2]),
        }
        rest = &rest[at + length + 2..];
    }
    written + rest
}
