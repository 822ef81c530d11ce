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

fn outcome(of: u64) -> CallOutcome<'static> {
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
    let mut prev = String::from_utf8(LineHash::NONE.0.to_vec()).expect("text");
    let mut values = Vec::new();
    for line in lines {
        let (before, hash) = line.rsplit_once(r#","hash":""#).expect("a hash");
        let hash = hash.strip_suffix(r#""}"#).expect("the hash is last");
        assert_eq!(blake3::hash(before.as_bytes()).to_hex().as_str()[..HASH_LEN], *hash);
        let value: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(value["prev"], prev, "{line}");
        hash.clone_into(&mut prev);
        values.push(value);
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
    assert_eq!(lines[1]["message"], "00000000-0000-0000-0000-000000000000/17");
    assert_eq!(lines[2]["latency_ms"], 765.432);
    assert_eq!(lines[2]["of"], 2);
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

/// Gives the log a disk that takes nothing, for as long as `meanwhile` takes.
fn while_full(log: &mut AuditLog, meanwhile: impl FnOnce(&mut AuditLog)) {
    let full = OpenOptions::new().append(true).open("/dev/full").expect("a full device");
    let file = std::mem::replace(&mut log.part.file, full);
    meanwhile(log);
    log.part.file = file;
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
fn what_a_failed_write_left_is_cut_off() {
    let place = Place::new();
    let mut log = place.begin(PART_BYTES_MAX);
    log.decision(&decision("delete_file"));
    while_full(&mut log, |log| assert!(log.flush().is_err()));
    log.part.file.write_all(b"{\"seq\":2,\"ki").expect("half a line");
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
