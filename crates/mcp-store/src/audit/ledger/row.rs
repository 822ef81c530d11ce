//! Rows as readers see them: a decision with how the call went, or a note; and how filters ask about them.

use std::borrow::Cow;
use std::ops::ControlFlow;

use mcp_filter::Subject;
use mcp_wire::Direction;
use rusqlite::{Connection, OptionalExtension, Row};
use uuid::Uuid;

use super::{Order, SEQ_BITS, Wanted};
use crate::StoreError;
use crate::audit::record::{Kind, MessageId, Record, microseconds};
use crate::recorded::timestamp;

/// A decision or a note.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    Decision(Box<DecisionRow>),
    Note(NoteRow),
}

/// A record that is a decision, and how the call went.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionRow {
    pub instance: Uuid,
    pub record: Record,
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
            Self::Decision(decision) => decision.record.time_ns(),
            Self::Note(note) => note.time_ns,
        }
    }
}

impl DecisionRow {
    /// What it is called everywhere else.
    pub fn id(&self) -> String {
        format!("{}/{}", self.instance, self.record.seq)
    }

    /// A line of a log that is a decision.
    pub fn of(record: &Record, instance: Uuid) -> Option<Self> {
        (record.kind == Kind::Decision).then(|| Self { instance, record: record.clone(), outcome: None })
    }

    /// The message that was decided about.
    pub fn message(&self) -> Option<MessageId> {
        self.record.message_id(self.record.message)
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

impl Subject for DecisionRow {
    fn direction(&self) -> Option<Direction> {
        Direction::from_name(self.record.direction.as_deref()?)
    }

    fn method(&self) -> Option<Cow<'_, str>> {
        self.record.method.as_deref().map(Cow::Borrowed)
    }

    fn tool(&self) -> Option<Cow<'_, str>> {
        self.record.tool.as_deref().map(Cow::Borrowed)
    }

    fn server(&self) -> Option<Cow<'_, str>> {
        self.record.server.as_deref().map(Cow::Borrowed)
    }

    fn client(&self) -> Option<Cow<'_, str>> {
        self.record.client.as_deref().map(Cow::Borrowed)
    }

    fn status(&self) -> Option<&str> {
        let status = self.outcome.as_ref()?.status.as_str();
        Some(if status == "error" { "err" } else { status })
    }

    fn code(&self) -> Option<i64> {
        self.outcome.as_ref()?.code
    }

    fn operation(&self) -> Option<&str> {
        self.record.operation.as_deref()
    }

    fn duration_ns(&self) -> Option<u64> {
        Some(self.outcome.as_ref()?.latency_us.saturating_mul(1_000))
    }

    fn sequence(&self) -> Option<u64> {
        Some(self.message()?.sequence)
    }

    /// The log keeps no message; words are looked for in why it was decided so.
    fn body(&self) -> Option<&[u8]> {
        self.record.why.as_deref().map(str::as_bytes)
    }

    fn rule(&self) -> Option<Cow<'_, str>> {
        self.record.rule.as_deref().map(Cow::Borrowed)
    }

    fn verdict(&self) -> Option<&str> {
        Some(self.record.verdict())
    }

    fn held(&self) -> bool {
        self.record.held_us().is_some_and(|held| held > 0)
    }
}

/// Columns in the order of the schema, and the instance behind them.
const DECISION: &str =
    "SELECT decisions.*, instance FROM decisions CROSS JOIN logs ON logs.number = decisions.number >> 40";
const NOTE: &str = "SELECT notes.*, instance FROM notes CROSS JOIN logs ON logs.number = notes.number >> 40";

fn decision(row: &Row<'_>) -> Result<DecisionRow, rusqlite::Error> {
    let session = |column: usize| row.get::<_, Option<[u8; 16]>>(column).map(|id| id.map(Uuid::from_bytes));
    let outcome = match row.get::<_, Option<String>>(17)? {
        Some(status) => {
            let latency_us = row.get::<_, Option<u64>>(19)?.unwrap_or(0);
            let answer = session(20)?.zip(row.get(21)?).map(|(session, sequence)| MessageId { session, sequence });
            Some(OutcomeRow { status, code: row.get(18)?, latency_us, answer })
        }
        None => None,
    };
    let record = Record {
        seq: seq_of(row.get(0)?),
        time: timestamp(row.get(1)?),
        session: session(2)?,
        message: row.get(3)?,
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
        held_ms: row.get::<_, Option<u64>>(16)?.map(|held_us| held_us as f64 / 1_000.0),
        ..Record::default()
    };
    Ok(DecisionRow { instance: Uuid::from_bytes(row.get(22)?), record, outcome })
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
        let decision_at =
            decisions.peek().map(|row| row.as_ref().map_or((0, 0), |row| (row.record.time_ns(), row.record.seq)));
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
