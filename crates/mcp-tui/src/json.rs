//! JSON as it came, made to be looked at: a tree that folds, pretty lines, and raw lines that wrap.
//!
//! Nothing is decoded that is not shown, so the spelling of numbers, the order of keys and repeated keys
//! stay as they are. Reading a document takes time in proportion to its length; after that every drawing
//! asks for a window and costs what the window shows.

mod find;
mod parse;
mod path;
mod pretty;
mod preview;
mod tree;
mod wrap;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use mcp_wire::inert::push_escape;
use mcp_wire::scan::decode_string;
use mcp_wire::visible::is_deceptive;

use crate::text::is_unseen;

pub(crate) use parse::Fault;
#[cfg(test)]
use parse::NODES_MAX;
pub(crate) use path::{push_item, push_member};
pub(crate) use pretty::Place;
pub(crate) use pretty::{Pretty, pretty_text};
pub(crate) use tree::{Label, Row, Tree};
pub(crate) use wrap::Wrap;

/// A value of a document, by its place in reading order.
pub(crate) type NodeId = u32;

/// What a stretch of shown text is. Which colour that has is the theme's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Key,
    String,
    Number,
    Bool,
    Null,
    Punct,
    Plain,
    /// What could not be shown as what it is.
    Fault,
}

/// A stretch of clean text of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub kind: Kind,
    pub text: String,
}

impl Span {
    fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
    /// What follows when a document has too many values: the rest of its text.
    Rest,
}

/// A document that was read. Values are numbered in reading order, the root is 0.
#[derive(Debug)]
pub(crate) struct Document {
    text: Arc<str>,
    nodes: Vec<Node>,
}

/// In reading order the first child follows its parent, and `after` is where the next sibling is.
#[derive(Debug)]
struct Node {
    start: u32,
    end: u32,
    /// Where its key starts, [`NONE`] if it has none.
    key: u32,
    /// [`NONE`] for the root.
    parent: u32,
    /// The first node that is not inside.
    after: u32,
    children: u32,
    /// Which of its parent's children it is.
    order: u32,
    shape: Shape,
}

const NONE: u32 = u32::MAX;

impl Document {
    /// Reads JSON text. It need not be a message; it must be one value and nothing after it.
    pub(crate) fn parse(text: impl Into<Arc<str>>) -> Result<Self, Fault> {
        let text = text.into();
        let nodes = parse::nodes(&text)?;
        Ok(Self { text, nodes })
    }

    /// The text as it came.
    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// It had more values than can be folded; the last node is the rest of the text.
    pub(crate) fn is_cut(&self) -> bool {
        self.nodes.last().is_some_and(|node| node.shape == Shape::Rest)
    }

    pub(crate) fn shape(&self, node: NodeId) -> Shape {
        self.node(node).shape
    }

    /// The value as it was spelled.
    pub(crate) fn source(&self, node: NodeId) -> &str {
        let Node { start, end, .. } = *self.node(node);
        &self.text[start as usize..end as usize]
    }

    /// The key as it was spelled, with its quotes.
    pub(crate) fn key_source(&self, node: NodeId) -> Option<&str> {
        let start = self.node(node).key;
        (start != NONE).then(|| {
            let start = start as usize;
            &self.text[start..start + parse::string_len(&self.text.as_bytes()[start..])]
        })
    }

    /// The key, decoded. What is no text, as half a surrogate pair, stays as it was spelled.
    pub(crate) fn key(&self, node: NodeId) -> Option<Cow<'_, str>> {
        self.key_source(node).map(decoded)
    }

    /// What a string says, decoded: for copying it, or for reading the JSON inside.
    pub(crate) fn string(&self, node: NodeId) -> Option<Cow<'_, str>> {
        (self.shape(node) == Shape::String).then(|| decoded(self.source(node)))
    }

    pub(crate) fn parent(&self, node: NodeId) -> Option<NodeId> {
        let parent = self.node(node).parent;
        (parent != NONE).then_some(parent)
    }

    pub(crate) fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        let mut next = node + 1;
        let after = self.node(node).after;
        std::iter::from_fn(move || {
            (next < after).then(|| {
                let child = next;
                next = self.node(child).after;
                child
            })
        })
    }

    pub(crate) fn children_count(&self, node: NodeId) -> usize {
        self.node(node).children as usize
    }

    /// The member of an object by its name; the first, if it is repeated.
    pub(crate) fn member(&self, node: NodeId, name: &str) -> Option<NodeId> {
        self.children(node).find(|child| self.key(*child).is_some_and(|key| key == name))
    }

    /// The path to a value, as filters spell it: `$.params.list[0]`. It is not clean: names stand in it
    /// as they are, so that a filter finds them.
    pub(crate) fn path(&self, node: NodeId) -> String {
        path::path(self, node)
    }

    /// Which of its parent's children it is, from 0.
    pub(crate) fn order(&self, node: NodeId) -> usize {
        self.node(node).order as usize
    }

    /// The first value in reading order that is not inside this one.
    pub(crate) fn after(&self, node: NodeId) -> NodeId {
        self.node(node).after
    }

    /// Values that have these words in them or in their key, in reading order, [`FOUND_MAX`] at most. Case
    /// matters once the needle has a capital.
    pub(crate) fn find(&self, needle: &str) -> Vec<NodeId> {
        find::find(self, needle)
    }

    /// A value on one line, with what is long cut to about `chars_max`.
    pub(crate) fn preview(&self, node: NodeId, chars_max: usize) -> Vec<Span> {
        preview::spans(self, node, chars_max)
    }

    fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node as usize]
    }

    fn is_container(&self, node: NodeId) -> bool {
        self.node(node).children > 0
    }

    fn ids(&self) -> Range<NodeId> {
        0..self.nodes.len() as NodeId
    }
}

fn decoded(source: &str) -> Cow<'_, str> {
    decode_string(source.as_bytes()).unwrap_or_else(|| Cow::Borrowed(&source[1..source.len() - 1]))
}

/// JSON text on several lines for editing, spelling and order kept, save that everything in it can be seen.
pub(crate) fn pretty_of(text: &str) -> String {
    spelled_out(Document::parse(text).map_or_else(|_| text.to_owned(), |document| pretty_text(&document)))
}

/// The same JSON with an escape for every character that nobody would see, or that a terminal would act on.
/// They stand in strings only, so that it says the same.
pub(crate) fn spelled_out(json: String) -> String {
    let is_hidden =
        |c: char| is_deceptive(c) || is_unseen(c, None) || c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if !json.contains(is_hidden) {
        return json;
    }
    let mut spelled = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        match is_hidden(c) {
            true => push_escape(&mut spelled, c),
            false => spelled.push(c),
        }
    }
    spelled
}

#[cfg(test)]
mod tests;
