//! The writing end of an audit log: lines wait until `flush`, which is one write for them all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use uuid::Uuid;

use super::files::part_path;
use super::line::{self, Composer, LineHash};
use super::{Begin, CallOutcome, Decision};
use crate::state_dir::create_private;
use crate::synced::Sync;

/// A part that has grown to this goes on in another: about a hundred thousand calls.
const PART_BYTES_MAX: u64 = 64 << 20;
/// What may wait for a disk that takes nothing: some thousand calls. What is more is lost, and the log
/// says so once it can be written again.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// What the buffer keeps for the next lines once it is empty.
const KEEP_CAPACITY: usize = 64 * 1024;
/// Calls that came back at once and share a line: as many as are passed on together, and a few more.
const SHARE_A_LINE_MAX: usize = 64;
/// How much more a part grows after no other could be begun, before that is tried again.
const TRY_AGAIN_BYTES: u64 = 1 << 20;

/// Where the chain has got to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    seq: u64,
    hash: LineHash,
}

/// Lines that the disk has not taken yet. They stay here when it takes nothing.
struct Chain {
    composer: Composer,
    waiting: Vec<u8>,
    /// Calls that came back, and have no line yet: it is composed when another comes, or at last when it is written.
    returned: Vec<CallOutcome>,
    head: Head,
}

/// The audit log of one instance. It alone writes it, and holds a lock on it meanwhile.
pub struct AuditLog {
    dir: PathBuf,
    instance: Uuid,
    about: About,
    part: Part,
    chain: Chain,
    written: Head,
    time_ns: u64,
    /// How long a part may get; only tests want it short.
    part_bytes_max: u64,
    /// Parts that are full and on their way to the disk.
    ending: Vec<JoinHandle<()>>,
}

/// What every part begins with.
struct About {
    program: String,
    server: Option<String>,
    rules_version: String,
}

struct Part {
    number: u32,
    file: File,
    /// Everything before this is whole lines.
    whole_len: u64,
    /// A write that failed left something behind that could not be cut off.
    is_torn: bool,
    /// When it goes on in another.
    full_at: u64,
    sync: Sync,
}

impl AuditLog {
    /// Begins the log of an instance in `dir`, which is made if need be, and is its owner's alone.
    pub fn begin(dir: &Path, begin: &Begin<'_>) -> io::Result<Self> {
        Self::begin_with(dir, begin, PART_BYTES_MAX)
    }

    pub(super) fn begin_with(dir: &Path, begin: &Begin<'_>, part_bytes_max: u64) -> io::Result<Self> {
        crate::state_dir::make_private_dir(dir).map_err(io::Error::other)?;
        let none = Head { seq: 0, hash: LineHash::NONE };
        let mut log = Self {
            dir: dir.to_owned(),
            instance: begin.instance,
            about: About {
                program: begin.program.to_owned(),
                server: begin.server.map(str::to_owned),
                rules_version: begin.rules_version.to_owned(),
            },
            part: Part::create(&part_path(dir, &begin.instance, 1), 1, part_bytes_max)?,
            chain: Chain {
                composer: Composer::new(begin.instance),
                waiting: Vec::new(),
                returned: Vec::new(),
                head: none,
            },
            written: none,
            time_ns: begin.time_ns,
            part_bytes_max,
            ending: Vec::new(),
        };
        log.push_begin();
        log.write_waiting().inspect_err(|_| log.remove_part(1))?;
        Ok(log)
    }

    /// Notes a decision and returns its number. It counts once `flush` has returned.
    pub fn decision(&mut self, decision: &Decision<'_>) -> u64 {
        self.make_room(decision.time_ns);
        self.chain.push_decision(decision)
    }

    /// Notes how a call went that was decided about. Those that come one after the other share a line.
    pub fn outcome(&mut self, outcome: &CallOutcome) {
        self.make_room(outcome.time_ns);
        self.chain.push_outcome(outcome);
    }

    /// Notes something else that whoever reads the log has to know.
    pub fn note(&mut self, time_ns: u64, text: &str) {
        self.push("note", time_ns, |composer, line| composer.note(line, time_ns, text, None));
    }

    /// Names the rules that count from now on, for the parts to come.
    pub fn rules_changed(&mut self, time_ns: u64, rules_version: &str, text: &str) {
        rules_version.clone_into(&mut self.about.rules_version);
        self.note(time_ns, text);
    }

    /// What a decision of this log is called everywhere else.
    pub fn id(&self, number: u64) -> String {
        format!("{}/{number}", self.instance)
    }

    /// Whether this decision, outcome or note is on disk.
    pub fn has_written(&self, number: u64) -> bool {
        number <= self.written.seq
    }

    /// Hands everything that waits to the kernel in one write: from then on it survives this process.
    /// After a failure it waits on, and the next `flush` tries again.
    pub fn flush(&mut self) -> io::Result<()> {
        self.chain.compose_outcomes();
        if !self.chain.waiting.is_empty() {
            self.write_waiting()?;
            if self.part.whole_len >= self.part.full_at {
                self.begin_part();
            }
        }
        // Some disks fail only when they are made to keep what they took.
        self.part.sync.take_error().map_or(Ok(()), Err)
    }

    /// Writes the last line and waits for the disk. Without it the log ends as if its process had died.
    pub fn end(mut self, time_ns: u64) -> io::Result<()> {
        self.push("end", time_ns, |composer, line| composer.end(line, time_ns, None));
        let result = self.write_waiting().and_then(|()| self.part.file.sync_data());
        self.ending.into_iter().for_each(|ending| drop(ending.join()));
        result
    }

    fn push(&mut self, kind: &'static str, time_ns: u64, compose: impl FnOnce(&mut Composer, &mut Vec<u8>)) {
        self.make_room(time_ns);
        self.chain.push(kind, compose);
    }

    /// For a line of this time.
    fn make_room(&mut self, time_ns: u64) {
        self.time_ns = time_ns;
        if self.chain.waiting.len() > WAITING_BYTES_MAX {
            self.give_up_waiting();
        }
    }

    /// Drops what waits. Numbers that were given to others are never given again; the next line says
    /// which of them are missing, and goes on from the last that is there.
    fn give_up_waiting(&mut self) {
        let newest = self.chain.head.seq;
        self.chain.waiting.clear();
        self.chain.head = self.written;
        if self.part.whole_len == 0 {
            // What its part begins with waited too, and is not lost: nothing else can stand there.
            self.push_begin();
        }
        let (time_ns, lost_from) = (self.time_ns, self.chain.head.seq + 1);
        self.chain.head.seq = newest;
        let text = "the audit log could not be written for too long: records are missing here";
        // Right behind the gap: calls that came back meanwhile get their line after it.
        self.chain.push_next("note", |composer, line| composer.note(line, time_ns, text, Some(lost_from)));
    }

    fn push_begin(&mut self) {
        let About { program, server, rules_version } = &self.about;
        let (time_ns, instance, server) = (self.time_ns, self.instance, server.as_deref());
        let begin = Begin { time_ns, instance, program, server, rules_version };
        let part = self.part.number;
        self.chain.push_next("begin", |composer, line| composer.begin(line, &begin, part));
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        self.part.append(&self.chain.waiting)?;
        self.chain.waiting.clear();
        self.chain.waiting.shrink_to(KEEP_CAPACITY);
        self.written = self.chain.head;
        Ok(())
    }

    /// Goes on in another file. If that is not possible now, it goes on in this one for a while.
    fn begin_part(&mut self) {
        if self.try_begin_part().is_err() {
            self.part.full_at = self.part.whole_len + TRY_AGAIN_BYTES;
        }
    }

    fn try_begin_part(&mut self) -> io::Result<()> {
        let number = self.part.number + 1;
        // It is there before the old part names it, so that one that is named and missing was removed.
        let next = Part::create(&part_path(&self.dir, &self.instance, number), number, self.part_bytes_max)?;
        let time_ns = self.time_ns;
        self.chain.push("end", |composer, line| composer.end(line, time_ns, Some(number)));
        if let Err(error) = self.write_waiting() {
            self.chain.waiting.clear();
            self.chain.head = self.written;
            self.remove_part(number);
            return Err(error);
        }
        let full = std::mem::replace(&mut self.part, next);
        self.ending.retain(|ending| !ending.is_finished());
        self.ending.push(std::thread::spawn(move || drop(full)));
        self.push_begin();
        // What cannot be written waits like any other line.
        let _ = self.write_waiting();
        Ok(())
    }

    fn remove_part(&self, number: u32) {
        let _ = fs::remove_file(part_path(&self.dir, &self.instance, number));
    }
}

impl Chain {
    fn push(&mut self, kind: &'static str, compose: impl FnOnce(&mut Composer, &mut Vec<u8>)) {
        self.compose_outcomes();
        self.push_next(kind, compose);
    }

    fn push_outcome(&mut self, outcome: &CallOutcome) {
        let shares = self.returned.first().is_none_or(|first| first.session == outcome.session);
        if !shares || self.returned.len() >= SHARE_A_LINE_MAX {
            self.compose_outcomes();
        }
        self.returned.push(*outcome);
    }

    /// Gives calls that came back their line.
    fn compose_outcomes(&mut self) {
        if self.returned.is_empty() {
            return;
        }
        let mut returned = std::mem::take(&mut self.returned);
        match &returned[..] {
            [alone] => self.push_next("outcome", |composer, line| composer.outcome(line, alone)),
            all => self.push_next("outcomes", |composer, line| composer.outcomes(line, &all[0].session, all)),
        }
        returned.clear();
        self.returned = returned;
    }

    fn push_next(&mut self, kind: &'static str, compose: impl FnOnce(&mut Composer, &mut Vec<u8>)) {
        let (start, seq) = self.open(kind);
        compose(&mut self.composer, &mut self.waiting);
        let hash = line::close(&mut self.waiting, start, &self.head.hash);
        self.head = Head { seq, hash };
    }

    fn push_decision(&mut self, decision: &Decision<'_>) -> u64 {
        self.compose_outcomes();
        let (start, seq) = self.open("decision");
        let tail = self.composer.decision(&mut self.waiting, decision);
        let hash = line::close_decision(&mut self.waiting, start, tail, &self.head.hash);
        self.head = Head { seq, hash };
        seq
    }

    /// Begins a line. Returns where, and its number.
    fn open(&mut self, kind: &'static str) -> (usize, u64) {
        let (start, seq) = (self.waiting.len(), self.head.seq + 1);
        line::open(&mut self.waiting, seq, kind);
        (start, seq)
    }
}

impl Part {
    fn create(path: &Path, number: u32, full_at: u64) -> io::Result<Self> {
        let file = create_private(path)?;
        let begin = || -> io::Result<Self> {
            // A command that reads logs may be looking at it for a moment.
            file.lock()?;
            let sync = Sync::start("audit-sync", file.try_clone()?, None)?;
            Ok(Self { number, file: file.try_clone()?, whole_len: 0, is_torn: false, full_at, sync })
        };
        begin().inspect_err(|_| drop(fs::remove_file(path)))
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.cut_back()?;
        }
        if let Err(error) = self.file.write_all(lines) {
            let _ = self.cut_back();
            return Err(error);
        }
        self.whole_len += lines.len() as u64;
        self.sync.soon();
        Ok(())
    }

    /// Removes what a failed write left, so that the next line follows a whole one.
    fn cut_back(&mut self) -> io::Result<()> {
        self.is_torn = true;
        self.file.set_len(self.whole_len)?;
        self.is_torn = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
