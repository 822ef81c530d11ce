//! What came of a replay, as JSON for other programs. Values stand in it as they were spelled.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use mcp_engine::compare::{Change, Difference, Excerpt};
use mcp_engine::replay::{Count, Outcome, Verdict};
use mcp_store::session_file::is_readable_json;
use mcp_wire::scan;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{Played, words};
use crate::failure::Failure;

#[derive(Serialize)]
struct Document<'a> {
    session: String,
    conversation: u32,
    target: &'a str,
    recorded_as: Option<String>,
    drifted: bool,
    interrupted: bool,
    seconds: f64,
    summary: Summary,
    calls: Vec<Call>,
    heard: BTreeMap<&'a str, Heard>,
    stray_answers: u64,
    strange_messages: u64,
    unanswered_questions: u64,
    ignored: Vec<String>,
    learned: Vec<Learned>,
}

#[derive(Serialize)]
struct Summary {
    same: usize,
    drifted: usize,
    no_answer: usize,
    not_compared: usize,
    skipped: usize,
}

#[derive(Serialize)]
struct Call {
    sequence: u64,
    id: Option<Box<RawValue>>,
    method: String,
    call: String,
    original_request: Option<Box<RawValue>>,
    sent_message: Option<Box<RawValue>>,
    response: Option<Box<RawValue>>,
    /// Why there is no answer, or what error it tells.
    error: Option<String>,
    duration_ms: Option<f64>,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    milliseconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_milliseconds: Option<f64>,
    #[serde(skip_serializing_if = "is_zero")]
    extra_rounds: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<Differs>,
    #[serde(skip_serializing_if = "is_none")]
    more_differences: u64,
}

#[derive(Serialize)]
struct Differs {
    path: String,
    change: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<Box<RawValue>>,
}

/// A value that is too long to be given whole.
#[derive(Serialize)]
struct Piece<'a> {
    piece: &'a str,
    from: usize,
    bytes: usize,
}

#[derive(Serialize)]
struct Heard {
    recorded: u64,
    now: u64,
}

#[derive(Serialize)]
struct Learned {
    call: String,
    path: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

pub(super) fn document(played: &Played) -> Result<Vec<u8>, Failure> {
    let tally = played.outcomes.tally();
    let learned = played.volatile.learned().into_iter();
    let document = Document {
        session: played.recorded.id.to_string(),
        conversation: played.conversation,
        target: &played.target,
        recorded_as: played.recorded_as.as_ref().map(|header| header.id.to_string()),
        drifted: played.is_drifted(),
        interrupted: played.interrupted,
        seconds: played.took.as_secs_f64(),
        summary: Summary {
            same: tally.same,
            drifted: tally.drifted,
            no_answer: tally.no_answer,
            not_compared: tally.not_compared,
            skipped: tally.skipped,
        },
        calls: played.outcomes.calls.iter().map(|outcome| call(played, outcome)).collect(),
        heard: played
            .outcomes
            .heard
            .iter()
            .map(|(method, Count { recorded, now })| (method.as_str(), Heard { recorded: *recorded, now: *now }))
            .collect(),
        stray_answers: played.outcomes.stray,
        strange_messages: played.outcomes.strange,
        unanswered_questions: played.outcomes.unanswered_questions,
        ignored: played.volatile.named().iter().map(ToString::to_string).collect(),
        learned: learned.map(|(call, path)| Learned { call: call.to_owned(), path: path.to_string() }).collect(),
    };
    let mut bytes = serde_json::to_vec_pretty(&document).map_err(std::io::Error::other)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn call(played: &Played, outcome: &Outcome) -> Call {
    let line = played.transcript.line(outcome.line);
    let id = line.message.peek().id.map(|span| line.message.slice(span));
    let milliseconds = |ns: u64| ns as f64 / 1e6;
    let (differences, more) = match &outcome.verdict {
        Verdict::Drifted(found) => (found.kept.iter().map(differs).collect(), found.more),
        _ => (Vec::new(), 0),
    };
    let (outcome_word, says_why) = match &outcome.verdict {
        Verdict::Same => ("same", false),
        Verdict::Drifted(_) => ("drifted", false),
        Verdict::NoAnswer(_) => ("no_answer", true),
        Verdict::NotCompared(_) => ("not_compared", true),
        Verdict::Skipped(_) => ("skipped", true),
    };
    let why = says_why.then(|| words::verdict(outcome, played.timeout).1);
    let error = match &outcome.verdict {
        Verdict::NoAnswer(_) => why.clone(),
        _ => outcome.answer.as_deref().and_then(error_told),
    };
    Call {
        sequence: line.sequence,
        id: id.and_then(|id| RawValue::from_string(String::from_utf8_lossy(id).into_owned()).ok()),
        method: line.method().into_owned(),
        call: line.call(),
        original_request: message(line.message.bytes()),
        sent_message: outcome.sent.as_deref().and_then(message),
        response: outcome.answer.as_deref().and_then(message),
        error,
        duration_ms: outcome.took_ns.map(milliseconds),
        outcome: outcome_word,
        why,
        milliseconds: outcome.took_ns.map(milliseconds),
        recorded_milliseconds: played.transcript.took_ns(outcome.line).map(milliseconds),
        extra_rounds: outcome.extra_rounds,
        differences,
        more_differences: more,
    }
}

/// A message as it is spelled; in base64, if parsers would stumble over it.
fn message(bytes: &[u8]) -> Option<Box<RawValue>> {
    #[derive(Serialize)]
    struct Encoded {
        raw_base64: String,
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if is_readable_json(bytes) => RawValue::from_string(text.trim_ascii().to_owned()).ok(),
        _ => to_raw_value(&Encoded { raw_base64: BASE64.encode(bytes) }).ok(),
    }
}

/// The message of the error that an answer tells, or all of it if it has none.
fn error_told(answer: &[u8]) -> Option<String> {
    let error = scan::member_at(answer, ["error"])?;
    let text = scan::member_at(answer, ["error", "message"])
        .and_then(|text| scan::decode_string(&answer[text.range()]).map(Cow::into_owned));
    Some(text.unwrap_or_else(|| String::from_utf8_lossy(&answer[error.range()]).into_owned()))
}

fn differs(difference: &Difference) -> Differs {
    let (change, recorded, now) = match &difference.change {
        Change::Changed { recorded, now } => ("changed", Some(recorded), Some(now)),
        Change::Missing { recorded } => ("missing", Some(recorded), None),
        Change::Added { now } => ("added", None, Some(now)),
        Change::Reordered => ("reordered", None, None),
    };
    Differs { path: difference.path.to_string(), change, recorded: recorded.and_then(value), now: now.and_then(value) }
}

fn value(excerpt: &Excerpt) -> Option<Box<RawValue>> {
    if excerpt.is_whole()
        && let Ok(whole) = RawValue::from_string(excerpt.text.clone())
    {
        return Some(whole);
    }
    to_raw_value(&Piece { piece: &excerpt.text, from: excerpt.from, bytes: excerpt.len }).ok()
}
