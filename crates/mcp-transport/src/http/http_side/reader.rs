//! Reads what a server of Streamable HTTP answers to a message: JSON or a stream of events, which is
//! asked for the rest where it breaks. Whatever comes instead of an answer becomes an error.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::StatusCode;
use hyper::http::response::Parts;
use mcp_engine::{Asked, Side};
use mcp_link::Link;
use mcp_link::queue::Place;
use mcp_store::Transport;
use mcp_wire::framing::sse::{SseCut, SseDeframer};
use mcp_wire::reply::Refusal;
use mcp_wire::revision::Era;
use mcp_wire::{Id, Kind, Message, scan, strict};
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, sleep, timeout};

use super::{HttpSide, Outcome, of_status, refuse};
use crate::http::exchange::Exchange;
use crate::http::heads::is_media_type;
use crate::http::upstream::ServerBody;

/// Pause before a broken stream is requested again, unless the server says otherwise; it doubles. A stream that
/// lasted longer did not fail.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The longest such pause, whatever the server says.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// Attempts in a row without an event; then the call fails, or the general stream is given up.
const RETRIES_MAX: u32 = 5;
/// Bytes quoted in the recording of a body that is no message.
const QUOTED: usize = 512;
/// Only a few answers above this size are read whole at a time.
const LARGE: usize = 256 * 1024;
/// A large answer that pauses for this long gives its place to another.
const SILENT_FOR: Duration = Duration::from_secs(1);

/// Where a stream broke, and how often it did.
#[derive(Default)]
pub struct Resume {
    last: Option<Bytes>,
    retry: Option<Duration>,
    failures: u32,
    came: bool,
}

impl Resume {
    /// The event to go on after.
    pub fn last(&self) -> Option<&[u8]> {
        self.last.as_deref()
    }

    pub fn pause(&mut self) -> Duration {
        self.failures += 1;
        let backoff = RETRY_AFTER.saturating_mul(1 << (self.failures - 1).min(6));
        self.retry.unwrap_or(backoff).min(RETRY_AFTER_MAX)
    }

    fn saw(&mut self, id: Option<Bytes>, retry: Option<u64>) {
        self.failures = 0;
        self.came = true;
        // An empty id says to begin anew.
        if let Some(id) = id {
            self.last = Some(id).filter(|id| !id.is_empty());
        }
        if let Some(retry) = retry {
            self.retry = Some(Duration::from_millis(retry));
        }
    }

    /// Servers and what stands before them close silent streams after a while, over and over.
    fn lasted(&mut self, since: Instant) {
        if since.elapsed() > RETRY_AFTER {
            self.failures = 0;
            self.came = true;
        }
    }

    /// Whether there was a stream at all.
    pub fn has_come(&self) -> bool {
        self.came
    }

    pub fn is_hopeless(&self) -> bool {
        self.failures > RETRIES_MAX
    }
}

/// Reads what came in an exchange.
pub(super) struct Reader<'a> {
    pub side: &'a Rc<HttpSide>,
    pub link: &'a Rc<Link>,
    pub exchange: &'a Rc<Exchange>,
    /// The method of the request, quotes included, and the ids whose answers are awaited here.
    pub method: &'a [u8],
    pub asked: &'a [Id],
    pub audience: &'a Audience,
}

/// Whom an answer is for.
pub(super) enum Audience {
    /// The client; others wait until it has come.
    Client(RefCell<Option<Place>>),
    /// Nobody else, who only want to know whether there was a good one.
    Ourselves(Opening),
}

/// A message of a client's opening that is sent once more.
#[derive(Default)]
pub(super) struct Opening {
    is_agreed: Cell<bool>,
    asked: RefCell<Option<Asked>>,
}

impl Audience {
    pub(super) fn is_satisfied(&self) -> bool {
        matches!(self, Self::Ourselves(opening) if opening.is_agreed.get())
    }

    /// Takes note of a message that is about to leave, unless that was done when it came. False if it
    /// must stay.
    pub(super) fn takes_note(&self, link: &Link, exchange: &Exchange, message: &Message) -> bool {
        let Self::Ourselves(opening) = self else { return true };
        let Some(sequence) = link.repeat_for_client(exchange.lane(b"", None), message) else { return false };
        *opening.asked.borrow_mut() = message.id().map(|id| Asked { id, sequence });
        true
    }
}

impl Reader<'_> {
    /// A body that is read to its end: one message, or something else.
    pub(super) async fn whole(&self, parts: &Parts, body: ServerBody) {
        let mut place = None;
        match self.read_whole(body, &mut place).await {
            Ok(bytes) => self.take_whole(parts, bytes).await,
            Err(refusal) => self.refuse(&refusal),
        }
    }

    /// A body that came with a status of failure. True if it says that the server does not know the session; nothing of
    /// it is passed on then.
    pub(super) async fn refused(&self, parts: &Parts, body: ServerBody, may_be_lost: bool) -> bool {
        let bytes = match self.read_whole(body, &mut None).await {
            Ok(bytes) => bytes,
            Err(refusal) => {
                self.refuse(&refusal);
                return false;
            }
        };
        let message = Message::new(bytes.clone());
        let is_of_request = message.id().is_some_and(|id| self.asked.contains(&id)) || names_request(&message);
        let is_of_session =
            may_be_lost && self.method != b"\"initialize\"" && !is_of_request && names_session(&message);
        match parts.status {
            StatusCode::BAD_REQUEST if is_of_session => {
                self.note_quoted(&bytes);
                self.exchange.ended("session lost");
                return true;
            }
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) if !is_of_request => {
                self.note_quoted(&bytes);
                self.refuse(&of_status(self.link, status));
            }
            status => {
                // Newer revisions have statuses for errors of a request.
                if let (Some(upstream), Era::Legacy) = (self.link.client.upstream(), self.exchange.era)
                    && !is_of_request
                {
                    upstream.refused(self.asked.first(), &of_status(self.link, status));
                }
                self.take_whole(parts, bytes).await;
            }
        }
        false
    }

    /// A large one waits for its place before it is read on, and keeps that until the client has it. A server that
    /// says no more meanwhile loses the place to others.
    async fn read_whole<'a>(
        &'a self,
        mut body: ServerBody,
        place: &mut Option<SemaphorePermit<'a>>,
    ) -> Result<Bytes, Refusal> {
        let limit = self.link.runtime.message_bytes_max;
        let mut seen = BytesMut::new();
        loop {
            let data = match place {
                None => body.data().await,
                Some(_) => match timeout(SILENT_FOR, body.data()).await {
                    Ok(data) => data,
                    Err(_) => {
                        *place = None;
                        body.data().await
                    }
                },
            };
            let Some(data) = data else { break };
            let Ok(data) = data else {
                self.exchange.ended("server broke off");
                return Err(Refusal::StreamLost);
            };
            if seen.is_empty() && body.is_end() && data.len() <= limit {
                return Ok(data);
            }
            if seen.len() + data.len() > limit {
                self.note("an answer is over the limit and was not passed on");
                return Err(Refusal::TooLarge { limit });
            }
            if place.is_none() && seen.len() + data.len() > LARGE {
                *place = self.link.large_answer().await;
                self.link.client_room().await;
            }
            seen.extend_from_slice(&data);
        }
        Ok(seen.freeze())
    }

    async fn take_whole(&self, parts: &Parts, bytes: Bytes) {
        let message = Message::new(bytes);
        let is_json = is_media_type(&parts.headers, "application/json");
        let instead = match parts.status.is_success() {
            true => Refusal::UpstreamGarbled { server: None, what: wrong_with(&message).filter(|_| is_json) },
            false => of_status(self.link, parts.status),
        };
        let is_message = is_json
            && matches!(
                message.glance().kind,
                Kind::Response | Kind::Error | Kind::Request | Kind::Notification | Kind::Batch
            )
            && is_closed(message.bytes());
        if is_message {
            self.link.client_room().await;
            // This exchange was for one call, so an error here is about that.
            let message = match self.asked {
                [asked] if message.glance().kind == Kind::Error && !parts.status.is_success() => message.with_id(asked),
                _ => message,
            };
            self.message(message, b"");
        } else {
            self.note_quoted(message.bytes());
        }
        self.refuse(&instead);
    }

    fn note_quoted(&self, body: &[u8]) {
        if !body.is_empty() {
            self.exchange.no_message(&body[..body.len().min(QUOTED)], !self.asked.is_empty());
        }
    }

    /// A stream that ends with the answer, or breaks before it and is asked for the rest.
    pub(super) async fn events(&self, era: Era, body: ServerBody) -> Outcome {
        let mut resume = Resume::default();
        self.read_events(body, &mut resume).await;
        loop {
            if !self.is_awaited() {
                return Outcome::Done;
            }
            if era == Era::Modern || resume.last.is_none() || resume.is_hopeless() {
                self.exchange.ended("server broke off");
                self.refuse(&Refusal::StreamLost);
                return Outcome::Failed;
            }
            if let Some(upstream) = self.link.client.upstream() {
                upstream.paused(self.asked.first(), resume.retry);
            }
            sleep(resume.pause()).await;
            let session = self.side.session();
            let (link, transport) = (self.link, Transport::StreamableHttp);
            let exchange = Exchange::open(&self.side.state, Rc::clone(&link.conversation), transport, era);
            match (self.side.ask_for_rest(&exchange, &resume).await, session) {
                (Ok((parts, rest)), _) if parts.status.is_success() => {
                    Reader { exchange: &exchange, ..*self }.read_events(rest, &mut resume).await;
                }
                (Ok((parts, _)), Some(session)) if parts.status == StatusCode::NOT_FOUND => {
                    return Outcome::SessionLost(session);
                }
                (Ok((parts, _)), _) if parts.status.is_client_error() => {
                    self.refuse(&Refusal::StreamLost);
                    return Outcome::Failed;
                }
                // It may be better in a while.
                _ => {}
            }
        }
    }

    pub(super) async fn read_events(&self, mut body: ServerBody, resume: &mut Resume) {
        let since = Instant::now();
        let mut deframer = SseDeframer::new(self.link.runtime.message_bytes_max);
        let mut cuts = Vec::new();
        loop {
            self.link.client_room().await;
            let Some(Ok(data)) = body.data().await else { break };
            deframer.push(&data, &mut cuts);
            for cut in cuts.drain(..) {
                match cut {
                    SseCut::Event(event) => {
                        resume.saw(event.id.clone(), event.retry);
                        let is_message = matches!(event.event.as_deref(), None | Some(b"" | b"message"));
                        if let Some(data) = event.data.filter(|data| is_message && !data.is_empty()) {
                            self.message(Message::new(data), event.id.as_deref().unwrap_or_default());
                        }
                    }
                    SseCut::TooLarge { size, head, tail } => self.link.from_server_too_large((size, &head, &tail)),
                }
            }
            if self.audience.is_satisfied() {
                return;
            }
        }
        resume.lasted(since);
    }

    /// Passes one message on.
    fn message(&self, mut message: Message, event_id: &[u8]) {
        if message.glance().kind.is_response()
            && let [asked] = self.asked
        {
            if message.is_error_without_id() {
                message = message.with_id(asked);
            }
            if let Some(better) = self.side.learn(self.method, self.exchange.era, message.bytes()) {
                self.note("tools whose header annotations are not allowed were left out");
                message = Message::new(better);
            }
        }
        match self.audience {
            Audience::Ourselves(opening) if message.glance().kind.is_response() => {
                let asked = opening.asked.borrow();
                self.link.keep_from_client(self.exchange.lane(event_id, asked.as_ref()), message.bytes().clone());
                opening.is_agreed.set(message.glance().kind == Kind::Response);
            }
            audience => {
                let lane = self.exchange.lane(event_id, None);
                self.link.from_server(lane, self.asked.first(), message.bytes().clone());
                if let Audience::Client(barrier) = audience
                    && !self.is_awaited()
                {
                    barrier.take();
                }
            }
        }
    }

    fn is_awaited(&self) -> bool {
        let conversation = self.link.conversation.borrow();
        self.is_for_client() && self.asked.iter().any(|asked| conversation.awaits(Side::Client, asked))
    }

    fn is_for_client(&self) -> bool {
        matches!(self.audience, Audience::Client(_))
    }

    fn refuse(&self, refusal: &Refusal) {
        if self.is_for_client() {
            refuse(self.link, self.asked, refusal);
        }
    }

    fn note(&self, text: &str) {
        self.link.note(Side::Server, text);
    }
}

/// The fault of a body that stands for an answer.
fn wrong_with(message: &Message) -> Option<String> {
    let unfit = strict::check_answer(message).err()?;
    (!message.bytes().is_empty()).then(|| unfit.to_string())
}

/// Whether the code of an error is about the request that it answers, whatever its id.
fn names_request(message: &Message) -> bool {
    const CODES: [&[u8]; 3] = [b"-32700", b"-32601", b"-32602"];
    let code = scan::member_at(message.bytes(), ["error", "code"]);
    code.is_some_and(|span| CODES.contains(&message.slice(span)))
}

/// Whether what came with status 400 is about the session: servers say so in words only.
fn names_session(message: &Message) -> bool {
    let said = scan::member_at(message.bytes(), ["error", "message"]).map(|span| message.slice(span));
    let said = match said.and_then(scan::decode_string) {
        Some(said) => said.to_ascii_lowercase(),
        None => String::from_utf8_lossy(&message.bytes()[..message.bytes().len().min(QUOTED)]).to_ascii_lowercase(),
    };
    said.contains("session") || said.contains("not initialized")
}

/// Whether a message ends as one does. What a server says in between is for its client to judge.
fn is_closed(message: &[u8]) -> bool {
    matches!(message.trim_ascii_end().last(), Some(b'}' | b']'))
}
