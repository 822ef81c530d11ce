//! Where a value stands, in the words of the filter language.

use std::fmt::Write;

use super::{Document, NodeId};

pub(super) fn path(document: &Document, node: NodeId) -> String {
    let mut steps = Vec::new();
    let mut at = node;
    while let Some(parent) = document.parent(at) {
        steps.push(at);
        at = parent;
    }
    let mut path = "$".to_owned();
    for step in steps.into_iter().rev() {
        match document.key(step) {
            Some(name) => push_member(&mut path, &name),
            None => push_item(&mut path, document.order(step)),
        }
    }
    path
}

pub(crate) fn push_item(path: &mut String, index: usize) {
    write!(path, "[{index}]").expect("a string takes it");
}

pub(crate) fn push_member(path: &mut String, name: &str) {
    if is_plain(name) {
        path.push('.');
        path.push_str(name);
        return;
    }
    path.push_str("[\"");
    for c in name.chars() {
        match c {
            '"' | '\\' => path.extend(['\\', c]),
            '\n' => path.push_str("\\n"),
            '\r' => path.push_str("\\r"),
            '\t' => path.push_str("\\t"),
            c => path.push(c),
        }
    }
    path.push_str("\"]");
}

/// Whether a name can stand after a dot, by the rule of filters.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '@'))
}
