//! Text for a shell: quoted so that it is only ever text, in any POSIX shell.

use mcp_wire::visible::is_deceptive;

/// One word.
pub(super) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    // No word can hold a NUL.
    let text = text.replace('\0', "");
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    if !text.contains(must_be_escaped) {
        return single_quoted(&text);
    }
    // A substitution loses line breaks at the end, so these stand outside of it.
    let body = text.trim_end_matches('\n');
    let breaks = &text[body.len()..];
    let breaks = if breaks.is_empty() { String::new() } else { single_quoted(breaks) };
    format!("\"$(printf {})\"{breaks}", format_of(body.as_bytes()))
}

/// A command that writes these bytes and no others.
pub(super) fn printf(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(must_be_escaped) => format!("printf %s {}", single_quoted(text)),
        _ => format!("printf {}", format_of(bytes)),
    }
}

fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Control characters, and what deceives whoever reads the script before running it.
fn must_be_escaped(c: char) -> bool {
    c.is_ascii_control() || is_deceptive(c)
}

/// A format for `printf` that has no arguments.
fn format_of(bytes: &[u8]) -> String {
    let mut format = String::with_capacity(bytes.len() + 2);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '%' => format.push_str("%%"),
                '\\' => format.push_str(r"\\"),
                // At the beginning it would be an option.
                '-' if format.is_empty() => format.push_str(r"\055"),
                c if must_be_escaped(c) => octal(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut format),
                c => format.push(c),
            }
        }
        octal(chunk.invalid(), &mut format);
    }
    single_quoted(&format)
}

fn octal(bytes: &[u8], format: &mut String) {
    bytes.iter().for_each(|byte| format.push_str(&format!("\\{byte:03o}")));
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn run(script: &str) -> Vec<u8> {
        Command::new("sh").args(["-c", script]).output().expect("there is a shell").stdout
    }

    #[test]
    fn words_are_words() {
        for text in [
            "plain",
            "",
            "it's",
            "$(reboot)",
            "`id`",
            "a\nb",
            "end\n\n",
            "-n",
            "\u{202e}x",
            "\x1b[2J",
            "é 漢",
            "*",
            "a\\b%s",
        ] {
            assert_eq!(run(&format!("printf %s {}", word(text))), text.as_bytes(), "{text:?}");
        }
        assert_eq!(word("a\0b"), "ab");
        assert!(!word("\x1b[2J\u{202e}").contains(['\x1b', '\u{202e}']));
    }

    #[test]
    fn bytes_are_bytes() {
        for bytes in [&b"\x00\xff%s\\n'\"$x`"[..], b"-e", b"", b"{\"a\":\"\\u0000\"}", b"\r\n", "\u{9b}".as_bytes()] {
            assert_eq!(run(&printf(bytes)), bytes, "{bytes:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn no_text_breaks_out(text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let text = text.replace('\0', "");
            prop_assert_eq!(run(&format!("printf %s {}", word(&text))), text.as_bytes());
            prop_assert_eq!(run(&printf(&bytes)), bytes);
        }
    }
}
