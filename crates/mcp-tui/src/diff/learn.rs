//! What differs by nature: values that are not the same when the same request is made again.

use std::collections::{BTreeMap, HashMap};

use super::BYTES_MAX;
use crate::json::{Document, NodeId, Shape, push_item, push_member};

/// Values of one answer that are compared to learn which paths vary.
const VALUES_MAX: usize = 20_000;
/// Paths that are proposed; a person reads no more.
const PROPOSED_MAX: usize = 100;
/// Deeper or longer paths are not proposed: a person cannot judge them.
const PATH_STEPS_MAX: usize = 30;
const PATH_BYTES_MAX: usize = 500;

/// Paths to leave out of a comparison: those whose value differs between answers to the same request. Where
/// several items of a list differ alike, the path stands for all of them. What is no JSON, or too large to
/// compare, is passed over.
pub(crate) fn learn(runs: &[&str]) -> Vec<String> {
    let runs = runs.iter().filter(|run| run.len() <= BYTES_MAX);
    let documents: Vec<Document> = runs.filter_map(|run| Document::parse(*run).ok()).collect();
    let Some((first, others)) = documents.split_first() else {
        return Vec::new();
    };
    let others: Vec<HashMap<String, &str>> = others.iter().map(by_path).collect();
    let mut proposed: BTreeMap<NodeId, String> = BTreeMap::new();
    let mut by_shape: HashMap<String, (NodeId, usize)> = HashMap::new();
    for Found { node, path, general } in values(first) {
        let source = first.source(node);
        if others.iter().any(|other| other.get(&path).is_some_and(|value| *value != source)) {
            let (earliest, count) = by_shape.entry(general.clone()).or_insert((node, 0));
            *count += 1;
            proposed.insert(*earliest, if *count == 1 { path } else { general });
        }
    }
    proposed.into_values().take(PROPOSED_MAX).collect()
}

fn by_path(document: &Document) -> HashMap<String, &str> {
    values(document).into_iter().map(|found| (found.path, document.source(found.node))).collect()
}

/// A scalar, with its path, and with one that has every item of its lists in it.
struct Found {
    node: NodeId,
    path: String,
    general: String,
}

/// The scalars of a document. Paths grow and shrink along the walk: made anew for each value, those below
/// a long key would cost more than the document is long.
fn values(document: &Document) -> Vec<Found> {
    let mut values = Vec::new();
    let (mut path, mut general) = ("$".to_owned(), "$".to_owned());
    // For each container that is open here: where it ends, and how long its paths are.
    let mut open: Vec<(NodeId, usize, usize)> = Vec::new();
    let mut node = 0;
    while (node as usize) < document.len() && values.len() < VALUES_MAX {
        while open.last().is_some_and(|(after, ..)| *after <= node) {
            open.pop();
        }
        let (_, path_len, general_len) = open.last().copied().unwrap_or((0, 1, 1));
        path.truncate(path_len);
        general.truncate(general_len);
        match document.key(node) {
            Some(key) => [&mut path, &mut general].into_iter().for_each(|path| push_member(path, &key)),
            None if node > 0 => {
                push_item(&mut path, document.order(node));
                general.push_str("[*]");
            }
            None => {}
        }
        let is_list = matches!(document.shape(node), Shape::Object | Shape::Array);
        let is_near = open.len() < PATH_STEPS_MAX && path.len() <= PATH_BYTES_MAX;
        if is_list && is_near {
            open.push((document.after(node), path.len(), general.len()));
        } else if is_near && document.shape(node) != Shape::Rest {
            values.push(Found { node, path: path.clone(), general: general.clone() });
        }
        node = if is_near { node + 1 } else { document.after(node) };
    }
    values
}
