//! A document over many lines, two blanks a level, everything spelled as it came.

use std::ops::Range;
use std::sync::Arc;

use super::{Document, Kind, NodeId, Shape, Span};
use crate::text::clean;

/// A line of a long string is cut here; the raw view has all of it.
const LINE_CHARS_MAX: usize = 2000;
/// Deeper lines stand no further to the right.
const INDENT_DEPTH_MAX: usize = 100;
/// Every so many lines the place is noted, so that a window far down is found without a walk to it.
const NOTED_EVERY: usize = 256;

/// Pretty lines of a document, made as they are asked for.
#[derive(Debug)]
pub(crate) struct Pretty {
    document: Arc<Document>,
    noted: Vec<Place>,
    lines: usize,
}

/// What stands on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub node: NodeId,
    /// The line of the closing bracket.
    pub is_close: bool,
    pub depth: u32,
}

impl Pretty {
    pub(crate) fn new(document: Arc<Document>) -> Self {
        let mut noted = Vec::new();
        let mut lines = 0;
        for place in places(&document, Place::FIRST) {
            if usize::is_multiple_of(lines, NOTED_EVERY) {
                noted.push(place);
            }
            lines += 1;
        }
        Self { document, noted, lines }
    }

    #[cfg(test)]
    pub(crate) fn document(&self) -> &Arc<Document> {
        &self.document
    }

    /// How many lines there are.
    pub(crate) fn len(&self) -> usize {
        self.lines
    }

    /// The lines of a window; what lies outside is left out.
    pub(crate) fn pretty_lines(&self, window: Range<usize>) -> Vec<Vec<Span>> {
        let Some(from) = self.noted.get(window.start / NOTED_EVERY) else {
            return Vec::new();
        };
        let skipped = window.start % NOTED_EVERY;
        let places = places(&self.document, *from).skip(skipped).take(window.len());
        places.map(|place| line(&self.document, place)).collect()
    }
}

/// The whole document over many lines, uncut and unclean: for editing and copying. What was not read to
/// its end, or would grow beyond measure by its indents, stays as it came.
pub(crate) fn pretty_text(document: &Document) -> String {
    let source = document.text();
    let bytes_max = source.len() * 8 + 1_000_000;
    if document.is_cut() {
        return source.as_ref().to_owned();
    }
    let mut text = String::with_capacity(source.len() * 2);
    for place in places(document, Place::FIRST) {
        if text.len() > bytes_max {
            return source.as_ref().to_owned();
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&place.indent());
        if let (Some(key), false) = (document.key_source(place.node), place.is_close) {
            text.push_str(key);
            text.push_str(": ");
        }
        text.push_str(place.bracket(document).unwrap_or_else(|| document.source(place.node)));
        if place.is_followed(document) {
            text.push(',');
        }
    }
    text
}

impl Place {
    pub(crate) const FIRST: Self = Self { node: 0, is_close: false, depth: 0 };

    pub(crate) fn next(self, document: &Document) -> Option<Self> {
        let node = document.node(self.node);
        if node.children > 0 && !self.is_close {
            return Some(Self { node: self.node + 1, is_close: false, depth: self.depth + 1 });
        }
        let parent = document.parent(self.node)?;
        if node.after < document.node(parent).after {
            return Some(Self { node: node.after, ..self }.opening());
        }
        Some(Self { node: parent, is_close: true, depth: self.depth - 1 })
    }

    fn opening(self) -> Self {
        Self { is_close: false, ..self }
    }

    pub(crate) fn indent(self) -> String {
        "  ".repeat((self.depth as usize).min(INDENT_DEPTH_MAX))
    }

    /// The bracket that is all the value this line has; `None` if it has all of it.
    pub(crate) fn bracket(self, document: &Document) -> Option<&'static str> {
        let node = document.node(self.node);
        match (node.shape, self.is_close) {
            (Shape::Object, _) if node.children == 0 => Some("{}"),
            (Shape::Array, _) if node.children == 0 => Some("[]"),
            (Shape::Object, false) => Some("{"),
            (Shape::Object, true) => Some("}"),
            (Shape::Array, false) => Some("["),
            (Shape::Array, true) => Some("]"),
            _ => None,
        }
    }

    /// Whether a comma follows.
    pub(crate) fn is_followed(self, document: &Document) -> bool {
        let node = document.node(self.node);
        (self.is_close || node.children == 0)
            && document.parent(self.node).is_some_and(|parent| node.after < document.node(parent).after)
    }
}

pub(crate) fn places(document: &Document, from: Place) -> impl Iterator<Item = Place> {
    std::iter::successors(Some(from), |place| place.next(document))
}

fn line(document: &Document, place: Place) -> Vec<Span> {
    let mut spans = Vec::with_capacity(5);
    if place.depth > 0 {
        spans.push(Span::new(Kind::Plain, place.indent()));
    }
    if let (Some(key), false) = (document.key_source(place.node), place.is_close) {
        let key = &key[..key.floor_char_boundary(LINE_CHARS_MAX)];
        spans.push(Span::new(Kind::Key, clean(key)));
        spans.push(Span::new(Kind::Punct, ": "));
    }
    match place.bracket(document) {
        Some(bracket) => spans.push(Span::new(Kind::Punct, bracket)),
        None => spans.extend(document.preview(place.node, LINE_CHARS_MAX)),
    }
    if place.is_followed(document) {
        spans.push(Span::new(Kind::Punct, ","));
    }
    spans
}
