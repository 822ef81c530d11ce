//! The gateway's own form. Every other is translated into it (`dialect.rs`), so this is the only reader.

mod proxy_tool;
mod server;

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcp_engine::entrance::{ANONYMOUS, SHARED};
use mcp_gateway::settings::Notifications;
use mcp_wire::framing::MESSAGE_BYTES_MAX;

use super::expand::Text;
use super::fields::{Fields, Reader};
use super::keys::{self, TOKEN, TOP};
use super::model::{self, Gateway, RulesAt, Server, TokenOf};
use crate::cli::Listen;
use crate::config::{Located, Member, Mistake, Value, each, said};
use crate::policy;
use crate::report::Level;

/// Servers and tokens of one gateway: more than an operator can look after.
const SERVERS_MAX: usize = 1_000;
const TOKENS_MAX: usize = 10_000;

const LOG_LEVELS: [(&str, Level); 14] = [
    ("error", Level::Error),
    ("warn", Level::Warn),
    ("info", Level::Info),
    ("debug", Level::Debug),
    ("trace", Level::Trace),
    ("warning", Level::Warn),
    ("critical", Level::Error),
    ("ERROR", Level::Error),
    ("WARN", Level::Warn),
    ("INFO", Level::Info),
    ("DEBUG", Level::Debug),
    ("TRACE", Level::Trace),
    ("WARNING", Level::Warn),
    ("CRITICAL", Level::Error),
];

/// Everything that is wrong has been noted with the reader.
pub(super) fn read(root: &Located, reader: &mut Reader<'_>) -> Option<Gateway> {
    let top = reader.fields(root, "a configuration", TOP)?;
    let response_timeout = top.duration("response_timeout", reader).unwrap_or(model::RESPONSE_TIMEOUT);
    let cancel_grace = grace(&top, reader).unwrap_or(model::CANCEL_GRACE);
    let servers = servers(&top, root, (response_timeout, cancel_grace), reader);
    let healthcheck_interval = top.duration_or_off("healthcheck_interval", reader);
    let message_bytes_max = top.count("max_message_bytes", reader).map_or(MESSAGE_BYTES_MAX, whole);
    let auth_token = top.get("auth_token", reader).and_then(|located| reader.secret(located, "`auth_token`"));
    let tokens = tokens(&top, auth_token.as_ref(), &servers, reader);
    Some(Gateway {
        name: top.text("name", reader).unwrap_or_else(|| Text::plain(model::NAME)),
        instructions: top.text("instructions", reader),
        listen: top.get("listen", reader).and_then(|located| listen(located, reader)),
        auth_token,
        tokens,
        rate_limit_per_minute: per_minute(&top, reader),
        in_flight_per_client: top.count("in_flight_per_client", reader).map_or(model::IN_FLIGHT_PER_CLIENT, whole),
        message_bytes_max,
        response_timeout,
        cancel_grace,
        initialize_wait: top.duration("initialize_wait", reader).unwrap_or(model::INITIALIZE_WAIT),
        list_wait: top.duration("list_wait", reader).unwrap_or(model::LIST_WAIT),
        page_size: top.count("page_size", reader).map_or(model::PAGE_SIZE, whole),
        list_pages: top.count("list_pages", reader).map_or(model::LIST_PAGES, whole),
        list_items: top.count("list_items", reader).map_or(model::LIST_ITEMS, whole),
        notifications: notifications(&top, &servers, reader),
        healthcheck_interval: healthcheck_interval.unwrap_or(Some(model::HEALTHCHECK_INTERVAL)),
        healthcheck_timeout: top.duration("healthcheck_timeout", reader).unwrap_or(model::HEALTHCHECK_TIMEOUT),
        drain: top.duration("drain", reader).unwrap_or(model::DRAIN),
        proxy_tool: proxy_tool::read(&top, reader),
        rules: rules(&top, reader),
        log_level: top.word("log_level", &LOG_LEVELS, reader).unwrap_or_default(),
        structured_logging: top.flag("structured_logging", reader).unwrap_or_default(),
        servers,
    })
}

fn whole(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// `0` is no time at all.
fn grace(fields: &Fields<'_>, reader: &mut Reader<'_>) -> Option<Duration> {
    fields.duration_or_off("cancel_grace", reader).map(Option::unwrap_or_default)
}

fn per_minute(fields: &Fields<'_>, reader: &mut Reader<'_>) -> Option<NonZeroU32> {
    fields.count("rate_limit_per_minute", reader).and_then(|count| NonZeroU32::new(u32::try_from(count).ok()?))
}

/// A list of servers that say their ids, or a table of them by it.
fn servers(top: &Fields<'_>, root: &Located, limits: (Duration, Duration), reader: &mut Reader<'_>) -> Vec<Server> {
    let Some(located) = top.get("servers", reader) else {
        let place = top.members.first().map_or(root.span.start..root.span.start, |member| member.key_span.clone());
        reader.wrong(
            &place,
            "there are no `servers`",
            "a gateway is for servers: `servers = [{id = …, command = […]}]`",
        );
        return Vec::new();
    };
    let (mut found, mut ids) = (Vec::new(), HashMap::new());
    let mut take = |id: Option<&Member>, entry: &Located, reader: &mut Reader<'_>| {
        let Some((server, at)) = server::read(id, entry, limits, reader) else { return };
        match ids.insert(server.id.clone(), at.start) {
            Some(first) => {
                let what = format!("there is another server called {}", said(&server.id));
                reader.reading.mistakes.add(Mistake::at(at, what).other("it is", first));
            }
            None => found.push(server),
        }
    };
    let count = match &located.value {
        Value::List(items) => {
            items.iter().take(SERVERS_MAX).for_each(|item| take(None, item, reader));
            items.len()
        }
        Value::Table(members) => {
            each(members).take(SERVERS_MAX).for_each(|member| take(Some(member), &member.value, reader));
            members.len()
        }
        other => {
            let what = format!("`servers` is a list or a table, and this is {}", other.kind());
            reader.reading.mistakes.add(Mistake::at(located.span.clone(), what));
            return Vec::new();
        }
    };
    // Of those that could not be translated, it is known what is wrong.
    if count == 0 && reader.reading.mistakes.is_empty() {
        reader.wrong(&located.span, "there is no server in it", "a gateway is for at least one");
    }
    if count > SERVERS_MAX {
        reader.wrong(&located.span, format!("there are more than {SERVERS_MAX} servers"), "use several gateways");
    }
    found
}

fn tokens(top: &Fields<'_>, shared: Option<&Text>, servers: &[Server], reader: &mut Reader<'_>) -> Vec<TokenOf> {
    let Some(list) = top.get("tokens", reader) else { return Vec::new() };
    let items = reader.reading.list(list, "`tokens`").unwrap_or_default();
    if items.len() > TOKENS_MAX {
        reader.wrong(
            &list.span,
            format!("there are more than {TOKENS_MAX} tokens"),
            "a gateway keeps them all at hand",
        );
    }
    let (mut names, mut values) = (HashMap::new(), HashMap::new());
    let mut tokens = Vec::new();
    for item in items.iter().take(TOKENS_MAX) {
        let Some(token) = token(item, servers, reader) else { continue };
        let place = item_place(item);
        if let Some(first) = names.insert(token.name.clone(), place.start) {
            let what = format!("there is another token called {}", said(&token.name));
            reader.reading.mistakes.add(Mistake::at(place.clone(), what).other("it is", first));
        }
        if let Some(first) = values.insert(token.token.value.clone(), place.start) {
            // Nobody could tell who shows it.
            let mistake = Mistake::at(place.clone(), "two tokens are the same").other("the first is", first);
            reader.reading.mistakes.add(mistake);
        }
        if shared.is_some_and(|shared| shared.value == token.token.value) {
            reader.wrong(&place, "this token is the same as `auth_token`", "nobody could tell who shows it");
        }
        if [ANONYMOUS, SHARED].contains(&token.name.as_str()) {
            reader.wrong(&place, format!("no token can be called `{}`", token.name), "others are called so");
        }
        tokens.push(token);
    }
    tokens
}

fn item_place(item: &Located) -> std::ops::Range<usize> {
    match &item.value {
        Value::Table(members) if !members.is_empty() => members[0].key_span.clone(),
        _ => item.span.clone(),
    }
}

fn token(item: &Located, servers: &[Server], reader: &mut Reader<'_>) -> Option<TokenOf> {
    let fields = reader.fields(item, "a token", TOKEN)?;
    for key in ["name", "token"] {
        if fields.get(key, reader).is_none() {
            reader.wrong(&item_place(item), format!("this token has no `{key}`"), "it needs a `name` and a `token`");
        }
    }
    let ids = fields.patterns("servers", reader);
    if let Some(located) = fields.get("servers", reader) {
        known_ids(located, ids.as_deref().unwrap_or_default(), servers, reader);
    }
    let tools = fields.patterns("tools", reader);
    let name = fields.text("name", reader).map(|text| text.value);
    let token = fields.get("token", reader).and_then(|located| reader.secret(located, "`token`"));
    let rate_limit_per_minute = per_minute(&fields, reader);
    Some(TokenOf { name: name?, token: token?, servers: ids, tools, rate_limit_per_minute })
}

/// An id that no server has was meant to be another. A pattern may well wait for one to come.
fn known_ids(located: &Located, ids: &[String], servers: &[Server], reader: &mut Reader<'_>) {
    let known: Vec<&str> = servers.iter().map(|server| server.id.as_str()).collect();
    let Value::List(items) = &located.value else { return };
    // If an id was not read, its mistake has been noted.
    for (item, id) in items.iter().zip(ids).filter(|(_, id)| !id.contains('*') && !known.contains(&id.as_str())) {
        let mistake = Mistake::at(item.span.clone(), format!("there is no server {}", said(id)));
        reader.reading.mistakes.add(if known.is_empty() { mistake } else { mistake.meant(id, &known) });
    }
}

fn notifications(top: &Fields<'_>, servers: &[Server], reader: &mut Reader<'_>) -> Notifications {
    let Some(located) = top.get("notifications", reader) else { return Notifications::default() };
    if let Value::List(_) = &located.value {
        let ids = reader.patterns(located, "`notifications`").unwrap_or_default();
        known_ids(located, &ids, servers, reader);
        return Notifications::Only(ids.iter().map(|id| Arc::from(id.as_str())).collect());
    }
    let choices = [("concerned", 0), ("all", 1), ("nobody", 2)];
    debug_assert!(choices.iter().all(|(word, _)| keys::NOTIFIED.contains(word)), "the table has the same words");
    match top.word("notifications", &choices, reader) {
        Some(1) => Notifications::All,
        Some(2) => Notifications::Nobody,
        _ => Notifications::Concerned,
    }
}

fn listen(located: &Located, reader: &mut Reader<'_>) -> Option<Listen> {
    let written = match &located.value {
        Value::Number(port) => port.clone(),
        _ => reader.text(located, "`listen`")?.value,
    };
    match written.parse() {
        Ok(listen) => Some(listen),
        Err(_) => {
            reader.wrong(
                &located.span,
                "nobody can connect there",
                "it is `stdio`, a port, or an IP address with a port",
            );
            None
        }
    }
}

/// Rules that stand here are read as they would be in a file of their own; who governs by them reads them
/// again.
fn rules(top: &Fields<'_>, reader: &mut Reader<'_>) -> Option<RulesAt> {
    let (rules, policy) = (top.get("rules", reader), top.get("policy", reader));
    if let (Some(_), Some(policy)) = (rules, policy) {
        reader.wrong(&policy.span, "`policy` does not go with `rules`", "leave out either");
    }
    match (rules, policy) {
        (_, Some(policy)) if matches!(policy.value, Value::Table(_)) => {
            policy::read_inline(policy, &mut reader.reading)?;
            Some(RulesAt::Here(policy.clone()))
        }
        (Some(path), _) | (None, Some(path)) => {
            let text = reader.some_text(path, "the path of the rules")?;
            let path = reader.world.path(&text.value, Path::new(&reader.dir()));
            Some(RulesAt::File { written: text.written, path })
        }
        (None, None) => None,
    }
}
