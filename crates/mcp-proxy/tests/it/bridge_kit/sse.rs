//! The older HTTP transport on either side: a client with its stream, and a server with one.

use serde_json::Value;

use super::Events;
use crate::http_kit::{
    Call, Client, LAST_CHUNK, Listening, Origin, Response, STREAM, accepted, chunk, event, get, post,
};

/// A client of a proxy that listens.
pub struct SseClient<'a> {
    proxy: &'a Listening,
    pub stream: Client,
    /// Where its messages go.
    pub endpoint: String,
}

impl<'a> SseClient<'a> {
    #[track_caller]
    pub fn open(proxy: &'a Listening) -> Self {
        Self::try_open(proxy).expect("there is a place")
    }

    /// Nothing comes back if there are as many clients as are allowed.
    #[track_caller]
    pub fn try_open(proxy: &'a Listening) -> Option<Self> {
        let mut stream = proxy.client();
        stream.send(&get("/sse", &["Accept: text/event-stream"]));
        let head = stream.head();
        if head.status() == 503 {
            return None;
        }
        assert_eq!((head.status(), head.get("content-type").as_deref()), (200, Some("text/event-stream")), "{head:?}");
        let first = stream.next();
        assert_eq!(first.event.as_deref(), Some("endpoint"), "{first:?}");
        Some(Self { proxy, stream, endpoint: first.data })
    }

    #[track_caller]
    pub fn post(&self, message: impl AsRef<[u8]>) -> Response {
        self.proxy.client().ask(&post(&self.endpoint, &[], message))
    }

    /// Posts a message that is taken.
    #[track_caller]
    pub fn tell(&self, message: impl AsRef<[u8]>) {
        let told = self.post(message);
        assert_eq!(told.status(), 202, "{told:?}");
    }

    /// The message of the next event.
    #[track_caller]
    pub fn message(&mut self) -> String {
        let event = self.stream.next();
        assert_eq!((event.event.as_deref(), &event.id), (Some("message"), &None), "{event:?}");
        event.data
    }

    #[track_caller]
    pub fn json(&mut self) -> Value {
        let message = self.message();
        serde_json::from_str(&message).unwrap_or_else(|error| panic!("{error}: {message}"))
    }
}

/// A server that the proxy connects to.
pub struct SseServer {
    pub origin: Origin,
    stream: Option<Call>,
    connections: usize,
}

impl SseServer {
    pub fn start() -> Self {
        Self { origin: Origin::start(), stream: None, connections: 0 }
    }

    pub fn url(&self) -> String {
        self.origin.url("/sse")
    }

    /// Takes a connection, and announces where its messages go.
    #[track_caller]
    pub fn accept(&mut self) {
        let mut stream = self.origin.call();
        assert_eq!(stream.asked(), "GET /sse");
        assert_eq!(stream.head.get("accept").as_deref(), Some("text/event-stream"));
        self.connections += 1;
        stream.send([STREAM, &chunk(format!("event: endpoint\ndata: {}\n\n", self.endpoint()))].concat());
        self.stream = Some(stream);
    }

    fn endpoint(&self) -> String {
        format!("/message?connection={}", self.connections)
    }

    /// A message that was posted, which is still to be answered for.
    #[track_caller]
    pub fn posted(&self) -> Call {
        let posted = self.origin.call();
        assert_eq!(posted.asked(), format!("POST {}", self.endpoint()));
        assert_eq!(posted.head.get("content-type").as_deref(), Some("application/json"));
        posted
    }

    /// The next message that comes; it is taken.
    #[track_caller]
    pub fn receive(&self) -> String {
        String::from_utf8_lossy(&self.receive_bytes()).into_owned()
    }

    #[track_caller]
    pub fn receive_bytes(&self) -> Vec<u8> {
        let mut posted = self.posted();
        posted.send(accepted());
        posted.body
    }

    #[track_caller]
    pub fn stream(&mut self) -> &mut Call {
        self.stream.as_mut().expect("a connection is open")
    }

    /// Sends a message on the stream.
    #[track_caller]
    pub fn say(&mut self, message: impl AsRef<[u8]>) {
        self.stream().send(event(message));
    }

    /// Ends the stream as it should.
    #[track_caller]
    pub fn end_stream(&mut self) {
        let mut stream = self.stream.take().expect("a connection is open");
        stream.send(LAST_CHUNK);
        stream.close();
    }

    /// Breaks the stream off.
    #[track_caller]
    pub fn break_off(&mut self) {
        self.stream.take().expect("a connection is open").reset();
    }
}
