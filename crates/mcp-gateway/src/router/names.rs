//! Whose a name is that a client uses. Most names say it themselves. What has to be learnt from lists are
//! shortened names, and those of servers whose names are given out as they are. Where two claim a name,
//! neither gets it: the last one to come must not take what was another's.

use std::collections::HashMap;
use std::rc::Rc;

use foldhash::fast::RandomState;
use mcp_wire::fold;

use super::ListKind;
use super::namespace::{Namespace, Ours};
use super::template::may_expand_to;

/// The names of all servers, in the order of the configuration.
#[derive(Debug)]
pub struct Names {
    servers: Vec<Namespace>,
    /// What each server lists, by kind; `None` until it was heard.
    listed: Vec<[Option<Vec<String>>; 4]>,
    /// Who claims what is given out, by kind.
    claims: [HashMap<String, Claim, RandomState>; 4],
}

/// Where a name or an address leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Is {
        server: usize,
        original: Rc<str>,
    },
    /// It may be a shortened name of this server's, whose list has to be read first.
    Ask {
        server: usize,
    },
    /// Nobody is known to have it. These servers give out their names as they are, and may.
    Nowhere {
        candidates: Vec<usize>,
    },
    /// Several claim it, so that it leads nowhere.
    Collides {
        servers: Vec<usize>,
    },
}

/// Names of which a reader could take one for the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    pub kind: ListKind,
    /// In the order of the configuration. All of them lead nowhere.
    pub claimants: Vec<Claimant>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claimant {
    pub server: usize,
    pub original: String,
    pub given: String,
}

#[derive(Debug)]
enum Claim {
    One { server: usize, original: Rc<str> },
    Several(Vec<usize>),
}

impl Names {
    pub fn new(servers: Vec<Namespace>) -> Self {
        let listed = servers.iter().map(|_| Default::default()).collect();
        Self { servers, listed, claims: Default::default() }
    }

    pub fn servers(&self) -> &[Namespace] {
        &self.servers
    }

    /// Takes note of what a server lists, in place of what was known of that, and tells all collisions that
    /// it is part of.
    pub fn learn(&mut self, server: usize, kind: ListKind, originals: &[String]) -> Vec<Collision> {
        let mut originals = originals.to_vec();
        originals.sort_unstable();
        originals.dedup();
        let Some(listed) = self.listed.get_mut(server) else { return Vec::new() };
        listed[kind as usize] = Some(originals);
        let mut collisions = self.claim_anew(kind);
        collisions.retain(|collision| collision.claimants.iter().any(|claimant| claimant.server == server));
        collisions
    }

    /// Whether it is known what a server lists.
    pub fn knows(&self, server: usize, kind: ListKind) -> bool {
        self.listed.get(server).is_some_and(|listed| listed[kind as usize].is_some())
    }

    pub fn tool(&self, given: &str) -> Found {
        self.named(ListKind::Tools, given)
    }

    /// Where a tool of this name would be looked for if no server listed it.
    pub fn unlisted_tool(&self, given: &str) -> Found {
        self.unlisted(ListKind::Tools, given)
    }

    pub fn prompt(&self, given: &str) -> Found {
        self.named(ListKind::Prompts, given)
    }

    /// An address of a resource, a template's text, or what one expands to.
    pub fn uri(&self, given: &str) -> Found {
        let ours = Ours::read(given).and_then(|ours| Some((self.by_id(&ours.server)?, ours.original.into())));
        let claimed = self.claims[ListKind::Resources as usize]
            .get(given)
            .or_else(|| self.claims[ListKind::Templates as usize].get(given));
        match (ours, claimed) {
            (None, None) => self.by_template(given).unwrap_or_else(|| self.nowhere()),
            (None, Some(claim)) => claim.found(),
            (Some((server, original)), None) => Found::Is { server, original },
            (Some((server, original)), Some(claim)) => match claim.found() {
                // What is behind the prefix-less server is a gateway like this one.
                Found::Is { server: other, .. } if other != server => Found::Collides { servers: both(server, other) },
                Found::Collides { servers } => Found::Collides { servers },
                _ => Found::Is { server, original },
            },
        }
    }

    /// Whether it is a template itself, as clients are given it.
    pub fn is_template(&self, given: &str) -> bool {
        self.claims[ListKind::Templates as usize].contains_key(given)
    }

    /// Who lists a template for an address, of those that give out their names as they are.
    fn by_template(&self, given: &str) -> Option<Found> {
        let lists = |listed: &[Option<Vec<String>>; 4]| {
            let mut templates = listed[ListKind::Templates as usize].iter().flatten();
            templates.any(|template| may_expand_to(template, given))
        };
        let owners: Vec<usize> = (0..self.servers.len())
            .filter(|server| !self.servers[*server].is_prefixed() && lists(&self.listed[*server]))
            .collect();
        match owners[..] {
            [] => None,
            [server] => Some(Found::Is { server, original: given.into() }),
            _ => Some(Found::Collides { servers: owners }),
        }
    }

    pub fn task(&self, given: &str) -> Found {
        let found = self.servers.iter().enumerate().find_map(|(server, names)| {
            let original = names.original_task(given)?.into();
            Some(Found::Is { server, original })
        });
        found.unwrap_or_else(|| self.nowhere())
    }

    fn named(&self, kind: ListKind, given: &str) -> Found {
        if let Some(claim) = self.claims[kind as usize].get(given) {
            return claim.found();
        }
        self.unlisted(kind, given)
    }

    fn unlisted(&self, kind: ListKind, given: &str) -> Found {
        // An id may end in `_`, so that `a` and `a_` both look like the owner of `a___b`.
        let owners: Vec<_> = self.owners(given).collect();
        match owners.as_slice() {
            [] => self.nowhere(),
            [(server, name)] if self.servers[*server].looks_shortened(name) && !self.knows(*server, kind) => {
                Found::Ask { server: *server }
            }
            [(server, name)] => Found::Is { server: *server, original: (*name).into() },
            several => match several.iter().find(|(server, _)| !self.knows(*server, kind)) {
                Some((server, _)) => Found::Ask { server: *server },
                None => Found::Collides { servers: several.iter().map(|(server, _)| *server).collect() },
            },
        }
    }

    fn nowhere(&self) -> Found {
        let servers = self.servers.iter().enumerate();
        Found::Nowhere { candidates: servers.filter(|(_, names)| !names.is_prefixed()).map(|(at, _)| at).collect() }
    }

    fn by_id(&self, id: &str) -> Option<usize> {
        self.servers.iter().position(|names| **names.id() == *id)
    }

    /// Finds out again who claims what of a kind, and where that collides.
    fn claim_anew(&mut self, kind: ListKind) -> Vec<Collision> {
        let claimants = self.claimants(kind);
        let claims = &mut self.claims[kind as usize];
        claims.clear();
        for Claimant { server, original, given } in &claimants {
            claims.insert(given.clone(), Claim::One { server: *server, original: original.as_str().into() });
        }
        let collisions = collisions(kind, claimants, &self.servers);
        for Collision { claimants, .. } in &collisions {
            let mut servers: Vec<_> = claimants.iter().map(|claimant| claimant.server).collect();
            servers.dedup();
            for claimant in claimants {
                claims.insert(claimant.given.clone(), Claim::Several(servers.clone()));
            }
        }
        collisions
    }

    fn claimants(&self, kind: ListKind) -> Vec<Claimant> {
        let mut all = Vec::new();
        for (server, listed) in self.listed.iter().enumerate() {
            let names = &self.servers[server];
            for original in listed[kind as usize].iter().flatten() {
                let given = match kind {
                    ListKind::Tools | ListKind::Prompts => names.name(original),
                    ListKind::Resources => names.uri(original),
                    ListKind::Templates => names.template(original),
                };
                if matches!(kind, ListKind::Tools | ListKind::Prompts) && !names.is_prefixed() {
                    all.extend(self.owners(&given).map(|(owner, name)| Claimant {
                        server: owner,
                        original: name.to_owned(),
                        given: given.clone(),
                    }));
                }
                all.push(Claimant { server, original: original.clone(), given });
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The servers whose prefix a name has, and what would be their name for it. They claim it whether they
    /// list it or not: a neighbour could otherwise take what they have not told of yet.
    fn owners<'a>(&'a self, given: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
        self.servers.iter().enumerate().filter_map(move |(at, names)| Some((at, names.unprefixed(given)?)))
    }
}

/// Groups those that claim the same, or what looks the same where one of two servers chose all of the name
/// itself. One server may tell `a` from `A`, and prefixes keep the rest apart.
fn collisions(kind: ListKind, claimants: Vec<Claimant>, servers: &[Namespace]) -> Vec<Collision> {
    let mut alike: HashMap<String, Vec<Claimant>, RandomState> = HashMap::default();
    for claimant in claimants {
        let form = match kind {
            ListKind::Tools | ListKind::Prompts => fold::skeleton(&claimant.given).into_owned(),
            // Addresses differ in case alone often enough, and nobody types them.
            ListKind::Resources | ListKind::Templates => claimant.given.clone(),
        };
        alike.entry(form).or_default().push(claimant);
    }
    let mut collisions = Vec::new();
    for group in alike.into_values().filter(|group| group.len() > 1) {
        let is_bare = |claimant: &Claimant| !servers[claimant.server].is_prefixed();
        if group.iter().any(is_bare) && group.iter().any(|claimant| claimant.server != group[0].server) {
            collisions.push(group);
            continue;
        }
        let mut same: HashMap<String, Vec<Claimant>, RandomState> = HashMap::default();
        for claimant in group {
            same.entry(claimant.given.clone()).or_default().push(claimant);
        }
        collisions.extend(same.into_values().filter(|same| same.len() > 1));
    }
    let mut collisions: Vec<_> = collisions.into_iter().map(|claimants| Collision { kind, claimants }).collect();
    collisions.sort_by(|a, b| a.claimants.cmp(&b.claimants));
    collisions
}

impl Claim {
    fn found(&self) -> Found {
        match self {
            Self::One { server, original } => Found::Is { server: *server, original: Rc::clone(original) },
            Self::Several(servers) => Found::Collides { servers: servers.clone() },
        }
    }
}

fn both(one: usize, other: usize) -> Vec<usize> {
    vec![one.min(other), one.max(other)]
}

#[cfg(test)]
mod tests;
