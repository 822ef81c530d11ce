use std::fs;
use std::path::Path;

use uuid::Uuid;

use super::super::line::{LineHash, link_of};
use super::*;
use crate::audit::log::AuditLog;
use crate::audit::{Begin, CallOutcome, Decision, logs};
use crate::recorded::Direction;

/// A log of `calls` calls, in parts of this size.
struct Written {
    dir: tempfile::TempDir,
    log: LogFiles,
}

impl Written {
    fn new(calls: u64, part_bytes_max: u64, ends: bool) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mut log = begin(dir.path(), part_bytes_max);
        for number in 1..=calls {
            call(&mut log, number);
            log.flush().expect("written");
        }
        if ends {
            log.end(1).expect("written");
        } else {
            drop(log);
        }
        Self::found(dir)
    }

    /// A log of calls that came back together.
    fn sharing(calls: u64) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mut log = begin(dir.path(), WHOLE);
        let open: Vec<CallOutcome> = (1..=calls).map(|number| decided(&mut log, number)).collect();
        log.flush().expect("written");
        open.iter().for_each(|outcome| log.outcome(outcome));
        log.end(1).expect("written");
        Self::found(dir)
    }

    fn found(dir: tempfile::TempDir) -> Self {
        let log = logs(dir.path()).expect("a directory").pop().expect("a log");
        Self { dir, log }
    }

    fn lines(&self, part: u32) -> Vec<Vec<u8>> {
        let bytes = fs::read(self.log.path(part)).expect("a part");
        bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    }

    fn write(&self, part: u32, lines: &[Vec<u8>]) {
        fs::write(self.log.path(part), lines.concat()).expect("written");
    }

    fn verify(&self) -> Verified {
        self.verify_with(&[])
    }

    fn verify_with(&self, witnesses: &[Witness]) -> Verified {
        let log = logs(self.dir.path()).expect("a directory").pop().expect("a log");
        verify(&log, witnesses, &mut |_| ControlFlow::Continue(())).expect("readable").expect("not interrupted")
    }

    /// Changes the lines of a part, has them verified, and puts back what was there.
    #[track_caller]
    fn spoilt(&self, part: u32, spoil: impl FnOnce(&mut Vec<Vec<u8>>)) -> Option<Fault> {
        let lines = self.lines(part);
        let mut spoilt = lines.clone();
        spoil(&mut spoilt);
        self.write(part, &spoilt);
        let fault = self.verify().fault;
        self.write(part, &lines);
        fault
    }

    #[track_caller]
    fn check(&self, part: u32, spoil: impl FnOnce(&mut Vec<Vec<u8>>), line: u64, seq: u64, wrong: Wrong) {
        let expected = Fault { path: self.log.path(part), line, seq, wrong };
        assert_eq!(self.spoilt(part, spoil), Some(expected));
    }
}

fn begin(dir: &Path, part_bytes_max: u64) -> AuditLog {
    let begin = Begin { time_ns: 1, instance: Uuid::new_v4(), program: "test", server: None, rules_version: "1" };
    fs::set_permissions(dir, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("ours");
    AuditLog::begin_with(dir, &begin, part_bytes_max).expect("a log")
}

fn call(log: &mut AuditLog, number: u64) {
    let outcome = decided(log, number);
    log.outcome(&outcome);
}

/// Notes a decision, and says what is to come of it.
fn decided(log: &mut AuditLog, number: u64) -> CallOutcome {
    let session = Uuid::nil();
    let of = log.decision(&Decision {
        time_ns: number,
        session,
        sequence: number * 2 - 1,
        conversation: 0,
        client: Some("probe"),
        server: None,
        direction: Direction::ClientToServer,
        method: "tools/call",
        tool: Some("read_file"),
        operation: Some("read"),
        verdict: "allow",
        rule: None,
        rules_version: "1",
        actor: "rule",
        why: None,
        held_ns: 0,
    });
    let status = "ok";
    CallOutcome { of, time_ns: number, session, sequence: number * 2, status, code: None, latency_ns: 1 }
}

const WHOLE: u64 = u64::MAX;

#[test]
fn a_log_as_it_was_written_is_sound() {
    let verified = Written::new(10, WHOLE, true).verify();
    assert_eq!((verified.records, verified.decisions, verified.lost), (22, 10, 0));
    assert_eq!((verified.standing, verified.fault), (Standing::Ended, None));
    assert_eq!(verified.last.map(|(seq, _)| seq), Some(22));
    let parts = Written::new(10, 1_500, true);
    assert!(parts.log.parts.len() > 3);
    assert_eq!((parts.verify().decisions, parts.verify().fault), (10, None));
}

#[test]
fn a_running_log_is_sound() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut log = begin(dir.path(), 1_000);
    for number in 1..10 {
        call(&mut log, number);
        log.flush().expect("written");
        let files = logs(dir.path()).expect("a directory").pop().expect("a log");
        let verified = verify(&files, &[], &mut |_| ControlFlow::Continue(())).expect("readable").expect("whole");
        assert_eq!((verified.standing, verified.fault, verified.decisions), (Standing::Running, None, number));
    }
}

#[test]
fn any_changed_byte_is_found_and_its_record_named() {
    check_every_byte(&Written::new(1, WHOLE, true));
    let shared = Written::sharing(3);
    assert_eq!((shared.lines(1).len(), shared.verify().decisions), (6, 3), "they share a line");
    check_every_byte(&shared);
}

fn check_every_byte(written: &Written) {
    let lines = written.lines(1);
    for (at, line) in lines.iter().enumerate() {
        for byte in 0..line.len() {
            for flip in [1, line[byte] ^ b'\n'] {
                if flip == 0 {
                    continue;
                }
                let fault = written.spoilt(1, |lines| lines[at][byte] ^= flip).expect("found");
                let number = at as u64 + 1;
                assert_eq!(
                    (fault.line, fault.seq),
                    (number, number),
                    "byte {byte} of line {number}: {:?}",
                    fault.wrong
                );
            }
        }
    }
}

#[test]
fn any_record_that_is_dropped_doubled_or_moved_is_found() {
    [Written::new(4, WHOLE, true), Written::sharing(4)].iter().for_each(check_every_place);
}

fn check_every_place(written: &Written) {
    let count = written.lines(1).len();
    for at in 0..count - 1 {
        let number = at as u64 + 1;
        written.check(1, |lines| drop(lines.remove(at)), number, number, Wrong::Missing { until: number + 1 });
        let again = if at + 1 == count { Wrong::AfterTheEnd } else { Wrong::OutOfOrder { found: number } };
        written.check(1, |lines| lines.insert(at, lines[at].clone()), number + 1, number + 1, again);
        for other in at + 1..count {
            let found = other as u64 + 1;
            written.check(1, |lines| lines.swap(at, other), number, number, Wrong::OutOfOrder { found });
        }
    }
    written.check(
        1,
        |lines| lines.push(lines[count - 1].clone()),
        count as u64 + 1,
        count as u64 + 1,
        Wrong::AfterTheEnd,
    );
}

#[test]
fn one_of_ten_thousand_is_found() {
    let written = Written::new(5_000, WHOLE, true);
    let lines = written.lines(1);
    assert_eq!(lines.len(), 10_002);
    let mut random = 42_u64;
    for _ in 0..6 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = (random >> 33) as usize % 10_000 + 1;
        let number = at as u64 + 1;
        let byte = (random >> 20) as usize % (lines[at].len() - 1);
        let fault = written.spoilt(1, |lines| lines[at][byte] ^= 1).expect("found");
        assert_eq!((fault.line, fault.seq), (number, number));
        written.check(1, |lines| drop(lines.remove(at)), number, number, Wrong::Missing { until: number + 1 });
        let out_of_order = Wrong::OutOfOrder { found: number + 1 };
        written.check(1, |lines| lines.swap(at, at + 1), number, number, out_of_order);
        let knows = Witness { seq: 10_000, hash: None, saw_the_end: false, who: "somebody".into() };
        let cut = lines[..at].to_vec();
        written.write(1, &cut);
        let fault = written.verify_with(&[knows]).fault.expect("found");
        assert_eq!((fault.line, fault.seq), (number, number));
        written.write(1, &lines);
    }
}

/// Changes a line and computes its hash anew.
fn forge(lines: &mut [Vec<u8>], at: usize, from: &str, to: &str) {
    let prev = link_of(&lines[at - 1]).expect("a record").hash;
    let line = String::from_utf8(lines[at].clone()).expect("text").replace(from, to);
    let before = line.rsplit_once(",\"hash\":").expect("a hash").0;
    let hash = LineHash::of(before.as_bytes(), &prev);
    lines[at] = format!("{before},\"hash\":\"{hash}\"}}\n").into_bytes();
}

#[test]
fn a_record_that_was_written_anew_is_found_by_the_one_after_it() {
    let written = Written::new(3, WHOLE, true);
    for (at, from, to) in [(1, "read_file", "drop_file"), (1, "\"time\":\"1", "\"time\":\"2"), (2, "ok", "no")] {
        let number = at as u64 + 2;
        written.check(1, |lines| forge(lines, at, from, to), number, number, Wrong::Changed);
    }
}

#[test]
fn what_is_wrong_is_told_apart() {
    let written = Written::new(3, WHOLE, true);
    let renumbered = |lines: &mut Vec<Vec<u8>>| {
        lines[3] = String::from_utf8(lines[3].clone()).expect("text").replace("\"seq\":4", "\"seq\":6").into_bytes();
    };
    written.check(1, renumbered, 4, 4, Wrong::Changed);
    let tail = |lines: &mut Vec<Vec<u8>>| {
        lines[3] = String::from_utf8(lines[3].clone()).expect("text").replace("allow", "denyy").into_bytes();
    };
    written.check(1, tail, 4, 4, Wrong::Changed);
    let older = |lines: &mut Vec<Vec<u8>>| {
        lines[0] = String::from_utf8(lines[0].clone()).expect("text").replace("\"form\":3", "\"form\":2").into_bytes();
    };
    written.check(1, older, 1, 1, Wrong::OldForm { form: 2 });
}

#[test]
fn what_is_no_record_is_found() {
    let written = Written::new(3, WHOLE, true);
    written.check(1, |lines| lines[3] = b"hello\n".to_vec(), 4, 4, Wrong::NotARecord);
    written.check(1, |lines| lines[3] = b"{}\n".to_vec(), 4, 4, Wrong::Changed);
    written.check(1, |lines| lines.insert(0, b"\n".to_vec()), 1, 1, Wrong::NotARecord);
    written.check(1, |lines| lines.push(b"x".to_vec()), 9, 9, Wrong::AfterTheEnd);
    written.check(1, |lines| lines[7] = vec![b'['; 1_000_000], 8, 8, Wrong::NotARecord);
}

#[test]
fn a_killed_process_leaves_a_sound_log() {
    let written = Written::new(3, WHOLE, false);
    let lines = written.lines(1);
    assert_eq!(written.verify().standing, Standing::Interrupted { torn_bytes: 0 });
    // Wherever the last write broke off.
    let last = lines.last().expect("a line").clone();
    for len in 1..last.len() {
        let mut torn = lines.clone();
        torn.last_mut().expect("a line").truncate(len);
        written.write(1, &torn);
        let verified = written.verify();
        assert_eq!(verified.fault, None, "{len}");
        assert_eq!(verified.standing, Standing::Interrupted { torn_bytes: len as u64 });
    }
    written.write(1, &[]);
    assert_eq!((written.verify().fault, written.verify().records), (None, 0));
}

#[test]
fn garbage_at_the_end_is_not_what_a_killed_process_leaves() {
    let written = Written::new(3, WHOLE, false);
    written.check(1, |lines| lines.push(b"\0\0\0\0".to_vec()), 8, 8, Wrong::NotARecord);
    written.check(1, |lines| lines.push(b"{\"seq\":9,".to_vec()), 8, 8, Wrong::NotARecord);
    written.check(1, |lines| *lines[6].last_mut().expect("a byte") = b' ', 7, 7, Wrong::NotARecord);
}

#[test]
fn a_cut_tail_is_found_by_those_who_know_more() {
    let written = Written::new(3, WHOLE, true);
    let lines = written.lines(1);
    let knows = |seq, saw_the_end| Witness { seq, hash: None, saw_the_end, who: "session 7f3a".into() };
    assert_eq!(written.verify_with(&[knows(8, true)]).fault, None);
    for keep in 0..8 {
        written.write(1, &lines[..keep]);
        assert_eq!(written.verify().fault, None, "nobody knows");
        let fault = |witness| written.verify_with(&[witness]).fault;
        let at = |wrong| Some(Fault { path: written.log.path(1), line: keep as u64 + 1, seq: keep as u64 + 1, wrong });
        let who = || "session 7f3a".to_owned();
        assert_eq!(fault(knows(8, false)), at(Wrong::CutBefore { known: 8, who: who() }));
        assert_eq!(fault(knows(keep as u64, true)), at(Wrong::EndCut { who: who() }));
    }
}

#[test]
fn a_log_that_was_written_anew_is_found_by_those_who_saw_the_old() {
    let written = Written::new(3, WHOLE, true);
    let (seq, hash) = written.verify().last.expect("records");
    let saw = |hash| Witness { seq, hash: Some(hash), saw_the_end: true, who: "the store".into() };
    assert_eq!(written.verify_with(&[saw(hash)]).fault, None);
    let fault = written.verify_with(&[saw("0".repeat(64))]).fault.expect("found");
    assert_eq!((fault.seq, fault.wrong), (8, Wrong::Rewritten { who: "the store".into() }));
}

#[test]
fn parts_that_are_missing_moved_or_cut_are_found() {
    let written = Written::new(20, 2_000, true);
    let count = *written.log.parts.last().expect("parts");
    assert!(count > 4);
    for part in 1..=count {
        let lines = written.lines(part);
        fs::remove_file(written.log.path(part)).expect("removed");
        let fault = written.verify().fault.expect("found");
        assert_eq!((fault.path, fault.line, fault.wrong), (written.log.path(part), 0, Wrong::PartMissing));
        written.write(part, &lines);
    }
    for part in 1..count {
        let fault = written.spoilt(part, |lines| drop(lines.pop())).expect("found");
        assert_eq!((fault.path, fault.wrong), (written.log.path(part), Wrong::Cut));
        let (own, next) = (written.lines(part), written.lines(part + 1));
        written.write(part, &next);
        let fault = written.verify().fault.expect("found");
        assert_eq!((fault.path, fault.line), (written.log.path(part), 1));
        written.write(part, &own);
    }
    assert_eq!(written.verify().fault, None);
}

#[test]
fn a_process_killed_while_it_began_a_part_leaves_a_sound_log() {
    // The new part was there, and the old one did or did not say so.
    for says_so in [true, false] {
        let written = Written::new(20, 2_000, true);
        for part in 3..=*written.log.parts.last().expect("parts") {
            fs::remove_file(written.log.path(part)).expect("removed");
        }
        let lines = written.lines(2);
        written.write(2, &lines[..lines.len() - usize::from(!says_so)]);
        written.write(3, &[]);
        let verified = written.verify();
        assert_eq!((verified.fault, verified.standing), (None, Standing::Interrupted { torn_bytes: 0 }));
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(64))]

    /// Whatever is put in place of part of a log that has ended is found, unless only its end is missing.
    #[test]
    fn any_edit_is_found(from in 0_usize..2_200, len in 0_usize..700, put in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40)) {
        let written = Written::new(1, WHOLE, true);
        let whole = written.lines(1).concat();
        let from = from.min(whole.len());
        let until = (from + len).min(whole.len());
        let edited = [&whole[..from], &put, &whole[until..]].concat();
        std::fs::write(written.log.path(1), &edited).expect("written");
        let is_found = written.verify().fault.is_some();
        // A tail that is cut off is for others to find, and half a line at the end is what a kill leaves.
        let is_cut = whole.starts_with(&edited);
        proptest::prop_assert!(is_found || is_cut || is_half_a_line(&whole, &edited), "{:?}", String::from_utf8_lossy(&edited));
    }
}

/// Whether only what stands after the last whole line differs, and that is no whole record.
fn is_half_a_line(whole: &[u8], edited: &[u8]) -> bool {
    let last = edited.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    whole.starts_with(&edited[..last]) && last < edited.len()
}
