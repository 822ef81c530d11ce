//! What is said while a face of this process draws on the terminal: kept, and said when it is done. A
//! standard error that is no terminal is in nobody's way.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_transport::stdio::stderr;

/// Lines, and bytes, kept while a face draws and printed under the prompt afterwards. A screen or two of text; the
/// oldest go first.
const LINES_MAX: usize = 100;
const BYTES_MAX: usize = 64 * 1024;

static KEPT: Mutex<Option<Lines>> = Mutex::new(None);

/// From here until this is dropped nothing is said on standard error.
#[must_use]
pub(crate) struct Kept(());

/// Keeps what is said from now on.
pub(crate) fn keep() -> Kept {
    if std::io::stderr().is_terminal() {
        *lines() = Some(Lines::default());
        stderr::keep_to_ourselves(true);
    }
    Kept(())
}

impl Drop for Kept {
    fn drop(&mut self) {
        say_kept();
    }
}

/// Says what was kept, and keeps nothing more.
pub(crate) fn say_kept() {
    stderr::keep_to_ourselves(false);
    let kept = lines().take();
    kept.iter().flat_map(Lines::all).for_each(|line| super::say_now(&line));
}

/// Whether `text` is kept instead of said.
pub(super) fn takes(text: &str) -> bool {
    match &mut *lines() {
        Some(lines) => {
            lines.add(text);
            true
        }
        None => false,
    }
}

fn lines() -> MutexGuard<'static, Option<Lines>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Lines {
    newest: VecDeque<String>,
    bytes: usize,
    left_out: usize,
}

impl Lines {
    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.newest.push_back(text.to_owned());
        while self.newest.len() > LINES_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.newest.pop_front() else { return };
            self.bytes -= oldest.len();
            self.left_out += 1;
        }
    }

    fn all(&self) -> impl Iterator<Item = String> {
        let left_out = match self.left_out {
            0 => None,
            1 => Some("mcp-proxy: 1 earlier line was left out".to_owned()),
            count => Some(format!("mcp-proxy: {count} earlier lines were left out")),
        };
        left_out.into_iter().chain(self.newest.iter().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(texts: impl IntoIterator<Item = String>) -> Vec<String> {
        let mut lines = Lines::default();
        texts.into_iter().for_each(|text| lines.add(&text));
        lines.all().collect()
    }

    #[test]
    fn the_newest_lines_are_kept_in_their_order() {
        assert_eq!(kept([]), Vec::<String>::new());
        assert_eq!(kept(["a".into(), "b".into()]), ["a", "b"]);
        let many = kept((0..LINES_MAX + 2).map(|number| number.to_string()));
        assert_eq!(many.len(), LINES_MAX + 1);
        assert_eq!((many[0].as_str(), many[1].as_str()), ("mcp-proxy: 2 earlier lines were left out", "2"));
    }

    #[test]
    fn a_text_that_is_too_long_is_left_out_as_others_are() {
        let long = "x".repeat(BYTES_MAX + 1);
        assert_eq!(kept(["a".into(), long, "b".into()]), ["mcp-proxy: 2 earlier lines were left out", "b"]);
    }
}
