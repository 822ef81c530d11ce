//! Requests that came together: each goes its own way, and their answers leave together.

use bytes::Bytes;
use mcp_wire::{Id, Kind, Message, reply, scan};

use super::GatewayClient;

/// Requests that came together, and are answered so.
pub(crate) struct Batch {
    open: Vec<Id>,
    answers: Vec<Bytes>,
}

impl GatewayClient {
    /// Takes several messages at once, and keeps their answers until all of them are there. Over HTTP each is an
    /// event of its own.
    pub(crate) fn take_batch(&self, bytes: &Bytes, sequence: u64) {
        let items: Vec<Message> = scan::batch_items(bytes)
            .map(|item| Message::new(bytes.slice(item.range())))
            .filter(|item| item.glance().kind != Kind::Batch)
            .collect();
        let has_streams = self.link.upgrade().is_some_and(|link| link.client.exchanges().is_some());
        if !has_streams {
            let asked = items.iter().filter(|item| item.glance().kind == Kind::Request);
            let open: Vec<Id> = asked.filter_map(Message::id).collect();
            if !open.is_empty() {
                self.batches.borrow_mut().push(Batch { open, answers: Vec::new() });
            }
        }
        for item in items {
            self.take_message(&item, sequence);
        }
    }

    /// A request of a batch is answered no more; the others may all be.
    pub(crate) fn forget_in_batches(&self, id: &Id) {
        let done: Vec<Batch> = {
            let mut batches = self.batches.borrow_mut();
            batches.iter_mut().for_each(|batch| batch.open.retain(|open| open != id));
            let (done, open) = std::mem::take(&mut *batches).into_iter().partition(|batch| batch.open.is_empty());
            *batches = open;
            done
        };
        for batch in done.iter().filter(|batch| !batch.answers.is_empty()) {
            self.say(reply::batch(&batch.answers));
        }
    }

    /// Keeps an answer that belongs to a batch. What is to be said now comes back.
    pub(crate) fn joined(&self, answer: Message) -> Option<Message> {
        let mut batches = self.batches.borrow_mut();
        if batches.is_empty() {
            return Some(answer);
        }
        let id = answer.id().filter(|_| answer.glance().kind.is_response());
        let Some(id) = id else { return Some(answer) };
        let Some(at) = batches.iter().position(|batch| batch.open.contains(&id)) else { return Some(answer) };
        let batch = &mut batches[at];
        if let Some(open) = batch.open.iter().position(|open| *open == id) {
            batch.open.swap_remove(open);
        }
        batch.answers.push(answer.into_bytes());
        if !batch.open.is_empty() {
            return None;
        }
        Some(reply::batch(&batches.swap_remove(at).answers).into())
    }
}
