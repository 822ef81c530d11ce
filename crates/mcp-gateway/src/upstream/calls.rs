//! Calls that wait for the answer of one server, under the ids that we gave them.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::time::Duration;

use bytes::Bytes;
use foldhash::fast::RandomState;
use mcp_proxy_tool::Type;
use mcp_wire::Id;
use mcp_wire::revision::Era;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::client::GatewayClient;

/// A call that a server has not answered.
pub(crate) struct Call {
    pub caller: Caller,
    pub began: Instant,
    /// It is given up at the first, which progress puts off, and at the second in any case.
    pub until: Instant,
    pub latest: Instant,
}

impl Call {
    /// How long it had, if it is given up at `now`.
    pub(crate) fn limit(&self, now: Instant) -> Duration {
        let end = if now >= self.latest { self.latest } else { self.until };
        end.saturating_duration_since(self.began)
    }
}

pub(crate) enum Caller {
    Client(ClientCall),
    /// Ourselves. Where nobody waits for it any more, its answer is of no use.
    Own(oneshot::Sender<Bytes>),
}

/// What is to be known of a client's call when its answer comes.
pub(crate) struct ClientCall {
    pub client: Weak<GatewayClient>,
    pub id: OwnId,
    pub token: Option<OwnId>,
    pub method: Method,
    /// What it uses, if it went out as a call of the server's proxy tool.
    pub through: Option<Type>,
    /// As the client spoke it.
    pub era: Era,
    pub _place: InFlight,
}

/// An id as its sender spelled it.
#[derive(Clone, Debug)]
pub(crate) enum OwnId {
    Integer(i64),
    Spelled(Box<[u8]>),
}

impl OwnId {
    pub(crate) fn new(json: &[u8]) -> Self {
        match Id::from_json(json) {
            Id::Integer(integer) => Self::Integer(integer),
            Id::Text(_) | Id::Other(_) => Self::Spelled(json.into()),
            Id::Broken(_) => Self::Spelled((*b"null").into()),
        }
    }

    pub(crate) fn bytes(&self) -> Bytes {
        match self {
            Self::Integer(integer) => integer.to_string().into(),
            Self::Spelled(json) => Bytes::copy_from_slice(json),
        }
    }

    pub(crate) fn id(&self) -> Id {
        match self {
            Self::Integer(integer) => Id::Integer(*integer),
            Self::Spelled(json) => Id::from_json(json),
        }
    }
}

/// The methods whose answers hold something that has to be named anew, and the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    CallTool,
    Known(&'static str),
    Other(Box<str>),
}

impl Method {
    pub(crate) fn new(name: &str) -> Self {
        const KNOWN: [&str; 9] = [
            "prompts/get",
            "resources/read",
            "completion/complete",
            "resources/subscribe",
            "resources/unsubscribe",
            "tasks/get",
            "tasks/result",
            "tasks/cancel",
            "tasks/update",
        ];
        match KNOWN.iter().find(|known| **known == name) {
            _ if name == "tools/call" => Self::CallTool,
            Some(known) => Self::Known(known),
            None => Self::Other(name.into()),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::CallTool => "tools/call",
            Self::Known(name) => name,
            Self::Other(name) => name,
        }
    }
}

/// A place among the calls that a client may have open.
pub(crate) struct InFlight(Rc<Cell<usize>>);

impl InFlight {
    pub(crate) fn new(count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[derive(Default)]
pub(crate) struct Calls {
    open: HashMap<i64, Call, RandomState>,
    /// Those of clients.
    of_clients: usize,
    /// When the first of them began since none was open.
    clients_since_none: Option<Instant>,
    last: i64,
}

impl Calls {
    pub(crate) fn next_id(&mut self) -> i64 {
        self.last += 1;
        self.last
    }

    pub(crate) fn insert(&mut self, id: i64, caller: Caller, began: Instant, (timeout, cap): (Duration, Duration)) {
        if matches!(caller, Caller::Client(_)) {
            if self.of_clients == 0 {
                self.clients_since_none = Some(began);
            }
            self.of_clients += 1;
        }
        self.open.insert(id, Call { caller, began, until: began + timeout, latest: began + cap });
    }

    pub(crate) fn take(&mut self, id: i64) -> Option<Call> {
        let call = self.open.remove(&id)?;
        self.of_clients -= usize::from(matches!(call.caller, Caller::Client(_)));
        Some(call)
    }

    /// The id of the call that is open, if it is the only one.
    pub(crate) fn only(&self) -> Option<i64> {
        let mut ids = self.open.keys();
        ids.next().copied().filter(|_| ids.next().is_none())
    }

    pub(crate) fn of_clients(&self) -> usize {
        self.of_clients
    }

    /// Since when calls of clients have been open without a gap; none if none is open.
    pub(crate) fn busy_since(&self) -> Option<Instant> {
        self.clients_since_none.filter(|_| self.of_clients > 0)
    }

    /// The time since `since` counts against no open call.
    pub(crate) fn put_off(&mut self, since: Instant, now: Instant) {
        let by = now.saturating_duration_since(since);
        let put_off = |began: &mut Instant| *began = (*began + by).min(now);
        for call in self.open.values_mut() {
            put_off(&mut call.began);
            call.until += by;
            call.latest += by;
        }
        self.clients_since_none.iter_mut().for_each(put_off);
    }

    pub(crate) fn get(&self, id: i64) -> Option<&Call> {
        self.open.get(&id)
    }

    /// The call of a client under our `id`, if it is still open; what is heard of it puts its end off.
    pub(crate) fn heard_of(&mut self, id: i64, timeout: Duration) -> Option<&ClientCall> {
        let call = self.open.get_mut(&id)?;
        call.until = (Instant::now() + timeout).min(call.latest);
        match &call.caller {
            Caller::Client(call) => Some(call),
            Caller::Own(_) => None,
        }
    }

    pub(crate) fn clients(&self) -> impl Iterator<Item = (i64, &ClientCall)> {
        self.open.iter().filter_map(|(id, call)| match &call.caller {
            Caller::Client(call) => Some((*id, call)),
            Caller::Own(_) => None,
        })
    }

    /// When each open call of a client began.
    pub(crate) fn clients_since(&self) -> impl Iterator<Item = Instant> {
        self.open.values().filter(|call| matches!(call.caller, Caller::Client(_))).map(|call| call.began)
    }

    /// Takes out the calls that took too long, save those for which `is_excused` counts.
    pub(crate) fn overdue(&mut self, now: Instant, is_excused: impl Fn(&ClientCall) -> bool) -> Vec<(i64, Call)> {
        let is_overdue = |call: &Call| {
            let waits = matches!(&call.caller, Caller::Client(call) if is_excused(call));
            now >= call.latest || now >= call.until && !waits
        };
        let overdue: Vec<i64> = self.open.iter().filter(|(_, call)| is_overdue(call)).map(|(id, _)| *id).collect();
        overdue.into_iter().filter_map(|id| Some((id, self.take(id)?))).collect()
    }

    /// A request that is not answered before it is over.
    pub(crate) fn keep_open(&mut self, id: i64) {
        /// Time limit of a request that stays open by design, such as `subscriptions/listen`: longer than any
        /// process runs.
        const FOR_LONG: Duration = Duration::from_secs(366 * 24 * 60 * 60);
        if let Some(call) = self.open.get_mut(&id) {
            (call.until, call.latest) = (call.began + FOR_LONG, call.began + FOR_LONG);
        }
    }

    /// Takes out everything.
    pub(crate) fn drain(&mut self) -> Vec<Call> {
        self.of_clients = 0;
        self.open.drain().map(|(_, call)| call).collect()
    }
}
