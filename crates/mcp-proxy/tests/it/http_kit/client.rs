//! A client that sends raw bytes and reads answers one at a time.

use std::net::TcpStream;

use super::wire::{Head, Piece, Wire};

pub struct Client {
    wire: Wire,
    method: String,
    /// What has come of the body that is being read, and was not taken yet.
    decoded: Vec<u8>,
}

pub struct Response {
    pub head: Head,
    pub body: Vec<u8>,
    /// Whether the body ended as it should.
    pub is_whole: bool,
}

impl Response {
    pub fn status(&self) -> u16 {
        self.head.status()
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?} {text}", self.head))
    }

    /// The code of the JSON-RPC error that it holds, and the id it is for.
    #[track_caller]
    pub fn error(&self) -> (i64, serde_json::Value) {
        let json = self.json();
        (json["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {json}")), json["id"].clone())
    }
}

impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(300)]);
        write!(f, "{:?} {body:?}", self.head)
    }
}

impl Client {
    pub fn connect(port: u16) -> Self {
        Self::on(TcpStream::connect(("127.0.0.1", port)).expect("the proxy listens"))
    }

    pub fn on(tcp: TcpStream) -> Self {
        Self { wire: Wire::new(tcp), method: String::new(), decoded: Vec::new() }
    }

    #[track_caller]
    pub fn send(&mut self, bytes: &[u8]) {
        self.remember_method(bytes);
        self.wire.send(bytes);
    }

    /// Sends to a proxy that may have had enough already.
    pub fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.remember_method(bytes);
        self.wire.try_send(bytes)
    }

    /// Answers to HEAD have no body, whatever their head says.
    fn remember_method(&mut self, bytes: &[u8]) {
        if bytes.first().is_some_and(u8::is_ascii_uppercase) {
            let method = bytes.split(|&byte| byte == b' ').next().unwrap_or_default();
            self.method = String::from_utf8_lossy(&method[..method.len().min(16)]).into_owned();
        }
    }

    /// Sends a request and reads the answer to it.
    #[track_caller]
    pub fn ask(&mut self, request: &[u8]) -> Response {
        self.send(request);
        self.response()
    }

    /// The head of the next answer; its body is to be read next.
    #[track_caller]
    pub fn head(&mut self) -> Head {
        self.try_head().expect("the proxy answers")
    }

    /// The head of the next answer, if one comes before the connection ends.
    #[track_caller]
    pub fn try_head(&mut self) -> Option<Head> {
        let head = self.wire.head()?;
        self.wire.expect_body(head.answer_body(&self.method));
        self.decoded.clear();
        Some(head)
    }

    #[track_caller]
    pub fn response(&mut self) -> Response {
        let head = self.head();
        self.rest_of(head)
    }

    #[track_caller]
    pub fn try_response(&mut self) -> Option<Response> {
        let head = self.try_head()?;
        Some(self.rest_of(head))
    }

    #[track_caller]
    fn rest_of(&mut self, head: Head) -> Response {
        let (body, is_whole) = self.wire.whole_body();
        Response { head, body, is_whole }
    }

    /// The next bytes of the body, exactly `count` of them.
    #[track_caller]
    pub fn body(&mut self, count: usize) -> Vec<u8> {
        while self.decoded.len() < count {
            self.more();
        }
        let rest = self.decoded.split_off(count);
        std::mem::replace(&mut self.decoded, rest)
    }

    /// Reads `count` bytes of the body and keeps none.
    #[track_caller]
    pub fn discard(&mut self, count: usize) {
        let mut left = count - self.decoded.len();
        self.decoded.clear();
        while left > 0 {
            self.more();
            left = left.checked_sub(self.decoded.len()).expect("no more than that comes");
            self.decoded.clear();
        }
    }

    /// The next event of the body as it came, with the blank line that ends it.
    #[track_caller]
    pub fn event(&mut self) -> String {
        String::from_utf8_lossy(&self.event_bytes()).into_owned()
    }

    #[track_caller]
    pub fn event_bytes(&mut self) -> Vec<u8> {
        let is_end = |window: &[u8]| window.ends_with(b"\n\n") || window.ends_with(b"\r\r") || window == b"\r\n\r\n";
        loop {
            let end = (2..=self.decoded.len()).find(|&end| is_end(&self.decoded[end.saturating_sub(4)..end]));
            if let Some(end) = end {
                let rest = self.decoded.split_off(end);
                return std::mem::replace(&mut self.decoded, rest);
            }
            self.more();
        }
    }

    /// The data of the next event that has any.
    #[track_caller]
    pub fn message(&mut self) -> String {
        loop {
            let event = self.event();
            let data: Vec<&str> = event.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
            if !data.is_empty() {
                return data.join("\n");
            }
        }
    }

    #[track_caller]
    fn more(&mut self) {
        match self.wire.piece() {
            Piece::Data(data) => self.decoded.extend_from_slice(&data),
            Piece::End => panic!("the body ended; left of it: {:?}", String::from_utf8_lossy(&self.decoded)),
            Piece::Broken => panic!("the body broke off; left of it: {:?}", String::from_utf8_lossy(&self.decoded)),
        }
    }

    /// What is left of the body, and whether it ended as it should.
    #[track_caller]
    pub fn rest(&mut self) -> (Vec<u8>, bool) {
        let (rest, is_whole) = self.wire.whole_body();
        let mut all = std::mem::take(&mut self.decoded);
        all.extend_from_slice(&rest);
        (all, is_whole)
    }

    /// Waits for the proxy to close, and returns what it sent before that.
    #[track_caller]
    pub fn until_closed(&mut self) -> Vec<u8> {
        self.wire.until_closed()
    }

    /// Closes our sending half.
    pub fn finish_sending(&self) {
        self.wire.finish_sending();
    }

    pub fn tcp(&self) -> &TcpStream {
        self.wire.tcp()
    }
}
