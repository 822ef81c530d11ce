//! What a filter can ask of a message. Whoever has messages answers what it knows; what it does not
//! know is absent, and matches nothing but a negation.

use std::borrow::Cow;

use mcp_wire::Direction;

/// One message under judgement. Every method is asked at most once per test that needs it, so it may
/// compute, but should do so cheaply.
pub trait Subject {
    fn direction(&self) -> Option<Direction> {
        None
    }

    /// One of the words that the field `kind` takes.
    fn kind(&self) -> Option<&str> {
        None
    }

    /// Of an answer, the method of the request that it answers.
    fn method(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// The tool, prompt or resource; of an answer, that of the request that it answers.
    fn tool(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn server(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn client(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// `ok`, `err` or `input_required`, of an answer.
    fn status(&self) -> Option<&str> {
        None
    }

    /// Of a JSON-RPC error.
    fn code(&self) -> Option<i64> {
        None
    }

    /// The JSON-RPC id as it is spelled, quotes included.
    fn id(&self) -> Option<&[u8]> {
        None
    }

    /// The class of operation: `read`, `write`, `delete`, `execute` or `admin`.
    fn operation(&self) -> Option<&str> {
        None
    }

    /// What the server's annotations say of the tool: `readonly`, `destructive`, `idempotent` or
    /// `openworld`.
    fn hint(&self, _name: &str) -> Option<bool> {
        None
    }

    /// From the request to this answer.
    fn duration_ns(&self) -> Option<u64> {
        None
    }

    /// In bytes.
    fn size(&self) -> Option<u64> {
        None
    }

    fn sequence(&self) -> Option<u64> {
        None
    }

    /// The message as it came.
    fn body(&self) -> Option<&[u8]> {
        None
    }

    /// The HTTP headers that it came with, one by one from 0.
    fn header(&self, _index: usize) -> Option<(&str, &str)> {
        None
    }

    /// The revision that is spoken, as a date.
    fn revision(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// The rule that decided about it.
    fn rule(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// `allow`, `deny`, `ask` or `observe`.
    fn verdict(&self) -> Option<&str> {
        None
    }

    /// Somebody looked at it before it went on.
    fn held(&self) -> bool {
        false
    }

    /// It left otherwise than it came.
    fn edited(&self) -> bool {
        false
    }

    /// What somebody marked it with.
    fn mark(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// A line of a server's output that was no message.
    fn noise(&self) -> bool {
        false
    }

    /// Who began the exchange: `client`, `server` or `proxy`.
    fn origin(&self) -> Option<&str> {
        None
    }

    /// It was sent by a replay.
    fn replay(&self) -> bool {
        false
    }
}
