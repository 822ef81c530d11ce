//! What it costs to find a few tools among thousands: making the index, and asking it.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mcp_proxy_tool::index::Index;

const TOOLS: usize = 5_000;

const VERBS: [&str; 10] =
    ["read", "write", "list", "create", "delete", "search", "update", "export", "merge", "validate"];
const NOUNS: [&str; 20] = [
    "file",
    "directory",
    "issue",
    "branch",
    "invoice",
    "customer",
    "calendar",
    "message",
    "image",
    "database",
    "table",
    "report",
    "ticket",
    "commit",
    "pipeline",
    "secret",
    "bucket",
    "queue",
    "cluster",
    "user",
];

/// A tool of some 400 bytes.
fn tool(number: usize) -> String {
    let (verb, noun) = (VERBS[number % 10], NOUNS[number / 10 % 20]);
    let (other, service) = (NOUNS[number / 7 % 20], number / 200);
    format!(
        r#"{{"name":"service{service}__{verb}_{noun}_{number}","title":"{verb} one {noun}","description":"Lets you {verb} a {noun} of the {other} that belongs to service number {service}, with all its details and history.","inputSchema":{{"type":"object","properties":{{"{noun}_id":{{"type":"string","description":"Which {noun} is meant"}},"{other}Name":{{"type":"string","description":"Name of the {other}"}}}},"required":["{noun}_id"]}}}}"#
    )
}

fn query(criterion: &mut Criterion) {
    let tools: Vec<_> = (0..TOOLS).map(tool).collect();
    let items = || tools.iter().map(String::as_bytes);
    let mut group = criterion.benchmark_group("query");
    group.throughput(Throughput::Elements(TOOLS as u64));
    group.bench_function("build", |bencher| bencher.iter(|| Index::build(black_box(items()))));
    let index = Index::build(items());
    for (name, words) in [
        ("one-word", "invoice"),
        ("sentence", "how do I delete the old branches of a database"),
        ("common", "service details history"),
        ("slip", "validtae custmer"),
        ("exact", "service3__merge_report_618"),
    ] {
        group.bench_function(name, |bencher| bencher.iter(|| index.search(black_box(words))));
    }
    group.finish();
}

criterion_group!(benches, query);
criterion_main!(benches);
