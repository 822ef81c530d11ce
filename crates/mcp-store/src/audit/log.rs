//! The writing end of an audit log: lines wait until `flush`, which is one write for them all.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::files::part_path;
use super::line::{self, Composer, LineHash};
use super::{Begin, CallOutcome, Decision};
use crate::state_dir::create_private;
use crate::synced::Sync;

/// A part that has grown to this goes on in another: about a hundred thousand calls.
const PART_BYTES_MAX: u64 = 64 << 20;
/// Lines that wait for a disk that takes nothing: some thousand calls. Further ones are lost, and the log says so
/// once it can be written again.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// Capacity that the emptied buffer keeps for the next lines.
const KEEP_CAPACITY: usize = 64 * 1024;
/// Calls that came back at once and share a line: as many as are passed on together, and a few more.
const SHARE_A_LINE_MAX: usize = 64;
/// Growth of a part between two attempts to begin another, once one failed.
const TRY_AGAIN_BYTES: u64 = 1 << 20;
/// Between two attempts to open a log that failed to open.
const OPEN_AGAIN: Duration = Duration::from_millis(250);

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
    /// Absent while the log cannot be opened.
    part: Option<Part>,
    opening: Opening,
    /// A file of the user's that gets the lines as well.
    copy: Option<Copied>,
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

/// The tries to open a log that could not be opened at first.
#[derive(Default)]
struct Opening {
    /// Why it could not.
    error: String,
    tried: Option<Instant>,
}

struct Copied {
    file: File,
    /// Bytes of the waiting lines that it has.
    bytes: usize,
    is_failing: bool,
    error: Option<io::Error>,
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
        let part = Part::first(dir, &begin.instance, part_bytes_max)?;
        let mut log = Self::new(dir, begin, part_bytes_max);
        log.part = Some(part);
        log.write_waiting().inspect_err(|_| log.remove_part(1))?;
        Ok(log)
    }

    /// A log that cannot be opened, because of `error`. Its lines wait, as many as there is room for, and each
    /// `flush` tries to open it.
    pub fn unopened(dir: &Path, begin: &Begin<'_>, error: &io::Error) -> Self {
        let mut log = Self::new(dir, begin, PART_BYTES_MAX);
        log.opening.error = error.to_string();
        log
    }

    fn new(dir: &Path, begin: &Begin<'_>, part_bytes_max: u64) -> Self {
        let none = Head { seq: 0, hash: LineHash::NONE };
        let mut log = Self {
            dir: dir.to_owned(),
            instance: begin.instance,
            about: About {
                program: begin.program.to_owned(),
                server: begin.server.map(str::to_owned),
                rules_version: begin.rules_version.to_owned(),
            },
            part: None,
            opening: Opening::default(),
            copy: None,
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
        log
    }

    pub fn is_open(&self) -> bool {
        self.part.is_some()
    }

    /// From now on `file` gets the lines as well, and now what the log begins with.
    pub fn copy_to(&mut self, file: File) -> io::Result<()> {
        let mut written = Vec::new();
        if let Some(part) = &self.part {
            written.resize(usize::try_from(part.whole_len).unwrap_or_default(), 0);
            part.file.read_exact_at(&mut written, 0)?;
        }
        (&file).write_all(&written)?;
        self.copy = Some(Copied { file, bytes: 0, is_failing: false, error: None });
        Ok(())
    }

    /// Why that file does not get them, told once.
    pub fn take_copy_error(&mut self) -> Option<io::Error> {
        self.copy.as_mut()?.error.take()
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
    #[cfg(test)]
    fn has_written(&self, number: u64) -> bool {
        number <= self.written.seq
    }

    /// Hands everything that waits to the kernel in one write: from then on it survives this process.
    /// After a failure it waits on, and the next `flush` tries again.
    pub fn flush(&mut self) -> io::Result<()> {
        self.chain.compose_outcomes();
        if !self.chain.waiting.is_empty() {
            self.write_waiting()?;
            if self.part.as_ref().is_some_and(|part| part.whole_len >= part.full_at) {
                self.begin_part();
            }
        }
        // Some disks fail only when they are made to keep what they took.
        self.part.as_mut().and_then(|part| part.sync.take_error()).map_or(Ok(()), Err)
    }

    /// Writes the last line and waits for the disk. Without it the log ends as if its process had died.
    pub fn end(mut self, time_ns: u64) -> io::Result<()> {
        self.push("end", time_ns, |composer, line| composer.end(line, time_ns, None));
        self.opening.tried = None;
        let result = match (self.write_waiting(), &self.part) {
            // Its start has said so.
            (_, None) => Ok(()),
            (written, Some(part)) => written.and_then(|()| part.file.sync_data()),
        };
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
        self.clear_waiting();
        self.chain.head = self.written;
        if self.part.as_ref().is_none_or(|part| part.whole_len == 0) {
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
        let part = self.part.as_ref().map_or(1, |part| part.number);
        self.chain.push_next("begin", |composer, line| composer.begin(line, &begin, part));
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        let opened = self.open_if_need_be();
        if let Some(copy) = &mut self.copy {
            copy.append(&self.chain.waiting);
        }
        opened?;
        if let Some(part) = &mut self.part {
            part.append(&self.chain.waiting)?;
            self.clear_waiting();
            self.chain.waiting.shrink_to(KEEP_CAPACITY);
            self.written = self.chain.head;
        }
        Ok(())
    }

    fn clear_waiting(&mut self) {
        self.chain.waiting.clear();
        self.copy.iter_mut().for_each(|copy| copy.bytes = 0);
    }

    /// Opens a log that could not be opened before, unless that was tried a moment ago. The log says that its
    /// lines so far are late.
    fn open_if_need_be(&mut self) -> io::Result<()> {
        if self.part.is_some() {
            return Ok(());
        }
        if self.opening.tried.is_some_and(|tried| tried.elapsed() < OPEN_AGAIN) {
            return Err(io::Error::other(self.opening.error.clone()));
        }
        self.opening.tried = Some(Instant::now());
        let part = Part::first(&self.dir, &self.instance, self.part_bytes_max);
        self.part = Some(part.inspect_err(|error| self.opening.error = error.to_string())?);
        let text = format!(
            "the audit log could not be opened at the start ({}): the lines before this one were written late",
            self.opening.error
        );
        let time_ns = self.time_ns;
        self.chain.push("note", |composer, line| composer.note(line, time_ns, &text, None));
        Ok(())
    }

    /// Goes on in another file. If that is not possible now, it goes on in this one for a while.
    fn begin_part(&mut self) {
        if self.try_begin_part().is_err()
            && let Some(part) = &mut self.part
        {
            part.full_at = part.whole_len + TRY_AGAIN_BYTES;
        }
    }

    fn try_begin_part(&mut self) -> io::Result<()> {
        let number = self.part.as_ref().map_or(1, |part| part.number + 1);
        // It is there before the old part names it, so that one that is named and missing was removed.
        let next = Part::create(&part_path(&self.dir, &self.instance, number), number, self.part_bytes_max)?;
        let time_ns = self.time_ns;
        self.chain.push("end", |composer, line| composer.end(line, time_ns, Some(number)));
        if let Err(error) = self.write_waiting() {
            self.clear_waiting();
            self.chain.head = self.written;
            self.remove_part(number);
            return Err(error);
        }
        let full = self.part.replace(next);
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

impl Copied {
    /// Appends what it does not have of the lines. The rest waits with them, as long as they do.
    fn append(&mut self, lines: &[u8]) {
        while self.bytes < lines.len() {
            match self.file.write(&lines[self.bytes..]) {
                Ok(count) if count > 0 => {
                    self.bytes += count;
                    self.is_failing = false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                failed => {
                    if !std::mem::replace(&mut self.is_failing, true) {
                        self.error = Some(failed.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into()));
                    }
                    return;
                }
            }
        }
    }
}

impl Part {
    fn first(dir: &Path, instance: &Uuid, full_at: u64) -> io::Result<Self> {
        crate::state_dir::make_private_dir(dir).map_err(|error| match error.source() {
            Some(cause) => io::Error::other(format!("{error}: {cause}")),
            None => io::Error::other(error),
        })?;
        Self::create(&part_path(dir, instance, 1), 1, full_at)
    }

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
