//! A server of the older HTTP transport.

use crate::http_kit::{Call, LAST_CHUNK, Origin, STREAM, accepted, chunk, event};

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
        let mut posted = self.posted();
        posted.send(accepted());
        posted.text()
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
