//! The body of an answer on its way to the client, and how it is looked at.

use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::body::SizeHint;
use mcp_engine::{Release, Side};
use mcp_wire::Gather;
use mcp_wire::framing::sse::{SseCut, SseDeframer, SseEvent, encode_endpoint, encode_event};
use mcp_wire::reply::Refusal;
use mcp_wire::revision::Era;
use mcp_wire::visible::visible_bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::voice::Inbox;
use super::{Answer, Connection};
use crate::http::body::BodyError;
use crate::http::exchange::{Exchange, Passed};
use crate::http::resource::OwnResource;
use crate::http::site::{Registered, Site};
use crate::http::upstream::{ServerBody, Upstream};

/// Bytes quoted in the recording of a body that is no message.
const QUOTED: usize = 512;
/// Ends an event of which only the beginning has left, in the middle of a line or at its start. Clients ignore events of
/// other types than messages.
const CUT_OFF: &[u8] = b":\nevent: cut-off\n\n";
/// A larger description of the protected resource passes unchanged.
const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

/// An answer on its way to the client.
pub struct RelayBody {
    /// Gone once it has ended.
    body: Option<ServerBody>,
    tee: Tee,
    /// Looked at and ready to leave.
    ready: VecDeque<Bytes>,
    /// Nothing leaves before it was looked at.
    holds: bool,
    is_stream: bool,
    exchange: Rc<Exchange>,
    site: Rc<Site>,
    upstream: Rc<Upstream>,
    carries_on: bool,
    /// Events that are parked.
    aside: Vec<Aside>,
    /// Events that wait for one of those, because their ids say in which order they came.
    behind: VecDeque<(Instant, SseCut)>,
    has_ids: bool,
}

/// An event whose message is parked.
struct Aside {
    released: oneshot::Receiver<Release>,
    sequence: u64,
    event: SseEvent,
}

pub(super) enum Tee {
    Nothing,
    /// What says which resource the server protects.
    Document(OwnResource, BytesMut),
    /// A message.
    Json(BytesMut),
    /// A stream of messages.
    Events(Box<SseDeframer>),
    /// The stream of an SSE connection, which also says where messages go.
    Connection(Box<Stream>),
    /// Something else, such as the error page of a server in between.
    Text(BytesMut),
}

pub(super) struct Stream {
    deframer: SseDeframer,
    upstream: Rc<Upstream>,
    /// The connection as we announced it.
    registered: Option<Registered>,
    inbox: Rc<Inbox>,
}

impl RelayBody {
    pub(super) fn new(answer: &Answer, body: ServerBody, tee: Tee) -> Self {
        let is_stream = matches!(tee, Tee::Events(_) | Tee::Connection(_));
        let is_ours = matches!(tee, Tee::Connection(_) | Tee::Document(..));
        Self {
            body: Some(body),
            tee,
            ready: VecDeque::new(),
            holds: answer.site.state.records_first || is_ours || answer.exchange.looks_first(),
            is_stream,
            exchange: Rc::clone(&answer.exchange),
            site: Rc::clone(&answer.site),
            upstream: Rc::clone(&answer.upstream),
            carries_on: answer.carries_on,
            aside: Vec::new(),
            behind: VecDeque::new(),
            has_ids: false,
        }
    }

    /// Whether nothing leaves before it was looked at.
    pub(super) fn holds(&self) -> bool {
        self.holds
    }

    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        loop {
            if !self.aside.is_empty() {
                self.take_released(cx);
            }
            if let Some(ready) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(ready)));
            }
            if self.is_blocked() {
                return Poll::Pending;
            }
            if let Some((since, cut)) = self.behind.pop_front() {
                self.look_at(cut, since);
                continue;
            }
            if let Tee::Connection(stream) = &self.tee
                && let Some(own) = stream.inbox.poll(cx)
            {
                return Poll::Ready(Some(Ok(own)));
            }
            let Some(body) = &mut self.body else {
                return if self.aside.is_empty() { Poll::Ready(None) } else { Poll::Pending };
            };
            match ready!(body.poll_data(cx)) {
                Some(Ok(data)) => {
                    let is_end = body.is_end();
                    self.look(data, is_end);
                    if is_end {
                        self.finish();
                    }
                }
                Some(Err(error)) => {
                    self.exchange.ended("server broke off");
                    self.body = None;
                    // An answer of the proxy ends the stream as it should; else it breaks off as it came.
                    if !self.answer_for_server() {
                        return Poll::Ready(Some(Err(error.into())));
                    }
                }
                None => self.finish(),
            }
        }
    }

    /// Puts what is parked no more into `ready`.
    fn take_released(&mut self, cx: &mut Context<'_>) {
        let mut at = 0;
        while let Some(aside) = self.aside.get_mut(at) {
            match Pin::new(&mut aside.released).poll(cx) {
                Poll::Pending => at += 1,
                // The proxy is ending.
                Poll::Ready(Err(_)) => drop(self.aside.remove(at)),
                Poll::Ready(Ok(release)) => {
                    let event = self.aside.remove(at).event;
                    self.send_released(&event, &release);
                }
            }
        }
    }

    fn send_released(&mut self, event: &SseEvent, release: &Release) {
        match &release.onward {
            Some(outgoing) => self.ready.push_back(as_event(event, outgoing.frame().bytes)),
            // Its id still says how far the client has read.
            None if event.id.is_some() => self.ready.push_back(as_event(event, &Bytes::new())),
            None => {}
        }
        if let Some(answer) = &release.back {
            let message = answer.frame().bytes.clone();
            self.site.voices.answer(&self.upstream, &self.exchange, message);
        }
    }

    /// Whether the stream waits for a decision: what has an id is not overtaken.
    fn is_blocked(&self) -> bool {
        self.has_ids && !self.aside.is_empty()
    }

    /// Looks at what came, and puts what may leave into `ready`.
    fn look(&mut self, data: Bytes, is_end: bool) {
        if !self.holds
            && let Tee::Events(deframer) = &self.tee
            && deframer.is_between_events()
            && self.exchange.looks_first()
        {
            // From this event on.
            self.holds = true;
        }
        if !self.holds {
            self.ready.push_back(data.clone());
        }
        match &mut self.tee {
            Tee::Nothing => {
                if self.holds {
                    self.ready.push_back(data);
                }
            }
            Tee::Document(_, seen) => {
                seen.extend_from_slice(&data);
                if seen.len() > DOCUMENT_BYTES_MAX {
                    self.ready.push_back(seen.split().freeze());
                    self.tee = Tee::Nothing;
                }
            }
            Tee::Json(seen) if seen.is_empty() && is_end && data.len() <= self.site.state.message_bytes_max => {
                let passed = self.answer(data);
                self.let_out(passed);
            }
            Tee::Json(seen) => {
                // Past the limit it is passed on, but no longer kept.
                if seen.len() <= self.site.state.message_bytes_max {
                    seen.extend_from_slice(&data);
                }
            }
            Tee::Text(seen) => {
                let room = QUOTED.saturating_sub(seen.len());
                seen.extend_from_slice(&data[..data.len().min(room)]);
                if self.holds {
                    self.ready.push_back(data);
                }
            }
            Tee::Events(deframer) => {
                let mut cuts = Vec::new();
                deframer.push(&data, &mut cuts);
                if self.holds {
                    let now = Instant::now();
                    return self.behind.extend(cuts.into_iter().map(|cut| (now, cut)));
                }
                for cut in cuts {
                    match cut {
                        SseCut::TooLarge { size, .. } => {
                            let text = format!("an event of {size} bytes was passed on unrecorded");
                            self.exchange.note(Side::Server, &text);
                        }
                        SseCut::Event(event) => self.look_after(event),
                    }
                }
            }
            Tee::Connection(stream) => {
                let mut cuts = Vec::new();
                stream.deframer.push(&data, &mut cuts);
                let now = Instant::now();
                self.behind.extend(cuts.into_iter().map(|cut| (now, cut)));
            }
        }
    }

    /// Answers what a connection leaves open that broke or ended. False if no call waits for an answer here, if the
    /// client can ask for the rest, or if the beginning of the server's answer has left already.
    fn answer_for_server(&mut self) -> bool {
        let is_resumable = self.has_ids && self.exchange.era == Era::Legacy;
        let answers = match &mut self.tee {
            Tee::Events(_) if is_resumable => return false,
            Tee::Events(deframer) => {
                let Some(answer) = self.exchange.refuse(&Refusal::StreamLost) else { return false };
                let cut = deframer.finish();
                if !self.holds && cut.is_some() {
                    // What left of it becomes an event that no client reads.
                    self.ready.push_back(Bytes::from_static(CUT_OFF));
                }
                self.note_cut(cut.as_deref());
                vec![answer]
            }
            Tee::Connection(_) => self.exchange.refuse_all(&Refusal::StreamLost),
            Tee::Json(_) if self.holds => {
                let answer = self.exchange.refuse(&Refusal::StreamLost);
                let is_answered = answer.is_some();
                self.ready.extend(answer);
                return is_answered;
            }
            Tee::Nothing | Tee::Document(..) | Tee::Json(_) | Tee::Text(_) => return false,
        };
        for answer in &answers {
            let mut event = Gather::default();
            encode_event(None, answer, &mut event);
            self.ready.push_back(event.to_bytes());
        }
        !answers.is_empty()
    }

    /// Looks at an event that has left already.
    fn look_after(&mut self, event: SseEvent) {
        self.has_ids |= event.id.is_some();
        if let Some(data) = event.data.filter(|data| !data.is_empty())
            && let Passed::Parked(sequence) = self.exchange.from_server(data, event.id.as_deref().unwrap_or_default())
        {
            self.exchange.state.release_late(sequence);
        }
    }

    /// Looks at an event that leaves if it may.
    fn look_at(&mut self, cut: SseCut, since: Instant) {
        let event = match cut {
            SseCut::TooLarge { size, head, tail } => {
                if let Some(answer) = self.exchange.too_large((size, &head, &tail)) {
                    let mut out = Gather::default();
                    encode_event(None, &answer, &mut out);
                    self.ready.push_back(out.to_bytes());
                }
                return;
            }
            SseCut::Event(event) => event,
        };
        if let Tee::Connection(stream) = &mut self.tee
            && event.event.as_deref() == Some(b"endpoint")
        {
            let announced = stream.announce(&self.site, &self.exchange, &event);
            if announced.is_none() {
                // Without one the client would wait for ever.
                self.exchange.ended("no endpoint");
                self.body = None;
                self.behind.clear();
            }
            return self.ready.extend(announced);
        }
        self.has_ids |= event.id.is_some();
        let Some(data) = event.data.clone().filter(|data| !data.is_empty()) else {
            return self.ready.push_back(event.raw);
        };
        let event_id = event.id.as_deref().unwrap_or_default();
        match self.exchange.from_server_since(data.clone(), event_id, Some(since)) {
            Passed::Onward(bytes) if bytes == data => self.ready.push_back(event.raw),
            Passed::Onward(bytes) => self.ready.push_back(as_event(&event, &bytes)),
            Passed::Parked(sequence) => {
                let released = self.exchange.state.released(sequence);
                self.aside.push(Aside { released, sequence, event });
            }
            Passed::Withheld | Passed::NotRecorded => {}
        }
    }

    /// Passes the answer on; what must not pass unrecorded gives way to a refusal.
    fn answer(&self, message: Bytes) -> Option<Bytes> {
        if self.exchange.is_accepted() && !matches!(message.trim_ascii_start().first(), Some(b'{' | b'[')) {
            let is_awaited = self.exchange.awaits_message();
            self.exchange.no_message(&message[..message.len().min(QUOTED)], is_awaited);
            return Some(message);
        }
        match self.exchange.from_server(message.clone(), b"") {
            Passed::Onward(bytes) => Some(bytes),
            Passed::Parked(sequence) => {
                self.exchange.state.release_late(sequence);
                Some(message)
            }
            Passed::Withheld => None,
            Passed::NotRecorded => self.exchange.refuse(&Refusal::NotRecorded),
        }
    }

    fn let_out(&mut self, passed: Option<Bytes>) {
        if self.holds {
            self.ready.extend(passed);
        }
    }

    fn finish(&mut self) {
        self.body = None;
        match std::mem::replace(&mut self.tee, Tee::Nothing) {
            Tee::Nothing => {}
            Tee::Document(own, seen) => {
                let document = seen.freeze();
                let told = own.in_document(&document);
                if told.is_some() {
                    self.exchange.note(Side::Server, "the metadata was passed on with this proxy as the resource");
                }
                self.ready.push_back(told.unwrap_or(document));
            }
            Tee::Json(seen) if seen.is_empty() => {}
            Tee::Json(seen) if seen.len() > self.site.state.message_bytes_max && self.holds => {
                let limit = self.site.state.message_bytes_max;
                self.exchange.note(Side::Server, &format!("an answer of more than {limit} bytes was not passed on"));
                let refused = self.exchange.refuse(&Refusal::TooLarge { limit });
                self.let_out(refused);
            }
            Tee::Json(seen) if seen.len() > self.site.state.message_bytes_max => {
                let limit = self.site.state.message_bytes_max;
                let text = format!("an answer of more than {limit} bytes was passed on unrecorded");
                self.exchange.note(Side::Server, &text);
            }
            Tee::Json(seen) => {
                let passed = self.answer(seen.freeze());
                self.let_out(passed);
            }
            Tee::Text(seen) => {
                let is_awaited = self.exchange.awaits_message();
                self.exchange.no_message(&seen, is_awaited);
            }
            Tee::Events(mut deframer) => {
                let rest = deframer.finish();
                self.note_cut(rest.as_deref());
                self.let_out(rest);
            }
            Tee::Connection(mut stream) => {
                let cut = stream.deframer.finish();
                // It is still known by its endpoint until all of it was read.
                self.tee = Tee::Connection(stream);
                self.note_cut(cut.as_deref());
                if cut.is_some() {
                    self.answer_for_server();
                }
            }
        }
    }

    /// By the standard, an event that no blank line ended counts for nothing.
    fn note_cut(&self, rest: Option<&[u8]>) {
        if let Some(rest) = rest {
            let shown = visible_bytes(&rest[..rest.len().min(QUOTED)]);
            self.exchange.note(Side::Server, &format!("the stream ended in the middle of an event: {shown}"));
        }
    }

    pub fn is_end(&self) -> bool {
        self.body.is_none() && self.ready.is_empty() && self.behind.is_empty() && self.aside.is_empty()
    }

    pub fn size_hint(&self) -> SizeHint {
        match &self.body {
            Some(body) if !self.is_stream && !self.holds => body.size_hint(),
            _ => SizeHint::default(),
        }
    }

    /// Lets everything pass with nobody to take it.
    pub async fn drain(&mut self) {
        while let Some(Ok(_)) = std::future::poll_fn(|cx| self.poll_data(cx)).await {}
    }
}

impl Drop for RelayBody {
    fn drop(&mut self) {
        // Nobody is left for whom they could be kept.
        for aside in self.aside.drain(..) {
            self.exchange.state.discard(aside.sequence);
        }
        if self.body.is_none() {
            return;
        }
        self.exchange.ended("client left");
        if self.carries_on
            && let Some(place) = self.site.carried_on()
        {
            let mut relay = Self {
                body: self.body.take(),
                tee: std::mem::replace(&mut self.tee, Tee::Nothing),
                ready: VecDeque::new(),
                holds: self.holds,
                is_stream: self.is_stream,
                exchange: Rc::clone(&self.exchange),
                site: Rc::clone(&self.site),
                upstream: Rc::clone(&self.upstream),
                carries_on: false,
                aside: Vec::new(),
                behind: std::mem::take(&mut self.behind),
                has_ids: self.has_ids,
            };
            tokio::task::spawn_local(async move {
                let _place = place;
                relay.drain().await;
            });
        }
    }
}

/// An event like `event` that says `data` instead.
fn as_event(event: &SseEvent, data: &Bytes) -> Bytes {
    if event.data.as_ref() == Some(data) {
        return event.raw.clone();
    }
    let mut out = Gather::default();
    encode_event(event.id.as_deref(), data, &mut out);
    out.to_bytes()
}

impl Stream {
    pub(super) fn new(limit: usize, upstream: &Rc<Upstream>) -> Self {
        let (deframer, upstream) = (SseDeframer::new(limit), Rc::clone(upstream));
        Self { deframer, upstream, registered: None, inbox: Rc::default() }
    }

    /// Announces an endpoint of our own in place of the server's.
    fn announce(&mut self, site: &Rc<Site>, exchange: &Exchange, event: &SseEvent) -> Option<Bytes> {
        let named = String::from_utf8_lossy(event.data.as_deref().unwrap_or_default()).into_owned();
        let Some(endpoint) = self.upstream.target.resolve(&named) else {
            let named = visible_bytes(named.as_bytes()).to_string();
            exchange.note(Side::Server, &format!("the server names an endpoint on another origin: {named}"));
            return None;
        };
        let endpoint_named = endpoint.clone();
        let (conversation, inbox) = (Rc::clone(&exchange.conversation), Rc::clone(&self.inbox));
        let registered = site.register(Connection { conversation, endpoint, inbox })?;
        let mut out = Gather::default();
        encode_endpoint(&registered.path(), &mut out);
        site.voices.name_endpoint(exchange, &endpoint_named);
        self.registered = Some(registered);
        Some(out.to_bytes())
    }
}
