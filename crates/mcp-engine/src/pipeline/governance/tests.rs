//! Governed conversations, without a transport.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_filter::Filter;
use mcp_store::audit::{AuditLog, Begin};
use mcp_wire::{Cut, Ending, Frame};
use tempfile::TempDir;
use uuid::Uuid;

use super::*;
use crate::audit::Audit;
use crate::bus::Bus;
use crate::intercept::{Answer, Decision, Lasting};
use crate::pipeline::{Outbox, Pipeline};
use crate::policy::Answered;
use crate::policy::operation::Classifier;
use crate::policy::rules::{Permission, Rule, Rules};
use crate::record::Recorder;

pub(crate) struct Play {
    pub pipeline: Pipeline,
    pub conversation: Conversation,
    pub out: Outbox,
    dir: TempDir,
}

pub(crate) fn rule(name: &str, filter: &str, verdict: VerdictKind) -> Rule {
    Rule {
        name: name.into(),
        filter: Filter::parse(filter).expect("a filter"),
        verdict,
        message: Some("ask Ann".into()),
        timeout: None,
        on_timeout: Permission::Deny,
    }
}

pub(crate) fn rules(rules: Vec<Rule>) -> Rules {
    Rules {
        rules,
        default: Permission::Allow,
        classifier: Classifier::default(),
        hide_denied: false,
        denial: Denial::Error,
        audit_required: false,
        server: Some("files".into()),
        version: "cafe".into(),
    }
}

fn deny_deletes() -> Rules {
    rules(vec![rule("no-deletes", "op:delete", VerdictKind::Deny)])
}

impl Play {
    pub(crate) fn by(rules: Rules) -> Self {
        let dir = TempDir::new().expect("a directory");
        let instance = Uuid::from_u128(7);
        let begin =
            Begin { time_ns: 1, instance, program: "mcp-proxy", server: Some("files"), rules_version: &rules.version };
        let log = AuditLog::begin(&dir.path().join("audit"), &begin).expect("a log");
        let audit = Audit::new(log, instance, Some("files".into()));
        let mut pipeline = Pipeline::new(Recorder::off(), Bus::default(), 1 << 20).governed_by(Arc::new(rules), audit);
        let conversation = pipeline.begin_conversation();
        Self { pipeline, conversation, out: Outbox::default(), dir }
    }

    pub(crate) fn sends(&mut self, from: Side, text: &str) {
        let frame = Frame { bytes: Bytes::copy_from_slice(text.as_bytes()), ending: Ending::Lf, bom: false };
        self.pipeline.pass(&mut self.conversation, from, [Cut::Frame(frame)], &mut self.out);
        self.release();
    }

    pub(crate) fn calls(&mut self, id: u32, tool: &str) {
        self.sends(Side::Client, &call(id, tool));
    }

    pub(crate) fn release(&mut self) {
        for release in self.pipeline.holds.take_released() {
            self.conversation.settle(&release);
            self.out.to_client.extend(release.unasks);
            self.out.to(release.from.other()).extend(release.onward);
            self.out.to(release.from).extend(release.back);
        }
    }

    pub(crate) fn decides(&mut self, decision: Decision) -> Result<(), DecideError> {
        let held = self.pipeline.status().held;
        let decided = self.pipeline.decisions().decide(held[0].sequence, decision, "Ann");
        self.release();
        decided
    }

    pub(crate) fn got(&mut self, side: Side) -> Vec<String> {
        self.out.to(side).drain(..).map(|out| String::from_utf8_lossy(out.frame().bytes).into_owned()).collect()
    }

    /// Ends the run. What the audit has comes back, without what differs from run to run.
    pub(crate) fn audited(self) -> Vec<String> {
        let (_, ended) = self.pipeline.finish(&mcp_store::End::default());
        ended.expect("the log ends well");
        let file = self
            .dir
            .path()
            .join("audit")
            .read_dir()
            .expect("it is there")
            .next()
            .expect("a file")
            .expect("it is there");
        let text = std::fs::read_to_string(file.path()).expect("it can be read");
        let parts = ["kind", "tool", "operation", "verdict", "rule", "actor", "outcome"];
        let told = |line: &serde_json::Value| {
            parts.iter().filter_map(|name| line[name].as_str()).collect::<Vec<_>>().join(" ")
        };
        let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        // Calls that share a line are told one by one.
        lines
            .flat_map(|line: serde_json::Value| match line["calls"].as_array() {
                Some(calls) => calls.iter().map(|call| format!("outcome {}", told(call))).collect(),
                None => vec![told(&line)],
            })
            .collect()
    }
}

pub(crate) fn call(id: u32, tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#)
}

#[test]
fn a_denied_call_is_answered_and_reaches_nobody() {
    let mut play = Play::by(deny_deletes());
    play.calls(1, "delete_repo");
    assert_eq!(play.got(Side::Server), [""; 0]);
    let answers = play.got(Side::Client);
    let answer: serde_json::Value = serde_json::from_str(&answers[0]).expect("JSON");
    assert_eq!(answer["error"]["code"], -32000);
    assert_eq!(
        answer["error"]["message"],
        "Permission denied by rule \"no-deletes\": ask Ann. A retry will not help; ask the user."
    );
    let data = &answer["error"]["data"];
    assert_eq!(data["tool"], "delete_repo");
    assert_eq!(data["operation"], "delete");
    assert_eq!(data["server"], "files");
    assert_eq!(data["audit_id"], "00000000-0000-0000-0000-000000000007/2");
    assert_eq!(play.conversation.open_calls(Side::Client), 0);

    play.calls(2, "list_repos");
    assert_eq!(play.got(Side::Server), [call(2, "list_repos")]);
    play.sends(Side::Server, r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#);
    assert_eq!(play.got(Side::Client).len(), 1);
    insta::assert_snapshot!(play.audited().join("\n"));
}

#[test]
fn what_can_be_read_two_ways_is_refused() {
    let mut play = Play::by(deny_deletes());
    for attack in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list","name":"delete_repo"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list","Name":"delete_repo"}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"delete_repo"}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list"}}]"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"list"}}"#,
        "garbage",
    ] {
        play.sends(Side::Client, attack);
        assert_eq!(play.got(Side::Server), [""; 0], "{attack}");
        let answers = play.got(Side::Client);
        if attack.contains("\"id\"") || attack == "garbage" {
            assert!(answers[0].contains("-32600"), "{attack}: {answers:?}");
        }
    }
    play.calls(9, "list_repos");
    assert_eq!(play.got(Side::Server).len(), 1);
}

#[test]
fn where_judging_goes_wrong_nothing_is_permitted() {
    let mut play = Play::by(rules(Vec::new()));
    play.pipeline.governance.policy.go_wrong();
    play.calls(1, "read_file");
    assert_eq!(play.got(Side::Server), [""; 0]);
    let told = play.got(Side::Client);
    assert!(told[0].contains("the rules could not be applied to it"), "{told:?}");
    assert_eq!(play.audited()[1], "decision read_file deny proxy");
}

#[test]
fn plumbing_passes_a_rule_that_denies_everything() {
    let mut play = Play::by(rules(vec![rule("nothing", "", VerdictKind::Deny)]));
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#,
    ] {
        play.sends(Side::Client, text);
        assert_eq!(play.got(Side::Server), [text]);
    }
    play.calls(4, "list_repos");
    assert_eq!(play.got(Side::Server), [""; 0]);
    let mut play = Play::by(rules(vec![rule("no-lists", "method:tools/list", VerdictKind::Deny)]));
    play.sends(Side::Client, r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#);
    assert_eq!(play.got(Side::Server), [""; 0]);
}

#[test]
fn arguments_decide_where_a_rule_is_about_them() {
    let rules = rules(vec![
        rule("etc", r#"tool:read_file $.params.arguments.path ^= "/etc""#, VerdictKind::Deny),
        rule("seen", "tool:read_*,other", VerdictKind::Observe),
        rule("files", "tool:read_file", VerdictKind::Allow),
    ]);
    let mut play = Play::by(Rules { default: Permission::Deny, ..rules });
    let reads = |path: &str| {
        let arguments = format!(r#"{{"path":"{path}"}}"#);
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"read_file","arguments":{arguments}}}}}"#
        )
    };
    play.sends(Side::Client, &reads("/etc/passwd"));
    play.sends(Side::Client, &reads("\\u002fetc/passwd"));
    assert_eq!(play.got(Side::Server), [""; 0]);
    play.sends(Side::Client, &reads("/home/a"));
    assert_eq!(play.got(Side::Server).len(), 1);
    play.calls(2, "other");
    assert_eq!(play.got(Side::Server), [""; 0]);
    insta::assert_snapshot!(play.audited().join("\n"));
}

#[test]
fn another_spelling_escapes_no_denial() {
    let mut play = Play::by(rules(vec![rule("no", "tool:drop_table", VerdictKind::Deny)]));
    for tool in ["drop_table", "DROP_TABLE", "drop_table\\u0000", "drop\\u200b_table", "drop_t\\u0430ble"] {
        play.calls(1, tool);
        assert_eq!(play.got(Side::Server), [""; 0], "{tool}");
    }
}

pub(crate) fn asking(timeout: Option<Duration>) -> Rules {
    rules(vec![Rule { timeout, ..rule("careful", "op:write", VerdictKind::Ask) }])
}

#[tokio::test]
async fn a_question_goes_on_only_if_somebody_says_so() {
    let mut play = Play::by(asking(None));
    // Nobody is there.
    play.calls(1, "write_file");
    assert_eq!(play.got(Side::Server), [""; 0]);
    assert!(play.got(Side::Client)[0].contains("nobody is there to ask"));
    // Somebody is.
    play.pipeline.decisions().set_watchers(1);
    play.calls(2, "write_file");
    assert_eq!((play.got(Side::Server), play.got(Side::Client)), (vec![], vec![]));
    assert!(matches!(play.decides(Decision::Forward), Err(DecideError::IsAsked(..))));
    assert_eq!(play.pipeline.decisions().release_all("Ann"), 0);
    assert_eq!(play.decides(Decision::Approve { lasting: Lasting::Once, edited: None }), Ok(()));
    assert_eq!(play.got(Side::Server), [call(2, "write_file")]);
    play.calls(3, "write_file");
    let message = Some("not now".to_owned());
    assert_eq!(play.decides(Decision::Deny { lasting: Lasting::Once, message }), Ok(()));
    assert_eq!(play.got(Side::Server), [""; 0]);
    assert!(play.got(Side::Client)[0].contains("not now"));
    // Once for all.
    play.calls(4, "write_file");
    assert_eq!(play.decides(Decision::Approve { lasting: Lasting::Session, edited: None }), Ok(()));
    play.calls(5, "write_file");
    assert_eq!(play.got(Side::Server).len(), 2);
    play.calls(6, "write_other");
    assert_eq!(play.got(Side::Server).len(), 0);
    // Who could have answered leaves.
    play.pipeline.decisions().set_watchers(0);
    play.release();
    assert!(play.got(Side::Client)[0].contains("nobody is there to ask"));
    assert_eq!(play.conversation.open_calls(Side::Client), 3);
    insta::assert_snapshot!(play.audited().join("\n"));
}

#[tokio::test]
async fn an_edit_answers_a_question_but_not_a_denial() {
    let mut rules = asking(Some(Duration::from_secs(5)));
    rules.rules.insert(0, rule("never", "tool:format_disk", VerdictKind::Deny));
    let mut play = Play::by(rules);
    play.calls(1, "write_file");
    let edited = |tool| Some(Bytes::from(call(1, tool)));
    let refused = play.decides(Decision::Approve { lasting: Lasting::Once, edited: edited("format_disk") });
    assert!(matches!(refused, Err(DecideError::Denied(_))));
    assert_eq!(play.pipeline.status().held.len(), 1);
    assert_eq!(play.decides(Decision::Approve { lasting: Lasting::Once, edited: edited("write_log") }), Ok(()));
    assert_eq!(play.got(Side::Server), [call(1, "write_log")]);
}

#[tokio::test]
async fn what_is_written_counts_until_it_is_written_otherwise() {
    let mut play = Play::by(asking(Some(Duration::from_secs(5))));
    play.calls(1, "write_file");
    let sequence = play.pipeline.status().held[0].sequence;
    let written =
        play.pipeline.decisions().lasting_answer(sequence, Lasting::Rule, Permission::Allow, "Ann").unwrap().unwrap();
    assert_eq!(
        (&*written.rule, &*written.method, written.subject.as_deref()),
        ("careful", "tools/call", Some("write_file"))
    );
    assert_eq!(play.decides(Decision::Approve { lasting: Lasting::Rule, edited: None }), Ok(()));
    assert_eq!(play.pipeline.governance.answers().written(), [written]);
    play.calls(2, "write_file");
    assert_eq!(play.got(Side::Server).len(), 2);
    // What is said for this run goes before what is written, and is forgotten with what is written next.
    let otherwise =
        Answered { permission: Permission::Deny, ..play.pipeline.governance.answers().written()[0].clone() };
    play.pipeline.governance.answers.keep(otherwise);
    play.calls(3, "write_file");
    assert_eq!((play.got(Side::Server).len(), play.got(Side::Client).len()), (0, 1));
    play.pipeline.governance.set_written_answers(Vec::new());
    play.calls(4, "write_file");
    assert_eq!((play.got(Side::Server).len(), play.got(Side::Client).len()), (0, 1));
    // A rule of another name was not asked about.
    let other = Answered {
        rule: "other".into(),
        permission: Permission::Allow,
        ..play.pipeline.governance.answers().said()[0].clone()
    };
    play.pipeline.governance.set_written_answers(vec![Answered { subject: Some("write_log".into()), ..other }]);
    play.calls(5, "write_log");
    assert_eq!((play.got(Side::Server).len(), play.pipeline.status().held.len()), (0, 1));
}

#[tokio::test]
async fn some_answers_count_once_only() {
    let mut play = Play::by(asking(Some(Duration::from_secs(5))));
    play.calls(1, "write_file");
    let edited = Some(Bytes::from(call(1, "write_log")));
    let refused = play.decides(Decision::Approve { lasting: Lasting::Session, edited });
    assert!(matches!(refused, Err(DecideError::OnlyOnce(..))));
    assert_eq!(play.decides(Decision::Deny { lasting: Lasting::Once, message: None }), Ok(()));
    play.calls(2, &format!("write_{}", "x".repeat(5_000)));
    for lasting in [Lasting::Session, Lasting::Rule] {
        assert!(matches!(play.decides(Decision::Approve { lasting, edited: None }), Err(DecideError::OnlyOnce(..))));
        assert!(matches!(play.decides(Decision::Deny { lasting, message: None }), Err(DecideError::OnlyOnce(..))));
    }
    assert_eq!(play.got(Side::Server), [""; 0]);
    assert_eq!(play.decides(Decision::Approve { lasting: Lasting::Once, edited: None }), Ok(()));
    assert!(
        play.pipeline.governance.answers().said().is_empty() && play.pipeline.governance.answers().written().is_empty()
    );
}

/// However a question ends, the audit says that nothing was permitted.
#[tokio::test]
async fn questions_without_an_answer_are_written_down() {
    let mut play = Play::by(asking(Some(Duration::from_secs(5))));
    play.calls(1, "write_file");
    play.sends(Side::Client, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    play.calls(2, "write_file");
    for error in [None, Some((1, "no".into()))] {
        assert!(matches!(play.decides(Decision::Drop { error }), Err(DecideError::IsAsked(..))));
    }
    assert_eq!(play.decides(Decision::Deny { lasting: Lasting::Once, message: None }), Ok(()));
    play.calls(3, "write_file");
    assert_eq!(play.decides(Decision::Answer(Answer::Result("{}".into()))), Ok(()));
    play.calls(4, "write_file");
    play.pipeline.client_is_gone(play.conversation.number());
    assert_eq!(play.got(Side::Server), [""; 0]);
    insta::assert_snapshot!(play.audited().join("\n"));
}

#[tokio::test]
async fn whoever_wants_to_is_told_of_questions() {
    let mut play = Play::by(asking(Some(Duration::from_secs(5))));
    let (told, questions) = std::sync::mpsc::sync_channel(8);
    play.pipeline.questions.tell(move |held| told.try_send(held).expect("room"));
    play.calls(1, "write_file");
    play.calls(2, "list_files");
    let held = questions.try_recv().expect("a question");
    assert_eq!(held.asks.map(|ruling| ruling.name().to_owned()).as_deref(), Some("careful"));
    assert!(questions.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn time_decides_as_the_rule_says() {
    let second = Some(Duration::from_secs(1));
    for (watchers, on_timeout, passes) in
        [(1, Permission::Deny, false), (1, Permission::Allow, true), (0, Permission::Allow, false)]
    {
        let mut rules = asking(second);
        rules.rules[0].on_timeout = on_timeout;
        let mut play = Play::by(rules);
        play.pipeline.decisions().set_watchers(watchers);
        play.calls(1, "write_file");
        tokio::time::advance(Duration::from_millis(1_001)).await;
        play.pipeline.decisions().release_overdue();
        play.release();
        assert_eq!(play.got(Side::Server).len(), usize::from(passes));
        assert_eq!(play.got(Side::Client).len(), usize::from(!passes));
    }
}

#[test]
fn batches_are_judged_item_by_item_where_there_are_any() {
    let mut play = Play::by(deny_deletes());
    play.sends(
        Side::Client,
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}"#,
    );
    play.sends(Side::Server, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26"}}"#);
    drop((play.got(Side::Server), play.got(Side::Client)));
    let batch = format!("[{},{},{}]", call(2, "list_repos"), call(3, "read_file"), call(6, "read_log"));
    play.sends(Side::Client, &batch);
    assert_eq!(play.got(Side::Server), [batch]);
    // Answers may come together, or one by one.
    play.sends(Side::Server, r#"[{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no"}}]"#);
    play.sends(Side::Server, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    drop(play.got(Side::Client));
    play.sends(Side::Client, &format!("[{},{}]", call(4, "list_repos"), call(5, "delete_repo")));
    assert_eq!(play.got(Side::Server), [""; 0]);
    let answers: Vec<serde_json::Value> = serde_json::from_str(&play.got(Side::Client)[0]).expect("an array");
    assert_eq!(answers.iter().map(|answer| &answer["id"]).collect::<Vec<_>>(), [4, 5]);
    let told = answers[0]["error"]["message"].as_str().expect("a text");
    assert!(told.starts_with("mcp-proxy: not sent") && told.ends_with("Send this one again by itself"), "{told}");
    insta::assert_snapshot!(play.audited().join("\n"));
}

#[test]
fn a_server_is_judged_as_well() {
    let mut play = Play::by(rules(vec![rule("no-sampling", "method:sampling/*", VerdictKind::Deny)]));
    play.sends(Side::Server, r#"{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{}}"#);
    assert_eq!(play.got(Side::Client), [""; 0]);
    assert!(play.got(Side::Server)[0].contains("-32000"));
    play.calls(1, "list_repos");
    play.got(Side::Server);
    play.sends(Side::Server, r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#);
    assert!(play.got(Side::Client)[0].contains("\"error\""));
}

#[test]
fn each_subscription_is_judged() {
    let listen = |list: &str| {
        let notifications = format!(r#"{{"notifications":{{"resourceSubscriptions":{list}}}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{notifications}}}"#)
    };
    let mut play = Play::by(rules(vec![
        rule("secrets", "tool:file:///secret*", VerdictKind::Deny),
        rule("drafts", "method:resources/subscribe tool:file:///draft*", VerdictKind::Ask),
    ]));
    let harmless = listen(r#"["file:///a","file:///b"]"#);
    play.sends(Side::Client, &harmless);
    assert_eq!(play.got(Side::Server), [harmless]);
    for denied in [r#"["file:///a","file:///secret/b"]"#, r#"["file:///draft","file:///a/../secret"]"#] {
        play.sends(Side::Client, &listen(denied));
        assert_eq!(play.got(Side::Server), [""; 0]);
        assert!(play.got(Side::Client)[0].contains("rule \\\"secrets\\\""));
    }
    play.pipeline.decisions().set_watchers(1);
    play.sends(Side::Client, &listen(r#"["file:///a","file:///draft"]"#));
    assert_eq!((play.got(Side::Server).len(), play.pipeline.status().held.len()), (0, 1));
}

#[tokio::test]
async fn an_approval_does_not_outlive_the_rules_that_asked() {
    let mut play = Play::by(asking(Some(Duration::from_secs(5))));
    play.pipeline.decisions().set_watchers(1);
    play.calls(1, "write_file");
    play.pipeline.set_rules(Arc::new(rules(vec![rule("never", "tool:write_file", VerdictKind::Deny)])));
    let refused = play.decides(Decision::Approve { lasting: Lasting::Session, edited: None });
    assert_eq!(refused, Err(DecideError::Denied("rule \"never\" denies it now".into())));
    assert!(play.pipeline.governance.answers().said().is_empty());
    assert_eq!((play.got(Side::Server).len(), play.pipeline.status().held.len()), (0, 1));
    play.pipeline.set_rules(Arc::new(asking(None)));
    assert_eq!(play.decides(Decision::Approve { lasting: Lasting::Once, edited: None }), Ok(()));
    assert_eq!(play.got(Side::Server), [call(1, "write_file")]);
}

#[tokio::test(start_paused = true)]
async fn time_permits_nothing_that_is_denied_by_now() {
    let mut asking = asking(Some(Duration::from_secs(1)));
    asking.rules[0].on_timeout = Permission::Allow;
    let mut play = Play::by(asking);
    play.pipeline.decisions().set_watchers(1);
    play.calls(1, "write_file");
    play.pipeline.set_rules(Arc::new(rules(vec![rule("never", "tool:write_file", VerdictKind::Deny)])));
    tokio::time::advance(Duration::from_millis(1_001)).await;
    play.pipeline.decisions().release_overdue();
    play.release();
    assert_eq!(play.got(Side::Server), [""; 0]);
    assert!(play.got(Side::Client)[0].contains("denies it now"));
}

impl Play {
    pub(crate) fn fills_disk(&mut self, is_full: bool) {
        self.pipeline.journal.audit_mut().is_full = is_full;
    }
}

/// Whichever way a message would have gone on.
#[tokio::test]
async fn what_cannot_be_written_down_stays_where_that_is_required() {
    let mut rules = asking(Some(Duration::from_secs(5)));
    rules.audit_required = true;
    let mut play = Play::by(rules);
    let filter = Filter::parse("tool:read_held").expect("a filter");
    play.pipeline.decisions().add_breakpoint(None, filter, crate::intercept::Owner::Command).expect("a breakpoint");
    // Held while the disk has room, and edited when it has none.
    play.calls(1, "read_held");
    play.fills_disk(true);
    let raw = Bytes::from(call(1, "read_other"));
    assert_eq!(play.decides(Decision::Modify { raw, raw_headers: false, not_json_rpc: false }), Ok(()));
    // At once, held, asked about.
    play.calls(2, "read_file");
    play.calls(3, "read_held");
    assert_eq!(play.pipeline.status().held.len(), 0);
    play.calls(4, "write_file");
    assert_eq!(play.decides(Decision::Approve { lasting: Lasting::Once, edited: None }), Ok(()));
    assert_eq!(play.got(Side::Server), [""; 0]);
    let answers = play.got(Side::Client);
    assert_eq!(answers.len(), 4);
    assert!(answers.iter().all(|answer| answer.contains("\"error\"")), "{answers:?}");
    // Sent by somebody else than the client, who hears nothing of it.
    let mut sent = play.pipeline.injections.inject(play.conversation.number(), Bytes::from(call(5, "read_file")));
    for injection in play.pipeline.injections.take() {
        play.pipeline.pass_injected(&mut play.conversation, Lane::PIPE, injection, &mut play.out);
    }
    play.release();
    assert_eq!((play.got(Side::Server), play.got(Side::Client)), (vec![], vec![]));
    assert!(sent.try_recv().expect("it was decided").is_err());
    assert_eq!(play.conversation.open_calls(Side::Client), 0);
    play.fills_disk(false);
    play.calls(6, "read_file");
    assert_eq!(play.got(Side::Server).len(), 1);
    insta::assert_snapshot!(play.audited().join("\n"));
}

#[tokio::test]
async fn an_edited_message_is_written_down_before_it_leaves() {
    let mut play = Play::by(rules(Vec::new()));
    let filter = Filter::parse("tool:read_held").expect("a filter");
    play.pipeline.decisions().add_breakpoint(None, filter, crate::intercept::Owner::Command).expect("a breakpoint");
    play.calls(1, "read_held");
    let raw = Bytes::from(call(1, "read_other"));
    assert_eq!(play.decides(Decision::Modify { raw, raw_headers: false, not_json_rpc: false }), Ok(()));
    assert!(!play.pipeline.journal.audit_mut().is_unsealed());
}

/// What a breakpoint holds was permitted, and yet it may never reach the server as it was.
#[tokio::test]
async fn what_somebody_does_to_a_permitted_call_is_its_outcome() {
    let check = |decision: Decision, expected: &[&str]| {
        let mut play = Play::by(rules(Vec::new()));
        let filter = Filter::parse("tool:read_held").expect("a filter");
        play.pipeline.decisions().add_breakpoint(None, filter, crate::intercept::Owner::Command).expect("a breakpoint");
        play.calls(1, "read_held");
        assert_eq!(play.decides(decision), Ok(()));
        play.sends(Side::Server, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        let audited = play.audited();
        assert_eq!(audited[2..audited.len() - 1], *expected, "{audited:?}");
    };
    let raw = Bytes::from(call(1, "read_other"));
    let other = ["decision read_other read allow Ann", "outcome replaced", "outcome ok"];
    check(Decision::Modify { raw, raw_headers: false, not_json_rpc: false }, &other);
    check(Decision::Drop { error: None }, &["outcome dropped"]);
    check(Decision::Drop { error: Some((1, "no".into())) }, &["outcome dropped"]);
    check(Decision::Answer(Answer::Result(Bytes::from_static(b"{}"))), &["outcome answered"]);
    check(Decision::Forward, &["outcome ok"]);
}

#[test]
fn calls_of_a_client_that_is_gone_are_lost_at_once() {
    let mut play = Play::by(rules(Vec::new()));
    play.calls(1, "read_file");
    play.pipeline.client_is_gone(play.conversation.number() + 1);
    play.sends(Side::Server, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    play.calls(2, "read_file");
    play.pipeline.client_is_gone(play.conversation.number());
    play.calls(3, "read_log");
    let decided = |tool| format!("decision {tool} read allow default");
    let expected = ["begin", &decided("read_file"), "outcome ok", &decided("read_file"), "outcome lost"];
    assert_eq!(play.audited()[..5], expected);
}

#[test]
fn what_somebody_else_sends_has_an_outcome() {
    let mut play = Play::by(rules(Vec::new()));
    let sent = play.pipeline.injections.inject(play.conversation.number(), Bytes::from(call(5, "read_file")));
    for injection in play.pipeline.injections.take() {
        play.pipeline.pass_injected(&mut play.conversation, Lane::PIPE, injection, &mut play.out);
    }
    drop(sent);
    play.sends(Side::Server, r#"{"jsonrpc":"2.0","id":"mcp-proxy-replay-1","result":{}}"#);
    assert_eq!(play.got(Side::Client), [""; 0]);
    assert_eq!(play.audited(), ["begin", "decision read_file read allow default", "outcome ok", "end"]);
}

#[test]
fn a_denied_call_takes_no_outcome_from_another_under_its_id() {
    let mut play = Play::by(deny_deletes());
    play.calls(1, "list_repos");
    play.calls(1, "delete_repo");
    play.sends(Side::Server, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let audited = play.audited();
    assert!(audited.contains(&"outcome ok".to_owned()), "{audited:?}");
}

#[test]
fn each_request_without_a_handshake_says_who_sends_it() {
    let mut play = Play::by(rules(vec![rule("not-eve", "client:eve", VerdictKind::Deny)]));
    let call = |id, client| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"read","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"{client}"}}}}}}}}"#
        )
    };
    for (id, client, passes) in [(1, "bob", 1), (2, "eve", 0), (3, "bob", 1), (4, "eve", 0)] {
        play.sends(Side::Client, &call(id, client));
        assert_eq!(play.got(Side::Server).len(), passes, "{client}");
    }
}

#[test]
fn a_batch_with_a_byte_order_mark_is_refused() {
    let mut play = Play::by(rules(Vec::new()));
    play.sends(
        Side::Client,
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}"#,
    );
    play.got(Side::Server);
    let bytes = Bytes::from(format!("[{}]", call(2, "list_repos")));
    let frame = Frame { bytes, ending: Ending::Lf, bom: true };
    play.pipeline.pass(&mut play.conversation, Side::Client, [Cut::Frame(frame)], &mut play.out);
    play.release();
    assert_eq!(play.got(Side::Server), [""; 0]);
    assert!(play.got(Side::Client)[0].contains("byte order mark"));
}

#[test]
fn what_an_answer_asks_for_is_judged_too() {
    let mut play = Play::by(rules(vec![rule("no-sampling", "method:sampling/*", VerdictKind::Deny)]));
    let asks = |id: u32, method: &str| {
        let wanted = format!(r#"{{"a":{{"method":"{method}","params":{{}}}}}}"#);
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","inputRequests":{wanted},"requestState":"s"}}}}"#
        )
    };
    for (id, method, passes) in [
        (1, "elicitation/create", true),
        (2, "sampling/createMessage", false),
        (3, "sampling\\/createMessage", false),
        (4, "Sampling/createMessage", false),
    ] {
        play.calls(id, "list_repos");
        play.got(Side::Server);
        let answer = asks(id, method);
        play.sends(Side::Server, &answer);
        let got = play.got(Side::Client);
        assert_eq!(got.len(), 1, "{method}");
        assert_eq!(got[0] == answer, passes, "{method}: {got:?}");
        assert!(passes || got[0].contains(&format!(r#""id":{id},"error""#)), "{got:?}");
        assert_eq!(play.conversation.open_calls(Side::Client), 0);
    }
}

#[test]
fn a_batch_has_to_have_something_and_not_too_much() {
    let mut play = Play::by(deny_deletes());
    play.sends(
        Side::Client,
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}"#,
    );
    play.sends(Side::Server, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26"}}"#);
    drop((play.got(Side::Server), play.got(Side::Client)));
    let many = vec![r#"{"jsonrpc":"2.0","method":"notifications/x"}"#; 1_001].join(",");
    for batch in ["[]".to_owned(), format!("[{many}]")] {
        play.sends(Side::Client, &batch);
        assert_eq!(play.got(Side::Server), [""; 0]);
        assert!(play.got(Side::Client)[0].contains("-32600"));
    }
}

#[tokio::test]
async fn an_answer_that_lasts_counts_for_what_waits_already() {
    for (decision, reached) in [
        (Decision::Approve { lasting: Lasting::Session, edited: None }, 2),
        (Decision::Deny { lasting: Lasting::Session, message: None }, 0),
    ] {
        let mut play = Play::by(asking(Some(Duration::from_secs(60))));
        play.calls(1, "write_file");
        play.calls(2, "write_file");
        play.calls(3, "write_other");
        assert_eq!(play.decides(decision), Ok(()));
        assert_eq!(play.got(Side::Server).len(), reached);
        assert_eq!(play.got(Side::Client).len(), 2 - reached);
        assert_eq!(play.pipeline.status().held.len(), 1);
    }
}

#[test]
fn an_encoded_name_is_denied_as_itself_and_as_what_it_decodes_to() {
    let by = |default, filter: &str, verdict| Play::by(Rules { default, ..rules(vec![rule("it", filter, verdict)]) });
    let list =
        r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"frob_it","annotations":{"destructiveHint":true}}]}}"#;
    let passes = |default, filter: &str, verdict, name: &str| {
        let mut play = by(default, filter, verdict);
        play.sends(Side::Client, r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#);
        play.sends(Side::Server, list);
        play.got(Side::Server);
        play.calls(1, name);
        !play.got(Side::Server).is_empty()
    };
    for (filter, name) in [
        ("op:delete", "%64elete_repo"),
        ("op:delete", "%2564elete_repo"),
        ("tool:danger_delete", "danger%5Fdelete"),
        ("tool:danger%5Fdelete", "danger%5Fdelete"),
        ("op:delete $.params.name ^= \"%64\"", "%64elete_repo"),
        ("hint:destructive", "frob%5Fit"),
        ("op:write", "%67et_repo"),
    ] {
        assert!(!passes(Permission::Allow, filter, VerdictKind::Deny, name), "{filter} denies {name}");
        assert!(!passes(Permission::Allow, filter, VerdictKind::Ask, name), "{filter} asks for {name}");
    }
    for (filter, name, expected) in [
        ("op:read", "get%5Frepo", true),
        ("op:read", "%67et_repo", false),
        ("op:write", "%64elete_repo", false),
        ("op:delete", "%64elete_repo", false),
        ("tool:danger%5Fread", "danger%5Fread", true),
        ("tool:danger_read", "danger%5Fread", false),
    ] {
        let allowed = passes(Permission::Deny, filter, VerdictKind::Allow, name);
        assert_eq!(allowed, expected, "{filter} allows {name}");
    }
}
