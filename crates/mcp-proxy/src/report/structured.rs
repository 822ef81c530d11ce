//! What is said, for programs that read it: one JSON object a line. And what is left out because it
//! matters too little to whoever reads.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use mcp_transport::stdio::stderr;
use mcp_wire::inert::inert;
use serde::Serialize;

/// How much something matters; the first matters most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

static IS_ON: AtomicBool = AtomicBool::new(false);
static LEVEL: AtomicU8 = AtomicU8::new(Level::Info as u8);

/// From now on everything is said as JSON, or plainly; what matters less than `level` is not said at all.
/// What servers write to their standard error is told the same way.
pub(crate) fn structured(is_on: bool, level: Level) {
    IS_ON.store(is_on, Ordering::Relaxed);
    LEVEL.store(level as u8, Ordering::Relaxed);
    if is_on {
        stderr::pass_on_through(|server, line| {
            if let Some(line) = by_server(server, line) {
                super::say_if_taken(&line);
            }
        });
    }
}

/// The proxy's own lines, and those of servers' standard error.
const OWN: &str = "mcp-proxy";
const OF_SERVERS: &str = "mcp-proxy.server";

/// What a line of a log says, without its time.
#[derive(Serialize)]
struct Entry<'a> {
    level: Level,
    logger: &'static str,
    /// The stream of a server that the line is from.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'static str>,
    /// The server that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    message: &'a str,
}

impl Entry<'_> {
    fn line(&self) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            timestamp: String,
            #[serde(flatten)]
            entry: &'a Entry<'a>,
        }
        let line = Line { timestamp: jiff::Timestamp::now().to_string(), entry: self };
        inert(&serde_json::to_string(&line).expect("plain data always serialises")).into_owned()
    }
}

/// How something of ours is said, if it is.
pub(super) fn said(text: &str) -> Option<Cow<'_, str>> {
    matters(read(text).level).then(|| announced(text))
}

/// The same of what somebody waits for, however little matters to them.
pub(super) fn announced(text: &str) -> Cow<'_, str> {
    match IS_ON.load(Ordering::Relaxed) {
        true => read(text).line().into(),
        false => text.into(),
    }
}

fn matters(level: Level) -> bool {
    level as u8 <= LEVEL.load(Ordering::Relaxed)
}

/// A line of a server's standard error.
fn by_server(server: Option<&str>, line: &str) -> Option<String> {
    let entry = Entry { level: Level::Info, logger: OF_SERVERS, target: Some("stderr"), server, message: line };
    matters(entry.level).then(|| entry.line())
}

/// A text of the proxy by its beginning: `mcp-proxy: warning: …`, `error: …`, `debug: …`, `server "github" …`.
fn read(text: &str) -> Entry<'_> {
    let message = text.strip_prefix("mcp-proxy").and_then(unprefixed).unwrap_or(text);
    let prefixed = LEVELS.iter().find_map(|&(word, level)| {
        let rest = message.strip_prefix(word)?.strip_prefix(": ")?;
        Some((Some(level), rest))
    });
    let (level, message) = prefixed.unwrap_or((None, message));
    let server = message.strip_prefix("server \"").and_then(|rest| rest.split_once('"')).map(|(server, _)| server);
    // A server is spoken of when something is wrong with it.
    let level = level.unwrap_or(if server.is_some() { Level::Warn } else { Level::Info });
    Entry { level, logger: OWN, target: None, server, message }
}

/// How a text says that it matters more than others, or less.
const LEVELS: [(&str, Level); 3] = [("error", Level::Error), ("warning", Level::Warn), ("debug", Level::Debug)];

/// What follows `: `, or an id and then that.
fn unprefixed(rest: &str) -> Option<&str> {
    let (id, message) = rest.split_once(": ")?;
    let is_id = |id: &str| id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (id.is_empty() || id.strip_prefix(' ').is_some_and(is_id)).then_some(message)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[track_caller]
    fn check(text: &str, level: Level, server: Option<&str>, message: &str) {
        let entry = read(text);
        assert_eq!((entry.level, entry.server, entry.message), (level, server, message));
        let line = entry.line();
        assert!(!line.chars().any(|c| c.is_control() || c == '\u{202e}'), "{line}");
        let json: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(json["message"], message);
        assert_eq!(json["level"], format!("{level:?}").to_lowercase());
        assert_eq!(json.get("server").and_then(Value::as_str), server);
        assert_eq!((&json["logger"], json.get("target")), (&OWN.into(), None));
        assert!(json["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{line}");
    }

    #[test]
    fn a_text_is_told_by_how_it_begins() {
        check("mcp-proxy: listening on http://127.0.0.1:1", Level::Info, None, "listening on http://127.0.0.1:1");
        check("mcp-proxy 1a2b3c4d: a rule asks", Level::Info, None, "a rule asks");
        check("mcp-proxy: warning: nobody can attach", Level::Warn, None, "nobody can attach");
        check("error: port 1 is taken\n\nhint: end it", Level::Error, None, "port 1 is taken\n\nhint: end it");
        check("mcp-proxy: server \"git-hub\" is gone", Level::Warn, Some("git-hub"), "server \"git-hub\" is gone");
        check("mcp-proxy: error: server \"a\": no", Level::Error, Some("a"), "server \"a\": no");
        check("mcp-proxy: debug: server \"a\" is ready", Level::Debug, Some("a"), "server \"a\" is ready");
        check("mcp-proxy: server \"a", Level::Info, None, "server \"a");
        check("mcp-proxy stays: yes", Level::Info, None, "mcp-proxy stays: yes");
        check("", Level::Info, None, "");
    }

    #[test]
    fn nothing_acts_on_a_terminal() {
        check(
            "mcp-proxy: \u{1b}[31m\r\n\u{7f}\u{9b}2J\u{202e}",
            Level::Info,
            None,
            "\u{1b}[31m\r\n\u{7f}\u{9b}2J\u{202e}",
        );
    }

    /// Both at once: they are the process's.
    #[test]
    fn what_matters_too_little_is_not_said() {
        structured(false, Level::Warn);
        assert_eq!(said("mcp-proxy: listening"), None);
        assert_eq!(said("mcp-proxy: warning: x").as_deref(), Some("mcp-proxy: warning: x"));
        assert_eq!(announced("mcp-proxy: listening"), "mcp-proxy: listening");
        structured(true, Level::Info);
        assert!(said("mcp-proxy: listening").unwrap().starts_with('{'));
        let line: Value = serde_json::from_str(&by_server(Some("a"), "\u{1b}hello").unwrap()).unwrap();
        assert_eq!(
            (&line["logger"], &line["target"], &line["server"], &line["message"]),
            (&OF_SERVERS.into(), &"stderr".into(), &"a".into(), &"\u{1b}hello".into())
        );
        assert_eq!(said("mcp-proxy: debug: a client came"), None);
        structured(false, Level::Debug);
        assert_eq!(said("mcp-proxy: debug: a client came").as_deref(), Some("mcp-proxy: debug: a client came"));
        structured(true, Level::Error);
        assert_eq!(by_server(Some("a"), "hello"), None);
        structured(false, Level::Info);
        assert_eq!(said("mcp-proxy: listening").as_deref(), Some("mcp-proxy: listening"));
    }
}
