//! What it costs to tell what a tool does by its name.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use mcp_engine::policy::operation::{Annotations, Classifier};

fn classify(c: &mut Criterion) {
    let classifier = Classifier::default();
    let names = ["get", "list_pull_requests", "mcp__github__create_or_update_file", "assignClientRoleToUser"];
    for name in names {
        c.bench_function(&format!("classify/{name}"), |bencher| {
            bencher.iter(|| classifier.classify(black_box(name), Annotations::default()))
        });
    }
}

criterion_group!(benches, classify);
criterion_main!(benches);
