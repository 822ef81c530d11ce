//! A client of a gateway: what it asks for, which server that concerns, and what it is told.

mod answers;
mod batches;
mod level;
mod telling;

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};

use bytes::Bytes;
use mcp_engine::entrance::{ANONYMOUS, Admission, Principal, SHARED, may_show, shown_in, without_token};
use mcp_engine::router::era::{self, ClientFacts};
use mcp_engine::router::{Found, ListKind, rewrite};
use mcp_engine::{Behalf, Lane, Speaker};
use mcp_wire::reply::{self, Refusal};
use mcp_wire::revision::{Era, Revision};
use mcp_wire::{Cut, Id, Kind, Message, scan};

use super::Gateway;
use super::calls::{InFlight, Method};
use super::leg::{Leg, OURS, Outgoing};
use super::listening::Listening;
use super::proxy_tool::Inners;
use super::questions::Questions;
use super::settings::Notifications;
use super::told::Changes;
use crate::bridge::talk::{ClientEnd, Talk};
use batches::Batch;

pub use level::LogLevel;

pub struct Visitor {
    me: Weak<Self>,
    pub gateway: Rc<Gateway>,
    /// Of its conversation.
    pub number: u32,
    talk: Weak<Talk>,
    /// Who it is, where the way it came tells.
    admission: RefCell<Admission>,
    /// Requests that showed a wrong token, and what is to be said of them.
    turned_away: RefCell<Vec<(Id, Refusal)>>,
    /// Who it was when it last said something to a server.
    known: RefCell<Rc<Speaker>>,
    /// What it said of itself.
    facts: RefCell<Option<Rc<ClientFacts>>>,
    /// The same with its last request, where each says so.
    each_time: RefCell<Option<(Bytes, Rc<ClientFacts>)>>,
    /// Its connections, by server; of the older revisions and of the newer.
    legs: [RefCell<Vec<Weak<Leg>>>; 2],
    in_flight: Rc<Cell<usize>>,
    batches: RefCell<Vec<Batch>>,
    /// Requests that we answer ourselves, and have not yet.
    pub(super) own: RefCell<Vec<Id>>,
    pub(super) questions: Questions,
    pub(super) listening: Listening,
    /// What it asks for through the proxy tool.
    pub(super) inners: Inners,
    pub(super) changes: Changes,
    pub(super) log_level: Cell<Option<LogLevel>>,
    /// Whether it was told what there is, so that it wants to hear what changes.
    pub(super) is_open: Cell<bool>,
    /// It reads more slowly than there is something to read.
    is_behind: Cell<bool>,
    left: OnceCell<()>,
}

impl Visitor {
    pub(super) fn new(gateway: &Rc<Gateway>, talk: &Rc<Talk>, principal: Option<Rc<Principal>>) -> Rc<Self> {
        let none = || RefCell::new(gateway.servers.iter().map(|_| Weak::new()).collect());
        Rc::new_cyclic(|me| Self {
            me: me.clone(),
            gateway: Rc::clone(gateway),
            number: talk.conversation.borrow().number(),
            talk: Rc::downgrade(talk),
            admission: RefCell::new(Admission::of(principal)),
            turned_away: RefCell::default(),
            known: RefCell::default(),
            facts: RefCell::default(),
            each_time: RefCell::default(),
            legs: [none(), none()],
            in_flight: Rc::default(),
            batches: RefCell::default(),
            own: RefCell::default(),
            questions: Questions::default(),
            listening: Listening::default(),
            inners: Inners::default(),
            changes: Changes::default(),
            log_level: Cell::new(None),
            is_open: Cell::new(false),
            is_behind: Cell::new(false),
            left: OnceCell::new(),
        })
    }

    pub(super) fn rc(&self) -> Rc<Self> {
        self.me.upgrade().expect("it is in use")
    }

    pub(super) fn weak(&self) -> Weak<Self> {
        self.me.clone()
    }

    /// Its conversation, while that lasts.
    pub(super) fn talk(&self) -> Option<Rc<Talk>> {
        self.talk.upgrade().filter(|talk| !talk.is_over())
    }

    /// Who it is, which it has shown by the time that anything of it is heeded.
    pub(super) fn principal(&self) -> Rc<Principal> {
        let known = self.admission.borrow().who().cloned();
        known.unwrap_or_else(|| Rc::clone(&self.gateway.nobody))
    }

    /// What it said of itself, or what we say of a client that said nothing.
    pub fn facts(&self) -> Rc<ClientFacts> {
        if let Some(facts) = &*self.facts.borrow() {
            return Rc::clone(facts);
        }
        match &*self.each_time.borrow() {
            Some((_, facts)) => Rc::clone(facts),
            None => Rc::new(ClientFacts::plain()),
        }
    }

    /// Whether it was said what it can do, once or with its last request.
    pub(super) fn has_said_who_it_is(&self) -> bool {
        self.facts.borrow().is_some() || self.each_time.borrow().is_some()
    }

    /// Whether each of its requests says who sends it.
    pub(super) fn has_no_handshake(&self) -> bool {
        self.facts.borrow().is_none() && self.each_time.borrow().is_some()
    }

    /// Takes what the client sends, once it has passed as `sequence`.
    pub fn take(&self, message: &Message, sequence: u64) {
        match message.glance().kind {
            Kind::Request => self.request(message, sequence),
            Kind::Notification => self.notification(message, sequence),
            Kind::Response | Kind::Error => self.reply(message, sequence),
            Kind::Batch => self.take_batch(message.bytes(), sequence),
            Kind::OtherJson | Kind::NotJson => {}
        }
    }

    /// The revisions that a request is one of.
    fn era_of(&self, message: &Message) -> Era {
        let talk = self.talk.upgrade();
        match talk.as_ref().map(|talk| &talk.client) {
            Some(ClientEnd::Session(session)) => session.era,
            _ if message.protocol_version().is_some() => Era::Modern,
            _ => Era::Legacy,
        }
    }

    fn request(&self, message: &Message, sequence: u64) {
        if let Err(refusal) = self.admit(message) {
            return self.refuse(message, &refusal);
        }
        let era = self.era_of(message);
        let Some(method) = message.method() else { return };
        if era == Era::Modern
            && let Err(answer) = self.check_modern(message)
        {
            return self.say(answer);
        }
        if !is_routed(&method)
            && let Err(refusal) = self.may_ask()
        {
            return self.refuse(message, &refusal);
        }
        if let Some(kind) = ListKind::from_method(&method) {
            return self.list(message, kind, era);
        }
        let respelled = rewrite::respelled(message, &method);
        let message = respelled.as_ref().unwrap_or(message);
        match (&*method, era) {
            ("tools/call", _) if self.means_proxy_tool(message) => self.use_proxy_tool(message, era, sequence),
            ("tools/call", _) => self
                .route(message, &method, era, sequence, |names, message| message.name().map(|name| names.tool(&name))),
            ("prompts/get", _) => self.route(message, &method, era, sequence, |names, message| {
                message.name().map(|name| names.prompt(&name))
            }),
            ("resources/read", _) => {
                self.route(message, &method, era, sequence, |names, message| message.uri().map(|uri| names.uri(&uri)))
            }
            ("resources/subscribe" | "resources/unsubscribe", Era::Legacy) => {
                self.subscribe(message.clone(), &method, sequence)
            }
            ("completion/complete", _) => self.route(message, &method, era, sequence, |names, message| {
                let (kind, wanted) = rewrite::completion_ref(message)?;
                Some(match kind {
                    rewrite::RefKind::Prompt => names.prompt(&wanted),
                    rewrite::RefKind::Resource => names.uri(&wanted),
                })
            }),
            ("tasks/get" | "tasks/cancel", _) | ("tasks/result", Era::Legacy) | ("tasks/update", Era::Modern) => {
                let of_tool = (method == "tasks/result").then(|| self.result_of_task(message, sequence)).flatten();
                self.route(of_tool.as_ref().unwrap_or(message), &method, era, sequence, |names, message| {
                    message.task_id().map(|task| names.task(&task))
                });
            }
            ("initialize", Era::Legacy) => self.initialize(message),
            ("ping", Era::Legacy) => self.say_result(message, b"{}"),
            ("logging/setLevel", Era::Legacy) => self.set_level(message),
            ("server/discover", Era::Modern) => self.discover(message),
            ("subscriptions/listen", Era::Modern) => self.listen(message),
            _ => self.route_unknown(message, &method, era, sequence),
        }
    }

    /// Takes tokens out of what a client on stdio sends, before anything of it is recorded.
    pub fn look_at(&self, cuts: &mut [Cut]) {
        for cut in cuts {
            let Cut::Frame(frame) = cut else { continue };
            if !may_show(&frame.bytes) {
                continue;
            }
            let message = Message::new(frame.bytes.clone());
            let shown = match shown_in(&message) {
                Ok(None) => continue,
                Ok(Some(shown)) => Ok(shown),
                Err(unclear) => Err(Refusal::BadParams { what: unclear.to_string() }),
            };
            let admitted = shown.and_then(|shown| {
                let admitted = self.admission.borrow_mut().admit(&self.gateway.entrance, Some(shown.as_bytes()));
                admitted.map_err(Refusal::from)
            });
            if let (Err(refusal), Some(id)) = (admitted, message.id()) {
                self.turned_away.borrow_mut().push((id, refusal));
            }
            frame.bytes = without_token(&message);
        }
    }

    /// Whether it may ask us something now. What goes to a server is counted with that.
    pub(super) fn may_ask(&self) -> Result<(), Refusal> {
        self.gateway.entrance.take(&self.principal(), None, None)?;
        let is_busy = self.own.borrow().len() >= self.gateway.settings.in_flight_per_client;
        if is_busy { Err(too_many_calls()) } else { Ok(()) }
    }

    /// Whether a request may be heeded.
    fn admit(&self, message: &Message) -> Result<(), Refusal> {
        let turned_away = {
            let mut turned_away = self.turned_away.borrow_mut();
            let id = if turned_away.is_empty() { None } else { message.id() };
            let at = id.and_then(|id| turned_away.iter().position(|(other, _)| *other == id));
            at.map(|at| turned_away.swap_remove(at).1)
        };
        match turned_away {
            Some(refusal) => Err(refusal),
            None => Ok(self.admission.borrow_mut().admit(&self.gateway.entrance, None).map(drop)?),
        }
    }

    /// Sends a request to the server that it names.
    pub(super) fn route(
        &self,
        message: &Message,
        method: &str,
        era: Era,
        sequence: u64,
        find: impl Fn(&mcp_engine::router::Names, &Message) -> Option<Found> + Copy + 'static,
    ) {
        let found = find(&self.gateway.names.borrow(), message);
        match found {
            Some(Found::Is { server, original }) => self.send(message, method, era, sequence, server, &original),
            Some(Found::Nowhere { candidates }) if candidates.len() == 1 => {
                let original = message.subject_of(method).unwrap_or_default();
                self.send(message, method, era, sequence, candidates[0], &original);
            }
            Some(Found::Ask { server }) => self.ask_first(message.clone(), method, era, sequence, vec![server], find),
            Some(Found::Nowhere { candidates }) if !candidates.is_empty() => {
                self.ask_first(message.clone(), method, era, sequence, candidates, find);
            }
            Some(Found::Collides { .. }) => {
                let name = message.subject_of(method).unwrap_or_default().into_owned();
                self.refuse(message, &Refusal::Collides { name });
            }
            Some(Found::Nowhere { .. }) => self.say_unknown(message, method),
            None => self.refuse(message, &Refusal::BadParams { what: "what it is about is not named".into() }),
        }
    }

    /// Reads the lists of servers that may have what is meant, and looks again.
    fn ask_first(
        &self,
        message: Message,
        method: &str,
        era: Era,
        sequence: u64,
        servers: Vec<usize>,
        find: impl Fn(&mcp_engine::router::Names, &Message) -> Option<Found> + 'static,
    ) {
        let (me, method) = (self.rc(), method.to_owned());
        tokio::task::spawn_local(async move {
            let kinds: &[ListKind] = match &*method {
                "tools/call" => &[ListKind::Tools],
                "prompts/get" => &[ListKind::Prompts],
                _ => &[ListKind::Resources, ListKind::Templates],
            };
            let principal = me.principal();
            for server in servers {
                if !principal.may_use_server(me.gateway.servers[server].id()) {
                    continue;
                }
                let Ok(leg) = me.leg(server, era) else { continue };
                for kind in kinds {
                    let _ = tokio::time::timeout(me.gateway.settings.list_wait, leg.fetch(*kind)).await;
                }
            }
            let found = find(&me.gateway.names.borrow(), &message);
            match found {
                Some(Found::Is { server, original }) => me.send(&message, &method, era, sequence, server, &original),
                Some(Found::Collides { .. }) => {
                    let name = message.subject_of(&method).unwrap_or_default().into_owned();
                    me.refuse(&message, &Refusal::Collides { name });
                }
                _ => me.say_unknown(&message, &method),
            }
        });
    }

    fn send(&self, message: &Message, method: &str, era: Era, sequence: u64, server: usize, original: &str) {
        let known = &self.gateway.servers[server];
        let is_tool = method == "tools/call";
        let principal = self.principal();
        let may_call = |tool| principal.may_use_tool(known.id(), tool) && known.gives_out(tool);
        if !principal.may_use_server(known.id()) || is_tool && !may_call(original) {
            return self.say_unknown(message, method);
        }
        if let Err(limited) = self.gateway.entrance.take(&principal, Some(known.id()), is_tool.then_some(original)) {
            return self.refuse(message, &limited.into());
        }
        if self.in_flight.get() >= self.gateway.settings.in_flight_per_client {
            return self.refuse(message, &too_many_calls());
        }
        let leg = match self.leg_for_call(server, era) {
            Ok(leg) => leg,
            Err(refusal) => return self.refuse(message, &refusal),
        };
        if is_tool && leg.looks_behind(original) {
            // Nobody is shown it, and by it rules could be gone around.
            return self.say_unknown(message, method);
        }
        if era == Era::Modern && self.log_level.get().is_some() {
            leg.adjust_level();
        }
        let edits = rewrite::request(&known.namespace, message, method, original);
        let (method, place) = (Method::new(method), InFlight::new(&self.in_flight));
        leg.submit(self, message, Outgoing { method, edits, era, parent: sequence, place });
    }

    /// Sends a call that another connection can no longer take.
    pub(super) fn submit(&self, server: usize, message: &Message, call: Outgoing) {
        match self.leg_for_call(server, call.era) {
            Ok(leg) => leg.submit(self, message, call),
            Err(refusal) => self.refuse(message, &refusal),
        }
    }

    /// Its connection to a server, where what the server says can be told to be about its calls.
    fn leg_for_call(&self, server: usize, era: Era) -> Result<Rc<Leg>, Refusal> {
        let leg = self.leg(server, era)?;
        if leg.is_spent_for(self) && leg.server.replace(&leg) { self.leg(server, era) } else { Ok(leg) }
    }

    /// Whether servers tell it more about its calls than their progress and their answers.
    pub(super) fn hears_unasked(&self) -> bool {
        !self.has_no_handshake() || self.log_level.get().is_some()
    }

    /// Its connection to a server, for a request of `era`.
    pub(super) fn leg(&self, server: usize, era: Era) -> Result<Rc<Leg>, Refusal> {
        let legs = &self.legs[usize::from(era == Era::Modern)];
        if let Some(leg) = legs.borrow()[server].upgrade().filter(|leg| !leg.is_over() && !leg.is_retired()) {
            return Ok(leg);
        }
        let leg = self.gateway.servers[server].leg_for(&self.rc(), &self.facts(), era)?;
        legs.borrow_mut()[server] = Rc::downgrade(&leg);
        Ok(leg)
    }

    /// Its connections that are open.
    pub(super) fn open_legs(&self) -> Vec<Rc<Leg>> {
        let legs = self.gateway.servers.iter().flat_map(|server| server.legs());
        legs.filter(|leg| leg.is_for(self)).collect()
    }

    /// A method that we know nothing of goes to the only server there is.
    fn route_unknown(&self, message: &Message, method: &str, era: Era, sequence: u64) {
        let is_removed = match era {
            Era::Modern => matches!(
                method,
                "initialize"
                    | "ping"
                    | "logging/setLevel"
                    | "resources/subscribe"
                    | "resources/unsubscribe"
                    | "tasks/result"
                    | "tasks/list"
            ),
            Era::Legacy => matches!(method, "server/discover" | "subscriptions/listen" | "tasks/update"),
        };
        let servers: Vec<usize> =
            self.gateway.servers.iter().filter(|server| server.is_enabled()).map(|server| server.index).collect();
        match servers[..] {
            [only] if !is_removed => self.send(message, method, era, sequence, only, ""),
            _ => self.refuse(message, &Refusal::NoSuchMethod { method: method.to_owned() }),
        }
    }

    /// What every request of the newest revision has to say of itself.
    fn check_modern(&self, message: &Message) -> Result<(), Bytes> {
        let id = message.id().unwrap_or(Id::Other("null".into()));
        let version = message.protocol_version();
        let Some(version) = version else {
            let what = "params._meta has no io.modelcontextprotocol/protocolVersion".into();
            return Err(reply::error(&id, &Refusal::BadParams { what }));
        };
        match Revision::parse(version.as_bytes()) {
            Some(revision) if revision.era() == Era::Modern => {}
            _ => return Err(reply::unsupported_version(&id, &version, &[MODERN])),
        }
        let known = self.each_time.borrow().as_ref().is_some_and(|(meta, _)| meta_of(message) == Some(&meta[..]));
        if !known {
            let capabilities = scan::member_at(message.bytes(), ["params", "_meta", CAPABILITIES]);
            let facts = era::facts_of_modern(message)
                .filter(|_| capabilities.is_some_and(|span| message.bytes()[span.range()].starts_with(b"{")));
            let Some(facts) = facts else {
                let what = format!("params._meta has no {CAPABILITIES}");
                return Err(reply::error(&id, &Refusal::BadParams { what }));
            };
            self.log_level.set(facts.log_level.as_deref().and_then(LogLevel::parse));
            let meta = meta_of(message).map(Bytes::copy_from_slice).unwrap_or_default();
            let before = self.each_time.replace(Some((meta, Rc::new(facts))));
            let is_other = before
                .zip(self.each_time.borrow().as_ref())
                .is_some_and(|((_, before), (_, now))| before.capabilities != now.capabilities);
            if is_other {
                // A server may offer more to a client that can do more.
                self.legs[1].borrow_mut().fill(Weak::new());
            }
        }
        Ok(())
    }

    /// Takes what a client says without wanting an answer.
    fn notification(&self, message: &Message, sequence: u64) {
        let method = message.method().unwrap_or_default();
        match &*method {
            "notifications/initialized" => {}
            "notifications/cancelled" => {
                let Some(id) = message.cancelled_id() else { return };
                let was_own = {
                    let mut own = self.own.borrow_mut();
                    let at = own.iter().position(|other| *other == id);
                    at.map(|at| own.swap_remove(at)).is_some()
                };
                self.forget_in_batches(&id);
                let was_of_tool = self.cancel_inner(&id, message, sequence);
                if !was_own && !was_of_tool && !self.stop_listening(&id) {
                    self.open_legs().iter().any(|leg| leg.cancel_for(self, &id, message, sequence));
                }
            }
            "notifications/progress" => self.progress_of_question(message, sequence),
            // Whatever asks for something asks for an answer.
            _ if !method.starts_with("notifications/") => {}
            _ => {
                for leg in self.concerned(&method) {
                    leg.tell_for(self, sequence, message.bytes().clone());
                }
            }
        }
    }

    /// Whom a notification reaches that names nobody.
    fn concerned(&self, method: &str) -> Vec<Rc<Leg>> {
        let legs = self.open_legs();
        match &self.gateway.settings.notifications {
            Notifications::All => legs,
            Notifications::Nobody => Vec::new(),
            Notifications::Only(ids) => {
                legs.into_iter().filter(|leg| ids.iter().any(|id| **id == *leg.server.id())).collect()
            }
            // What one client has is nothing to a server that others use too.
            Notifications::Concerned => legs
                .into_iter()
                .filter(|leg| leg.era.get() == Era::Legacy || method != "notifications/roots/list_changed")
                .filter(|leg| leg.attached().len() == 1)
                .collect(),
        }
    }

    pub(super) fn has_left(&self) -> bool {
        self.left.get().is_some()
    }

    /// It is gone.
    pub fn leave(&self) {
        if self.left.set(()).is_err() {
            return;
        }
        if self.is_open.get() {
            self.gateway.hub.tell(format!("debug: client {} has left", self.number));
        }
        for leg in self.open_legs() {
            leg.detach(self);
        }
        self.own.borrow_mut().clear();
        self.inners.give_up();
    }

    /// Who it is by the token that it showed, or else who it says it is.
    pub(super) fn speaker(&self) -> Rc<Speaker> {
        let (talk, admission, nobody) = (self.talk.upgrade(), self.admission.borrow(), Speaker::default());
        let conversation = talk.as_ref().map(|talk| talk.conversation.borrow());
        let said = conversation.as_ref().map_or(&nobody, |conversation| conversation.speaker());
        let shown = admission.who().map(|who| &who.name);
        // Whoever shows what everybody shows has shown no name.
        let shown = shown.filter(|name| ![ANONYMOUS, SHARED].contains(&&***name));
        let Speaker { client, revision, shows_forms } = said;
        let client = shown.or(client.as_ref());
        let mut known = self.known.borrow_mut();
        let is_known =
            known.client.as_ref() == client && known.revision == *revision && known.shows_forms == *shows_forms;
        if !is_known {
            let (client, revision) = (client.cloned(), revision.clone());
            *known = Rc::new(Speaker { client, revision, shows_forms: *shows_forms });
        }
        Rc::clone(&known)
    }

    /// Says something to a server in its name, because of its message `parent`.
    pub(super) fn on_behalf<R>(&self, parent: u64, say: impl FnOnce(Lane<'_>) -> R) -> R {
        let behalf = Behalf { parent, speaker: &self.speaker(), conversation: self.number };
        say(Lane { behalf: Some(behalf), ..OURS })
    }
}

/// Whether a method goes to one server, where it is counted.
fn is_routed(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read" | "completion/complete")
        || method.starts_with("tasks/")
}

/// What a client is told that has too much under way.
pub(super) fn too_many_calls() -> Refusal {
    Refusal::Busy { what: "this client has as many calls open as it may".into() }
}

/// Where a request says what its client can do.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The newest revision, as clients name it.
const MODERN: &str = Revision::V2026_07_28.as_str();

/// The member by which a request of the newest revision says who sends it.
fn meta_of(message: &Message) -> Option<&[u8]> {
    let span = scan::member_at(message.bytes(), ["params", "_meta"])?;
    Some(&message.bytes()[span.range()])
}
