//! The part of a list that is wanted. It is picked here, so it works with any server.

use clap::Args;
use mcp_client::{Listing, text_member};
use mcp_proxy_tool::index::Index;
use mcp_proxy_tool::select::{Filter, Paging};
use serde_json::value::RawValue;

#[derive(Args)]
pub(super) struct FilterArgs {
    /// Only what goes with these words, best first
    #[arg(long, value_name = "WORDS")]
    query: Option<String>,
    /// Only names, or addresses of resources, that begin so
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// Only what has one of these tags
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// At most so many of each type
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,
    /// Leave out so many of each type at the beginning
    #[arg(long, value_name = "N")]
    offset: Option<usize>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "expected a number, at least 1".into())
}

/// How far the name of an item is from the words: zero if it is just that, one if it is behind a gateway's prefix.
fn distance(item: &RawValue, words: &str) -> u8 {
    let name = text_member(item, "name").unwrap_or_default().to_lowercase();
    let words = words.to_lowercase();
    match name.split_once("__") {
        _ if name == words => 0,
        Some((_, behind)) if behind == words => 1,
        _ => 2,
    }
}

impl FilterArgs {
    /// What is wanted of a list, and how many of what goes with the words there are.
    pub(super) fn pick(&self, mut listing: Listing) -> (Listing, usize) {
        let filter = Filter { prefix: self.prefix.clone(), tags: self.tag.clone(), ..Filter::default() };
        let mut items = std::mem::take(&mut listing.items);
        items.retain(|item| filter.matches(item.get().as_bytes()));
        if let Some(query) = &self.query {
            let found = Index::build(items.iter().map(|item| item.get().as_bytes())).search(query);
            items = found.into_iter().filter_map(|at| items.get(at).cloned()).collect();
            items.sort_by_key(|item| distance(item, query.trim()));
        }
        let total = items.len();
        let (range, _) = Paging { limit: self.limit, offset: self.offset }.cut(total);
        (Listing { items: items.drain(range).collect(), ..listing }, total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_name_comes_first() {
        let item = |name: &str, more: &str| {
            RawValue::from_string(format!(r#"{{"name":"{name}"{more}}}"#)).expect("an item is JSON")
        };
        let items = vec![
            item("search_all", r#","title":"Search","description":"Search, search and search""#),
            item("files__search_all", ""),
            item("files__search", ""),
            item("Search", r#","description":"Not to be used""#),
        ];
        let query =
            FilterArgs { query: Some(" search ".into()), prefix: None, tag: Vec::new(), limit: None, offset: None };
        let (found, total) = query.pick(Listing { items, ..Listing::default() });
        let names: Vec<String> = found.items.iter().filter_map(|item| text_member(item, "name")).collect();
        assert_eq!((&names[..2], total), (&["Search".to_owned(), "files__search".to_owned()][..], 4));
    }
}
