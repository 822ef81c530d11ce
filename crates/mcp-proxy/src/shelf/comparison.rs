//! Two sessions side by side. Calls of their clients are paired: first those that ask for the same, in
//! their order, then what is left of the same tool or method. Of a pair it is told where the calls and their
//! answers differ, with what a replay lets differ left out.

use std::collections::BTreeMap;

use mcp_engine::Transcript;
use mcp_engine::compare::Differences;
use mcp_engine::replay::{call_key, compare_answers, compare_calls, twins};
use mcp_engine::transcript::Line;
use mcp_store::{Session, Story};
use mcp_tui::library::{ComparedLine, Comparison};
use mcp_wire::visible::visible;

use crate::failure::Failure;
use crate::progress::{Progress, Unit, Waiter};

/// Messages, and their bytes, of each of two compared sessions: they are compared in memory. The rest is left out.
const MESSAGES_MAX: u64 = 100_000;
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Calls that are listed; more are counted.
const LINES_MAX: usize = 1_000;
/// Paths that are listed of a call; more are counted.
const PATHS_MAX: usize = 20;

pub(super) fn compare(left: &Session, right: &Session, waiter: &Waiter) -> Result<Comparison, Failure> {
    let total = [left, right].map(|session| session.summary().messages.min(MESSAGES_MAX)).iter().sum();
    let progress = waiter.begin("reading", Unit::Messages, Some(total));
    let (left, right) = (Half::read(left, &progress)?, Half::read(right, &progress)?);
    drop(progress);
    let (lefts, rights) = (left.calls(), right.calls());
    let twins = pair(&lines(&lefts), &lines(&rights));
    let progress = waiter.begin("comparing", Unit::Messages, Some(lefts.len() as u64));
    let mut report = Report::default();
    let mut is_paired = vec![None; rights.len()];
    for (call, twin) in lefts.iter().zip(twins) {
        progress.advance(1)?;
        match twin {
            Some(at) => {
                is_paired[at] = Some(call.line.sequence);
                report.pair(call, &rights[at]);
            }
            None => report.left_alone(call),
        }
    }
    report.right_alone(&rights, &is_paired);
    let cuts = [("left", &left), ("right", &right)].into_iter().filter_map(|(which, half)| half.cut_line(which));
    Ok(report.told(cuts.collect()))
}

/// One session, as far as it is read.
#[derive(Default)]
struct Half {
    transcripts: BTreeMap<u32, Transcript>,
    messages: u64,
    bytes: usize,
    is_cut: bool,
}

enum Stopped {
    Cut,
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Half {
    fn read(session: &Session, progress: &Progress) -> Result<Self, Failure> {
        let mut half = Self::default();
        let mut story = Story::of(&session.summary().header);
        let read = session.for_each_entry(|entry| -> Result<(), Stopped> {
            let Some(told) = story.hear(entry) else { return Ok(()) };
            // What a gateway asks its servers, its clients asked it; each call counts once.
            if told.recorded.upstream.is_some() {
                return Ok(progress.advance(1)?);
            }
            if half.messages == MESSAGES_MAX || half.bytes >= BYTES_MAX {
                return Err(Stopped::Cut);
            }
            half.messages += 1;
            half.bytes += told.recorded.raw.len();
            half.transcripts.entry(told.recorded.conversation).or_default().add(&told);
            Ok(progress.advance(1)?)
        });
        match read {
            Ok(()) => {}
            Err(Stopped::Cut) => half.is_cut = true,
            Err(Stopped::Failed(failure)) => return Err(failure),
        }
        Ok(half)
    }

    /// The calls of all its conversations, in the order in which they came.
    fn calls(&self) -> Vec<Call<'_>> {
        let of_one = |transcript| Transcript::calls(transcript).map(move |(_, line)| Call { line, transcript });
        let mut calls: Vec<Call> = self.transcripts.values().flat_map(of_one).collect();
        calls.sort_by_key(|call| call.line.sequence);
        calls
    }

    fn cut_line(&self, which: &str) -> Option<ComparedLine> {
        let what = format!(
            "only the first {} messages of the {which} session were compared; what it seems to lack may come later",
            self.messages
        );
        self.is_cut.then(|| note(what))
    }
}

/// A call, and where its answer is.
struct Call<'a> {
    line: &'a Line,
    transcript: &'a Transcript,
}

impl Call<'_> {
    fn answer(&self) -> Option<&[u8]> {
        self.transcript.answer_to(self.line).map(|line| &line.message.bytes()[..])
    }

    fn request(&self) -> &[u8] {
        self.line.message.bytes()
    }

    fn what(&self) -> String {
        visible(&self.line.call()).to_string()
    }
}

fn lines<'a>(calls: &[Call<'a>]) -> Vec<&'a Line> {
    calls.iter().map(|call| call.line).collect()
}

/// For each of `lefts` the place of the one that it is held against.
fn pair(lefts: &[&Line], rights: &[&Line]) -> Vec<Option<usize>> {
    let mut pairs = twins(lefts, rights, call_key);
    let mut is_left = vec![true; rights.len()];
    pairs.iter().flatten().for_each(|&at| is_left[at] = false);
    let places: Vec<usize> = (0..rights.len()).filter(|&at| is_left[at]).collect();
    let left_rights: Vec<&Line> = places.iter().map(|&at| rights[at]).collect();
    let alone: Vec<usize> = (0..lefts.len()).filter(|&at| pairs[at].is_none()).collect();
    let left_lefts: Vec<&Line> = alone.iter().map(|&at| lefts[at]).collect();
    for (at, twin) in alone.into_iter().zip(twins(&left_lefts, &left_rights, Line::call)) {
        pairs[at] = twin.map(|twin| places[twin]);
    }
    pairs
}

/// What comes of it. Lines stand by the sequence of the left session; what only the right one has stands
/// behind what came before it there.
#[derive(Default)]
struct Report {
    counts: Comparison,
    lines: Vec<((u64, Option<u64>), ComparedLine)>,
    more: u64,
}

impl Report {
    fn pair(&mut self, left: &Call, right: &Call) {
        let paths = differences(left, right);
        if paths.is_empty() {
            self.counts.same += 1;
            return;
        }
        self.counts.different += 1;
        let (sequence, other) = (left.line.sequence, right.line.sequence);
        self.add((sequence, None), || ComparedLine {
            what: left.what(),
            left: Some(sequence),
            right: Some(other),
            paths,
        });
    }

    fn left_alone(&mut self, call: &Call) {
        self.counts.only_left += 1;
        let sequence = call.line.sequence;
        self.add((sequence, None), || ComparedLine { left: Some(sequence), ..note(call.what()) });
    }

    fn right_alone(&mut self, rights: &[Call], is_paired: &[Option<u64>]) {
        let mut before = 0;
        for (call, paired) in rights.iter().zip(is_paired) {
            if let Some(left) = paired {
                before = *left;
                continue;
            }
            self.counts.only_right += 1;
            let sequence = call.line.sequence;
            self.add((before, Some(sequence)), || ComparedLine { right: Some(sequence), ..note(call.what()) });
        }
    }

    fn add(&mut self, place: (u64, Option<u64>), line: impl FnOnce() -> ComparedLine) {
        match self.lines.len() < LINES_MAX {
            true => self.lines.push((place, line())),
            false => self.more += 1,
        }
    }

    fn told(mut self, cuts: Vec<ComparedLine>) -> Comparison {
        self.lines.sort_by_key(|(place, _)| *place);
        let more = (self.more > 0).then(|| note(format!("{} more calls differ, which are not listed", self.more)));
        let lines = self.lines.into_iter().map(|(_, line)| line).chain(more).chain(cuts).collect();
        Comparison { lines, ..self.counts }
    }
}

/// A line about no pair.
fn note(what: String) -> ComparedLine {
    ComparedLine { what, left: None, right: None, paths: Vec::new() }
}

/// Where a call and its answer differ, in words.
fn differences(left: &Call, right: &Call) -> Vec<String> {
    let mut paths = shown(&compare_calls(left.request(), right.request()));
    match (left.answer(), right.answer()) {
        (Some(one), Some(other)) => paths.extend(shown(&compare_answers(one, other, |_| false))),
        (Some(_), None) => paths.push("answered only in the left session".into()),
        (None, Some(_)) => paths.push("answered only in the right session".into()),
        (None, None) => {}
    }
    paths
}

fn shown(differences: &Differences) -> Vec<String> {
    let kept = differences.kept.iter().take(PATHS_MAX);
    let mut paths: Vec<String> = kept.map(|difference| visible(&difference.path.to_string()).to_string()).collect();
    let more = differences.count() - paths.len() as u64;
    if more > 0 {
        paths.push(format!("and {more} more"));
    }
    paths
}
