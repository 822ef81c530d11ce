//! What of a document is unfolded, and the rows that makes.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::preview::bare;
use super::{Document, NodeId, Span};
use crate::text::fit;

/// Levels of a document that are open at first.
const OPEN_DEPTH: usize = 3;
/// Containers with more in them start folded.
const OPEN_CHILDREN_MAX: usize = 50;
/// Cells of a key: a line has room for its value too.
const KEY_CELLS_MAX: usize = 120;
/// Characters shown of a folded value.
const PREVIEW_CHARS: usize = 200;

/// The folds of one document.
#[derive(Debug)]
pub(crate) struct Tree {
    document: Arc<Document>,
    base: Base,
    /// Containers that are not as the base has them.
    flipped: HashSet<NodeId>,
    /// Nodes with a row, and how deep they stand. In reading order, hence sorted.
    order: Vec<(NodeId, u32)>,
}

/// How containers are that nobody touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Usual,
    Open,
    Closed,
}

/// One row of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub depth: usize,
    pub node: NodeId,
    /// Of what can be folded: whether it is open.
    pub is_open: Option<bool>,
    pub key: Option<Label>,
    /// The value; of a folded one what is in it, of an open one nothing.
    pub preview: Vec<Span>,
    pub children: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// Clean, as it was spelled, without quotes.
    Name(String),
    Index(usize),
}

impl Tree {
    pub(crate) fn new(document: Arc<Document>) -> Self {
        let mut tree = Self { document, base: Base::Usual, flipped: HashSet::new(), order: Vec::new() };
        tree.lay_out();
        tree
    }

    #[cfg(test)]
    pub(crate) fn document(&self) -> &Arc<Document> {
        &self.document
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// The rows of a window; what lies outside the tree is left out.
    pub(crate) fn rows(&self, window: Range<usize>) -> Vec<Row> {
        let end = window.end.min(self.order.len());
        self.order[window.start.min(end)..end].iter().map(|(node, depth)| self.row(*node, *depth)).collect()
    }

    pub(crate) fn node_at(&self, row: usize) -> Option<NodeId> {
        self.order.get(row).map(|(node, _)| *node)
    }

    /// The row of a node, if it is not folded away.
    pub(crate) fn row_of(&self, node: NodeId) -> Option<usize> {
        self.order.binary_search_by_key(&node, |(node, _)| *node).ok()
    }

    /// Folds what is open, opens what is folded. What has nothing in it stays.
    pub(crate) fn toggle(&mut self, node: NodeId) {
        if self.flip(node) {
            self.lay_out();
        }
    }

    /// Opens whatever hides a node, and tells its row.
    pub(crate) fn reveal(&mut self, node: NodeId) -> usize {
        let above: Vec<NodeId> = std::iter::successors(self.parent(node), |above| self.parent(*above)).collect();
        let mut is_changed = false;
        for above in above {
            if !self.is_open(above) {
                is_changed |= self.flip(above);
            }
        }
        if is_changed {
            self.lay_out();
        }
        self.row_of(node).expect("everything above is open")
    }

    pub(crate) fn open_all(&mut self) {
        self.start_over(Base::Open);
    }

    /// Folds everything but the root.
    pub(crate) fn close_all(&mut self) {
        self.start_over(Base::Closed);
    }

    pub(crate) fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.document.parent(node)
    }

    pub(crate) fn path(&self, node: NodeId) -> String {
        self.document.path(node)
    }

    /// Matches, folded away or not: [`reveal`](Self::reveal) the one to go to.
    pub(crate) fn find(&self, needle: &str) -> Vec<NodeId> {
        self.document.find(needle)
    }

    pub(crate) fn is_open(&self, node: NodeId) -> bool {
        let is_open = match self.base {
            Base::Usual => self.is_usually_open(node),
            Base::Open => true,
            Base::Closed => node == 0,
        };
        self.document.is_container(node) && is_open != self.flipped.contains(&node)
    }

    fn is_usually_open(&self, node: NodeId) -> bool {
        let above = std::iter::successors(Some(node), |above| self.parent(*above)).take(OPEN_DEPTH + 1);
        above.count() <= OPEN_DEPTH && self.document.children_count(node) <= OPEN_CHILDREN_MAX
    }

    fn flip(&mut self, node: NodeId) -> bool {
        let can_fold = self.document.is_container(node);
        if can_fold && !self.flipped.remove(&node) {
            self.flipped.insert(node);
        }
        can_fold
    }

    fn start_over(&mut self, base: Base) {
        self.base = base;
        self.flipped.clear();
        self.lay_out();
    }

    /// Finds the nodes that have a row, stepping over what is folded.
    fn lay_out(&mut self) {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        let mut depth = 0;
        // Where the containers end that are open at this point.
        let mut ends: Vec<NodeId> = Vec::new();
        let mut node = 0;
        while (node as usize) < self.document.len() {
            while ends.last().is_some_and(|end| *end <= node) {
                ends.pop();
                depth -= 1;
            }
            order.push((node, depth));
            let after = self.document.node(node).after;
            if self.is_open(node) {
                ends.push(after);
                depth += 1;
                node += 1;
            } else {
                node = after;
            }
        }
        order.shrink_to(order.len() * 2);
        self.order = order;
    }

    fn row(&self, node: NodeId, depth: u32) -> Row {
        let document = &self.document;
        let is_open = document.is_container(node).then(|| self.is_open(node));
        let name = document.key_source(node).map(|key| Label::Name(fit(bare(key), KEY_CELLS_MAX, false)));
        let index = || document.parent(node).map(|_| Label::Index(document.order(node)));
        Row {
            depth: depth as usize,
            node,
            is_open,
            key: name.or_else(index),
            preview: if is_open == Some(true) { Vec::new() } else { document.preview(node, PREVIEW_CHARS) },
            children: document.children_count(node),
        }
    }
}
