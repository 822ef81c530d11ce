//! A client of a gateway: what it asks for, which server that concerns, and what it is told.

mod answers;
mod batches;
mod level;
mod side;
mod telling;

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};

use crate::router::era::{self, ClientFacts};
use crate::router::{Found, ListKind, rewrite};
use bytes::Bytes;
use mcp_engine::entrance::{ANONYMOUS, Admission, Principal, SHARED, may_show, shown_in, without_token};
use mcp_engine::{Behalf, Lane, Speaker};
use mcp_wire::reply::{self, Refusal};
use mcp_wire::revision::{Era, Revision};
use mcp_wire::splice::spliced;
use mcp_wire::{Cut, Id, Kind, Message, scan};

use crate::Gateway;
use crate::elicitation::Questions;
use crate::notifications::Changes;
use crate::proxy_tool::Inners;
use crate::settings::Notifications;
use crate::subscriptions::listening::Listening;
use crate::upstream::calls::{InFlight, Method};
use crate::upstream::{OURS, Outgoing, UpstreamConnection};
use batches::Batch;
use mcp_link::{Exchanges, Link};

pub(crate) use level::LogLevel;

pub(crate) struct GatewayClient {
    me: Weak<Self>,
    pub gateway: Rc<Gateway>,
    /// Of its conversation.
    pub number: u32,
    link: Weak<Link>,
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
    connections: [RefCell<Vec<Weak<UpstreamConnection>>>; 2],
    in_flight: Rc<Cell<usize>>,
    batches: RefCell<Vec<Batch>>,
    /// Requests that we answer ourselves, and have not yet.
    pub(crate) own: RefCell<Vec<Id>>,
    pub(crate) questions: Questions,
    pub(crate) listening: Listening,
    /// What it asks for through the proxy tool.
    pub(crate) inners: Inners,
    pub(crate) changes: Changes,
    pub(crate) log_level: Cell<Option<LogLevel>>,
    /// Whether it was told what there is, so that it wants to hear what changes.
    pub(crate) is_open: Cell<bool>,
    /// It reads more slowly than there is something to read.
    is_behind: Cell<bool>,
    left: OnceCell<()>,
}

impl GatewayClient {
    pub(crate) fn new(gateway: &Rc<Gateway>, link: &Rc<Link>, principal: Option<Rc<Principal>>) -> Rc<Self> {
        let none = || RefCell::new(gateway.servers.iter().map(|_| Weak::new()).collect());
        Rc::new_cyclic(|me| Self {
            me: me.clone(),
            gateway: Rc::clone(gateway),
            number: link.conversation.borrow().number(),
            link: Rc::downgrade(link),
            admission: RefCell::new(Admission::of(principal)),
            turned_away: RefCell::default(),
            known: RefCell::default(),
            facts: RefCell::default(),
            each_time: RefCell::default(),
            connections: [none(), none()],
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

    pub(crate) fn rc(&self) -> Rc<Self> {
        self.me.upgrade().expect("it is in use")
    }

    pub(crate) fn weak(&self) -> Weak<Self> {
        self.me.clone()
    }

    /// Its conversation, while that lasts.
    pub(crate) fn link(&self) -> Option<Rc<Link>> {
        self.link.upgrade().filter(|link| !link.is_over())
    }

    /// Who it is, which it has shown by the time that anything of it is heeded.
    pub(crate) fn principal(&self) -> Rc<Principal> {
        let known = self.admission.borrow().who().cloned();
        known.unwrap_or_else(|| Rc::clone(&self.gateway.nobody))
    }

    /// What it said of itself, or what we say of a client that said nothing.
    pub(crate) fn facts(&self) -> Rc<ClientFacts> {
        if let Some(facts) = &*self.facts.borrow() {
            return Rc::clone(facts);
        }
        match &*self.each_time.borrow() {
            Some((_, facts)) => Rc::clone(facts),
            None => Rc::new(ClientFacts::plain()),
        }
    }

    /// Whether it was said what it can do, once or with its last request.
    pub(crate) fn has_said_who_it_is(&self) -> bool {
        self.facts.borrow().is_some() || self.each_time.borrow().is_some()
    }

    /// Whether each of its requests says who sends it.
    pub(crate) fn has_no_handshake(&self) -> bool {
        self.facts.borrow().is_none() && self.each_time.borrow().is_some()
    }

    /// Takes what the client sends, once it has passed as `sequence`.
    fn take_message(&self, message: &Message, sequence: u64) {
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
        let link = self.link.upgrade();
        match link.as_ref().and_then(|link| link.client.exchanges()).map(Exchanges::era) {
            Some(era) => era,
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
    pub(crate) fn look_at(&self, cuts: &mut [Cut]) {
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
    pub(crate) fn may_ask(&self) -> Result<(), Refusal> {
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
    pub(crate) fn route(
        &self,
        message: &Message,
        method: &str,
        era: Era,
        sequence: u64,
        find: impl Fn(&crate::router::Names, &Message) -> Option<Found> + Copy + 'static,
    ) {
        let found = find(&self.gateway.names.borrow(), message);
        if let Some(missing) = self.without_hidden(found.as_ref(), message, method, sequence) {
            return self.send_to(Some(missing), message, method, era, sequence);
        }
        match found {
            Some(Found::Nowhere { candidates }) if candidates.len() == 1 => {
                let original = message.subject_of(method).unwrap_or_default();
                self.send(message, method, era, sequence, candidates[0], &original);
            }
            Some(Found::Ask { server }) => self.ask_first(message.clone(), method, era, sequence, vec![server], find),
            Some(Found::Nowhere { candidates }) if !candidates.is_empty() => {
                self.ask_first(message.clone(), method, era, sequence, candidates, find);
            }
            None => self.refuse(message, &Refusal::BadParams { what: "what it is about is not named".into() }),
            found => self.send_to(found, message, method, era, sequence),
        }
    }

    /// Sends a request to the one server that it is for.
    fn send_to(&self, found: Option<Found>, message: &Message, method: &str, era: Era, sequence: u64) {
        match found {
            Some(Found::Is { server, original }) => self.send(message, method, era, sequence, server, &original),
            Some(Found::Collides { .. }) => {
                let name = message.subject_of(method).unwrap_or_default().into_owned();
                self.refuse(message, &Refusal::Collides { name });
            }
            _ => self.say_unknown(message, method),
        }
    }

    /// Where a call of a hidden tool goes, if its server's list sends it elsewhere than a call of a missing one.
    fn without_hidden(&self, found: Option<&Found>, message: &Message, method: &str, sequence: u64) -> Option<Found> {
        if method != "tools/call" || !self.sees_a_part() {
            return None;
        }
        let (names, given) = (self.gateway.names.borrow(), message.name()?);
        let missing = match names.unlisted_tool(&given) {
            Found::Nowhere { candidates } if candidates.len() == 1 => {
                Found::Is { server: candidates[0], original: (*given).into() }
            }
            missing => missing,
        };
        let listed: Vec<(usize, &str)> = match found.filter(|found| **found != missing)? {
            Found::Is { server, original } => vec![(*server, original)],
            Found::Collides { servers } => {
                let original = |server: usize| names.servers()[server].unprefixed(&given).unwrap_or(&given);
                servers.iter().map(|server| (*server, original(*server))).collect()
            }
            Found::Ask { .. } | Found::Nowhere { .. } => return None,
        };
        let (speaker, known) = (self.speaker(), &self.gateway.servers);
        let is_hidden = listed.iter().any(|(server, original)| {
            let mut edits = rewrite::request(&names.servers()[*server], message, method, original);
            let (call, client) = (spliced(message, &mut edits), (&*speaker, self.number));
            self.gateway.runtime.note(|pipeline| pipeline.denies_hidden(known[*server].id(), client, sequence, call))
        });
        is_hidden.then_some(missing)
    }

    /// Reads the lists of servers that may have what is meant, and looks again.
    fn ask_first(
        &self,
        message: Message,
        method: &str,
        era: Era,
        sequence: u64,
        servers: Vec<usize>,
        find: impl Fn(&crate::router::Names, &Message) -> Option<Found> + 'static,
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
                let Ok(connection) = me.connection(server, era) else { continue };
                for kind in kinds {
                    let _ = tokio::time::timeout(me.gateway.settings.list_wait, connection.fetch(*kind)).await;
                }
            }
            let found = find(&me.gateway.names.borrow(), &message);
            let missing = me.without_hidden(found.as_ref(), &message, &method, sequence);
            me.send_to(missing.or(found), &message, &method, era, sequence);
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
        let connection = match self.connection_for_call(server, era) {
            Ok(connection) => connection,
            Err(refusal) => return self.refuse(message, &refusal),
        };
        if is_tool && connection.looks_behind(original) {
            // Nobody is shown it, and by it rules could be gone around.
            return self.say_unknown(message, method);
        }
        if era == Era::Modern && self.log_level.get().is_some() {
            connection.adjust_level();
        }
        let edits = rewrite::request(&known.namespace, message, method, original);
        let (method, place) = (Method::new(method), InFlight::new(&self.in_flight));
        connection.submit(self, message, Outgoing { method, edits, era, parent: sequence, place });
    }

    /// Sends a call that another connection can no longer take.
    pub(crate) fn submit(&self, server: usize, message: &Message, call: Outgoing) {
        match self.connection_for_call(server, call.era) {
            Ok(connection) => connection.submit(self, message, call),
            Err(refusal) => self.refuse(message, &refusal),
        }
    }

    /// Its connection to a server, where what the server says can be told to be about its calls.
    fn connection_for_call(&self, server: usize, era: Era) -> Result<Rc<UpstreamConnection>, Refusal> {
        let connection = self.connection(server, era)?;
        if connection.is_spent_for(self) && connection.server.replace(&connection) {
            self.connection(server, era)
        } else {
            Ok(connection)
        }
    }

    /// Whether servers tell it more about its calls than their progress and their answers.
    pub(crate) fn hears_unasked(&self) -> bool {
        !self.has_no_handshake() || self.log_level.get().is_some()
    }

    /// Its connection to a server, for a request of `era`.
    pub(crate) fn connection(&self, server: usize, era: Era) -> Result<Rc<UpstreamConnection>, Refusal> {
        let connections = &self.connections[usize::from(era == Era::Modern)];
        if let Some(connection) = connections.borrow()[server]
            .upgrade()
            .filter(|connection| !connection.is_over() && !connection.is_retired())
        {
            return Ok(connection);
        }
        let connection = self.gateway.servers[server].connection_for(&self.rc(), &self.facts(), era)?;
        connections.borrow_mut()[server] = Rc::downgrade(&connection);
        Ok(connection)
    }

    /// Its connections that are open.
    pub(crate) fn open_connections(&self) -> Vec<Rc<UpstreamConnection>> {
        let connections = self.gateway.servers.iter().flat_map(|server| server.connections());
        connections.filter(|connection| connection.is_for(self)).collect()
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
                self.connections[1].borrow_mut().fill(Weak::new());
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
                    self.open_connections()
                        .iter()
                        .any(|connection| connection.cancel_for(self, &id, message, sequence));
                }
            }
            "notifications/progress" => self.progress_of_question(message, sequence),
            // Whatever asks for something asks for an answer.
            _ if !method.starts_with("notifications/") => {}
            _ => {
                for connection in self.concerned(&method) {
                    connection.tell_for(self, sequence, message.bytes().clone());
                }
            }
        }
    }

    /// Whom a notification reaches that names nobody.
    fn concerned(&self, method: &str) -> Vec<Rc<UpstreamConnection>> {
        let connections = self.open_connections();
        match &self.gateway.settings.notifications {
            Notifications::All => connections,
            Notifications::Nobody => Vec::new(),
            Notifications::Only(ids) => connections
                .into_iter()
                .filter(|connection| ids.iter().any(|id| **id == *connection.server.id()))
                .collect(),
            // What one client has is nothing to a server that others use too.
            Notifications::Concerned => connections
                .into_iter()
                .filter(|connection| {
                    connection.era.get() == Era::Legacy || method != "notifications/roots/list_changed"
                })
                .filter(|connection| connection.attached().len() == 1)
                .collect(),
        }
    }

    pub(crate) fn has_left(&self) -> bool {
        self.left.get().is_some()
    }

    /// It is gone.
    pub(crate) fn leave(&self) {
        if self.left.set(()).is_err() {
            return;
        }
        if self.is_open.get() {
            self.gateway.runtime.tell(format!("debug: client {} has left", self.number));
        }
        for connection in self.open_connections() {
            connection.detach(self);
        }
        self.own.borrow_mut().clear();
        self.inners.give_up();
    }

    /// Who it is by the token that it showed, or else who it says it is.
    pub(crate) fn speaker(&self) -> Rc<Speaker> {
        let (link, admission, nobody) = (self.link.upgrade(), self.admission.borrow(), Speaker::default());
        let conversation = link.as_ref().map(|link| link.conversation.borrow());
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
    pub(crate) fn on_behalf<R>(&self, parent: u64, say: impl FnOnce(Lane<'_>) -> R) -> R {
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
pub(crate) fn too_many_calls() -> Refusal {
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
