//! What the tests of the control API share: an instance, and requests to it byte by byte.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use mcp_control::api::Event;
use mcp_control::{Address, Client, Events, Instances};
use serde_json::Value;

use crate::kit::{PATIENCE, Running, Sandbox, fixture_program, until};

/// A proxy that can be attached to, and the runtime of those who attach.
pub struct Attached {
    pub proxy: Running,
    pub sandbox: Sandbox,
    pub runtime: tokio::runtime::Runtime,
    pub client: Client,
    pub address: Address,
}

/// An answer as it came.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// What is said to be wrong, for programs.
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().expect("an error has a code").to_owned()
    }
}

impl Attached {
    pub fn begin(flags: &[&str], fixture: &[&str]) -> Self {
        let sandbox = Sandbox::new();
        let proxy = sandbox.run(flags, fixture);
        Self::to(sandbox, proxy)
    }

    /// Attaches to the only instance of a sandbox, once it is there.
    pub fn to(sandbox: Sandbox, proxy: Running) -> Self {
        let address = address(&sandbox);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { proxy, sandbox, runtime, client: Client::new(address.clone()), address }
    }

    /// One that serves TCP too: its port and the token that it shows.
    pub fn over_tcp() -> (Self, u16, String) {
        let sandbox = Sandbox::new();
        let errors = sandbox.path("errors");
        let mut command = sandbox.command(["run", "--quiet", "--control-port", "0", "--"]);
        command.arg(fixture_program()).arg("tools").stderr(std::fs::File::create(&errors).unwrap());
        let proxy = Running::start_quietly(command);
        let instance = Self::to(sandbox, proxy);
        let mut said = String::new();
        until("it says where", || {
            said = std::fs::read_to_string(&errors).unwrap();
            said.contains("/#token=") && said.ends_with('\n')
        });
        let address = said.split_once("control API on http://127.0.0.1:").unwrap().1;
        let (port, token) = address.split_once("/#token=").unwrap();
        (instance, port.parse().unwrap(), token.lines().next().unwrap().to_owned())
    }

    /// Calls a tool of the server, which says what it is told.
    pub fn call(&mut self, id: u64, text: &str) {
        self.proxy.send(format!("{}\n", crate::hold_kit::call(id, "echo", text)).as_bytes());
        assert_eq!(self.proxy.json()["id"], id);
    }

    /// Sends bytes over the socket, and reads what comes back.
    pub fn raw(&self, request: &[u8]) -> Answer {
        let Address::Socket(socket) = &self.address else { unreachable!("it is a socket") };
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        answer(stream, request)
    }

    /// A request with a body of JSON, or none.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        self.raw(&request(method, path, &["content-type: application/json"], body))
    }

    /// The next event of a stream.
    #[track_caller]
    pub fn next(&self, events: &mut Events) -> Event {
        let next = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, events.next()).await });
        next.expect("an event comes in time").expect("the stream goes on").expect("the stream goes on")
    }
}

/// Where the only instance of a sandbox is, once it is there.
#[track_caller]
pub fn address(sandbox: &Sandbox) -> Address {
    let instances = Instances::below(sandbox.state().root());
    let mut socket = None;
    until("the instance is found", || {
        socket = instances.find(None).ok().map(|running| running.socket);
        socket.as_ref().is_some_and(|socket| UnixStream::connect(socket).is_ok())
    });
    Address::Socket(socket.unwrap())
}

/// A request that asks for the connection to be closed after it.
pub fn request(method: &str, path: &str, headers: &[&str], body: &str) -> Vec<u8> {
    let mut request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for header in headers {
        request.push_str(&format!("{header}\r\n"));
    }
    request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    request.into_bytes()
}

/// The same over TCP, where the Host header is the test's.
pub fn over_tcp(port: u16, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
    let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    for header in headers {
        request.push_str(&format!("{header}\r\n"));
    }
    request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    answer(stream, request.as_bytes())
}

fn answer(mut stream: impl Read + Write, request: &[u8]) -> Answer {
    // Whoever is refused before the end of a long body may find the door closed.
    let _ = stream.write_all(request);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("an answer has a head");
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("an answer has a status");
    Answer { status, head, body: bytes[end + 4..].to_vec() }
}
