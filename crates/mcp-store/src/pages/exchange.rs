//! The HTTP exchange of a message. Its head stands before the message and its end behind it, either of
//! them anywhere; the index says where to look.

use std::io;

use super::Pages;
use crate::StoreError;
use crate::exchange::{AnswerHead, Exchange, RequestHead};
use crate::recorded::Direction;
use crate::segment::sparse::{ExchangeParts, NEAR_BYTES};
use crate::segment::{Record, RecordKind};
use crate::session::text;

/// An exchange, as one of its messages leads to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeOf {
    pub number: u64,
    /// Of the SSE event that carried the message.
    pub event_id: Option<String>,
    pub exchange: Exchange,
}

impl Pages {
    /// The exchange that a message came in. `None` if there is no such message, or it came in none.
    pub fn exchange_of(&mut self, sequence: u64) -> Result<Option<ExchangeOf>, StoreError> {
        let message = self.one(sequence)?.map(|told| told.recorded);
        let Some((number, event_id)) = message.and_then(|message| Some((message.exchange?, message.event_id))) else {
            return Ok(None);
        };
        Ok(Some(ExchangeOf { number, event_id, exchange: self.exchange(number)? }))
    }

    /// What this session has of an exchange. The first and the last parts may stand in the session before
    /// or after.
    pub fn exchange(&mut self, number: u64) -> Result<Exchange, StoreError> {
        self.look_again()?;
        self.read_exchange(number).map_err(StoreError::io("read", &self.path))
    }

    fn read_exchange(&mut self, number: u64) -> io::Result<Exchange> {
        let parts = self.find_exchange(number)?;
        let mut exchange = Exchange::default();
        // The head of the answer may be the end as well.
        let end = if parts.end == parts.answer { 0 } else { parts.end };
        for offset in [parts.request, parts.answer, end] {
            let record = self.exchange_record(number, offset)?;
            let implied = self.reader.take_implied().filter(|_| record.is_some());
            record.iter().chain(&implied).for_each(|record| add(&mut exchange, record));
        }
        Ok(exchange)
    }

    fn find_exchange(&mut self, number: u64) -> io::Result<ExchangeParts> {
        let (mut parts, near) = self.index.exchange(number);
        let Some(near) = near else { return Ok(parts) };
        self.reader.go_to(near)?;
        while !parts.are_all() && self.reader.whole_len() < near + NEAR_BYTES {
            let Some(head) = self.reader.next_head()? else { break };
            if head.sequence == number {
                parts.add(&head, self.reader.last_record());
            }
        }
        Ok(parts)
    }

    /// The record that stands there, if it is about the exchange.
    fn exchange_record(&mut self, number: u64, offset: u64) -> io::Result<Option<Record>> {
        if offset == 0 {
            return Ok(None);
        }
        self.reader.go_to(offset)?;
        if let Some(named) = self.reader.next_head()?.and_then(|head| head.named_head())
            && let Some(whole) = self.index.head(named)
        {
            // The reader remembers it for the one that names it.
            self.reader.go_to(whole)?;
            self.reader.next_record()?;
        }
        self.reader.go_to(offset)?;
        let record = self.reader.next_record()?;
        let is_about_it = |record: &Record| {
            record.head.sequence == number
                && matches!(record.head.kind, RecordKind::Exchange | RecordKind::ExchangeEnd)
                && self.reader.last_record() == offset
        };
        Ok(record.filter(is_about_it))
    }
}

/// Adds what a record says of an exchange.
fn add(exchange: &mut Exchange, Record { head, payload, .. }: &Record) {
    exchange.conversation = head.conversation;
    match (head.kind, head.direction) {
        (RecordKind::ExchangeEnd, _) => exchange.end = Some((head.time_ns, text(payload))),
        (_, Direction::ClientToServer) => exchange.request = Some((head.time_ns, RequestHead::parse(payload))),
        (_, Direction::ServerToClient) => exchange.answer = Some((head.time_ns, AnswerHead::parse(payload))),
    }
}
