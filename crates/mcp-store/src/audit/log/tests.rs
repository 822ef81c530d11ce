use std::fs::OpenOptions;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::super::line::HASH_LEN;
use super::*;
use crate::recorded::Direction;

struct Place {
    dir: tempfile::TempDir,
    instance: Uuid,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a directory"), instance: Uuid::new_v4() }
    }

    fn audit(&self) -> PathBuf {
        self.dir.path().join("audit")
    }

    fn begin(&self, part_bytes_max: u64) -> AuditLog {
        let begin = Begin {
            time_ns: 1_769_904_000_000_001_999,
            instance: self.instance,
            program: "mcp-proxy 0.1.0",
            server: Some("files"),
            rules_version: "abc123",
        };
        AuditLog::begin_with(&self.audit(), &begin, part_bytes_max).expect("a log")
    }

    /// A log that cannot be opened.
    fn unopened(&self) -> AuditLog {
        let (instance, program, rules_version) = (self.instance, "mcp-proxy 0.1.0", "abc123");
        let begin = Begin { time_ns: 1, instance, program, server: None, rules_version };
        AuditLog::unopened(&self.audit(), &begin, &io::Error::other("in the way"))
    }

    fn part(&self, number: u32) -> Vec<String> {
        let path = part_path(&self.audit(), &self.instance, number);
        fs::read_to_string(path).expect("a part").lines().map(str::to_owned).collect()
    }
}

fn decision(tool: &str) -> Decision<'_> {
    Decision {
        time_ns: 1_769_904_001_234_567_891,
        session: Uuid::nil(),
        sequence: 17,
        conversation: 0,
        client: Some("probe 1.0"),
        server: Some("files"),
        direction: Direction::ClientToServer,
        method: "tools/call",
        tool: Some(tool),
        operation: Some("delete"),
        verdict: "deny",
        rule: Some("nothing is deleted"),
        rules_version: "abc123",
        actor: "rule",
        why: None,
        held_ns: 0,
    }
}

fn outcome(of: u64) -> CallOutcome {
    CallOutcome {
        of,
        time_ns: 1_769_904_002_000_000_000,
        session: Uuid::nil(),
        sequence: 18,
        status: "error",
        code: Some(-32000),
        latency_ns: 765_432_109,
    }
}

/// Holds a log to its form, and returns its lines.
fn check_chain(lines: &[String]) -> Vec<Value> {
    let mut prev = LineHash::NONE.0;
    let mut values = Vec::new();
    for line in lines {
        let (before, hash) = line.rsplit_once(r#","hash":""#).expect("a hash");
        let hash = hash.strip_suffix(r#""}"#).expect("the hash is last");
        let (head, tail) = before.split_at(before.find(r#","direction":"#).unwrap_or(before.len()));
        let mut hasher = blake3::Hasher::new_keyed(&prev);
        hasher.update(head.as_bytes());
        if !tail.is_empty() {
            hasher.update(&blake3::hash(tail.as_bytes()).as_bytes()[..16]);
        }
        assert_eq!(hasher.finalize().to_hex().as_str()[..HASH_LEN], *hash, "{line}");
        prev = hash.as_bytes().try_into().expect("as long as a key");
        values.push(serde_json::from_str(line).expect("JSON"));
    }
    values
}

#[test]
fn lines_are_numbered_and_chained() {
    let place = Place::new();
    let mut log = place.begin(PART_BYTES_MAX);
    let number = log.decision(&decision("delete_file"));
    assert_eq!((number, log.has_written(number)), (2, false));
    log.flush().expect("written");
    assert!(log.has_written(number));
    log.outcome(&outcome(number));
    log.note(1_769_904_003_000_000_000, "rules read again");
    log.end(1_769_904_004_000_000_000).expect("written");
    let lines = check_chain(&place.part(1));
    let kinds: Vec<_> = lines.iter().map(|line| (line["seq"].as_u64(), line["kind"].as_str())).collect();
    assert_eq!(
        kinds,
        [(1, "begin"), (2, "decision"), (3, "outcome"), (4, "note"), (5, "end")]
            .map(|(seq, kind)| (Some(seq), Some(kind)))
    );
    assert_eq!(lines[1]["time"], "2026-02-01T00:00:01.234567Z");
    assert_eq!((&lines[1]["session"], &lines[1]["message"]), (&Uuid::nil().to_string().into(), &17.into()));
    assert_eq!((&lines[2]["session"], &lines[2]["answer"]), (&Uuid::nil().to_string().into(), &18.into()));
    assert_eq!(lines[2]["latency_ms"], 765.432);
    assert_eq!(lines[2]["of"], 2);
}

#[test]
fn calls_that_come_back_at_once_share_a_line() {
    let place = Place::new();
    let mut log = place.begin(PART_BYTES_MAX);
    let numbers: Vec<u64> = (0..SHARE_A_LINE_MAX + 3).map(|_| log.decision(&decision("delete_file"))).collect();
    log.flush().expect("written");
    numbers.iter().for_each(|number| log.outcome(&outcome(*number)));
    // An answer of another recording begins another line, and one without an answer has no number.
    let lost = CallOutcome { sequence: 0, code: None, status: "lost", ..outcome(99) };
    log.outcome(&CallOutcome { session: Uuid::max(), ..lost });
    log.decision(&decision("delete_file"));
    log.end(1_769_904_004_000_000_000).expect("written");
    let lines = check_chain(&place.part(1));
    let after: Vec<&Value> = lines.iter().skip(1 + numbers.len()).collect();
    let kinds: Vec<_> = after.iter().map(|line| line["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds, ["outcomes", "outcomes", "outcome", "decision", "end"]);
    let calls: Vec<&Value> = after[..2].iter().flat_map(|line| line["calls"].as_array().expect("calls")).collect();
    assert_eq!(calls.iter().map(|call| call["of"].as_u64().expect("a number")).collect::<Vec<_>>(), numbers);
    let expected: Value = serde_json::json!({
        "of": numbers[0], "answer": 18, "outcome": "error", "code": -32000, "latency_ms": 765.432
    });
    assert_eq!((calls[0], &after[0]["session"]), (&expected, &Uuid::nil().to_string().into()));
    assert_eq!((&after[2]["of"], &after[2]["answer"]), (&99.into(), &Value::Null));
}

#[test]
fn files_are_their_owners_alone() {
    let place = Place::new();
    let _log = place.begin(PART_BYTES_MAX);
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&place.audit()), 0o700);
    assert_eq!(mode(&part_path(&place.audit(), &place.instance, 1)), 0o600);
}

#[test]
fn a_log_is_never_begun_twice() {
    let place = Place::new();
    let _log = place.begin(PART_BYTES_MAX);
    let begin = Begin { time_ns: 1, instance: place.instance, program: "", server: None, rules_version: "" };
    assert!(AuditLog::begin(&place.audit(), &begin).is_err());
    assert_eq!(place.part(1).len(), 1);
}

#[test]
fn a_full_part_goes_on_in_another() {
    let place = Place::new();
    let mut log = place.begin(2_000);
    for _ in 0..20 {
        log.decision(&decision("delete_file"));
        log.flush().expect("written");
    }
    log.end(1).expect("written");
    let mut lines = Vec::new();
    let mut part = 1;
    while part_path(&place.audit(), &place.instance, part).exists() {
        let own = check_first_and_last(&place, part);
        lines.extend(own);
        part += 1;
    }
    assert!(part > 3, "{part}");
    let lines = check_chain(&lines);
    let numbers: Vec<_> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert_eq!(numbers, (1..=lines.len() as u64).collect::<Vec<_>>());
}

fn check_first_and_last(place: &Place, part: u32) -> Vec<String> {
    let own = place.part(part);
    assert!(own[0].contains(r#""kind":"begin""#) && own[0].contains(&format!(r#""part":{part},"#)));
    assert!(own.last().is_some_and(|line| line.contains(r#""kind":"end""#)));
    own
}

fn part_of(log: &mut AuditLog) -> &mut Part {
    log.part.as_mut().expect("it is open")
}

/// Gives the log a disk that takes nothing, for as long as `meanwhile` takes.
fn while_full(log: &mut AuditLog, meanwhile: impl FnOnce(&mut AuditLog)) {
    let full = OpenOptions::new().append(true).open("/dev/full").expect("a full device");
    let file = std::mem::replace(&mut part_of(log).file, full);
    meanwhile(log);
    part_of(log).file = file;
}

#[test]
fn what_could_not_be_written_is_written_later() {
    let place = Place::new();
    let mut log = place.begin(PART_BYTES_MAX);
    while_full(&mut log, |log| {
        let number = log.decision(&decision("delete_file"));
        assert!(log.flush().is_err() && log.flush().is_err());
        assert!(!log.has_written(number));
    });
    log.decision(&decision("read_file"));
    log.flush().expect("written");
    assert_eq!(check_chain(&place.part(1)).len(), 3);
}

#[test]
fn a_log_that_cannot_be_opened_is_opened_later_and_says_so() {
    let place = Place::new();
    fs::write(place.audit(), "in the way").expect("a file");
    let mut log = place.unopened();
    let first = log.decision(&decision("delete_file"));
    assert!(log.flush().is_err() && !log.is_open());
    fs::remove_file(place.audit()).expect("it is there");
    log.opening.tried = None;
    log.flush().expect("it opens");
    assert!(log.is_open() && log.has_written(first));
    log.decision(&decision("read_file"));
    log.end(2).expect("written");
    let lines = check_chain(&place.part(1));
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["kind"].as_str()).collect();
    assert_eq!(kinds, ["begin", "decision", "note", "decision", "end"]);
    assert!(lines[2]["note"].as_str().is_some_and(|text| text.contains("written late")), "{}", lines[2]);
}

#[test]
fn of_a_log_that_opens_too_late_the_records_that_are_missing_are_named() {
    let place = Place::new();
    fs::write(place.audit(), "in the way").expect("a file");
    let mut log = place.unopened();
    for _ in 0..30_000 {
        log.decision(&decision("read_file"));
        assert!(log.chain.waiting.len() < WAITING_BYTES_MAX + 8 * 1024);
    }
    fs::remove_file(place.audit()).expect("it is there");
    log.end(2).expect("it opens at last");
    let lines = check_chain(&place.part(1));
    assert_eq!((&lines[0]["kind"], &lines[1]["lost_from"]), (&"begin".into(), &2.into()));
}

#[test]
fn a_log_that_never_opens_ends_without_a_fuss() {
    let place = Place::new();
    fs::write(place.audit(), "in the way").expect("a file");
    let mut log = place.unopened();
    log.decision(&decision("read_file"));
    log.end(2).expect("its start has said so");
}

#[test]
fn another_file_gets_every_line_once() {
    let place = Place::new();
    let path = place.dir.path().join("copy");
    let open = || OpenOptions::new().append(true).create(true).open(&path).expect("a file");
    let mut log = place.begin(600);
    log.copy_to(open()).expect("it takes what there is");
    for _ in 0..5 {
        log.decision(&decision("read_file"));
        log.flush().expect("written");
    }
    while_full(&mut log, |log| {
        log.decision(&decision("late"));
        assert!(log.flush().is_err() && log.flush().is_err());
    });
    log.end(2).expect("written");
    let parts: Vec<String> = (1..)
        .map_while(|part| {
            let path = part_path(&place.audit(), &place.instance, part);
            fs::read_to_string(path).ok()
        })
        .collect();
    assert!(parts.len() > 1);
    assert_eq!(fs::read_to_string(&path).expect("a copy"), parts.concat());
    // A file that takes nothing keeps no line from the log.
    let place = Place::new();
    let mut log = place.begin(PART_BYTES_MAX);
    log.copy = Some(Copied {
        file: OpenOptions::new().append(true).open("/dev/full").expect("a device"),
        bytes: 0,
        is_failing: false,
        error: None,
    });
    for _ in 0..2 {
        log.decision(&decision("read_file"));
        log.flush().expect("written");
    }
    assert!(log.take_copy_error().is_some() && log.take_copy_error().is_none());
    assert_eq!(check_chain(&place.part(1)).len(), 3);
}

#[test]
fn what_a_failed_write_left_is_cut_off() {
    let place = Place::new();
    let mut log = place.begin(PART_BYTES_MAX);
    log.decision(&decision("delete_file"));
    while_full(&mut log, |log| assert!(log.flush().is_err()));
    part_of(&mut log).file.write_all(b"{\"seq\":2,\"ki").expect("half a line");
    log.flush().expect("written");
    assert_eq!(check_chain(&place.part(1)).len(), 2);
}

#[test]
fn what_waited_too_long_is_given_up_and_the_log_says_so() {
    let place = Place::new();
    let mut log = place.begin(PART_BYTES_MAX);
    log.decision(&decision("delete_file"));
    log.flush().expect("written");
    let mut last = 0;
    while_full(&mut log, |log| {
        for _ in 0..30_000 {
            last = log.decision(&decision("read_file"));
            assert!(log.chain.waiting.len() < WAITING_BYTES_MAX + 8 * 1024);
        }
        assert!(log.flush().is_err());
    });
    assert!(log.decision(&decision("read_file")) > last);
    log.end(1).expect("written");
    let lines = check_chain(&place.part(1));
    assert_eq!((&lines[2]["kind"], &lines[2]["lost_from"]), (&"note".into(), &3.into()));
    assert!(lines[2]["seq"].as_u64() > Some(3) && lines[2]["seq"].as_u64() < Some(last));
}

/// Whatever waits when room is made, the gap is accounted for by what stands right behind it.
#[test]
fn calls_that_come_back_while_nothing_can_be_written_stand_behind_the_gap() {
    let place = Place::new();
    let mut log = place.begin(PART_BYTES_MAX);
    log.decision(&decision("delete_file"));
    log.flush().expect("written");
    while_full(&mut log, |log| {
        // Up to where the next line is one too many, with a call that waits for its own.
        while log.chain.waiting.len() <= WAITING_BYTES_MAX {
            log.outcome(&outcome(2));
        }
        assert!(!log.chain.returned.is_empty());
        log.outcome(&CallOutcome { of: 3, ..outcome(2) });
    });
    log.end(1).expect("written");
    let lines = check_chain(&place.part(1));
    let kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds, ["begin", "decision", "note", "outcomes", "end"]);
    assert_eq!(lines[2]["lost_from"], 3);
    let numbers: Vec<_> = lines[2..].iter().map(|line| line["seq"].as_u64().expect("a number")).collect();
    assert!(numbers.is_sorted() && numbers[2] == numbers[0] + 2, "{numbers:?}");
}

/// A disk may fill up between the end of one part and the beginning of the next.
#[test]
fn a_part_begins_as_parts_do_even_if_what_waited_for_it_is_given_up() {
    let place = Place::new();
    let mut log = place.begin(PART_BYTES_MAX);
    log.decision(&decision("delete_file"));
    log.push("end", 1, |composer, line| composer.end(line, 1, Some(2)));
    log.flush().expect("it still fits");
    log.part = Some(Part::create(&part_path(&place.audit(), &place.instance, 2), 2, PART_BYTES_MAX).expect("a part"));
    while_full(&mut log, |log| {
        log.push_begin();
        for _ in 0..30_000 {
            log.decision(&decision("read_file"));
        }
        assert!(log.flush().is_err());
    });
    log.end(1).expect("written");
    let lines = check_chain(&[place.part(1), place.part(2)].concat());
    let kinds: Vec<_> = lines.iter().take(5).map(|line| line["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds, ["begin", "decision", "end", "begin", "note"]);
    assert_eq!((&lines[3]["seq"], &lines[3]["part"], &lines[4]["lost_from"]), (&4.into(), &2.into(), &5.into()));
    let log = crate::audit::logs(&place.audit()).expect("a directory").pop().expect("a log");
    let step = &mut |_| std::ops::ControlFlow::Continue(());
    let verified = crate::audit::verify(&log, &[], step).expect("readable").expect("not interrupted");
    assert_eq!(verified.fault, None);
}

#[test]
fn where_no_other_part_can_be_begun_the_log_goes_on_in_the_one_there_is() {
    let place = Place::new();
    let mut log = place.begin(2_000);
    let in_the_way = part_path(&place.audit(), &place.instance, 2);
    fs::create_dir(&in_the_way).expect("a directory");
    for _ in 0..10 {
        log.decision(&decision("delete_file"));
        log.flush().expect("written");
    }
    log.end(1).expect("written");
    fs::remove_dir(in_the_way).expect("removed");
    assert_eq!(check_chain(&place.part(1)).len(), 12);
}

/// The variable that tells a process that it is there to be killed, and where it writes.
const TO_BE_KILLED: &str = "MCP_PROXY_TEST_AUDIT_DIR";
const THIS_TEST: &str = "audit::log::tests::what_was_acknowledged_survives_a_kill_also_between_two_parts";

/// This test is two processes: one that writes until it is killed and says what is on disk, and one that
/// starts, kills and checks it.
#[test]
fn what_was_acknowledged_survives_a_kill_also_between_two_parts() {
    if let Some(dir) = std::env::var_os(TO_BE_KILLED) {
        return write_until_killed(Path::new(&dir));
    }
    let mut parts = 0;
    for kill in 0..40_u64 {
        let place = Place::new();
        let acknowledged = killed_after(&place.audit(), 1 + kill * 7919 % 300);
        let log = crate::audit::logs(&place.audit()).expect("a directory").pop().expect("a log");
        let step = &mut |_| std::ops::ControlFlow::Continue(());
        let verified = crate::audit::verify(&log, &[], step).expect("readable").expect("not interrupted");
        assert_eq!(verified.fault, None, "kill {kill}");
        let last = verified.last.map_or(0, |(seq, _)| seq);
        assert!(last >= acknowledged, "kill {kill}: {acknowledged} was acknowledged, {last} is the last there is");
        parts += log.parts.len();
    }
    assert!(parts > 400, "{parts} parts in all");
}

fn write_until_killed(dir: &Path) {
    let mut out = io::stdout().lock();
    let begin = Begin { time_ns: 1, instance: Uuid::new_v4(), program: "", server: None, rules_version: "" };
    let mut log = AuditLog::begin_with(dir, &begin, 5_000).expect("a log");
    loop {
        let number = log.decision(&decision("delete_file"));
        log.flush().expect("written");
        writeln!(out, "written {number}").and_then(|()| out.flush()).expect("somebody listens");
    }
}

/// Kills the writer once it has said so often that something is written; returns the last it said.
fn killed_after(dir: &Path, times: u64) -> u64 {
    use std::io::BufRead;
    let mut child = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", THIS_TEST, "--nocapture"])
        .env(TO_BE_KILLED, dir)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = io::BufReader::new(child.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
    let mut numbers = lines.filter_map(|line| line.strip_prefix("written ")?.parse::<u64>().ok());
    let mut last = 0;
    for _ in 0..times {
        last = numbers.next().expect("it goes on until it is killed");
    }
    child.kill().expect("it runs");
    let last = numbers.last().unwrap_or(last);
    child.wait().expect("it is ours");
    last
}
