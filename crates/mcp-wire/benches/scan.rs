//! What one scan costs, by size and texture.

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mcp_wire::Message;
use mcp_wire::strict::{JudgedKeys, check};

fn request(text: &str) -> Bytes {
    let params = format!(r#"{{"name":"echo","arguments":{{"text":"{text}"}},"_meta":{{"progressToken":"pt-1"}}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":1000000001,"method":"tools/call","params":{params}}}"#).into()
}

fn scans(criterion: &mut Criterion) {
    const PROSE: &str = r#"fn handle(req: Request) { let name = \"tool\"; \n  // déjà vu: 42 items }\n"#;
    let mut group = criterion.benchmark_group("scan");
    for (name, text) in [
        ("100B", "x".repeat(20)),
        ("10KB-plain", "x".repeat(10_000)),
        ("10KB-escapes", PROSE.repeat(10_000 / PROSE.len())),
        ("1MB-escapes", PROSE.repeat(1_000_000 / PROSE.len())),
    ] {
        let bytes = request(&text);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(format!("{name}/glance"), |bencher| {
            bencher.iter(|| Message::new(std::hint::black_box(bytes.clone())))
        });
        group.bench_function(format!("{name}/peek"), |bencher| {
            bencher.iter(|| Message::new(std::hint::black_box(bytes.clone())).peek().kind)
        });
        let keys = JudgedKeys::new(["params", "arguments", "path"]);
        group.bench_function(format!("{name}/strict"), |bencher| {
            bencher.iter(|| check(&Message::new(std::hint::black_box(bytes.clone())), &keys))
        });
    }
    group.finish();
}

criterion_group!(benches, scans);
criterion_main!(benches);
