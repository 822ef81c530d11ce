//! Hostile text in exports: it is shown, never obeyed, whoever reads the format.

use std::process::Command;

use mcp_wire::visible::is_deceptive;

use crate::export::{exported, fixture_session, page_data};
use crate::kit::{Sandbox, fixture_program};

/// Nothing that a terminal obeys or an eye does not see, except line ends.
#[test]
fn no_export_can_be_obeyed() {
    for format in ["ndjson", "har", "md", "html", "curl"] {
        let text = exported("hostile", format, &[]);
        let bad: Vec<char> = text.chars().filter(|c| (c.is_control() && *c != '\n') || is_deceptive(*c)).collect();
        assert!(bad.is_empty(), "{format}: {bad:?}");
    }
}

#[test]
fn data_stays_data_in_every_format() {
    let lines = exported("hostile", "ndjson", &[]);
    assert_eq!(lines.lines().count(), 45);
    for line in lines.lines() {
        serde_json::from_str::<&serde_json::value::RawValue>(line)
            .map(drop)
            .unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    serde_json::from_str::<serde_json::Value>(&exported("hostile", "har", &[])).unwrap();
    let page = exported("hostile", "html", &[]);
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (2, 2));
    assert!(!page_data(&page).contains(['<', '>', '&']));
    assert_eq!(page.matches("<img").count(), 0);
}

/// Whatever a peer wrote stands in code.
#[test]
fn a_report_keeps_text_in_its_fences() {
    let report = exported("hostile", "md", &[]);
    let mut fence: Option<String> = None;
    for line in report.lines() {
        let ticks: String = line.chars().take_while(|c| *c == '`').collect();
        match &fence {
            Some(open) if ticks.len() >= open.len() && line.trim_end() == ticks => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 => fence = Some(ticks),
            None => {
                let outside = without_code(line);
                for mark in ["<", "![", "](", "javascript:", "pwned", "heading", "out of"] {
                    assert!(!outside.contains(mark), "{mark} in {line}");
                }
            }
        }
    }
    assert_eq!(fence, None, "every fence is closed");
}

/// A line without its code spans, as CommonMark finds them.
fn without_code(line: &str) -> String {
    let (mut outside, mut rest) = (String::new(), line);
    while let Some(at) = rest.find('`') {
        outside.push_str(&rest[..at]);
        let ticks = rest[at..].chars().take_while(|c| *c == '`').count();
        let inside = &rest[at + ticks..];
        let mut from = 0;
        let end = loop {
            let Some(found) = inside[from..].find('`').map(|found| from + found) else { break None };
            let run = inside[found..].chars().take_while(|c| *c == '`').count();
            if run == ticks {
                break Some(found + run);
            }
            from = found + run;
        };
        rest = end.map_or("", |end| &inside[end..]);
    }
    outside + rest
}

/// The script says what was said, to the very program, and does nothing else.
#[test]
fn a_script_runs_nothing_but_the_server() {
    let sandbox = Sandbox::new();
    let script = exported("hostile", "curl", &["--no-redact"]);
    std::fs::write(sandbox.path("script.sh"), &script).unwrap();
    let bin = sandbox.path("bin");
    std::fs::create_dir(&bin).unwrap();
    // In place of the server: keeps its arguments and its input.
    let server = "#!/bin/sh\nfor word do printf '[%s]' \"$word\"; done >args\ncat >input\n";
    std::fs::write(bin.join("evil-server"), server).unwrap();
    make_executable(&bin.join("evil-server"));
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let output = Command::new("sh")
        .arg("script.sh")
        .current_dir(sandbox.path(""))
        .env("PATH", path)
        .env("WAIT", "0")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let names: Vec<_> = std::fs::read_dir(sandbox.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("pwned")), "{names:?}");
    let args = std::fs::read_to_string(sandbox.path("args")).unwrap();
    assert_eq!(args, "[it's][$(touch pwned)][</script><script>alert(1)</script>]");
    let session = mcp_store::Session::open(fixture_session("hostile").as_ref(), None).unwrap();
    let mut sent = Vec::new();
    session
        .for_each(|message| {
            if message.direction == mcp_store::Direction::ClientToServer {
                sent.push(message.raw.iter().map(|&byte| if byte == b'\n' { b' ' } else { byte }).collect::<Vec<u8>>());
            }
            Ok::<_, mcp_store::StoreError>(())
        })
        .unwrap();
    let input = std::fs::read(sandbox.path("input")).unwrap();
    let lines: Vec<&[u8]> = input.strip_suffix(b"\n").unwrap().split(|&byte| byte == b'\n').collect();
    assert_eq!(lines, sent);
}

fn make_executable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
}

/// A call that was recorded is made again by the script, and answered as it was.
#[test]
fn a_script_repeats_a_call() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet"], &["puppet"]);
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    proxy.send(format!("{initialize}\n").as_bytes());
    assert_eq!(proxy.json()["result"]["serverInfo"]["name"], "puppet");
    let call = r#"{"jsonrpc":"2.0","id":"it's","method":"tools/call","params":{"name":"x","arguments":{"t":"\u0000 % $(x) é"}}}"#;
    proxy.send(format!("{call}\n").as_bytes());
    let answered = proxy.line();
    proxy.ask(7, "other");
    assert!(proxy.end().0.success());
    let segment = sandbox.segments().remove(0);
    let segment = segment.to_str().unwrap();
    sandbox.stdout(["export", segment, "--filter", "tool:x", "-o", "again.sh"]);
    let script = std::fs::read_to_string(sandbox.path("again.sh")).unwrap();
    assert!(script.contains("# #3 tools/call [x]") && !script.contains("other"), "{script}");
    assert!(script.contains(fixture_program().to_str().unwrap()), "{script}");
    let output = Command::new("sh").arg(sandbox.path("again.sh")).env("WAIT", "0").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines: Vec<&[u8]> = output.stdout.split_inclusive(|&byte| byte == b'\n').collect();
    assert_eq!(lines.len(), 2, "the handshake and the call: {output:?}");
    assert_eq!(lines[1], answered);
}

/// A string of ten megabytes crosses every format; those for people cut it.
#[test]
fn huge_strings_are_survived() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet"], &["answer"]);
    let huge = "</script>`\\u001b' ".repeat(10 * 1024 * 1024 / 18);
    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{{\"text\":\"{huge}\"}}}}\n");
    let behind = proxy.send_from_behind(line.into_bytes());
    assert_eq!(proxy.json()["id"], 1);
    proxy.put_back(behind.join().unwrap());
    assert!(proxy.end().0.success());
    let segment = sandbox.segments().remove(0);
    for (format, most) in [("json", 12), ("ndjson", 12), ("har", 16), ("curl", 16), ("md", 1), ("html", 1)] {
        let output = sandbox.output(["export", segment.to_str().unwrap(), "--output-format", format, "-o", format]);
        assert!(output.status.success(), "{format}: {}", String::from_utf8_lossy(&output.stderr));
        let size = std::fs::metadata(sandbox.path(format)).unwrap().len();
        assert!(size < most * 1024 * 1024, "{format}: {size}");
    }
}
