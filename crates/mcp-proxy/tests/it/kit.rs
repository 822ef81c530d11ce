//! What the tests share: a home of their own, a proxy to talk to, and a way to wait that neither
//! sleeps nor hangs.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// Longer than anything takes on a busy machine; a test that meets it has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn proxy_program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_mcp-proxy"))
}

/// The tests' own server, which cargo builds beside them.
pub fn fixture_program() -> PathBuf {
    let tests = std::env::current_exe().expect("the test binary has a path");
    let target = tests.parent().and_then(Path::parent).expect("it lies in target/PROFILE/deps");
    let fixture = target.join("examples/mcp-fixture");
    assert!(fixture.exists(), "cargo builds {} with the tests", fixture.display());
    fixture
}

/// The messages of `fixtures/wire`, by name.
pub fn wire_fixtures() -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire");
    let mut fixtures: Vec<(String, Vec<u8>)> = std::fs::read_dir(dir)
        .expect("the fixtures are part of the project")
        .map(|entry| {
            let entry = entry.expect("it can be listed");
            (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).expect("it can be read"))
        })
        .collect();
    fixtures.sort();
    assert!(fixtures.len() > 30);
    fixtures
}

/// A directory that is home to one test.
pub struct Sandbox {
    dir: tempfile::TempDir,
}

impl Sandbox {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a temporary directory") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn state(&self) -> mcp_store::StateDir {
        mcp_store::StateDir::find(Some(&self.path(".local/state/mcp-proxy"))).expect("a path was given")
    }

    /// The segments of every session so far.
    pub fn segments(&self) -> Vec<PathBuf> {
        self.state().segments().expect("the store can be read")
    }

    pub fn command<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Command {
        let mut command = Command::new(proxy_program());
        command.args(args).current_dir(self.dir.path()).env("HOME", self.dir.path());
        command.env_remove("MCP_PROXY_STATE_DIR").env("NO_COLOR", "1");
        command
    }

    /// Runs a command that answers and ends.
    pub fn output<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Output {
        let mut command = self.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("the program can be started");
        within_patience(child.id(), move || child.wait_with_output()).expect("a child can be waited for")
    }

    pub fn stdout<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> String {
        let output = self.output(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", output.status);
        String::from_utf8(output.stdout).expect("what people read is text")
    }

    /// `mcp-proxy run FLAGS -- FIXTURE ARGS`
    pub fn run(&self, flags: &[&str], fixture: &[&str]) -> Running {
        let program = fixture_program();
        let mut command = self.command(["run"]);
        command.args(flags).arg("--").arg(program).args(fixture);
        Running::start(command)
    }

    /// The same, with nobody reading its output.
    pub fn run_unread(&self, flags: &[&str], fixture: &[&str]) -> Running {
        let mut command = self.command(["run"]);
        command.args(flags).arg("--").arg(fixture_program()).args(fixture).stderr(Stdio::null());
        Running::start_unread(command)
    }

    /// `mcp-proxy run -- sh -c SCRIPT`
    pub fn run_script(&self, flags: &[&str], script: &str) -> Running {
        let mut command = self.command(["run"]);
        command.args(flags).args(["--", "sh", "-c", script]);
        Running::start(command)
    }
}

/// A proxy with a client's pipes on it.
pub struct Running {
    child: Option<Child>,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Receiver<String>,
    /// Its output, while nobody reads it.
    unread: Option<ChildStdout>,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        command.stderr(Stdio::piped());
        Self::start_quietly(command)
    }

    /// With a standard error of the caller's choice.
    pub fn start_quietly(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program can be started");
        drop(command);
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let (to_lines, lines) = sync_channel(1024);
        std::thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                match stdout.read_until(b'\n', &mut line) {
                    Ok(count) if count > 0 && to_lines.send(line).is_ok() => {}
                    _ => return,
                }
            }
        });
        Self::with_lines(child, lines, None)
    }

    /// With nobody reading its output.
    pub fn start_unread(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program can be started");
        let unread = child.stdout.take();
        Self::with_lines(child, sync_channel(1).1, unread)
    }

    fn with_lines(mut child: Child, lines: Receiver<Vec<u8>>, unread: Option<ChildStdout>) -> Self {
        let stdin = child.stdin.take();
        let (to_stderr, stderr) = sync_channel(1);
        let errors = child.stderr.take();
        std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(mut errors) = errors {
                let _ = errors.read_to_end(&mut text);
            }
            let _ = to_stderr.send(String::from_utf8_lossy(&text).into_owned());
        });
        Self { child: Some(child), stdin, lines, stderr, unread }
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Sends, and fails instead of hanging if the proxy does not take it.
    #[track_caller]
    pub fn send(&mut self, bytes: &[u8]) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
        let stdin = self.stdin.as_mut().expect("its input is open");
        // A pipe that can be written to takes this much without blocking.
        for block in bytes.chunks(rustix::pipe::PIPE_BUF) {
            let ready = poll(&mut [PollFd::new(stdin, PollFlags::OUT)], Some(&patience));
            assert!(ready.expect("a pipe can be polled") > 0, "the proxy does not read");
            stdin.write_all(block).expect("the proxy reads");
        }
    }

    /// Sends from a thread of its own, for what the proxy may not take at once.
    pub fn send_from_behind(&mut self, bytes: Vec<u8>) -> std::thread::JoinHandle<ChildStdin> {
        let mut stdin = self.stdin.take().expect("its input is open");
        std::thread::spawn(move || {
            let _ = stdin.write_all(&bytes);
            stdin
        })
    }

    /// Sends `block` over and over until the proxy takes no more, or `most` bytes are gone. Returns
    /// how much it took.
    pub fn send_until_stuck(&mut self, block: &[u8], most: usize) -> usize {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let stdin = self.stdin.as_ref().expect("its input is open");
        rustix::io::ioctl_fionbio(stdin, true).expect("a pipe can be made non-blocking");
        let stuck_after = Timespec { tv_sec: 0, tv_nsec: 700_000_000 };
        let mut taken = 0;
        while taken < most {
            let mut fds = [PollFd::new(stdin, PollFlags::OUT)];
            if poll(&mut fds, Some(&stuck_after)).expect("a pipe can be polled") == 0 {
                break;
            }
            match rustix::io::write(stdin, &block[taken % block.len()..]) {
                Ok(count) => taken += count,
                Err(rustix::io::Errno::AGAIN) => {}
                Err(error) => panic!("the proxy closed its input: {error}"),
            }
        }
        taken
    }

    /// Its output, which nobody has read so far.
    pub fn take_stdout(&mut self) -> ChildStdout {
        self.unread.take().expect("it was started unread")
    }

    pub fn close_stdout(&mut self) {
        self.unread = None;
    }

    pub fn put_back(&mut self, stdin: ChildStdin) {
        self.stdin = Some(stdin);
    }

    pub fn request(&mut self, id: u64, method: &str) {
        self.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n").as_bytes());
    }

    /// The next line, its end included.
    #[track_caller]
    pub fn line(&self) -> Vec<u8> {
        self.lines.recv_timeout(PATIENCE).expect("the proxy sends a line")
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        let line = self.line();
        serde_json::from_slice(&line).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)))
    }

    /// Sends a request and expects the fixture's answer to it.
    #[track_caller]
    pub fn ask(&mut self, id: u64, method: &str) {
        self.request(id, method);
        let answer = self.json();
        assert_eq!((&answer["id"], &answer["result"]["method"]), (&id.into(), &method.into()), "{answer}");
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub fn kill(&mut self) {
        self.child.as_mut().expect("it runs").kill().expect("it can be killed");
    }

    pub fn terminate(&self) {
        signal(self.pid(), rustix::process::Signal::TERM);
    }

    /// Every line that is left, once the proxy has closed its output.
    pub fn rest(&self) -> Vec<Vec<u8>> {
        let mut rest = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            rest.push(line);
        }
        rest
    }

    /// Closes its input and waits for its end.
    #[track_caller]
    pub fn end(mut self) -> (ExitStatus, String) {
        self.close_stdin();
        self.unread = None;
        let status = wait(self.child.take().expect("it runs"));
        let errors = self.stderr.recv_timeout(PATIENCE).expect("its standard error ends with it");
        (status, errors)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits for a process, but not for ever.
#[track_caller]
pub fn wait(mut child: Child) -> ExitStatus {
    within_patience(child.id(), move || child.wait()).expect("a child can be waited for")
}

/// What `wait` says, which comes with the end of a process.
#[track_caller]
fn within_patience<T: Send + 'static>(pid: u32, wait: impl FnOnce() -> T + Send + 'static) -> T {
    let (to_outcome, outcome) = sync_channel(1);
    std::thread::spawn(move || {
        let _ = to_outcome.send(wait());
    });
    outcome.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        signal(pid, rustix::process::Signal::KILL);
        panic!("process {pid} did not end");
    })
}

pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("a process id");
    let _ = rustix::process::kill_process(pid, signal);
}

/// The processes that carry `mark` in their environment, zombies aside.
pub fn marked_processes(mark: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("there is a process file system");
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.windows(mark.len()).any(|window| window == mark.as_bytes())
        })
        .collect()
}

/// Waits until `done` holds, looking again whenever the scheduler comes by.
#[track_caller]
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "never happened: {what}");
        std::thread::yield_now();
    }
}

/// How many files and sockets a proxy holds open, once faces can attach to it.
#[track_caller]
pub fn descriptors(pid: u32) -> usize {
    until("faces can attach", || can_be_attached_to(pid));
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Whether a process listens on a Unix socket: the last of what a proxy opens when it starts.
pub fn can_be_attached_to(pid: u32) -> bool {
    let sockets = std::fs::read_to_string(format!("/proc/{pid}/net/unix")).unwrap_or_default();
    let listening = sockets.lines().filter_map(|line| {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        (columns.get(3) == Some(&"00010000")).then(|| format!("socket:[{}]", columns[6]))
    });
    let listening: Vec<String> = listening.collect();
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut links = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links.any(|link| listening.iter().any(|socket| link.as_os_str() == socket.as_str()))
}

/// The processes that `pid` started and that are still there, zombies included.
pub fn children_of(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_task = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    of_task
        .flat_map(|children| children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The most a process has held in memory, in bytes, without the pages of its program: how many of those are
/// there depends on how large the program is and what else runs it.
pub fn peak_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let bytes = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_ascii_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<u64>().ok()).unwrap_or(0) * 1024
    };
    bytes("VmHWM:").saturating_sub(bytes("RssFile:"))
}

/// The messages of a session, verbatim.
pub fn recorded(segment: &Path) -> Vec<mcp_store::Recorded> {
    let session = mcp_store::Session::open_segment(segment).expect("the session opens");
    let mut messages = Vec::new();
    session
        .for_each(|message| {
            messages.push(message);
            Ok::<_, mcp_store::StoreError>(())
        })
        .expect("the session can be read");
    messages
}

/// How calls went, as the lines of an audit log say it: each by itself, whether it shares its line or not.
pub fn outcomes(lines: &[serde_json::Value]) -> impl Iterator<Item = &serde_json::Value> {
    lines.iter().flat_map(|line| match line["kind"].as_str() {
        Some("outcome") => std::slice::from_ref(line),
        Some("outcomes") => line["calls"].as_array().expect("they stand in an array"),
        _ => &[],
    })
}
