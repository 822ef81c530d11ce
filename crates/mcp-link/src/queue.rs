//! The queue of a client's messages for a server that takes each in an exchange of its own, and their order: calls run
//! side by side; a notification waits for the calls and notifications before it, and later messages wait for it; an answer
//! to the server never waits, because the server may need it to finish anything else.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use mcp_wire::{Id, Kind, Message, scan};
use tokio::sync::Notify;

use crate::Waiting;

/// Messages that wait for a server before the client waits.
const WAITING_MAX: usize = 256;
/// Calls, and answers, under way to a server at a time.
const ON_THEIR_WAY_MAX: usize = 256;

#[derive(Default)]
pub struct Queue {
    waiting: RefCell<VecDeque<Message>>,
    /// Those on their way, by what they are.
    calls: Cell<usize>,
    replies: Cell<usize>,
    told: Cell<usize>,
    room: Notify,
    more: Notify,
}

/// What a message is to those behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It asks for something.
    Call,
    /// It answers the server.
    Reply,
    /// The rest, and what begins a session.
    Told,
}

impl Class {
    pub fn of(message: &Message) -> Self {
        match message.glance().kind {
            Kind::Request if method_of(message) != b"\"initialize\"" => Self::Call,
            Kind::Batch if !asks(message).is_empty() => Self::Call,
            Kind::Response | Kind::Error => Self::Reply,
            _ => Self::Told,
        }
    }
}

impl Queue {
    /// Adds a message. One that takes back a call which has not left yet is done with it.
    pub fn push(&self, message: Message) {
        if message.cancelled_id().is_some_and(|id| self.withdraw(&id)) {
            return;
        }
        self.waiting.borrow_mut().push_back(message);
        self.more.notify_one();
    }

    /// The wait until more may be added; `None` if there is room.
    pub fn room(&self) -> Option<Waiting<'_>> {
        let is_full = || self.waiting.borrow().len() >= WAITING_MAX;
        is_full().then(|| {
            Box::pin(async move {
                while is_full() {
                    self.room.notified().await;
                }
            }) as Waiting<'_>
        })
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Waits until there is something to send.
    pub async fn something(&self) {
        while self.is_empty() {
            self.more.notified().await;
        }
    }

    /// The next message that need not wait, with the place it takes up. One task at a time asks.
    pub async fn next(self: &Rc<Self>) -> (Message, Place) {
        loop {
            if let Some(next) = self.take_next() {
                return next;
            }
            self.more.notified().await;
        }
    }

    fn take_next(self: &Rc<Self>) -> Option<(Message, Place)> {
        let mut waiting = self.waiting.borrow_mut();
        let may_go = |message: &Message| match Class::of(message) {
            Class::Call => self.told.get() == 0 && self.calls.get() < ON_THEIR_WAY_MAX,
            Class::Reply => self.replies.get() < ON_THEIR_WAY_MAX,
            Class::Told => self.told.get() == 0,
        };
        let first = waiting.iter().position(may_go)?;
        let message = waiting.remove(first)?;
        self.room.notify_waiters();
        let place = self.hold(Class::of(&message));
        Some((message, place))
    }

    /// Has others wait as they would for a message of this class.
    pub fn hold(self: &Rc<Self>, class: Class) -> Place {
        let count = self.count(class);
        count.set(count.get() + 1);
        Place { queue: Rc::clone(self), class }
    }

    fn count(&self, class: Class) -> &Cell<usize> {
        match class {
            Class::Call => &self.calls,
            Class::Reply => &self.replies,
            Class::Told => &self.told,
        }
    }

    fn withdraw(&self, id: &Id) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let is_it = |message: &Message| message.glance().kind == Kind::Request && message.id().as_ref() == Some(id);
        let found = waiting.iter().position(is_it);
        found.is_some_and(|at| waiting.remove(at).is_some())
    }

    /// The ids of calls that have not left yet.
    pub fn waiting_calls(&self) -> Vec<Id> {
        self.waiting.borrow().iter().flat_map(asks).collect()
    }

    pub fn clear(&self) {
        self.waiting.borrow_mut().clear();
        self.room.notify_waiters();
    }

    /// Whether everything that asks for no answer has arrived.
    pub fn has_told_all(&self) -> bool {
        self.is_empty() && self.told.get() == 0 && self.replies.get() == 0
    }
}

/// The place of a message that is on its way; when it is given up, the next may go.
pub struct Place {
    queue: Rc<Queue>,
    class: Class,
}

impl Place {
    pub fn class(&self) -> Class {
        self.class
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let count = self.queue.count(self.class);
        count.set(count.get() - 1);
        self.queue.more.notify_one();
    }
}

/// The method of a message, quotes included.
pub fn method_of(message: &Message) -> &[u8] {
    message.glance().method.map(|span| message.slice(span)).unwrap_or_default()
}

/// The ids that a message wants answers under.
pub fn asks(message: &Message) -> Vec<Id> {
    let id = |message: &Message| message.id().filter(|_| message.glance().kind == Kind::Request);
    match message.glance().kind {
        Kind::Batch => {
            let items = scan::batch_items(message.bytes());
            items.filter_map(|item| id(&Message::new(message.bytes().slice(item.range())))).collect()
        }
        _ => id(message).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    /// What may leave now, by id or method, and the places it takes up.
    fn leave(queue: &Rc<Queue>) -> Vec<(String, Place)> {
        std::iter::from_fn(|| queue.take_next())
            .map(|(message, place)| (String::from_utf8_lossy(message.bytes()).into_owned(), place))
            .collect()
    }

    fn names(left: &[(String, Place)]) -> Vec<&str> {
        left.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn queue(messages: &[&'static str]) -> Rc<Queue> {
        let queue = Rc::new(Queue::default());
        for message in messages {
            queue.push(Message::new(message.as_bytes().into()));
        }
        queue
    }

    const CALL: &str = r#"{"id":1,"method":"a"}"#;
    const BATCH: &str = r#"[{"id":2,"method":"a"},{"method":"n"}]"#;
    const OPENING: &str = r#"{"id":0,"method":"initialize"}"#;
    const TOLD: &str = r#"{"method":"n"}"#;
    const REPLY: &str = r#"{"id":1,"result":{}}"#;

    #[test]
    fn calls_wait_for_what_is_told_and_answers_for_nothing() {
        let queue = queue(&[OPENING, CALL, REPLY, TOLD, BATCH, CALL, "rubbish", CALL, REPLY]);
        let opening = leave(&queue);
        assert_eq!(names(&opening), [OPENING, REPLY, REPLY]);
        drop(opening);
        let told = leave(&queue);
        assert_eq!(names(&told), [CALL, TOLD], "a call in flight holds up nobody");
        drop(told);
        assert_eq!(names(&leave(&queue)), [BATCH, CALL, "rubbish"]);
        assert!(!queue.has_told_all());
        assert_eq!(names(&leave(&queue)), [CALL]);
        assert!(queue.has_told_all());
    }

    #[test]
    fn only_so_many_are_on_their_way() {
        let queue = queue(&[CALL; 300]);
        queue.push(Message::new(TOLD.as_bytes().into()));
        let left = leave(&queue);
        assert_eq!((left.len(), names(&left)[256]), (257, TOLD), "what is told need not wait for calls");
        assert!(queue.room().is_none());
        drop(left);
        assert_eq!(leave(&queue).len(), 44);
    }

    #[test]
    fn a_call_that_waits_can_be_taken_back() {
        const CANCEL: &str = r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#;
        let queue = queue(&[TOLD, CALL, BATCH]);
        let told = leave(&queue);
        assert_eq!(queue.waiting_calls(), [Id::Integer(1), Id::Integer(2)]);
        for _ in 0..2 {
            queue.push(Message::new(CANCEL.as_bytes().into()));
        }
        drop(told);
        assert_eq!(names(&leave(&queue)), [BATCH, CANCEL], "the second has nothing to take back here");
    }
}
