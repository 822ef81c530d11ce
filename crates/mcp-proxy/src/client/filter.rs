//! The part of a list that is wanted. It is picked here, so it works with any server.

use clap::Args;
use mcp_client::Listing;
use mcp_proxy_tool::index::Index;
use mcp_proxy_tool::select::{Filter, Paging};

#[derive(Args)]
pub struct FilterArgs {
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

impl FilterArgs {
    /// What is wanted of a list, and how many of what goes with the words there are.
    pub fn pick(&self, mut listing: Listing) -> (Listing, usize) {
        let filter = Filter { prefix: self.prefix.clone(), tags: self.tag.clone(), ..Filter::default() };
        let mut items = std::mem::take(&mut listing.items);
        items.retain(|item| filter.matches(item.get().as_bytes()));
        if let Some(query) = &self.query {
            let found = Index::build(items.iter().map(|item| item.get().as_bytes())).search(query);
            items = found.into_iter().filter_map(|at| items.get(at).cloned()).collect();
        }
        let total = items.len();
        let (range, _) = Paging { limit: self.limit, offset: self.offset }.cut(total);
        (Listing { items: items.drain(range).collect(), ..listing }, total)
    }
}
