//! Both halves of a gateway's way, without a router: what stands between them is done here by hand.

use bytes::Bytes;
use mcp_filter::Filter;
use mcp_store::audit::{AuditLog, Begin};
use mcp_store::pages::Pages;
use mcp_store::{End, Recorded, Session, SessionHeader, StoreError, Transport};
use proptest::prelude::*;
use tempfile::TempDir;
use uuid::Uuid;

use super::*;
use crate::audit::Audit;
use crate::bus::{Bus, Event};
use crate::envelope::Behalf;
use crate::intercept::{Decision, HoldOptions, Intercept, Lasting, Mode, Owner};
use crate::pipeline::governance::tests::{call, rule, rules};
use crate::policy::rules::{Permission, Rules, VerdictKind};
use crate::record::{Evidence, OnStoreFailure, Recorder, RecorderOptions};

const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
/// Some readers take the first id, some the last.
const TWO_WAYS: &str = r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#;

struct Gateway {
    pipeline: Pipeline,
    client: Conversation,
    legs: [Conversation; 2],
    out: Outbox,
    dir: TempDir,
}

fn recorder(dir: &TempDir) -> Recorder {
    let header =
        SessionHeader { name: Some("gateway".into()), ..SessionHeader::begun(Uuid::from_u128(1), 0, Transport::Stdio) };
    let options = RecorderOptions { evidence: Evidence::Normal, on_failure: OnStoreFailure::Forward, on_synced: None };
    let path = dir.path().join("s.mcpseg");
    Recorder::begin(header, Box::new(move |_| path.clone()), options).expect("a recording")
}

impl Gateway {
    fn open() -> Self {
        let dir = TempDir::new().expect("a directory");
        let pipeline = Pipeline::new(recorder(&dir), Bus::default(), 1 << 20);
        Self::with(pipeline, dir)
    }

    fn by(rules: Rules) -> Self {
        let dir = TempDir::new().expect("a directory");
        let instance = Uuid::from_u128(7);
        let begin = Begin { time_ns: 1, instance, program: "mcp-proxy", server: None, rules_version: &rules.version };
        let log = AuditLog::begin(&dir.path().join("audit"), &begin).expect("a log");
        let audit = Audit::new(log, instance, None);
        let pipeline = Pipeline::new(recorder(&dir), Bus::default(), 1 << 20).governed_by(Arc::new(rules), audit);
        Self::with(pipeline, dir)
    }

    fn with(pipeline: Pipeline, dir: TempDir) -> Self {
        let (_, commands) = crate::commands();
        let mut pipeline = pipeline.governed_from(commands, Intercept::new(HoldOptions::default()));
        let client = pipeline.begin_entrance();
        let legs = ["a", "b"].map(|server| pipeline.begin_leg(server.into()));
        let mut gateway = Self { pipeline, client, legs, out: Outbox::default(), dir };
        gateway.client_says(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"ann's"}}}"#,
        );
        assert_eq!(gateway.leaves(Side::Server).len(), 1);
        gateway
    }

    fn client_says(&mut self, text: &str) {
        let message = Bytes::copy_from_slice(text.as_bytes());
        self.pipeline.pass_one(&mut self.client, Side::Client, Lane::PIPE, message, &mut self.out);
    }

    /// Passes something on to a server for the client.
    fn passes_on(&mut self, leg: usize, parent: u64, text: &str) {
        let behalf = Behalf { parent, speaker: self.client.speaker(), conversation: self.client.number() };
        let lane = Lane { behalf: Some(behalf), ..Lane::PIPE };
        let message = Bytes::copy_from_slice(text.as_bytes());
        self.pipeline.pass_one(&mut self.legs[leg], Side::Client, lane, message, &mut self.out);
    }

    fn server_says(&mut self, leg: usize, text: &str) {
        let message = Bytes::copy_from_slice(text.as_bytes());
        self.pipeline.pass_one(&mut self.legs[leg], Side::Server, Lane::PIPE, message, &mut self.out);
    }

    /// What has left for `side` since it was last asked.
    fn leaves(&mut self, side: Side) -> Vec<String> {
        for release in self.pipeline.holds.take_released() {
            let conversation = std::iter::once(&mut self.client).chain(&mut self.legs);
            conversation
                .filter(|conversation| conversation.number() == release.conversation)
                .for_each(|conversation| conversation.settle(&release));
            self.out.to(release.from.other()).extend(release.onward);
            self.out.to(release.from).extend(release.back);
        }
        self.out.to(side).drain(..).map(|out| String::from_utf8_lossy(out.frame().bytes).into_owned()).collect()
    }

    /// Whether a call reaches its server.
    fn reaches(&mut self, leg: usize, id: u32, tool: &str) -> bool {
        self.passes_on(leg, 0, &call(id, tool));
        self.leaves(Side::Client);
        !self.leaves(Side::Server).is_empty()
    }

    fn recorded(self) -> (Vec<Recorded>, TempDir) {
        self.pipeline.finish(&End::default()).1.expect("it ends well");
        let mut all = Vec::new();
        let session = Session::open_segment(&self.dir.path().join("s.mcpseg")).expect("a session");
        let read = session.for_each(|message| -> Result<(), StoreError> {
            all.push(message);
            Ok(())
        });
        read.expect("it can be read");
        (all, self.dir)
    }
}

fn listed(tools: &[&str]) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{}]}}}}"#, tools.join(","))
}

#[test]
fn what_a_client_says_is_neither_judged_nor_held_before_it_is_known_whom_it_is_for() {
    let mut gateway = Gateway::by(rules(vec![rule("nothing", "method:*", VerdictKind::Deny)]));
    gateway.pipeline.decisions().set_mode(Mode::Intercept, Owner::Command);
    let all = Filter::parse("tool:*").expect("a filter");
    gateway.pipeline.decisions().add_breakpoint(None, all, Owner::Command).expect("there is room");
    gateway.client_says(&call(1, "a__write"));
    assert_eq!(gateway.leaves(Side::Server), [call(1, "a__write")]);
    assert_eq!(gateway.pipeline.status().held.len(), 0);
    gateway.passes_on(0, 2, &call(9, "write"));
    assert_eq!(gateway.leaves(Side::Server), [""; 0]);
    assert!(gateway.leaves(Side::Client)[0].contains("Permission denied"));
}

#[test]
fn a_server_is_judged_under_its_own_name() {
    let mut gateway = Gateway::by(rules(vec![rule("not-a", "server:a tool:write", VerdictKind::Deny)]));
    gateway.passes_on(0, 0, &call(1, "write"));
    assert_eq!(gateway.leaves(Side::Server), [""; 0]);
    let denied: serde_json::Value = serde_json::from_str(&gateway.leaves(Side::Client)[0]).expect("JSON");
    assert_eq!((&denied["error"]["code"], &denied["error"]["data"]["server"]), (&(-32000).into(), &"a".into()));
    assert!(gateway.reaches(0, 2, "read") && gateway.reaches(1, 1, "write"));
}

#[test]
fn what_one_server_says_of_its_tools_counts_for_no_other() {
    let mut gateway = Gateway::by(Rules {
        hide_denied: true,
        ..rules(vec![rule("no-deletes", "op:delete or hint:destructive", VerdictKind::Deny)])
    });
    let (harmful, plain) = (r#"{"name":"go","annotations":{"destructiveHint":true}}"#, r#"{"name":"go"}"#);
    for (leg, tool) in [harmful, plain].into_iter().enumerate() {
        gateway.passes_on(leg, 0, ASK);
        gateway.server_says(leg, &listed(&[tool]));
    }
    assert_eq!(gateway.leaves(Side::Client), [listed(&[]), listed(&[plain])]);
    let speaker = gateway.client.speaker().clone();
    let [a, b] = &gateway.legs;
    assert!(gateway.pipeline.governance.hides(a, "tools/call", "go", &speaker));
    assert!(!gateway.pipeline.governance.hides(b, "tools/call", "go", &speaker));
    gateway.leaves(Side::Server);
    gateway.passes_on(0, 0, &call(2, "go"));
    assert!(!gateway.leaves(Side::Server).concat().contains("go"), "the server gets a call of no tool");
    let answer = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#;
    gateway.server_says(0, answer);
    assert_eq!(gateway.leaves(Side::Client), [answer]);
    assert!(gateway.reaches(1, 2, "go"));
}

/// A list that a gateway keeps for all of its clients is whole; what each of them may see is asked one by one.
#[test]
fn a_list_for_nobody_in_particular_hides_nothing() {
    let denied = rule("not-ann", "client:ann* tool:go", VerdictKind::Deny);
    let mut gateway = Gateway::by(Rules { hide_denied: true, ..rules(vec![denied]) });
    let ask = Bytes::from_static(ASK.as_bytes());
    gateway.pipeline.pass_one(&mut gateway.legs[0], Side::Client, Lane::PIPE, ask, &mut gateway.out);
    let list = listed(&[r#"{"name":"go"}"#]);
    gateway.server_says(0, &list);
    assert_eq!(gateway.leaves(Side::Client), [list]);
    let speaker = gateway.client.speaker().clone();
    assert!(gateway.pipeline.governance.hides(&gateway.legs[0], "tools/call", "go", &speaker));
    assert!(!gateway.pipeline.governance.hides(&gateway.legs[0], "tools/call", "go", &Speaker::default()));
}

#[test]
fn the_audit_names_the_server_and_whose_call_it_is() {
    let mut gateway = Gateway::by(rules(vec![rule("not-a", "server:a tool:write", VerdictKind::Deny)]));
    gateway.reaches(0, 1, "write");
    gateway.reaches(1, 1, "write");
    gateway.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#);
    let (_, dir) = gateway.recorded();
    let file = dir.path().join("audit").read_dir().expect("it is there").next().expect("a file").expect("a file");
    let text = std::fs::read_to_string(file.path()).expect("it can be read");
    let decisions: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .filter(|line| line["tool"] == "write")
        .map(|line| ["client", "server", "verdict"].map(|name| line[name].as_str().unwrap_or("-").to_owned()).join(" "))
        .collect();
    assert_eq!(decisions, ["ann's a deny", "ann's b allow"]);
    assert!(text.contains(r#""outcome":"ok""#), "{text}");
}

#[test]
fn recordings_say_what_a_message_was_made_of() {
    let mut gateway = Gateway::open();
    gateway.client_says(&call(5, "b__read"));
    let parent = gateway.out.to_server[0].sequence();
    gateway.leaves(Side::Server);
    gateway.passes_on(1, parent, &call(1, "read"));
    gateway.leaves(Side::Server);
    gateway.server_says(1, r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#);
    let said = gateway.out.to_client[0].sequence();
    gateway.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let (speaker, conversation) = (gateway.client.speaker().clone(), gateway.client.number());
    let answer = gateway.out.to_client[1].sequence();
    for (parent, text) in [
        (said, r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#),
        (answer, r#"{"jsonrpc":"2.0","id":5,"result":{}}"#),
    ] {
        let lane = Lane { behalf: Some(Behalf { parent, speaker: &speaker, conversation }), ..Lane::PIPE };
        let message = Bytes::copy_from_slice(text.as_bytes());
        gateway.pipeline.pass_one(&mut gateway.client, Side::Server, lane, message, &mut gateway.out);
    }
    let (all, dir) = gateway.recorded();
    let id = |sequence: u64| mcp_store::recorded::message_id(&Uuid::from_u128(1), sequence);
    type Links<'a> = (u64, Option<&'a str>, Option<u64>, Option<String>);
    let links = |message: &Recorded| -> (u64, Option<String>, Option<u64>, Option<String>) {
        let Recorded { sequence, parent, correlated_id, .. } = message.clone();
        (sequence, message.upstream.as_deref().map(str::to_owned), parent, correlated_id)
    };
    let expected: [Links<'_>; 7] = [
        (1, None, None, None),
        (2, None, None, None),
        (3, Some("b"), Some(2), None),
        (4, Some("b"), None, None),
        (5, Some("b"), None, Some(id(3))),
        (6, None, Some(4), None),
        (7, None, None, Some(id(2))),
    ];
    let expected: Vec<_> = expected.map(|(a, b, c, d)| (a, b.map(str::to_owned), c, d)).into();
    assert_eq!(all.iter().map(links).collect::<Vec<_>>(), expected);
    let mut pages = Pages::open(&dir.path().join("s.mcpseg"), None).expect("pages");
    let page = pages.after(2, 10, Some(&Filter::parse("server:b").expect("a filter"))).expect("a page");
    assert_eq!(page.messages.iter().map(|told| links(&told.recorded)).collect::<Vec<_>>(), &expected[2..5]);
    assert_eq!((page.messages[0].answers, page.messages[2].answers), (None, Some(3)));
    let clients = |page: &mcp_store::pages::Page| -> Vec<Option<String>> {
        page.messages.iter().map(|told| told.client.as_deref().map(str::to_owned)).collect()
    };
    let ann = Some("ann's".to_owned());
    assert_eq!(clients(&page), [ann.clone(), None, ann]);
}

#[test]
fn what_is_only_remembered_says_the_same() {
    let mut pipeline = Pipeline::new(Recorder::in_memory(), Bus::default(), 1 << 20);
    let mut events = pipeline.journal.bus().subscribe(10);
    let (client, mut leg) = (pipeline.begin_entrance(), pipeline.begin_leg("a".into()));
    let behalf = Behalf { parent: 77, speaker: client.speaker(), conversation: client.number() };
    let lane = Lane { behalf: Some(behalf), ..Lane::PIPE };
    pipeline.pass_one(&mut leg, Side::Client, lane, Bytes::from(call(1, "x")), &mut Outbox::default());
    pipeline.journal.note(&leg, Side::Server, "it broke");
    let looked = pipeline.journal.recorder().backlog().expect("a backlog").look();
    let told: Vec<Event> = looked.events().chain(std::iter::from_fn(|| events.try_next())).collect();
    let links: Vec<_> = told
        .into_iter()
        .map(|event| match event {
            Event::Message { upstream, parent, correlated, .. } => (upstream, parent, correlated),
            Event::Fault { upstream, .. } => (upstream, None, None),
            other => panic!("{other:?}"),
        })
        .collect();
    let (message, fault) = ((Some("a".into()), Some(77), None), (Some("a".into()), None, None));
    assert_eq!(links, [message.clone(), fault.clone(), message, fault]);
}

fn behind(id: u32, arguments: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"hub","arguments":{arguments}}}}}"#)
}

#[test]
fn a_server_that_is_looked_behind_is_judged_by_what_is_used() {
    let governing = rules(vec![
        rule("no-deletes", "op:delete or hint:destructive", VerdictKind::Deny),
        rule("reads", "op:read", VerdictKind::Allow),
        rule("careful", "tool:send*", VerdictKind::Ask),
    ]);
    let mut gateway = Gateway::by(Rules { default: Permission::Deny, hide_denied: true, ..governing });
    let leg = &gateway.legs[0];
    gateway.pipeline.governance.unwrap_leg(leg, "hub");
    gateway.pipeline.governance.learn_tools(
        leg,
        br#"{"result":{"tools":[{"name":"get_rid","annotations":{"destructiveHint":true}},{"name":"get_it"}]}}"#,
    );
    assert!(gateway.pipeline.governance.hides(leg, "tools/call", "get_rid", gateway.client.speaker()));
    gateway.pipeline.decisions().set_watchers(1);
    let tool = |name: &str| format!(r#"{{"action":"call","type":"tool","path":"{name}"}}"#);
    // On the other leg the tool is one like any other, and denied: the server gets a call of no tool.
    for (leg, arguments, passes) in [
        (0, tool("get_it"), true),
        (1, tool("get_it"), false),
        (0, tool("delete_it"), false),
        (0, tool("get_rid"), false),
        (0, tool("update_it"), false),
        (0, r#"{"action":"list","type":"tool"}"#.into(), true),
        (1, r#"{"action":"list","type":"tool"}"#.into(), false),
        (0, r#"{"action":"call","type":"resource","path":"a:b"}"#.into(), true),
        (0, r#"{"action":"dance"}"#.into(), false),
    ] {
        gateway.passes_on(leg, 0, &behind(1, &arguments));
        let sent = gateway.leaves(Side::Server);
        assert_eq!(sent.concat().contains("hub"), passes, "{leg} {arguments}");
        assert_eq!(gateway.leaves(Side::Client).len(), usize::from(sent.is_empty()), "{leg} {arguments}");
        gateway.server_says(leg, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#);
        gateway.leaves(Side::Client);
    }
    gateway.passes_on(0, 0, &behind(2, &tool("send_mail")));
    let held = gateway.pipeline.status().held;
    let approved = Decision::Approve { lasting: Lasting::Session, edited: None };
    gateway.pipeline.decisions().decide(held[0].sequence, approved, "Ann").expect("it is asked");
    assert_eq!(gateway.leaves(Side::Server), [behind(2, &tool("send_mail"))]);
    let answered = &gateway.pipeline.governance.answers().said()[0];
    assert_eq!((&*answered.method, answered.subject.as_deref()), ("tools/call", Some("send_mail")));
}

#[test]
fn who_waits_for_a_tool_waits_for_it_behind_another() {
    let mut gateway = Gateway::open();
    let filter = Filter::parse("tool:delete*").expect("a filter");
    gateway.pipeline.decisions().add_breakpoint(None, filter, Owner::Command).expect("there is room");
    gateway.passes_on(0, 0, &behind(1, r#"{"action":"call","type":"tool","path":"get_it"}"#));
    assert_eq!(gateway.leaves(Side::Server).len(), 1);
    gateway.passes_on(0, 0, &behind(2, r#"{"action":"call","type":"tool","path":"delete_it"}"#));
    assert_eq!(gateway.leaves(Side::Server).len(), 0);
    assert_eq!(gateway.pipeline.status().held.len(), 1);
}

#[test]
fn what_can_be_read_two_ways_gets_neither_in_nor_out() {
    for rules in [None, Some(rules(Vec::new()))] {
        let mut gateway = rules.map_or_else(Gateway::open, Gateway::by);
        gateway.client_says(TWO_WAYS);
        assert_eq!(gateway.leaves(Side::Server), [""; 0]);
        let refused = gateway.leaves(Side::Client);
        assert!(refused.len() == 1 && refused[0].contains("-32600"), "{refused:?}");

        gateway.server_says(0, r#"{"jsonrpc":"2.0","method":"notifications/x","method":"notifications/y"}"#);
        assert_eq!(gateway.leaves(Side::Client), [""; 0]);
        gateway.passes_on(0, 0, &call(1, "x"));
        gateway.server_says(0, r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#);
        let answers = gateway.leaves(Side::Client);
        assert!(answers.len() == 1 && answers[0].contains(r#""id":1,"error""#), "{answers:?}");
        let (all, _dir) = gateway.recorded();
        let dropped = all.iter().find(|message| message.raw.windows(2).any(|word| word == b"/y")).expect("recorded");
        assert!(!dropped.went_on() && dropped.why.is_some(), "{dropped:?}");
    }
}

#[test]
fn batches_get_in_where_the_revision_has_them() {
    let batch = format!("[{},{}]", call(1, "a__x"), call(2, "b__x"));
    let mut gateway = Gateway::open();
    gateway.client_says(&batch);
    assert_eq!(gateway.leaves(Side::Server), [""; 0]);
    assert!(gateway.leaves(Side::Client)[0].contains("-32600"));

    gateway.client = gateway.pipeline.begin_entrance();
    gateway.client_says(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","clientInfo":{"name":"bob's"}}}"#,
    );
    gateway.leaves(Side::Server);
    gateway.client_says(&batch);
    assert_eq!(gateway.leaves(Side::Server), [batch]);
    gateway.client_says(&format!("[{},{TWO_WAYS}]", call(1, "a__x")));
    assert_eq!(gateway.leaves(Side::Server), [""; 0]);
}

#[tokio::test]
async fn a_breakpoint_holds_what_is_for_its_server_until_the_client_leaves() {
    let mut gateway = Gateway::open();
    let filter = Filter::parse("server:b client:ann*").expect("a filter");
    gateway.pipeline.decisions().add_breakpoint(None, filter, Owner::Command).expect("there is room");
    assert!(gateway.reaches(0, 1, "x"));
    gateway.passes_on(1, 0, &call(1, "x"));
    let held = gateway.pipeline.status().held;
    assert_eq!(held.len(), 1);
    assert_eq!((held[0].upstream.as_deref(), held[0].behalf), (Some("b"), Some(gateway.client.number())));
    gateway.pipeline.decisions().decide(held[0].sequence, Decision::Forward, "Ann").expect("it is held");
    assert_eq!(gateway.leaves(Side::Server).len(), 1);
    // Its answer is for the same client.
    gateway.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!((gateway.pipeline.status().held.len(), gateway.leaves(Side::Client).len()), (1, 0));
    gateway.pipeline.client_is_gone(gateway.client.number());
    assert_eq!((gateway.pipeline.status().held.len(), gateway.leaves(Side::Client).len()), (0, 0));
}

/// What somebody permitted of one server is still asked about another.
#[tokio::test]
async fn an_answer_counts_for_the_server_that_was_asked_about() {
    let mut gateway = Gateway::by(rules(vec![rule("ask", "tool:write", VerdictKind::Ask)]));
    gateway.pipeline.decisions().set_watchers(1);
    gateway.passes_on(0, 0, &call(1, "write"));
    let held = gateway.pipeline.status().held;
    let yes = Decision::Approve { lasting: Lasting::Session, edited: None };
    gateway.pipeline.decisions().decide(held[0].sequence, yes, "Ann").expect("it is asked about");
    assert_eq!(gateway.leaves(Side::Server).len(), 1);
    assert!(gateway.reaches(0, 2, "write"));
    assert!(!gateway.reaches(1, 1, "write"));
    assert_eq!(gateway.pipeline.status().held[0].upstream.as_deref(), Some("b"));
}

proptest! {
    // Each makes files.
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is denied of one server, the other's tool of the same name does what it would alone.
    #[test]
    fn servers_do_not_free_or_deny_each_other(
        written in prop::collection::vec((prop::bool::ANY, 0..3usize, 0..3usize), 0..5),
        default in prop_oneof![Just(Permission::Allow), Just(Permission::Deny)],
        hints in prop::array::uniform2(prop::option::of(prop::bool::ANY)),
        order in prop::collection::vec((0..2usize, 0..3usize), 1..8),
    ) {
        const TOOLS: [&str; 3] = ["read_x", "delete_x", "go"];
        let filters = |server: &str| written.iter().map(|(_, whom, what)| {
            let what = ["tool:go", "(op:delete or hint:destructive)", "tool:*"][*what];
            match ["a", "b", "both"][*whom] {
                "both" => Some(what.to_owned()),
                whom if server == "both" => Some(format!("server:{whom} {what}")),
                whom => (whom == server).then(|| what.to_owned()),
            }
        }).collect::<Vec<_>>();
        let ruled = |server: &str| {
            let all = filters(server).into_iter().zip(&written).enumerate();
            let all = all.filter_map(|(at, (filter, (is_allowed, ..)))| {
                let verdict = if *is_allowed { VerdictKind::Allow } else { VerdictKind::Deny };
                Some(rule(&format!("r{at}"), &filter?, verdict))
            });
            Rules { default, ..rules(all.collect()) }
        };
        let list = |hint: Option<bool>| {
            let said = hint.map_or(String::new(), |hint| format!(r#","annotations":{{"destructiveHint":{hint}}}"#));
            listed(&[&format!(r#"{{"name":"go"{said}}}"#)])
        };
        let mut both = Gateway::by(ruled("both"));
        let mut alone = ["a", "b"].map(|server| Gateway::by(ruled(server)));
        for (leg, hint) in hints.into_iter().enumerate() {
            for gateway in [&mut both, &mut alone[leg]] {
                gateway.passes_on(leg, 0, ASK);
                gateway.server_says(leg, &list(hint));
                gateway.leaves(Side::Server);
                gateway.leaves(Side::Client);
            }
        }
        for (id, (leg, tool)) in (2..).zip(order) {
            prop_assert_eq!(both.reaches(leg, id, TOOLS[tool]), alone[leg].reaches(leg, id, TOOLS[tool]));
        }
    }
}
