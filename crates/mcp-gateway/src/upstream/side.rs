//! A connection as the client side of its link: the gateway is the client of each of its servers.

use std::time::Duration;

use mcp_link::side::NOT_STARTED;
use mcp_link::{ClientSide, Link, Passed, UpstreamClient, Waiting};
use mcp_store::Transport;
use mcp_wire::Id;
use mcp_wire::reply::Refusal;
use tokio::time::timeout;

use super::{Caller, LOOK_AGAIN, Phase, UpstreamConnection};
use crate::lifecycle::Lost;
use crate::lifecycle::health::Failure;
use crate::router::ListKind;

impl ClientSide for UpstreamConnection {
    fn transport(&self) -> Transport {
        Transport::Stdio
    }

    fn deliver(&self, passed: Passed<'_>) {
        self.hear(&passed.message(), passed.sequence);
    }

    fn unread_bytes(&self) -> usize {
        0
    }

    /// The wait while the only client has not read what waits for it. With several, a slow one holds up no other. An
    /// introduction is always read.
    fn room(&self) -> Option<Waiting<'_>> {
        self.slow_client()?;
        Some(Box::pin(async {
            while let Some(link) = self.slow_client() {
                let _held_back = self.held_back.begin();
                // Another may come meanwhile.
                let _ = timeout(LOOK_AGAIN, link.client_room()).await;
            }
        }))
    }

    fn end(&self, link: &Link) {
        link.runtime.note(|pipeline| pipeline.end_leg(&link.conversation.borrow()));
        let is_current = self.link.borrow().as_ref().is_some_and(|current| std::ptr::eq(&**current, link));
        if !is_current {
            return;
        }
        self.link.take();
        if self.phase.get() == Phase::Opening && self.lost.get().is_none() {
            // The task that opens it hears of it, and may try another way.
            drop(self.calls.borrow_mut().drain());
            return;
        }
        self.is_lost();
    }

    fn upstream(&self) -> Option<&dyn UpstreamClient> {
        Some(self)
    }
}

impl UpstreamClient for UpstreamConnection {
    fn server(&self) -> &str {
        self.server.id()
    }

    fn take_about(&self, about: Option<&Id>, take: &mut dyn FnMut()) {
        self.about.set(match about {
            Some(Id::Integer(id)) => Some(*id),
            _ => None,
        });
        take();
        self.about.set(None);
    }

    fn died(&self, status: &str, last_words: &str) {
        self.server.said_last(last_words);
        if self.phase.get() == Phase::Opening {
            let why = match status {
                NOT_STARTED => "its program could not be started".into(),
                status => format!("it ended before it introduced itself: {status}"),
            };
            self.last_status.replace(Some(why));
        } else {
            let _ = self.lost.set(Lost::Died { status: status.to_owned() });
        }
    }

    fn reopened(&self) {
        self.note("the session was opened again");
        self.health.recovered();
        self.subscribe_anew();
        for kind in ListKind::ALL {
            self.list_changed(kind);
        }
    }

    /// The client may close its own stream in the same way, if it can ask for the rest.
    fn paused(&self, about: Option<&Id>, retry: Option<Duration>) {
        let Some(Id::Integer(id)) = about else { return };
        let whose = match self.calls.borrow().get(*id).map(|call| &call.caller) {
            Some(Caller::Client(call)) => call.client.upgrade().map(|client| (client, call.id.id())),
            _ => None,
        };
        if let Some((client, id)) = whose {
            client.pause(&id, retry);
        }
    }

    fn refused(&self, about: Option<&Id>, refusal: &Refusal) {
        if let Some(Id::Integer(id)) = about {
            self.health.is_refused(*id, Failure::from(refusal.clone()));
        }
    }
}

impl UpstreamConnection {
    /// The link of the only client, if that client is behind.
    fn slow_client(&self) -> Option<std::rc::Rc<Link>> {
        let only = match &self.clients.borrow()[..] {
            [only] if self.phase.get() != Phase::Opening => only.upgrade(),
            _ => None,
        };
        only.and_then(|only| only.link()).filter(|link| link.client_is_behind())
    }
}
