//! A proxy that listens.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

use super::client::Client;
use crate::kit::{PATIENCE, Sandbox, signal, wait};

/// Lines of standard error that are kept for a test to look at.
const LINES_MAX: usize = 4096;

pub struct Listening {
    child: Option<Child>,
    pub port: u16,
    /// Tests share it between threads.
    lines: Mutex<Receiver<String>>,
    /// What it said while it started.
    said: String,
}

impl Sandbox {
    /// `mcp-proxy proxy ARGS --listen 127.0.0.1:0`
    #[track_caller]
    pub fn listen<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Listening {
        let mut command = self.command(["proxy", "--listen", "127.0.0.1:0"]);
        command.args(args);
        Listening::start(command)
    }

    /// In front of a server at `url`.
    #[track_caller]
    pub fn listen_to(&self, transport: &str, url: &str, more: &[&str]) -> Listening {
        self.listen(["--transport", transport, "--target-url", url].iter().chain(more))
    }
}

impl Listening {
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    #[track_caller]
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program can be started");
        let errors = BufReader::new(child.stderr.take().expect("it is piped"));
        let (to_lines, lines) = sync_channel(LINES_MAX);
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                // What nobody looks at is read all the same, so that the proxy is never held up.
                let _ = to_lines.try_send(line);
            }
        });
        let mut listening = Self { child: Some(child), port: 0, lines: Mutex::new(lines), said: String::new() };
        while listening.port == 0 {
            let Ok(line) = listening.next_line() else {
                panic!("the proxy does not listen: {}", listening.said);
            };
            if let Some((_, address)) = line.split_once("listening on http://") {
                let port =
                    address.rsplit_once(':').map(|(_, rest)| rest.trim_end_matches(|c: char| !c.is_ascii_digit()));
                let port = port.map(|port| port.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default());
                listening.port = port.and_then(|port| port.parse().ok()).expect("the address has a port");
            }
            listening.said.push_str(&format!("{line}\n"));
        }
        listening
    }

    fn next_line(&self) -> Result<String, RecvTimeoutError> {
        self.lines.lock().unwrap().recv_timeout(PATIENCE)
    }

    /// Waits until it says a line with this in it.
    #[track_caller]
    pub fn says(&self, piece: &str) {
        while !self.next_line().expect("the proxy says it").contains(piece) {}
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    pub fn client(&self) -> Client {
        Client::connect(self.port)
    }

    pub fn terminate(&self) {
        signal(self.pid(), rustix::process::Signal::TERM);
    }

    /// Waits for its end and returns what it said.
    #[track_caller]
    pub fn wait(mut self) -> (ExitStatus, String) {
        let status = wait(self.child.take().expect("it runs"));
        let mut said = std::mem::take(&mut self.said);
        while let Ok(line) = self.next_line() {
            said.push_str(&format!("{line}\n"));
        }
        (status, said)
    }

    /// Asks it to end, and expects it to do so in order.
    #[track_caller]
    pub fn end(self) -> String {
        self.terminate();
        let (status, said) = self.wait();
        assert_eq!(status.code(), Some(0), "{status}: {said}");
        assert!(!said.contains("panicked"), "{said}");
        said
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
