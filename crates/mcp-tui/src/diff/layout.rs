//! A message as lines that can be compared.

use std::sync::Arc;

use super::ignore::{Pattern, Reached};
use super::{BYTES_MAX, LINES_MAX};
use crate::json::{Document, Place};

/// One line, and what of it counts.
pub(super) struct Laid {
    /// As it is shown, save that it is not clean.
    pub text: String,
    /// What it is the line of: depth and key. Empty for brackets and for lines that are no JSON.
    counterpart: String,
    /// How much of the text is compared: a comma at the end is not, nor is a value that is ignored.
    compared: usize,
    pub is_ignored: bool,
}

impl Laid {
    pub(super) fn compared(&self) -> &str {
        &self.text[..self.compared]
    }

    /// Whether it stands for the same thing as a line of the other side.
    pub(super) fn is_counterpart(&self, other: &Self) -> bool {
        !self.counterpart.is_empty() && self.counterpart == other.counterpart
    }
}

/// The lines of a message, or `None` if they are too many.
pub(super) fn lay_out(text: &str, ignore: &[Pattern]) -> Option<Vec<Laid>> {
    if text.len() > BYTES_MAX {
        return None;
    }
    match Document::parse(text) {
        Ok(document) => document_lines(&document, ignore),
        Err(_) => plain_lines(text),
    }
}

fn plain_lines(text: &str) -> Option<Vec<Laid>> {
    let line = |line: &str| Laid {
        text: line.to_owned(),
        counterpart: String::new(),
        compared: line.len(),
        is_ignored: false,
    };
    let lines: Vec<Laid> = text.lines().take(LINES_MAX + 1).map(line).collect();
    (lines.len() <= LINES_MAX).then_some(lines)
}

fn document_lines(document: &Document, ignore: &[Pattern]) -> Option<Vec<Laid>> {
    let mut lines = Vec::new();
    // What the patterns have reached at each container that is open here.
    let mut reached: Vec<Arc<Reached>> = Vec::new();
    let mut next = Some(Place::FIRST);
    while let Some(mut place) = next {
        let mut is_ignored = false;
        if place.is_close {
            reached.pop();
        } else {
            let here = match reached.last() {
                Some(above) => above.below(document, place.node, ignore),
                None => Reached::at_root(ignore),
            };
            is_ignored = here.is_goal(ignore);
            if document.children_count(place.node) > 0 && !is_ignored {
                reached.push(Arc::new(here));
            }
        }
        lines.push(line(document, place, is_ignored));
        if lines.len() > LINES_MAX {
            return None;
        }
        // What is ignored is one line, whatever is in it.
        place.is_close |= is_ignored;
        next = place.next(document);
    }
    Some(lines)
}

fn line(document: &Document, place: Place, is_ignored: bool) -> Laid {
    let mut text = place.indent();
    let mut counterpart = String::new();
    if !place.is_close {
        counterpart = format!("{} ", place.depth);
        if let Some(key) = document.key_source(place.node) {
            text.push_str(key);
            text.push_str(": ");
            counterpart.push_str(key);
        }
    }
    let mut compared = text.len();
    let bracket = place.bracket(document);
    match bracket {
        Some("{") if is_ignored => text.push_str("{…}"),
        Some("[") if is_ignored => text.push_str("[…]"),
        Some(bracket) => text.push_str(bracket),
        None => text.push_str(document.source(place.node)),
    }
    if is_ignored {
        // Whether the value is there still counts.
        counterpart.clear();
    } else {
        compared = text.len();
    }
    if place.is_followed(document) || (is_ignored && Place { is_close: true, ..place }.is_followed(document)) {
        text.push(',');
    }
    Laid { text, counterpart, compared, is_ignored }
}
