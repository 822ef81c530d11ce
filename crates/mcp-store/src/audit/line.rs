//! One line of the log: members in a fixed order, and last a hash that binds it to the line before.

use std::fmt::{self, Write};

use uuid::Uuid;

use super::tails::{Tail, Tails};
use super::words::Words;
use super::{Begin, CallOutcome, Decision};
use crate::recorded::timestamp;

/// What stands before a value of this name. Whole, because many small copies cost more than one.
macro_rules! value {
    ($name:literal) => {
        concat!(",\"", $name, "\":").as_bytes()
    };
}

/// The same before a text.
macro_rules! text {
    ($name:literal) => {
        concat!(",\"", $name, "\":\"").as_bytes()
    };
}

/// The form that these lines have; raised if a reader of the old one would misread the new.
pub(super) const FORM: u64 = 3;
/// What stands before the hash of a line, and after it.
pub(super) const BEFORE_HASH: &[u8] = b",\"hash\":\"";
pub(super) const AFTER_HASH: &[u8] = b"\"}\n";
const SEQ: &[u8] = b"{\"seq\":";
/// How the part of a decision begins that comes again with every call like it. It is hashed by itself, once
/// for all of them. No text has an unescaped quote, so this stands nowhere else.
const TAIL: &[u8] = text!("direction");
/// Half of what the function gives, in hexadecimal: whoever can find another line for a hash of 128 bits
/// could as well compute all hashes anew, and half as many bytes are written.
pub(super) const HASH_LEN: usize = 32;

/// The hash of a line, as it is written. Before the first line there is nothing to hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineHash(pub [u8; HASH_LEN]);

impl LineHash {
    pub(super) const NONE: Self = Self([b'0'; HASH_LEN]);

    /// Of everything in a line that stands before its hash, after the line with the hash `prev`.
    pub(super) fn of(before: &[u8], prev: &Self) -> Self {
        match memchr::memmem::find(before, TAIL) {
            Some(at) => Self::of_whole(&[&before[..at], &tail_digest(&before[at..])].concat(), prev),
            None => Self::of_whole(before, prev),
        }
    }

    /// The hash before is the key, which costs nothing: it is as long as one.
    fn of_whole(text: &[u8], prev: &Self) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; HASH_LEN];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(blake3::keyed_hash(&prev.0, text).as_bytes()) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        Self(hex)
    }
}

/// What stands for the tail of a decision in its hash.
pub(super) fn tail_digest(tail: &[u8]) -> TailDigest {
    *blake3::hash(tail).as_bytes().first_chunk().expect("it is half as long")
}

/// As strong as the hash of a line.
pub(super) type TailDigest = [u8; HASH_LEN / 2];

impl fmt::Display for LineHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// What of a line has to be known to hold it to its chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link<'a> {
    pub seq: u64,
    pub hash: LineHash,
    /// What stands before the hash, and what of that stands after the number.
    before: &'a [u8],
    after_seq: &'a [u8],
}

impl Link<'_> {
    /// Whether the line is as it was written, after the one with the hash `prev`.
    pub(super) fn follows(&self, prev: &LineHash) -> bool {
        self.hash == LineHash::of(self.before, prev)
    }

    /// Whether it would, were its number this.
    pub(super) fn would_follow_as(&self, seq: u64, prev: &LineHash) -> bool {
        self.hash == LineHash::of(&[SEQ, seq.to_string().as_bytes(), self.after_seq].concat(), prev)
    }
}

/// Takes a line apart that has its line break. `None` if it is not of the form that `close` gives it.
pub(super) fn link_of(line: &[u8]) -> Option<Link<'_>> {
    let (rest, hash) = line.strip_suffix(AFTER_HASH)?.split_last_chunk()?;
    let before = rest.strip_suffix(BEFORE_HASH)?;
    let after = before.strip_prefix(SEQ)?;
    let (digits, after_seq) = after.split_at(after.iter().position(|byte| !byte.is_ascii_digit())?);
    let seq = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(Link { seq, hash: LineHash(*hash), before, after_seq })
}

/// Whether `rest` is how the line of this number begins, after the one with the hash `prev`: what a writer
/// leaves that dies in the middle of it.
pub(super) fn is_begun(rest: &[u8], seq: u64, prev: &LineHash) -> bool {
    let begins = [SEQ, seq.to_string().as_bytes(), text!("kind")].concat();
    let common = rest.len().min(begins.len());
    // No text has an unescaped quote, so this stands nowhere else.
    let hash = memchr::memmem::find(rest, BEFORE_HASH).map(|at| at + BEFORE_HASH.len());
    let is_whole = |rest: &[u8]| link_of(&[rest, b"\n"].concat()).is_some_and(|link| link.follows(prev));
    let is_too_long = hash.is_some_and(|hash| rest.len() - hash > HASH_LEN + 2);
    let is_changed = hash.is_some_and(|hash| rest.len() - hash == HASH_LEN + 2 && !is_whole(rest));
    rest[..common] == begins[..common] && !is_too_long && !is_changed
}

/// Composes lines, one after the other. What comes again and again is kept as text.
pub(super) struct Composer {
    words: Words,
    tails: Tails,
    instance: String,
    session: (Uuid, String),
    second: (u64, String),
}

impl Composer {
    pub(super) fn new(instance: Uuid) -> Self {
        Self {
            words: Words::default(),
            tails: Tails::default(),
            instance: instance.to_string(),
            session: (Uuid::nil(), Uuid::nil().to_string()),
            second: (u64::MAX, String::new()),
        }
    }

    pub(super) fn begin(&mut self, line: &mut Vec<u8>, begin: &Begin<'_>, part: u32) {
        self.time(line, begin.time_ns);
        number(line, value!("form"), FORM);
        number(line, value!("part"), u64::from(part));
        plain(line, text!("instance"), &self.instance);
        self.words.add_member(line, text!("program"), begin.program);
        number(line, value!("pid"), u64::from(std::process::id()));
        if let Some(server) = begin.server {
            self.words.add_member(line, text!("server"), server);
        }
        self.words.add_member(line, text!("rules"), begin.rules_version);
    }

    /// Begins the line of a decision. What is still to come of it is given back.
    pub(super) fn decision(&mut self, line: &mut Vec<u8>, decision: &Decision<'_>) -> &Tail {
        self.time(line, decision.time_ns);
        number(line, value!("message"), decision.sequence);
        if decision.conversation != 0 {
            number(line, value!("conversation"), u64::from(decision.conversation));
        }
        if decision.held_ns != 0 {
            milliseconds(line, value!("held_ms"), decision.held_ns);
        }
        if let Some(why) = decision.why {
            self.text(line, text!("why"), why);
        }
        self.name_session(&decision.session);
        let Self { words, tails, instance, session, .. } = self;
        tails.of(decision, || tail(words, (instance, &session.1), decision))
    }

    pub(super) fn outcome(&mut self, line: &mut Vec<u8>, outcome: &CallOutcome) {
        self.time(line, outcome.time_ns);
        number(line, value!("of"), outcome.of);
        self.name_session(&outcome.session);
        plain(line, text!("session"), &self.session.1);
        answered(line, outcome);
    }

    /// Several that came at once, with answers in one session.
    pub(super) fn outcomes(&mut self, line: &mut Vec<u8>, session: &Uuid, outcomes: &[CallOutcome]) {
        self.time(line, outcomes.last().map_or(0, |newest| newest.time_ns));
        self.name_session(session);
        plain(line, text!("session"), &self.session.1);
        let mut before: &[u8] = b",\"calls\":[{\"of\":";
        for outcome in outcomes {
            number(line, before, outcome.of);
            answered(line, outcome);
            before = b"},{\"of\":";
        }
        line.extend_from_slice(b"}]");
    }

    /// `lost_from` is the first of the lines that were never written, up to this one.
    pub(super) fn note(&mut self, line: &mut Vec<u8>, time_ns: u64, text: &str, lost_from: Option<u64>) {
        self.time(line, time_ns);
        if let Some(lost_from) = lost_from {
            number(line, value!("lost_from"), lost_from);
        }
        self.text(line, text!("note"), text);
    }

    /// `goes_on_in` is the number of the part that follows.
    pub(super) fn end(&mut self, line: &mut Vec<u8>, time_ns: u64, goes_on_in: Option<u32>) {
        self.time(line, time_ns);
        if let Some(part) = goes_on_in {
            number(line, value!("goes_on_in"), u64::from(part));
        }
    }

    fn time(&mut self, line: &mut Vec<u8>, time_ns: u64) {
        let (second, rest) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        if self.second.0 != second {
            let at = timestamp(second * 1_000_000_000).to_string();
            self.second = (second, at.trim_end_matches('Z').to_owned());
        }
        line.extend_from_slice(text!("time"));
        line.extend_from_slice(self.second.1.as_bytes());
        line.push(b'.');
        padded(line, rest / 1_000, 6);
        line.extend_from_slice(b"Z\"");
    }

    fn name_session(&mut self, session: &Uuid) {
        if self.session.0 != *session {
            self.session.0 = *session;
            self.session.1.clear();
            let _ = write!(self.session.1, "{session}");
        }
    }

    fn text(&mut self, line: &mut Vec<u8>, name: &[u8], value: &str) {
        let masked = self.words.masked();
        line.extend_from_slice(name);
        self.words.add_text(value, line);
        line.push(b'"');
        if self.words.masked() != masked {
            // A secret that was found is found everywhere from now on.
            self.tails.forget();
        }
    }
}

/// Begins a line.
pub(super) fn open(line: &mut Vec<u8>, seq: u64, kind: &'static str) {
    line.extend_from_slice(SEQ);
    digits(line, seq);
    plain(line, text!("kind"), kind);
}

/// Ends the line that begins at `start`, after the one with the hash `prev`, and returns its hash.
pub(super) fn close(line: &mut Vec<u8>, start: usize, prev: &LineHash) -> LineHash {
    let hash = LineHash::of_whole(&line[start..], prev);
    end(line, &hash);
    hash
}

/// The same for a decision, which still lacks its tail.
pub(super) fn close_decision(line: &mut Vec<u8>, start: usize, tail: &Tail, prev: &LineHash) -> LineHash {
    let here = line.len();
    line.extend_from_slice(&tail.digest);
    let hash = LineHash::of_whole(&line[start..], prev);
    line.truncate(here);
    line.extend_from_slice(&tail.text);
    end(line, &hash);
    hash
}

fn end(line: &mut Vec<u8>, hash: &LineHash) {
    line.extend_from_slice(BEFORE_HASH);
    line.extend_from_slice(&hash.0);
    line.extend_from_slice(AFTER_HASH);
}

/// What many decisions have in common, and whether something in it was masked.
fn tail(words: &mut Words, (instance, session): (&str, &str), decision: &Decision<'_>) -> (Vec<u8>, bool) {
    let (mut line, masked) = (Vec::new(), words.masked());
    plain(&mut line, TAIL, decision.direction.as_str());
    plain(&mut line, text!("session"), session);
    words.add_member(&mut line, text!("method"), decision.method);
    if let Some(tool) = decision.tool {
        words.add_member(&mut line, text!("tool"), tool);
    }
    if let Some(operation) = decision.operation {
        plain(&mut line, text!("operation"), operation);
    }
    plain(&mut line, text!("verdict"), decision.verdict);
    if let Some(rule) = decision.rule {
        words.add_member(&mut line, text!("rule"), rule);
    }
    words.add_member(&mut line, text!("rules"), decision.rules_version);
    words.add_member(&mut line, text!("actor"), decision.actor);
    if let Some(client) = decision.client {
        words.add_member(&mut line, text!("client"), client);
    }
    if let Some(server) = decision.server {
        words.add_member(&mut line, text!("server"), server);
    }
    plain(&mut line, text!("instance"), instance);
    (line, words.masked() != masked)
}

/// How a call went, in members of the line or of its own object.
fn answered(line: &mut Vec<u8>, outcome: &CallOutcome) {
    if outcome.sequence != 0 {
        number(line, value!("answer"), outcome.sequence);
    }
    plain(line, text!("outcome"), outcome.status);
    if let Some(code) = outcome.code {
        line.extend_from_slice(value!("code"));
        line.extend_from_slice(code.to_string().as_bytes());
    }
    milliseconds(line, value!("latency_ms"), outcome.latency_ns);
}

/// A value that is known to need no escapes.
fn plain(line: &mut Vec<u8>, name: &[u8], value: &str) {
    line.extend_from_slice(name);
    line.extend_from_slice(value.as_bytes());
    line.push(b'"');
}

fn number(line: &mut Vec<u8>, name: &[u8], value: u64) {
    line.extend_from_slice(name);
    digits(line, value);
}

fn milliseconds(line: &mut Vec<u8>, name: &[u8], ns: u64) {
    let microseconds = ns / 1_000;
    line.extend_from_slice(name);
    digits(line, microseconds / 1_000);
    line.push(b'.');
    padded(line, microseconds % 1_000, 3);
}

fn digits(line: &mut Vec<u8>, value: u64) {
    let mut text = [0; 20];
    let (mut at, mut rest) = (text.len(), value);
    loop {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    line.extend_from_slice(&text[at..]);
}

/// The last `width` digits, with zeros before them.
fn padded(line: &mut Vec<u8>, value: u64, width: usize) {
    let start = line.len();
    line.resize(start + width, b'0');
    let mut rest = value;
    for digit in line[start..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}
