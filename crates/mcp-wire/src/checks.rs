//! What must hold for any bytes whatever. The fuzz targets and the property tests both call these,
//! so a crash found by one can be replayed by the other.

mod readers;

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::framing::sse::{self, SseCut, SseDeframer, SseEvent};
use crate::framing::{self, Cut, Deframer, Ending, Frame, Framing};
use crate::gather::Gather;
use crate::id::Id;
use crate::message::Message;
use crate::reply::{self, Denied};
use crate::scan::{self, Glance, Kind, Peek, Span};
use crate::splice::splice;
use crate::strict::{self, JudgedKeys};
pub use readers::{Document, Reader};

/// The scanner agrees with a full parser, or says that it will not judge.
pub fn scan_agrees_with_parser(bytes: &[u8]) {
    let peek = scan::careful(bytes);
    assert!(scan::quick(bytes).is_none_or(|quick| quick == peek), "the quick scan says otherwise");
    // Whatever it says of bytes that are no message, it says it.
    let _ = scan::glance(bytes);
    let parsed = serde_json::from_slice::<&RawValue>(bytes);
    if parsed.is_err() {
        assert!(peek.is_opaque(), "the parser refuses what the scanner took for {:?}", peek.kind);
        return;
    }
    assert_ne!(peek.kind, Kind::NotJson, "the parser takes what the scanner refused");
    if peek.is_opaque() {
        return;
    }
    assert_eq!(scan::glance(bytes), Glance::from(&peek), "a glance says otherwise");
    let Ok(envelope) = serde_json::from_slice::<Members<'_>>(bytes) else {
        assert!(!matches!(peek.kind, Kind::Request | Kind::Notification | Kind::Response) || bytes.contains(&b'\\'));
        return;
    };
    compare_envelope(bytes, &peek, &envelope);
}

fn compare_envelope(bytes: &[u8], peek: &Peek, envelope: &Members<'_>) {
    let found = |span: Option<Span>| span.map(|span| std::str::from_utf8(&bytes[span.range()]).expect("it is JSON"));
    let params = envelope.object("params");
    let meta = params.as_ref().and_then(|params| params.object("_meta"));
    let get =
        |members: &Option<Members<'_>>, key| members.as_ref().and_then(|members| members.get(key)).map(str::to_owned);
    assert_eq!(found(peek.id), envelope.get("id"));
    assert_eq!(found(peek.method), envelope.get("method"));
    assert_eq!(found(peek.name), get(&params, "name").as_deref());
    assert_eq!(found(peek.uri), get(&params, "uri").as_deref());
    assert_eq!(found(peek.request_id), get(&params, "requestId").as_deref());
    assert_eq!(found(peek.task_id), get(&params, "taskId").as_deref());
    assert_eq!(found(peek.protocol_version), get(&meta, "io.modelcontextprotocol/protocolVersion").as_deref());
    assert_eq!(found(peek.subscription_id), get(&meta, "io.modelcontextprotocol/subscriptionId").as_deref());
    let tokens = [get(&params, "progressToken"), get(&meta, "progressToken")];
    assert_eq!(peek.progress_token.is_some(), tokens.iter().any(Option::is_some));
    assert!(peek.progress_token.is_none() || tokens.iter().any(|token| token.as_deref() == found(peek.progress_token)));
    let has_method = envelope.get("method").is_some_and(|method| method.starts_with('"'));
    let expected = match (has_method, envelope.get("id").is_some()) {
        (true, true) => Kind::Request,
        (true, false) => Kind::Notification,
        (false, true) if envelope.get("result").is_some() => Kind::Response,
        (false, _) if envelope.get("error").is_some() => Kind::Error,
        _ => Kind::OtherJson,
    };
    assert_eq!(peek.kind, expected);
}

/// A message that passes for unambiguous says the same to every reader, and what rules go by is what
/// each of them reads. Tells whether it passes.
pub fn judged_is_what_anybody_reads(bytes: &[u8], keys: &[&str]) -> bool {
    let message = Message::new(Bytes::copy_from_slice(bytes));
    if strict::check(&message, &JudgedKeys::new(keys.iter().copied())).is_err() {
        return false;
    }
    let document = Document::parse(bytes).expect("a full parser takes what was let through");
    let plain = Reader::FirstWins.read(&document).in_lower_case();
    for reader in Reader::ALL {
        assert_eq!(reader.read(&document).in_lower_case(), plain, "{reader:?} reads something else");
        let judged = |span: Option<Span>| span.map(|span| Document::parse(message.slice(span)).expect("it is JSON"));
        let peek = message.peek();
        for (path, span) in [
            (&["method"][..], peek.method),
            (&["id"], peek.id),
            (&["params", "name"], peek.name),
            (&["params", "uri"], peek.uri),
            (&["params", "taskId"], peek.task_id),
        ] {
            let is_message_part = path.len() == 1 || message.method().is_some();
            assert!(!is_message_part || reader.get(&document, path) == judged(span), "{reader:?} at {path:?}");
        }
        for key in keys {
            assert_eq!(reader.all(&document, key), Reader::FirstWins.all(&document, key), "{reader:?} for {key}");
        }
    }
    true
}

/// Every reply composed for these bytes, as an id or as a message, is JSON to a full parser and a message to a scan.
pub fn replies_are_json(bytes: &[u8]) {
    let message = Message::new(Bytes::copy_from_slice(bytes));
    let in_message = [b"{\"jsonrpc\":\"2.0\",\"id\":", bytes, b",\"method\":\"ping\"}"].concat();
    let ids = [
        Some(Id::from_json(bytes)),
        message.id(),
        message.cancelled_id(),
        message.progress_token(),
        scan::salvage(bytes, bytes).map(|found| Id::from_json(found.id)),
        Message::new(in_message.into()).id(),
    ];
    let text = String::from_utf8_lossy(bytes);
    for id in ids.into_iter().flatten() {
        for reply in replies(&id, &text) {
            let parsed = serde_json::from_slice::<serde_json::Value>(&reply);
            assert!(parsed.is_ok(), "{parsed:?}: {}", String::from_utf8_lossy(&reply));
            assert!(!scan::scan(&reply).is_opaque(), "{}", String::from_utf8_lossy(&reply));
        }
    }
}

/// What can be said of a request `id`, with `text` as the words of others in it.
fn replies(id: &Id, text: &str) -> Vec<Bytes> {
    let some = Some(text);
    let denied =
        Denied { rule: some, message: some, why: some, server: some, tool: some, operation: some, audit_id: some };
    let mut replies: Vec<Bytes> = reply::refusals(text).iter().map(|refusal| reply::error(id, refusal)).collect();
    replies.extend(["tools/call", "prompts/get", "resources/read", "tasks/get"].map(|of| reply::unknown(id, of, text)));
    replies.extend([
        reply::denied(id, &denied),
        reply::denied_as_result(id, &denied, true),
        reply::unsupported_version(id, text, &["2026-07-28"]),
        reply::empty_result(id),
        reply::failed_inside(id, text),
        reply::cancellation_because(id, text),
    ]);
    replies.push(reply::batch(&replies));
    replies
}

/// A splice changes one span and nothing else.
pub fn splice_changes_one_span(bytes: &[u8], replacement: &[u8]) {
    let peek = scan::scan(bytes);
    let Peek { id, method, name, uri, task_id, progress_token, protocol_version, subscription_id, .. } = peek;
    let spans = [id, method, name, uri, task_id, progress_token, protocol_version, subscription_id];
    for span in spans.into_iter().flatten() {
        let range = span.range();
        let spliced = splice(bytes, span, replacement);
        assert_eq!(&spliced[..range.start], &bytes[..range.start]);
        assert_eq!(&spliced[range.start..range.start + replacement.len()], replacement);
        assert_eq!(&spliced[range.start + replacement.len()..], &bytes[range.end..]);
    }
}

/// Cutting does not depend on how the bytes arrive, and loses none of them.
pub fn lines_survive_any_reads(stream: &[u8], chunk: usize, limit: usize) {
    let whole = cut_stream(stream, stream.len().max(1), limit);
    let pieces = cut_stream(stream, chunk.max(1), limit);
    assert_eq!(whole.1, pieces.1, "the framing found depends on the reads");
    if whole.1 == Some(Framing::ContentLength) {
        return;
    }
    assert_eq!(sizes(&whole.0), sizes(&pieces.0), "the cuts depend on the reads");
    if whole.0.iter().all(|cut| matches!(cut, Cut::Frame(_))) {
        assert_eq!(encode_all(&whole.0, Framing::Line), stream, "bytes were lost or changed");
    }
}

/// Messages that are framed with their length come back as they went in, however the bytes arrive,
/// and garbage before a message costs at most that garbage.
pub fn counted_messages_survive_any_reads(messages: &[Vec<u8>], chunk: usize) {
    let frames: Vec<Cut> =
        messages.iter().map(|bytes| Cut::Frame(Frame::composed(Bytes::copy_from_slice(bytes)))).collect();
    let stream = encode_all(&frames, Framing::ContentLength);
    let (cuts, _) = cut_stream(&stream, chunk.max(1), framing::MESSAGE_BYTES_MAX);
    assert_eq!(cuts, frames);
}

/// No stream whatever makes the deframer fail, hang or hold more than its limit.
pub fn any_stream_is_survived(stream: &[u8], chunk: usize, limit: usize) {
    let (cuts, _) = cut_stream(stream, chunk.max(1), limit);
    let held: usize = sizes(&cuts).iter().map(|(_, size)| *size as usize).sum();
    assert!(held <= stream.len(), "more came out than went in");
}

/// Events are those of a plain reading of the standard, however the bytes arrive, and no byte of
/// them is lost.
pub fn events_survive_any_reads(stream: &[u8], chunks: &[u8], limit: usize) {
    let (cuts, rest) = cut_events(stream, chunks, limit);
    let (expected, unended) = read_events(stream, limit);
    assert_eq!(cuts.iter().map(reading).collect::<Vec<_>>(), expected, "the events depend on the reads");
    assert_eq!(rest.is_some(), unended != Unended::Nothing, "what was left unended is told");
    let mut raw = Vec::new();
    for cut in &cuts {
        let SseCut::Event(event) = cut else { return };
        raw.extend_from_slice(&event.raw);
    }
    match (unended, rest) {
        (Unended::Event, Some(rest)) => assert_eq!([&raw[..], &rest].concat(), stream, "bytes were lost or changed"),
        _ => assert_eq!(raw, &stream[..raw.len()], "bytes were lost or changed"),
    }
}

/// Data that is written as an event is read back, save that every line break is an LF.
pub fn events_carry_any_data(data: &[u8], chunks: &[u8]) {
    let mut gather = Gather::default();
    sse::encode_event(Some(b"7"), &Bytes::copy_from_slice(data), &mut gather);
    let (cuts, rest) = cut_events(&drain(&mut gather), chunks, usize::MAX);
    let [SseCut::Event(SseEvent { data: Some(read), id: Some(id), event: Some(event), .. })] = &cuts[..] else {
        panic!("not one event: {cuts:?}");
    };
    assert_eq!((&id[..], &event[..], rest), (&b"7"[..], &b"message"[..], None));
    assert_eq!(read, &lf_only(data));
}

fn cut_events(stream: &[u8], chunks: &[u8], limit: usize) -> (Vec<SseCut>, Option<Bytes>) {
    let mut deframer = SseDeframer::new(limit);
    let mut cuts = Vec::new();
    let mut sizes = chunks.iter().map(|&size| usize::from(size).max(1)).cycle();
    let mut rest = stream;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(sizes.next().unwrap_or(rest.len()).min(rest.len()));
        deframer.push(&Bytes::copy_from_slice(piece), &mut cuts);
        rest = after;
    }
    (cuts, deframer.finish())
}

/// What an event says, without its bytes; of an oversize one, what is kept of it.
#[derive(Debug, PartialEq)]
enum Reading {
    Event { data: Option<Vec<u8>>, id: Option<Vec<u8>>, event: Option<Vec<u8>>, retry: Option<u64> },
    TooLarge { size: u64, head: Vec<u8>, tail: Vec<u8> },
}

fn reading(cut: &SseCut) -> Reading {
    let copy = |bytes: &Option<Bytes>| bytes.as_ref().map(|bytes| bytes.to_vec());
    match cut {
        SseCut::Event(event) => Reading::Event {
            data: copy(&event.data),
            id: copy(&event.id),
            event: copy(&event.event),
            retry: event.retry,
        },
        SseCut::TooLarge { size, head, tail } => {
            Reading::TooLarge { size: *size, head: head.to_vec(), tail: tail.to_vec() }
        }
    }
}

/// What a stream ends with after its last blank line.
#[derive(Debug, PartialEq)]
enum Unended {
    /// Or comments alone.
    Nothing,
    Event,
    TooLarge,
}

/// Reads a stream the slow way, as the standard describes it.
fn read_events(stream: &[u8], limit: usize) -> (Vec<Reading>, Unended) {
    let stream = lf_only(stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream));
    let mut lines: Vec<&[u8]> = stream.split(|&byte| byte == b'\n').collect();
    let unended_line = lines.pop().unwrap_or_default();
    let mut blocks: Vec<&[&[u8]]> = lines.split(|line| line.is_empty()).collect();
    let unended_block = blocks.pop().unwrap_or_default();
    let rest: Vec<&[u8]> =
        unended_block.iter().copied().chain([unended_line]).filter(|line| !line.is_empty()).collect();
    let unended = match () {
        () if size(&rest) > limit => Unended::TooLarge,
        () if rest.iter().any(|line| line[0] != b':') => Unended::Event,
        () => Unended::Nothing,
    };
    (blocks.into_iter().map(|block| read_block(block, limit)).collect(), unended)
}

fn size(lines: &[&[u8]]) -> usize {
    lines.iter().map(|line| line.len() + 1).sum()
}

fn read_block(block: &[&[u8]], limit: usize) -> Reading {
    let (mut data, mut id, mut event, mut retry) = (None::<Vec<u8>>, None, None, None);
    for line in block {
        let colon = line.iter().position(|&byte| byte == b':');
        let value = colon.map_or(&b""[..], |colon| &line[colon + 1..]);
        let value = value.strip_prefix(b" ").unwrap_or(value).to_vec();
        match &line[..colon.unwrap_or(line.len())] {
            b"data" => data = Some(data.map_or(value.clone(), |data| [data, value].join(&b'\n'))),
            b"event" => event = Some(value),
            b"id" if !value.contains(&0) => id = Some(value),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                retry = String::from_utf8_lossy(&value).parse().ok().or(retry);
            }
            _ => {}
        }
    }
    if size(block) <= limit {
        return Reading::Event { data, id, event, retry };
    }
    let data = data.unwrap_or_default();
    let head = data[..data.len().min(framing::HEAD_KEPT)].to_vec();
    let tail = data[data.len().saturating_sub(framing::TAIL_KEPT)..].to_vec();
    Reading::TooLarge { size: size(block) as u64, head, tail }
}

fn lf_only(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' if at > 0 && bytes[at - 1] == b'\r' => {}
            b'\r' => out.push(b'\n'),
            byte => out.push(byte),
        }
    }
    out
}

fn cut_stream(stream: &[u8], chunk: usize, limit: usize) -> (Vec<Cut>, Option<Framing>) {
    let mut deframer = Deframer::new(limit);
    let mut cuts = Vec::new();
    for piece in stream.chunks(chunk) {
        deframer.buffer().extend_from_slice(piece);
        deframer.cut(&mut cuts);
    }
    deframer.finish(&mut cuts);
    (cuts, deframer.framing())
}

fn sizes(cuts: &[Cut]) -> Vec<(Option<Ending>, u64)> {
    cuts.iter()
        .map(|cut| match cut {
            Cut::Frame(frame) => (Some(frame.ending), frame.bytes.len() as u64),
            Cut::TooLarge { size, .. } => (None, *size),
            Cut::Unframed { sample } => (None, sample.len() as u64),
        })
        .collect()
}

fn encode_all(cuts: &[Cut], framing: Framing) -> Vec<u8> {
    let mut gather = Gather::default();
    let mut stream = Vec::new();
    for cut in cuts {
        let Cut::Frame(frame) = cut else { continue };
        framing::encode(frame.into(), framing, b"\n", &mut gather);
        stream.extend(drain(&mut gather));
    }
    stream
}

/// All that waits to leave.
pub(crate) fn drain(gather: &mut Gather) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !gather.is_empty() {
        let mut slices = [std::io::IoSlice::new(&[]); crate::gather::SLICES];
        let left = gather.slices(&mut slices).iter().fold(0, |left, slice| {
            bytes.extend_from_slice(slice);
            left + slice.len()
        });
        gather.advance(left);
    }
    bytes
}

/// The members of one object as a full parser sees them.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    fn get(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.get())
    }

    fn object(&self, key: &str) -> Option<Members<'a>> {
        serde_json::from_str(self.get(key)?).ok()
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}
