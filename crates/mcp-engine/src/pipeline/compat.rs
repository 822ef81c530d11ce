//! The methods of parts, by their old names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcp_filter::Filter;
use mcp_store::{HeadKey, Mark};
use tokio::sync::oneshot;

use super::{Injection, Pipeline, Release};
use crate::conversation::{Conversation, Speaker};
use crate::envelope::Side;
use crate::intercept::{BreakpointError, DecideError, Decision, Held, Lasting, Mode, Owner};
use crate::policy::rules::{Permission, Rules};
use crate::policy::{Answered, Answers};
use crate::record::{ExchangeMark, Recorder};

impl Pipeline {
    pub fn end_holds(&mut self) {
        self.decisions().end_holds();
    }

    pub fn exchange_head(
        &mut self,
        exchange: &ExchangeMark,
        key: HeadKey,
        text: impl FnOnce() -> Vec<u8>,
        is_over: bool,
    ) {
        self.journal.exchange_head(exchange, key, text, is_over);
    }

    pub fn note(&mut self, conversation: &Conversation, from: Side, text: &str) {
        self.journal.note(conversation, from, text);
    }

    pub fn commit_audit(&mut self) {
        self.journal.commit_audit();
    }

    pub fn take_trouble(&mut self) -> Option<String> {
        self.journal.take_trouble()
    }

    pub fn number_exchange(&mut self) -> u64 {
        self.journal.number_exchange()
    }

    pub fn exchange_end(&mut self, exchange: &ExchangeMark, how: &str) {
        self.journal.exchange_end(exchange, how);
    }

    pub fn mark(&mut self, sequence: u64, mark: Mark) {
        self.journal.mark(sequence, mark);
    }

    pub fn note_session(&mut self, notes: &BTreeMap<String, String>) {
        self.journal.note_session(notes);
    }

    pub fn retry_audit(&mut self) -> bool {
        self.journal.retry_audit()
    }

    pub fn recent(&self) -> Instant {
        self.journal.recent()
    }

    pub fn sequence(&self) -> u64 {
        self.journal.sequence()
    }

    pub fn records_first(&self) -> bool {
        self.journal.records_first()
    }

    pub fn writes(&self) -> bool {
        self.journal.writes()
    }

    pub fn recorder(&self) -> &Recorder {
        self.journal.recorder()
    }

    pub fn keeps_exchanges(&self) -> bool {
        self.journal.keeps_exchanges()
    }

    pub fn unwrap_leg(&mut self, leg: &Conversation, tool: &str) {
        self.governance.unwrap_leg(leg, tool);
    }

    pub fn learn_tools(&mut self, leg: &Conversation, answer: &[u8]) {
        self.governance.learn_tools(leg, answer);
    }

    pub fn hides(&mut self, leg: &Conversation, method: &str, name: &str, client: &Speaker) -> bool {
        self.governance.hides(leg, method, name, client)
    }

    pub fn set_written_answers(&mut self, written: Vec<Answered>) {
        self.governance.set_written_answers(written);
    }

    pub fn rules(&self) -> Option<&Arc<Rules>> {
        self.governance.rules()
    }

    pub fn is_governed(&self) -> bool {
        self.governance.is_governed()
    }

    pub fn answers(&self) -> &Answers {
        self.governance.answers()
    }

    pub fn take_released(&mut self) -> Vec<Release> {
        self.holds.take_released()
    }

    pub fn stop_holding(&mut self) {
        self.holds.stop_holding();
    }

    pub fn has_released(&self) -> bool {
        self.holds.has_released()
    }

    pub fn deadline(&self) -> Option<tokio::time::Instant> {
        self.holds.deadline()
    }

    pub fn holds_from(&self, conversation: u32, from: Side) -> bool {
        self.holds.holds_from(conversation, from)
    }

    pub fn hold_limit(&self) -> Option<Duration> {
        self.holds.limit()
    }

    pub fn tell_questions(&mut self, tell: impl Fn(Held) + Send + 'static) {
        self.questions.tell(tell);
    }

    pub fn inject(&mut self, conversation: u32, message: Bytes) -> oneshot::Receiver<Result<u64, String>> {
        self.injections.inject(conversation, message)
    }

    pub fn take_injected(&mut self) -> Vec<Injection> {
        self.injections.take()
    }

    pub fn decide(&mut self, sequence: u64, decision: Decision, by: &str) -> Result<(), DecideError> {
        self.decisions().decide(sequence, decision, by)
    }

    pub fn release_all(&mut self, by: &str) -> usize {
        self.decisions().release_all(by)
    }

    pub fn release_overdue(&mut self) {
        self.decisions().release_overdue();
    }

    pub fn server_is_gone(&mut self, conversation: u32) {
        self.decisions().server_is_gone(conversation);
    }

    pub fn client_is_silent(&mut self, conversation: u32) {
        self.decisions().client_is_silent(conversation);
    }

    pub fn release_late(&mut self, sequence: u64) {
        self.decisions().release_late(sequence);
    }

    pub fn discard(&mut self, sequence: u64) {
        self.decisions().discard(sequence);
    }

    pub fn set_mode(&mut self, mode: Mode, owner: Owner) -> usize {
        self.decisions().set_mode(mode, owner)
    }

    pub fn add_breakpoint(
        &mut self,
        name: Option<String>,
        filter: Filter,
        owner: Owner,
    ) -> Result<String, BreakpointError> {
        self.decisions().add_breakpoint(name, filter, owner)
    }

    pub fn remove_breakpoint(&mut self, name: &str) -> bool {
        self.decisions().remove_breakpoint(name)
    }

    pub fn set_face(&mut self, face: bool) {
        self.decisions().set_face(face);
    }

    pub fn set_watchers(&mut self, watchers: usize) {
        self.decisions().set_watchers(watchers);
    }

    pub fn has_somebody(&mut self) -> bool {
        self.decisions().has_somebody()
    }

    pub fn lasting_answer(
        &mut self,
        sequence: u64,
        lasting: Lasting,
        permission: Permission,
        by: &str,
    ) -> Result<Option<Answered>, DecideError> {
        self.decisions().lasting_answer(sequence, lasting, permission, by)
    }
}
