//! What it costs to show part of a long session: a page of 100 messages out of a million of about a
//! hundred bytes each. `newest` is what somebody waits for who attaches to a running proxy.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use mcp_filter::Filter;
use mcp_store::segment::{RecordHead, RecordKind, SegmentWriter};
use mcp_store::{Direction, Pages, SessionHeader, SparseIndex, Transport};

const MESSAGES: u64 = 1_000_000;
const PAGE: usize = 100;

fn write(path: &Path) -> Arc<SparseIndex> {
    let header =
        SessionHeader::begun("7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a".parse().expect("a uuid"), 1, Transport::Stdio);
    let mut writer = SegmentWriter::create(path, &header).expect("a segment");
    for sequence in 1..=MESSAGES {
        let is_answer = sequence % 2 == 0;
        let text = match is_answer {
            false => format!(
                r#"{{"jsonrpc":"2.0","id":{sequence},"method":"tools/call","params":{{"name":"tool_{}","arguments":{{"path":"/srv/a"}}}}}}"#,
                sequence % 10_000
            ),
            true => format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":"what a short answer says"}}]}}}}"#,
                sequence - 1
            ),
        };
        let head = RecordHead {
            kind: RecordKind::Message,
            direction: if is_answer { Direction::ServerToClient } else { Direction::ClientToServer },
            flags: 0,
            conversation: 1,
            sequence,
            time_ns: sequence * 1_000,
            correlated: if is_answer { sequence - 1 } else { 0 },
        };
        writer.push(&head, &Bytes::from(text));
        if sequence % 64 == 0 {
            writer.commit().expect("a disk with room");
        }
    }
    writer.commit().expect("a disk with room");
    writer.index()
}

fn pages(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.mcpseg");
    let index = write(&path);
    let open = || Pages::open(&path, Some(Arc::clone(&index))).expect("it opens");
    let mut group = criterion.benchmark_group("a million messages");
    group.sample_size(20).measurement_time(Duration::from_secs(5));
    group.bench_function("newest", |bench| {
        bench.iter(|| black_box(open().before(u64::MAX, PAGE, None).expect("a page")));
    });
    let mut known = open();
    group.bench_function("another", |bench| {
        bench.iter(|| black_box(known.before(MESSAGES / 2 + 77, PAGE, None).expect("a page")));
    });
    group.bench_function("one", |bench| {
        bench.iter(|| black_box(known.one(MESSAGES / 3).expect("a message")));
    });
    let filter = Filter::parse("tool:tool_77").expect("a filter");
    group.bench_function("filtered, as far as one look goes", |bench| {
        bench.iter(|| black_box(known.before(u64::MAX, PAGE, Some(&filter)).expect("a page")));
    });
    group.bench_function("newest, without an index", |bench| {
        let open = || Pages::open(&path, None).expect("it opens");
        bench.iter(|| black_box(open().before(u64::MAX, PAGE, None).expect("a page")));
    });
    group.finish();
}

criterion_group!(benches, pages);
criterion_main!(benches);
