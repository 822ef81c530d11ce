//! Entries of a HAR.

use serde_json::{Value, json};

use super::body::{content, post_data};
use super::open::{Call, Exchange};
use crate::exchange::Headers;
use crate::recorded::{Direction, Transport, timestamp};
use crate::session::Summary;
use crate::story::{Status, Told};

const JSON: &str = "application/json";
const STREAM: &str = "text/event-stream";
/// A longer URL is cut: no tool shows it.
const URL_MAX: usize = 8 * 1024;

/// How things are called that have no address.
#[derive(Default)]
pub(super) struct Naming {
    /// `http://127.0.0.1:8080`, of the server.
    origin: Option<String>,
    /// What stands in for a host where there is none.
    pipe: String,
    /// How the server is reached, if that is HTTP.
    transport: Option<Transport>,
}

impl Naming {
    pub(super) fn of(session: &Summary) -> Self {
        let header = &session.header;
        let origin = header.server_url.as_deref().and_then(|url| {
            let host = url.find("://")? + 3;
            Some(url[..url[host..].find(['/', '?', '#']).map_or(url.len(), |end| host + end)].to_owned())
        });
        let program = header.server_command.as_deref().and_then(|command| command.split_ascii_whitespace().next());
        let program = program.and_then(|program| program.rsplit('/').next());
        let name = header.name.as_deref().or(program).unwrap_or("server");
        let pipe: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(60).collect();
        let pipe = if pipe.is_empty() { "server".to_owned() } else { pipe.to_ascii_lowercase() };
        Self { origin, pipe, transport: Some(header.transport).filter(|transport| *transport != Transport::Stdio) }
    }
}

impl Exchange {
    pub(super) fn entry(&self, naming: &Naming) -> Value {
        let began = self.request.as_ref().map(|(mark, _)| mark.time_ns);
        let answered = self.answer.as_ref().map(|(mark, _)| mark.time_ns);
        let ended = self.end.as_ref().map(|(mark, _)| mark.time_ns);
        let start = began.or(self.seen_ns).or(answered).or(ended).unwrap_or(0);
        let until = ended.or(answered).unwrap_or(start).max(start);
        let first = answered.unwrap_or(until).clamp(start, until);
        let transport = self.transport.or(naming.transport).unwrap_or_else(|| self.likely_transport());
        let messages = [&self.sent.sequences[..], &self.got.sequences[..]].concat();
        let mut entry = json!({
            "startedDateTime": timestamp(start).to_string(),
            "time": ms(until - start),
            "request": self.request(naming),
            "response": self.response(),
            "cache": {},
            "timings": { "send": 0, "wait": ms(first - start), "receive": ms(until - first) },
            "_transport": transport,
            "_exchange": self.number,
            "_conversation": self.conversation,
            "_messages": messages,
        });
        let how = self.end.as_ref().and_then(|(_, how)| how.clone());
        let lent =
            self.is_lent.then(|| "the body of the request is what the client sent over its own transport".into());
        let notes: Vec<String> =
            [how.clone(), lent, self.sent.missing(), self.got.missing()].into_iter().flatten().collect();
        if !notes.is_empty() {
            entry["comment"] = notes.join("; ").into();
        }
        if let Some(how) = how {
            entry["_error"] = how.into();
        }
        with_upstream(entry, self.upstream.as_deref())
    }

    /// No message says; our listener has the older transport at these.
    fn likely_transport(&self) -> Transport {
        let target = self.request.as_ref().map_or("", |(_, head)| head.target.as_str());
        match target.starts_with("/sse") || target.starts_with("/message") {
            true => Transport::Sse,
            false => Transport::StreamableHttp,
        }
    }

    fn request(&self, naming: &Naming) -> Value {
        let nothing = Headers::default();
        let head = self.request.as_ref().map(|(_, head)| head);
        let headers = head.map_or(&nothing, |head| &head.headers);
        let target = head.map_or("/", |head| head.target.as_str());
        let origin = headers.get("host").map(|host| format!("http://{host}")).or_else(|| naming.origin.clone());
        let url = format!("{}{target}", origin.unwrap_or_else(|| "http://unknown".into()));
        let mut request = request(head.map_or("GET", |head| &head.method), &url, "HTTP/1.1", headers);
        if !self.sent.is_empty() {
            let wire = self.sent.wire(false);
            request["bodySize"] = wire.len().into();
            request["postData"] = post_data(&wire, headers.get("content-type").unwrap_or(JSON));
        }
        request
    }

    fn response(&self) -> Value {
        let nothing = Headers::default();
        let head = self.answer.as_ref().map(|(_, head)| head);
        let headers = head.map_or(&nothing, |head| &head.headers);
        let media = headers.get("content-type").unwrap_or(if self.got.is_empty() { "x-unknown" } else { JSON });
        let is_stream =
            head.and_then(|head| head.content_type()).is_some_and(|media| media.eq_ignore_ascii_case(STREAM));
        let body = self.got.wire(is_stream);
        response(head.map_or(0, |head| head.status), "HTTP/1.1", headers, &body, media)
    }
}

/// Says which server of a gateway it was with.
fn with_upstream(mut entry: Value, upstream: Option<&str>) -> Value {
    if let Some(server) = upstream {
        entry["_upstream"] = server.into();
    }
    entry
}

/// A message that crossed a pipe, as if HTTP had carried it.
pub(super) fn mapped(naming: &Naming, call: &Call, answer: Option<&Told>) -> Value {
    let took = answer.map_or(0, |answer| answer.recorded.time_ns.saturating_sub(call.time_ns));
    let mut url = format!("stdio://{}/", naming.pipe);
    for part in [call.method.as_deref(), call.subject.as_deref()].into_iter().flatten() {
        url.push_str(if url.ends_with('/') { "" } else { "/" });
        url.push_str(part);
    }
    let mut request = request("POST", &url, "stdio", &Headers::default());
    request["bodySize"] = call.raw.len().into();
    request["postData"] = post_data(&call.raw, JSON);
    let (status, body) = match answer {
        Some(answer) => (200, &answer.recorded.raw[..]),
        None if call.is_request => (0, &b""[..]),
        None => (202, &b""[..]),
    };
    let direction = match call.direction {
        Direction::ClientToServer => "the client's",
        Direction::ServerToClient => "the server's",
    };
    let fate = match &call.kept_back {
        Some(why) => format!("; {why}"),
        None if call.is_request && answer.is_none() => "; it was never answered".to_owned(),
        None => String::new(),
    };
    let entry = json!({
        "startedDateTime": timestamp(call.time_ns).to_string(),
        "time": ms(took),
        "request": request,
        "response": response(status, "stdio", &Headers::default(), body, if body.is_empty() { "x-unknown" } else { JSON }),
        "cache": {},
        "timings": { "send": 0, "wait": ms(took), "receive": 0 },
        "comment": format!("{direction} {} over {}, mapped: no HTTP took place{fate}", call.kind, call.transport.as_str()),
        "_transport": call.transport,
        "_direction": call.direction,
        "_conversation": call.conversation,
        "_messages": std::iter::once(call.sequence).chain(answer.map(|answer| answer.recorded.sequence)).collect::<Vec<_>>(),
        "_mcp": {
            "method": call.method,
            "name": call.subject,
            "status": answer.and_then(Told::status).map(Status::as_str),
            "code": answer.and_then(Told::status).and_then(Status::code),
        },
    });
    with_upstream(entry, call.upstream.as_deref())
}

fn request(method: &str, url: &str, version: &str, headers: &Headers) -> Value {
    let url = plain_url(url);
    let (_, query) = url.split_once('?').unwrap_or(("", ""));
    let query = query.split('#').next().unwrap_or_default();
    let query: Vec<Value> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            json!({ "name": name, "value": value })
        })
        .collect();
    json!({
        "method": method,
        "url": url,
        "httpVersion": version,
        "cookies": [],
        "headers": pairs(headers),
        "queryString": query,
        "headersSize": -1,
        "bodySize": 0,
    })
}

fn response(status: u16, version: &str, headers: &Headers, body: &[u8], media: &str) -> Value {
    json!({
        "status": status,
        "statusText": reason(status),
        "httpVersion": version,
        "cookies": [],
        "headers": pairs(headers),
        "content": content(body, media),
        "redirectURL": headers.get("location").map(plain_url).unwrap_or_default(),
        "headersSize": -1,
        "bodySize": body.len(),
    })
}

fn pairs(Headers(headers): &Headers) -> Vec<Value> {
    headers.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

/// Only what may stand in an address; the rest is percent-encoded. A peer chose what is in it.
fn plain_url(url: &str) -> String {
    let host = url.find("://").map_or(0, |at| at + 3);
    let host_end = url[host..].find('/').map_or(url.len(), |end| host + end);
    let mut plain = String::with_capacity(url.len());
    for (at, &byte) in url.as_bytes()[..url.floor_char_boundary(URL_MAX)].iter().enumerate() {
        match byte {
            b'[' | b']' if at < host_end => plain.push(char::from(byte)),
            b'A'..=b'Z'
            | b'a'..=b'z'
            | b'0'..=b'9'
            | b'-'
            | b'.'
            | b'_'
            | b'~'
            | b':'
            | b'/'
            | b'?'
            | b'#'
            | b'@'
            | b'!'
            | b'$'
            | b'&'
            | b'\''
            | b'('
            | b')'
            | b'*'
            | b'+'
            | b','
            | b';'
            | b'='
            | b'%' => plain.push(char::from(byte)),
            _ => plain.push_str(&format!("%{byte:02X}")),
        }
    }
    plain
}

fn ms(ns: u64) -> f64 {
    // To the microsecond; a finer figure would only pretend.
    (ns / 1_000) as f64 / 1_000.0
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}
