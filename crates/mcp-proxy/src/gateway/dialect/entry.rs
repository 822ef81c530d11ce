//! One server of a client's file, in the gateway's own keys. Clients hardly ever mean different things by
//! one key, so there is one list of what they write; where they do, the dialect decides.

use std::ops::Range;

use mcp_filter::nearest;

use super::Dialect;
use super::variables::{Place, Unknown, Variables};
use crate::config::{Located, Member, Mistake, Value, each, member};
use crate::gateway::fields::Reader;

/// What runs inside a client, where nobody else reaches it.
const BUILT_IN: [&str; 6] = ["builtin", "platform", "frontend", "inline_python", "extension", "sdk"];
/// From here on, a number without a unit can only be milliseconds.
const MILLISECONDS_FROM: f64 = 1_000.0;

/// Where a server is.
const ADDRESSES: [&str; 6] = ["command", "cmd", "url", "uri", "serverUrl", "httpUrl"];
/// Members of an entry that are read, but for its name.
const KNOWN: [&str; 41] = [
    "command",
    "cmd",
    "args",
    "arguments",
    "env",
    "environment",
    "envs",
    "env_vars",
    "env_keys",
    "cwd",
    "workingDirectory",
    "working_directory",
    "url",
    "uri",
    "serverUrl",
    "httpUrl",
    "headers",
    "http_headers",
    "env_http_headers",
    "requestOptions",
    "bearer_token_env_var",
    "api_key_env",
    "api_key_header",
    "api_key_format",
    "type",
    "transport",
    "enabled",
    "disabled",
    "startup_timeout_sec",
    "tool_timeout_sec",
    "startup_timeout_ms",
    "connectionTimeout",
    "timeout",
    "enabled_tools",
    "includeTools",
    "allowedTools",
    "disabled_tools",
    "excludeTools",
    "disabledTools",
    "tools",
    "available_tools",
];

pub(super) struct Entry<'e, 't, 'a> {
    members: &'t [Member],
    dialect: Dialect,
    inputs: Option<&'t Located>,
    reader: &'e mut Reader<'a>,
    /// What comes of it.
    native: Vec<Member>,
    env: Vec<Member>,
    headers: Vec<Member>,
    ignored: Vec<&'t Member>,
    is_enabled: bool,
}

impl<'e, 't, 'a> Entry<'e, 't, 'a> {
    pub(super) fn new(
        members: &'t [Member],
        dialect: Dialect,
        inputs: Option<&'t Located>,
        reader: &'e mut Reader<'a>,
    ) -> Self {
        Self {
            members,
            dialect,
            inputs,
            reader,
            native: Vec::new(),
            env: Vec::new(),
            headers: Vec::new(),
            ignored: Vec::new(),
            is_enabled: true,
        }
    }

    /// `None` if nothing outside of the client can be this server.
    pub(super) fn translated(mut self, name: &str, name_at: &Range<usize>, is_off: bool) -> Option<Vec<Member>> {
        let members = self.members;
        let value = |key: &str| member(members, key).map(|member| &member.value.value);
        let is_built_in = matches!(value("type"), Some(Value::Text(word)) if BUILT_IN.contains(&word.as_str()));
        let has_address = ADDRESSES.iter().any(|key| self.has(key));
        if is_built_in || self.dialect == Dialect::Zed && !has_address {
            let what = format!("`{name}` is a part of the client, so it is left out");
            self.reader.warn(name_at, what, "only commands and addresses can be behind a gateway");
            return None;
        }
        // A place for an address that is yet to come, as clients take it.
        if !self.has("command") && value("url") == Some(&Value::Text(String::new())) {
            self.reader.warn(name_at, format!("`{name}` has no address yet, so it is left out"), "set its `url`");
            return None;
        }
        self.is_enabled =
            !is_off && value("enabled") != Some(&Value::Flag(false)) && value("disabled") != Some(&Value::Flag(true));
        for member in each(members).filter(|member| member.value.value != Value::Nothing) {
            self.take(member);
        }
        self.tell_ignored(name);
        if !self.is_enabled {
            self.native.retain(|member| !["enabled", "disabled"].contains(&member.key.as_str()));
            self.put("enabled", name_at, Value::Flag(false));
        }
        let both = [("env", std::mem::take(&mut self.env)), ("headers", std::mem::take(&mut self.headers))];
        for (key, members) in both.into_iter().filter(|(_, members)| !members.is_empty()) {
            self.put(key, name_at, Value::Table(members));
        }
        self.settle();
        Some(self.native)
    }

    fn has(&self, key: &str) -> bool {
        member(self.members, key).is_some_and(|member| member.value.value != Value::Nothing)
    }

    fn take(&mut self, member: &'t Member) {
        match member.key.as_str() {
            "command" | "cmd" => self.command(member),
            "args" | "arguments" => self.list(member, "args", Place::Command),
            "env" | "environment" | "envs" => self.pairs(&member.value, Place::Environment),
            "env_vars" | "env_keys" => self.passed(member),
            "cwd" | "workingDirectory" | "working_directory" => self.text(member, "cwd"),
            "url" | "uri" | "serverUrl" if self.has("httpUrl") => self.ignored.push(member),
            "url" | "uri" | "serverUrl" => self.text(member, "url"),
            "httpUrl" => {
                self.text(member, "url");
                self.put("transport", &member.key_span, Value::Text("streamable-http".into()));
            }
            "headers" | "http_headers" => self.pairs(&member.value, Place::Other),
            "env_http_headers" => self.headers_of_variables(member),
            "requestOptions" => self.request_options(member),
            "bearer_token_env_var" | "api_key_env" => self.key_of_variable(member),
            "api_key_header" | "api_key_format" if self.has("api_key_env") => {}
            "type" | "transport" => self.transport(member),
            "enabled" | "disabled" => self.same(member, &member.key),
            "startup_timeout_sec" => self.same(member, "startup_timeout"),
            "tool_timeout_sec" => self.same(member, "response_timeout"),
            "startup_timeout_ms" | "connectionTimeout" => self.milliseconds(member, "startup_timeout"),
            "timeout" => self.timeout(member),
            "enabled_tools" | "includeTools" | "allowedTools" => self.list(member, "enabled_tools", Place::Other),
            "disabled_tools" | "excludeTools" | "disabledTools" => self.list(member, "disabled_tools", Place::Other),
            "tools" | "available_tools" => self.tools(member),
            // Zed says `custom` of everything that it does not bring along; the others, what we know.
            "source" if self.dialect == Dialect::Zed => {}
            "name" if matches!(self.dialect, Dialect::Continue | Dialect::Vibe | Dialect::Goose) => {}
            _ => self.ignored.push(member),
        }
    }

    fn put(&mut self, key: &str, at: &Range<usize>, value: Value) {
        if member(&self.native, key).is_none() {
            let value = Located { value, span: at.clone() };
            self.native.push(Member { key: key.into(), key_span: at.clone(), value });
        }
    }

    fn same(&mut self, member: &Member, key: &str) {
        if crate::config::member(&self.native, key).is_none() {
            let (key_span, value) = (member.key_span.clone(), member.value.clone());
            self.native.push(Member { key: key.into(), key_span, value });
        }
    }

    /// What stands for something, written in our own way.
    fn rewritten(&mut self, located: &Located, place: Place) -> Located {
        let Value::Text(text) = &located.value else { return located.clone() };
        let variables = Variables { dialect: self.dialect, world: self.reader.world, inputs: self.inputs };
        let told = |unknown: Unknown| Mistake::at(located.span.clone(), unknown.what).help(unknown.help);
        let text = match variables.rewritten(text, place) {
            Ok((text, kept)) => {
                self.reader.warnings.extend(kept.into_iter().map(told));
                text
            }
            Err(unknown) => {
                let mistake = told(unknown);
                let notes = if self.is_enabled { &mut self.reader.reading.mistakes } else { &mut self.reader.warnings };
                notes.add(mistake);
                text.replace("${", "$${")
            }
        };
        Located { value: Value::Text(text), span: located.span.clone() }
    }

    fn text(&mut self, member: &Member, key: &str) {
        let value = self.rewritten(&member.value, Place::Other);
        self.same(&Member { value, ..member.clone() }, key);
    }

    fn list(&mut self, member: &Member, key: &str, place: Place) {
        let value = match &member.value.value {
            Value::List(items) => {
                let items = items.iter().map(|item| self.rewritten(item, place)).collect();
                Located { value: Value::List(items), span: member.value.span.clone() }
            }
            _ => member.value.clone(),
        };
        self.same(&Member { value, ..member.clone() }, key);
    }

    /// A program, all of a command, or Zed's way to write one.
    fn command(&mut self, member: &Member) {
        match &member.value.value {
            Value::List(_) => self.list(member, "command", Place::Command),
            Value::Table(parts) => {
                for part in each(parts) {
                    match part.key.as_str() {
                        "path" => self.program(part),
                        "args" => self.list(part, "args", Place::Command),
                        "env" => self.pairs(&part.value, Place::Environment),
                        other => {
                            let what = format!("`{other}` of the command means nothing to a gateway");
                            let help = match nearest(other, ["path", "args", "env"]) {
                                Some(near) => format!("did you mean `{near}`?"),
                                None => "it is ignored".into(),
                            };
                            self.reader.warn(&part.key_span, what, &help);
                        }
                    }
                }
            }
            _ => self.program(member),
        }
    }

    fn program(&mut self, member: &Member) {
        let value = self.rewritten(&member.value, Place::Command);
        self.same(&Member { value, ..member.clone() }, "command");
    }

    /// Variables of the environment, or else headers.
    fn pairs(&mut self, table: &Located, place: Place) {
        let what = if place == Place::Environment { "the environment" } else { "what has the headers" };
        let members = self.reader.reading.table(table, what).unwrap_or_default();
        for member in each(members).filter(|member| member.value.value != Value::Nothing) {
            let value = self.rewritten(&member.value, place);
            let pair = Member { value, ..member.clone() };
            if place == Place::Environment { self.env.push(pair) } else { self.headers.push(pair) }
        }
    }

    /// Names of variables, which Codex may also write as a table.
    fn passed(&mut self, member: &Member) {
        let Some(items) = self.reader.reading.list(&member.value, &format!("`{}`", member.key)) else { return };
        let name = |item: &Located| match &item.value {
            Value::Table(parts) => crate::config::member(parts, "name").map(|name| name.value.clone()),
            _ => Some(item.clone()),
        };
        let names = items.iter().filter_map(name).collect();
        self.put("pass_env", &member.value.span, Value::List(names));
    }

    fn headers_of_variables(&mut self, member: &Member) {
        for pair in self.reader.reading.table(&member.value, "`env_http_headers`").unwrap_or_default() {
            if let Some(variable) = self.reader.reading.text(&pair.value, "the name of a variable") {
                let value =
                    Located { value: Value::Text(format!("${{env:{variable}}}")), span: pair.value.span.clone() };
                self.headers.push(Member { value, ..pair.clone() });
            }
        }
    }

    /// Codex's bearer token, and Vibe's key with its ways to send it.
    fn key_of_variable(&mut self, key: &Member) {
        let Some(variable) = self.reader.reading.text(&key.value, &format!("`{}`", key.key)) else { return };
        let said = |key: &str, otherwise: &str| match member(self.members, key).map(|member| &member.value.value) {
            Some(Value::Text(text)) => text.clone(),
            _ => otherwise.to_owned(),
        };
        let name = said("api_key_header", "Authorization");
        let format = said("api_key_format", "Bearer {token}");
        let text = format.replace("{token}", &format!("${{env:{variable}}}"));
        let value = Located { value: Value::Text(text), span: key.value.span.clone() };
        self.headers.push(Member { key: name, key_span: key.key_span.clone(), value });
    }

    fn request_options(&mut self, member: &'t Member) {
        let Value::Table(parts) = &member.value.value else { return self.ignored.push(member) };
        for part in each(parts) {
            match part.key.as_str() {
                "headers" => self.pairs(&part.value, Place::Other),
                _ => self.ignored.push(part),
            }
        }
    }

    /// `local` and `remote` say only what else the entry says.
    fn transport(&mut self, member: &Member) {
        match &member.value.value {
            Value::Text(word) if ["local", "remote", "command"].contains(&word.as_str()) => {}
            _ => self.same(member, "transport"),
        }
    }

    fn milliseconds(&mut self, member: &Member, key: &str) {
        match &member.value.value {
            Value::Number(number) => self.put(key, &member.value.span, Value::Text(format!("{number}ms"))),
            _ => self.same(member, key),
        }
    }

    /// Seconds to some and milliseconds to others, and not every file tells whose it is.
    fn timeout(&mut self, member: &Member) {
        let number = match &member.value.value {
            Value::Number(number) => number.parse::<f64>().ok(),
            _ => None,
        };
        let is_in_milliseconds = match self.dialect {
            Dialect::Opencode => true,
            Dialect::Goose | Dialect::Codex | Dialect::Vibe => false,
            _ => number.is_some_and(|number| number >= MILLISECONDS_FROM),
        };
        if is_in_milliseconds {
            self.milliseconds(member, "response_timeout");
        } else {
            self.same(member, "response_timeout");
        }
    }

    /// Copilot lists what it uses, and says `*` for everything; Goose lists nothing then.
    fn tools(&mut self, member: &'t Member) {
        match &member.value.value {
            Value::List(tools) if tools.is_empty() && member.key == "available_tools" => {}
            Value::List(tools) if tools.iter().any(|tool| tool.value == Value::Text("*".into())) => {}
            Value::List(_) => self.list(member, "enabled_tools", Place::Other),
            _ => self.ignored.push(member),
        }
    }

    fn tell_ignored(&mut self, name: &str) {
        for member in std::mem::take(&mut self.ignored) {
            let what = format!("`{}` of `{name}` means nothing to a gateway", member.key);
            let meant = nearest(&member.key, KNOWN).filter(|near| *near != member.key && !self.has(near));
            let Some(near) = meant else {
                self.reader.warn(&member.key_span, what, "it is ignored");
                continue;
            };
            let help = format!("did you mean `{near}`?");
            // A server without an address is refused, and this is the reason.
            let is_missed = ADDRESSES.contains(&near) && !ADDRESSES.iter().any(|key| self.has(key));
            match is_missed && self.is_enabled {
                true => self.reader.reading.mistakes.add(Mistake::at(member.key_span.clone(), what).help(help)),
                false => self.reader.warn(&member.key_span, what, &help),
            }
        }
    }

    /// Where an entry says too much, it says itself what counts.
    fn settle(&mut self) {
        let is_stdio = matches!(
            member(&self.native, "transport").map(|member| &member.value.value),
            Some(Value::Text(word)) if word == "stdio"
        );
        let has = |key: &str| member(&self.native, key).is_some();
        let (mut left_out, has_command, has_url) = (Vec::new(), has("command"), has("url"));
        if has_command && (is_stdio || !has_url) {
            left_out.extend(["url", "headers"]);
        } else if has_url && !has_command {
            left_out.extend(["args", "env", "pass_env", "cwd"]);
        }
        for key in left_out {
            if let Some(at) = self.native.iter().position(|member| member.key == key) {
                let member = self.native.remove(at);
                let is_nothing = matches!(&member.value.value, Value::List(items) if items.is_empty());
                if !is_nothing {
                    self.reader.warn(&member.key_span, format!("`{key}` has no use here"), "it is ignored");
                }
            }
        }
    }
}
