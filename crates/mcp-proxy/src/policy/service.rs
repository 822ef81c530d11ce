//! Which of a file's services a server is, and the rules that follow: those of the one that is named, of each
//! server of a gateway its own, or else of each tool the service that its name begins with. A tool whose name
//! begins with none could be any service's, so the strictest verdict of all counts for it.

use std::sync::Arc;

use mcp_engine::policy::operation::{Classifier, Operation};
use mcp_engine::policy::rules::{Denial, Permission, Rule, Rules, VerdictKind};
use mcp_filter::{Filter, nearest};
use mcp_wire::visible::visible;

use crate::config::Source;
use crate::failure::{Failure, quoted};

use super::file::{Read, kept};
use super::remarks;
use super::services::{Entry, Services};

/// Services listed where one has to be chosen: a screen.
const LISTED_MAX: usize = 20;

/// What the command line says about which service this is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Naming<'a> {
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
    pub(super) fn apply(&self, source: &Source, naming: Naming<'_>) -> Result<Read, Failure> {
        let whose = self.whose(source, naming)?;
        let mut rules = Vec::new();
        for entry in &self.entries {
            let of = match whose {
                Whose::One(service) if service != entry.service => continue,
                Whose::One(_) => String::new(),
                Whose::EachServers => match server_is(&entry.service) {
                    Some(server) => server,
                    None => continue,
                },
                Whose::EachTools if !is_word(&entry.service) => continue,
                Whose::EachTools => self.tools_of(&entry.service),
            };
            rules.push(rule(entry, &of).ok_or_else(|| self.too_many(source))?);
        }
        for unknown in self.for_unknown(&whose) {
            let of = match whose {
                Whose::EachServers => self.server_of_none(),
                Whose::EachTools | Whose::One(_) => self.tools_of_none(),
            };
            rules.push(unknown.rule(&of).ok_or_else(|| self.too_many(source))?);
        }
        let server = match whose {
            Whose::One(service) => Some(service),
            Whose::EachServers => naming.name,
            Whose::EachTools => naming.service.or(naming.name),
        };
        let rules = Rules {
            rules,
            default: self.default,
            classifier: Classifier::new(self.operations.iter().cloned()).with_mode(self.mode),
            hide_denied: false,
            denial: Denial::Error,
            audit_required: false,
            server: server.map(kept),
            version: kept(source.version()),
        };
        let remarks = self.remarks(&rules, &whose);
        Ok(Read { rules, note: self.note(&whose, naming), remarks })
    }

    fn whose<'a>(&'a self, source: &Source, naming: Naming<'a>) -> Result<Whose<'a>, Failure> {
        let listed = |wanted: &&str| self.names.iter().any(|name| name == wanted);
        match (naming, self.names.as_slice()) {
            (_, []) => Ok(Whose::EachTools),
            (Naming { service: Some(service), .. }, _) if listed(&service) => Ok(Whose::One(service)),
            (Naming { service: Some(service), .. }, _) => Err(self.no_such(service, source)),
            (Naming { servers: [_, ..], .. }, names) => {
                match self.unknown.is_some() || names.iter().any(|name| is_server(name, naming)) {
                    true => Ok(Whose::EachServers),
                    false => Err(self.nobodys(source, naming)),
                }
            }
            (Naming { name: Some(name), .. }, _) if listed(&name) => Ok(Whose::One(name)),
            (_, [only]) => Ok(Whose::One(only)),
            _ => Ok(Whose::EachTools),
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

    /// One filter has to name them all.
    fn too_many(&self, source: &Source) -> Failure {
        let count = self.names.len();
        Failure::usage(format!("{} has too many services ({count}) to tell them apart", quoted(source.path())))
            .hint("give --service, or a file with fewer services")
    }

    /// The rules for what belongs to no service.
    fn for_unknown(&self, whose: &Whose<'_>) -> Vec<Unknown> {
        match (whose, self.unknown) {
            (Whose::One(_), _) => Vec::new(),
            (_, Some(permission)) => vec![Unknown { operation: None, permission }],
            // A file about one service leaves other servers to its default.
            (Whose::EachServers, None) if self.names.len() < 2 => Vec::new(),
            (Whose::EachServers | Whose::EachTools, None) => {
                let strictest = Operation::ALL.map(|operation| (operation, self.strictest(operation)));
                let stricter = strictest.into_iter().filter(|(_, permission)| *permission != self.default);
                stricter.map(|(operation, permission)| Unknown { operation: Some(operation), permission }).collect()
            }
        }
    }

    /// The strictest verdict of any service. One that says nothing of the operation has the default.
    fn strictest(&self, operation: Operation) -> Permission {
        let said: Vec<_> = self.entries.iter().filter(|entry| entry.operation == operation).collect();
        if said.iter().any(|entry| entry.permission == Permission::Deny) {
            Permission::Deny
        } else if said.len() < self.names.len() || self.names.is_empty() {
            self.default
        } else {
            Permission::Allow
        }
    }

    fn note(&self, whose: &Whose<'_>, naming: Naming<'_>) -> Option<String> {
        match whose {
            Whose::One(service) => Some(match self.without(|name| name == *service) {
                None => format!("those of the service `{}`", visible(service)),
                Some(others) => format!("those of the service `{}`, and none of {others}", visible(service)),
            }),
            Whose::EachServers => {
                let absent = self.without(|name| is_server(name, naming));
                let absent = absent.map(|absent| format!("; no server is called {absent}")).unwrap_or_default();
                let others = match self.unknown {
                    Some(unknown) => format!("; {} of all other servers", unknown.as_str()),
                    None if self.names.len() < 2 => String::new(),
                    None => format!("; a tool of any other server gets {}", self.unknown_gets()),
                };
                Some(format!("each server's by the service of its name{absent}{others}"))
            }
            Whose::EachTools if self.names.is_empty() => None,
            Whose::EachTools => Some(format!(
                "each tool's by the service that its name begins with ({}); a tool of none of them gets {}",
                self.list(),
                self.unknown_gets()
            )),
        }
    }

    /// Services that this form of the proxy cannot have, and rules that lost something.
    fn remarks(&self, rules: &Rules, whose: &Whose<'_>) -> Vec<String> {
        let mut remarks = Vec::new();
        if matches!(whose, Whose::EachTools)
            && let Some(odd) = self.without(is_word)
        {
            remarks.push(format!("no tool's name can begin with {odd}; --service applies the rules of such a service"));
        }
        let weaker = rules.rules.iter().filter(|rule| remarks::weaker(rule, rules.default).is_some());
        let weaker: Vec<String> = weaker.map(|rule| format!("`{}`", visible(&rule.name))).take(LISTED_MAX).collect();
        if !weaker.is_empty() && !self.operations.iter().any(|(_, operation)| *operation == Operation::Delete) {
            let does = if weaker.len() == 1 { "does" } else { "do" };
            remarks.push(format!(
                "{} {does} not go by `destructiveHint: true` alone; `\"operations\": {{\"TOOL\": \"delete\"}}` makes a \
                 delete of a tool, and a rule below `policy` can match `hint:destructive`",
                weaker.join(", ")
            ));
        }
        remarks
    }

    /// The verdict for a tool of no known service, and how to have another.
    fn unknown_gets(&self) -> String {
        if let Some(unknown) = self.unknown {
            return format!("{} (`unknown_service`)", unknown.as_str());
        }
        let strictest = Operation::ALL.map(|operation| (operation, self.strictest(operation)));
        let denied = strictest.iter().filter(|(_, permission)| *permission == Permission::Deny);
        let denied: Vec<&str> = denied.map(|(operation, _)| operation.name()).collect();
        let strictest = match denied.as_slice() {
            [] => "allow".to_owned(),
            all if all.len() == strictest.len() => "deny".to_owned(),
            denied => format!("deny for {}", denied.join(", ")),
        };
        format!(
            "the strictest verdict of any ({strictest}), unless --service names its service or the file has \
             `unknown_service`"
        )
    }

    /// The services but for some, as people read them.
    fn without(&self, is_left_out: impl Fn(&str) -> bool) -> Option<String> {
        let names = self.names.iter().filter(|name| !is_left_out(name));
        let names: Vec<String> = names.map(|name| format!("`{}`", visible(name))).take(LISTED_MAX).collect();
        (!names.is_empty()).then(|| names.join(", "))
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
        let mut filter = format!(" {}", begins_with([service]));
        let longer = self.names.iter().filter(|name| name.len() > service.len() && is_begun_by(name, service));
        let longer: Vec<&str> = longer.map(String::as_str).collect();
        if !longer.is_empty() {
            filter.push_str(&format!(" not {}", begins_with(longer)));
        }
        filter
    }

    /// The filter of tools whose names begin with no service.
    fn tools_of_none(&self) -> String {
        let mut names = self.names.iter().map(String::as_str).filter(|name| is_word(name)).peekable();
        match names.peek() {
            None => String::new(),
            Some(_) => format!(" not {}", begins_with(names)),
        }
    }

    /// The filter of servers of a gateway that are called like no service.
    fn server_of_none(&self) -> String {
        self.names.iter().filter_map(|name| server_is(name)).map(|server| format!(" not{server}")).collect()
    }
}

/// What counts for a tool, or a server of a gateway, that belongs to none of the services.
struct Unknown {
    /// Every one, where the file says what counts.
    operation: Option<Operation>,
    permission: Permission,
}

impl Unknown {
    fn rule(&self, of: &str) -> Option<Rule> {
        let (name, operations) = match self.operation {
            Some(operation) => (format!("unknown_service.{operation}"), operation.to_string()),
            None => ("unknown_service".to_owned(), Operation::ALL.map(Operation::name).join(",")),
        };
        let message = "The rules are for several services, and this belongs to none of them.";
        let message = (self.permission == Permission::Deny).then(|| kept(message));
        new_rule(&name, &format!("op:{operations}{of}"), self.permission, message)
    }
}

fn rule(entry: &Entry, of: &str) -> Option<Rule> {
    let name = format!("{}.{}", entry.service, entry.operation);
    new_rule(&name, &format!("op:{}{of}", entry.operation), entry.permission, entry.reason.as_deref().map(kept))
}

/// `None` if the filter is too long. Its letters stand for themselves, so nothing else is wrong with it.
fn new_rule(name: &str, filter: &str, permission: Permission, message: Option<Arc<str>>) -> Option<Rule> {
    Some(Rule {
        name: kept(name),
        filter: Filter::parse(filter).ok()?,
        verdict: match permission {
            Permission::Allow => VerdictKind::Allow,
            Permission::Deny => VerdictKind::Deny,
        },
        message,
        timeout: None,
        on_timeout: Permission::Deny,
    })
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

/// The filter of names that begin with one of the services: in any case, up to the end of the name, to what is
/// no letter or digit, or to the next word of a name such as `githubListRepos`.
fn begins_with<'a>(services: impl IntoIterator<Item = &'a str>) -> String {
    let patterns: Vec<String> = services.into_iter().map(begins_with_one).collect();
    match patterns.as_slice() {
        [only] => format!("tool~\"^{only}\""),
        patterns => format!("tool~\"^(?:{})\"", patterns.join("|")),
    }
}

fn begins_with_one(service: &str) -> String {
    let (body, last) = service.split_at(service.len() - 1);
    let (body, last, small) = (pattern(body), pattern(last), pattern(&last.to_ascii_lowercase()));
    format!("(?i:{body})(?:(?i:{last})(?:[^A-Za-z0-9]|$)|{small}[A-Z])")
}

fn pattern(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c.to_string() } else { format!("[{c}]") }).collect()
}

#[cfg(test)]
mod tests;
