//! What differs by nature: values that are not the same when the same request is made again.

use std::collections::{BTreeMap, HashMap};

use super::BYTES_MAX;
use crate::json::{Document, NodeId, Shape};

/// Values of one answer that are looked at.
const VALUES_MAX: usize = 20_000;
/// Paths that are proposed; nobody reads through more.
const PROPOSED_MAX: usize = 100;
/// A path this deep or long is no help to anyone.
const PATH_BYTES_MAX: usize = 1000;

/// Paths to leave out of a comparison: those whose value differs between answers to the same request. Where
/// several items of a list differ alike, the path stands for all of them. What is no JSON, or too large to
/// compare, is passed over.
pub fn learn(runs: &[&str]) -> Vec<String> {
    let documents: Vec<Document> =
        runs.iter().filter(|run| run.len() <= BYTES_MAX).filter_map(|run| Document::parse(*run).ok()).collect();
    let Some((first, others)) = documents.split_first() else {
        return Vec::new();
    };
    let others: Vec<HashMap<String, &str>> =
        others.iter().map(|other| values(other).map(|(node, path)| (path, other.source(node))).collect()).collect();
    let mut proposed: BTreeMap<NodeId, String> = BTreeMap::new();
    let mut by_shape: HashMap<String, (NodeId, usize)> = HashMap::new();
    for (node, path) in values(first) {
        let source = first.source(node);
        if others.iter().any(|other| other.get(&path).is_some_and(|value| *value != source)) {
            let general = general(first, node);
            let (earliest, count) = by_shape.entry(general.clone()).or_insert((node, 0));
            *count += 1;
            proposed.insert(*earliest, if *count == 1 { path } else { general });
        }
    }
    proposed.into_values().take(PROPOSED_MAX).collect()
}

/// Scalars, with their paths.
fn values(document: &Document) -> impl Iterator<Item = (NodeId, String)> {
    let is_scalar = |node: &NodeId| !matches!(document.shape(*node), Shape::Object | Shape::Array | Shape::Rest);
    let depth_max = 30;
    let is_near = move |node: &NodeId| {
        std::iter::successors(document.parent(*node), |above| document.parent(*above)).take(depth_max + 1).count()
            <= depth_max
    };
    let nodes = (0..document.len() as NodeId).filter(is_scalar).filter(is_near).take(VALUES_MAX);
    nodes.map(|node| (node, document.path(node))).filter(|(_, path)| path.len() <= PATH_BYTES_MAX)
}

/// The path with every item of its lists in it.
fn general(document: &Document, node: NodeId) -> String {
    document.path_with(node, |path, _| path.push_str("[*]"))
}
