//! A client on a pipe and a server of Streamable HTTP, with the proxy between them.

use serde_json::{Value, json};

use super::{INITIALIZED, LEGACY, initialize};
use crate::http_kit::{Call, Origin, accepted, answer, call, json as json_answer, result};
use crate::kit::{Running, Sandbox};

const TRANSPORT: &str = "streamable-http";

/// A client and a server that have agreed on a session.
pub struct Pair {
    pub sandbox: Sandbox,
    pub proxy: Running,
    pub origin: Origin,
}

impl Pair {
    pub fn start(more: &[&str]) -> Self {
        let (sandbox, origin) = (Sandbox::new(), Origin::start());
        let proxy = sandbox.run_to(TRANSPORT, &origin.url("/mcp"), more);
        Self { sandbox, proxy, origin }
    }

    /// Opened, with no stream for what belongs to no call.
    #[track_caller]
    pub fn open() -> Self {
        Self::open_with(&[])
    }

    #[track_caller]
    pub fn open_with(more: &[&str]) -> Self {
        let mut pair = Self::start(more);
        pair.send(initialize(LEGACY));
        pair.answer_opening(LEGACY, "s1");
        assert_eq!(pair.proxy.json()["id"], "init");
        pair.send(INITIALIZED);
        pair.origin.call().send(accepted());
        pair.origin.call().send(answer("405 Method Not Allowed", &[], ""));
        pair
    }

    #[track_caller]
    pub fn send(&mut self, message: impl AsRef<str>) {
        self.proxy.send(format!("{}\n", message.as_ref()).as_bytes());
    }

    /// Answers an `initialize`.
    #[track_caller]
    pub fn answer_opening(&self, revision: &str, session: &str) -> Call {
        let mut opening = self.origin.call();
        assert_eq!((opening.asked().as_str(), opening.text()), ("POST /mcp", initialize(revision)));
        let session = format!("Mcp-Session-Id: {session}");
        opening.send(answer("200 OK", &["Content-Type: application/json", &session], opened(revision)));
        opening
    }

    /// A call that works, to see that everything is well.
    #[track_caller]
    pub fn ask(&mut self, id: u64) {
        self.send(call(id, "good"));
        let mut request = self.origin.call();
        assert_eq!(request.text(), call(id, "good"));
        request.send(json_answer(result(id)));
        assert_eq!(self.proxy.line(), format!("{}\n", result(id)).as_bytes());
    }

    /// Closes the client's side and expects a goodbye. What is left is where it was recorded.
    #[track_caller]
    pub fn end(mut self) -> Sandbox {
        self.proxy.close_stdin();
        let mut goodbye = self.origin.call();
        assert_eq!(goodbye.asked(), "DELETE /mcp");
        assert!(goodbye.head.get("mcp-session-id").is_some());
        goodbye.send(answer("200 OK", &[], ""));
        let (status, said) = self.proxy.end();
        assert!(status.success(), "{status}: {said}");
        assert!(!said.contains("panicked"), "{said}");
        self.sandbox
    }
}

/// What a server answers to `initialize`.
pub fn opened(revision: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": "init", "result": { "protocolVersion": revision, "capabilities": {} } }).to_string()
}

/// The id and the code of the error that comes next.
#[track_caller]
pub fn error_of(proxy: &Running) -> (Value, Value) {
    let answer = proxy.json();
    assert!(answer["error"].is_object(), "{answer}");
    (answer["id"].clone(), answer["error"]["code"].clone())
}
