//! What a gateway adds to lists and calls.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mcp_gateway::router::merge::{self, Listing, Own, OwnTool};
use mcp_gateway::router::{ListKind, Names, Namespace, cursor, rewrite};
use mcp_wire::{Era, Message, splice};

const OWN: Own<'static> = Own { name: "gateway", title: None, version: "1", instructions: None, tool: OwnTool::None };

fn tools(count: usize) -> Bytes {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string","description":"Where to look, from the root of the project."},"limit":{"type":"integer","minimum":1,"maximum":1000}},"required":["path"]}"#;
    let tool = |at| {
        format!(
            r#"{{"name":"find_files_{at}","title":"Find files","description":"Finds files by a pattern, the newest first, and tells size and time of each of them.","inputSchema":{schema},"annotations":{{"readOnlyHint":true}}}}"#
        )
    };
    let list: Vec<String> = (0..count).map(tool).collect();
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{}]}}}}"#, list.join(",")).into()
}

fn lists(c: &mut Criterion) {
    let names = Namespace::new("files".into(), true);
    let answer = tools(1_000);
    let page = rewrite::page(&names, ListKind::Tools, &answer).expect("it lists tools");
    let mut group = c.benchmark_group("list");
    group.throughput(Throughput::Elements(1_000));
    group.bench_function("read", |bencher| {
        bencher.iter(|| rewrite::page(&names, ListKind::Tools, black_box(&answer)));
    });
    group.bench_function("compose", |bencher| {
        bencher.iter(|| {
            let digest = cursor::Digest::of(page.items.iter().map(|item| item.given.as_str()));
            let cut = cursor::cut(ListKind::Tools, &page.items, |item| &item.given, &digest, None, 1_000);
            let items = &page.items[cut.expect("it is the first page").items];
            let (kind, era) = (ListKind::Tools, Era::Modern);
            let listing =
                Listing { kind, next: None, absent: &[], cut: &[], era, ttl_ms: 0, is_public: false, own: &OWN };
            merge::list(items.iter().map(|item| &item.bytes), black_box(&listing))
        });
    });
    group.bench_function("learn", |bencher| {
        let originals: Vec<String> = page.items.iter().map(|item| item.original.clone()).collect();
        let mut all = Names::new(vec![names.clone()]);
        bencher.iter(|| all.learn(0, ListKind::Tools, black_box(&originals)));
    });
}

fn calls(c: &mut Criterion) {
    let names = Namespace::new("files".into(), true);
    let all = Names::new(vec![names.clone()]);
    let mut group = c.benchmark_group("call");
    for size in [100, 10_000, 1_000_000] {
        let text = "Caf\\u00e9, \\\"twice\\\"\\n".repeat(size / 22);
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"files__write","arguments":{{"text":"{text}"}}}}}}"#
        );
        let request = Message::scanned(request.into());
        group.throughput(Throughput::Bytes(request.bytes().len() as u64));
        group.bench_function(format!("request/{size}"), |bencher| {
            bencher.iter(|| {
                all.tool(black_box("files__write"));
                let mut edits = rewrite::request(&names, black_box(&request), "tools/call", "write");
                splice::splice_all(request.bytes(), &mut edits)
            });
        });
        let result = |content: &str| -> Bytes {
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}{content}]}}}}"#)
                .into()
        };
        for (kind, content) in [("plain", ""), ("link", r#",{"type":"resource_link","uri":"file:///a","name":"a"}"#)] {
            let answer = Message::scanned(result(content));
            group.bench_function(format!("answer-{kind}/{size}"), |bencher| {
                bencher.iter(|| {
                    let mut edits = rewrite::answer(&names, "tools/call", black_box(&answer));
                    splice::spliced(&answer, &mut edits)
                });
            });
        }
    }
}

criterion_group!(benches, lists, calls);
criterion_main!(benches);
