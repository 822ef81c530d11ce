//! What a gateway answers for all of its servers at once: who it is, and how much is to be said.

use std::rc::Rc;
use std::time::Duration;

use crate::router::era::{self, ClientFacts};
use crate::router::merge::{self, Part};
use bytes::Bytes;
use mcp_wire::reply::{self, Refusal};
use mcp_wire::revision::Era;
use mcp_wire::visible::visible;
use mcp_wire::{Id, Message, scan};
use tokio::time::{Instant, timeout_at};

use super::{GatewayClient, LogLevel};
use crate::lifecycle::Server;
use crate::upstream::UpstreamConnection;

/// Time for servers to take a log level before the client's request is answered.
const LEVEL_TAKEN_WITHIN: Duration = Duration::from_secs(1);

impl GatewayClient {
    pub(crate) fn initialize(&self, message: &Message) {
        let Some(facts) = era::facts_of_initialize(message) else {
            let what = "initialize does not say which client this is and what it can do".into();
            return self.refuse(message, &Refusal::BadParams { what });
        };
        *self.facts.borrow_mut() = Some(Rc::new(facts));
        self.introduce(message, Era::Legacy);
    }

    pub(crate) fn discover(&self, message: &Message) {
        self.introduce(message, Era::Modern);
    }

    /// Says who all of the servers are together, as soon as they are there or were waited for long enough.
    fn introduce(&self, message: &Message, era: Era) {
        let Some(id) = message.id() else { return };
        let connections = self.all_legs(era);
        if connections.iter().all(|connection| !connection.is_worth_waiting_for()) {
            return self.say_introduction(&id, era, &connections);
        }
        self.own.borrow_mut().push(id.clone());
        let me = self.rc();
        tokio::task::spawn_local(async move {
            let until = Instant::now() + me.gateway.settings.initialize_wait;
            for connection in connections.iter().filter(|connection| connection.is_worth_waiting_for()) {
                if timeout_at(until, connection.opened()).await.is_err() {
                    break;
                }
            }
            if me.is_still_wanted(&id) {
                me.say_introduction(&id, era, &connections);
            }
        });
    }

    /// Whether the client has not taken back a request that we answer ourselves. It is answered now.
    pub(crate) fn is_still_wanted(&self, id: &Id) -> bool {
        let mut own = self.own.borrow_mut();
        let at = own.iter().position(|other| other == id);
        at.map(|at| own.swap_remove(at)).is_some()
    }

    fn say_introduction(&self, id: &Id, era: Era, connections: &[Rc<UpstreamConnection>]) {
        let ready: Vec<(&str, Bytes)> = connections
            .iter()
            .filter(|connection| connection.is_ready())
            .filter_map(|connection| Some((connection.server.id(), connection.introduction.borrow().clone()?)))
            .collect();
        let parts: Vec<Part<'_>> = ready.iter().map(|(id, answer)| Part { id, answer }).collect();
        let missing = self.servers().count().saturating_sub(parts.len());
        for connection in connections.iter().filter(|connection| !connection.is_ready()) {
            self.note(&format!("the server \"{}\" has not introduced itself, and is left out", connection.server.id()));
        }
        let own = self.gateway.own();
        let answer = match era {
            Era::Legacy => merge::initialize(id, self.facts().revision.as_str(), &parts, missing, &own),
            Era::Modern => merge::discover(id, &parts, missing, &own),
        };
        self.say(answer);
        if !self.is_open.replace(true) {
            let with = if era == Era::Legacy { "with" } else { "without" };
            let (speaker, number) = (self.speaker(), self.number);
            let client = visible(speaker.client.as_deref().unwrap_or("without a name")).to_string();
            self.gateway.runtime.tell(format!("debug: client {number} ({client}) has come, {with} a handshake"));
            self.changes.forget();
            self.prepare_tool(era);
            self.ask_what_waits();
        }
    }

    /// Its connections to all servers that it may use; those that there are none to are left out.
    pub(crate) fn all_legs(&self, era: Era) -> Vec<Rc<UpstreamConnection>> {
        self.servers().filter_map(|server| self.connection(server.index, era).ok()).collect()
    }

    /// All servers that it may use.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &Rc<Server>> {
        let principal = self.principal();
        let servers = self.gateway.servers.iter().filter(|server| server.is_enabled());
        servers.filter(move |server| principal.may_use_server(server.id()))
    }

    pub(crate) fn set_level(&self, message: &Message) {
        let level = scan::member_at(message.bytes(), ["params", "level"]);
        let level = level.and_then(|span| scan::decode_string(&message.bytes()[span.range()]));
        let Some(level) = level.and_then(|level| LogLevel::parse(&level)) else {
            return self.refuse(message, &Refusal::BadParams { what: "there is no such level".into() });
        };
        self.log_level.set(Some(level));
        // Servers of the newest revision are told with each request.
        let facts = ClientFacts { log_level: Some(level.as_str().to_owned()), ..(*self.facts()).clone() };
        *self.facts.borrow_mut() = Some(Rc::new(facts));
        let mut connections = self.all_legs(Era::Legacy);
        connections.iter().for_each(|connection| connection.adjust_level());
        connections.retain(|connection| connection.is_to_take_level());
        let Some(id) = message.id() else { return };
        if connections.is_empty() {
            return self.say_result(message, b"{}");
        }
        self.own.borrow_mut().push(id.clone());
        let me = self.rc();
        tokio::task::spawn_local(async move {
            let until = Instant::now() + LEVEL_TAKEN_WITHIN;
            for connection in &connections {
                if timeout_at(until, connection.has_taken_level()).await.is_err() {
                    break;
                }
            }
            if me.is_still_wanted(&id) {
                me.say(reply::answer_with_result(&id, b"{}"));
            }
        });
    }
}
