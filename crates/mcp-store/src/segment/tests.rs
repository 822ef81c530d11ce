//! Segments survive what crashes and bad disks do to them.

use std::path::Path;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::recorded::{SessionHeader, Transport};
use crate::session::{Session, recover};

fn header() -> SessionHeader {
    SessionHeader {
        id: Uuid::new_v4(),
        started_ns: 1_000,
        transport: Transport::Stdio,
        server_command: Some("server".into()),
        server_url: None,
        name: None,
        notes: BTreeMap::new(),
        session_file: None,
        continues: None,
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

/// A segment of `count` messages; ended, or left as a crash leaves it.
fn write(path: &Path, count: u64, ended: bool) {
    let mut writer = SegmentWriter::create(path, &header()).expect("a segment can be begun");
    for sequence in 1..=count {
        writer.push(&head(sequence), &payload(sequence));
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
}
