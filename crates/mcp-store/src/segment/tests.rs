//! Segments survive what crashes and bad disks do to them.

use std::path::Path;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::recorded::{SessionHeader, Transport};
use crate::session::{Session, recover};

fn header() -> SessionHeader {
    SessionHeader {
        server_command: Some("server".into()),
        ..SessionHeader::begun(Uuid::new_v4(), 1_000, Transport::Stdio)
    }
}

fn head(sequence: u64) -> RecordHead {
    RecordHead {
        kind: RecordKind::Message,
        direction: Direction::ServerToClient,
        flags: 0,
        conversation: 0,
        sequence,
        time_ns: 1_000 + sequence,
        correlated: sequence / 2,
    }
}

fn payload(sequence: u64) -> Bytes {
    format!("{{\"id\":{sequence},\"pad\":\"{}\"}}", "x".repeat((sequence * 37 % 9000) as usize)).into()
}

/// Every second message came in an exchange, some of these in an event that has an id.
fn link(sequence: u64) -> Option<Link> {
    let event_id = Bytes::from("é".repeat((sequence * 13 % 40) as usize));
    (sequence % 2 == 1).then_some(Link { exchange: sequence * 1000, event_id })
}

/// Rules decided about every third message.
fn verdict(sequence: u64) -> Option<Verdict> {
    let rule = sequence.is_multiple_of(2).then(|| "r".repeat((sequence * 7 % 50) as usize).into());
    let audit = Some(AuditId { instance: Uuid::from_u128(sequence.into()), number: sequence });
    sequence.is_multiple_of(3).then_some(Verdict { what: VerdictKind::Allow, rule, operation: Some("read"), audit })
}

/// A segment of `count` messages; ended, or left as a crash leaves it.
fn write(path: &Path, count: u64, ended: bool) {
    let mut writer = SegmentWriter::create(path, &header()).expect("a segment can be begun");
    for sequence in 1..=count {
        let (link, verdict) = (link(sequence), verdict(sequence));
        let way = link.as_ref().map(|link| (link.exchange, &link.event_id[..]));
        writer.push_message(&head(sequence), way, verdict.as_ref(), &payload(sequence));
        if sequence % 3 == 0 {
            writer.commit().expect("the disk takes it");
        }
    }
    writer.commit().expect("the disk takes it");
    if ended {
        writer.finish(9_999, &End::default()).expect("the disk takes it");
    }
}

fn sequences(path: &Path) -> (Vec<u64>, Tail, u64) {
    let mut reader = SegmentReader::open(path).expect("its header is whole");
    let mut sequences = Vec::new();
    while let Some(record) = reader.next_record().expect("it can be read") {
        if record.head.kind == RecordKind::Message {
            assert_eq!(record.payload, payload(record.head.sequence));
            assert_eq!(record.link, link(record.head.sequence));
            assert_eq!(record.verdict, verdict(record.head.sequence));
            sequences.push(record.head.sequence);
        }
    }
    (sequences, reader.tail(), reader.damaged())
}

#[test]
fn what_is_written_is_read() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("s.mcpseg");
    write(&path, 50, true);
    assert_eq!(sequences(&path), ((1..=50).collect(), Tail::Clean, 0));
}

#[test]
fn a_segment_is_never_written_over() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("s.mcpseg");
    write(&path, 1, true);
    assert!(SegmentWriter::create(&path, &header()).is_err());
    assert_eq!(sequences(&path).0, [1]);
}

#[test]
fn wherever_it_is_cut_the_rest_is_whole_and_can_be_ended() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("s.mcpseg");
    write(&path, 4, false);
    let bytes = std::fs::read(&path).expect("it can be read");
    let begin = SegmentReader::open(&path).expect("its header is whole").whole_len() as usize;
    for cut in begin..bytes.len() {
        std::fs::write(&path, &bytes[..cut]).expect("it can be written");
        let (before, tail, damaged) = sequences(&path);
        assert_eq!((before.clone(), damaged), ((1..=before.len() as u64).collect(), 0));
        let summary = Session::open_segment(&path).expect("it opens").summary().clone();
        assert_eq!(summary.torn, tail != Tail::Clean);
        assert!(recover(&path, &summary).expect("it can be ended").is_some());
        assert_eq!(sequences(&path), (before, Tail::Clean, 0));
    }
}

/// A large batch is not written all at once, and whoever looks meanwhile sees a part of it.
#[test]
fn a_segment_that_grows_is_read_as_far_as_it_went() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("s.mcpseg");
    write(&path, 4, false);
    let bytes = std::fs::read(&path).expect("it can be read");
    std::fs::write(&path, &bytes[..bytes.len() - 10]).expect("it can be written");
    let mut reader = SegmentReader::open(&path).expect("its header is whole");
    std::fs::write(&path, [&bytes[..], &[0; 4096]].concat()).expect("it can be written");
    let mut count = 0;
    while reader.next_record().expect("it can be read").is_some() {
        count += 1;
    }
    assert_eq!((count, reader.tail() == Tail::Clean), (3, false));
}

/// The sequence of an exchange is its own count, and its records are no messages.
#[test]
fn exchanges_stand_between_messages_and_are_not_counted() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("s.mcpseg");
    let mut writer = SegmentWriter::create(&path, &header()).expect("a segment can be begun");
    let exchange = |kind, direction| RecordHead { kind, direction, sequence: 7, correlated: 0, ..head(7) };
    let request = exchange(RecordKind::Exchange, Direction::ClientToServer);
    let answer = exchange(RecordKind::Exchange, Direction::ServerToClient);
    let over = exchange(RecordKind::ExchangeEnd, Direction::ServerToClient);
    let flags = RecordHead::arrived_on(Transport::Sse) | RecordHead::FROM_PROXY;
    let (id, message) = ("i".repeat(3 * EVENT_ID_MAX), Bytes::from(vec![b' '; 100_000]));
    writer.push(&request, &Bytes::from_static(b"POST /\xff HTTP/1.1\r\na: \x80\r\n"));
    writer.push_linked(&RecordHead { flags, ..head(1) }, 7, id.as_bytes(), &message);
    writer.push(&answer, &Bytes::from_static(b"HTTP/1.1 202 Accepted\r\n"));
    writer.push(&over, &Bytes::new());
    writer.finish(9_999, &End::default()).expect("the disk takes it");

    assert_eq!(Session::open_segment(&path).expect("it opens").summary().messages, 1);
    let mut reader = SegmentReader::open(&path).expect("its header is whole");
    let mut next = || reader.next_record().expect("it can be read").expect("there is another");
    assert_eq!((next().head, next().link.map(|link| link.event_id.len())), (request, Some(EVENT_ID_MAX)));
    assert_eq!((next().head, next().head), (answer, over));
}

/// The head of a response may say that this was all, which readers are told by itself.
#[test]
fn an_exchange_can_be_over_with_the_head_of_its_response() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("s.mcpseg");
    let mut writer = SegmentWriter::create(&path, &header()).expect("a segment can be begun");
    let answer = RecordHead { kind: RecordKind::Exchange, correlated: 0, ..head(7) };
    let last = RecordHead { flags: RecordHead::ENDS, ..answer };
    let key = HeadKey { hash: 1, content_length: None };
    for _ in 0..2 {
        writer.push_exchange_head(&last, key, || b"HTTP/1.1 200 OK\r\n".to_vec());
    }
    writer.push_exchange_head(&answer, key, || unreachable!("it was written"));
    writer.commit().expect("the disk takes it");
    let mut reader = SegmentReader::open(&path).expect("its header is whole");
    let mut found = Vec::new();
    while let Some(record) = reader.next_record().expect("it can be read") {
        found.push((record.head, String::from_utf8(record.payload.to_vec()).expect("text")));
    }
    let over = RecordHead { kind: RecordKind::ExchangeEnd, ..answer };
    let text = |text: &str| text.to_owned();
    let (answer, over) = ((answer, text("HTTP/1.1 200 OK\r\n")), (over, text("")));
    assert_eq!(found, [answer.clone(), over.clone(), answer.clone(), over, answer]);
}

/// What became of a message follows it, and a crash in the middle of saying so costs only that.
#[test]
fn outcomes_and_marks_are_told_of_earlier_messages() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("s.mcpseg");
    let mut writer = SegmentWriter::create(&path, &header()).expect("a segment can be begun");
    writer.push(&RecordHead { flags: RecordHead::HELD, ..head(1) }, &payload(1));
    writer.commit().expect("the disk takes it");
    let about = RecordHead { correlated: 1, flags: RecordHead::LINKED | RecordHead::HELD, ..head(77) };
    let edited = Some(Bytes::from(vec![b'x'; 100_000]));
    let outcome = Outcome { what: OutcomeKind::Modified, by: "tui".into(), why: "b1".into(), held_ns: 9, edited };
    let mark = Mark { mark: Some("★".into()), note: None };
    writer.push_outcome(&about, &outcome);
    writer.push_mark(&about, &mark);
    writer.commit().expect("the disk takes it");
    drop(writer);

    let expected = RecordHead { flags: 0, sequence: 0, correlated: 1, ..head(77) };
    let bytes = std::fs::read(&path).expect("it can be read");
    let mut ends = Vec::new();
    let mut reader = SegmentReader::open(&path).expect("its header is whole");
    while let Some(record) = reader.next_record().expect("it can be read") {
        match record.head.kind {
            RecordKind::Message => assert_eq!(record.head.flags, RecordHead::HELD),
            RecordKind::Outcome => assert_eq!(Outcome::decode(&record.payload).as_ref(), Some(&outcome)),
            RecordKind::Mark => assert_eq!(Mark::decode(&record.payload).as_ref(), Some(&mark)),
            other => panic!("{other:?} was not written"),
        }
        if record.head.kind != RecordKind::Message {
            assert_eq!(record.head, RecordHead { kind: record.head.kind, ..expected });
        }
        ends.push(reader.whole_len() as usize);
    }
    assert_eq!((ends.len(), Session::open_segment(&path).expect("it opens").summary().messages), (3, 1));
    for cut in (ends[0]..ends[2]).step_by(997).chain([ends[1] - 1, ends[1], ends[1] + 1, ends[2] - 1]) {
        std::fs::write(&path, &bytes[..cut]).expect("it can be written");
        let mut reader = SegmentReader::open(&path).expect("its header is whole");
        let mut count = 0;
        while reader.next_record().expect("it can be read").is_some() {
            count += 1;
        }
        assert_eq!(count, ends.iter().filter(|end| **end <= cut).count(), "cut at {cut}");
        assert_eq!(reader.damaged(), 0);
    }
}

#[test]
fn a_message_says_what_it_arrived_on() {
    for transport in [Transport::Stdio, Transport::Sse, Transport::StreamableHttp] {
        let flags = RecordHead::arrived_on(transport) | RecordHead::NOISE;
        assert_eq!(RecordHead { flags, ..head(1) }.transport(), Some(transport));
    }
    assert_eq!(RecordHead { flags: RecordHead::NOISE, ..head(1) }.transport(), None);
}

/// Damage costs the records it hits. A session that was ended stays ended, and nothing is cut off it.
#[test]
fn damage_in_the_middle_is_never_taken_for_a_torn_tail() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("s.mcpseg");
    write(&path, 30, true);
    let bytes = std::fs::read(&path).expect("it can be read");
    let begin = SegmentReader::open(&path).expect("its header is whole").whole_len() as usize;
    for hit in [begin, begin + 1, begin + 3, begin + 5, begin + 36, begin + 60, begin + 700, begin + 4000] {
        let mut damaged = bytes.clone();
        damaged[hit] ^= 0x41;
        damaged[hit + 200] ^= 0x41;
        std::fs::write(&path, &damaged).expect("it can be written");
        let summary = Session::open_segment(&path).expect("it opens").summary().clone();
        assert!(summary.ended_ns.is_some() && !summary.torn && summary.messages >= 28, "hit at {hit}: {summary:?}");
        assert_eq!(recover(&path, &summary).expect("there is nothing to do"), None);
        assert_eq!(std::fs::metadata(&path).expect("it is there").len(), damaged.len() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No file whatever makes a reader fail otherwise than by saying so.
    #[test]
    fn any_bytes_can_be_opened(bytes in prop::collection::vec(any::<u8>(), 0..400), keep in 0usize..600) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("s.mcpseg");
        write(&path, 3, true);
        let mut file = std::fs::read(&path).expect("it can be read");
        file.truncate(keep);
        file.extend_from_slice(&bytes);
        std::fs::write(&path, &file).expect("it can be written");
        if let Ok(mut reader) = SegmentReader::open(&path) {
            while reader.next_record().expect("it can be read").is_some() {}
        }
    }

    /// A link and its message come back as they were, whatever they hold.
    #[test]
    fn links_and_messages_are_told_apart(
        records in prop::collection::vec(
            (any::<Option<u64>>(), prop::collection::vec(any::<u8>(), 0..40), prop::collection::vec(any::<u8>(), 0..9000)),
            0..8,
        )
    ) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("s.mcpseg");
        let mut writer = SegmentWriter::create(&path, &header()).expect("a segment can be begun");
        for (exchange, event_id, payload) in &records {
            let payload = Bytes::copy_from_slice(payload);
            match exchange {
                Some(exchange) => writer.push_linked(&head(1), *exchange, event_id, &payload),
                None => writer.push(&head(1), &payload),
            }
        }
        writer.commit().expect("the disk takes it");
        let mut reader = SegmentReader::open(&path).expect("its header is whole");
        for (exchange, event_id, payload) in records {
            let record = reader.next_record().expect("it can be read").expect("there is another");
            let link = exchange.map(|exchange| Link { exchange, event_id: event_id.into() });
            prop_assert_eq!((record.link, record.payload), (link, Bytes::from(payload)));
        }
        prop_assert_eq!((reader.next_record().expect("it can be read"), reader.tail()), (None, Tail::Clean));
    }

    /// A record that says it is linked and is not is passed over, and the next one found.
    #[test]
    fn a_link_that_is_none_is_damage(bytes in prop::collection::vec(any::<u8>(), 0..30)) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("s.mcpseg");
        write(&path, 0, false);
        let linked = RecordHead { flags: RecordHead::LINKED, ..head(1) };
        let mut file = std::fs::read(&path).expect("it can be read");
        for (head, payload) in [(linked, &bytes[..]), (head(2), b"whole")] {
            file.extend_from_slice(&head.encode(payload));
            file.extend_from_slice(payload);
        }
        std::fs::write(&path, &file).expect("it can be written");
        let is_link = Link::take(&mut Bytes::from(bytes)).is_some();
        let mut reader = SegmentReader::open(&path).expect("its header is whole");
        let first = reader.next_record().expect("it can be read").expect("there is one");
        prop_assert_eq!((first.head.sequence, reader.damaged()), if is_link { (1, 0) } else { (2, 1) });
    }
}
