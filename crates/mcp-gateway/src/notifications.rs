//! What servers say without being asked: progress of calls, lists and resources that changed, and what
//! they log.

use std::rc::Rc;
use std::time::Duration;

use crate::router::{ListKind, rewrite};
use mcp_wire::revision::Era;
use mcp_wire::splice::splice_all;
use mcp_wire::{Id, Kind, Message, scan};
use tokio::time::Instant;

use crate::Gateway;
use crate::catalog::listed::json_text;
use crate::client::{GatewayClient, LogLevel};
use crate::upstream::UpstreamConnection;

/// Pause between two notifications to a client that a list changed.
const TELL_EVERY: Duration = Duration::from_secs(1);

impl UpstreamConnection {
    pub(crate) fn hear_notification(&self, message: &Message, sequence: u64) {
        let method = message.method().unwrap_or_default();
        match &*method {
            "notifications/progress" => self.hear_progress(message, sequence),
            "notifications/message" => self.hear_log(message, sequence),
            "notifications/tools/list_changed" if self.unwraps().is_some() => {
                // What is behind a tool has no other way to say so.
                TOLD.into_iter().for_each(|kind| self.list_changed(kind));
            }
            "notifications/tools/list_changed" => self.list_changed(ListKind::Tools),
            "notifications/prompts/list_changed" => self.list_changed(ListKind::Prompts),
            "notifications/resources/list_changed" => self.list_changed(ListKind::Resources),
            "notifications/resources/updated" => self.hear_updated(message, sequence),
            "notifications/cancelled" => self.hear_cancelled(message, sequence),
            "notifications/subscriptions/acknowledged" => self.hear_acknowledged(message),
            _ => self.hear_other(message, sequence),
        }
    }

    fn hear_progress(&self, message: &Message, sequence: u64) {
        let Some(Id::Integer(token)) = message.progress_token() else { return };
        let timeout = self.server.settings.response_timeout;
        let whose = {
            let mut calls = self.calls.borrow_mut();
            let call = calls.heard_of(token, timeout);
            call.and_then(|call| Some((call.client.upgrade()?, call.token.clone()?, call.id.id())))
        };
        // Progress of a call that is over is of no use to anybody, and some clients choke on it.
        let (Some((client, token, id)), Some(span)) = (whose, message.peek().progress_token) else { return };
        let bytes = splice_all(message.bytes(), &mut [(span, token.bytes())]);
        client.tell_of(sequence, Some(&id), rewrite::notification(self.namespace(), bytes));
    }

    /// What is logged is for whoever it happened for; where that cannot be told, for nobody.
    fn hear_log(&self, message: &Message, sequence: u64) {
        let (client, about) = match self.call_in_question() {
            Some((client, about)) => (client, Some(about)),
            None => match self.only_visitor() {
                Some(client) => (client, None),
                None => return,
            },
        };
        let level = scan::member_at(message.bytes(), ["params", "level"]);
        let level = level.and_then(|span| LogLevel::parse(&scan::decode_string(&message.bytes()[span.range()])?));
        let wanted = client.log_level.get();
        // Since there is no handshake any more, only who asks for it with a call hears what that logs.
        let is_unasked = client.has_no_handshake() && (wanted.is_none() || about.is_none());
        if is_unasked || level.zip(wanted).is_some_and(|(level, wanted)| level < wanted) {
            return;
        }
        client.tell_of(sequence, about.as_ref(), message.bytes().clone());
    }

    /// What we know nothing of is for the only client there is, or for the only call.
    fn hear_other(&self, message: &Message, sequence: u64) {
        let bytes = rewrite::notification(self.namespace(), message.bytes().clone());
        match self.call_in_question() {
            Some((client, about)) => client.tell_of(sequence, Some(&about), bytes),
            None => match self.only_visitor() {
                Some(client) => client.tell_of(sequence, None, bytes),
                None => self.note("the notification before this is for nobody in particular, and was not passed on"),
            },
        }
    }

    /// One of its lists is no longer what it was.
    pub(crate) fn list_changed(&self, kind: ListKind) {
        if self.is_retired() {
            return;
        }
        self.list(kind).changed();
        if kind == ListKind::Resources {
            self.list(ListKind::Templates).changed();
        }
        for client in self.attached() {
            client.changed(kind);
        }
    }

    /// Has the server log what the client wants that wants most.
    pub(crate) fn adjust_level(&self) {
        if self.era.get() == Era::Modern || !self.is_ready() || self.is_retired() || !self.declares(&["logging"]) {
            return;
        }
        let wanted = self.attached().iter().filter_map(|client| client.log_level.get()).min();
        let subscriptions = &self.subscriptions;
        let Some(level) = wanted.filter(|level| subscriptions.level.get() != Some(*level)) else { return };
        subscriptions.level.set(Some(level));
        subscriptions.levels_unanswered.set(subscriptions.levels_unanswered.get() + 1);
        let answer = self.ask("logging/setLevel", Some(&format!("{{\"level\":{}}}", json_text(level.as_str()))));
        let connection = self.rc();
        tokio::task::spawn_local(async move {
            let is_taken = answer.await.is_ok_and(|answer| Message::new(answer).glance().kind == Kind::Response);
            let subscriptions = &connection.subscriptions;
            subscriptions.levels_unanswered.set(subscriptions.levels_unanswered.get() - 1);
            if !is_taken && subscriptions.level.get() == Some(level) {
                // The next client that wants it has it asked for once more.
                subscriptions.level.set(None);
            }
            subscriptions.answered.notify_waiters();
        });
    }

    /// Whether the server has yet to take the level that it is to log at.
    pub(crate) fn is_to_take_level(&self) -> bool {
        self.is_worth_waiting_for() || self.is_ready() && self.subscriptions.levels_unanswered.get() > 0
    }

    /// Waits until it has.
    pub(crate) async fn has_taken_level(&self) {
        while self.opened().await {
            let answered = self.subscriptions.answered.notified();
            if !self.is_to_take_level() {
                return;
            }
            answered.await;
        }
    }
}

/// What a client has yet to be told of lists.
#[derive(Default)]
pub(crate) struct Changes {
    told: [std::cell::Cell<Option<Instant>>; 3],
    untold: [std::cell::Cell<bool>; 3],
}

impl Changes {
    /// Whoever has asked for no list yet has nothing to hear of what changed before.
    pub(crate) fn forget(&self) {
        self.told.iter().for_each(|told| told.set(None));
        self.untold.iter().for_each(|untold| untold.set(false));
    }
}

const TOLD: [ListKind; 3] = [ListKind::Tools, ListKind::Prompts, ListKind::Resources];

impl GatewayClient {
    /// A list changed: it is told, at once or with the next that does.
    fn changed(&self, kind: ListKind) {
        let Some(at) = TOLD.iter().position(|told| *told == kind) else { return };
        self.changes.untold[at].set(true);
        self.tell_changes(Instant::now());
    }

    fn tell_changes(&self, now: Instant) {
        for (at, kind) in TOLD.into_iter().enumerate() {
            let is_due = self.changes.told[at].get().is_none_or(|told| now - told >= TELL_EVERY);
            if is_due && self.changes.untold[at].replace(false) {
                self.changes.told[at].set(Some(now));
                self.say_changed(kind);
            }
        }
    }
}

impl Gateway {
    /// Tells clients what they have yet to be told.
    pub(crate) fn tell_changes(&self) {
        let now = Instant::now();
        for client in self.present() {
            client.tell_changes(now);
        }
    }

    pub(crate) fn present(&self) -> Vec<Rc<GatewayClient>> {
        self.clients.borrow().iter().filter_map(std::rc::Weak::upgrade).collect()
    }

    /// A server takes part that did not, or no longer does.
    pub(crate) fn lists_changed_for_all(&self) {
        for client in self.present() {
            TOLD.into_iter().for_each(|kind| client.changed(kind));
        }
    }

    /// Says goodbye to whoever listens.
    pub fn end_listening(&self) {
        self.present().iter().for_each(|client| client.end_listening());
    }
}
