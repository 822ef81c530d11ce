//! One server of a configuration.

use std::num::NonZeroU32;
use std::ops::Range;
use std::time::Duration;

use mcp_gateway::settings::{Instance, Speaks, Start};
use mcp_transport::connect::{StdioMode, UrlTransport};
use mcp_transport::http::target::{BadTarget, Target};

use super::{grace, per_minute, proxy_tool, whole};
use crate::config::{Located, Member, Mistake, Value, each, member, said};
use crate::gateway::expand::Text;
use crate::gateway::fields::{Fields, Reader, is_secret_name};
use crate::gateway::ids;
use crate::gateway::keys::{SERVER, TOOL, names};
use crate::gateway::model::{self, At, Server, header_map};

/// What is spoken, as it was asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spoken {
    Auto,
    Stdio,
    StreamableHttp,
    Sse,
}

const TRANSPORTS: [(&str, Spoken); 7] = [
    ("auto", Spoken::Auto),
    ("stdio", Spoken::Stdio),
    ("streamable-http", Spoken::StreamableHttp),
    ("sse", Spoken::Sse),
    ("http", Spoken::StreamableHttp),
    ("streamable_http", Spoken::StreamableHttp),
    ("streamableHttp", Spoken::StreamableHttp),
];
const STDIO_MODES: [(&str, StdioMode); 3] =
    [("auto", StdioMode::Auto), ("newline", StdioMode::Newline), ("content-length", StdioMode::ContentLength)];
const STARTS: [(&str, Start); 2] = [("lazy", Start::Lazy), ("eager", Start::Eager)];
const INSTANCES: [(&str, Instance); 2] = [("shared", Instance::Shared), ("per-client", Instance::PerClient)];
const PROTOCOLS: [(&str, Speaks); 3] = [("auto", Speaks::Auto), ("legacy", Speaks::Legacy), ("modern", Speaks::Modern)];
const OF_COMMANDS: [&str; 6] = ["args", "env", "pass_env", "cwd", "stdio_mode", "idle_stop"];
const OF_URLS: [&str; 1] = ["headers"];

/// The server, and where its id is. In a table of servers `key` is the id.
pub(super) fn read(
    key: Option<&Member>,
    entry: &Located,
    (response_timeout, cancel_grace): (Duration, Duration),
    reader: &mut Reader<'_>,
) -> Option<(Server, Range<usize>)> {
    let fields = reader.fields(entry, "a server", SERVER)?;
    let place = key.map(|key| key.key_span.clone()).or(fields.members.first().map(|member| member.key_span.clone()));
    let place = place.unwrap_or(entry.span.clone());
    let (id, id_at) = id(key, &fields, &place, reader)?;
    let enabled = enabled(&fields, reader);
    reader.lenient = !enabled;
    let at = at(&fields, &place, reader);
    reader.lenient = false;
    let (startup, in_flight) = model::startup_and_in_flight(matches!(at, Some(At::Command { .. })));
    let response_timeout = fields.duration("response_timeout", reader).unwrap_or(response_timeout);
    let response_cap = response_cap(&fields, response_timeout, reader);
    let instance = fields.word("instance", &INSTANCES, reader).unwrap_or_default();
    let exclusive = exclusive(&fields, instance, reader);
    // A call that an exclusive server may still work on could be meant by all that the server says.
    let cancel_grace = if exclusive { response_cap } else { cancel_grace };
    let server = Server {
        id,
        enabled,
        prefix: fields.flag("prefix", reader).unwrap_or(true),
        start: fields.word("start", &STARTS, reader).unwrap_or_default(),
        instance,
        exclusive,
        speaks: fields.word("protocol", &PROTOCOLS, reader).unwrap_or_default(),
        startup_timeout: fields.duration("startup_timeout", reader).unwrap_or(startup),
        shutdown_grace: fields.duration("shutdown_grace", reader).unwrap_or(model::SHUTDOWN_GRACE),
        response_timeout,
        response_cap,
        cancel_grace: grace(&fields, reader).unwrap_or(cancel_grace),
        idle_stop: fields.duration_or_off("idle_stop", reader).flatten(),
        in_flight: fields.count("in_flight", reader).map_or(in_flight, whole),
        queue: fields.count("queue", reader).map_or(model::QUEUE, whole),
        rate_limit_per_minute: per_minute(&fields, reader),
        enabled_tools: fields.patterns("enabled_tools", reader),
        disabled_tools: fields.patterns("disabled_tools", reader).unwrap_or_default(),
        tool_limits: tool_limits(&fields, reader),
        unwrap_proxy_tool: proxy_tool::unwrapped(&fields, reader),
        at: at?,
    };
    Some((server, id_at))
}

fn id(
    key: Option<&Member>,
    fields: &Fields<'_>,
    place: &Range<usize>,
    reader: &mut Reader<'_>,
) -> Option<(String, Range<usize>)> {
    let (id, at) = match (key, fields.get("id", reader)) {
        (Some(key), None) => (key.key.clone(), key.key_span.clone()),
        (None, Some(located)) => (reader.reading.text(located, "`id`")?.to_owned(), located.span.clone()),
        (Some(key), Some(located)) => {
            let id = reader.reading.text(located, "`id`")?;
            if id != key.key {
                let what = format!("this server is called {} already", said(&key.key));
                reader.wrong(&located.span, what, "leave `id` out: the key is the id");
                return None;
            }
            (key.key.clone(), key.key_span.clone())
        }
        (None, None) => {
            reader.wrong(place, "this server has no `id`", "its names begin with it");
            return None;
        }
    };
    if let Err(why) = ids::check(&id) {
        let tidy = ids::tidied(&id);
        let help =
            if tidy.is_empty() { "use letters, digits, `-` and `_`".into() } else { format!("`{tidy}` would do") };
        reader.wrong(&at, format!("{} cannot be an id: {why}", said(&id)), &help);
        return None;
    }
    Some((id, at))
}

fn enabled(fields: &Fields<'_>, reader: &mut Reader<'_>) -> bool {
    let (enabled, disabled) = (fields.flag("enabled", reader), fields.flag("disabled", reader));
    if let (Some(enabled), Some(disabled), Some(member)) = (enabled, disabled, member(fields.members, "disabled"))
        && enabled == disabled
    {
        reader.wrong(&member.key_span, "`enabled` says something else", "leave out either");
    }
    enabled.or(disabled.map(|disabled| !disabled)).unwrap_or(true)
}

fn exclusive(fields: &Fields<'_>, instance: Instance, reader: &mut Reader<'_>) -> bool {
    let exclusive = fields.flag("exclusive", reader).unwrap_or_default();
    if let Some(member) = member(fields.members, "instance").filter(|_| exclusive && instance == Instance::PerClient) {
        let what = "`per-client` does not go with `exclusive`";
        reader.wrong(&member.value.span, what, "an exclusive server has one process for all clients");
    }
    exclusive
}

/// A cap that nobody asked for gives way to a longer timeout.
fn response_cap(fields: &Fields<'_>, response_timeout: Duration, reader: &mut Reader<'_>) -> Duration {
    let Some(cap) = fields.duration("response_cap", reader) else { return model::RESPONSE_CAP.max(response_timeout) };
    if let Some(member) = member(fields.members, "response_cap").filter(|_| cap < response_timeout) {
        reader.wrong(
            &member.value.span,
            "`response_cap` is less than `response_timeout`",
            "it is what progress can gain",
        );
    }
    cap
}

fn at(fields: &Fields<'_>, place: &Range<usize>, reader: &mut Reader<'_>) -> Option<At> {
    let spoken = fields.word("transport", &TRANSPORTS, reader).unwrap_or(Spoken::Auto);
    match (fields.get("command", reader), fields.get("url", reader)) {
        (Some(_), Some(url)) => {
            reader.wrong(&url.span, "a server has a `command` or a `url`, and this one has both", "leave out either");
            None
        }
        // A key that nobody knows may have been meant to be either.
        (None, None) if fields.members.iter().any(|member| !names(SERVER).contains(&member.key.as_str())) => None,
        (None, None) => {
            reader.wrong(place, "this server has neither a `command` nor a `url`", "it needs one to be reached");
            None
        }
        (Some(command), None) => {
            not_for(fields, &OF_URLS, "an address", reader);
            if matches!(spoken, Spoken::StreamableHttp | Spoken::Sse) {
                transport_mismatch(fields, "a command speaks `stdio`", reader);
            }
            command_at(command, fields, reader)
        }
        (None, Some(url)) => {
            not_for(fields, &OF_COMMANDS, "a command", reader);
            if spoken == Spoken::Stdio {
                transport_mismatch(fields, "an address speaks `streamable-http` or `sse`", reader);
            }
            url_at(url, spoken, fields, reader)
        }
    }
}

fn transport_mismatch(fields: &Fields<'_>, help: &str, reader: &mut Reader<'_>) {
    if let Some(member) = member(fields.members, "transport") {
        reader.wrong(&member.value.span, "this `transport` does not go with how the server is reached", help);
    }
}

fn not_for(fields: &Fields<'_>, keys: &[&str], others: &str, reader: &mut Reader<'_>) {
    let misplaced = fields.members.iter().filter(|member| keys.contains(&member.key.as_str()));
    for member in misplaced.filter(|member| member.value.value != Value::Nothing) {
        reader.wrong(
            &member.key_span,
            format!("`{}` is for {others}, and this server is none", member.key),
            "leave it out",
        );
    }
}

fn command_at(command: &Located, fields: &Fields<'_>, reader: &mut Reader<'_>) -> Option<At> {
    let place = match &command.value {
        Value::List(items) => items.first().map_or(&command.span, |program| &program.span).clone(),
        _ => command.span.clone(),
    };
    let words = match &command.value {
        Value::List(_) => reader.texts(command, "`command`"),
        _ => reader.text(command, "`command`").map(|program| vec![program]),
    };
    let args = fields.get("args", reader).map(|args| reader.texts(args, "`args`"));
    let env = fields.get("env", reader).map(|env| environment(env, reader));
    let pass_env = fields.patterns("pass_env", reader).unwrap_or_default();
    let dir = reader.dir();
    let cwd = fields.text("cwd", reader).map(|text| (reader.world.path(&text.value, &dir), text));
    let stdio_mode = fields.word("stdio_mode", &STDIO_MODES, reader).unwrap_or_default();
    let mut words = words?;
    if words.first().is_none_or(|program| program.value.trim().is_empty()) {
        reader.wrong(&command.span, "the command is empty", "it begins with a program");
        return None;
    }
    if args.is_none() && matches!(&command.value, Value::Text(text) if text.trim().contains(' ') && !text.contains('/'))
    {
        let help = "no shell splits it: write it as a list, or put the rest into `args`";
        reader.warn(&command.span, "this is taken for the name of one program", help);
    }
    words.extend(args.unwrap_or(Some(Vec::new()))?);
    if let Some(word) = words.iter().find(|word| word.value.contains('\0')) {
        let _ = word;
        reader.wrong(&command.span, "a NUL cannot be part of a command", "leave it out");
        return None;
    }
    let env = env.unwrap_or(Some(Vec::new()))?;
    Some(At::Command { words, place, env, pass_env, cwd: cwd.map(|(path, text)| (text, path)), stdio_mode })
}

fn environment(located: &Located, reader: &mut Reader<'_>) -> Option<Vec<(String, Text)>> {
    let pairs = reader.pairs(located, "`env`")?;
    let mut environment = Vec::new();
    for (member, text) in pairs {
        if member.key.is_empty() || member.key.contains(['=', '\0']) || text.value.contains('\0') {
            reader.wrong(&member.key_span, "no environment can have such a variable", "leave it out");
        } else if text.value.is_empty() && is_secret_name(&member.key) {
            reader.warn(&member.value.span, format!("`{}` is empty", member.key), "the server gets it like that");
        }
        environment.push((member.key.clone(), text));
    }
    Some(environment)
}

fn url_at(located: &Located, spoken: Spoken, fields: &Fields<'_>, reader: &mut Reader<'_>) -> Option<At> {
    let headers = fields.get("headers", reader).map(|headers| headers_of(headers, reader));
    let url = reader.some_text(located, "`url`");
    let headers = headers.unwrap_or(Some(Vec::new()))?;
    let (url, map) = (url?, header_map(&headers).unwrap_or_default());
    let target = match Target::parse(&url.value, map) {
        Ok(target) => target,
        // Nobody will ask it anything.
        Err(_) if reader.lenient => {
            reader.warn(&located.span, "`url` is no address", "mend it before the server takes part");
            Target::parse("http://localhost/", Default::default()).ok()?
        }
        Err(why) => {
            let help = match why {
                BadTarget::Credentials => "put them into `headers`: `Authorization`",
                _ => "it begins with http:// or https://",
            };
            let why = match why {
                BadTarget::Credentials => "a name and a password do not belong into it".to_owned(),
                other => other.to_string(),
            };
            reader.wrong(&located.span, format!("`url` cannot be used: {why}"), help);
            return None;
        }
    };
    let transport = match spoken {
        Spoken::Auto | Spoken::Stdio => UrlTransport::Auto,
        Spoken::StreamableHttp => UrlTransport::StreamableHttp,
        Spoken::Sse => UrlTransport::Sse,
    };
    Some(At::Url { url, target, transport, headers })
}

fn headers_of(located: &Located, reader: &mut Reader<'_>) -> Option<Vec<(String, Text)>> {
    let pairs = reader.pairs(located, "`headers`")?;
    let headers: Vec<(String, Text)> = pairs.iter().map(|(member, text)| (member.key.clone(), text.clone())).collect();
    match header_map(&headers) {
        Ok(_) => Some(headers),
        Err((number, why)) => {
            let mistake = Mistake::at(pairs[number].0.value.span.clone(), format!("`{}`: {why}", pairs[number].0.key));
            if reader.lenient {
                reader.warnings.add(mistake);
                return Some(Vec::new());
            }
            reader.reading.mistakes.add(mistake.help("a header without a value would be sent as it is"));
            None
        }
    }
}

fn tool_limits(fields: &Fields<'_>, reader: &mut Reader<'_>) -> Vec<(String, NonZeroU32)> {
    let Some(tools) = fields.get("tools", reader) else { return Vec::new() };
    let members = reader.reading.table(tools, "`tools`").unwrap_or_default();
    let mut limits = Vec::new();
    for member in each(members) {
        let tool = reader.fields(&member.value, "what is said of a tool", TOOL);
        if let Some(limit) = tool.and_then(|tool| per_minute(&tool, reader)) {
            limits.push((member.key.clone(), limit));
        }
    }
    limits
}
