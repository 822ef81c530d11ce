//! The bytes that arrive are the bytes that leave, both ways, and in the saved session file.

use std::path::Path;

use base64::Engine;
use mcp_store::Direction;
use serde_json::value::RawValue;

use crate::kit::{self, Sandbox, wire_fixtures};

/// The project's messages, the official examples where they are at hand, and a few too large to keep.
pub fn corpus() -> Vec<(String, Vec<u8>)> {
    let mut corpus = wire_fixtures();
    corpus.extend(official_examples());
    let deep =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"deep","params":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    corpus.push(("generated: 10,000 deep".into(), deep.into_bytes()));
    let objects = format!(r#"{{"result":{}1{},"id":1}}"#, r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
    corpus.push(("generated: 10,000 objects".into(), objects.into_bytes()));
    for (name, size) in [("64 KiB", 1 << 16), ("1 MiB", 1 << 20), ("32 MiB", 32 << 20)] {
        let text = "déjà vu \\\"x\\\" \\n".repeat(size / 17);
        corpus.push((
            format!("generated: {name}"),
            format!(r#"{{"jsonrpc":"2.0","id":9,"method":"big","params":{{"s":"{text}"}}}}"#).into_bytes(),
        ));
    }
    corpus
}

/// Those that a line of an event can carry.
pub fn lines_of_events() -> Vec<(String, Vec<u8>)> {
    let is_line = |message: &[u8]| !message.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
    corpus().into_iter().filter(|(_, message)| is_line(message)).collect()
}

fn official_examples() -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/mcp-schema/2026-07-28/examples");
    let mut examples = Vec::new();
    for kind in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
        for file in std::fs::read_dir(kind.path()).into_iter().flatten().flatten() {
            let text = std::fs::read(file.path()).expect("an example can be read");
            // Line framing carries one line; the examples are laid out over several.
            let line: Vec<u8> =
                text.into_iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }).collect();
            examples.push((file.path().display().to_string(), line));
        }
    }
    if examples.is_empty() {
        announce_skip("the official examples are not beside the project");
    }
    examples
}

fn announce_skip(why: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "SKIPPED in part: {why}");
}

fn lines(corpus: &[(String, Vec<u8>)], end: &[u8]) -> Vec<u8> {
    corpus.iter().flat_map(|(_, message)| [message.as_slice(), end].concat()).collect()
}

/// Compares without printing megabytes.
#[track_caller]
pub fn assert_same(got: &[u8], expected: &[u8]) {
    let at =
        got.iter().zip(expected).position(|(got, expected)| got != expected).unwrap_or(got.len().min(expected.len()));
    let around =
        |bytes: &[u8]| String::from_utf8_lossy(&bytes[at.saturating_sub(40)..bytes.len().min(at + 40)]).into_owned();
    assert!(
        got == expected,
        "differs at byte {at} of {}/{}: got …{}… expected …{}…",
        got.len(),
        expected.len(),
        around(got),
        around(expected)
    );
}

#[test]
fn client_to_server() {
    for end in [b"\n".as_slice(), b"\r\n"] {
        let sandbox = Sandbox::new();
        let kept = sandbox.path("kept");
        let mut proxy = sandbox.run(&[], &["keep", kept.to_str().unwrap()]);
        let sent = lines(&corpus(), end);
        proxy.send(&sent);
        let (status, errors) = proxy.end();
        assert!(status.success(), "{errors}");
        assert_same(&std::fs::read(kept).unwrap(), &sent);
    }
}

#[test]
fn server_to_client() {
    let corpus: Vec<_> = corpus().into_iter().filter(|(_, message)| !is_noise(message)).collect();
    for end in [b"\n".as_slice(), b"\r\n"] {
        let sandbox = Sandbox::new();
        let played = sandbox.path("played");
        let sent = lines(&corpus, end);
        std::fs::write(&played, &sent).unwrap();
        let mut proxy = sandbox.run(&[], &["play", played.to_str().unwrap()]);
        let got: Vec<u8> = corpus.iter().flat_map(|_| proxy.line()).collect();
        proxy.close_stdin();
        assert_eq!(proxy.rest(), Vec::<Vec<u8>>::new());
        assert_same(&got, &sent);
        assert!(proxy.end().0.success());
    }
}

/// A byte order mark belongs to the framing of lines.
pub fn without_bom(message: &[u8]) -> &[u8] {
    message.strip_prefix(b"\xef\xbb\xbf").unwrap_or(message)
}

/// Every message of the corpus could be JSON at its first byte.
pub fn is_noise(message: &[u8]) -> bool {
    let message = without_bom(message);
    !matches!(message.trim_ascii_start().first(), Some(b'{' | b'['))
}

#[test]
fn in_the_recording_and_in_the_session_file() {
    #[derive(serde::Deserialize)]
    struct File<'a> {
        #[serde(borrow)]
        messages: Vec<Message<'a>>,
    }
    #[derive(serde::Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        raw: &'a RawValue,
        raw_base64: Option<String>,
        direction: Direction,
    }
    let sandbox = Sandbox::new();
    let corpus = corpus();
    let file = sandbox.path("session.json");
    let mut proxy = sandbox.run(&["--session-file", file.to_str().unwrap()], &["keep", "/dev/null"]);
    proxy.send(&lines(&corpus, b"\n"));
    assert!(proxy.end().0.success());

    crate::schema::check(&file);
    let text = std::fs::read(&file).unwrap();
    let mut saved: File<'_> = serde_json::from_slice(&text).unwrap();
    let mut recorded = kit::recorded(&sandbox.segments()[0]);
    // The server answers nothing, so in the end the proxy does.
    saved.messages.retain(|message| message.direction == Direction::ClientToServer);
    recorded.retain(|message| message.direction == Direction::ClientToServer);
    assert_eq!((saved.messages.len(), recorded.len()), (corpus.len(), corpus.len()));
    for (((name, message), saved), recorded) in corpus.iter().zip(&saved.messages).zip(&recorded) {
        let message = without_bom(message);
        assert!(recorded.raw == message, "{name} in the recording");
        let kept = match &saved.raw_base64 {
            Some(encoded) => base64::engine::general_purpose::STANDARD.decode(encoded).unwrap(),
            None => saved.raw.get().as_bytes().to_vec(),
        };
        assert!(kept == message, "{name} in the session file");
    }
}
