//! Which client's conversation a message between a gateway and one of its servers is for, as far as it says what
//! it was made of.

use std::collections::VecDeque;

use super::MessageKind;
use crate::recorded::{Direction, Recorded};

/// Messages of clients that are remembered. What is made of one follows it closely, unless it waits.
const CLIENTS_MAX: usize = 16_384;
/// Requests to servers without an answer that are remembered; the oldest goes first.
const OPEN_MAX: usize = 16_384;

#[derive(Debug, Default)]
pub(super) struct Callers {
    /// Of a client's message its sequence and conversation; of a request for one, the request's and the
    /// client's. Both in order.
    clients: VecDeque<(u64, u32)>,
    open: VecDeque<(u64, u32)>,
}

impl Callers {
    /// Takes note of a message. The conversation of the client comes back that it is for, if it is another.
    pub(super) fn hear(&mut self, recorded: &Recorded, kind: MessageKind, answers: Option<u64>) -> Option<u32> {
        if recorded.upstream.is_none() {
            if recorded.direction == Direction::ClientToServer && recorded.conversation != 0 {
                keep(&mut self.clients, CLIENTS_MAX, (recorded.sequence, recorded.conversation));
            }
            return None;
        }
        if let Some(request) = answers {
            let at = self.open.binary_search_by_key(&request, |(sequence, _)| *sequence).ok()?;
            return self.open.remove(at).map(|(_, caller)| caller);
        }
        let parent = recorded.parent?;
        let at = self.clients.binary_search_by_key(&parent, |(sequence, _)| *sequence).ok()?;
        let caller = self.clients[at].1;
        if kind == MessageKind::Request {
            keep(&mut self.open, OPEN_MAX, (recorded.sequence, caller));
        }
        Some(caller)
    }
}

/// Those that are told out of order are not found again.
fn keep(all: &mut VecDeque<(u64, u32)>, most: usize, (sequence, conversation): (u64, u32)) {
    if all.back().is_some_and(|(last, _)| *last >= sequence) {
        return;
    }
    if all.len() >= most {
        all.pop_front();
    }
    all.push_back((sequence, conversation));
}
