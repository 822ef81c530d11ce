//! What a server lists: read page by page, kept for as long as that is right.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use crate::router::rewrite::{self, Item};
use crate::router::{Claimant, ListKind};
use bytes::Bytes;
use mcp_proxy_tool::Type;
use mcp_wire::fit::{Fit, What, Writer, fit};
use mcp_wire::reply::Refusal;
use mcp_wire::revision::Era;
use mcp_wire::visible::visible;
use mcp_wire::{Kind, Message};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::upstream::UpstreamConnection;

/// A list of one server.
#[derive(Default)]
pub(crate) struct Listed {
    read: RefCell<Option<Rc<Read>>>,
    /// Since when somebody reads it.
    reading: Cell<Option<Instant>>,
    done: Notify,
    /// Counts what the server says of changes.
    changes: Cell<u64>,
}

/// A list as it was read.
pub(crate) struct Read {
    pub items: Vec<Item>,
    /// It need not be read again before this, unless the server says that it changed.
    until: Option<Instant>,
    /// What the server had said of changes by then.
    changes: u64,
    at: Instant,
    pub ttl: Option<Duration>,
    pub is_public: bool,
    /// The bound that cut it short, if one did.
    pub cut: Option<String>,
    /// What is not listed because no client could read it, or not as its server has it.
    pub faults: Faults,
    /// Tells lists apart.
    pub number: u64,
}

/// Why there is no list of a server.
#[derive(Clone)]
pub(crate) struct Unread {
    /// For the gateway's operator. It may have paths, addresses and the server's words.
    pub why: String,
    /// For clients.
    pub told: &'static str,
}

impl Unread {
    pub(crate) fn gone(refusal: &Refusal) -> Self {
        Self { why: refusal.text(), told: "it is not available" }
    }

    pub(crate) fn late() -> Self {
        Self::of("it did not answer in time")
    }

    pub(crate) fn failed(why: String) -> Self {
        Self { why, told: "it answered with an error" }
    }

    pub(crate) fn of(told: &'static str) -> Self {
        Self { why: told.into(), told }
    }
}

/// Items that are not as the protocol has them.
#[derive(Default)]
pub(crate) struct Faults {
    pub left_out: usize,
    /// Which they are and what is wrong, as many as are said.
    named: Vec<String>,
    /// The others.
    unnamed: usize,
}

impl Faults {
    fn leave_out(&mut self, what: String) {
        self.left_out += 1;
        self.name(what);
    }

    fn name(&mut self, what: String) {
        if self.named.len() < FAULTS_SAID { self.named.push(what) } else { self.unnamed += 1 }
    }

    /// For the gateway's operator.
    fn text(&self) -> Option<String> {
        let more = if self.unnamed > 0 { format!("; and {} more", self.unnamed) } else { String::new() };
        (!self.named.is_empty()).then(|| format!("{}{more}", self.named.join("; ")))
    }
}

/// Lists by their kinds, as they were read last.
pub(crate) type ListsRead = Vec<(ListKind, Rc<Read>)>;

impl Read {
    /// Of a server that has no such list.
    fn nothing() -> Self {
        let at = Instant::now();
        Self {
            items: Vec::new(),
            until: None,
            changes: 0,
            at,
            ttl: None,
            is_public: true,
            cut: None,
            faults: Faults::default(),
            number: 0,
        }
    }
}

impl Listed {
    /// The list as it was read, unless it changed since, or that was longer ago than `age`.
    fn recent(&self, age: Duration) -> Option<Rc<Read>> {
        let read = self.read.borrow().clone()?;
        (read.changes == self.changes.get() && read.at.elapsed() < age).then_some(read)
    }

    /// The list, if it need not be read again.
    pub(crate) fn fresh(&self) -> Option<Rc<Read>> {
        let read = self.read.borrow().clone()?;
        let is_fresh = read.changes == self.changes.get() && read.until.is_some_and(|until| Instant::now() < until);
        is_fresh.then_some(read)
    }

    /// Whether somebody has waited for it for longer than is worth it.
    pub(crate) fn is_stuck(&self, worth: Duration) -> bool {
        self.reading.get().is_some_and(|since| since.elapsed() > worth)
    }

    /// The list as it was read last.
    pub(crate) fn last(&self) -> Option<Rc<Read>> {
        self.read.borrow().clone()
    }

    pub(crate) fn changed(&self) {
        self.changes.set(self.changes.get() + 1);
    }
}

thread_local! {
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

impl UpstreamConnection {
    /// How many tools, prompts and resources there are, as far as is known.
    pub(crate) fn counts(&self) -> [Option<usize>; 3] {
        let count = |kind| self.list(kind).last().map(|read| read.items.len());
        [count(ListKind::Tools), count(ListKind::Prompts), count(ListKind::Resources)]
    }

    /// How many pages of a list are read, and how many items are kept.
    pub(crate) fn list_bounds(&self) -> (usize, usize) {
        let gateway = self.server.gateway.upgrade();
        gateway.map_or((1, 0), |gateway| (gateway.settings.list_pages, gateway.settings.list_items))
    }

    /// The lists that are not as the server has them, in words; none if all are.
    pub(crate) fn lists_cut(&self) -> Option<String> {
        let of = |kind: ListKind| {
            let (method, read) = (kind.method(), self.list(kind).last()?);
            let cut = read.cut.as_ref().map(|cut| format!("{method} is cut: {cut}"));
            Some([cut, read.faults.text().map(|faults| format!("{method}: {faults}"))].into_iter().flatten())
        };
        let said: Vec<String> = ListKind::ALL.into_iter().filter_map(of).flatten().collect();
        (!said.is_empty()).then(|| said.join("; "))
    }

    /// The lists that were read, as they were last.
    pub(crate) fn lists_read(&self) -> ListsRead {
        ListKind::ALL.into_iter().filter_map(|kind| Some((kind, self.list(kind).last()?))).collect()
    }

    /// Tells clients of a list that differs from the one that they know.
    pub(crate) fn look_for_changes(&self, kind: ListKind, known: &[(ListKind, Rc<Read>)]) {
        // No client has read this list, so no client needs news of it.
        let Some((_, known)) = known.iter().find(|(other, _)| *other == kind).cloned() else { return };
        let connection = self.rc();
        tokio::task::spawn_local(async move {
            let is_known = connection.fetch(kind).await.is_ok_and(|read| read.items == known.items);
            if !is_known {
                connection.list_changed(kind);
            }
        });
    }

    /// The list of a kind, if there is one that is right or was a short while ago.
    pub(crate) fn recent(&self, kind: ListKind, age: Duration) -> Option<Rc<Read>> {
        if self.is_ready() && !self.offers(kind) {
            return Some(Rc::new(Read::nothing()));
        }
        let listed = self.list(kind);
        listed.fresh().or_else(|| listed.recent(age))
    }

    /// The list of a kind, read from the server if need be. An error says why there is none.
    pub(crate) async fn fetch(&self, kind: ListKind) -> Result<Rc<Read>, Unread> {
        if !self.opened().await {
            return Err(Unread::gone(&self.refusal()));
        }
        if !self.offers(kind) {
            return Ok(Rc::new(Read::nothing()));
        }
        let listed = self.list(kind);
        let changes = listed.changes.get();
        loop {
            if self.is_over() {
                return Err(Unread::gone(&self.refusal()));
            }
            if let Some(read) = listed.fresh() {
                return Ok(read);
            }
            if listed.reading.get().is_none() {
                break;
            }
            let done = listed.done.notified();
            done.await;
            // What was read while we waited is as new as what we would read, unless it had changed before.
            if let Some(read) = listed.last().filter(|read| read.changes >= changes) {
                return Ok(read);
            }
        }
        let _reading = Reading::new(listed);
        let read = self.read(kind).await?;
        self.server.debug(&format!("has answered {} with {} items", kind.method(), read.items.len()));
        let read = Rc::new(read);
        *listed.read.borrow_mut() = Some(Rc::clone(&read));
        self.learn_names(kind);
        Ok(read)
    }

    async fn read(&self, kind: ListKind) -> Result<Read, Unread> {
        let changes = self.list(kind).changes.get();
        let mut items: Vec<Item> = Vec::new();
        let (mut ttl, mut is_public, mut nameless) = (None, true, 0);
        let mut faults = Faults::default();
        let mut cursors: Vec<String> = Vec::new();
        let (pages_max, items_max) = self.list_bounds();
        let mut cut = None;
        let behind = self.unwraps();
        for page in 0.. {
            let params = cursors.last().map(|cursor| format!("{{\"cursor\":{}}}", json_text(cursor)));
            let answer = match &behind {
                Some(tool) => {
                    let (answer, cut_behind) = self.read_behind(tool, kind).await?;
                    cut = cut_behind;
                    answer
                }
                None => self.ask(kind.method(), params.as_deref()).await.map_err(|_| match self.is_over() {
                    true => Unread::gone(&self.refusal()),
                    false => Unread::late(),
                })?,
            };
            if Message::new(answer.clone()).glance().kind == Kind::Error {
                return Err(Unread::failed(format!("{} failed: {}", kind.method(), error_text(&answer))));
            }
            let Some(read) = rewrite::page(self.namespace(), kind, &answer) else {
                return Err(Unread::of("its answer is no list"));
            };
            ttl = if page == 0 { read.ttl_ms } else { ttl.min(read.ttl_ms) };
            is_public &= read.is_public;
            nameless += read.left_out;
            items.extend(read.items.into_iter().filter_map(|item| fitting(kind, item, self.era.get(), &mut faults)));
            match read.next {
                None => break,
                Some(next) if cursors.contains(&next) => {
                    cut = Some("its pages lead in a circle".to_owned());
                    break;
                }
                Some(_) if page + 1 >= pages_max => {
                    cut = Some(format!("only {pages_max} pages are read (`list_pages`)"));
                    break;
                }
                // A list that ends exactly at the bound is whole.
                Some(_) if items.len() >= items_max => {
                    cut = Some(format!("only {items_max} items are kept (`list_items`)"));
                    break;
                }
                Some(next) => cursors.push(next),
            }
        }
        if items.len() > items_max {
            items.truncate(items_max);
            cut = Some(format!("only {items_max} items are kept (`list_items`)"));
        }
        if let Some(cut) = &cut {
            let text = format!("{} of server \"{}\" is cut: {cut}", kind.method(), self.server.id());
            self.note(&text);
            if let Some(gateway) = self.server.gateway.upgrade() {
                gateway.runtime.tell_once(&text);
            }
        }
        if nameless > 0 {
            faults.name(format!("{nameless} without a usable name left out"));
            faults.left_out += nameless;
        }
        if let Some(faults) = faults.text() {
            let text =
                format!("{} of server \"{}\" has items that are not valid: {faults}", kind.method(), self.server.id());
            self.note(&text);
            if let Some(gateway) = self.server.gateway.upgrade() {
                gateway.runtime.tell_once(&text);
            }
        }
        let now = Instant::now();
        let until = match self.era.get() {
            // It says so when this is no longer right.
            Era::Legacy => self.tells_changes_of(kind).then(|| now + FOR_LONG),
            Era::Modern => ttl.filter(|ttl| *ttl > 0).map(|ttl| now + Duration::from_millis(ttl).min(FOR_LONG)),
        };
        let number = NUMBER.with(|number| {
            number.set(number.get() + 1);
            number.get()
        });
        Ok(Read { items, until, changes, at: now, ttl: ttl.map(Duration::from_millis), is_public, cut, faults, number })
    }

    /// Has names that cannot be read back, or have no server in them, lead here.
    fn learn_names(&self, kind: ListKind) {
        let Some(gateway) = self.server.gateway.upgrade() else { return };
        let mut originals: Vec<String> = Vec::new();
        for connection in self.server.connections() {
            if let Some(read) = connection.list(kind).last() {
                // What is not given out claims no name.
                let is_given = |name: &str| kind != ListKind::Tools || self.server.gives_out(name);
                let given = read.items.iter().filter(|item| is_given(&item.original));
                originals.extend(given.map(|item| item.original.clone()));
            }
        }
        originals.sort_unstable();
        originals.dedup();
        let collisions = gateway.names.borrow_mut().learn(self.server.index, kind, &originals);
        for collision in collisions.iter().take(COLLISIONS_SAID) {
            let who = |it: &Claimant| format!("`{}` of {}", visible(&it.original), gateway.servers[it.server].id());
            let claimants: Vec<String> = collision.claimants.iter().map(who).collect();
            let text = format!("these names could be taken for each other, and lead nowhere: {}", claimants.join(", "));
            self.note(&text);
            gateway.runtime.tell_once(&text);
        }
    }
}

/// An item as clients can read it. None if there is no such.
fn fitting(kind: ListKind, item: Item, era: Era, faults: &mut Faults) -> Option<Item> {
    match fit(what_of(kind), &item.bytes, era, Writer::Server) {
        Fit::AsItIs => Some(item),
        Fit::Mended { json, dropped } => {
            if !dropped.is_empty() {
                faults.name(format!("`{}` without its `{}`", shown(&item), dropped.join("`, `")));
            }
            Some(Item { bytes: json, ..item })
        }
        Fit::Bad(wrong) => {
            faults.leave_out(format!("`{}` left out, {wrong}", shown(&item)));
            None
        }
    }
}

/// A server's item as clients of an era can read it.
pub(crate) fn for_clients_of(era: Era, kind: Type, item: &Bytes) -> Bytes {
    // Nothing else differs between eras.
    if kind != Type::Tool || era == Era::Modern {
        return item.clone();
    }
    match fit(What::Tool, item, era, Writer::Server) {
        Fit::Mended { json, .. } => json,
        Fit::AsItIs | Fit::Bad(_) => item.clone(),
    }
}

fn what_of(kind: ListKind) -> What {
    match kind {
        ListKind::Tools => What::Tool,
        ListKind::Prompts => What::Prompt,
        ListKind::Resources => What::Resource,
        ListKind::Templates => What::Template,
    }
}

fn shown(item: &Item) -> String {
    /// Characters shown of an item's name in a complaint about it.
    const CHARS_MAX: usize = 100;
    visible(&item.original.chars().take(CHARS_MAX).collect::<String>()).to_string()
}

/// Invalid items of a list that are named; the rest are counted.
const FAULTS_SAID: usize = 10;
/// Colliding names that are reported; the rest are like them.
const COLLISIONS_SAID: usize = 20;
/// Age of a list whose server announces its changes.
const FOR_LONG: Duration = Duration::from_secs(24 * 60 * 60);

/// While somebody reads a list.
struct Reading<'a>(&'a Listed);

impl<'a> Reading<'a> {
    fn new(listed: &'a Listed) -> Self {
        listed.reading.set(Some(Instant::now()));
        Self(listed)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.reading.set(None);
        self.0.done.notify_waiters();
    }
}

pub(crate) fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What an error says.
pub(crate) fn error_text(answer: &Bytes) -> String {
    let span = mcp_wire::scan::member_at(answer, ["error", "message"]);
    let text = span.and_then(|span| mcp_wire::scan::decode_string(&answer[span.range()]));
    text.unwrap_or_default().chars().take(200).collect()
}
