//! Text of peers on its way into a line: redacted, of bounded length, and escaped so that a line can be
//! printed as it is. Names come again and again, so what became of them is remembered.

use std::hash::BuildHasher;

use mcp_wire::inert::push_escape;
use mcp_wire::visible::is_deceptive;

use crate::redact::Redactor;

/// Bytes of a name in a line: a tool, a rule, a client.
pub(super) const NAME_BYTES_MAX: usize = 256;
/// Bytes of a free text in a line: the reason of a decision, or the error that followed.
pub(super) const TEXT_BYTES_MAX: usize = 1024;
/// Bytes of a text that are searched for secrets. More than is kept, because a secret that is cut in the middle is
/// not recognised.
const SEEN_BYTES_MAX: usize = 16 * 1024;
/// Names that need not be redacted again, one a slot. A server has a few dozen tools.
const SLOTS: usize = 256;
/// What stands at the end of a text that was cut.
const CUT: &str = "…";

/// Redacts and escapes, and remembers what it did.
#[derive(Default)]
pub(super) struct Words {
    redactor: Redactor,
    hasher: foldhash::fast::RandomState,
    slots: Vec<Option<Known>>,
}

struct Known {
    name: Box<str>,
    escaped: Box<[u8]>,
}

impl Words {
    /// How many secrets were masked so far.
    pub(super) fn masked(&self) -> u64 {
        self.redactor.masked()
    }

    /// Adds a member whose value is a name; `before` is what stands before that.
    pub(super) fn add_member(&mut self, line: &mut Vec<u8>, before: &[u8], name: &str) {
        line.extend_from_slice(before);
        self.add_name(name, line);
        line.push(b'"');
    }

    /// Adds a name to a line, without quotes.
    pub(super) fn add_name(&mut self, name: &str, line: &mut Vec<u8>) {
        if name.len() > NAME_BYTES_MAX {
            return self.add(name, NAME_BYTES_MAX, line);
        }
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || None);
        }
        let slot = self.hasher.hash_one(name) as usize % SLOTS;
        if let Some(known) = &self.slots[slot]
            && *known.name == *name
        {
            return line.extend_from_slice(&known.escaped);
        }
        let start = line.len();
        self.add(name, NAME_BYTES_MAX, line);
        self.slots[slot] = Some(Known { name: name.into(), escaped: line[start..].into() });
    }

    /// Adds a longer text.
    pub(super) fn add_text(&mut self, text: &str, line: &mut Vec<u8>) {
        self.add(text, TEXT_BYTES_MAX, line);
    }

    fn add(&mut self, text: &str, bytes_max: usize, line: &mut Vec<u8>) {
        let seen = &text[..text.floor_char_boundary(SEEN_BYTES_MAX)];
        let masked = self.redactor.masked();
        let redacted = self.redactor.text(seen);
        if self.redactor.masked() != masked {
            // A secret that was found anywhere is found everywhere from now on.
            self.slots.iter_mut().for_each(|slot| *slot = None);
        }
        let kept = &redacted[..redacted.floor_char_boundary(bytes_max)];
        escape(kept, line);
        if kept.len() < redacted.len() || seen.len() < text.len() {
            line.extend_from_slice(CUT.as_bytes());
        }
    }
}

/// The inside of a JSON string, without anything that a terminal obeys or an eye overlooks.
fn escape(text: &str, line: &mut Vec<u8>) {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        return line.extend_from_slice(text.as_bytes());
    }
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            '\0'..='\x1f' | '\x7f' => push_escape(&mut escaped, c),
            c if is_deceptive(c) => push_escape(&mut escaped, c),
            c => escaped.push(c),
        }
    }
    line.extend_from_slice(escaped.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: &str) {
        let mut words = Words::default();
        for _ in 0..2 {
            let mut line = Vec::new();
            words.add_name(name, &mut line);
            let line = String::from_utf8(line).expect("text");
            assert_eq!(line, expected);
        }
    }

    #[test]
    fn names_are_escaped() {
        check("read_file", "read_file");
        check("a\"b\\c", "a\\\"b\\\\c");
        check("a\nb\u{1b}[2J", "a\\u000ab\\u001b[2J");
        check("x\u{2028}\u{202e}y\u{200b}", "x\\u2028\\u202ey\\u200b");
        check("tag\u{e0041}\u{7f}\u{9b}", "tag\\udb40\\udc41\\u007f\\u009b");
        check("déjà 漢字", "déjà 漢字");
    }

    #[test]
    fn names_are_redacted_before_they_are_cut() {
        check("https://me:hunter22@host/x", "https://me:***@host/x");
        check("run --token abcd1234efgh", "run --token ***");
        let (before, key) = ("n".repeat(NAME_BYTES_MAX - 10), format!("ghp_{}", "a1B2".repeat(10)));
        check(&format!("{before} {key}"), &format!("{before} ***"));
        check(&format!("{before} {key} and so on"), &format!("{before} *** and s…"));
    }

    #[test]
    fn long_names_are_cut_at_a_letter() {
        let long = "é".repeat(1_000_000);
        check(&long, &format!("{}…", "é".repeat(NAME_BYTES_MAX / 2)));
    }

    #[test]
    fn a_secret_is_found_again_where_nothing_names_it() {
        let (mut words, mut line) = (Words::default(), Vec::new());
        words.add_name("tool_zq81xk4w9", &mut line);
        words.add_name("x?password=zq81xk4w9", &mut line);
        line.clear();
        words.add_name("tool_zq81xk4w9", &mut line);
        assert_eq!(String::from_utf8_lossy(&line), "tool_***");
        // A longer text may give one away just as well.
        words.add_name("tool_7hd02mmq5", &mut line);
        words.add_text("because of password=7hd02mmq5", &mut line);
        line.clear();
        words.add_name("tool_7hd02mmq5", &mut line);
        assert_eq!(String::from_utf8_lossy(&line), "tool_***");
    }
}
