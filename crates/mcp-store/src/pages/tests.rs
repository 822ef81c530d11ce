use bytes::Bytes;

use super::*;
use crate::recorded::{Direction, SessionHeader, Transport};
use crate::segment::sparse::NEAR_BYTES;
use crate::segment::{
    End, HeadKey, Mark, Outcome, OutcomeKind, RecordHead, RecordKind, SegmentWriter, Verdict, VerdictKind,
};

struct Capture {
    dir: tempfile::TempDir,
    writer: SegmentWriter,
    messages: u64,
}

fn capture() -> Capture {
    let dir = tempfile::tempdir().unwrap();
    let writer = begin(&dir.path().join("s.mcpseg"));
    Capture { dir, writer, messages: 0 }
}

fn begin(path: &Path) -> SegmentWriter {
    let header =
        SessionHeader { name: Some("files".into()), ..SessionHeader::begun(uuid::Uuid::new_v4(), 5, Transport::Stdio) };
    SegmentWriter::create(path, &header).unwrap()
}

const UP: Direction = Direction::ClientToServer;
const DOWN: Direction = Direction::ServerToClient;

impl Capture {
    fn path(&self) -> PathBuf {
        self.dir.path().join("s.mcpseg")
    }

    fn head(&self, direction: Direction, correlated: u64, flags: u16) -> RecordHead {
        let (kind, sequence) = (RecordKind::Message, self.messages);
        RecordHead { kind, direction, flags, conversation: 1, sequence, time_ns: sequence, correlated }
    }

    fn push(&mut self, direction: Direction, correlated: u64, flags: u16, text: String) -> u64 {
        self.messages += 1;
        self.writer.push(&self.head(direction, correlated, flags), &text.into());
        self.messages
    }

    /// A call, and many messages later its answer.
    fn call(&mut self, id: u64, tool: &str) -> u64 {
        let text = format!(r#"{{"id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#);
        self.push(UP, 0, 0, text)
    }

    fn answer(&mut self, id: u64, asked: u64) -> u64 {
        self.push(DOWN, asked, 0, format!(r#"{{"id":{id},"result":{{}}}}"#))
    }

    fn notify(&mut self, count: u64) {
        for number in 0..count {
            self.push(DOWN, 0, 0, format!(r#"{{"method":"notifications/n{number}"}}"#));
        }
        self.writer.commit().unwrap();
    }

    /// With the index of whoever writes, and with one made of the file.
    fn both(&self) -> [Pages; 2] {
        let path = self.path();
        [Pages::open(&path, Some(self.writer.index())).unwrap(), Pages::open(&path, None).unwrap()]
    }
}

fn sequences(page: &Page) -> Vec<u64> {
    page.messages.iter().map(|told| told.recorded.sequence).collect()
}

#[track_caller]
fn check_before(pages: &mut Pages, sequence: u64, limit: usize, expected: std::ops::Range<u64>, next: Option<u64>) {
    let page = pages.before(sequence, limit, None).unwrap();
    assert_eq!((sequences(&page), page.next), (expected.collect(), next));
}

#[track_caller]
fn check_after(pages: &mut Pages, sequence: u64, limit: usize, expected: std::ops::Range<u64>, next: Option<u64>) {
    let page = pages.after(sequence, limit, None).unwrap();
    assert_eq!((sequences(&page), page.next), (expected.collect(), next));
}

#[test]
fn pages_lie_side_by_side() {
    let mut capture = capture();
    capture.notify(5_000);
    for mut pages in capture.both() {
        check_before(&mut pages, u64::MAX, 100, 4_901..5_001, Some(4_901));
        check_before(&mut pages, 4_901, 100, 4_801..4_901, Some(4_801));
        check_before(&mut pages, 1_030, 100, 930..1_030, Some(930));
        check_before(&mut pages, 1_025, 1, 1_024..1_025, Some(1_024));
        check_before(&mut pages, 41, 40, 1..41, None);
        check_before(&mut pages, 41, 100, 1..41, None);
        check_before(&mut pages, 1, 100, 0..0, None);
        check_after(&mut pages, 0, 100, 1..101, Some(100));
        check_after(&mut pages, 1_000, 100, 1_001..1_101, Some(1_100));
        check_after(&mut pages, 4_950, 50, 4_951..5_001, None);
        check_after(&mut pages, 4_950, 100, 4_951..5_001, None);
        check_after(&mut pages, 5_000, 100, 0..0, None);
        check_after(&mut pages, u64::MAX, 100, 0..0, None);
        assert_eq!(pages.before(u64::MAX, usize::MAX, None).unwrap().messages.len(), PAGE_MESSAGES_MAX);
        assert_eq!(pages.one(2_049).unwrap().unwrap().recorded.sequence, 2_049);
        assert!(pages.one(5_001).unwrap().is_none() && pages.one(0).unwrap().is_none());
        assert_eq!(pages.last().unwrap(), 5_000);
    }
}

#[test]
fn a_session_without_messages_has_an_empty_page() {
    let capture = capture();
    for mut pages in capture.both() {
        check_before(&mut pages, u64::MAX, 10, 0..0, None);
        check_after(&mut pages, 0, 10, 0..0, None);
        assert!(pages.one(1).unwrap().is_none());
    }
}

/// What a page shows of a message does not depend on where the page begins.
#[test]
fn messages_are_told_as_if_all_had_been_read() {
    let mut capture = capture();
    let opening =
        r#"{"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"ide"}}}"#;
    capture.push(UP, 0, 0, opening.into());
    capture.push(DOWN, 1, 0, r#"{"id":0,"result":{"protocolVersion":"2025-06-18"}}"#.into());
    let asked: Vec<u64> = (1..=1_500).map(|id| capture.call(id, &format!("t{id}"))).collect();
    capture.notify(3_000);
    for (id, asked) in (1..).zip(&asked) {
        capture.answer(id, *asked);
    }
    capture.writer.commit().unwrap();
    let mut whole = Vec::new();
    let mut story = Story::of(SegmentReader::open(&capture.path()).unwrap().header());
    let session = crate::Session::open_segment(&capture.path()).unwrap();
    session
        .for_each_entry(|entry| -> Result<(), StoreError> {
            whole.extend(story.hear(entry));
            Ok(())
        })
        .unwrap();
    let known = |told: &Told| {
        let method = told.method().map(|method| method.into_owned());
        let subject = told.subject().map(|subject| subject.into_owned());
        let (client, revision) = (told.client.as_deref(), told.revision.as_deref());
        let speaks = (client.map(str::to_owned), revision.map(str::to_owned));
        (told.recorded.clone(), method, subject, told.answers, told.duration_ns(), told.operation(), speaks)
    };
    for mut pages in capture.both() {
        let mut before = u64::MAX;
        let mut backwards = Vec::new();
        loop {
            let page = pages.before(before, 700, None).unwrap();
            backwards.extend(page.messages.iter().rev().map(known));
            let Some(next) = page.next else { break };
            before = next;
        }
        backwards.reverse();
        assert!(backwards == whole.iter().map(known).collect::<Vec<_>>());
        let answer = pages.one(capture.messages).unwrap().unwrap();
        assert_eq!((answer.subject().as_deref(), answer.answers), (Some("t1500"), asked.last().copied()));
    }
}

#[test]
fn a_file_that_grows_has_further_pages() {
    let mut capture = capture();
    capture.notify(3);
    let mut both = capture.both();
    both.iter_mut().for_each(|pages| check_before(pages, u64::MAX, 2, 2..4, Some(2)));
    capture.push(UP, 0, 0, r#"{"method":"gathered"}"#.into());
    both.iter_mut().for_each(|pages| check_after(pages, 3, 10, 0..0, None));
    capture.notify(2_000);
    both.iter_mut().for_each(|pages| check_after(pages, 3, 3, 4..7, Some(6)));
    both.iter_mut().for_each(|pages| check_before(pages, u64::MAX, 2, 2_003..2_005, Some(2_003)));
    let path = capture.path();
    let Capture { dir: _dir, writer, .. } = capture;
    writer.finish(9, &End::default()).unwrap();
    both.iter_mut().for_each(|pages| check_before(pages, u64::MAX, 1, 2_004..2_005, Some(2_004)));
    check_before(&mut Pages::open(&path, None).unwrap(), u64::MAX, 1, 2_004..2_005, Some(2_004));
}

/// A page ends where whole records do, wherever a writer was killed or is in the middle of a write.
#[test]
fn a_torn_tail_is_not_there_until_it_is_whole() {
    let mut capture = capture();
    capture.notify(3);
    let (path, whole) = (capture.path(), std::fs::metadata(capture.path()).unwrap().len() as usize);
    capture.notify(1);
    let Capture { dir: _dir, writer, .. } = capture;
    drop(writer);
    let bytes = std::fs::read(&path).unwrap();
    for cut in whole..bytes.len() {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let mut pages = Pages::open(&path, None).unwrap();
        check_before(&mut pages, u64::MAX, 9, 1..4, None);
        std::fs::write(&path, &bytes).unwrap();
        check_before(&mut pages, u64::MAX, 9, 1..5, None);
    }
}

/// Damage costs the messages that it hits.
#[test]
fn damage_in_the_middle_costs_what_it_hits() {
    let mut capture = capture();
    capture.notify(3_000);
    let path = capture.path();
    let Capture { dir: _dir, writer, .. } = capture;
    let index = writer.index();
    drop(writer);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 50].fill(0x41);
    std::fs::write(&path, &bytes).unwrap();
    for index in [Some(index), None] {
        let mut pages = Pages::open(&path, index).unwrap();
        let mut count = 0;
        let mut after = Some(0);
        while let Some(sequence) = after {
            let page = pages.after(sequence, 500, None).unwrap();
            count += page.messages.len();
            after = page.next;
        }
        assert!((2_997..3_000).contains(&count), "{count}");
    }
}

/// A batch that could not be written leaves no places behind.
#[test]
fn what_was_not_written_is_not_indexed() {
    let mut growth = Growth::default();
    let index = SparseIndex::default();
    let head = capture().head(UP, 0, 0);
    growth.add(&RecordHead { sequence: 1, ..head }, 100);
    growth.add(&RecordHead { kind: RecordKind::Outcome, correlated: 1, ..head }, 200);
    growth.forget();
    growth.add(&RecordHead { sequence: 3, ..head }, 100);
    index.publish(&mut growth, 150);
    assert_eq!((index.places(), index.last(), index.len()), (vec![Place { sequence: 3, offset: 100 }], 3, 150));
    assert_eq!(index.amended(1), None);
}

#[test]
fn large_messages_have_places_of_their_own() {
    let mut capture = capture();
    for _ in 0..20 {
        capture.push(UP, 0, 0, format!("{{\"x\":\"{}\"}}", "x".repeat(3 << 20)));
    }
    capture.writer.commit().unwrap();
    assert_eq!(capture.writer.index().places().len(), 20);
    for mut pages in capture.both() {
        // A page has room for a few of them.
        check_before(&mut pages, u64::MAX, 100, 18..21, Some(18));
        check_after(&mut pages, 0, 100, 1..4, Some(3));
    }
}

#[test]
fn a_filter_looks_so_far_and_says_where_to_go_on() {
    let mut capture = capture();
    let (first, asked) = (capture.call(1, "rare"), LOOKED_AT_MAX + 5_000);
    capture.notify(asked);
    let last = capture.call(2, "rare");
    capture.notify(10);
    let filter = Filter::parse("tool:rare").unwrap();
    for mut pages in capture.both() {
        let page = pages.before(u64::MAX, 1, Some(&filter)).unwrap();
        assert_eq!((sequences(&page), page.next), (vec![last], Some(last)));
        let page = pages.before(last, 1, Some(&filter)).unwrap();
        assert!(page.messages.is_empty() && page.next.is_some_and(|next| next > first), "{:?}", page.next);
        let page = pages.before(page.next.unwrap(), 1, Some(&filter)).unwrap();
        assert_eq!((sequences(&page), page.next), (vec![first], None));
        let page = pages.after(first, 1, Some(&filter)).unwrap();
        assert!(page.messages.is_empty() && page.next.is_some_and(|next| next < last), "{:?}", page.next);
        let page = pages.after(page.next.unwrap(), 5, Some(&filter)).unwrap();
        assert_eq!((sequences(&page), page.next, page.last), (vec![last], None, last + 10));
    }
}

#[test]
fn what_became_of_a_message_is_told_wherever_it_stands() {
    let mut capture = capture();
    capture.push(UP, 0, RecordHead::HELD, r#"{"id":1,"method":"tools/call","params":{"name":"came"}}"#.into());
    capture.notify(2_000);
    let about = RecordHead { correlated: 1, ..capture.head(UP, 0, 0) };
    let edited = Bytes::from_static(br#"{"id":1,"method":"tools/call","params":{"name":"left"}}"#);
    let (what, by, why) = (OutcomeKind::Modified, "ann".into(), String::new());
    capture.writer.push_outcome(&about, &Outcome { what, by, why, held_ns: 7, edited: Some(edited) });
    capture.writer.push_mark(&about, &Mark { mark: Some("x".into()), note: None });
    let answer = capture.answer(1, 1);
    capture.notify(1);
    for mut pages in capture.both() {
        let call = pages.one(1).unwrap().unwrap();
        assert_eq!((call.subject().as_deref(), call.recorded.mark.as_deref()), (Some("left"), Some("x")));
        assert!(call.recorded.original_raw.is_some() && call.recorded.held_ns == Some(7));
        assert_eq!(pages.one(answer).unwrap().unwrap().subject().as_deref(), Some("left"));
        let filter = Filter::parse("edited:yes").unwrap();
        assert_eq!(sequences(&pages.before(u64::MAX, 10, Some(&filter)).unwrap()), [1]);
    }
}

#[test]
fn verdicts_come_with_their_messages() {
    let mut capture = capture();
    let mut denied = Vec::new();
    for _ in 0..3_000 {
        capture.notify(1);
        let sequence = capture.messages;
        let what = if sequence.is_multiple_of(700) { VerdictKind::Deny } else { VerdictKind::Allow };
        denied.extend((what == VerdictKind::Deny).then_some(sequence));
        let verdict = Verdict { what, rule: Some("r".into()), operation: Some("write"), audit: None };
        capture.writer.push_verdict(&RecordHead { correlated: sequence, ..capture.head(UP, 0, 0) }, &verdict);
    }
    let about = RecordHead { correlated: 5, ..capture.head(UP, 0, 0) };
    let late = Verdict { what: VerdictKind::Deny, rule: None, operation: None, audit: None };
    capture.writer.push_verdict(&about, &late);
    capture.writer.commit().unwrap();
    denied.insert(0, 5);
    let filter = Filter::parse("verdict:deny").unwrap();
    for mut pages in capture.both() {
        assert_eq!(sequences(&pages.before(u64::MAX, 10, Some(&filter)).unwrap()), denied);
        assert_eq!(pages.one(1_500).unwrap().unwrap().op(), Some("write"));
        assert_eq!(pages.one(5).unwrap().unwrap().recorded.verdict.as_deref(), Some(&late));
    }
}

/// The head of an exchange may stand far away, and only name another.
#[test]
fn a_filter_on_headers_reads_everything() {
    let mut capture = capture();
    for exchange in 1..=3_000 {
        let head = RecordHead { kind: RecordKind::Exchange, sequence: exchange, ..capture.head(UP, 0, 0) };
        let key = HeadKey { hash: exchange % 3, content_length: None };
        let text = || format!("POST / HTTP/1.1\r\nx-kind: {}\r\n", exchange % 3).into_bytes();
        capture.writer.push_exchange_head(&head, key, text);
        capture.messages += 1;
        let text = Bytes::from_static(b"{\"method\":\"m\"}");
        capture.writer.push_linked(&capture.head(UP, 0, 0), exchange, b"", &text);
    }
    capture.writer.commit().unwrap();
    let filter = Filter::parse("header.x-kind:2").unwrap();
    for mut pages in capture.both() {
        let page = pages.before(u64::MAX, 2, Some(&filter)).unwrap();
        assert_eq!((sequences(&page), page.next), (vec![2_996, 2_999], Some(2_996)));
        let page = pages.before(6, 9, Some(&filter)).unwrap();
        assert_eq!((sequences(&page), page.next), (vec![2, 5], None));
        let page = pages.after(2_990, 2, Some(&filter)).unwrap();
        assert_eq!((sequences(&page), page.next), (vec![2_993, 2_996], Some(2_996)));
        let page = pages.after(2_990, 20, Some(&filter)).unwrap();
        assert_eq!((sequences(&page), page.next), (vec![2_993, 2_996, 2_999], None));
    }
}

/// A run that was divided goes on in another file, and that one counts from 1.
#[test]
fn each_part_of_a_divided_run_has_its_own_pages() {
    let mut capture = capture();
    capture.notify(10);
    let next = capture.dir.path().join("next.mcpseg");
    let full = std::mem::replace(&mut capture.writer, begin(&next));
    let mut old = Pages::open(&capture.path(), Some(full.index())).unwrap();
    full.finish(9, &End::default()).unwrap();
    capture.messages = 0;
    capture.notify(3);
    check_before(&mut old, u64::MAX, 4, 7..11, Some(7));
    let mut pages = Pages::open(&next, Some(capture.writer.index())).unwrap();
    check_before(&mut pages, u64::MAX, 10, 1..4, None);
}

/// No order of sequences makes a reader loop or run out of memory.
#[test]
fn sequences_that_are_not_ours_do_no_harm() {
    let mut capture = capture();
    for sequence in [5, 5, 3, u64::MAX, 1, 0, 9, u64::MAX - 1] {
        for _ in 0..600 {
            capture.messages = sequence;
            capture.writer.push(&capture.head(UP, sequence / 2, 0), &Bytes::from_static(b"{\"id\":1,\"result\":1}"));
        }
    }
    capture.writer.commit().unwrap();
    for mut pages in capture.both() {
        let (mut before, mut after) = (Some(u64::MAX), Some(0));
        for _ in 0..100 {
            before = before.and_then(|sequence| pages.before(sequence, 100, None).unwrap().next);
            after = after.and_then(|sequence| pages.after(sequence, 100, None).unwrap().next);
        }
        assert_eq!(before, None);
        pages.one(3).unwrap();
    }
}

impl Capture {
    fn exchange_part(&mut self, direction: Direction, exchange: u64, text: &str) {
        self.flagged_part(direction, exchange, text, 0);
    }

    fn flagged_part(&mut self, direction: Direction, exchange: u64, text: &str, flags: u16) {
        let head = RecordHead { kind: RecordKind::Exchange, sequence: exchange, ..self.head(direction, 0, flags) };
        let head = RecordHead { time_ns: exchange * 10 + u64::from(direction == DOWN), ..head };
        let hash = text.bytes().fold(7, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        self.writer.push_exchange_head(&head, HeadKey { hash, content_length: Some(exchange) }, || text.into());
    }

    fn exchange_end(&mut self, exchange: u64, how: &'static str) {
        let head = RecordHead { kind: RecordKind::ExchangeEnd, sequence: exchange, ..self.head(UP, 0, 0) };
        self.writer.push(&RecordHead { time_ns: exchange * 10 + 2, ..head }, &Bytes::from_static(how.as_bytes()));
    }

    fn linked(&mut self, direction: Direction, exchange: u64, event_id: &str) -> u64 {
        self.messages += 1;
        let text = Bytes::from_static(b"{\"method\":\"m\"}");
        self.writer.push_linked(&self.head(direction, 0, 0), exchange, event_id.as_bytes(), &text);
        self.messages
    }

    /// A request with its answer. Every other one is over with the head of the answer.
    fn exchange(&mut self, exchange: u64) {
        self.exchange_part(UP, exchange, "POST /mcp HTTP/1.1\r\nx: y\r\ncontent-length: 1\r\n");
        self.linked(UP, exchange, "");
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n";
        if exchange.is_multiple_of(2) {
            self.linked(DOWN, exchange, "");
            return self.flagged_part(DOWN, exchange, answer, RecordHead::ENDS);
        }
        self.exchange_part(DOWN, exchange, answer);
        self.linked(DOWN, exchange, "");
        self.exchange_end(exchange, "");
    }
}

/// `number, method, target, last header of the request, status, end, event id`
fn told(found: Option<ExchangeOf>) -> String {
    let Some(ExchangeOf { number, event_id, exchange }) = found else { return "none".into() };
    let request = exchange.request.map_or("-".into(), |(time, head)| {
        assert_eq!(time, number * 10);
        format!("{} {} {:?}", head.method, head.target, head.headers.0.last().map(|(_, value)| value.clone()))
    });
    let answer = exchange.answer.map_or("-".into(), |(time, head)| {
        assert_eq!(time, number * 10 + 1);
        head.status.to_string()
    });
    let end = exchange.end.map_or("-".into(), |(_, how)| how.unwrap_or("over".into()));
    format!("{number} {request} {answer} {end} {}", event_id.unwrap_or_default())
}

/// Wherever the parts of an exchange stand, and whatever lies between them.
#[test]
fn the_exchange_of_a_message_is_found() {
    let mut capture = capture();
    let first = capture.push(UP, 0, 0, "{}".into());
    // A stream that stays open all the while, and a request that is answered at the very end.
    capture.exchange_part(UP, 1, "GET /mcp HTTP/1.1\r\naccept: text/event-stream\r\n");
    capture.exchange_part(DOWN, 1, "HTTP/1.1 200 OK\r\n");
    capture.exchange_part(UP, 2, "POST /slow HTTP/1.1\r\nx: z\r\ncontent-length: 1\r\n");
    let slow = capture.linked(UP, 2, "");
    let asked = capture.messages + 1;
    (3..=3_000).for_each(|exchange| capture.exchange(exchange));
    // As much as makes what follows far from everything before.
    for _ in 0..3 {
        capture.push(DOWN, 0, 0, format!("{{\"x\":\"{}\"}}", "x".repeat(3 << 20)));
    }
    let event = capture.linked(DOWN, 1, "e7");
    (3_001..=30_000).for_each(|exchange| capture.exchange(exchange));
    let last_asked = capture.messages - 1;
    capture.exchange_part(DOWN, 2, "HTTP/1.1 504 Gateway Timeout\r\n");
    let answer = capture.linked(DOWN, 2, "");
    capture.exchange_end(2, "late");
    capture.exchange_part(UP, 30_001, "POST /open HTTP/1.1\r\n");
    let open = capture.linked(UP, 30_001, "");
    capture.writer.commit().unwrap();
    assert!(capture.writer.len() > 3 * NEAR_BYTES);
    for mut pages in capture.both() {
        for _ in 0..2 {
            let mut check = |sequence, expected: &str| {
                assert_eq!(told(pages.exchange_of(sequence).unwrap()), expected, "#{sequence}");
            };
            check(first, "none");
            check(99_999_999, "none");
            check(asked, "3 POST /mcp Some(\"1\") 200 over ");
            check(asked + 1, "3 POST /mcp Some(\"1\") 200 over ");
            check(last_asked, "30000 POST /mcp Some(\"30000\") 200 over ");
            check(asked + 2 * 20_000 + 4, "20003 POST /mcp Some(\"20003\") 200 over ");
            check(event, "1 GET /mcp Some(\"text/event-stream\") 200 - e7");
            check(slow, "2 POST /slow Some(\"1\") 504 late ");
            check(answer, "2 POST /slow Some(\"1\") 504 late ");
            check(open, "30001 POST /open None - - ");
        }
    }
}

/// An exchange may have begun in the session before, and damage may have hit what is looked for.
#[test]
fn what_is_not_there_of_an_exchange_is_left_out() {
    let mut capture = capture();
    capture.exchange_part(DOWN, 7, "HTTP/1.1 200 OK\r\n");
    let answer = capture.linked(DOWN, 7, "");
    (8..2_000).for_each(|exchange| capture.exchange(exchange));
    let lost = capture.linked(UP, 5_000, "");
    capture.writer.commit().unwrap();
    for mut pages in capture.both() {
        assert_eq!(told(pages.exchange_of(answer).unwrap()), "7 - 200 - ");
        assert_eq!(told(pages.exchange_of(lost).unwrap()), "5000 - - - ");
        assert_eq!(pages.exchange(0).unwrap(), Default::default());
        assert_eq!(pages.exchange(u64::MAX).unwrap(), Default::default());
    }
    let path = capture.path();
    let Capture { dir: _dir, writer, .. } = capture;
    let index = writer.index();
    drop(writer);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(9).position(|window| window == b"POST /mcp").unwrap();
    bytes[at] = b'X';
    std::fs::write(&path, &bytes).unwrap();
    for index in [Some(index), None] {
        let mut pages = Pages::open(&path, index).unwrap();
        let found = told(pages.exchange_of(answer + 200).unwrap());
        assert!(found.ends_with("200 over "), "{found}");
    }
}

/// What a gateway asks a server, far from where the conversation with that server began and from what its client
/// asked. An answer is not taken for what it was made of, nor the other way round.
#[test]
fn a_message_of_a_gateway_is_understood_far_from_what_it_was_made_of() {
    let mut capture = capture();
    let put = |capture: &mut Capture, conversation: u32, (direction, correlated, flags), text: &str| {
        capture.messages += 1;
        let head = RecordHead { conversation, ..capture.head(direction, correlated, flags) };
        capture.writer.push(&head, &Bytes::copy_from_slice(text.as_bytes()));
        capture.messages
    };
    let hello =
        r#"{"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"NAME"}}}"#;
    capture.writer.push_leg(1, 3, "a");
    put(&mut capture, 2, (UP, 0, 0), &hello.replace("NAME", "ann"));
    put(&mut capture, 3, (UP, 0, 0), &hello.replace("NAME", "gateway"));
    let call = r#"{"id":7,"method":"tools/call","params":{"name":"NAME"}}"#;
    let asked = put(&mut capture, 2, (UP, 0, 0), &call.replace("NAME", "a__x"));
    capture.notify(3_000);
    let passed_on = put(&mut capture, 3, (UP, asked, RecordHead::CAUSED), &call.replace("NAME", "x"));
    capture.notify(3_000);
    let answer = put(&mut capture, 3, (DOWN, passed_on, 0), r#"{"id":7,"result":{}}"#);
    capture.writer.commit().unwrap();
    for mut pages in capture.both() {
        let told = pages.one(passed_on).unwrap().unwrap();
        assert_eq!(
            (told.recorded.parent, told.answers, told.recorded.correlated_id.as_ref()),
            (Some(asked), None, None)
        );
        assert_eq!((told.server.as_deref(), told.client.as_deref()), (Some("a"), Some("ann")));
        let told = pages.one(answer).unwrap().unwrap();
        assert_eq!((told.recorded.parent, told.answers, told.subject().as_deref()), (None, Some(passed_on), Some("x")));
        assert_eq!((told.server.as_deref(), told.client.as_deref()), (Some("a"), Some("ann")));
        let told = pages.one(asked).unwrap().unwrap();
        assert_eq!((told.server.as_deref(), told.client.as_deref()), (Some("files"), Some("ann")));
        let page = pages.before(u64::MAX, 10, Some(&Filter::parse("server:a client:ann").unwrap())).unwrap();
        assert_eq!(sequences(&page), [passed_on, answer]);
    }
}
