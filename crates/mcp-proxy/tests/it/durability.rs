//! What reached the other side is on disk, whenever the proxy is killed.

use std::path::Path;

use crate::kit::{Running, Sandbox, recorded, until};
use mcp_store::Direction;

const KILLS: usize = 100;
/// Requests the client keeps open; a batch cannot be larger.
const OPEN: u64 = 64;

/// Sends requests until the proxy is killed after `answers`; returns the answers it received.
fn load_and_kill(sandbox: &Sandbox, flags: &[&str], journal: &Path, answers: u64) -> Vec<Vec<u8>> {
    let mut proxy = sandbox.run(flags, &["journal", journal.to_str().unwrap()]);
    let mut received = Vec::new();
    let mut sent = 0;
    while (received.len() as u64) < answers {
        let batch: String = (sent..received.len() as u64 + OPEN).map(request).collect();
        sent = received.len() as u64 + OPEN;
        proxy.send(batch.as_bytes());
        received.push(proxy.line());
    }
    proxy.kill();
    received.extend(drain(&proxy));
    drop(proxy);
    received
}

fn request(id: u64) -> String {
    format!("{{\"id\":{id},\"method\":\"x\",\"params\":{{\"pad\":\"{}\"}}}}\n", "p".repeat((id % 300) as usize))
}

fn drain(proxy: &Running) -> Vec<Vec<u8>> {
    // A line that the kill cut short never reached the client as a message.
    proxy.rest().into_iter().filter(|line| line.ends_with(b"\n")).collect()
}

fn whole_lines(path: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes
        .split_inclusive(|&byte| byte == b'\n')
        .filter(|line| line.ends_with(b"\n"))
        .map(|line| line[..line.len() - 1].to_vec())
        .collect()
}

/// Kills proxies at many moments and compares what was delivered with what was recorded; `may_miss`
/// is how many of the last messages of each direction may be missing.
fn check(flags: &[&str], may_miss: usize) {
    let mut total = 0;
    for kill in 0..KILLS {
        let sandbox = Sandbox::new();
        let journal = sandbox.path("journal");
        let moment = (kill as u64 * 7919 + 13) % 700;
        let received = load_and_kill(&sandbox, flags, &journal, moment);
        // The server may still be reading what was in its pipe.
        let lock = sandbox.segments();
        until("the server has read its last line", || {
            !mcp_store::segment::is_live(&lock[0]).unwrap() && server_is_gone(&journal)
        });
        let messages = recorded(&lock[0]);
        for (direction, delivered) in [
            (Direction::ClientToServer, whole_lines(&journal)),
            (Direction::ServerToClient, received.iter().map(|line| line[..line.len() - 1].to_vec()).collect()),
        ] {
            let kept: Vec<&[u8]> = messages
                .iter()
                .filter(|message| message.direction == direction)
                .map(|message| &message.raw[..])
                .collect();
            let missing = delivered.len().saturating_sub(kept.len());
            assert!(missing <= may_miss, "kill {kill}: {missing} of {} {direction:?} are missing", delivered.len());
            for (kept, delivered) in kept.iter().zip(&delivered) {
                assert_eq!(kept, delivered, "kill {kill}: the recording is in order and whole");
            }
            total += delivered.len();
        }
        let listed = sandbox.stdout(["sessions", "list"]);
        assert!(listed.contains("interrupted"), "{listed}");
    }
    assert!(total > 10_000, "{total} messages were delivered in all");
}

/// Nobody has the server's journal open any more.
fn server_is_gone(journal: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap();
    !processes.filter_map(Result::ok).any(|entry| {
        let descriptors = std::fs::read_dir(entry.path().join("fd")).into_iter().flatten().filter_map(Result::ok);
        descriptors.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|target| target == journal)
    })
}

#[test]
fn strict_evidence_misses_nothing_that_was_delivered() {
    check(&["--quiet", "--evidence", "strict"], 0);
}

#[test]
fn normal_evidence_misses_at_most_the_batch_in_flight() {
    check(&["--quiet"], OPEN as usize);
}

#[test]
fn a_session_file_is_completed_after_a_kill() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("evidence.json");
    let flags = ["--quiet", "--evidence", "strict", "--session-file", file.to_str().unwrap()];
    let received = load_and_kill(&sandbox, &flags, &sandbox.path("journal"), 50);
    until("the segment is let go", || !mcp_store::segment::is_live(&sandbox.segments()[0]).unwrap());
    // Reading the file itself finds the messages where they are.
    let shown = sandbox.stdout(["inspect", file.to_str().unwrap()]);
    assert!(shown.contains("was not completed") && shown.contains("#050"), "{shown}");
    let output = sandbox.output(["sessions", "list"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("evidence.json` was completed"), "{output:?}");
    crate::schema::check(&file);
    let text = std::fs::read_to_string(&file).unwrap();
    let saved: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(saved["messages"].as_array().unwrap().len() >= 2 * received.len());
    assert!(saved["ended_at"].is_string());
}
