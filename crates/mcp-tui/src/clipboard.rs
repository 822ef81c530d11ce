//! What is copied, and how it gets to the clipboard: by an escape sequence that terminals pass on, also
//! from a machine far away.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mcp_wire::inert::push_escape;
use mcp_wire::visible::is_deceptive;

use crate::text::human_size;

/// Terminals drop longer sequences, some without a word.
pub(crate) const COPIED_BYTES_MAX: usize = 100_000;

/// The sequence (OSC 52) that makes a terminal copy a text. Inside tmux it is wrapped, for tmux to hand it
/// on; `is_tmux` is whether `TMUX` is set. What is too long is refused, in words.
pub(crate) fn copy_sequence(text: &str, is_tmux: bool) -> Result<String, String> {
    if text.len() > COPIED_BYTES_MAX {
        let most = human_size(COPIED_BYTES_MAX as u64);
        return Err(format!("more than {most} is too much for a terminal to copy: export it instead"));
    }
    let sequence = format!("\x1b]52;c;{}\x07", STANDARD.encode(text));
    Ok(if is_tmux { format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")) } else { sequence })
}

/// A command that sends a message to a server over HTTP.
pub(crate) fn as_curl(message: &str, url: &str) -> String {
    let headers = "-H 'content-type: application/json' -H 'accept: application/json, text/event-stream'";
    format!("curl -sS -X POST {headers} --data-raw {} --url {}", quoted(message), quoted(url))
}

/// A command that gives a message to a server that reads standard input. `command` is the server's, as
/// a shell takes it.
pub(crate) fn as_printf(message: &str, command: &str) -> String {
    format!("printf '%s\\n' {} | {}", quoted(message), on_one_line(command))
}

/// One word for a shell. What is in it is made harmless first, for quotes must close where they opened.
fn quoted(text: &str) -> String {
    shell_words::quote(&on_one_line(text)).into_owned()
}

/// The text without anything that a terminal would act on when it is pasted, or that ends a line. Blanks
/// between JSON values may as well be spaces; everything else may as well be an escape.
fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.trim().chars() {
        match c {
            '\n' | '\r' | '\t' => line.push(' '),
            c if c.is_control() || is_deceptive(c) => push_escape(&mut line, c),
            c => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::chance::Chance;

    #[test]
    fn a_terminal_is_told_what_to_copy() {
        assert_eq!(copy_sequence("hi", false).unwrap(), "\x1b]52;c;aGk=\x07");
        assert_eq!(copy_sequence("hi", true).unwrap(), "\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\");
        let words = copy_sequence(&"x".repeat(100_001), false).unwrap_err();
        assert_eq!(words, "more than 100 kB is too much for a terminal to copy: export it instead");
    }

    #[test]
    fn commands_are_quoted() {
        assert_eq!(
            as_curl(r#"{"a":"it's"}"#, "http://[::1]:80/mcp?a=b&c"),
            "curl -sS -X POST -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' \
             --data-raw '{\"a\":\"it'\\''s\"}' --url 'http://[::1]:80/mcp?a=b&c'"
        );
        assert_eq!(as_printf("{\n\t\"a\": 1\r\n}\n", "npx server"), "printf '%s\\n' '{  \"a\": 1  }' | npx server");
    }

    #[test]
    fn what_is_pasted_says_the_same_and_does_nothing() {
        let mut chance = Chance::new(10);
        for _ in 0..2000 {
            let json = chance.json(4);
            let command = as_printf(&json, "cat");
            assert!(!command.chars().any(|c| c.is_control() || is_deceptive(c)), "{command:?}");
            let words = shell_words::split(&command).unwrap();
            let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
            assert_eq!(value(&words[2]), value(&json));
            assert_eq!(words[3..], ["|", "cat"]);
            let curl = shell_words::split(&as_curl(&json, &chance.text(20))).unwrap();
            assert_eq!((curl.len(), curl[10].as_str()), (12, "--url"));
        }
    }
}
