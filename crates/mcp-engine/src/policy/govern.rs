//! Judges messages by rules. A message is read as strictly as the most careful server would before any
//! rule is asked, so that what was judged is what the server reads. A fault in here denies.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use mcp_filter::Certainty;
use mcp_wire::fold::unescaped;
use mcp_wire::revision::Revision;
use mcp_wire::strict::{self, Fit, JudgedKeys};
use mcp_wire::{Kind, Message};

use super::lists::OpenLists;
use super::operation::Annotations;
use super::prospect::Prospect;
use super::rules::{Permission, Rule, Rules, VerdictKind};
use super::table::{self, Candidates, Known, Table, in_spellings};
use super::tools::Tools;
use super::wanted;
use super::{Concern, Judged, Question, Refused, Ruling, Rulings, Verdict};
use crate::conversation::Speaker;
use crate::envelope::{ProxyMessage, Side, Upstream};
use crate::intercept::{Class, Live};
use crate::meaning::{Meaning, meaning, uses_of};

pub(super) const BYTE_ORDER_MARK: &str = "a byte order mark";

#[derive(Debug)]
pub(super) struct Governed {
    rules: Arc<Rules>,
    /// Members that rules look at.
    keys: JudgedKeys,
    /// What is known of servers: of the only one first, then of those of a gateway in their order.
    servers: Vec<Server>,
    pub(super) lists: OpenLists,
    /// As if there were a fault in here.
    #[cfg(test)]
    pub(super) is_faulty: bool,
}

/// What is known of a server. One never learns from another, whatever their tools are called.
#[derive(Debug, Default)]
struct Server {
    /// In a gateway.
    id: Option<Arc<str>>,
    table: Table,
    /// What it says of its tools.
    tools: Tools,
    /// The tool through which everything of it is used, where nothing else of it is.
    unwraps: Option<Arc<str>>,
}

impl Server {
    fn new(id: &Arc<str>) -> Self {
        Self { id: Some(Arc::clone(id)), ..Self::default() }
    }
}

/// What is thought of a message.
pub(super) enum Opinion {
    /// It is an answer, which rules say nothing of.
    Fit,
    Ruled(Ruling),
    /// It is several things at once, and all of them may be.
    Each(Vec<(Message, Ruling)>),
    Unfit(String),
}

impl Governed {
    /// `gateway` are the servers that there are besides the only one.
    pub(super) fn new(rules: Arc<Rules>, gateway: &[Arc<str>]) -> Self {
        let keys = judged_keys(&rules);
        let servers = [Server::default()].into_iter().chain(gateway.iter().map(Server::new)).collect();
        Self {
            rules,
            keys,
            servers,
            lists: OpenLists::default(),
            #[cfg(test)]
            is_faulty: false,
        }
    }

    pub(super) fn replace(&mut self, rules: Arc<Rules>) {
        self.keys = judged_keys(&rules);
        self.rules = rules;
        self.servers.iter_mut().for_each(|server| server.table = Table::default());
    }

    pub(super) fn meet_server(&mut self, id: &Arc<str>) {
        self.servers.push(Server::new(id));
    }

    pub(super) fn unwrap(&mut self, upstream: Upstream, tool: &Arc<str>) {
        self.servers[upstream.index()].unwraps = Some(Arc::clone(tool));
    }

    pub(super) fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// What the server says of the tool that a request is about.
    pub(super) fn annotations(&self, upstream: Upstream, method: &str, tool: Option<&str>) -> Annotations {
        let tool = tool.filter(|_| Concern::of(method) == Concern::Tool);
        tool.map(|tool| self.servers[upstream.index()].tools.of(tool)).unwrap_or_default()
    }

    #[inline]
    pub(super) fn judge(&mut self, message: ProxyMessage, speaker: &Speaker) -> Verdict {
        // Whatever goes wrong while a message is judged, it was not permitted.
        let judged = catch_unwind(AssertUnwindSafe(|| match message.message.kind() {
            #[cfg(test)]
            _ if self.is_faulty => panic!("something went wrong"),
            Kind::Batch => self.judge_batch(&message, speaker),
            Kind::Response if message.from == Side::Server && wanted::may_want(&message.message) => {
                self.judge_wanted(&message, speaker)
            }
            _ => self.consider(&message, speaker).into(),
        }));
        match judged {
            Ok(Ok(rulings)) => {
                self.lists.hear(&message, &rulings);
                match rulings {
                    Rulings::One(ruling) if ruling.verdict == VerdictKind::Ask => {
                        Verdict::Asked(Question { message, ruling })
                    }
                    rulings => Verdict::Permitted(Judged(message), rulings),
                }
            }
            Ok(Err(refused)) => Verdict::Refused(message, refused),
            Err(_) => {
                self.servers[message.upstream.index()].table.forget();
                Verdict::Refused(message, Refused::Unfit("the rules could not be applied to it".into()))
            }
        }
    }

    /// What is thought of one message, which is no batch.
    pub(super) fn consider(&mut self, message: &ProxyMessage, speaker: &Speaker) -> Opinion {
        let fit = match self.fit(message) {
            Ok(fit) => fit,
            Err(unfit) => return Opinion::Unfit(unfit),
        };
        match message.message.kind() {
            Kind::Response | Kind::Error => Opinion::Fit,
            Kind::Request | Kind::Notification => self.consider_meaning(message, fit, speaker),
            Kind::Batch => Opinion::Unfit("a batch within a batch".into()),
            Kind::OtherJson | Kind::NotJson => Opinion::Unfit("it is no JSON-RPC message".into()),
        }
    }

    /// What is thought of what a request or notification asks for.
    fn consider_meaning(&mut self, message: &ProxyMessage, fit: Fit, speaker: &Speaker) -> Opinion {
        let unwraps = self.servers[message.upstream.index()].unwraps.as_deref();
        let meaning = match message.from {
            Side::Client if fit.has_action || unwraps.is_some() => meaning(&message.message, unwraps),
            Side::Client | Side::Server => Meaning::Itself,
        };
        debug_assert!(fit.has_action || message.from == Side::Server || uses_of(&message.message).is_empty());
        match meaning {
            Meaning::Itself => {
                let ruling = self.rule(message, speaker);
                Opinion::Ruled(self.with_subscriptions(ruling, message, speaker))
            }
            Meaning::Also(uses) => {
                let own = self.rule(message, speaker);
                self.consider_uses(Some(own), uses, message, speaker)
            }
            Meaning::Instead(uses) => self.consider_uses(None, uses, message, speaker),
            Meaning::Unclear(why) => Opinion::Unfit(why),
        }
    }

    /// What was noticed about a message, or why it can be read two ways. What a server says of itself is
    /// nothing that rules are about, so it need only be clear what kind of message it is.
    pub(super) fn fit(&self, message: &ProxyMessage) -> Result<Fit, String> {
        fit(message, &self.keys)
    }

    /// The same of all that it says.
    pub(super) fn fit_throughout(&self, message: &ProxyMessage) -> Result<Fit, String> {
        fit_throughout(message, &self.keys)
    }

    pub(super) fn rule(&mut self, message: &ProxyMessage, speaker: &Speaker) -> Ruling {
        let said = &message.message;
        let method = said.method();
        let tool = method.as_deref().and_then(|method| said.subject_of(method));
        let method = method.unwrap_or_default();
        let revision = said.protocol_version();
        let is_request = said.kind() == Kind::Request;
        let revision = revision.as_deref().or(speaker.revision.as_deref());
        let client = speaker.client.as_ref();
        let known = Known { from: message.from, is_request, method: &method, tool: tool.as_deref(), client, revision };
        let Self { rules, servers, .. } = self;
        let server = &mut servers[message.upstream.index()];
        let candidates = candidates(rules, &server.id, &server.tools, &mut server.table, &known);
        let named = server.id.as_deref().or(rules.server.as_deref());
        let live = |(operation, annotations)| {
            let class = Class::Known(operation, annotations);
            Live { message, request: None, speaker, server: named, class }
        };
        let (live, respelled) = (live(candidates.class), candidates.respelled.map(live));
        let mut observed = Vec::new();
        for &(at, is_open) in &candidates.rules {
            let rule = &rules.rules[at as usize];
            let matches = |live: &Live<'_>| match rule.filter.matches_in(live, table::spelling(rule)) {
                true => Certainty::Yes,
                false => Certainty::No,
            };
            if is_open && in_spellings(rule, matches(&live), || respelled.as_ref().map(matches)) == Certainty::No {
                continue;
            }
            if rule.verdict == VerdictKind::Observe {
                observed.push(Arc::clone(&rule.name));
                continue;
            }
            return Ruling { observed, server: server.id.clone(), ..Ruling::of(rule, candidates) };
        }
        let is_kept = (is_request && !candidates.is_plumbing) || !observed.is_empty();
        let verdict = match rules.default {
            Permission::Deny if !candidates.is_plumbing => VerdictKind::Deny,
            _ => VerdictKind::Allow,
        };
        Ruling { observed, is_kept, server: server.id.clone(), ..Ruling::by_default(verdict, candidates) }
    }

    /// Whether calls of a tool, or other uses of something that is listed, are denied whatever their
    /// arguments.
    pub(super) fn hides(&mut self, upstream: Upstream, method: &str, name: &str, speaker: &Speaker) -> bool {
        let (client, revision) = (speaker.client.as_ref(), speaker.revision.as_deref());
        let known = Known { from: Side::Client, is_request: true, method, tool: Some(name), client, revision };
        let Server { id, table, tools, .. } = &mut self.servers[upstream.index()];
        self.rules.hide_denied && candidates(&self.rules, id, tools, table, &known).is_hopeless
    }

    /// Takes in what a list says of tools.
    pub(super) fn learn(&mut self, upstream: Upstream, answer: &[u8]) {
        let Server { table, tools, .. } = &mut self.servers[upstream.index()];
        if tools.learn(answer) {
            table.forget();
        }
    }

    pub(super) fn keys(&self) -> &JudgedKeys {
        &self.keys
    }
}

/// Whether batches may be sent at all.
pub(crate) fn has_batches(speaker: &Speaker) -> bool {
    let revision = speaker.revision.as_ref().and_then(|revision| Revision::parse(revision.as_bytes()));
    revision.is_some_and(Revision::has_batches)
}

fn judged_keys(rules: &Rules) -> JudgedKeys {
    JudgedKeys::new(rules.rules.iter().flat_map(|rule| rule.filter.path_keys()))
}

/// Why a message can be read two ways, for rules that have judged nothing so far.
pub(super) fn unfit_for(rules: &Rules, message: &ProxyMessage) -> Option<String> {
    fit(message, &judged_keys(rules)).err()
}

pub(super) fn fit(message: &ProxyMessage, keys: &JudgedKeys) -> Result<Fit, String> {
    let said = &message.message;
    if message.from == Side::Server && said.kind() != Kind::Request {
        return said.peek().ambiguity.map_or_else(|| Ok(Fit::default()), |ambiguity| Err(ambiguity.to_string()));
    }
    fit_throughout(message, keys)
}

fn fit_throughout(message: &ProxyMessage, keys: &JudgedKeys) -> Result<Fit, String> {
    if message.bom {
        return Err(BYTE_ORDER_MARK.into());
    }
    strict::check(&message.message, keys).map_err(|unfit| unfit.to_string())
}

fn candidates<'t>(
    rules: &Rules,
    server: &Option<Arc<str>>,
    tools: &Tools,
    table: &'t mut Table,
    known: &Known<'_>,
) -> &'t Candidates {
    table.candidates(known, || {
        let concern = Concern::of(known.method);
        let tool = known.tool.filter(|_| concern == Concern::Tool);
        let class = |name: Option<&str>| {
            let annotations = tool.and(name).map(|tool| tools.of(tool)).unwrap_or_default();
            let operation = concern.operation(name, &rules.classifier, annotations);
            (operation.filter(|_| known.from == Side::Client), annotations)
        };
        let (operation, annotations) = class(known.tool);
        let prospect = Prospect {
            from: known.from,
            is_request: known.is_request,
            method: Some(known.method),
            tool: known.tool,
            operation,
            annotations,
            server: server.as_deref().or(rules.server.as_deref()),
            client: known.client.map(|client| &**client),
            revision: known.revision,
            is_plumbing: concern == Concern::Plumbing,
        };
        // Filters read the name itself in both spellings.
        let respelled = tool.and_then(unescaped).map(|plain| {
            let (operation, annotations) = class(Some(&plain));
            Prospect { operation, annotations, ..prospect }
        });
        table::find_out(&rules.rules, rules.default, &prospect, respelled.as_ref())
    })
}

impl Ruling {
    fn of(rule: &Rule, candidates: &Candidates) -> Self {
        Self {
            verdict: rule.verdict,
            rule: Some(Arc::clone(&rule.name)),
            message: rule.message.clone(),
            timeout: rule.timeout,
            on_timeout: rule.on_timeout,
            ..Self::by_default(rule.verdict, candidates)
        }
    }

    /// What is said of a message that no rule could be asked about.
    pub(crate) fn unfit() -> Self {
        Self {
            verdict: VerdictKind::Deny,
            rule: None,
            message: None,
            about: None,
            operation: None,
            observed: Vec::new(),
            timeout: None,
            on_timeout: Permission::Deny,
            is_kept: true,
            is_hidden: false,
            server: None,
            actor: None,
        }
    }

    fn by_default(verdict: VerdictKind, candidates: &Candidates) -> Self {
        Self {
            verdict,
            about: Some((Arc::clone(&candidates.method), candidates.tool.clone())),
            operation: candidates.operation(),
            is_hidden: candidates.is_hopeless,
            ..Self::unfit()
        }
    }
}

impl From<Opinion> for Result<Rulings, Refused> {
    fn from(opinion: Opinion) -> Self {
        match opinion {
            Opinion::Fit => Ok(Rulings::None),
            Opinion::Ruled(ruling) if ruling.verdict == VerdictKind::Deny => Err(Refused::Denied(Box::new(ruling))),
            Opinion::Ruled(ruling) => Ok(Rulings::One(ruling)),
            Opinion::Each(rulings) => Ok(Rulings::Each(rulings)),
            Opinion::Unfit(why) => Err(Refused::Unfit(why)),
        }
    }
}
