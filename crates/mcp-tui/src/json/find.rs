//! Words in a document.

use super::{Document, NodeId, decoded};

/// Places that a search finds; a person steps through no more.
pub(super) const FOUND_MAX: usize = 10_000;

pub(super) fn find(document: &Document, needle: &str) -> Vec<NodeId> {
    if needle.is_empty() {
        return Vec::new();
    }
    let needle = Needle { words: needle, heeds_case: needle.chars().any(char::is_uppercase) };
    document.ids().filter(|node| needle.is_at(document, *node)).take(FOUND_MAX).collect()
}

struct Needle<'a> {
    words: &'a str,
    heeds_case: bool,
}

impl Needle<'_> {
    fn is_at(&self, document: &Document, node: NodeId) -> bool {
        document.key_source(node).is_some_and(|key| self.is_in_source(key))
            || (!document.is_container(node) && self.is_in_source(document.source(node)))
    }

    /// What stands there counts, and what it says.
    fn is_in_source(&self, source: &str) -> bool {
        self.is_in(source) || (source.starts_with('"') && source.contains('\\') && self.is_in(&decoded(source)))
    }

    fn is_in(&self, text: &str) -> bool {
        if self.heeds_case {
            return text.contains(self.words);
        }
        // Letters beyond ASCII are compared as they are: folding them would mean a copy of everything.
        let words = self.words.as_bytes();
        let [low, high] = [words[0].to_ascii_lowercase(), words[0].to_ascii_uppercase()];
        let mut rest = text.as_bytes();
        while let Some(at) = rest.iter().position(|byte| *byte == low || *byte == high) {
            if rest[at..].get(..words.len()).is_some_and(|found| found.eq_ignore_ascii_case(words)) {
                return true;
            }
            rest = &rest[at + 1..];
        }
        false
    }
}
