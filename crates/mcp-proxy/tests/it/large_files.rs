//! Session files that are far larger than what reading them may hold in memory.

use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::Stdio;

use crate::kit::{Sandbox, peak_bytes, signal, wait};

const FILE_BYTES: u64 = 64 * 1024 * 1024;
/// What a command may hold beyond what it holds for a small file.
const GROWTH_MAX: u64 = 40 * 1024 * 1024;

/// A session file of many messages, which come before what says whose they are, and of exchanges.
fn write_file(path: &Path, bytes: u64) {
    let mut out = BufWriter::new(std::fs::File::create(path).unwrap());
    let text = "word ".repeat(400);
    let time = |n: u64| {
        format!(
            "2026-11-15T{:02}:{:02}:{:02}.{:06}Z",
            n / 3_600_000 % 24,
            n / 60_000 % 60,
            n / 1_000 % 60,
            n % 1_000 * 1_000
        )
    };
    let (mut written, mut number) = (0, 0);
    write!(out, "{{\"messages\":[").unwrap();
    while written < bytes * 3 / 4 {
        number += 1;
        let comma = if number == 1 { "" } else { "," };
        let message = format!(
            "{comma}\n{{\"sequence\":{number},\"timestamp\":\"{}\",\"direction\":\"client_to_server\",\"exchange\":{number},\"raw\":{{\"method\":\"m\",\"params\":[\"{text}\"]}}}}",
            time(number)
        );
        written += message.len() as u64;
        out.write_all(message.as_bytes()).unwrap();
    }
    write!(out, "],\"exchanges\":[").unwrap();
    let mut exchange = 0;
    while written < bytes {
        exchange += 1;
        let comma = if exchange == 1 { "" } else { "," };
        let listed = format!(
            "{comma}\n{{\"id\":{exchange},\"started_at\":\"{0}\",\"answered_at\":\"{0}\",\"ended_at\":\"{0}\",\"method\":\"POST\",\"target\":\"/mcp\",\"request_headers\":[[\"x\",\"{text:.500}\"]],\"status\":202,\"response_headers\":[]}}",
            time(exchange)
        );
        written += listed.len() as u64;
        out.write_all(listed.as_bytes()).unwrap();
    }
    write!(
        out,
        "],\"started_at\":\"2026-11-15T00:00:00Z\",\"ended_at\":\"2026-11-15T23:59:59Z\",\"id\":\"{}\"}}",
        uuid::Uuid::new_v4()
    )
    .unwrap();
    out.flush().unwrap();
}

/// The most that `inspect --json` has held when half of what it prints for a whole file has been read.
fn peak_of_inspect(sandbox: &Sandbox, file: &str, printed_bytes: usize) -> u64 {
    let mut command = sandbox.command(["inspect", "--json", file]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut buffer = vec![0; printed_bytes];
    out.read_exact(&mut buffer).unwrap();
    // It cannot end while so much is unread.
    let peak = peak_bytes(child.id());
    signal(child.id(), rustix::process::Signal::KILL);
    wait(child);
    peak
}

/// The most that an import was seen to hold while it ran.
fn peak_of_import(sandbox: &Sandbox, file: &str) -> u64 {
    let mut command = sandbox.command(["sessions", "import", file]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut peak = 0;
    let status = loop {
        peak = peak.max(peak_bytes(child.id()));
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => std::thread::yield_now(),
        }
    };
    assert!(status.success());
    peak
}

#[test]
fn a_large_session_file_is_read_without_being_held() {
    let sandbox = Sandbox::new();
    write_file(&sandbox.path("small.json"), 256 * 1024);
    write_file(&sandbox.path("large.json"), FILE_BYTES);
    let small = peak_of_inspect(&sandbox, "small.json", 64 * 1024);
    let large = peak_of_inspect(&sandbox, "large.json", FILE_BYTES as usize / 2);
    assert!(large - small.min(large) < GROWTH_MAX, "inspect: {small} and {large}");
    let small = peak_of_import(&sandbox, "small.json");
    let large = peak_of_import(&sandbox, "large.json");
    assert!(large - small.min(large) < GROWTH_MAX, "import: {small} and {large}");
    assert_eq!(sandbox.stdout(["sessions", "list", "--json"]).lines().count(), 2);
}
