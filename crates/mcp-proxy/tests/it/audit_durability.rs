//! What reached a server was decided about on disk, whenever the proxy is killed and whatever the disk does.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use mcp_store::audit::{LogFiles, logs};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::{Value, json};

use crate::http_kit::{self, Origin};
use crate::kit::{Running, Sandbox, fixture_program, outcomes, recorded, signal, until, wait};

/// Requests the client keeps open.
const OPEN: u64 = 32;

/// Deletes are denied; with `required`, nothing goes on whose decision is not on disk.
fn write_rules(sandbox: &Sandbox, required: bool) {
    let rules = json!({"policy": {
        "rules": [{"name": "nothing is deleted", "match": "op:delete", "verdict": "deny"}],
        "audit_required": required,
    }});
    std::fs::write(sandbox.path("rules.json"), rules.to_string()).unwrap();
}

/// Every call has a tool of its own, so that it is found again where only the tool is named.
fn tool(id: u64) -> String {
    if id % 5 == 4 { format!("delete_{id}") } else { format!("read_{id}") }
}

/// The id stands first: that is where the server looks for it.
fn request(id: u64) -> String {
    let (tool, pad) = (tool(id), "p".repeat((id % 300) as usize));
    format!(
        r#"{{"id":{id},"jsonrpc":"2.0","method":"tools/call","params":{{"name":"{tool}","arguments":{{"pad":"{pad}"}}}}}}"#
    )
}

fn tool_of(message: &[u8]) -> Option<String> {
    let message: Value = serde_json::from_slice(message).ok()?;
    Some(message["params"]["name"].as_str()?.to_owned())
}

fn log_of(sandbox: &Sandbox) -> LogFiles {
    logs(&sandbox.state().audit()).unwrap().pop().unwrap()
}

/// Every whole line of the log.
fn records(sandbox: &Sandbox) -> Vec<Value> {
    let log = log_of(sandbox);
    let mut text = String::new();
    log.parts.iter().for_each(|part| text += &std::fs::read_to_string(log.path(*part)).unwrap());
    text.split_inclusive('\n').filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The tools that were decided so.
fn decided(records: &[Value], verdict: &str) -> HashSet<String> {
    let decisions = records.iter().filter(|record| record["verdict"] == verdict);
    decisions.map(|record| record["tool"].as_str().unwrap().to_owned()).collect()
}

/// Holds a log to what the server got, and a recording to the log.
fn check(sandbox: &Sandbox, kill: usize, reached: &HashSet<String>) {
    until("the log is let go", || !log_of(sandbox).is_live());
    let records = records(sandbox);
    let (allowed, denied) = (decided(&records, "allow"), decided(&records, "deny"));
    let undecided: Vec<_> = reached.difference(&allowed).collect();
    assert!(undecided.is_empty(), "kill {kill}: {undecided:?} reached the server, {} are decided", allowed.len());
    assert!(reached.iter().all(|tool| tool.starts_with("read_")), "kill {kill}: what is denied goes nowhere");
    assert!(denied.iter().all(|tool| tool.starts_with("delete_")));
    let said = sandbox.output(["audit", "--verify"]);
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.status.success() && text.contains("interrupted  sound"), "kill {kill}: {said:?}");
    check_links(sandbox, &records);
}

/// A decision names its message, and the message its decision.
fn check_links(sandbox: &Sandbox, records: &[Value]) {
    let messages: HashMap<u64, _> =
        recorded(&sandbox.segments()[0]).into_iter().map(|message| (message.sequence, message)).collect();
    for record in records.iter().filter(|record| record["kind"] == "decision") {
        assert_eq!(record["session"].as_str(), sandbox.segments()[0].file_stem().unwrap().to_str());
        // The last of them need not have been recorded.
        let Some(message) = messages.get(&record["message"].as_u64().unwrap()) else { continue };
        assert_eq!(tool_of(&message.raw).as_deref(), record["tool"].as_str());
        let audit = message.verdict.as_ref().unwrap().audit.unwrap();
        assert_eq!((audit.instance.to_string(), audit.number), {
            (record["instance"].as_str().unwrap().to_owned(), record["seq"].as_u64().unwrap())
        });
    }
}

/// Sends calls until `answers` have come back, and kills the proxy.
fn load_and_kill(proxy: &mut Running, answers: u64) -> Vec<Value> {
    let (mut received, mut sent) = (Vec::new(), 0);
    while (received.len() as u64) < answers {
        let batch: String = (sent..received.len() as u64 + OPEN).map(|id| request(id) + "\n").collect();
        sent = received.len() as u64 + OPEN;
        proxy.send(batch.as_bytes());
        received.push(proxy.json());
    }
    proxy.kill();
    let rest = proxy.rest().into_iter().filter_map(|line| serde_json::from_slice(&line).ok());
    received.into_iter().chain(rest).collect()
}

/// Nobody has the server's journal open any more.
fn server_is_gone(journal: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap();
    !processes.filter_map(Result::ok).any(|entry| {
        let descriptors = std::fs::read_dir(entry.path().join("fd")).into_iter().flatten().filter_map(Result::ok);
        descriptors.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|target| target == journal)
    })
}

fn tools_in(journal: &Path) -> HashSet<String> {
    let bytes = std::fs::read(journal).unwrap_or_default();
    bytes.split(|byte| *byte == b'\n').filter_map(tool_of).collect()
}

#[test]
fn a_killed_proxy_has_decided_on_disk_what_reached_the_server() {
    let mut total = 0;
    for kill in 0..50 {
        let sandbox = Sandbox::new();
        write_rules(&sandbox, false);
        let journal = sandbox.path("journal");
        let mut proxy = sandbox.run(&["--quiet", "--rules", "rules.json"], &["journal", journal.to_str().unwrap()]);
        let answers = load_and_kill(&mut proxy, (kill as u64 * 7919 + 13) % 500);
        until("the server has read its last line", || server_is_gone(&journal));
        let reached = tools_in(&journal);
        check(&sandbox, kill, &reached);
        // Whoever was told of a denial finds it.
        let numbers: HashSet<_> = records(&sandbox).iter().map(|record| record["seq"].as_u64().unwrap()).collect();
        for answer in answers.iter().filter(|answer| answer["error"]["code"] == -32000) {
            let id = answer["error"]["data"]["audit_id"].as_str().unwrap();
            let number = id.split_once('/').unwrap().1.parse().unwrap();
            assert!(numbers.contains(&number), "kill {kill}: {id} was given out");
        }
        total += reached.len();
    }
    assert!(total > 5_000, "{total} calls reached the server in all");
}

#[test]
fn the_same_over_http() {
    let mut total = 0;
    for kill in 0..25 {
        let sandbox = Sandbox::new();
        write_rules(&sandbox, false);
        let reached: Arc<Mutex<HashSet<String>>> = Arc::default();
        let noted = Arc::clone(&reached);
        let server = Origin::start().serve(move |call| {
            noted.lock().unwrap().extend(tool_of(call.text().as_bytes()));
            let _ = call.try_send(http_kit::json(http_kit::result(1)));
        });
        let proxy = sandbox.listen_to("streamable-http", &server.url("/mcp"), &["--rules", "rules.json"]);
        let (moment, answered) = ((kill as u64 * 7919 + 13) % 200, std::sync::atomic::AtomicU64::new(0));
        std::thread::scope(|scope| {
            for client in 0..4 {
                let (proxy, answered) = (&proxy, &answered);
                scope.spawn(move || {
                    let mut connection = proxy.client();
                    for id in (client..).step_by(4) {
                        let call = http_kit::post("/mcp", &[], request(id));
                        if connection.try_send(&call).is_err() || connection.try_response().is_none() {
                            return;
                        }
                        answered.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                });
            }
            until("enough was answered", || answered.load(std::sync::atomic::Ordering::Relaxed) >= moment);
            signal(proxy.pid(), Signal::KILL);
        });
        let (status, said) = proxy.wait();
        assert_eq!(status.code(), None, "{said}");
        drop(server);
        let reached = reached.lock().unwrap();
        check(&sandbox, kill, &reached);
        total += reached.len();
    }
    assert!(total > 1_000, "{total} calls reached the server in all");
}

#[test]
fn a_tail_that_was_cut_off_a_killed_proxys_log_is_found_by_its_recording() {
    let sandbox = Sandbox::new();
    write_rules(&sandbox, false);
    let journal = sandbox.path("journal");
    let flags = ["--quiet", "--evidence", "strict", "--rules", "rules.json"];
    let mut proxy = sandbox.run(&flags, &["journal", journal.to_str().unwrap()]);
    load_and_kill(&mut proxy, 100);
    until("the log is let go", || !log_of(&sandbox).is_live() && server_is_gone(&journal));
    let path = log_of(&sandbox).path(1);
    let text = std::fs::read_to_string(&path).unwrap();
    let cut: String = text.split_inclusive('\n').take(50).collect();
    std::fs::write(&path, &cut).unwrap();
    let said = sandbox.output(["audit", "--verify"]);
    let shown = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(said.status.code(), Some(1), "{shown}");
    assert!(shown.contains("record 51, line 51 of") && shown.contains("the recording"), "{shown}");
}

/// A governed proxy whose files may grow to `bytes` and no further: a disk that is full.
fn run_on_a_full_disk(sandbox: &Sandbox, bytes: u64, journal: &Path) -> Running {
    let script = format!(
        "trap '' XFSZ; ulimit -S -f {}; exec {} run --no-record --rules rules.json -- {} journal {}",
        bytes / 1024,
        crate::kit::proxy_program().display(),
        fixture_program().display(),
        journal.display(),
    );
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &script]).env("HOME", sandbox.path("")).current_dir(sandbox.path(""));
    Running::start(command)
}

fn ask(proxy: &mut Running, id: u64) -> Value {
    proxy.send((request(id) + "\n").as_bytes());
    proxy.json()
}

fn give_room(proxy: &Running) {
    let room = Rlimit { current: None, maximum: None };
    prlimit(Pid::from_raw(proxy.pid().cast_signed()), Resource::Fsize, room).unwrap();
}

#[test]
fn a_full_disk_stops_calls_where_the_audit_is_required() {
    let sandbox = Sandbox::new();
    write_rules(&sandbox, true);
    let journal = sandbox.path("journal");
    let mut proxy = run_on_a_full_disk(&sandbox, 8192, &journal);
    let answers: Vec<Value> = (0..40).map(|id| ask(&mut proxy, id)).collect();
    let is_refused = |answer: &Value| answer["error"]["code"].as_i64().is_some_and(|code| code != -32000);
    let refused: Vec<u64> =
        answers.iter().filter(|answer| is_refused(answer)).filter_map(|a| a["id"].as_u64()).collect();
    assert!(refused.len() > 10, "{answers:?}");
    let decided_by_then = decided(&records(&sandbox), "allow");
    assert!(tools_in(&journal).is_subset(&decided_by_then), "nothing went on that is not decided on disk");
    give_room(&proxy);
    assert!(ask(&mut proxy, 40)["result"].is_object(), "it goes on once there is room");
    let (status, errors) = proxy.end();
    assert!(status.success(), "{errors}");
    assert_eq!(errors.matches("the audit cannot be written").count(), 1, "{errors}");
    // What waited was written, with what became of it.
    let records = records(&sandbox);
    let stopped: HashSet<u64> =
        outcomes(&records).filter(|call| call["outcome"] == "stopped").filter_map(|call| call["of"].as_u64()).collect();
    let tools: HashSet<String> = refused.iter().map(|id| tool(*id)).collect();
    for record in records.iter().filter(|record| record["verdict"] == "allow") {
        let is_stopped = stopped.contains(&record["seq"].as_u64().unwrap());
        assert_eq!(is_stopped, tools.contains(record["tool"].as_str().unwrap()), "{record}");
    }
    assert!(sandbox.output(["audit", "--verify"]).status.success());
}

#[test]
fn a_full_disk_is_said_loudly_where_the_audit_is_not_required() {
    let sandbox = Sandbox::new();
    write_rules(&sandbox, false);
    let journal = sandbox.path("journal");
    let mut proxy = run_on_a_full_disk(&sandbox, 8192, &journal);
    for id in 0..40 {
        let answer = ask(&mut proxy, id);
        let code = answer["error"]["code"].as_i64();
        assert_eq!(code, tool(id).starts_with("delete_").then_some(-32000), "{answer}");
    }
    assert!(records(&sandbox).len() < 40);
    give_room(&proxy);
    ask(&mut proxy, 40);
    let (status, errors) = proxy.end();
    assert!(status.success(), "{errors}");
    assert_eq!(errors.matches("the audit cannot be written").count(), 1, "{errors}");
    // Nothing is missing after all.
    let records = records(&sandbox);
    let all: HashSet<String> = (0..=40).map(tool).collect();
    assert_eq!(&decided(&records, "allow") | &decided(&records, "deny"), all);
    assert!(sandbox.output(["audit", "--verify"]).status.success());
}

#[test]
fn an_audit_that_cannot_begin_and_is_required_keeps_the_proxy_from_starting() {
    let sandbox = Sandbox::new();
    write_rules(&sandbox, true);
    keep_log_from_opening(&sandbox);
    let output = sandbox.output(["run", "--quiet", "--rules", "rules.json", "--", "touch", "started"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(!sandbox.path("started").exists());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("the audit cannot begin"), "{errors}");
}

fn keep_log_from_opening(sandbox: &Sandbox) {
    std::fs::create_dir_all(sandbox.state().root()).unwrap();
    std::fs::set_permissions(sandbox.state().root(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(sandbox.state().audit(), "in the way").unwrap();
}

#[test]
fn a_proxy_without_a_log_says_so_and_opens_it_later() {
    let sandbox = Sandbox::new();
    write_rules(&sandbox, false);
    keep_log_from_opening(&sandbox);
    let mut proxy = sandbox.run(&["--quiet", "--rules", "rules.json"], &["answer"]);
    assert!(ask(&mut proxy, 0)["result"].is_object());
    assert_eq!(ask(&mut proxy, 4)["error"]["code"], -32000);
    let is_unwritten = || {
        let text = sandbox.stdout(["ps", "--json"]);
        serde_json::from_str::<Value>(&text).ok().and_then(|instance| instance["policy"]["unwritten"].as_bool())
    };
    until("ps says so", || is_unwritten() == Some(true));
    assert!(sandbox.stdout(["ps"]).contains("1 rule, decisions unwritten"));
    let doctor = sandbox.output(["doctor"]);
    assert_eq!(doctor.status.code(), Some(1));
    let found = String::from_utf8_lossy(&doctor.stdout);
    assert!(found.contains("Decisions go unwritten"), "{found}");
    assert!(found.contains("FAIL  running      decisions go unwritten in "), "doctor asks the proxy: {found}");
    std::fs::remove_file(sandbox.state().audit()).unwrap();
    until("the log opens", || is_unwritten() == Some(false));
    let doctor = sandbox.output(["doctor"]);
    let found = String::from_utf8_lossy(&doctor.stdout);
    assert!(found.contains("1 running, none has unwritten decisions"), "{found}");
    assert!(ask(&mut proxy, 1)["result"].is_object());
    let (status, errors) = proxy.end();
    assert!(status.success(), "{errors}");
    assert_eq!(errors.matches("cannot be opened").count(), 1, "{errors}");
    assert_eq!(errors.matches("the audit log is open").count(), 1, "{errors}");
    let records = records(&sandbox);
    assert_eq!(decided(&records, "allow"), HashSet::from([tool(0), tool(1)]));
    assert_eq!(decided(&records, "deny"), HashSet::from([tool(4)]));
    let gap = records.iter().position(|record| record["kind"] == "note").expect("the log tells of the gap");
    assert!(records[gap]["note"].as_str().unwrap().contains("written late"), "{}", records[gap]);
    let is_before = |id: u64| records[..gap].iter().any(|record| record["tool"] == *tool(id));
    assert!(is_before(0) && is_before(4) && !is_before(1));
    assert!(sandbox.output(["audit", "--verify"]).status.success());
    let found = String::from_utf8_lossy(&sandbox.output(["doctor"]).stdout).into_owned();
    assert!(found.contains("decisions can be written down"), "{found}");
}

#[test]
fn recordings_are_read_whatever_is_wrong_with_the_audit() {
    let sandbox = Sandbox::new();
    write_rules(&sandbox, false);
    keep_log_from_opening(&sandbox);
    let mut proxy = sandbox.run(&["--quiet", "--rules", "rules.json"], &["answer"]);
    ask(&mut proxy, 0);
    assert!(proxy.end().0.success());
    assert_eq!(sandbox.stdout(["sessions", "list", "--json"]).lines().count(), 1);
    assert!(sandbox.stdout(["inspect", "last"]).contains("tools/call"));
    assert!(sandbox.stdout(["sessions", "search", &tool(0)]).contains("tools/call"));
    assert_eq!(sandbox.output(["audit"]).status.code(), Some(3));
    let found = String::from_utf8_lossy(&sandbox.output(["doctor"]).stdout).into_owned();
    let audit = sandbox.state().audit();
    assert!(found.contains(&format!("fix: mv {0} {0}.old", audit.display())), "{found}");
    assert!(found.contains("1 recorded"), "{found}");
}

#[test]
fn a_decision_leads_to_its_message_and_back() {
    let sandbox = Sandbox::new();
    write_rules(&sandbox, false);
    let mut proxy = sandbox.run(&["--quiet", "--rules", "rules.json"], &["answer"]);
    assert!(ask(&mut proxy, 0)["result"].is_object());
    let id = ask(&mut proxy, 4)["error"]["data"]["audit_id"].as_str().unwrap().to_owned();
    assert!(proxy.end().0.success());
    let shown = sandbox.stdout(["audit", "show", &id]);
    let command = shown.lines().find_map(|line| line.trim().strip_prefix("message")).unwrap().trim();
    let words: Vec<&str> = command.split(' ').collect();
    let inspected = sandbox.stdout(&words[1..]);
    assert!(inspected.contains("delete_4") && inspected.contains(&id), "{inspected}");
    let listed = sandbox.stdout(["audit", "--filter", "verdict:deny"]);
    assert!(listed.contains("delete_4") && !listed.contains("read_0"), "{listed}");
    let allowed = sandbox.stdout(["audit", "--filter", "tool:read_0 status:ok"]);
    assert!(allowed.contains("read_0"), "{allowed}");
}

#[test]
fn a_killed_follower_bothers_nobody() {
    let sandbox = Sandbox::new();
    write_rules(&sandbox, false);
    let mut proxy = sandbox.run(&["--quiet", "--rules", "rules.json"], &["answer"]);
    ask(&mut proxy, 0);
    let mut follower = sandbox.command(["audit", "--follow"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    ask(&mut proxy, 1);
    follower.kill().unwrap();
    wait(follower);
    ask(&mut proxy, 2);
    let (status, errors) = proxy.end();
    assert!(status.success() && errors.is_empty(), "{errors}");
    assert!(sandbox.stdout(["audit"]).contains("read_2"));
}
