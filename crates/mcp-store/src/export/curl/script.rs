//! The text of the script. Everything in it that came from a peer stands in quotes, or in a comment
//! with its control characters made visible.

use std::collections::BTreeSet;
use std::io::{self, Write};

use mcp_wire::visible::visible;

use super::super::Ending;
use super::super::shell::{printf, word};
use super::{Call, Talk};
use crate::recorded::Transport;
use crate::redact::MASK;
use crate::session::Summary;

/// Headers that speak of one connection, or that `curl` finds itself.
const LEFT_TO_CURL: &[&str] = &[
    "host",
    "content-length",
    "connection",
    "keep-alive",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "accept-encoding",
    "user-agent",
    "mcp-session-id",
    "last-event-id",
    "expect",
];

/// No address makes `curl` do anything but HTTP.
const SAFELY: &str = "-sSg --proto =http,https";

pub(super) struct Script<'a> {
    session: &'a Summary,
    talks: Vec<&'a Talk>,
}

impl<'a> Script<'a> {
    pub(super) fn new(session: &'a Summary, talks: impl Iterator<Item = &'a Talk>) -> Self {
        Self { session, talks: talks.collect() }
    }

    pub(super) fn write(&self, out: &mut dyn Write, ending: &Ending, left_out: Option<String>) -> io::Result<()> {
        let header = &self.session.header;
        writeln!(out, "#!/bin/sh")?;
        writeln!(out, "# Calls of session {}, made again. Read this before you run it.", header.id)?;
        if ending.masked > 0 {
            writeln!(out, "# {} secrets of the session are masked. Put yours in where {MASK} stands.", ending.masked)?;
        }
        if let Some(left_out) = left_out {
            writeln!(out, "# Left out: {}.", visible(&left_out))?;
        }
        if ending.is_partial {
            writeln!(out, "# This is a part: the export was interrupted.")?;
        }
        writeln!(out, "set -eu")?;
        if self.talks.is_empty() {
            return writeln!(out, "echo 'no call was chosen' >&2\nexit 1");
        }
        match (&header.server_url, &header.server_command) {
            (Some(url), _) => self.to_address(out, url),
            (None, Some(command)) => self.to_command(out, command),
            (None, None) => writeln!(out, "echo 'the session does not say what its server was' >&2\nexit 1"),
        }
    }

    fn to_command(&self, out: &mut dyn Write, command: &str) -> io::Result<()> {
        let Ok(words) = shell_words::split(command) else {
            return writeln!(
                out,
                "# {}\necho 'the command of the server cannot be read' >&2\nexit 1",
                visible(command)
            );
        };
        let command = words.iter().map(|part| word(part)).collect::<Vec<_>>().join(" ");
        for talk in &self.talks {
            writeln!(out, "\n{{")?;
            for call in talk.handshake.iter().chain(&talk.calls) {
                writeln!(out, "  {}", call.comment())?;
                writeln!(out, "  {}; echo", printf(&call.on_one_line()))?;
            }
            writeln!(out, "  # Many servers end with their input: they get this long to answer.")?;
            writeln!(out, "  sleep \"${{WAIT:-2}}\"")?;
            writeln!(out, "}} | {command}")?;
        }
        Ok(())
    }

    fn to_address(&self, out: &mut dyn Write, url: &str) -> io::Result<()> {
        let is_sse = self.session.header.transport == Transport::Sse;
        writeln!(out, "url={}", word(url))?;
        writeln!(out, "url=${{MCP_URL:-$url}}")?;
        for (variable, value) in self.masked_headers() {
            writeln!(out, "masked={}", word(&value))?;
            writeln!(out, "{variable}=${{{variable}:-$masked}}")?;
        }
        writeln!(out, "scratch=$(mktemp -d)")?;
        writeln!(out, "trap 'rm -rf \"$scratch\"' EXIT")?;
        for talk in &self.talks {
            if is_sse { stream(out, talk)? } else { posts(out, talk)? }
        }
        Ok(())
    }

    /// Headers whose values are secret: each is a variable that can be set outside.
    fn masked_headers(&self) -> BTreeSet<(String, String)> {
        let calls = self.talks.iter().flat_map(|talk| talk.handshake.iter().chain(&talk.calls));
        let headers = calls.filter_map(|call| call.headers.as_ref()).flat_map(|headers| &headers.0);
        let masked = headers.filter(|(name, value)| is_sent(name, value) && value.contains(MASK));
        let mut variables = BTreeSet::new();
        for (name, value) in masked {
            if !variables.iter().any(|(known, _)| *known == variable(name)) {
                variables.insert((variable(name), value.clone()));
            }
        }
        variables
    }
}

/// Streamable HTTP: a POST a message.
fn posts(out: &mut dyn Write, talk: &Talk) -> io::Result<()> {
    let is_opened = talk.handshake.first().is_some_and(|call| call.is_initialize);
    writeln!(out, "\nsession=")?;
    for call in talk.handshake.iter().chain(&talk.calls) {
        writeln!(out, "{}", call.comment())?;
        let keeps_heads = if call.is_initialize { " -D \"$scratch/heads\"" } else { "" };
        let session =
            if is_opened && !call.is_initialize { " \\\n    ${session:+-H \"mcp-session-id: $session\"}" } else { "" };
        let headers = call.headers("application/json, text/event-stream");
        writeln!(out, "{} |", printf(&call.raw))?;
        writeln!(
            out,
            "  curl {SAFELY}{keeps_heads} -X POST --url \"$url\"{headers}{session} \\\n    --data-binary @-; echo"
        )?;
        if call.is_initialize {
            writeln!(
                out,
                "session=$(tr -d '\\r' <\"$scratch/heads\" | sed -n 's/^[Mm][Cc][Pp]-[Ss]ession-[Ii]d: *//p')"
            )?;
        }
    }
    Ok(())
}

/// The older transport: messages are posted, and what comes back comes on a stream that is opened first.
fn stream(out: &mut dyn Write, talk: &Talk) -> io::Result<()> {
    writeln!(out, "\n: >\"$scratch/stream\"")?;
    write!(out, "curl {SAFELY} -N --url \"$url\" -H 'accept: text/event-stream'")?;
    let secrets = talk.handshake.iter().chain(&talk.calls).next().map(Call::masked_options).unwrap_or_default();
    writeln!(out, "{secrets} >\"$scratch/stream\" &")?;
    out.write_all(
        br#"reader=$!
trap 'kill "$reader" 2>/dev/null || :; rm -rf "$scratch"' EXIT
# The server says where messages go; that must be where the stream came from.
origin=$(printf %s "$url" | sed 's#^\([a-z]*://[^/?\#]*\).*#\1#')
endpoint=
while [ -z "$endpoint" ]; do
  kill -0 "$reader" || { echo 'there is no stream' >&2; exit 1; }
  sleep 1
  endpoint=$(tr -d '\r' <"$scratch/stream" | sed -n '/^event: *endpoint/,/^$/s/^data: *//p' | head -n 1)
done
case $endpoint in
  "$origin"/*) ;;
  /*) endpoint=$origin$endpoint ;;
  *) printf 'the endpoint is elsewhere: %s\n' "$endpoint" >&2; exit 1 ;;
esac
"#,
    )?;
    for call in talk.handshake.iter().chain(&talk.calls) {
        writeln!(out, "{}", call.comment())?;
        writeln!(out, "{} |", printf(&call.raw))?;
        writeln!(
            out,
            "  curl {SAFELY} -o /dev/null -X POST --url \"$endpoint\"{} --data-binary @-",
            call.headers("*/*")
        )?;
    }
    writeln!(out, "sleep \"${{WAIT:-2}}\"")?;
    writeln!(out, "kill \"$reader\" 2>/dev/null || :")?;
    writeln!(out, "cat \"$scratch/stream\"")
}

impl Call {
    /// `# #3 tools/call [read_note]`
    fn comment(&self) -> String {
        format!("# #{} {}", self.sequence, visible(&self.what))
    }

    /// Where lines are messages, no message has a line break.
    fn on_one_line(&self) -> Vec<u8> {
        self.raw.iter().map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }).collect()
    }

    /// Only what proves who asks.
    fn masked_options(&self) -> String {
        let headers = self.headers.iter().flat_map(|headers| &headers.0);
        let masked = headers.filter(|(name, value)| is_sent(name, value) && value.contains(MASK));
        masked.map(|(name, _)| format!(" \\\n    -H \"{name}: ${{{}}}\"", variable(name))).collect()
    }

    /// The headers it was sent with, or those that it needs.
    fn headers(&self, accept: &str) -> String {
        let mut options = String::new();
        let mut add = |word: String| options.push_str(&format!(" \\\n    -H {word}"));
        let recorded = self.headers.iter().flat_map(|headers| &headers.0).filter(|(name, value)| is_sent(name, value));
        let mut names = Vec::new();
        for (name, value) in recorded {
            names.push(name.to_ascii_lowercase());
            if value.contains(MASK) {
                add(format!("\"{name}: ${{{}}}\"", variable(name)));
            } else {
                add(word(&format!("{name}: {value}")));
            }
        }
        let is_plain = |text: &&str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let version = self.revision.as_deref().filter(|_| !self.is_initialize).filter(is_plain);
        let needed =
            [("content-type", Some("application/json")), ("accept", Some(accept)), ("mcp-protocol-version", version)];
        for (name, value) in needed {
            if let Some(value) = value.filter(|_| !names.iter().any(|known| known == name)) {
                add(word(&format!("{name}: {value}")));
            }
        }
        options
    }
}

/// Whether `curl` is given this header. One with anything odd in it is not sent again.
fn is_sent(name: &str, value: &str) -> bool {
    let is_token = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_plain = !value.contains(|c: char| c.is_control());
    is_token && is_plain && !LEFT_TO_CURL.contains(&name.to_ascii_lowercase().as_str())
}

/// `HEADER_X_API_KEY`
fn variable(name: &str) -> String {
    format!("HEADER_{}", name.replace('-', "_").to_ascii_uppercase())
}
