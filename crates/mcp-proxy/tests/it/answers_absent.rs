//! Rules that ask, and who is there to be asked: nobody, somebody who leaves, somebody who is slow.

use std::io::Write;
use std::os::unix::net::UnixStream;

use mcp_control::Instances;
use mcp_control::api::LeaseRequest;
use serde_json::json;

use crate::ask_kit::{asks, denial, is_result, on_a_pipe, on_every_way, patient};
use crate::control_kit::request;
use crate::kit::{Running, Sandbox, fixture_program, until};

#[test]
fn with_nobody_there_it_is_denied_at_once() {
    on_every_way(&[asks(json!({}))], &["--hold-timeout", "0"], |sandbox, client| {
        client.call(1, "write_file", "x");
        let said = denial(&client.answer(1));
        assert!(said.contains("nobody is there to ask"), "{said}");
        assert!(!sandbox.saw().contains("write_file"));
    });
}

/// A rule that waits by itself waits for somebody to come, and denies if nobody does.
#[test]
fn a_rule_that_waits_denies_in_the_end() {
    for on_timeout in ["deny", "allow"] {
        let rule = asks(json!({ "timeout": "1s", "on_timeout": on_timeout }));
        on_every_way(&[rule], &["--hold-timeout", "0"], |sandbox, client| {
            client.call(1, "write_file", "x");
            let said = denial(&client.answer(1));
            assert!(said.contains("nobody is there to ask"), "{said}");
            assert!(!sandbox.saw().contains("write_file"));
        });
    }
}

#[test]
fn time_decides_if_somebody_is_there() {
    let rule = asks(json!({ "timeout": "1s" }));
    on_a_pipe(false, &[rule], &[], |sandbox, client| {
        let _ann = sandbox.watcher();
        client.call(1, "write_file", "x");
        let said = denial(&client.answer(1));
        assert!(said.contains("nobody answered in time"), "{said}");
        assert!(!sandbox.saw().contains("write_file"));
        let errors = sandbox.refused(1, &["approve", "3"]);
        assert!(errors.contains("#3 is not held: it was denied, because nobody answered in time"), "{errors}");
    });
    let rule = asks(json!({ "timeout": "1s", "on_timeout": "allow" }));
    on_a_pipe(true, &[rule], &[], |sandbox, client| {
        let _ann = sandbox.watcher();
        client.call(1, "write_file", "x");
        is_result(&client.answer(1));
        let errors = sandbox.refused(1, &["approve", "1"]);
        assert!(errors.contains("#1 is not held: it went on, because nobody answered in time"), "{errors}");
    });
    // A rule that says nothing of time waits as long as any message is held.
    on_a_pipe(false, &[asks(json!({}))], &["--hold-timeout", "1"], |sandbox, client| {
        let _ann = sandbox.watcher();
        client.call(1, "write_file", "x");
        let said = denial(&client.answer(1));
        assert!(said.contains("nobody answered in time"), "{said}");
    });
}

/// Whoever watches is asked, and if they are killed it is as if they had never been there.
#[test]
fn whoever_watched_and_died_is_not_waited_for() {
    on_every_way(&[asks(json!({}))], &["--hold-timeout", "0"], |sandbox, client| {
        let (ann, bob) = (sandbox.watcher(), sandbox.watcher());
        client.call(1, "write_file", "x");
        sandbox.held(1);
        ann.kill();
        until("one is left", || sandbox.instance().faces == 1);
        assert_eq!(sandbox.instance().questions, 1);
        bob.kill();
        let said = denial(&client.answer(1));
        assert!(said.contains("nobody is there to ask"), "{said}");
        until("nobody is left", || sandbox.instance().faces == 0);
        client.call(2, "write_file", "y");
        denial(&client.answer(2));
        assert!(!sandbox.saw().contains("write_file"));
    });
}

fn socket(sandbox: &Sandbox) -> std::path::PathBuf {
    Instances::below(sandbox.state().root()).find(None).unwrap().socket
}

/// Streams that end as soon as they begin, whether or not anybody read from them.
#[test]
fn whoever_came_for_a_moment_is_not_waited_for() {
    on_a_pipe(false, &[asks(json!({}))], &["--hold-timeout", "0"], |sandbox, client| {
        let socket = socket(sandbox);
        for id in 1..20 {
            let streams: Vec<UnixStream> = (0..id % 5)
                .map(|_| {
                    let mut stream = UnixStream::connect(&socket).unwrap();
                    stream.write_all(&request("GET", "/v1/events", &[], "")).unwrap();
                    stream
                })
                .collect();
            drop(streams);
            client.call(id, "write_file", "x");
            denial(&client.answer(id));
        }
        until("nobody is counted", || sandbox.instance().faces == 0);
        client.call(99, "write_file", "x");
        denial(&client.answer(99));
        assert!(!sandbox.saw().contains("write_file"));
    });
}

/// While somebody has the lease only they answer, unless somebody else insists.
#[test]
fn one_hand_answers() {
    on_a_pipe(false, &[patient()], &[], |sandbox, client| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let control = sandbox.control();
        let asked = LeaseRequest { holder: "ann".into(), take: false };
        let grant = runtime.block_on(control.take_lease(&asked)).unwrap();
        let mut stream = UnixStream::connect(socket(sandbox)).unwrap();
        let path = format!("/v1/events?lease={}", grant.token);
        stream.write_all(&request("GET", &path, &[], "")).unwrap();
        until("she is present", || sandbox.instance().lease.is_some_and(|lease| lease.present));
        client.call(1, "write_file", "a");
        let number = sandbox.held_number();
        for command in ["approve", "deny"] {
            let errors = sandbox.refused(1, &[command, &number]);
            assert!(errors.contains("ann has control since ") && errors.contains("--take"), "{errors}");
        }
        assert_eq!(sandbox.held_number(), number);
        sandbox.stdout(["approve", &number, "--take"]);
        is_result(&client.answer(1));
        // She answers herself.
        client.call(2, "write_file", "b");
        let sequence = sandbox.held(1)[0]["sequence"].as_u64().unwrap();
        let hers =
            control.clone().acting_as(mcp_control::api::Hand { lease: Some(grant.token), by: None, take: false });
        runtime.block_on(hers.approve(sequence, &mcp_control::api::Approve::default())).unwrap();
        is_result(&client.answer(2));
    });
}

/// A face that had control and died is given three seconds; then nobody is there.
#[test]
fn a_face_that_died_is_not_waited_for() {
    on_a_pipe(false, &[asks(json!({}))], &["--hold-timeout", "0"], |sandbox, client| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let asked = LeaseRequest { holder: "ann".into(), take: false };
        // Whoever takes the lease counts as there before their stream is open.
        runtime.block_on(sandbox.control().take_lease(&asked)).unwrap();
        client.call(1, "write_file", "x");
        sandbox.held(1);
        let said = denial(&client.answer(1));
        assert!(said.contains("nobody is there to ask"), "{said}");
        assert!(!sandbox.saw().contains("write_file"));
    });
}

/// Whoever called may take it back, or leave: nothing of it reaches the server.
#[test]
fn a_question_can_be_taken_back() {
    let sandbox = Sandbox::new();
    crate::ask_kit::write_rules(&sandbox, &[patient()]);
    let mut proxy = sandbox.run(&["--quiet", "--rules", "rules.json"], &["puppet", "saw"]);
    proxy.send(format!("{}\n", crate::hold_kit::call(1, "write_file", "x")).as_bytes());
    sandbox.until_found();
    sandbox.held(1);
    proxy.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n");
    sandbox.held(0);
    proxy.send(format!("{}\n", crate::hold_kit::call(2, "write_file", "x")).as_bytes());
    sandbox.held(1);
    proxy.terminate();
    proxy.end();
    assert!(!sandbox.saw().contains("write_file"), "{}", sandbox.saw());
}

/// Where the proxy was started, it is said what is asked and how to answer; once, and not if it is to
/// be quiet.
#[test]
fn a_question_is_said_aloud() {
    for quiet in [false, true] {
        let sandbox = Sandbox::new();
        crate::ask_kit::write_rules(&sandbox, &[patient()]);
        let errors = sandbox.path("errors");
        let mut command = sandbox.command(["run", "--rules", "rules.json"]);
        command.args(quiet.then_some("--quiet")).arg("--").arg(fixture_program()).arg("puppet");
        command.stderr(std::fs::File::create(&errors).unwrap());
        let mut proxy = Running::start_quietly(command);
        proxy.send(format!("{}\n", crate::hold_kit::call(1, "write_\u{202e}file", "x")).as_bytes());
        sandbox.until_found();
        sandbox.held(1);
        let id = sandbox.instance().id[..8].to_owned();
        let approve = format!("mcp-proxy approve {id} 1");
        if !quiet {
            until("it is said", || std::fs::read_to_string(&errors).unwrap().contains(&approve));
        }
        // The command does what it says.
        let words: Vec<&str> = approve.split(' ').skip(1).collect();
        sandbox.stdout(&words);
        is_result(&proxy.json());
        assert!(proxy.end().0.success());
        let said = std::fs::read_to_string(&errors).unwrap();
        let aloud = format!(
            "mcp-proxy {id}: rule \"writes\" asks about tools/call [write_⟨U+202E⟩file]: Writing needs a yes.\n  answer within "
        );
        assert_eq!(said.matches(&aloud).count(), usize::from(!quiet), "{said}");
        assert_eq!(
            said.matches(&format!("with `{approve}` or `mcp-proxy deny {id} 1`\n")).count(),
            usize::from(!quiet),
            "{said}"
        );
        assert!(!said.contains('\u{202e}'));
    }
}
