//! Which part of a list is wanted.

use crate::members::{Members, items};

/// `limit` and `offset`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paging {
    pub limit: Option<usize>,
    pub offset: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of the name; of a resource also of its address.
    pub prefix: Option<String>,
    /// Any of these.
    pub tags: Vec<String>,
    /// The id of a gateway's server.
    pub server: Option<String>,
    /// How the id of a gateway's server begins.
    pub server_prefix: Option<String>,
    pub query: Option<String>,
}

impl Filter {
    /// Whether an item of a list, as JSON, is meant, as far as prefix and tags tell.
    pub fn matches(&self, item: &[u8]) -> bool {
        if self.prefix.is_none() && self.tags.is_empty() {
            return true;
        }
        Members::of(item).is_some_and(|item| self.has_prefix(&item) && self.has_tag(&item))
    }

    fn has_prefix(&self, item: &Members<'_>) -> bool {
        let Some(prefix) = &self.prefix else { return true };
        ["name", "uri", "uriTemplate"]
            .into_iter()
            .any(|key| item.text(key).is_some_and(|text| text.starts_with(prefix.as_str())))
    }

    /// Servers have no agreed place for tags: they stand beside the name, among the annotations, or in `_meta`, there
    /// often under the name of a framework.
    fn has_tag(&self, item: &Members<'_>) -> bool {
        if self.tags.is_empty() || self.is_tagged(item) {
            return true;
        }
        let among = |key: &str| item.get(key).and_then(Members::of);
        let of_framework = |json: &[u8]| Members::of(json).is_some_and(|part| self.is_tagged(&part));
        among("annotations").is_some_and(|annotations| self.is_tagged(&annotations))
            || among("_meta")
                .is_some_and(|meta| self.is_tagged(&meta) || meta.iter().any(|(_, json)| of_framework(json)))
    }

    /// Whether its own `tags` have one of those that are wanted.
    fn is_tagged(&self, object: &Members<'_>) -> bool {
        let tags = object.get("tags").into_iter().flat_map(items).filter_map(mcp_wire::scan::decode_string);
        tags.into_iter().any(|tag| self.tags.iter().any(|wanted| *wanted == tag))
    }
}

/// The page of a list that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Of what the filter let through.
    pub total: usize,
    pub offset: usize,
    pub limit: Option<usize>,
}

impl Paging {
    /// What part of `total` items this is, and the page to say so; no page where nothing was asked for.
    pub fn cut(&self, total: usize) -> (std::ops::Range<usize>, Option<Page>) {
        let offset = self.offset.unwrap_or(0);
        let start = offset.min(total);
        let end = self.limit.map_or(total, |limit| start.saturating_add(limit).min(total));
        let is_asked_for = self.limit.is_some() || self.offset.is_some();
        (start..end, is_asked_for.then_some(Page { total, offset, limit: self.limit }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(prefix: &str) -> Filter {
        Filter { prefix: Some(prefix.into()), ..Filter::default() }
    }

    fn tags(tags: &[&str]) -> Filter {
        Filter { tags: tags.iter().map(|tag| (*tag).into()).collect(), ..Filter::default() }
    }

    #[track_caller]
    fn check(filter: &Filter, item: &str, expected: bool) {
        assert_eq!(filter.matches(item.as_bytes()), expected, "{item}");
    }

    #[test]
    fn a_prefix_is_that_of_name_or_address() {
        check(&prefix("calc_"), r#"{"name":"calc_add"}"#, true);
        check(&prefix("calc_"), r#"{"name":"my_calc_add"}"#, false);
        check(&prefix("file:"), r#"{"name":"notes","uri":"file:///notes"}"#, true);
        check(&prefix("file:"), r#"{"name":"notes","uriTemplate":"file:///{name}"}"#, true);
        check(&prefix("é"), r#"{"name":"\u00e9tude"}"#, true);
        check(&prefix("x"), r#"{"title":"x"}"#, false);
    }

    #[test]
    fn tags_are_found_wherever_servers_put_them() {
        let maths = tags(&["math", "arithmetic"]);
        check(&maths, r#"{"name":"a","tags":["x","math"]}"#, true);
        check(&maths, r#"{"name":"a","annotations":{"tags":["arithmetic"]}}"#, true);
        check(&maths, r#"{"name":"a","_meta":{"tags":["math"]}}"#, true);
        check(&maths, r#"{"name":"a","_meta":{"com.example/kit":{"tags":["math"]}}}"#, true);
        check(&maths, r#"{"name":"a","_meta":{"com.example/kit":{"tags":["other"]}}}"#, false);
        check(&maths, r#"{"name":"a","tags":"math"}"#, false);
        check(&maths, r#"{"name":"math"}"#, false);
    }

    #[test]
    fn all_that_is_asked_for_must_hold() {
        check(&Filter { prefix: Some("a".into()), ..tags(&["t"]) }, r#"{"name":"a","tags":["t"]}"#, true);
        check(&Filter { prefix: Some("b".into()), ..tags(&["t"]) }, r#"{"name":"a","tags":["t"]}"#, false);
        check(&Filter::default(), "7", true);
        check(&prefix("a"), "7", false);
    }

    #[test]
    fn a_page_is_cut_from_what_there_is() {
        let cut = |limit, offset, total| {
            let (range, page) = Paging { limit, offset }.cut(total);
            (range.start, range.end, page.is_some())
        };
        assert_eq!(cut(None, None, 7), (0, 7, false));
        assert_eq!(cut(Some(3), None, 7), (0, 3, true));
        assert_eq!(cut(Some(3), Some(6), 7), (6, 7, true));
        assert_eq!(cut(None, Some(2), 7), (2, 7, true));
        assert_eq!(cut(Some(3), Some(70), 7), (7, 7, true));
        assert_eq!(cut(Some(usize::MAX), Some(usize::MAX), 7), (7, 7, true));
        let page = Page { total: 7, offset: 70, limit: Some(3) };
        assert_eq!(Paging { limit: Some(3), offset: Some(70) }.cut(7).1, Some(page));
    }
}
