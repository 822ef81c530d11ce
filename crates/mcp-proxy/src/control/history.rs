//! Messages that have passed, a page at a time: from the recording or, where nothing is recorded, from
//! memory.

mod parts;
mod remembered;

use std::sync::Arc;

use mcp_control::api::{Page, PageQuery};
use mcp_filter::Filter;
use mcp_store::{ExchangeOf, StoreError, Told};

use super::reply::Refusal;
use super::shared::Shared;
use super::tell;

pub(crate) use parts::{Part, Parts, Segments};

/// Messages on a page, unless fewer or more are asked for, and at most.
const LIMIT: u32 = 100;
const LIMIT_MAX: u32 = 1_000;

/// Messages, each with how many of this run came before its session.
#[derive(Default)]
pub(crate) struct Found {
    pub messages: Vec<(Told, u64)>,
    /// Where to go on in either direction.
    pub older: Option<u64>,
    pub newer: Option<u64>,
    pub last_sequence: u64,
}

/// What is asked for, within its bounds.
pub(crate) struct Wanted {
    from: From,
    limit: usize,
    filter: Option<Filter>,
}

#[derive(Clone, Copy)]
enum From {
    /// `u64::MAX` is the end.
    Before(u64),
    After(u64),
}

impl Wanted {
    pub(crate) fn of(query: &PageQuery, filter: Option<Filter>) -> Result<Self, Refusal> {
        check_sequences(&[query.before, query.after])?;
        let from = match (query.before, query.after) {
            (None, None) => From::Before(u64::MAX),
            (Some(before), None) => From::Before(before),
            (None, Some(after)) => From::After(after),
            (Some(_), Some(_)) => return Err(Refusal::bad("`before` and `after` do not go together")),
        };
        match query.limit.unwrap_or(LIMIT) {
            limit @ 1..=LIMIT_MAX => Ok(Self { from, limit: limit as usize, filter }),
            _ => Err(Refusal::bad(format!("`limit` is from 1 to {LIMIT_MAX}"))),
        }
    }
}

pub(crate) async fn page(shared: &Shared, query: &PageQuery, filter: Option<Filter>) -> Result<Found, Refusal> {
    let wanted = Wanted::of(query, filter)?;
    match remembered::look(shared).await? {
        Some(messages) => Ok(remembered::page(&messages, &wanted)),
        None => read(shared, move |segments, parts| segments.page(parts, &wanted)).await,
    }
}

/// One message, and how many of this run came before its session.
pub(crate) async fn one(shared: &Shared, sequence: u64) -> Result<Option<(Told, u64)>, Refusal> {
    match remembered::look(shared).await? {
        Some(messages) => {
            Ok(messages.into_iter().find(|told| told.recorded.sequence == sequence).map(|told| (told, 0)))
        }
        None => read(shared, move |segments, parts| segments.one(parts, sequence)).await,
    }
}

/// The HTTP exchange that a recorded message came in. `None` if there is no such message, or, within, if
/// it came in none.
pub(crate) async fn exchange(shared: &Shared, sequence: u64) -> Result<Option<Option<ExchangeOf>>, Refusal> {
    read(shared, move |library, parts| library.exchange(parts, sequence)).await
}

/// Reads the recording, on a thread where that may take its time.
async fn read<R: Send + 'static>(
    shared: &Shared,
    read: impl FnOnce(&Segments, &Parts) -> Result<R, StoreError> + Send + 'static,
) -> Result<R, Refusal> {
    let parts = shared.parts().await?;
    let _turn = shared.readers.acquire().await.map_err(|_| Refusal::ending())?;
    let segments = Arc::clone(&shared.segments);
    let found = tokio::task::spawn_blocking(move || read(&segments, &parts)).await;
    let cannot = |error: &dyn std::fmt::Display| Refusal::internal(format!("the history cannot be read: {error}"));
    found.map_err(|error| cannot(&error))?.map_err(|error| cannot(&error))
}

/// Sequences are told as 64-bit integers with a sign, as most who read JSON take them.
pub(crate) fn check_sequences(given: &[Option<u64>]) -> Result<(), Refusal> {
    match given.iter().flatten().any(|sequence| i64::try_from(*sequence).is_err()) {
        true => Err(Refusal::bad("there can be no message of so large a sequence")),
        false => Ok(()),
    }
}

/// The page as it is sent.
pub(crate) fn told(found: Found) -> Page {
    let messages = found.messages.iter();
    Page {
        messages: messages.map(|(told, earlier)| tell::message(told, *earlier, tell::RAW_IN_LIST_MAX)).collect(),
        older: found.older,
        newer: found.newer,
        last_sequence: found.last_sequence,
    }
}
