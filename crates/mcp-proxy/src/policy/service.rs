//! Which of a file's services a server is, and the rules that follow: those of the one that is named, of each
//! server of a gateway its own, or else of each tool the service that its name begins with.

use std::sync::Arc;

use mcp_engine::policy::operation::Classifier;
use mcp_engine::policy::rules::{Denial, Permission, Rule, RuleVerdict, Rules};
use mcp_filter::{Filter, nearest};
use mcp_wire::visible::visible;

use crate::config::Source;
use crate::failure::{Failure, quoted};

use super::file::{Read, kept};
use super::services::{Entry, Services};

/// Services that are listed where one has to be chosen.
const LISTED_MAX: usize = 20;

/// What the command line says about which service this is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Naming<'a> {
    /// `--service`
    pub service: Option<&'a str>,
    /// The servers of a gateway, by their ids; none where there is only one.
    pub servers: &'a [Arc<str>],
    /// `--name`
    pub name: Option<&'a str>,
}

/// Whose rules apply.
enum Whose<'a> {
    One(&'a str),
    /// Of each server of a gateway, the service that is called like it.
    EachServers,
    /// Of each tool, the service that its name begins with.
    EachTools,
}

impl Services {
    /// The rules for this server.
    pub fn apply(&self, source: &Source, naming: Naming<'_>) -> Result<Read, Failure> {
        let whose = self.whose(source, naming)?;
        let rules = self.entries.iter().filter_map(|entry| match whose {
            Whose::One(service) => (service == entry.service).then(|| rule(entry, "")),
            Whose::EachServers => server_is(&entry.service).map(|server| rule(entry, &server)),
            Whose::EachTools => Some(rule(entry, &self.tools_of(&entry.service))),
        });
        let server = match whose {
            Whose::One(service) => Some(service),
            Whose::EachServers => naming.name,
            Whose::EachTools => naming.service.or(naming.name),
        };
        let rules = Rules {
            rules: rules.collect(),
            default: self.default,
            classifier: Classifier::default(),
            hide_denied: false,
            denial: Denial::Error,
            audit_required: false,
            server: server.map(kept),
            version: kept(source.version()),
        };
        Ok(Read { rules, note: self.note(&whose, naming) })
    }

    fn whose<'a>(&'a self, source: &Source, naming: Naming<'a>) -> Result<Whose<'a>, Failure> {
        let listed = |wanted: &&str| self.names.iter().any(|name| name == wanted);
        match (naming, self.names.as_slice()) {
            (_, []) => Ok(Whose::EachTools),
            (Naming { service: Some(service), .. }, _) if listed(&service) => Ok(Whose::One(service)),
            (Naming { service: Some(service), .. }, _) => Err(self.no_such(service, source)),
            (Naming { servers: [_, ..], .. }, names) => match names.iter().any(|name| is_server(name, naming)) {
                true => Ok(Whose::EachServers),
                false => Err(self.nobodys(source, naming)),
            },
            (Naming { name: Some(name), .. }, _) if listed(&name) => Ok(Whose::One(name)),
            (_, [only]) => Ok(Whose::One(only)),
            (_, names) => match names.iter().find(|name| !is_word(name)) {
                Some(odd) => Err(self.unnamed(odd, source)),
                None => Ok(Whose::EachTools),
            },
        }
    }

    /// Rules that silently apply to nothing would be worse than none.
    fn no_such(&self, service: &str, source: &Source) -> Failure {
        let what = format!("there is no service `{}` in the rules in {}", visible(service), quoted(source.path()));
        let failure = Failure::usage(what);
        match nearest(service, self.names.iter().map(String::as_str)) {
            Some(near) => failure.hint(format!("did you mean --service {}?", visible(&shell_words::quote(near)))),
            None => failure.hint(format!("give --service with one of {}", self.list())),
        }
    }

    /// The same for a gateway that has none of these servers.
    fn nobodys(&self, source: &Source, naming: Naming<'_>) -> Failure {
        let what = format!("none of this gateway's servers is a service of the rules in {}", quoted(source.path()));
        let servers: Vec<String> = naming.servers.iter().map(|server| format!("`{server}`")).take(LISTED_MAX).collect();
        Failure::usage(what).hint(format!(
            "the rules are about {}, and the servers are {}",
            self.list(),
            servers.join(", ")
        ))
    }

    fn unnamed(&self, odd: &str, source: &Source) -> Failure {
        let why = format!("no tool's name can begin with `{}`", visible(odd));
        Failure::usage(format!("cannot tell whose rules in {} apply here: {why}", quoted(source.path())))
            .hint(format!("name the service with --service: one of {}", self.list()))
    }

    fn note(&self, whose: &Whose<'_>, naming: Naming<'_>) -> Option<String> {
        match whose {
            Whose::One(service) => Some(format!("those of the service `{}`", visible(service))),
            Whose::EachServers => {
                let absent = self.names.iter().filter(|name| !is_server(name, naming));
                let absent: Vec<String> = absent.map(|name| format!("`{}`", visible(name))).take(LISTED_MAX).collect();
                let of = "each server's by the service of its name";
                Some(match absent.is_empty() {
                    true => of.to_owned(),
                    false => format!("{of}; no server is called {}", absent.join(", ")),
                })
            }
            Whose::EachTools if self.names.is_empty() => None,
            Whose::EachTools => Some(format!(
                "each tool's by the service that its name begins with ({}); other tools get the default, unless \
                 --service names theirs",
                self.list()
            )),
        }
    }

    fn list(&self) -> String {
        let mut names: Vec<String> =
            self.names.iter().take(LISTED_MAX).map(|name| format!("`{}`", visible(name))).collect();
        if self.names.len() > LISTED_MAX {
            names.push(format!("{} more", self.names.len() - LISTED_MAX));
        }
        names.join(", ")
    }

    /// The filter of tools whose names begin with the service, and not with a longer one: of `google`
    /// and `google_drive`, a tool is the longer one's.
    fn tools_of(&self, service: &str) -> String {
        let mut filter = format!(" {}", begins_with(service));
        for longer in self.names.iter().filter(|name| name.len() > service.len() && is_begun_by(name, service)) {
            filter.push_str(&format!(" not {}", begins_with(longer)));
        }
        filter
    }
}

fn rule(entry: &Entry, tools: &str) -> Rule {
    let filter = format!("op:{}{tools}", entry.operation);
    Rule {
        name: kept(&format!("{}.{}", entry.service, entry.operation)),
        filter: Filter::parse(&filter).expect("it is made of letters that stand for themselves"),
        verdict: match entry.permission {
            Permission::Allow => RuleVerdict::Allow,
            Permission::Deny => RuleVerdict::Deny,
        },
        message: entry.reason.as_deref().map(kept),
        timeout: None,
        on_timeout: Permission::Deny,
    }
}

fn is_server(service: &str, naming: Naming<'_>) -> bool {
    naming.servers.iter().any(|server| **server == *service)
}

/// The filter of what is for the server that is called like a service, if one can be called so.
fn server_is(service: &str) -> Option<String> {
    let can_be_id = service.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    can_be_id.then(|| format!(" server=\"{service}\""))
}

/// Whether the name of a tool can begin with it as a whole word.
fn is_word(service: &str) -> bool {
    let ends = [service.chars().next(), service.chars().next_back()];
    ends.into_iter().all(|end| end.is_some_and(|end| end.is_ascii_alphanumeric()))
        && service.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

fn is_begun_by(name: &str, service: &str) -> bool {
    name.get(..service.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(service))
}

/// In any case, up to the end of the name, to what is no letter or digit, or to the next word of a name
/// such as `githubListRepos`.
fn begins_with(service: &str) -> String {
    let (body, last) = service.split_at(service.len() - 1);
    let (body, last, small) = (pattern(body), pattern(last), pattern(&last.to_ascii_lowercase()));
    format!("tool~\"^(?i:{body})(?:(?i:{last})(?:[^A-Za-z0-9]|$)|{small}[A-Z])\"")
}

fn pattern(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c.to_string() } else { format!("[{c}]") }).collect()
}

#[cfg(test)]
mod tests;
