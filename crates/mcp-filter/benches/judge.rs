//! What it costs to judge a message, by what the filter looks at. The scan of the message is part of
//! it where the filter needs one: a recording is read, each message judged once.

use std::borrow::Cow;
use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mcp_filter::{Filter, Spelling, Subject};
use mcp_wire::Direction;
use mcp_wire::Message;

struct Call(Message);

impl Subject for Call {
    fn direction(&self) -> Option<Direction> {
        Some(Direction::ClientToServer)
    }

    fn kind(&self) -> Option<&str> {
        Some(if self.0.peek().method.is_some() { "request" } else { "response" })
    }

    fn method(&self) -> Option<Cow<'_, str>> {
        self.0.method()
    }

    fn tool(&self) -> Option<Cow<'_, str>> {
        self.0.name()
    }

    fn size(&self) -> Option<u64> {
        Some(self.0.bytes().len() as u64)
    }

    fn sequence(&self) -> Option<u64> {
        Some(7)
    }

    fn body(&self) -> Option<&[u8]> {
        Some(self.0.bytes())
    }
}

/// A call with about so many bytes in its arguments.
fn call(bytes: usize) -> Bytes {
    const PROSE: &str = r#"the quick brown fox jumps over the lazy dog, \"twice\"; "#;
    let text = PROSE.repeat(bytes / PROSE.len());
    let arguments = format!(r#"{{"text":"{text}","path":"/home/me/notes/today.md"}}"#);
    format!(
        r#"{{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{{"name":"write_file","arguments":{arguments}}}}}"#
    )
    .into()
}

/// What rules ask of a call whose names are known already.
fn spelling(criterion: &mut Criterion) {
    let subject = Call(Message::new(call(200)));
    let mut group = criterion.benchmark_group("rule");
    for (name, expression) in [("tool", "tool:write_file"), ("tool-no", "tool:delete_*")] {
        let filter = Filter::parse(expression).expect("it is a filter");
        for (spelled, spelling) in [("exact", Spelling::Exact), ("any", Spelling::Any), ("every", Spelling::Every)] {
            group.bench_function(format!("{name}/{spelled}"), |bencher| {
                bencher.iter(|| black_box(&filter).matches_in(black_box(&subject), spelling))
            });
            group.bench_function(format!("{name}/{spelled}/foretold"), |bencher| {
                bencher.iter(|| black_box(&filter).foretell(black_box(&subject), spelling))
            });
        }
    }
    group.finish();
}

fn judging(criterion: &mut Criterion) {
    for (size, bytes) in [("300B", call(200)), ("10KB", call(10_000))] {
        let mut group = criterion.benchmark_group(format!("judge/{size}"));
        group.throughput(Throughput::Elements(1));
        for (name, expression) in [
            ("record", "> size>100 seq:1..1000"),
            ("names", "tool:write_*,delete_* method:tools/call"),
            ("names-no", "tool:read_* method:tools/call"),
            ("path", "$.params.arguments.path ^= \"/etc\""),
            ("path-below", "$..path:/etc/*"),
            ("word-no", "xyzzy"),
            ("regex-no", "/pass(word|phrase)=[a-z]+/"),
            ("mixed", "kind:request (tool:write_* or tool:delete_*) $.params.arguments.path ^= \"/home\""),
        ] {
            let filter = Filter::parse(expression).expect("it is a filter");
            group.bench_function(name, |bencher| {
                bencher.iter(|| filter.matches(&Call(Message::new(black_box(bytes.clone())))))
            });
        }
        group.finish();
    }
    spelling(criterion);
    criterion.bench_function("parse", |bencher| {
        let expression = black_box("tool:write_*,delete_* not server:test $.params.arguments.path ^= \"/etc\"");
        bencher.iter(|| Filter::parse(expression))
    });
}

criterion_group!(benches, judging);
criterion_main!(benches);
