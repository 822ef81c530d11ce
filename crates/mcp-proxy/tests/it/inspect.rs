//! What `inspect` shows and leaves out: filters, lines for scripts, sessions that grow, sessions that
//! are large, and text that means harm.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

use bytes::Bytes;
use mcp_store::segment::End;
use mcp_store::{
    AuditId, Direction, Mark, Outcome, OutcomeKind, RecordHead, RecordKind, SegmentWriter, SessionHeader, Transport,
    Verdict, VerdictKind,
};
use rustix::process::Signal;

use crate::commands::snapshot_settings;
use crate::kit::{Running, Sandbox, peak_bytes, signal, until, wait};

const UP: Direction = Direction::ClientToServer;
const DOWN: Direction = Direction::ServerToClient;

/// A recording that is written here, message by message.
struct Recording {
    writer: SegmentWriter,
    messages: u64,
    conversation: u32,
}

impl Recording {
    fn begin(path: &Path) -> Self {
        let header = SessionHeader {
            server_command: Some("files-server".into()),
            name: Some("files".into()),
            ..SessionHeader::begun(
                "7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a".parse().unwrap(),
                1_800_000_000_000_000_000,
                Transport::Stdio,
            )
        };
        Self { writer: SegmentWriter::create(path, &header).unwrap(), messages: 0, conversation: 1 }
    }

    fn add(&mut self, direction: Direction, flags: u16, correlated: u64, raw: &[u8]) {
        self.messages += 1;
        let (kind, sequence, conversation) = (RecordKind::Message, self.messages, self.conversation);
        let time_ns = 1_800_000_000_000_000_000 + sequence * 1_000_000;
        let head = RecordHead { kind, direction, flags, conversation, sequence, time_ns, correlated };
        self.writer.push(&head, &Bytes::copy_from_slice(raw));
        self.writer.commit().unwrap();
    }

    /// What became of a message after three seconds.
    fn decide(&mut self, sequence: u64, what: OutcomeKind, edited: Option<&str>) {
        let edited = edited.map(|edited| Bytes::copy_from_slice(edited.as_bytes()));
        let outcome = Outcome { what, by: "ann\u{1b}[2J".into(), why: "b1".into(), held_ns: 3_200_000_000, edited };
        self.writer.push_outcome(&about(sequence), &outcome);
        self.writer.commit().unwrap();
    }

    fn rule(&mut self, sequence: u64, what: VerdictKind, rule: Option<&str>, operation: Option<&'static str>) {
        let audit =
            Some(AuditId { instance: "0f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a".parse().unwrap(), number: sequence });
        let verdict = Verdict { what, rule: rule.map(Into::into), operation, audit };
        self.writer.push_verdict(&about(sequence), &verdict);
        self.writer.commit().unwrap();
    }

    /// A message that rules denied went nowhere.
    fn refuse(&mut self, sequence: u64) {
        let (what, by, why) = (OutcomeKind::Refused, "rules".into(), "denied".into());
        self.writer.push_outcome(&about(sequence), &Outcome { what, by, why, held_ns: 0, edited: None });
        self.writer.commit().unwrap();
    }

    fn mark(&mut self, sequence: u64, mark: &str, note: Option<&str>) {
        let mark = Mark { mark: Some(mark.to_owned()), note: note.map(str::to_owned) };
        self.writer.push_mark(&about(sequence), &mark);
        self.writer.commit().unwrap();
    }

    fn end(self) {
        self.writer.finish(1_800_000_001_000_000_000, &End::default()).unwrap();
    }
}

fn about(sequence: u64) -> RecordHead {
    let time_ns = 1_800_000_000_500_000_000;
    let (kind, direction) = (RecordKind::Outcome, UP);
    RecordHead { kind, direction, flags: 0, conversation: 1, sequence: 0, time_ns, correlated: sequence }
}

fn call(id: u64, tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#)
}

/// What passes a gateway stands there twice: as its client knows it, and as its server does.
#[test]
fn a_gateways_messages_say_with_which_server_they_are() {
    let sandbox = Sandbox::new();
    let mut recording = Recording::begin(&sandbox.path("s.mcpseg"));
    recording.writer.push_leg(1, 2, "notes\u{1b}[2J");
    recording.writer.push_leg(1, 3, "github");
    for (conversation, tool) in [(2, "write"), (3, "push")] {
        let asked = recording.messages + 1;
        recording.conversation = 1;
        recording.add(UP, 0, 0, call(asked, &format!("x__{tool}")).as_bytes());
        recording.conversation = conversation;
        recording.add(UP, RecordHead::CAUSED, asked, call(1, tool).as_bytes());
        recording.add(DOWN, 0, asked + 1, br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        recording.conversation = 1;
        recording.add(DOWN, 0, asked, format!(r#"{{"jsonrpc":"2.0","id":{asked},"result":{{}}}}"#).as_bytes());
    }
    recording.end();
    let mut shown = sandbox.stdout(["inspect", "s.mcpseg"]);
    shown.push_str("\n$ inspect --json --filter server:github\n");
    let of_github = ["inspect", "s.mcpseg", "--json", "--filter", "server:github"];
    shown.push_str(&sandbox.stdout(of_github));
    shown.push_str("\n$ mock\n");
    let refused = sandbox.command(["mock", "s.mcpseg"]).output().unwrap();
    shown.push_str(&String::from_utf8_lossy(&refused.stderr));
    assert!(!shown.contains('\u{1b}'), "{shown}");
    snapshot_settings().bind(|| insta::assert_snapshot!("inspect_gateway", shown));
    // A session file says the same.
    sandbox.stdout(["export", "s.mcpseg", "--output-format", "json", "-o", "s.json"]);
    let filed = ["inspect", "s.json", "--json", "--filter", "server:github"];
    assert_eq!(sandbox.stdout(filed), sandbox.stdout(of_github));
}

/// Messages that were held, and what became of them.
#[test]
fn what_was_held_is_marked() {
    let sandbox = Sandbox::new();
    let mut recording = Recording::begin(&sandbox.path("s.mcpseg"));
    for (id, tool) in [(1, "send"), (2, "write"), (3, "delete"), (4, "ask"), (5, "wait")] {
        recording.add(UP, RecordHead::HELD, 0, call(id, tool).as_bytes());
    }
    recording.decide(1, OutcomeKind::Forwarded, None);
    recording.decide(2, OutcomeKind::Modified, Some(&call(2, "write_less")));
    recording.decide(3, OutcomeKind::Dropped, None);
    recording.decide(4, OutcomeKind::Answered, None);
    recording.add(DOWN, RecordHead::FROM_PROXY, 4, br#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    recording.add(DOWN, 0, 2, br#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    recording.mark(7, "odd\u{202e}", Some("first line\n\u{1b}[2Jsecond line"));
    recording.end();
    let mut shown = sandbox.stdout(["inspect", "s.mcpseg"]);
    for expression in ["edited:yes", "held:yes not edited:yes", "mark:odd*"] {
        shown.push_str(&format!("\n$ inspect -v --filter '{expression}'\n"));
        shown.push_str(&sandbox.stdout(["inspect", "s.mcpseg", "-v", "--filter", expression]));
    }
    shown.push_str("\n$ inspect --json\n");
    shown.push_str(&sandbox.stdout(["inspect", "s.mcpseg", "--json", "--filter", "held:yes or mark:*"]));
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
    snapshot_settings().bind(|| insta::assert_snapshot!("inspect_held", shown));
    // A session file says the same.
    sandbox.stdout(["export", "s.mcpseg", "--output-format", "json", "-o", "s.json"]);
    let of_file = sandbox.stdout(["inspect", "s.json", "--json"]);
    assert_eq!(of_file.lines().count(), 7);
    for (line, of_file) in sandbox.stdout(["inspect", "s.mcpseg", "--json"]).lines().zip(of_file.lines()) {
        let object = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        let (mut recorded, mut filed) = (object(line), object(of_file));
        // A session file has no name.
        (recorded["server"], filed["server"]) = Default::default();
        assert_eq!(recorded, filed);
    }
}

/// Messages that rules decided about.
#[test]
fn what_rules_decided_is_shown() {
    let sandbox = Sandbox::new();
    let mut recording = Recording::begin(&sandbox.path("s.mcpseg"));
    let rulings = [
        ("read", VerdictKind::Allow, None, Some("read")),
        ("delete_repo", VerdictKind::Deny, Some("no-deletes\u{1b}[2J"), Some("delete")),
        ("send", VerdictKind::Ask, Some("ask-me"), Some("write")),
        ("write", VerdictKind::Observe, Some("would-be"), Some("write")),
        ("odd", VerdictKind::Deny, None, None),
    ];
    for (id, (tool, what, rule, operation)) in (1..).zip(rulings) {
        let is_stopped = matches!(what, VerdictKind::Deny | VerdictKind::Ask);
        recording.add(UP, if is_stopped { RecordHead::HELD } else { 0 }, 0, call(id, tool).as_bytes());
        recording.rule(id, what, rule, operation);
    }
    recording.refuse(2);
    recording.decide(3, OutcomeKind::Forwarded, None);
    recording.refuse(5);
    recording.add(DOWN, 0, 1, br#"{"jsonrpc":"2.0","id":1,"result":{"isError":true}}"#);
    recording.end();
    let mut shown = sandbox.stdout(["inspect", "s.mcpseg"]);
    for expression in ["verdict:deny", "rule:ask-*", "op:read", "op:write not verdict:observe"] {
        shown.push_str(&format!("\n$ inspect -v --filter '{expression}'\n"));
        shown.push_str(&sandbox.stdout(["inspect", "s.mcpseg", "-v", "--filter", expression]));
    }
    shown.push_str("\n$ inspect --json\n");
    shown.push_str(&sandbox.stdout(["inspect", "s.mcpseg", "--json", "--filter", "verdict:* or op:*"]));
    for format in ["md", "har", "html"] {
        let exported = sandbox.stdout(["export", "s.mcpseg", "--output-format", format]);
        assert!(exported.contains("no-deletes"), "{exported}");
        if format == "md" {
            shown.push_str(&format!("\n$ export --output-format md\n{exported}"));
        }
    }
    assert!(!shown.contains('\u{1b}'), "{shown}");
    snapshot_settings().bind(|| insta::assert_snapshot!("inspect_verdicts", shown));
    // A session file says the same.
    sandbox.stdout(["export", "s.mcpseg", "--output-format", "json", "-o", "s.json"]);
    let denied = |file: &str| sandbox.stdout(["inspect", file, "--json", "--filter", "verdict:deny"]);
    assert_eq!(denied("s.json").replace("files-server", "files"), denied("s.mcpseg").replace("files-server", "files"));
}

/// A little of everything.
fn write_session(path: &Path) {
    let mut recording = Recording::begin(path);
    recording.add(DOWN, RecordHead::NOISE, 0, b"starting\xff");
    let opening = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"ide"}}}"#;
    recording.add(UP, 0, 0, opening);
    recording.add(DOWN, 0, 2, br#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}"#);
    recording.add(UP, 0, 0, br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"read_file","arguments":{"path":"/etc/passwd"}}}"#);
    recording.add(UP, 0, 0, br#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"file:///tmp/x"}}"#);
    recording.add(DOWN, 0, 5, br#"{"jsonrpc":"2.0","id":2,"error":{"code":-32002,"message":"no such thing"}}"#);
    recording.add(DOWN, 0, 4, b"{\"jsonrpc\":\"2.0\",\n \"id\":\"a\",\"result\":{\"isError\":true,\"content\":[]}}");
    recording.add(UP, 0, 0, br#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"book"}}"#);
    recording.add(
        DOWN,
        0,
        8,
        br#"{"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","requestState":"s"}}"#,
    );
    recording.add(
        UP,
        0,
        0,
        br#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"book","requestState":"s"}}"#,
    );
    recording.add(DOWN, 0, 10, br#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    recording.add(UP, 0, 0, br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"delete_file"}}"#);
    let denial = br#"{"jsonrpc":"2.0","id":5,"error":{"code":-32000,"message":"Permission denied: rule 1"}}"#;
    recording.add(DOWN, RecordHead::FROM_PROXY, 12, denial);
    recording.end();
}

#[test]
fn a_filter_leaves_out_what_does_not_match() {
    let sandbox = Sandbox::new();
    write_session(&sandbox.path("s.mcpseg"));
    let mut shown = sandbox.stdout(["inspect", "s.mcpseg"]);
    for expression in ["status:err", "tool:read_* or noise:yes", "$.params.arguments.path ^= /etc", "nothing-like-it"] {
        shown.push_str(&format!("\n$ inspect --filter '{expression}'\n"));
        shown.push_str(&sandbox.stdout(["inspect", "s.mcpseg", "--filter", expression]));
    }
    insta::assert_snapshot!("inspect_filter", shown);
}

#[test]
fn a_bad_filter_is_underlined() {
    let sandbox = Sandbox::new();
    write_session(&sandbox.path("s.mcpseg"));
    let mut said = String::new();
    for expression in ["tol:search dur>1s", "tool:(", "status:err or", "text~(a", "\u{1b}[2J\u{202e} x:y"] {
        let output = sandbox.output(["inspect", "s.mcpseg", "--filter", expression]);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]));
        said.push_str(&format!("{}\n", String::from_utf8(output.stderr).unwrap()));
    }
    insta::assert_snapshot!("inspect_filter_errors", said);
}

#[test]
fn the_language_is_explained() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!("help_filter", sandbox.stdout(["help", "filter"]));
    insta::assert_snapshot!("help_inspect", sandbox.stdout(["inspect", "--help"]));
}

/// One object a line; the names are a promise.
#[test]
fn scripts_get_a_line_of_json_for_each_message() {
    let sandbox = Sandbox::new();
    write_session(&sandbox.path("s.mcpseg"));
    let lines = sandbox.stdout(["inspect", "s.mcpseg", "--json"]);
    let objects: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 13);
    assert!(objects.iter().all(|object| object["raw"].is_object() != object["raw_base64"].is_string()));
    snapshot_settings().bind(|| insta::assert_snapshot!("inspect_json", lines));
    let errors = sandbox.stdout(["inspect", "s.mcpseg", "--json", "--filter", "status:err >"]);
    assert_eq!(errors, "", "nothing but matching messages");
}

/// Neither a terminal nor a script is harmed by what stands in a message, and no screen is flooded.
#[test]
fn hostile_text_is_inert_and_folded() {
    let sandbox = Sandbox::new();
    let hostile = "\x1b]0;owned\x07\x1b[2J\u{9b}31m\u{202e}txt\u{200b}\u{e0041}\r\u{7f}";
    let escaped = serde_json::to_string(hostile).unwrap();
    let large = "\u{202e}A".repeat(100_000);
    let huge = "\u{202e}A".repeat((10 << 20) / 4);
    let mut recording = Recording::begin(&sandbox.path("s.mcpseg"));
    recording.add(
        UP,
        0,
        0,
        format!(r#"{{"id":{escaped},"method":{escaped},"params":{{"name":{escaped}}}}}"#).as_bytes(),
    );
    recording.add(UP, 0, 0, format!(r#"{{"id":2,"method":"{large}","params":{{"uri":"{large}"}}}}"#).as_bytes());
    recording.add(
        DOWN,
        0,
        1,
        format!(r#"{{"id":{escaped},"error":{{"code":1,"message":{escaped},"data":"{huge}"}}}}"#).as_bytes(),
    );
    recording.add(DOWN, 0, 2, format!(r#"{{"id":"{large}","error":{{"code":1e9,"message":"{large}"}}}}"#).as_bytes());
    recording.add(DOWN, RecordHead::NOISE, 0, hostile.as_bytes());
    recording.add(DOWN, RecordHead::NOISE, 0, large.as_bytes());
    recording.add(DOWN, 0, 0, format!("{{{hostile}").as_bytes());
    recording.add(DOWN, 0, 0, format!("[{}]", vec![escaped.as_str(); 20_000].join(",")).as_bytes());
    recording.end();
    let is_harmful = |c: char| c != '\n' && (c.is_control() || matches!(c, '\u{202e}' | '\u{200b}' | '\u{e0041}'));
    for args in [&["inspect"][..], &["inspect", "-v"], &["--color", "always", "inspect", "-v"]] {
        let shown = sandbox.stdout(args.iter().copied().chain(["s.mcpseg"]));
        // The only sequences are our own.
        let ours = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"];
        let plain = ours.iter().fold(shown, |shown, sequence| shown.replace(sequence, ""));
        assert_eq!(plain.chars().find(|c| is_harmful(*c)), None, "{args:?}");
        assert!(plain.len() < 2_000_000, "{args:?} prints {} bytes", plain.len());
    }
    let json = sandbox.stdout(["inspect", "--json", "s.mcpseg"]);
    assert_eq!(json.chars().find(|c| is_harmful(*c)), None);
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(first["raw"]["method"], hostile, "and scripts get what was there");
}

#[test]
fn a_running_session_is_followed_to_its_end() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet", "--name", "live"], &["answer"]);
    proxy.ask(1, "first");
    let inspect = Running::start(sandbox.command(["inspect", "live", "--follow"]));
    let matching = Running::start(sandbox.command(["inspect", "live", "-f", "--json", "--filter", "second <"]));
    until_line(&inspect, "still running");
    until_line(&inspect, "#002 ← first id=1");
    proxy.ask(2, "second");
    until_line(&inspect, "#004 ← second id=2");
    until_line(&matching, "\"sequence\":4");
    proxy.ask(3, "third");
    assert!(proxy.end().0.success());
    let rest: Vec<String> = inspect.rest().iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    let shown = rest.concat();
    snapshot_settings().bind(|| insta::assert_snapshot!("inspect_follow", shown));
    assert_eq!(matching.rest(), Vec::<Vec<u8>>::new());
    assert!(inspect.end().0.success() && matching.end().0.success());
}

#[track_caller]
fn until_line(inspect: &Running, wanted: &str) {
    while !String::from_utf8_lossy(&inspect.line()).contains(wanted) {}
}

#[test]
fn following_ends_with_an_interrupt() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet", "--name", "live"], &["answer"]);
    proxy.ask(1, "first");
    let mut command = sandbox.command(["inspect", "live", "--follow"]);
    let mut inspect = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(inspect.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("#002 ← first id=1")));
    signal(inspect.id(), Signal::INT);
    assert_eq!(wait(inspect).signal(), Some(Signal::INT.as_raw()));
    assert!(proxy.end().0.success());
}

/// The first lines are there before the rest is read, and what is held does not grow.
#[test]
fn a_large_session_is_read_as_it_is_printed() {
    const MESSAGES: u64 = 4_000;
    let sandbox = Sandbox::new();
    let mut recording = Recording::begin(&sandbox.path("s.mcpseg"));
    let filling = "x".repeat(16_000);
    for id in 0..MESSAGES / 2 {
        let call = format!(r#"{{"id":{id},"method":"tools/call","params":{{"name":"t","filling":"{filling}"}}}}"#);
        recording.add(UP, 0, 0, call.as_bytes());
        recording.add(DOWN, 0, recording.messages, format!(r#"{{"id":{id},"result":"{filling}"}}"#).as_bytes());
    }
    recording.end();
    let size = std::fs::metadata(sandbox.path("s.mcpseg")).unwrap().len();
    let mut inspect = sandbox.command(["inspect", "s.mcpseg"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = inspect.stdout.take().unwrap();
    let mut first = [0; 1];
    output.read_exact(&mut first).unwrap();
    // It goes on until the pipe is full, and has no reason to read on after that.
    let read = || {
        let io = std::fs::read_to_string(format!("/proc/{}/io", inspect.id())).unwrap();
        io.lines().next().unwrap().strip_prefix("rchar: ").unwrap().parse::<u64>().unwrap()
    };
    let mut before = read();
    until("it has filled the pipe", || {
        std::thread::yield_now();
        let is_full = rustix::io::ioctl_fionread(&output).unwrap() >= 60_000;
        let now = read();
        std::mem::replace(&mut before, now) == now && is_full
    });
    assert!(read() < size / 2, "{} of {size} bytes were read", read());
    let (mut shown, mut peak) = (Vec::new(), 0);
    for line in BufReader::new(output).split(b'\n') {
        shown.push(line.unwrap());
        peak = peak_bytes(inspect.id()).max(peak);
    }
    assert!(wait(inspect).success());
    assert!(peak < 24 << 20, "it held {peak} bytes");
    let text = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
    assert!(!shown[..8].iter().any(|line| line.starts_with(b"messages")), "not known yet");
    assert_eq!(text(&shown[shown.len() - 3]), "#4000 ← tools/call [t] id=1999 1.0ms ok ↩ #3999");
    assert_eq!(text(&shown[shown.len() - 1]), format!("messages     {MESSAGES}"));
}

#[test]
fn whoever_has_seen_enough_may_go() {
    let sandbox = Sandbox::new();
    let mut recording = Recording::begin(&sandbox.path("s.mcpseg"));
    (0..20_000).for_each(|_| recording.add(UP, 0, 0, br#"{"method":"notifications/progress"}"#));
    recording.end();
    let mut inspect = sandbox.command(["inspect", "s.mcpseg"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(inspect.stdout.take());
    assert!(wait(inspect).success());
}
