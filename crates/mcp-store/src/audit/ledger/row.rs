//! Rows as readers see them: a decision with how the call went, or a note; and how filters ask about them.

use std::borrow::Cow;
use std::ops::ControlFlow;

use mcp_filter::Subject;
use mcp_wire::Direction;
use rusqlite::{Connection, OptionalExtension, Row};
use uuid::Uuid;

use super::{Order, SEQ_BITS, Wanted};
use crate::StoreError;
use crate::audit::record::{Kind, MessageId, Record};

/// A decision or a note.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    Decision(Box<DecisionRow>),
    Note(NoteRow),
}

#[derive(Clone, Debug, PartialEq)]
pub struct DecisionRow {
    pub instance: Uuid,
    pub seq: u64,
    pub time_ns: u64,
    pub message: Option<MessageId>,
    pub conversation: Option<u32>,
    pub client: Option<String>,
    pub server: Option<String>,
    pub direction: Option<String>,
    pub method: Option<String>,
    pub tool: Option<String>,
    pub operation: Option<String>,
    pub verdict: String,
    pub rule: Option<String>,
    pub rules: Option<String>,
    pub actor: Option<String>,
    pub why: Option<String>,
    pub held_us: Option<u64>,
    pub outcome: Option<OutcomeRow>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeRow {
    pub status: String,
    pub code: Option<i64>,
    pub latency_us: u64,
    pub answer: Option<MessageId>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NoteRow {
    pub instance: Uuid,
    pub seq: u64,
    pub time_ns: u64,
    pub text: String,
}

impl Entry {
    pub fn time_ns(&self) -> u64 {
        match self {
            Self::Decision(decision) => decision.time_ns,
            Self::Note(note) => note.time_ns,
        }
    }
}

impl DecisionRow {
    /// What it is called everywhere else.
    pub fn id(&self) -> String {
        format!("{}/{}", self.instance, self.seq)
    }

    /// A line of a log that is a decision.
    pub fn of(record: &Record, instance: Uuid) -> Option<Self> {
        let record = (record.kind == Kind::Decision).then(|| record.clone())?;
        Some(Self {
            instance,
            seq: record.seq,
            time_ns: record.time_ns(),
            message: record.message_id(record.message),
            conversation: record.conversation,
            client: record.client,
            server: record.server,
            direction: record.direction,
            method: record.method,
            tool: record.tool,
            operation: record.operation,
            verdict: record.verdict.unwrap_or_default(),
            rule: record.rule,
            rules: record.rules,
            actor: record.actor,
            why: record.why,
            held_us: record.held_ms.map(microseconds),
            outcome: None,
        })
    }
}

impl OutcomeRow {
    /// What a line of a log says of how calls went, each with the number of the decision.
    pub fn all_of(record: &Record) -> impl Iterator<Item = (u64, Self)> {
        let alone = record.of.zip(record.outcome.as_deref()).map(|(of, status)| {
            let latency_us = record.latency_ms.map_or(0, microseconds);
            let answer = record.message_id(record.answer);
            (of, Self { status: status.to_owned(), code: record.code, latency_us, answer })
        });
        let together = record.calls.iter().map(|call| {
            let answer = record.message_id(call.answer);
            let latency_us = call.latency_ms.map_or(0, microseconds);
            (call.of, Self { status: call.outcome.clone(), code: call.code, latency_us, answer })
        });
        alone.into_iter().chain(together)
    }
}

pub(super) fn microseconds(milliseconds: f64) -> u64 {
    (milliseconds * 1_000.0).round() as u64
}

impl Subject for DecisionRow {
    fn direction(&self) -> Option<Direction> {
        Direction::from_name(self.direction.as_deref()?)
    }

    fn method(&self) -> Option<Cow<'_, str>> {
        self.method.as_deref().map(Cow::Borrowed)
    }

    fn tool(&self) -> Option<Cow<'_, str>> {
        self.tool.as_deref().map(Cow::Borrowed)
    }

    fn server(&self) -> Option<Cow<'_, str>> {
        self.server.as_deref().map(Cow::Borrowed)
    }

    fn client(&self) -> Option<Cow<'_, str>> {
        self.client.as_deref().map(Cow::Borrowed)
    }

    fn status(&self) -> Option<&str> {
        let status = self.outcome.as_ref()?.status.as_str();
        Some(if status == "error" { "err" } else { status })
    }

    fn code(&self) -> Option<i64> {
        self.outcome.as_ref()?.code
    }

    fn operation(&self) -> Option<&str> {
        self.operation.as_deref()
    }

    fn duration_ns(&self) -> Option<u64> {
        Some(self.outcome.as_ref()?.latency_us.saturating_mul(1_000))
    }

    fn sequence(&self) -> Option<u64> {
        Some(self.message?.sequence)
    }

    /// The log keeps no message; words are looked for in why it was decided so.
    fn body(&self) -> Option<&[u8]> {
        self.why.as_deref().map(str::as_bytes)
    }

    fn rule(&self) -> Option<Cow<'_, str>> {
        self.rule.as_deref().map(Cow::Borrowed)
    }

    fn verdict(&self) -> Option<&str> {
        Some(&self.verdict)
    }

    fn held(&self) -> bool {
        self.held_us.is_some_and(|held| held > 0)
    }
}

const DECISION: &str = "SELECT decisions.number, time_ns, session, sequence, conversation, client, server, direction, \
     method, tool, operation, verdict, rule, rules, actor, why, held_us, outcome, code, latency_us, answer_session, \
     answer_sequence, instance FROM decisions CROSS JOIN logs ON logs.number = decisions.number >> 40";
const NOTE: &str =
    "SELECT notes.number, time_ns, text, instance FROM notes CROSS JOIN logs ON logs.number = notes.number >> 40";

fn decision(row: &Row<'_>) -> Result<DecisionRow, rusqlite::Error> {
    let message = |session: usize, sequence: usize| -> Result<Option<MessageId>, rusqlite::Error> {
        let parts = (row.get::<_, Option<[u8; 16]>>(session)?, row.get(sequence)?);
        Ok(match parts {
            (Some(session), Some(sequence)) => Some(MessageId { session: Uuid::from_bytes(session), sequence }),
            _ => None,
        })
    };
    let answer = message(20, 21)?;
    let outcome = match row.get::<_, Option<String>>(17)? {
        Some(status) => {
            let latency_us = row.get::<_, Option<u64>>(19)?.unwrap_or(0);
            Some(OutcomeRow { status, code: row.get(18)?, latency_us, answer })
        }
        None => None,
    };
    Ok(DecisionRow {
        instance: Uuid::from_bytes(row.get(22)?),
        seq: seq_of(row.get(0)?),
        time_ns: row.get(1)?,
        message: message(2, 3)?,
        conversation: row.get(4)?,
        client: row.get(5)?,
        server: row.get(6)?,
        direction: row.get(7)?,
        method: row.get(8)?,
        tool: row.get(9)?,
        operation: row.get(10)?,
        verdict: row.get(11)?,
        rule: row.get(12)?,
        rules: row.get(13)?,
        actor: row.get(14)?,
        why: row.get(15)?,
        held_us: row.get(16)?,
        outcome,
    })
}

fn note(row: &Row<'_>) -> Result<NoteRow, rusqlite::Error> {
    let instance = Uuid::from_bytes(row.get(3)?);
    Ok(NoteRow { instance, seq: seq_of(row.get(0)?), time_ns: row.get(1)?, text: row.get(2)? })
}

fn seq_of(number: i64) -> u64 {
    (number & ((1 << SEQ_BITS) - 1)) as u64
}

pub(super) fn each<E: From<StoreError>>(
    connection: &Connection,
    wanted: &Wanted,
    order: Order,
    take: &mut dyn FnMut(Entry) -> Result<ControlFlow<()>, E>,
) -> Result<(), E> {
    let cache = |error: rusqlite::Error| E::from(StoreError::from(error));
    let within = "time_ns >= ?1 AND time_ns < ?2 AND (?3 IS NULL OR instance = ?3)";
    let word = if order == Order::NewestFirst { "DESC" } else { "ASC" };
    let ordered = |table: &str| format!("ORDER BY time_ns {word}, {table}.number {word}");
    let decisions = format!("{DECISION} WHERE {within} AND (?4 IS NULL OR session = ?4) {}", ordered("decisions"));
    let notes = format!("{NOTE} WHERE {within} AND ?4 IS NULL {}", ordered("notes"));
    let mut decisions = connection.prepare(&decisions).map_err(cache)?;
    let mut notes = connection.prepare(&notes).map_err(cache)?;
    let mut decisions = decisions.query_map(bounds(wanted), decision).map_err(cache)?.fuse().peekable();
    let mut notes = notes.query_map(bounds(wanted), note).map_err(cache)?.fuse().peekable();
    loop {
        let decision_at = decisions.peek().map(|row| row.as_ref().map_or((0, 0), |row| (row.time_ns, row.seq)));
        let note_at = notes.peek().map(|row| row.as_ref().map_or((0, 0), |row| (row.time_ns, row.seq)));
        let is_note_next = match (decision_at, note_at) {
            (Some(decision), Some(note)) => (note > decision) == (order == Order::NewestFirst),
            (decision, _) => decision.is_none(),
        };
        let entry = if is_note_next {
            notes.next().map(|row| row.map(Entry::Note))
        } else {
            decisions.next().map(|row| row.map(|row| Entry::Decision(Box::new(row))))
        };
        let Some(entry) = entry else { return Ok(()) };
        if take(entry.map_err(cache)?)?.is_break() {
            return Ok(());
        }
    }
}

type Bounds = (i64, i64, Option<[u8; 16]>, Option<[u8; 16]>);

fn bounds(wanted: &Wanted) -> Bounds {
    let at = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    (
        wanted.since_ns.map_or(0, at),
        wanted.until_ns.map_or(i64::MAX, at),
        wanted.instance.map(Uuid::into_bytes),
        wanted.session.map(Uuid::into_bytes),
    )
}

pub(super) fn find(connection: &Connection, instance: &Uuid, seq: u64) -> Result<Option<Entry>, StoreError> {
    let Some(known) = super::known(connection, instance)? else { return Ok(None) };
    let number = super::number(known.number, seq);
    let found = connection
        .query_row(&format!("{DECISION} WHERE decisions.number = ?1"), [number], decision)
        .optional()?
        .map(|row| Entry::Decision(Box::new(row)));
    match found {
        Some(found) => Ok(Some(found)),
        None => {
            let note = connection.query_row(&format!("{NOTE} WHERE notes.number = ?1"), [number], note).optional()?;
            Ok(note.map(Entry::Note))
        }
    }
}
