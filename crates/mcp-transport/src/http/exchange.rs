//! One HTTP exchange as the pipeline sees it: which conversation it belongs to, the message that
//! opened it, the messages that came back. Heads and messages are recorded as they pass.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming, SizeHint};
use hyper::header::{self, HeaderMap};
use hyper::{Method, StatusCode};
use mcp_engine::conversation::Renamed;
use mcp_engine::pipeline::{Injection, Outgoing};
use mcp_engine::{Asked, Conversation, ExchangeMark, Lane, Outbox, Release, Side};
use mcp_link::runtime::OpenCall;
use mcp_store::exchange::NO_MESSAGE;
use mcp_store::{HeadKey, Transport};
use mcp_wire::reply::Refusal;
use mcp_wire::revision::Era;
use mcp_wire::visible::visible_bytes;
use mcp_wire::{Kind, Message, scan};
use tokio::time::{Instant, Sleep, sleep};

use super::bodies::Held;
use super::body::{BodyError, poll_client_data};
use super::gate::{Refused, refused};
use super::heads;
use super::state::{HttpState, PlainHead};

/// A body up to this size leaves in one write with its head; a larger one passes as it arrives, except with strict
/// evidence.
const WAITED_FOR: usize = 256 * 1024;
/// The first allocation for a body, whatever length its head announces; then twice the bytes that came.
const FIRST_ROOM: usize = 64 * 1024;
/// Wait for the next piece of a body, and for all of it beyond the time that its bytes take at the slowest rate;
/// then the listener answers 408.
const BODY_FOR: Duration = Duration::from_secs(30);
/// Bytes a second of the slowest honest line; a slower body is held open on purpose.
const SLOWEST: u64 = 16 * 1024;

pub struct Exchange {
    pub state: Rc<HttpState>,
    pub conversation: Rc<RefCell<Conversation>>,
    pub number: u64,
    conversation_number: u32,
    /// The transport it belongs to.
    pub transport: Transport,
    pub era: Era,
    asked: RefCell<Option<Asked>>,
    /// The client asked for the tools, whose arguments headers may have to repeat.
    lists_tools: Cell<bool>,
    /// Counts while this exchange is about a message.
    call: RefCell<Option<OpenCall>>,
    /// How it ended, if not as it should.
    ended: RefCell<Cow<'static, str>>,
    status: Cell<StatusCode>,
    /// It is recorded as over already.
    is_over: Cell<bool>,
    /// Why the client's body could not be passed on to its end.
    refused: RefCell<Option<Refused>>,
    /// What opened it was refused by rules, and its client is told so at once.
    is_refused: Cell<bool>,
    /// Its client can be asked something before its message is answered.
    pub can_ask: Cell<bool>,
    /// What it is asked.
    question: RefCell<Option<Bytes>>,
}

impl Exchange {
    pub fn open(
        state: &Rc<HttpState>,
        conversation: Rc<RefCell<Conversation>>,
        transport: Transport,
        era: Era,
    ) -> Rc<Self> {
        let number = state.look(|pipeline| pipeline.journal.number_exchange());
        let conversation_number = conversation.borrow().number();
        Rc::new(Self {
            state: Rc::clone(state),
            conversation,
            number,
            conversation_number,
            transport,
            era,
            asked: RefCell::default(),
            lists_tools: Cell::default(),
            call: RefCell::default(),
            ended: RefCell::default(),
            status: Cell::default(),
            is_over: Cell::default(),
            refused: RefCell::default(),
            is_refused: Cell::default(),
            can_ask: Cell::default(),
            question: RefCell::default(),
        })
    }

    pub fn request_head(&self, method: &Method, target: &str, headers: &HeaderMap) {
        let key = || self.key_of(&[method.as_str(), target], headers);
        self.head(Side::Client, key, || heads::request_text(method.as_str(), target, headers), false);
    }

    pub fn response_head(&self, status: StatusCode, headers: &HeaderMap) {
        self.answer_head(status, headers, false);
    }

    /// The same, for an answer that is there whole, so that nothing more is to be known of the exchange.
    pub fn last_head(self: Rc<Self>, status: StatusCode, headers: &HeaderMap) {
        let is_over = Rc::strong_count(&self) == 1 && self.ended.borrow().is_empty();
        self.answer_head(status, headers, is_over);
        self.is_over.set(is_over);
    }

    fn answer_head(&self, status: StatusCode, headers: &HeaderMap, is_over: bool) {
        self.status.set(status);
        let key = || self.answer_key(status, headers);
        self.head(Side::Server, key, || heads::response_text(status, headers), is_over);
    }

    fn head(&self, from: Side, key: impl FnOnce() -> HeadKey, text: impl FnOnce() -> Vec<u8>, is_over: bool) {
        if self.state.look(|pipeline| pipeline.journal.keeps_exchanges()) {
            let key = key();
            self.state.note(|pipeline| pipeline.journal.exchange_head(&self.mark(from), key, text, is_over));
        }
    }

    fn answer_key(&self, status: StatusCode, headers: &HeaderMap) -> HeadKey {
        let key = || self.key_of(&[status.as_str()], headers);
        let Some(media_type) = headers.get(header::CONTENT_TYPE).filter(|_| headers.len() == 1) else { return key() };
        let mut known = self.state.plain_head.borrow_mut();
        match &*known {
            Some(known) if known.status == status && known.media_type == media_type => known.key,
            _ => known.insert(PlainHead { status, media_type: media_type.clone(), key: key() }).key,
        }
    }

    fn key_of(&self, start: &[&str], headers: &HeaderMap) -> HeadKey {
        heads::key(&self.state.hash_state, &mut self.state.scratch.borrow_mut(), start, headers)
    }

    fn mark(&self, from: Side) -> ExchangeMark {
        ExchangeMark { number: self.number, conversation: self.conversation_number, from, transport: self.transport }
    }

    /// Passes the message that a client's body held.
    pub fn from_client(&self, message: Bytes) -> Passed {
        let lane = self.lane(b"", None);
        let message = Message::new(message);
        if self.era == Era::Modern {
            let method = message.glance().method.map(|span| message.slice(span));
            self.lists_tools.set(method == Some(b"\"tools/list\""));
        }
        let conversation = &mut self.conversation.borrow_mut();
        let (asked, out) = self.state.pass(|pipeline, out| pipeline.pass_opening(conversation, lane, message, out));
        if let Some(asked) = asked.as_ref().filter(|_| !self.is_answered_here()) {
            // The answer may overtake the word that the message was taken.
            conversation.remember(asked.clone());
        }
        *self.asked.borrow_mut() = asked;
        *self.call.borrow_mut() = Some(self.state.open_call());
        self.is_refused.set(out.parked.first().is_some_and(|parked| parked.is_refused));
        *self.question.borrow_mut() = out.to_client.first().map(|question| question.frame().bytes.clone());
        Passed::of(&out, &out.to_server)
    }

    /// Refuses the message that a client's body held, for what stands beside it. What the client is told
    /// comes back.
    pub fn refuse_opening(&self, message: Bytes, refusal: &Refusal) -> Bytes {
        let (lane, conversation) = (self.lane(b"", None), &mut self.conversation.borrow_mut());
        self.state.pass(|pipeline, out| pipeline.refuse_opening(conversation, lane, message.into(), refusal, out)).0
    }

    /// Whether what opened this exchange was refused, and there is an answer that says so.
    pub fn is_refused(&self) -> bool {
        self.is_refused.get()
    }

    /// What the client is asked before its message goes on.
    pub fn take_question(&self) -> Option<Bytes> {
        self.question.take()
    }

    /// Passes a message that no client sent, which is to leave in this exchange.
    pub fn inject(&self, injection: Injection) -> Option<Bytes> {
        let conversation = &mut self.conversation.borrow_mut();
        // On the older transport the answer comes elsewhere, among those to the client.
        let lane =
            if self.is_answered_here() { self.lane(b"", None) } else { Lane { exchange: 0, ..self.lane(b"", None) } };
        let (asked, out) = self.state.pass(|pipeline, out| pipeline.pass_injected(conversation, lane, injection, out));
        *self.asked.borrow_mut() = asked.filter(|_| self.is_answered_here());
        out.to_server.first().map(|outgoing| outgoing.frame().bytes.clone())
    }

    /// Takes note of a message that goes nowhere.
    pub fn keep_from_client(&self, message: Bytes) {
        if let Passed::Parked(sequence) = self.from_client(message) {
            self.state.discard(sequence);
        }
    }

    /// Takes note of what became of the parked message that opened this exchange.
    pub fn settle(&self, release: &Release) {
        let conversation = &mut self.conversation.borrow_mut();
        if !self.is_answered_here() {
            return conversation.settle(release);
        }
        conversation.settle_items(release);
        let mut asked = self.asked.borrow_mut();
        let left = release.onward.as_ref().map(|outgoing| Message::new(outgoing.frame().bytes.clone()));
        match (&mut *asked, left.and_then(|left| left.id().filter(|_| left.glance().kind == Kind::Request))) {
            (Some(asked), Some(now)) if now != asked.id => {
                let known = std::mem::replace(&mut asked.id, now.clone());
                conversation.rename(Renamed { from: Side::Client, now, known, sequence: asked.sequence });
            }
            (_, Some(_)) => {}
            (asked, None) => *asked = None,
        }
    }

    /// Passes a message that came from the server within this exchange.
    pub fn from_server(&self, message: Bytes, event_id: &[u8]) -> Passed {
        self.from_server_since(message, event_id, None)
    }

    /// The same for a message that came before.
    pub fn from_server_since(&self, message: Bytes, event_id: &[u8], since: Option<Instant>) -> Passed {
        let asked = self.asked.borrow();
        let lane = self.lane(event_id, asked.as_ref().filter(|_| self.is_answered_here()));
        let lane = Lane { since, ..lane };
        let conversation = &mut self.conversation.borrow_mut();
        let ((), out) =
            self.state.pass(|pipeline, out| pipeline.pass_one(conversation, Side::Server, lane, message, out));
        let passed = Passed::of(&out, &out.to_client);
        if self.lists_tools.get()
            && let Passed::Onward(bytes) = &passed
        {
            self.state.tools.borrow_mut().learn(bytes);
        }
        // An answer that is parked has come as well.
        let answers = match out.to_client.first() {
            Some(judged) => judged.correlated(),
            None => out.parked.first().and_then(|parked| parked.correlated),
        };
        let is_answered = asked.as_ref().is_some_and(|asked| answers == Some(asked.sequence));
        drop(asked);
        if is_answered {
            self.asked.take();
        }
        passed
    }

    /// An event of the server was too large to hold; whoever waits for it is told.
    pub fn too_large(&self, (size, head, tail): (u64, &[u8], &[u8])) -> Option<Bytes> {
        let conversation = &mut self.conversation.borrow_mut();
        if let Some(asked) = self.asked.take().filter(|_| self.is_answered_here()) {
            conversation.remember(asked);
        }
        let ((), out) = self
            .state
            .pass(|pipeline, out| pipeline.refuse_too_large(conversation, Side::Server, (size, head, tail), out));
        out.to_client.first().map(|outgoing| outgoing.frame().bytes.clone())
    }

    /// Notes something that stands where a message should have been.
    pub fn note(&self, from: Side, text: &str) {
        self.state.note(|pipeline| pipeline.journal.note(&self.conversation.borrow(), from, text));
    }

    /// Composes the answer to the request of this exchange, if it was opened by one that waits.
    pub fn refuse(&self, refusal: &Refusal) -> Option<Bytes> {
        let asked = self.asked.take()?;
        let conversation = &mut self.conversation.borrow_mut();
        let ((), out) = self.state.pass(|pipeline, out| match self.is_answered_here() {
            true => pipeline.answer_asked(conversation, &asked, refusal, self.lane(b"", None), out),
            false => pipeline.answer_one(conversation, Side::Client, &asked.id, refusal, out),
        });
        out.to_client.first().map(|outgoing| outgoing.frame().bytes.clone())
    }

    /// Composes the answers to every call of the conversation that is open elsewhere than in an exchange of its own.
    pub fn refuse_all(&self, refusal: &Refusal) -> Vec<Bytes> {
        let conversation = &mut self.conversation.borrow_mut();
        let ((), out) =
            self.state.pass(|pipeline, out| pipeline.answer_pending(conversation, Side::Client, refusal, out));
        out.to_client.iter().map(|outgoing| outgoing.frame().bytes.clone()).collect()
    }

    /// Why the client's body could not be passed on to its end, if that is what went wrong.
    pub fn take_refused(&self) -> Option<Refused> {
        self.refused.take()
    }

    /// Whether messages must be whole, and may be held or changed, before anything of them leaves.
    pub fn looks_first(&self) -> bool {
        self.state.watches() || self.conversation.borrow().is_particular()
    }

    pub fn ended(&self, how: &'static str) {
        *self.ended.borrow_mut() = how.into();
    }

    /// Takes note of the beginning of a body that is no message. Beside a success that no message has to follow, such
    /// a body is dropped: some servers say `Accepted` with 202.
    pub fn no_message(&self, body: &[u8], is_awaited: bool) {
        let is_news = is_awaited || !self.status.get().is_success();
        if is_news && !body.is_empty() && self.ended.borrow().is_empty() {
            *self.ended.borrow_mut() = format!("{NO_MESSAGE}: {}", visible_bytes(body)).into();
        }
    }

    /// Whether it was answered with 202, beside which no message comes.
    pub fn is_accepted(&self) -> bool {
        self.status.get() == StatusCode::ACCEPTED
    }

    /// Whether a message is still to come within this exchange.
    pub fn awaits_message(&self) -> bool {
        self.is_answered_here() && self.awaits_answer()
    }

    pub fn awaits_answer(&self) -> bool {
        self.asked.borrow().is_some()
    }

    /// Whether the answer to what opened this exchange comes within it; on the older transport it
    /// comes on the stream of the connection.
    fn is_answered_here(&self) -> bool {
        self.transport != Transport::Sse
    }

    pub fn lane<'a>(&self, event_id: &'a [u8], asked: Option<&'a Asked>) -> Lane<'a> {
        let (transport, exchange, can_ask) = (self.transport, self.number, self.can_ask.get());
        Lane { transport, exchange, event_id, is_foretold: false, since: None, asked, can_ask, behalf: None }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(asked) = self.asked.take().filter(|_| self.is_answered_here()) {
            self.conversation.borrow_mut().remember(asked);
        }
        if self.is_over.get() {
            return;
        }
        let how = self.ended.take();
        self.state.note(|pipeline| pipeline.journal.exchange_end(&self.mark(Side::Server), &how));
    }
}

/// What became of a message.
pub enum Passed {
    Onward(Bytes),
    /// It is parked under this sequence.
    Parked(u64),
    /// It goes nowhere, because it takes back what was parked.
    Withheld,
    /// It must not go on unrecorded.
    NotRecorded,
}

impl Passed {
    fn of(out: &Outbox, onward: &[Outgoing]) -> Self {
        match (onward.first(), out.parked.first()) {
            (Some(outgoing), _) => Self::Onward(outgoing.frame().bytes.clone()),
            (None, Some(parked)) => Self::Parked(parked.sequence),
            (None, None) if out.withheld > 0 => Self::Withheld,
            (None, None) => Self::NotRecorded,
        }
    }
}

/// A client's body, as far as it is needed to begin.
pub enum Received {
    Whole(Bytes),
    Rest(Box<Upload>),
}

impl Received {
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    /// Whether it opens a session, as far as that can be told.
    pub fn is_initialize(&self) -> bool {
        let Self::Whole(bytes) = self else { return false };
        scan::glance(bytes).method.is_some_and(|span| bytes[span.range()] == *b"\"initialize\"")
    }

    /// What the client says it is, as far as that can be told.
    pub fn client_info(&self) -> &[u8] {
        let Self::Whole(bytes) = self else { return b"" };
        scan::member_anywhere(bytes, b"\"io.modelcontextprotocol/clientInfo\"").unwrap_or_default()
    }
}

/// Reads a client's body: all of it, or as much as is waited for.
pub async fn receive(mut body: Incoming, state: &HttpState) -> Result<Received, Refused> {
    let limit = state.message_bytes_max;
    let hint = body.size_hint();
    if hint.lower() > limit as u64 {
        return Err(too_large(limit));
    }
    // Most bodies are small, and came with their heads.
    let first = std::future::poll_fn(|cx| Poll::Ready(poll_client_data(&mut body, cx))).await;
    let first = match first {
        Poll::Ready(Some(Ok(first))) if body.is_end_stream() => return Ok(Received::Whole(first)),
        Poll::Ready(first) => first.map(|first| first.map_err(BodyFault::Broken)),
        Poll::Pending => None,
    };
    Box::pin(receive_more(body, first, hint, state)).await
}

async fn receive_more(
    body: Incoming,
    first: Option<Result<Bytes, BodyFault>>,
    hint: SizeHint,
    state: &HttpState,
) -> Result<Received, Refused> {
    let limit = state.message_bytes_max;
    let (seen, exchange, patience) = (Vec::new(), None, Patience::default());
    let held = state.bodies.begin();
    let mut upload = Upload { first: VecDeque::new(), rest: body, seen, held, hint, limit, exchange, patience };
    let first = match first {
        Some(first) => {
            upload.patience.came(first.as_ref().map_or(0, Bytes::len));
            first
        }
        None => match upload.next().await {
            Some(first) => first,
            None => return Ok(Received::Whole(Bytes::new())),
        },
    };
    let first = first.map_err(broken)?;
    if upload.rest.is_end_stream() {
        return Ok(Received::Whole(first));
    }
    let wait_for = if state.records_first || state.watches() { limit } else { WAITED_FOR.min(limit) };
    upload.keep(&first)?;
    upload.first.push_back(first);
    while upload.seen.len() <= wait_for {
        let Some(more) = upload.next().await else { return Ok(Received::Whole(upload.seen.into())) };
        let more = more.map_err(broken)?;
        upload.keep(&more)?;
        upload.first.push_back(more);
    }
    if upload.seen.len() > limit {
        return Err(too_large(limit));
    }
    Ok(Received::Rest(Box::new(upload)))
}

/// How much room a body gets of which `held` bytes are there: twice that, or as much as was announced where that is not
/// much more. What is only announced costs a client nothing, so it gets nothing for it.
fn room_for(held: usize, announced: Option<u64>, limit: usize) -> usize {
    let room = held.saturating_mul(2).max(FIRST_ROOM).min(limit.max(held));
    match announced.and_then(|announced| usize::try_from(announced).ok()) {
        Some(announced) if announced >= held && announced <= room.saturating_mul(2).min(limit) => announced,
        _ => room,
    }
}

fn broken(error: BodyFault) -> Refused {
    match error {
        BodyFault::Late => refused(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"),
        BodyFault::Broken(_) => refused(StatusCode::BAD_REQUEST, "the body broke off"),
    }
}

/// Why no more of a client's body comes.
#[derive(Debug, thiserror::Error)]
enum BodyFault {
    #[error("the client's body did not come in time")]
    Late,
    #[error("the client's body broke off")]
    Broken(#[source] hyper::Error),
}

pub fn too_large(limit: usize) -> Refused {
    Refused { status: StatusCode::PAYLOAD_TOO_LARGE, refusal: Refusal::TooLarge { limit } }
}

/// A large body on its way to a server.
pub struct Upload {
    first: VecDeque<Bytes>,
    rest: Incoming,
    seen: Vec<u8>,
    held: Held,
    hint: SizeHint,
    limit: usize,
    exchange: Option<Rc<Exchange>>,
    patience: Patience,
}

/// How long a client is waited for that owes us more of a body. A piece now and then does not keep it up: bytes do.
#[derive(Default)]
struct Patience {
    /// Of the body, so far.
    came: u64,
    /// In all. The time that a server takes to read is not the client's.
    waited: Duration,
    /// Since when, and for how long at most, while nothing comes.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Patience {
    fn came(&mut self, bytes: usize) {
        if let Some((since, _)) = self.waiting.take() {
            self.waited += since.elapsed();
        }
        self.came += bytes as u64;
    }

    /// Ready when it is at an end.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let left = self.left();
        let (_, end) = self.waiting.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(left))));
        end.as_mut().poll(cx)
    }

    /// How long nothing may come from now on.
    fn left(&self) -> Duration {
        let earned = Duration::from_millis(self.came.saturating_mul(1000) / SLOWEST);
        (BODY_FOR + earned).saturating_sub(self.waited).min(BODY_FOR)
    }
}

impl Upload {
    pub fn for_exchange(mut self: Box<Self>, exchange: &Rc<Exchange>) -> Box<Self> {
        self.exchange = Some(Rc::clone(exchange));
        self
    }

    /// All of it, for those who need it whole.
    pub async fn whole(mut self: Box<Self>) -> Result<Bytes, Refused> {
        loop {
            let Some(more) = self.next().await else { return Ok(self.seen.into()) };
            let more = more.map_err(broken)?;
            self.keep(&more)?;
            if self.seen.len() > self.limit {
                return Err(too_large(self.limit));
            }
        }
    }

    /// Keeps what came, and has room for no more than what may well come.
    fn keep(&mut self, data: &[u8]) -> Result<(), Refused> {
        let held = self.seen.len() + data.len();
        if held > self.seen.capacity() {
            let room = room_for(held, self.hint.upper(), self.limit);
            self.held.grow_to(room)?;
            self.seen.reserve_exact(room - self.seen.len());
        }
        self.seen.extend_from_slice(data);
        Ok(())
    }

    async fn next(&mut self) -> Option<Result<Bytes, BodyFault>> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyFault>>> {
        if let Poll::Ready(data) = poll_client_data(&mut self.rest, cx) {
            self.patience.came(data.as_ref().and_then(|data| data.as_ref().ok()).map_or(0, Bytes::len));
            return Poll::Ready(data.map(|data| data.map_err(BodyFault::Broken)));
        }
        ready!(self.patience.poll(cx));
        Poll::Ready(Some(Err(BodyFault::Late)))
    }

    pub fn size_hint(&self) -> SizeHint {
        self.hint
    }

    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        if let Some(first) = self.first.pop_front() {
            return Poll::Ready(Some(Ok(first)));
        }
        match ready!(self.poll_next(cx)) {
            Some(Ok(data)) => {
                if let Err(overloaded) = self.keep(&data) {
                    self.refuse(overloaded);
                    return Poll::Ready(Some(Err("there is no room for the message".into())));
                }
                if self.seen.len() > self.limit {
                    self.refuse(too_large(self.limit));
                    return Poll::Ready(Some(Err("the message is over the limit".into())));
                }
                // Where the length was said, nobody asks for more after the last byte.
                if self.rest.is_end_stream() {
                    self.complete();
                }
                Poll::Ready(Some(Ok(data)))
            }
            Some(Err(fault)) => {
                let text = fault.to_string();
                self.refuse(broken(fault));
                Poll::Ready(Some(Err(text.into())))
            }
            None => {
                self.complete();
                Poll::Ready(None)
            }
        }
    }

    fn refuse(&mut self, refused: Refused) {
        if let Some(exchange) = self.exchange.take() {
            exchange.refused.replace(Some(refused));
        }
    }

    /// The bytes leave as they come; what is still to be done is to know what they were.
    fn complete(&mut self) {
        if let Some(exchange) = self.exchange.take() {
            let _ = exchange.from_client(std::mem::take(&mut self.seen).into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;
    const LIMIT: usize = 64 * MIB;

    /// How much room a body has at last that comes in pieces, and how often it was moved for that.
    fn grown(announced: Option<usize>, piece: usize, pieces: usize) -> (usize, usize) {
        (1..=pieces).fold((0, 0), |(room, moves), count| match count * piece {
            held if held <= room => (room, moves),
            held => (room_for(held, announced.map(|announced| announced as u64), LIMIT), moves + 1),
        })
    }

    #[test]
    fn room_is_given_for_what_came_and_not_for_what_was_announced() {
        for announced in [None, Some(MIB), Some(LIMIT), Some(usize::MAX)] {
            assert_eq!(grown(announced, 10, 1), (FIRST_ROOM, 1), "{announced:?}");
        }
        assert_eq!(grown(Some(1000), 10, 1), (1000, 1));
        let (room, _) = grown(Some(LIMIT), 8 * 1024, 128);
        assert!(room <= 2 * MIB, "{room} bytes for one that is there");
    }

    #[test]
    fn a_body_that_was_announced_fits_in_the_end() {
        for length in [100_000, MIB, 10 * MIB, LIMIT] {
            let (room, moves) = grown(Some(length), 4000, length.div_ceil(4000) - 1);
            assert!(room == length && moves <= 11, "{length}: {room} bytes after {moves} moves");
        }
        // Of another nobody knows the end, but that the limit is one.
        assert_eq!(grown(None, 4000, LIMIT / 4000).0, LIMIT);
        assert_eq!(room_for(LIMIT + 1, None, LIMIT), LIMIT + 1);
        assert_eq!(room_for(2000, Some(1000), LIMIT), FIRST_ROOM);
    }
}
