//! Which conversation an exchange of Streamable HTTP belongs to: the session that its server named,
//! or, where there are no sessions any more, the client that sent it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use foldhash::fast::RandomState;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use mcp_engine::Conversation;
use mcp_wire::revision::{self, Era};

use super::beats::Beat;
use super::exchange::Received;
use super::state::HttpState;

const SESSION_ID: HeaderName = HeaderName::from_static(revision::SESSION_HEADER);
/// Relayed conversations remembered. Past this the tenth that was silent longest is forgotten, which costs new
/// numbers in the recording.
const REMEMBERED: usize = 10_000;
/// A relayed conversation that was silent for this long is forgotten.
const IDLE_FOR: Duration = Duration::from_secs(30 * 60);
/// Bytes of the name of a client without a session.
const CLIENT_BYTES_MAX: usize = 1024;

#[derive(Default)]
pub struct Conversations {
    known: RefCell<HashMap<Box<[u8]>, Known, RandomState>>,
    /// Where the key of a request is put together.
    key: RefCell<Vec<u8>>,
}

struct Known {
    conversation: Rc<RefCell<Conversation>>,
    used: Beat,
}

impl Conversations {
    pub fn new_one(&self, state: &HttpState) -> Rc<RefCell<Conversation>> {
        Rc::new(RefCell::new(state.look(|pipeline| pipeline.begin_conversation())))
    }

    /// The conversation that a request belongs to.
    pub fn of_request(
        &self,
        state: &HttpState,
        peer: IpAddr,
        headers: &HeaderMap,
        era: Era,
        body: &Received,
    ) -> Rc<RefCell<Conversation>> {
        let key = &mut *self.key.borrow_mut();
        match (era, headers.get(&SESSION_ID)) {
            (Era::Legacy, Some(id)) => session_key(id.as_bytes(), key),
            // Whoever opens a session is known by it afterwards, if the server has sessions at all.
            (Era::Legacy, None) => {
                let agent = headers.get(header::USER_AGENT).map(HeaderValue::as_bytes).unwrap_or_default();
                client_key(b"l", peer, agent, key);
                if body.is_initialize() {
                    self.known.borrow_mut().remove(&**key);
                }
            }
            (Era::Modern, _) => client_key(b"m", peer, body.client_info(), key),
        }
        self.find(state, key)
    }

    /// The server gave a conversation a session id.
    pub fn bind(&self, state: &HttpState, session: &[u8], conversation: &Rc<RefCell<Conversation>>) {
        let mut known = self.known.borrow_mut();
        let key = &mut *self.key.borrow_mut();
        session_key(session, key);
        if !known.contains_key(&**key) {
            make_room(&mut known);
            known.insert(
                key.as_slice().into(),
                Known { conversation: Rc::clone(conversation), used: state.beats.now() },
            );
        }
    }

    /// Forgets the conversation of a session that has ended.
    pub fn end(&self, session: &[u8]) {
        let key = &mut *self.key.borrow_mut();
        session_key(session, key);
        if let Some(ended) = self.known.borrow_mut().remove(&**key) {
            ended.conversation.borrow().client_left();
        }
    }

    /// Whether no relayed conversation is known. A client that left without a word is, for a while.
    pub fn is_empty(&self) -> bool {
        self.known.borrow().is_empty()
    }

    /// Forgets conversations that are over.
    pub fn sweep(&self, state: &HttpState) {
        self.known.borrow_mut().retain(|_, known| state.beats.since(known.used) < IDLE_FOR);
    }

    fn find(&self, state: &HttpState, key: &[u8]) -> Rc<RefCell<Conversation>> {
        let mut known = self.known.borrow_mut();
        if let Some(known) = known.get_mut(key) {
            known.used = state.beats.now();
            return Rc::clone(&known.conversation);
        }
        make_room(&mut known);
        let conversation = self.new_one(state);
        known.insert(key.into(), Known { conversation: Rc::clone(&conversation), used: state.beats.now() });
        conversation
    }
}

fn make_room(known: &mut HashMap<Box<[u8]>, Known, RandomState>) {
    if known.len() < REMEMBERED {
        return;
    }
    // A tenth at once, so that a flood of new sessions does not search for each of them.
    let mut ages: Vec<Beat> = known.values().map(|known| known.used).collect();
    let (_, limit, _) = ages.select_nth_unstable(REMEMBERED / 10);
    let limit = *limit;
    known.retain(|_, known| known.used > limit);
}

fn session_key(id: &[u8], key: &mut Vec<u8>) {
    key.clear();
    key.push(b's');
    key.extend_from_slice(id);
}

fn client_key(era: &[u8], peer: IpAddr, client: &[u8], key: &mut Vec<u8>) {
    let address = match peer {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    key.clear();
    for part in [era, &address.octets()[..], &client[..client.len().min(CLIENT_BYTES_MAX)]] {
        key.extend_from_slice(part);
    }
}
