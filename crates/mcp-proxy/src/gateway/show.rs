//! A configuration as it counts, every default included, in the gateway's own form. Secrets are masked; what
//! stands for one is shown as it is written.

use std::num::NonZeroU32;
use std::time::Duration;

use mcp_gateway::settings::{Instance, Notifications, ProxyToolMode, ProxyToolSettings, Speaks, Start, UnwrapTool};
use mcp_proxy_tool::shape::Dialect;
use mcp_store::redact::{MASK, Redactor};
use mcp_transport::connect::{StdioMode, UrlTransport};

use super::expand::{Text, has_reference};
use super::model::{At, Gateway, RulesAt, Server, TokenOf};
use super::write::Shown;
use crate::cli::Listen;
use crate::config::{Located, Value};
use crate::report::Level;

/// Members in the order of the table of keys.
#[derive(Default)]
struct Table(Vec<(String, Shown)>);

impl Table {
    fn put(&mut self, key: &str, value: impl Into<Shown>) {
        self.0.push((key.to_owned(), value.into()));
    }

    fn maybe(&mut self, key: &str, value: Option<impl Into<Shown>>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    fn unless_empty(&mut self, key: &str, values: &[String]) {
        if !values.is_empty() {
            self.put(key, texts(values));
        }
    }

    fn done(self) -> Shown {
        Shown::Table(self.0)
    }
}

pub fn shown(gateway: &Gateway) -> Shown {
    let mut top = Table::default();
    top.put("name", plain(&gateway.name));
    top.maybe("instructions", gateway.instructions.as_ref().map(plain));
    top.put("listen", gateway.listen.map_or("stdio".into(), listen));
    top.maybe("auth_token", gateway.auth_token.as_ref().map(secret));
    top.maybe("rate_limit_per_minute", gateway.rate_limit_per_minute.map(per_minute));
    top.put("in_flight_per_client", gateway.in_flight_per_client as u64);
    top.put("max_message_bytes", gateway.message_bytes_max as u64);
    top.put("response_timeout", gateway.response_timeout);
    top.put("cancel_grace", or_off(Some(gateway.cancel_grace).filter(|grace| !grace.is_zero())));
    top.put("initialize_wait", gateway.initialize_wait);
    top.put("list_wait", gateway.list_wait);
    top.put("page_size", gateway.page_size as u64);
    top.put("list_pages", gateway.list_pages as u64);
    top.put("list_items", gateway.list_items as u64);
    top.put("notifications", notifications(&gateway.notifications));
    top.put("healthcheck_interval", or_off(gateway.healthcheck_interval));
    top.put("healthcheck_timeout", gateway.healthcheck_timeout);
    top.put("drain", gateway.drain);
    top.maybe("proxy_tool", gateway.proxy_tool.as_ref().map(proxy_tool));
    match &gateway.rules {
        Some(RulesAt::File { written, .. }) => top.put("rules", written.as_str()),
        Some(RulesAt::Here(policy)) => top.put("policy", as_written(policy)),
        None => {}
    }
    top.put("log_level", level(gateway.log_level));
    top.put("structured_logging", gateway.structured_logging);
    if !gateway.tokens.is_empty() {
        top.put("tokens", Shown::List(gateway.tokens.iter().map(token).collect()));
    }
    top.put("servers", Shown::List(gateway.servers.iter().map(server).collect()));
    top.done()
}

fn token(token: &TokenOf) -> Shown {
    let mut table = Table::default();
    table.put("name", token.name.as_str());
    table.put("token", secret(&token.token));
    table.maybe("servers", token.servers.as_deref().map(texts));
    table.maybe("tools", token.tools.as_deref().map(texts));
    table.maybe("rate_limit_per_minute", token.rate_limit_per_minute.map(per_minute));
    table.done()
}

fn server(server: &Server) -> Shown {
    let mut table = Table::default();
    table.put("id", server.id.as_str());
    match &server.at {
        At::Command { words, env, pass_env, cwd, stdio_mode, place: _ } => {
            table.put("command", command(words));
            if !env.is_empty() {
                table.put("env", pairs(env));
            }
            table.unless_empty("pass_env", pass_env);
            table.maybe("cwd", cwd.as_ref().map(|(text, _)| plain(text)));
            table.put("stdio_mode", stdio_word(*stdio_mode));
        }
        At::Url { url, transport, headers, .. } => {
            table.put("url", plain(url));
            table.put("transport", transport_word(*transport));
            if !headers.is_empty() {
                table.put("headers", pairs(headers));
            }
        }
    }
    table.put("enabled", server.enabled);
    table.put("prefix", server.prefix);
    table.put("start", if server.start == Start::Eager { "eager" } else { "lazy" });
    table.put("instance", if server.instance == Instance::PerClient { "per-client" } else { "shared" });
    table.put("exclusive", server.exclusive);
    table.put("protocol", speaks_word(server.speaks));
    table.put("startup_timeout", server.startup_timeout);
    table.put("shutdown_grace", server.shutdown_grace);
    table.put("response_timeout", server.response_timeout);
    table.put("response_cap", server.response_cap);
    table.put("cancel_grace", or_off(Some(server.cancel_grace).filter(|grace| !grace.is_zero())));
    if let At::Command { .. } = server.at {
        table.put("idle_stop", or_off(server.idle_stop));
    }
    table.put("in_flight", server.in_flight as u64);
    table.put("queue", server.queue as u64);
    table.maybe("rate_limit_per_minute", server.rate_limit_per_minute.map(per_minute));
    table.maybe("enabled_tools", server.enabled_tools.as_deref().map(texts));
    table.unless_empty("disabled_tools", &server.disabled_tools);
    if !server.tool_limits.is_empty() {
        table.put("tools", tools(&server.tool_limits));
    }
    table.maybe("unwrap_proxy_tool", server.unwrap_proxy_tool.as_ref().map(unwrap_tool));
    table.done()
}

fn proxy_tool(tool: &ProxyToolSettings) -> Shown {
    let mut table = Table::default();
    table.put("name", tool.name.as_str());
    table.put(
        "mode",
        match tool.mode {
            ProxyToolMode::Beside => "beside",
            ProxyToolMode::Instead => "instead",
        },
    );
    table.put(
        "dialect",
        match tool.dialect {
            Dialect::Extension => "extension",
            Dialect::Magg => "magg",
        },
    );
    table.done()
}

fn unwrap_tool(tool: &UnwrapTool) -> Shown {
    match tool {
        UnwrapTool::Found => true.into(),
        UnwrapTool::Named(name) => name.as_str().into(),
    }
}

fn per_minute(limit: NonZeroU32) -> u64 {
    limit.get().into()
}

fn tools(limits: &[(String, NonZeroU32)]) -> Shown {
    let one = |(tool, limit): &(String, NonZeroU32)| {
        (tool.clone(), Shown::Table(vec![("rate_limit_per_minute".into(), per_minute(*limit).into())]))
    };
    Shown::Table(limits.iter().map(one).collect())
}

fn as_written(located: &Located) -> Shown {
    match &located.value {
        Value::Flag(flag) => (*flag).into(),
        Value::Number(number) => number.parse::<u64>().map_or_else(|_| number.as_str().into(), Shown::from),
        Value::Text(text) => text.as_str().into(),
        Value::List(items) => Shown::List(items.iter().map(as_written).collect()),
        Value::Table(members) => {
            Shown::Table(members.iter().map(|member| (member.key.clone(), as_written(&member.value))).collect())
        }
        Value::Nothing | Value::Other(_) => "".into(),
    }
}

/// What is secret whatever it says, unless it only stands for it.
fn secret(text: &Text) -> Shown {
    if has_reference(&text.written) { text.written.as_str().into() } else { MASK.into() }
}

fn plain(text: &Text) -> Shown {
    Redactor::default().text(&text.written).as_ref().into()
}

fn pairs(pairs: &[(String, Text)]) -> Shown {
    let one = |(name, text): &(String, Text)| {
        let shown = match has_reference(&text.written) {
            true => Redactor::default().text(&text.written).into_owned(),
            false => Redactor::default().named(name, &text.written).into_owned(),
        };
        (name.clone(), Shown::from(shown.as_str()))
    };
    Shown::Table(pairs.iter().map(one).collect())
}

/// Words as people may see them: `--token abc` names its secret one word before.
pub fn masked_words(words: &[Text]) -> Vec<String> {
    let mut masked = Vec::with_capacity(words.len());
    let mut before = "";
    for word in words {
        let written = &word.written;
        let is_named = before.starts_with('-') && !written.starts_with('-') && !has_reference(written);
        masked.push(match is_named {
            true => Redactor::default().named(before.trim_start_matches('-'), written).into_owned(),
            false => Redactor::default().text(written).into_owned(),
        });
        before = written;
    }
    masked
}

fn command(words: &[Text]) -> Shown {
    texts(&masked_words(words))
}

fn texts(texts: &[String]) -> Shown {
    Shown::List(texts.iter().map(|text| Shown::from(text.as_str())).collect())
}

fn or_off(duration: Option<Duration>) -> Shown {
    duration.map_or("off".into(), Shown::from)
}

fn listen(listen: Listen) -> Shown {
    match listen {
        Listen::Stdio => "stdio".into(),
        Listen::At(address) => address.to_string().as_str().into(),
    }
}

fn notifications(notifications: &Notifications) -> Shown {
    match notifications {
        Notifications::Concerned => "concerned".into(),
        Notifications::All => "all".into(),
        Notifications::Nobody => "nobody".into(),
        Notifications::Only(ids) => Shown::List(ids.iter().map(|id| Shown::from(&**id)).collect()),
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    }
}

fn stdio_word(mode: StdioMode) -> &'static str {
    match mode {
        StdioMode::Auto => "auto",
        StdioMode::Newline => "newline",
        StdioMode::ContentLength => "content-length",
    }
}

pub fn transport_word(transport: UrlTransport) -> &'static str {
    match transport {
        UrlTransport::Auto => "auto",
        UrlTransport::StreamableHttp => "streamable-http",
        UrlTransport::Sse => "sse",
    }
}

fn speaks_word(speaks: Speaks) -> &'static str {
    match speaks {
        Speaks::Auto => "auto",
        Speaks::Legacy => "legacy",
        Speaks::Modern => "modern",
    }
}
