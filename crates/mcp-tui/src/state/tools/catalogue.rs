//! What was listed, put together: the pages of a list are one, and a list that begins anew takes the
//! place of the one before.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use mcp_control::api::{Message, MessageKind};

use super::offer::{Offer, Sort};
use crate::json::Document;

/// Offers of a server, and their bytes, that are kept. A person cannot choose from more.
pub(super) const OFFERS_MAX: usize = 10_000;
pub(super) const BYTES_MAX: usize = 64 << 20;

/// Lists that were seen, and what they come to.
#[derive(Default)]
pub(crate) struct Catalogue {
    lists: BTreeMap<u64, List>,
    /// In the order in which they were listed, one sort after the other.
    pub offers: Vec<Arc<Offer>>,
    /// Tools by their names.
    tools: HashMap<String, Arc<Offer>>,
    /// There was more than is kept.
    pub is_cut: bool,
    /// Grows with every change.
    pub version: u64,
}

/// One answer to a request for a list.
struct List {
    sort: Sort,
    conversation: u32,
    /// Its text is on its way.
    is_coming: bool,
    offers: Vec<Arc<Offer>>,
    /// Another page follows it.
    has_more: bool,
    is_cut: bool,
}

impl Catalogue {
    /// Takes answers, in any order. Returns those that have to be fetched whole.
    pub(crate) fn take<'a>(&mut self, messages: impl DoubleEndedIterator<Item = &'a Message>) -> Vec<u64> {
        let mut missing = Vec::new();
        let mut whole = Vec::new();
        // The newest first, for what is beyond the bound is left out.
        for message in messages.rev() {
            // Of a gateway's servers, what it makes of their lists counts.
            let is_list = message.kind == MessageKind::Response && message.upstream.is_none();
            let Some(sort) = Sort::listed_by(message.method.as_deref()).filter(|_| is_list) else {
                continue;
            };
            let is_known = self.lists.get(&message.sequence).is_some_and(|list| !list.is_coming);
            if is_known || whole.contains(&sort) {
                continue;
            }
            match &message.raw {
                Some(raw) if !self.read(message, sort, raw.get()) => whole.push(sort),
                Some(_) => {}
                None => {
                    self.lists.insert(message.sequence, List::coming(sort, message.conversation));
                    missing.push(message.sequence);
                }
            }
        }
        self.put_together();
        missing
    }

    /// Reads a list, unless one that is known already has taken its place. Then so have all before it.
    fn read(&mut self, message: &Message, sort: Sort, raw: &str) -> bool {
        let mut list = List { is_coming: false, ..List::coming(sort, message.conversation) };
        let Ok(document) = Document::parse(raw) else { return true };
        let result = document.member(0, "result");
        let cursor = result.and_then(|result| document.member(result, "nextCursor"));
        list.has_more = cursor.is_some_and(|cursor| document.string(cursor).is_some());
        let mut newer = self.lists.range(message.sequence + 1..).map(|(_, list)| list);
        if newer.find(|newer| newer.sort == sort).is_some_and(|newer| !list.goes_on_in(newer)) {
            return false;
        }
        let (mut bytes, mut offers) = self.kept();
        list.is_cut = document.is_cut();
        if let Some(result) = result {
            let items = document.member(result, sort.member()).into_iter().flat_map(|list| document.children(list));
            for item in items {
                (bytes, offers) = (bytes + document.source(item).len(), offers + 1);
                if bytes > BYTES_MAX || offers > OFFERS_MAX {
                    list.is_cut = true;
                    break;
                }
                list.offers.extend(Offer::read(sort, document.source(item), message).map(Arc::new));
            }
        }
        self.lists.insert(message.sequence, list);
        true
    }

    fn kept(&self) -> (usize, usize) {
        let offers = self.lists.values().flat_map(|list| &list.offers);
        offers.fold((0, 0), |(bytes, count), offer| (bytes + offer.definition.len(), count + 1))
    }

    fn put_together(&mut self) {
        self.version += 1;
        self.drop_replaced();
        self.is_cut = self.lists.values().any(|list| list.is_cut);
        self.offers.clear();
        for sort in Sort::ALL {
            let mut places: HashMap<&str, usize> = HashMap::new();
            let first = self.offers.len();
            for offer in self.lists.values().filter(|list| list.sort == sort).flat_map(|list| &list.offers) {
                match places.get(offer.name.as_str()) {
                    Some(place) => self.offers[*place] = Arc::clone(offer),
                    None => {
                        places.insert(&offer.name, first + places.len());
                        self.offers.push(Arc::clone(offer));
                    }
                }
            }
        }
        let tools = self.offers.iter().filter(|offer| offer.sort == Sort::Tool);
        self.tools = tools.map(|offer| (offer.name.clone(), Arc::clone(offer))).collect();
    }

    /// A list that another follows is gone, unless that is its next page.
    fn drop_replaced(&mut self) {
        for sort in Sort::ALL {
            let lists: Vec<(u64, &List)> =
                self.lists.iter().filter(|(_, list)| list.sort == sort).map(|(at, list)| (*at, list)).collect();
            let newest_start =
                lists.windows(2).rposition(|pair| !pair[0].1.goes_on_in(pair[1].1)).map_or(0, |at| at + 1);
            let replaced: Vec<u64> = lists[..newest_start].iter().map(|(at, _)| *at).collect();
            replaced.iter().for_each(|at| drop(self.lists.remove(at)));
        }
    }

    pub(crate) fn is_coming(&self, sequence: u64) -> bool {
        self.lists.get(&sequence).is_some_and(|list| list.is_coming)
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<Offer>> {
        self.tools.get(name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.offers.is_empty()
    }

    /// How many there are of a sort.
    pub(crate) fn count(&self, sort: Sort) -> usize {
        self.offers.iter().filter(|offer| offer.sort == sort).count()
    }

    /// What all definitions come to.
    pub(crate) fn bytes(&self) -> u64 {
        self.offers.iter().map(|offer| offer.definition.len() as u64).sum()
    }
}

impl List {
    /// Whether the list that came after it is its next page. What is on its way might yet be anything.
    fn goes_on_in(&self, next: &Self) -> bool {
        self.is_coming || next.is_coming || self.has_more && self.conversation == next.conversation
    }

    fn coming(sort: Sort, conversation: u32) -> Self {
        Self { sort, conversation, is_coming: true, offers: Vec::new(), has_more: false, is_cut: false }
    }
}
