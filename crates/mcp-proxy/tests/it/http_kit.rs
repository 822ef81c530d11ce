//! HTTP peers made by hand: a server and a client that send exactly the bytes they are told to and
//! keep exactly the bytes they got. Nothing here waits longer than [`PATIENCE`].

mod client;
mod listening;
mod origin;
mod recording;
mod wire;

pub use client::{Client, Response};
pub use listening::Listening;
pub use origin::{Call, Origin, Serving};
pub use recording::Recording;
pub use wire::{Head, Wire};

/// How a stream of events begins that says its lengths chunk by chunk.
pub const STREAM: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The version header of a client that closes what it gives up.
pub const MODERN: &str = "MCP-Protocol-Version: 2026-07-28";

/// A request with a message in it, as clients send it.
pub fn post(path: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut all = vec![format!("Content-Length: {}", body.len())];
    all.extend(headers.iter().map(|&header| header.to_owned()));
    let accept = "Accept: application/json, text/event-stream\r\n";
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{accept}{}\r\n\r\n",
        all.join("\r\n")
    );
    [head.as_bytes(), body].concat()
}

/// A request without a body.
pub fn get(path: &str, headers: &[&str]) -> Vec<u8> {
    bare("GET", path, headers)
}

pub fn bare(method: &str, path: &str, headers: &[&str]) -> Vec<u8> {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").into_bytes()
}

/// An answer with its length.
pub fn answer(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A message as an answer.
pub fn json(body: impl AsRef<[u8]>) -> Vec<u8> {
    answer("200 OK", &["Content-Type: application/json"], body)
}

pub fn accepted() -> Vec<u8> {
    answer("202 Accepted", &[], "")
}

pub fn chunk(data: impl AsRef<[u8]>) -> Vec<u8> {
    let data = data.as_ref();
    [format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()
}

/// An event with a message, as a chunk of a stream.
pub fn event(message: impl AsRef<[u8]>) -> Vec<u8> {
    chunk([b"data: ", message.as_ref(), b"\n\n"].concat())
}

pub fn call(id: impl std::fmt::Display, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)
}

pub fn result(id: impl std::fmt::Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

/// Whether what waits to be read has stopped growing, with a look in between for everybody else.
pub fn is_stuck(tcp: &std::net::TcpStream) -> bool {
    let waiting = || rustix::io::ioctl_fionread(tcp).unwrap();
    let before = waiting();
    for _ in 0..1000 {
        std::thread::yield_now();
    }
    before > 0 && waiting() == before
}
