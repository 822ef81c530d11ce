//! Patterns with `*`, which stands for any text, also none. Judging takes time in proportion to the
//! text: the pieces between the stars are looked for one after the other, each where it comes first.

use memchr::memmem::Finder;

#[derive(Clone, Debug)]
pub struct Glob {
    prefix: Box<str>,
    /// What must come between, in this order.
    pieces: Vec<Finder<'static>>,
    /// `None` if there is no star, and `prefix` is all there is.
    suffix: Option<Box<str>>,
}

impl Glob {
    pub fn new(pattern: &str) -> Self {
        let mut parts = pattern.split('*');
        let prefix = parts.next().unwrap_or_default().into();
        let mut rest: Vec<&str> = parts.collect();
        let suffix = rest.pop().map(Into::into);
        let pieces = rest.into_iter().filter(|piece| !piece.is_empty()).map(|piece| Finder::new(piece).into_owned());
        Self { prefix, pieces: pieces.collect(), suffix }
    }

    /// Text that stands for itself.
    pub fn literal(text: &str) -> Self {
        Self { prefix: text.into(), pieces: Vec::new(), suffix: None }
    }

    /// The longest text that everything it matches has in it.
    pub fn longest_piece(&self) -> &[u8] {
        let ends = [self.prefix.as_bytes(), self.suffix.as_deref().unwrap_or_default().as_bytes()];
        ends.into_iter()
            .chain(self.pieces.iter().map(Finder::needle))
            .max_by_key(|piece| piece.len())
            .unwrap_or_default()
    }

    pub fn matches(&self, text: &str) -> bool {
        let Some(rest) = text.strip_prefix(&*self.prefix) else { return false };
        let Some(suffix) = &self.suffix else { return rest.is_empty() };
        let Some(mut rest) = rest.strip_suffix(&**suffix).map(str::as_bytes) else { return false };
        self.pieces.iter().all(|piece| match piece.find(rest) {
            Some(at) => {
                rest = &rest[at + piece.needle().len()..];
                true
            }
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let glob = Glob::new(pattern);
        matching.iter().for_each(|text| assert!(glob.matches(text), "{pattern} {text}"));
        others.iter().for_each(|text| assert!(!glob.matches(text), "{pattern} {text}"));
    }

    #[test]
    fn stars_stand_for_any_text() {
        check("add", &["add"], &["", "adds", "sadd", "ADD"]);
        check("write_*", &["write_file", "write_"], &["write", "rewrite_x"]);
        check("*_file", &["read_file", "_file"], &["read_files"]);
        check("*", &["", "x", "äöü"], &[]);
        check("a*b", &["ab", "axxb"], &["a", "b", "aba"]);
        check("aa*aa", &["aaaa", "aaxaa"], &["aaa", "aa"]);
        check("*a*b*", &["ab", "xaxbx"], &["ba", ""]);
        check("a**b", &["ab", "a*b"], &["a"]);
        check("", &[""], &["x"]);
        assert!(Glob::literal("a*").matches("a*") && !Glob::literal("a*").matches("ab"));
    }
}
