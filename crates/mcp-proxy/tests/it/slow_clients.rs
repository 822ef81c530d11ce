//! Clients that ask for much and read nothing: their waiting answers are bounded, and other clients go on.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gateway_kit::{HttpClient, fake, initialize as introduction};
use crate::http_kit::{Listening, Origin, accepted, call, json as json_answer};
use crate::kit::{Running, Sandbox, peak_bytes, until};

/// Answers, and how large each is.
const COUNT: usize = 24;
const BYTES: usize = 4 << 20;
/// A fraction of them all, and room for one largest message.
const PEAK_MAX: u64 = 60 << 20;

fn large_result(id: impl std::fmt::Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"text":"{}"}}}}"#, "x".repeat(BYTES))
}

/// Waits until a process does nothing any more.
fn until_idle(pid: u32) {
    let used = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().collect();
        (fields[11].to_owned(), fields[12].to_owned())
    };
    let (mut last, mut since) = (used(), Instant::now());
    until("it has nothing to do", || {
        let now = used();
        if now != last {
            (last, since) = (now, Instant::now());
        }
        since.elapsed() > Duration::from_millis(500)
    });
}

/// Reads so many answers that were not read so far, each by its id.
fn ids_of_answers(proxy: &mut Running, count: usize) -> Vec<u64> {
    let lines = BufReader::new(proxy.take_stdout()).lines();
    let answers = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    // Errors count as answers, so that a lost one fails a test and does not keep it waiting.
    let answers = answers.filter(|answer| answer["id"].is_u64()).take(count);
    let large = answers.filter(|answer| answer["result"].to_string().len() > BYTES);
    let mut ids: Vec<u64> = large.map(|answer| answer["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    ids
}

fn all_ids() -> Vec<u64> {
    (1..=COUNT as u64).collect()
}

#[test]
fn answers_over_http_wait_on_their_connections_for_a_client_on_stdio() {
    let sandbox = Sandbox::new();
    let origin = Origin::start().serve(|call| {
        let message: Value = serde_json::from_slice(&call.body).unwrap_or_default();
        match message.get("id") {
            Some(id) => drop(call.try_send(json_answer(large_result(id)))),
            None => call.send(accepted()),
        }
    });
    let mut command = sandbox.command(["run", "--no-record", "--quiet", "--transport", "streamable-http", "--url"]);
    command.arg(origin.url("/mcp")).stderr(Stdio::null());
    let mut proxy = Running::start_unread(command);
    for id in all_ids() {
        proxy.send(format!("{}\n", call(id, "x")).as_bytes());
    }
    until("every call has a connection", || origin.connections() >= COUNT);
    until_idle(proxy.pid());
    let peak = peak_bytes(proxy.pid());
    assert_eq!(ids_of_answers(&mut proxy, COUNT), all_ids());
    assert!(peak < PEAK_MAX, "{peak} bytes");
    proxy.end();
}

#[test]
fn answers_that_never_come_whole_hold_up_no_other() {
    const STALLED: usize = 3;
    let sandbox = Sandbox::new();
    let begun = Arc::new(AtomicUsize::new(0));
    let origin = Origin::start().serve({
        let begun = Arc::clone(&begun);
        move |call| {
            let message: Value = serde_json::from_slice(&call.body).unwrap_or_default();
            match message["id"].as_u64() {
                Some(0) => drop(call.try_send(json_answer(large_result(0)))),
                // Most of an answer, and no more.
                Some(id) => {
                    let answer = json_answer(large_result(id));
                    drop(call.try_send(&answer[..answer.len() - 10]));
                    begun.fetch_add(1, Relaxed);
                }
                None => call.send(accepted()),
            }
        }
    });
    let mut command = sandbox.command(["run", "--no-record", "--quiet", "--transport", "streamable-http", "--url"]);
    command.arg(origin.url("/mcp")).stderr(Stdio::null());
    let mut proxy = Running::start_quietly(command);
    for id in 1..=STALLED {
        proxy.send(format!("{}\n", call(id, "x")).as_bytes());
    }
    until("as many answers stall as are read at a time", || begun.load(Relaxed) >= 2);
    proxy.send(format!("{}\n", call(0, "x")).as_bytes());
    assert_eq!(proxy.json()["id"], 0);
    drop(origin);
    proxy.end();
}

#[test]
fn answers_of_a_process_wait_in_its_pipe_for_a_client_on_http() {
    answers_of_a_process_wait("");
}

#[test]
fn answers_that_leave_as_events_wait_in_the_pipe_of_their_process() {
    answers_of_a_process_wait(
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$id,"progress":1}}"#,
    );
}

/// `before` comes before each answer.
fn answers_of_a_process_wait(before: &str) {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_fixture(&["puppet"], &["--no-record"]);
    let client = HttpClient::open(&proxy);
    let mut calls = Vec::new();
    for id in all_ids() {
        let file = sandbox.path(&format!("{id}.json"));
        let before = before.replace("$id", &id.to_string());
        std::fs::write(&file, format!("{before}\n{}\n", large_result(id))).unwrap();
        let mut call = client.beside(&proxy);
        let params = json!({ "file": file, "_meta": { "progressToken": id } });
        call.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "play", "params": params }));
        calls.push((id, call));
    }
    until_idle(proxy.pid());
    let peak = peak_bytes(proxy.pid());
    let count_before = usize::from(!before.is_empty());
    // The last reader waits for the others; separate connections answer in any order.
    let reading = calls.into_iter().map(|(id, mut call)| {
        std::thread::spawn(move || {
            let answers = call.answers();
            assert_eq!(answers.len(), 1 + count_before);
            assert_eq!(answers[count_before]["id"], id);
        })
    });
    let reading: Vec<_> = reading.collect();
    reading.into_iter().for_each(|reading| reading.join().unwrap());
    assert!(peak < PEAK_MAX, "{peak} bytes");
    proxy.end();
}

#[test]
fn a_gateway_waits_for_its_only_client() {
    let sandbox = Sandbox::new();
    let server = fake("one").script("on", json!({ "tools/call": [{ "text": "x".repeat(BYTES) }] }));
    let mut command = sandbox.serve_command(&[server], &json!({}), &["--no-record"]);
    command.stderr(Stdio::null());
    let mut proxy = Running::start_unread(command);
    proxy.send(format!("{}\n", introduction("init", crate::bridge_kit::LEGACY, json!({}))).as_bytes());
    for id in all_ids() {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "one__x" } });
        proxy.send(format!("{call}\n").as_bytes());
    }
    until("the server was called", || sandbox.journal("one").iter().any(|(_, what)| what.contains("tools/call")));
    until_idle(proxy.pid());
    let peak = peak_bytes(proxy.pid());
    assert_eq!(ids_of_answers(&mut proxy, COUNT), all_ids(), "nothing is lost");
    assert!(peak < PEAK_MAX, "{peak} bytes");
    proxy.end();
}

#[test]
fn a_slow_client_costs_its_server_nothing() {
    const LIMIT: Duration = Duration::from_secs(2);
    let sandbox = Sandbox::new();
    let on = json!({ "tools/call": [{ "text": "x".repeat(BYTES) }] });
    let server = fake("one").script("on", on).set("response_timeout", format!("{}s", LIMIT.as_secs()));
    let top = json!({ "healthcheck_interval": "50ms", "healthcheck_timeout": "50ms" });
    let mut command = sandbox.serve_command(&[server], &top, &["--no-record"]);
    command.stderr(Stdio::null());
    let mut proxy = Running::start_unread(command);
    proxy.send(format!("{}\n", introduction("init", crate::bridge_kit::LEGACY, json!({}))).as_bytes());
    for id in all_ids() {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "one__x" } });
        proxy.send(format!("{call}\n").as_bytes());
    }
    until("the server was called", || sandbox.journal("one").iter().any(|(_, what)| what.contains("tools/call")));
    // Calls would be overdue by then, and pings missed.
    let called = Instant::now();
    while called.elapsed() < LIMIT * 2 {
        until_idle(proxy.pid());
    }
    assert_eq!(ids_of_answers(&mut proxy, COUNT), all_ids(), "nothing is lost");
    assert_eq!(sandbox.starts("one").len(), 1);
    proxy.end();
}

#[test]
fn a_client_that_reads_nothing_holds_up_no_other() {
    reads_nothing_and_holds_up_no_other(&[]);
}

#[test]
fn a_client_that_reads_no_events_holds_up_no_other() {
    let params = json!({ "progressToken": "$token", "progress": 1 });
    let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
    reads_nothing_and_holds_up_no_other(&[json!({ "say": progress })]);
}

/// The server takes the steps `before` ahead of each answer.
fn reads_nothing_and_holds_up_no_other(before: &[Value]) {
    let sandbox = Sandbox::new();
    let steps: Vec<Value> = before.iter().cloned().chain([json!({ "text": "x".repeat(BYTES) })]).collect();
    let server = fake("one").script("on", json!({ "tools/call": steps }));
    let top = json!({ "max_message_bytes": BYTES * 2 });
    let gateway = Listening::start(sandbox.serve_command(&[server], &top, &["--no-record", "--listen", "0"]));
    let (slow, mut other) = (HttpClient::open(&gateway), HttpClient::open(&gateway));
    let mut calls = Vec::new();
    for id in all_ids() {
        let mut call = slow.beside(&gateway);
        let params = json!({ "name": "one__x", "_meta": { "progressToken": id } });
        call.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
        calls.push(call);
    }
    until("all calls were answered", || {
        sandbox.journal("one").iter().filter(|(_, what)| what.contains("tools/call")).count() == COUNT
    });
    let answer = other.call(1, "one__x", json!({}));
    assert!(answer["result"].to_string().len() > BYTES);
    until_idle(gateway.pid());
    let peak = peak_bytes(gateway.pid());
    let all = calls.iter_mut().flat_map(|call| call.answers());
    let answers: Vec<Value> = all.filter(|message| message.get("method").is_none()).collect();
    let (whole, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.get("result").is_some());
    assert!(!whole.is_empty() && whole.len() + refused.len() == COUNT, "{} {}", whole.len(), refused.len());
    assert!(refused.iter().all(|answer| answer["error"]["code"] == 5031), "{:?}", refused.first());
    assert!(peak < PEAK_MAX, "{peak} bytes");
    gateway.end();
}
