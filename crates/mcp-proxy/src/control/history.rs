//! Messages that have passed, a page at a time: from the recording, or from the ring where nothing is
//! recorded.

use std::collections::VecDeque;

use mcp_control::api::{Page, PageQuery};
use mcp_filter::Filter;
use mcp_store::{Session, StoreError, Story, Told};

use super::reply::Refusal;
use super::shared::{Part, Shared};
use super::tell;

/// Messages on a page, unless fewer or more are asked for, and at most.
const LIMIT: u32 = 100;
const LIMIT_MAX: u32 = 1_000;
/// The content of the messages on a page. One that is longer comes alone.
const CONTENT_MAX: usize = 8 << 20;

/// Messages, each with how many of this run came before its session.
#[derive(Default)]
pub struct Found {
    pub messages: Vec<(Told, u64)>,
    /// Where to go on in either direction.
    pub older: Option<u64>,
    pub newer: Option<u64>,
    pub last_sequence: u64,
}

/// What is asked for, with its bounds.
struct Wanted {
    before: u64,
    after: u64,
    is_forward: bool,
    limit: usize,
    filter: Option<Filter>,
}

impl Wanted {
    fn of(query: &PageQuery, filter: Option<Filter>) -> Result<Self, Refusal> {
        if query.before.is_some() && query.after.is_some() {
            return Err(Refusal::bad("`before` and `after` do not go together"));
        }
        let limit = query.limit.unwrap_or(LIMIT);
        if !(1..=LIMIT_MAX).contains(&limit) {
            return Err(Refusal::bad(format!("`limit` is from 1 to {LIMIT_MAX}")));
        }
        Ok(Self {
            before: query.before.unwrap_or(u64::MAX),
            after: query.after.unwrap_or(0),
            is_forward: query.after.is_some(),
            limit: limit as usize,
            filter,
        })
    }
}

pub async fn page(shared: &Shared, query: &PageQuery, filter: Option<Filter>) -> Result<Found, Refusal> {
    let wanted = Wanted::of(query, filter)?;
    if shared.hub.is_history() {
        return Ok(in_ring(shared, &wanted));
    }
    let parts = shared.parts().await?;
    let _turn = shared.readers.acquire().await.map_err(|_| Refusal::ending())?;
    let found = tokio::task::spawn_blocking(move || in_parts(&parts, &wanted)).await;
    found.map_err(|_| Refusal::internal("the history cannot be read"))?.map_err(unread)
}

/// One message, and how many of this run came before its session.
pub async fn one(shared: &Shared, sequence: u64) -> Result<Option<(Told, u64)>, Refusal> {
    let after = PageQuery { after: Some(sequence.saturating_sub(1)), limit: Some(1), ..PageQuery::default() };
    let found = page(shared, &after, None).await?.messages.pop();
    Ok(found.filter(|(told, earlier)| told.recorded.sequence + earlier == sequence))
}

/// The page as it is sent.
pub fn told(found: Found) -> Page {
    let messages = found.messages.iter();
    Page {
        messages: messages.map(|(told, earlier)| tell::message(told, *earlier, tell::RAW_IN_LIST_MAX)).collect(),
        older: found.older,
        newer: found.newer,
        last_sequence: found.last_sequence,
    }
}

fn unread(error: StoreError) -> Refusal {
    Refusal::internal(format!("the history cannot be read: {error}"))
}

fn in_ring(shared: &Shared, wanted: &Wanted) -> Found {
    let ring = shared.hub.ring();
    let mut gathered = Gathered::new(wanted);
    for told in ring.messages() {
        if !gathered.take(told, 0) {
            break;
        }
    }
    gathered.found()
}

fn in_parts(parts: &[Part], wanted: &Wanted) -> Result<Found, StoreError> {
    let mut gathered = Gathered::new(wanted);
    for part in parts {
        let session = Session::open_segment(&part.segment)?;
        let mut story = Story::of(&session.summary().header);
        session.for_each_entry(|entry| -> Result<(), StoreError> {
            if let Some(told) = story.hear(entry) {
                gathered.take(&told, part.earlier);
            }
            Ok(())
        })?;
    }
    Ok(gathered.found())
}

struct Gathered<'a> {
    wanted: &'a Wanted,
    messages: VecDeque<(Told, u64)>,
    bytes: usize,
    last_sequence: u64,
    has_older: bool,
    is_full: bool,
}

impl<'a> Gathered<'a> {
    fn new(wanted: &'a Wanted) -> Self {
        Self { wanted, messages: VecDeque::new(), bytes: 0, last_sequence: 0, has_older: false, is_full: false }
    }

    fn take(&mut self, told: &Told, earlier: u64) -> bool {
        let sequence = told.recorded.sequence + earlier;
        self.last_sequence = sequence;
        let matches = self.wanted.filter.as_ref().is_none_or(|filter| filter.matches(told));
        if !matches || sequence >= self.wanted.before || self.is_full {
            return true;
        }
        if sequence <= self.wanted.after {
            self.has_older = true;
            return true;
        }
        let bytes = told.recorded.raw.len().min(tell::RAW_IN_LIST_MAX);
        let is_over = |gathered: &Self| {
            gathered.messages.len() >= gathered.wanted.limit
                || gathered.bytes + bytes > CONTENT_MAX && !gathered.messages.is_empty()
        };
        if self.wanted.is_forward && is_over(self) {
            self.is_full = true;
            return true;
        }
        while !self.wanted.is_forward && is_over(self) {
            if let Some((gone, _)) = self.messages.pop_front() {
                self.bytes -= gone.recorded.raw.len().min(tell::RAW_IN_LIST_MAX);
            }
            self.has_older = true;
        }
        self.bytes += bytes;
        self.messages.push_back((told.clone(), earlier));
        true
    }

    fn found(self) -> Found {
        let sequence = |(told, earlier): &(Told, u64)| told.recorded.sequence + earlier;
        let (first, last) = (self.messages.front().map(sequence), self.messages.back().map(sequence));
        let newer = match self.wanted.is_forward {
            true if self.is_full => last,
            true => Some(self.last_sequence.max(self.wanted.after)),
            false => last.or((self.wanted.before == u64::MAX).then_some(self.last_sequence)),
        };
        Found {
            older: first.filter(|_| self.has_older),
            newer,
            last_sequence: self.last_sequence,
            messages: self.messages.into(),
        }
    }
}
