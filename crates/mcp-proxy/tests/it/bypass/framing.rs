//! Streams that try to have the server cut other messages from them than the proxy did.

use super::readings::{Denied, denied_calls};
use super::stage::harmless_with;
use super::{Era, RULES, attacks, rules_in};
use crate::kit::Sandbox;

/// What reaches the server of a stream that is all a client sends.
fn received(stream: &[u8]) -> Vec<u8> {
    let sandbox = Sandbox::new();
    let rules = rules_in(&sandbox, RULES);
    let journal = sandbox.path("journal");
    let mut running = sandbox.run(&["--quiet", "--rules", &rules], &["keep", journal.to_str().unwrap()]);
    running.send(stream);
    let (status, said) = running.end();
    assert!(status.success() && !said.contains("panicked"), "{status}: {said}");
    std::fs::read(journal).unwrap()
}

fn counted(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn no_stream_has_a_denied_call_in_it() {
    let era = Era::Modern;
    let denied = attacks::filled("<denied>", era, &mut 10);
    let harmless = harmless_with(era, 1);
    let both = harmless.len() + 1 + denied.len();
    let within = harmless.replace("\"x\"", &format!("\"x\",\"y\":\n{denied}\n"));
    assert_ne!(within, harmless);
    let utf16: Vec<u8> = format!("{denied}\n").encode_utf16().flat_map(u16::to_be_bytes).collect();
    for (name, stream) in [
        ("a counted message", counted(&denied).into_bytes()),
        ("a counted message after another", (counted(&harmless) + &counted(&denied)).into()),
        ("lines after a counted message", format!("{}\n{denied}\n", counted(&harmless)).into()),
        ("a count that takes two messages", format!("Content-Length: {both}\r\n\r\n{harmless}\n{denied}").into()),
        ("a count that ends early", format!("Content-Length: 10\r\n\r\n{harmless}\n{denied}\n").into()),
        ("a count of nothing", format!("Content-Length: 0\r\n\r\n{denied}\n").into()),
        (
            "two counts",
            format!("Content-Length: {}\r\nContent-Length: 2\r\n\r\n{harmless}{denied}", harmless.len()).into(),
        ),
        ("a count past all bounds", format!("Content-Length: 99999999999999999999\r\n\r\n{denied}\n").into()),
        ("a counted message with a line in it", counted(&within).into()),
        ("a count in a stream of lines", format!("{harmless}\n{}\n{harmless}\n", counted(&denied)).into()),
        ("another header before the count", format!("Content-Type: x\r\n{}", counted(&denied)).into()),
        ("lines that end with a CR", format!("{harmless}\r{denied}\r").into()),
        ("lines that end with a CR and an LF", format!("{harmless}\r\n{denied}\r\n").into()),
        ("lines that end with an LF and a CR", format!("{harmless}\n\r{denied}\n\r").into()),
        ("no end of the line", denied.clone().into()),
        ("no end of the last line", format!("{harmless}\n{denied}").into()),
        ("half a line, then another", format!("{{\"jsonrpc\":\n{denied}\n").into()),
        ("blank lines", format!("\n\n \n\r\n{denied}\n\n").into()),
        ("a mark of order", format!("\u{feff}{denied}\n").into()),
        ("a mark of order on the second line", format!("{harmless}\n\u{feff}{denied}\n").into()),
        ("a NUL between lines", format!("{harmless}\n\0{denied}\n\0").into()),
        ("a NUL at the end of a line", format!("{denied}\0\n").into()),
        ("lines that end with an LS", format!("{harmless}\u{2028}{denied}\u{2028}").into()),
        ("lines that end with a NEL", format!("{harmless}\u{85}{denied}\u{85}").into()),
        ("lines that end with a VT", format!("{harmless}\u{b}{denied}\u{b}").into()),
        ("lines that end with an FF", format!("{harmless}\u{c}{denied}\u{c}").into()),
        ("records", format!("\u{1e}{harmless}\n\u{1e}{denied}\n").into()),
        ("an event of a stream of events", format!("event: message\ndata: {denied}\n\n").into()),
        ("UTF-16", utf16),
        ("a request of HTTP", format!("POST /mcp HTTP/1.1\r\nHost: x\r\n{}", counted(&denied)).into()),
    ] {
        let received = received(&stream);
        let found = denied_calls(&received, Denied::More);
        assert!(found.is_empty(), "{name}: {found:?} in {:?}", String::from_utf8_lossy(&received));
    }
}

#[test]
fn a_counted_stream_still_works() {
    let harmless = harmless_with(Era::Modern, 1);
    assert_eq!(received(counted(&harmless).as_bytes()), counted(&harmless).as_bytes());
}
