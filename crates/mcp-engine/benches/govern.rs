//! What it costs to judge calls and to write down what was decided: a batch of calls as one read of a
//! pipe brings it, and the answers to them.

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mcp_engine::audit::Audit;
use mcp_engine::policy::operation::Classifier;
use mcp_engine::policy::rules::{Denial, Permission, Rule, Rules, VerdictKind};
use mcp_engine::{Bus, Conversation, Outbox, Pipeline, Recorder, Side};
use mcp_filter::Filter;
use mcp_store::audit::{AuditLog, Begin};
use mcp_wire::{Cut, Ending, Frame};
use tempfile::TempDir;
use uuid::Uuid;

const BATCH: u64 = 64;
const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#;
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"bench","version":"0"}}}"#;

/// What rules are about.
#[derive(Clone, Copy)]
enum About {
    Tools,
    Arguments,
}

fn rules(count: usize, about: About) -> Rules {
    let rule = |number: usize| {
        let filter = match about {
            About::Tools => format!("tool:drop_{number}_*"),
            About::Arguments => format!("tool:echo $.params.arguments.text ^= \"/{number}\""),
        };
        Rule {
            name: format!("rule-{number}").into(),
            filter: Filter::parse(&filter).expect("a filter"),
            verdict: VerdictKind::Deny,
            message: None,
            timeout: None,
            on_timeout: Permission::Deny,
        }
    };
    Rules {
        rules: (0..count).map(rule).collect(),
        default: Permission::Allow,
        classifier: Classifier::default(),
        hide_denied: false,
        denial: Denial::Error,
        audit_required: false,
        server: None,
        version: "00000000".into(),
    }
}

struct Play {
    pipeline: Pipeline,
    conversation: Conversation,
    out: Outbox,
    _dir: TempDir,
}

impl Play {
    fn new(rules: Option<Rules>) -> Self {
        let dir = TempDir::new().expect("a directory");
        let mut pipeline = Pipeline::new(Recorder::off(), Bus::default(), 1 << 20);
        if let Some(rules) = rules {
            let instance = Uuid::new_v4();
            let begin = Begin { time_ns: 1, instance, program: "bench", server: None, rules_version: &rules.version };
            let log = AuditLog::begin(&dir.path().join("audit"), &begin).expect("a log");
            pipeline = pipeline.governed_by(Arc::new(rules), Audit::new(log, instance, None));
        }
        let conversation = pipeline.begin_conversation();
        let mut play = Self { pipeline, conversation, out: Outbox::default(), _dir: dir };
        play.round(&[Bytes::from_static(INITIALIZE)], &[Bytes::from_static(INITIALIZED)]);
        play
    }

    fn round(&mut self, calls: &[Bytes], answers: &[Bytes]) {
        for (from, messages) in [(Side::Client, calls), (Side::Server, answers)] {
            let cuts =
                messages.iter().map(|bytes| Cut::Frame(Frame { bytes: bytes.clone(), ending: Ending::Lf, bom: false }));
            self.pipeline.pass(&mut self.conversation, from, cuts, &mut self.out);
            assert_eq!(self.out.to_server.len() + self.out.to_client.len(), messages.len());
            black_box(&self.out);
            self.out.clear();
            self.pipeline.commit().expect("it commits");
        }
    }
}

fn govern(c: &mut Criterion) {
    let call = |id: u64| {
        let params = r#"{"name":"echo","arguments":{"text":"hello"}}"#;
        Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#))
    };
    let answer = |id: u64| {
        let content = r#"[{"type":"text","text":"hello"}]"#;
        Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":{content},"isError":false}}}}"#))
    };
    let calls: Vec<Bytes> = (0..BATCH).map(call).collect();
    let answers: Vec<Bytes> = (0..BATCH).map(answer).collect();
    let mut group = c.benchmark_group("govern");
    group.throughput(Throughput::Elements(BATCH));
    let mut measure = |name: &str, rules: Option<Rules>| {
        let mut play = Play::new(rules);
        group.bench_function(name, |bencher| bencher.iter(|| play.round(&calls, &answers)));
    };
    measure("without rules", None);
    for count in [10, 100, 1_000] {
        measure(&format!("{count} rules about tools"), Some(rules(count, About::Tools)));
        measure(&format!("{count} rules about arguments"), Some(rules(count, About::Arguments)));
    }
}

criterion_group!(benches, govern);
criterion_main!(benches);
