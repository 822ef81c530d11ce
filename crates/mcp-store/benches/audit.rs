//! What a governed call costs in the audit log: its decision and its outcome, composed and chained,
//! without the write that a batch of them shares (`composed`), and with one write for each call
//! (`written`).

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use mcp_store::Direction;
use mcp_store::audit::{AuditLog, Begin, CallOutcome, Decision};
use uuid::Uuid;

const TOOLS: [&str; 8] = [
    "read_file",
    "write_file",
    "list_directory",
    "browser_take_screenshot",
    "create_pull_request_review",
    "delete_repository",
    "search_code",
    "get_me",
];
/// Calls between two writes.
const BATCH: u64 = 64;

fn call(log: &mut AuditLog, session: Uuid, number: u64) {
    let time_ns = 1_800_000_000_000_000_000 + number * 20_000;
    let decision = Decision {
        time_ns,
        session,
        sequence: number * 2,
        conversation: 0,
        client: Some("claude-code 2.1.3"),
        server: Some("github"),
        direction: Direction::ClientToServer,
        method: "tools/call",
        tool: Some(TOOLS[number as usize % TOOLS.len()]),
        operation: Some("read"),
        verdict: "allow",
        rule: Some("reading is fine"),
        rules_version: "1f2e3d4c5b6a",
        actor: "rule",
        why: None,
        held_ns: 0,
    };
    let of = log.decision(black_box(&decision));
    let latency_ns = 1_234_567;
    let outcome = CallOutcome {
        of,
        time_ns: time_ns + latency_ns,
        session,
        sequence: number * 2 + 1,
        status: "ok",
        code: None,
        latency_ns,
    };
    log.outcome(black_box(&outcome));
}

fn measure(calls: u64, batch: u64, counts_writes: bool) -> Duration {
    let dir = tempfile::tempdir().expect("a directory");
    let (instance, session) = (Uuid::new_v4(), Uuid::new_v4());
    let begin = Begin { time_ns: 1, instance, program: "bench", server: Some("github"), rules_version: "1f2e3d4c5b6a" };
    let mut log = AuditLog::begin(&dir.path().join("audit"), &begin).expect("a log");
    let mut spent = Duration::ZERO;
    let mut number = 0;
    while number < calls {
        let began = Instant::now();
        for _ in 0..batch.min(calls - number) {
            number += 1;
            call(&mut log, session, number);
        }
        let composed = began.elapsed();
        log.flush().expect("written");
        spent += if counts_writes { began.elapsed() } else { composed };
    }
    spent
}

fn audit(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("audit");
    group.bench_function("composed", |bench| bench.iter_custom(|calls| measure(calls, BATCH, false)));
    group.bench_function("written/64", |bench| bench.iter_custom(|calls| measure(calls, BATCH, true)));
    group.bench_function("written/1", |bench| bench.iter_custom(|calls| measure(calls, 1, true)));
    group.finish();
}

criterion_group!(benches, audit);
criterion_main!(benches);
