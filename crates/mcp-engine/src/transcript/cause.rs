//! Why a server said something by itself. Few messages tell: progress names its call, and over HTTP
//! the exchange does. The rest is taken to follow from what the client said last.

use std::collections::HashMap;

use mcp_wire::{Id, Kind};

use super::Line;
use crate::envelope::Side;

/// A subscription stays open while other calls come and go; what it reports is due to those.
const LISTEN: &str = "subscriptions/listen";

#[derive(Default)]
pub(super) struct Causes {
    by_token: HashMap<Id, usize>,
    by_exchange: HashMap<u64, usize>,
    last: Option<usize>,
}

impl Causes {
    /// Takes note of the line at `at`, or finds its cause.
    pub(super) fn of(&mut self, line: &Line, at: usize) -> Option<usize> {
        if line.is_answer() {
            return None;
        }
        if line.from == Side::Server {
            return self.find(line);
        }
        self.last = Some(at);
        if line.message.kind() == Kind::Request {
            if let Some(token) = line.message.progress_token() {
                self.by_token.insert(token, at);
            }
            if let Some(exchange) = line.exchange.filter(|_| line.method() != LISTEN) {
                self.by_exchange.insert(exchange, at);
            }
        }
        None
    }

    fn find(&self, line: &Line) -> Option<usize> {
        let is_progress = line.method() == "notifications/progress";
        let token = line.message.progress_token().filter(|_| is_progress);
        let by_token = token.and_then(|token| self.by_token.get(&token));
        let by_exchange = || line.exchange.and_then(|exchange| self.by_exchange.get(&exchange));
        by_token.or_else(by_exchange).copied().or(self.last)
    }
}
