use std::fs::{self, OpenOptions};
use std::io::Write;

use mcp_filter::Filter;

use super::*;
use crate::audit::{AuditLog, Begin, CallOutcome, Decision, MessageId, logs, verify};
use crate::recorded::Direction;

const SESSION: Uuid = Uuid::from_u128(7);

struct Place {
    _dir: tempfile::TempDir,
    state: StateDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let state = StateDir::find(Some(&dir.path().join("state"))).expect("a state directory");
        state.prepare().expect("a state directory");
        Self { _dir: dir, state }
    }

    fn begin(&self, part_bytes_max: u64) -> AuditLog {
        let begin = Begin { time_ns: 1, instance: Uuid::new_v4(), program: "test", server: None, rules_version: "1" };
        AuditLog::begin_with(&self.state.audit(), &begin, part_bytes_max).expect("a log")
    }

    fn files(&self) -> Vec<LogFiles> {
        logs(&self.state.audit()).expect("a directory")
    }

    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::open(&self.state).expect("a ledger");
        let done = ledger.update(&self.files(), &mut |_| ControlFlow::Continue(())).expect("readable");
        assert!(done.is_continue());
        ledger
    }

    fn newest(&self) -> Vec<Entry> {
        all(&self.ledger(), &Wanted::default())
    }
}

fn all(ledger: &Ledger, wanted: &Wanted) -> Vec<Entry> {
    let mut entries = Vec::new();
    let take = |entry| {
        entries.push(entry);
        Ok::<_, StoreError>(ControlFlow::Continue(()))
    };
    ledger.each(wanted, Order::NewestFirst, take).expect("readable");
    entries
}

fn decide(log: &mut AuditLog, at: u64, tool: &str) -> u64 {
    log.decision(&Decision {
        time_ns: at * 1_000,
        session: SESSION,
        sequence: at,
        conversation: 3,
        client: Some("probe 1"),
        server: Some("files"),
        direction: Direction::ClientToServer,
        method: "tools/call",
        tool: Some(tool),
        operation: Some("delete"),
        verdict: "allow",
        rule: Some("some rule"),
        rules_version: "1",
        actor: "ann",
        why: Some("it was needed"),
        held_ns: 5_000_000,
    })
}

fn answer(log: &mut AuditLog, of: u64) {
    let (session, status) = (SESSION, "err");
    let latency_ns = 1_500_000_000;
    log.outcome(&CallOutcome { of, time_ns: 9, session, sequence: 12, status, code: Some(-32000), latency_ns });
}

fn brief(entries: &[Entry]) -> Vec<String> {
    let brief = |entry: &Entry| match entry {
        Entry::Decision(row) => {
            let outcome = row.outcome.as_ref().map_or("-", |outcome| &outcome.status);
            format!("{} {} {outcome}", row.record.seq, row.record.tool.as_deref().unwrap_or_default())
        }
        Entry::Note(note) => format!("{} note", note.seq),
    };
    entries.iter().map(brief).collect()
}

#[test]
fn decisions_have_their_outcomes() {
    let place = Place::new();
    let mut log = place.begin(u64::MAX);
    let number = decide(&mut log, 2, "delete_file");
    log.note(3_000, "something else");
    log.flush().expect("written");
    assert_eq!(brief(&place.newest()), ["3 note", "2 delete_file -"]);
    let mut oldest = Vec::new();
    let take = |entry| {
        oldest.push(entry);
        Ok::<_, StoreError>(ControlFlow::Continue(()))
    };
    place.ledger().each(&Wanted::default(), Order::OldestFirst, take).expect("readable");
    assert_eq!(brief(&oldest), ["2 delete_file -", "3 note"]);
    answer(&mut log, number);
    decide(&mut log, 4, "read_file");
    log.flush().expect("written");
    let entries = place.newest();
    assert_eq!(brief(&entries), ["5 read_file -", "3 note", "2 delete_file err"]);
    let Entry::Decision(row) = &entries[2] else { panic!("a decision") };
    let outcome = row.outcome.as_ref().expect("an outcome");
    let message = |sequence| Some(MessageId { session: SESSION, sequence });
    assert_eq!((row.message(), outcome.answer), (message(2), message(12)));
    assert_eq!((outcome.code, outcome.latency_us, row.record.held_us()), (Some(-32000), 1_500_000, Some(5_000)));
    assert_eq!((row.record.actor.as_deref(), row.record.why.as_deref()), (Some("ann"), Some("it was needed")));
}

#[test]
fn decisions_have_outcomes_that_share_a_line() {
    let place = Place::new();
    let mut log = place.begin(u64::MAX);
    let numbers = ["read_file", "write_file", "list_files"].map(|tool| decide(&mut log, 2, tool));
    log.flush().expect("written");
    answer(&mut log, numbers[0]);
    let (session, sequence, code, latency_ns) = (SESSION, 0, None, 2_000);
    log.outcome(&CallOutcome { of: numbers[2], time_ns: 9, session, sequence, status: "lost", code, latency_ns });
    log.flush().expect("written");
    let entries = place.newest();
    assert_eq!(brief(&entries), ["4 list_files lost", "3 write_file -", "2 read_file err"]);
    let found = [&entries[0], &entries[2]].map(|entry| {
        let Entry::Decision(row) = entry else { panic!("a decision") };
        let outcome = row.outcome.as_ref().expect("an outcome");
        (outcome.answer.map(|answer| answer.sequence), outcome.code, outcome.latency_us)
    });
    assert_eq!(found, [(None, None, 2), (Some(12), Some(-32000), 1_500_000)]);
}

#[test]
fn filters_ask_about_decisions() {
    let place = Place::new();
    let mut log = place.begin(u64::MAX);
    let number = decide(&mut log, 2, "delete_file");
    answer(&mut log, number);
    log.flush().expect("written");
    let Some(Entry::Decision(row)) = place.newest().pop() else { panic!("a decision") };
    for filter in [
        "tool:delete_* op:delete status:err",
        "code:-32000 dur>1s",
        "verdict:allow rule:\"some rule\"",
        "client:probe* server:files method:tools/call",
        "seq:2 > held:yes",
        "needed",
    ] {
        assert!(Filter::parse(filter).expect(filter).matches(&*row), "{filter}");
    }
    for filter in ["tool:read_*", "status:ok", "dur<1s", "<", "verdict:deny", "other"] {
        assert!(!Filter::parse(filter).expect(filter).matches(&*row), "{filter}");
    }
}

#[test]
fn rows_follow_a_log_through_its_parts() {
    let place = Place::new();
    let mut log = place.begin(2_000);
    for at in 1..=40 {
        decide(&mut log, at, "read_file");
        log.flush().expect("written");
        if at % 7 == 0 {
            assert_eq!(place.newest().len() as u64, at);
        }
    }
    log.end(50).expect("written");
    assert!(place.files()[0].parts.len() > 3);
    let bytes: u64 = place.files()[0].bytes();
    assert_eq!(Ledger::open_anew(&place.state).expect("a ledger").backlog(&place.files()).expect("readable"), bytes);
    assert_eq!(place.newest().len(), 40);
    assert_eq!(place.ledger().backlog(&place.files()).expect("readable"), 0);
}

#[test]
fn what_is_wanted_is_given() {
    let place = Place::new();
    let (mut one, mut other) = (place.begin(u64::MAX), place.begin(u64::MAX));
    for at in 1..=5 {
        decide(if at % 2 == 0 { &mut one } else { &mut other }, at, "read_file");
    }
    one.flush().and(other.flush()).expect("written");
    let ledger = place.ledger();
    let times = |wanted: &Wanted| all(&ledger, wanted).iter().map(|entry| entry.time_ns() / 1_000).collect::<Vec<_>>();
    assert_eq!(times(&Wanted::default()), [5, 4, 3, 2, 1]);
    assert_eq!(times(&Wanted { since_ns: Some(2_000), until_ns: Some(4_000), ..Wanted::default() }), [3, 2]);
    assert_eq!(times(&Wanted { session: Some(SESSION), ..Wanted::default() }).len(), 5);
    assert!(times(&Wanted { session: Some(Uuid::nil()), ..Wanted::default() }).is_empty());
    let id = one.id(2);
    let instance = Uuid::parse_str(id.split_once('/').expect("an id").0).expect("a uuid");
    assert_eq!(times(&Wanted { instance: Some(instance), ..Wanted::default() }), [4, 2]);
    let found = ledger.find(&instance, 2).expect("readable").expect("there");
    assert_eq!(found.time_ns(), 2_000);
    assert_eq!(ledger.find(&instance, 99).expect("readable"), None);
}

#[test]
fn half_a_line_is_read_once_it_is_whole() {
    let place = Place::new();
    let mut log = place.begin(u64::MAX);
    decide(&mut log, 2, "read_file");
    log.end(3).expect("written");
    let path = place.files()[0].path(1);
    let whole = fs::read(&path).expect("a log");
    fs::write(&path, &whole[..whole.len() - 300]).expect("written");
    let before = place.newest().len();
    fs::write(&path, &whole).expect("written");
    assert!(before <= 1 && place.newest().len() == 1);
}

#[test]
fn a_log_that_lost_its_tail_is_noticed_and_its_rows_stay() {
    let place = Place::new();
    let mut log = place.begin(u64::MAX);
    decide(&mut log, 2, "read_file");
    decide(&mut log, 3, "delete_file");
    log.flush().expect("written");
    drop(log);
    assert!(place.ledger().findings.is_empty());
    let files = place.files().remove(0);
    let path = files.path(1);
    let whole = fs::read_to_string(&path).expect("a log");
    let cut: String = whole.split_inclusive('\n').take(2).collect();
    fs::write(&path, cut).expect("written");
    let mut ledger = Ledger::open(&place.state).expect("a ledger");
    assert!(ledger.update(&place.files(), &mut |_| ControlFlow::Continue(())).expect("readable").is_continue());
    assert!(ledger.findings[0].contains("shorter than it was"), "{:?}", ledger.findings);
    assert_eq!(all(&ledger, &Wanted::default()).len(), 2);
    let witness = ledger.witness(&files.instance).expect("readable").expect("it was read");
    let verified = verify(&files, &[witness], &mut |_| ControlFlow::Continue(())).expect("readable").expect("whole");
    assert_eq!(verified.fault.map(|fault| fault.seq), Some(3));
    fs::remove_file(&path).expect("removed");
    let mut ledger = Ledger::open(&place.state).expect("a ledger");
    assert!(ledger.update(&place.files(), &mut |_| ControlFlow::Continue(())).expect("readable").is_continue());
    assert!(ledger.findings[0].contains("is gone"));
    assert_eq!(all(&ledger, &Wanted::default()).len(), 2);
}

#[test]
fn what_is_no_record_is_passed_over() {
    let place = Place::new();
    let mut log = place.begin(u64::MAX);
    decide(&mut log, 2, "read_file");
    log.flush().expect("written");
    let path = place.files()[0].path(1);
    let mut file = OpenOptions::new().append(true).open(path).expect("a log");
    file.write_all(b"nonsense\n{}\n\xff\n").expect("written");
    let mut ledger = Ledger::open(&place.state).expect("a ledger");
    assert!(ledger.update(&place.files(), &mut |_| ControlFlow::Continue(())).expect("readable").is_continue());
    assert!(ledger.findings[0].starts_with("3 lines of the audit log"), "{:?}", ledger.findings);
    assert_eq!(all(&ledger, &Wanted::default()).len(), 1);
}
