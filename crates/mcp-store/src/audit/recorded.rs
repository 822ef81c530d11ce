//! What the recordings of an instance know of its audit log. A message that was decided about names its
//! decision, which is written first; so a recording that names a decision proves that there was one.

use std::io;
use std::ops::ControlFlow;

use uuid::Uuid;

use super::verify::Witness;
use crate::StoreError;
use crate::segment::{End, Record, RecordKind, SegmentReader, Verdict};
use crate::state_dir::StateDir;

/// The last decision that the recordings of `instance` name. The first of them has its id; a long one goes
/// on in others. `step` is told of bytes that were read, and may break off; then nothing is known.
pub fn recorded(
    instance: &Uuid,
    state: &StateDir,
    step: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<Witness>, StoreError> {
    let who = format!("the recording {}", &instance.to_string()[..8]);
    let mut witness = Witness { seq: 0, hash: None, saw_the_end: false, who };
    let mut next = Some(*instance);
    while let Some(id) = next.take() {
        let path = state.segment(&id);
        let mut reader = match SegmentReader::open(&path) {
            Ok(reader) => reader,
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => break,
            // What cannot be read knows nothing.
            Err(StoreError::NotASession { .. }) => break,
            Err(error) => return Err(error),
        };
        let mut place = 0;
        while let Some(record) = reader.next_record().map_err(StoreError::io("read", &path))? {
            witness.seq = witness.seq.max(number(&record, instance));
            if let Some(end) = end(&record) {
                next = end.continued_in;
                witness.saw_the_end = !end.recovered && next.is_none();
            }
            let read = reader.last_record() - place;
            place += read;
            if step(read).is_break() {
                return Ok(None);
            }
        }
    }
    Ok(Some(witness).filter(|witness| witness.seq > 0))
}

fn number(record: &Record, instance: &Uuid) -> u64 {
    let late = || (record.head.kind == RecordKind::Verdict).then(|| Verdict::decode(&record.payload)).flatten();
    let audit = record.verdict.clone().or_else(late).and_then(|verdict| verdict.audit);
    audit.filter(|audit| audit.instance == *instance).map_or(0, |audit| audit.number)
}

fn end(record: &Record) -> Option<End> {
    (record.head.kind == RecordKind::End).then(|| serde_json::from_slice(&record.payload).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::recorded::{Direction, SessionHeader, Transport};
    use crate::segment::{AuditId, RecordHead, SegmentWriter, VerdictKind};

    fn segment(state: &StateDir, id: Uuid, numbers: &[u64], end: Option<End>) {
        let header = SessionHeader::begun(id, 1, Transport::Stdio);
        let mut writer = SegmentWriter::create(&state.segment(&id), &header).expect("a segment");
        for (at, number) in numbers.iter().enumerate() {
            let head = RecordHead {
                kind: RecordKind::Message,
                direction: Direction::ClientToServer,
                flags: 0,
                conversation: 0,
                sequence: at as u64 + 1,
                time_ns: 1,
                correlated: 0,
            };
            writer.push(&head, &Bytes::from_static(b"{}"));
            let audit = Some(AuditId { instance: Uuid::from_u128(1), number: *number });
            let verdict = Verdict { what: VerdictKind::Allow, rule: None, operation: None, audit };
            writer.push_verdict(&RecordHead { correlated: head.sequence, ..head }, &verdict);
        }
        writer.commit().expect("written");
        if let Some(end) = end {
            writer.finish(2, &end).expect("written");
        }
    }

    #[test]
    fn a_recording_knows_the_decisions_it_names() {
        let dir = tempfile::tempdir().expect("a directory");
        let state = StateDir::find(Some(&dir.path().join("state"))).expect("a state directory");
        state.prepare().expect("a state directory");
        let known = |instance: u128| {
            let witness = recorded(&Uuid::from_u128(instance), &state, &mut |_| ControlFlow::Continue(()));
            witness.expect("readable").map(|witness| (witness.seq, witness.saw_the_end))
        };
        assert_eq!(known(1), None);
        let goes_on = End { continued_in: Some(Uuid::from_u128(2)), ..End::default() };
        segment(&state, Uuid::from_u128(1), &[2, 9, 4], Some(goes_on));
        assert_eq!(known(1), Some((9, false)));
        segment(&state, Uuid::from_u128(2), &[12], Some(End { recovered: true, ..End::default() }));
        assert_eq!(known(1), Some((12, false)));
        std::fs::remove_file(state.segment(&Uuid::from_u128(2))).expect("removed");
        segment(&state, Uuid::from_u128(2), &[12], Some(End::default()));
        assert_eq!(known(1), Some((12, true)));
        assert_eq!(known(2), None, "these are decisions of another log");
    }
}
