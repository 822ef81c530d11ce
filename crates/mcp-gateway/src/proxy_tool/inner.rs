//! What the tool calls: requests under ids of ours, whose answers become those of the client's.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::{Rc, Weak};

use bytes::Bytes;
use foldhash::fast::RandomState;
use mcp_proxy_tool::arguments::Call;
use mcp_proxy_tool::shape;
use mcp_wire::splice::with_id;
use mcp_wire::{Id, Kind, Message, reply, scan};

use super::Outer;
use super::batch::Batch;
use crate::client::GatewayClient;

/// Tasks whose calls are remembered.
const TASKS_MAX: usize = 1_024;

/// What one client's uses of the tool have under way.
#[derive(Default)]
pub(crate) struct Inners {
    open: RefCell<HashMap<Id, Inner, RandomState>>,
    last: Cell<u64>,
    /// Batches that are not done.
    batches: RefCell<Vec<Weak<Batch>>>,
    /// Calls that go on as tasks, by the ids of those.
    tasks: RefCell<VecDeque<(String, Call)>>,
}

struct Inner {
    outer: Rc<Outer>,
    what: What,
}

enum What {
    Alone(Call),
    /// One of a batch, by its place.
    Part(Rc<Batch>, usize),
    /// The client took it back while it was still unclear where it goes. Its answer is for nobody.
    GivenUp,
}

impl Inners {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.borrow().is_empty()
    }

    /// The client's own request behind an id of ours.
    pub(crate) fn asked_as(&self, id: &Id) -> Option<Id> {
        self.open.borrow().get(id).map(|inner| inner.outer.id.clone())
    }

    pub(crate) fn part_of(&self, id: &Id) -> Option<(Rc<Batch>, usize)> {
        match &self.open.borrow().get(id)?.what {
            What::Part(batch, at) => Some((Rc::clone(batch), *at)),
            What::Alone(_) | What::GivenUp => None,
        }
    }

    /// Remembers a batch for as long as there is one.
    pub(crate) fn begun(&self, batch: &Rc<Batch>) {
        let mut batches = self.batches.borrow_mut();
        batches.retain(|batch| batch.strong_count() > 0);
        batches.push(Rc::downgrade(batch));
    }

    /// The client is gone.
    pub(crate) fn give_up(&self) {
        self.batches.take().iter().filter_map(Weak::upgrade).for_each(|batch| batch.give_up());
        self.open.borrow_mut().clear();
    }

    fn remember_task(&self, result: &[u8], call: &Call) {
        let id = scan::member_at(result, ["task", "taskId"]);
        let Some(id) = id.and_then(|span| scan::decode_string(&result[span.range()])) else { return };
        let mut tasks = self.tasks.borrow_mut();
        if tasks.len() >= TASKS_MAX {
            tasks.pop_front();
        }
        // What it was called with is of no use any more.
        tasks.push_back((id.into_owned(), Call { args: None, ..call.clone() }));
    }
}

impl GatewayClient {
    /// Calls one thing, and answers the client with what comes of it.
    pub(super) fn call_alone(&self, outer: &Rc<Outer>, call: Call) {
        let id = self.open_inner(outer, What::Alone(call.clone()));
        self.use_natively(outer, &id, &call, &outer.rest);
    }

    pub(super) fn open_part(&self, outer: &Rc<Outer>, batch: &Rc<Batch>, at: usize) -> Id {
        self.open_inner(outer, What::Part(Rc::clone(batch), at))
    }

    fn open_inner(&self, outer: &Rc<Outer>, what: What) -> Id {
        let inners = &self.inners;
        inners.last.set(inners.last.get() + 1);
        // No client could guess it, and have its own answers taken for others.
        let id = Id::Text(format!("{}:{}", self.gateway.key, inners.last.get()).into());
        inners.open.borrow_mut().insert(id.clone(), Inner { outer: Rc::clone(outer), what });
        id
    }

    /// Has the result of a task that the tool began be shaped as that of the tool. The request to send comes back.
    pub(crate) fn result_of_task(&self, message: &Message, sequence: u64) -> Option<Message> {
        let task = message.task_id()?;
        let call = {
            let tasks = self.inners.tasks.borrow();
            tasks.iter().find(|(known, _)| *known == task).map(|(_, call)| call.clone())?
        };
        let outer = Rc::new(Outer::of(message, mcp_wire::revision::Era::Legacy, sequence)?);
        let id = self.open_inner(&outer, What::Alone(call));
        Some(Message::new(with_id(message.bytes(), &id)))
    }

    /// Makes what answers one of our requests the answer to the client's. What is to be said comes back.
    pub(crate) fn shaped(&self, answer: Message) -> Option<Message> {
        if self.inners.is_empty() {
            return Some(answer);
        }
        let id = answer.id().filter(|_| answer.glance().kind.is_response());
        let inner = id.and_then(|id| self.inners.open.borrow_mut().remove(&id));
        let Some(Inner { outer, what }) = inner else { return Some(answer) };
        match what {
            What::GivenUp => None,
            What::Alone(call) => Some(self.answer_of(&outer, &call, &answer).into()),
            What::Part(batch, at) => {
                self.came_of(&batch, at, &answer);
                None
            }
        }
    }

    fn answer_of(&self, outer: &Outer, call: &Call, answer: &Message) -> Bytes {
        let bytes = answer.bytes();
        let Some(result) = scan::member_at(bytes, ["result"]).filter(|_| answer.glance().kind == Kind::Response) else {
            return reply::answer_with_error(&outer.id, &error_of(answer));
        };
        let result = &bytes[result.range()];
        self.inners.remember_task(result, call);
        reply::answer_with_result(&outer.id, &shape::call(call, result))
    }

    /// The client takes back a use of the tool. False if it is none.
    pub(crate) fn cancel_inner(&self, id: &Id, message: &Message, sequence: u64) -> bool {
        let ours: Vec<Id> = {
            let open = self.inners.open.borrow();
            open.iter().filter(|(_, inner)| inner.outer.id == *id).map(|(ours, _)| ours.clone()).collect()
        };
        for batch in self.inners.batches.borrow().iter().filter_map(Weak::upgrade).filter(|batch| batch.is_for(id)) {
            batch.give_up();
        }
        for ours in &ours {
            let was_sent =
                self.open_connections().iter().any(|connection| connection.cancel_for(self, ours, message, sequence));
            let mut open = self.inners.open.borrow_mut();
            if was_sent {
                open.remove(ours);
            } else if let Some(inner) = open.get_mut(ours) {
                inner.what = What::GivenUp;
            }
        }
        !ours.is_empty()
    }
}

/// The error that an answer says. Of what went wrong between us and the server, callers learn no more than that.
pub(crate) fn error_of(answer: &Message) -> Bytes {
    let bytes = reply::without_details(answer.bytes());
    let error = scan::member_at(&bytes, ["error"]).map(|span| bytes.slice(span.range()));
    error.unwrap_or_else(reply::internal_error)
}
