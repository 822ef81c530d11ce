//! Who may do what. Without rules everything is permitted; with them, messages are read strictly and
//! judged. Either way nothing leaves the proxy without passing here: dispatch takes only [`Judged`]
//! messages, and only this module makes them.

mod answers;
mod batch;
mod entrance;
pub mod explain;
mod govern;
mod hide;
mod listed;
mod lists;
mod method;
pub mod operation;
mod prospect;
pub mod rules;
mod subscriptions;
mod table;
mod through;
mod tools;
mod wanted;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use mcp_wire::splice::{splice, with_id};
use mcp_wire::{Id, Message};

use crate::conversation::Speaker;
use crate::envelope::{ProxyMessage, Upstream};
use govern::Governed;
use operation::Operation;
use rules::{Permission, Rules, VerdictKind};

pub(crate) use govern::has_batches;
pub(crate) use lists::Hidden;

pub use answers::{ANSWERS_MAX, Answered, Answers, SUBJECT_BYTES_MAX};
pub use method::{Concern, operation_of};

/// A message that policy has let pass. An edit turns it back into a plain message.
#[derive(Debug)]
pub struct Judged(ProxyMessage);

impl Judged {
    pub fn message(&self) -> &ProxyMessage {
        &self.0
    }

    /// The message to be changed, and judged again.
    pub(crate) fn into_message(self) -> ProxyMessage {
        self.0
    }

    /// The same under another id, which says nothing of what is asked.
    pub(crate) fn under_id(mut self, id: &Id) -> Self {
        self.0.message = Message::new(with_id(self.0.message.bytes(), id));
        self
    }

    /// A cancellation of another request.
    pub(crate) fn cancelling(mut self, id: &Id) -> Self {
        if let Some(span) = self.0.message.peek().request_id {
            self.0.message = Message::new(splice(self.0.message.bytes(), span, id.to_string().as_bytes()));
        }
        self
    }
}

/// A message that goes on only if somebody says so.
#[derive(Debug)]
pub struct Question {
    message: ProxyMessage,
    pub ruling: Ruling,
}

impl Question {
    pub fn message(&self) -> &ProxyMessage {
        &self.message
    }

    /// Somebody said so.
    pub(crate) fn approved(self) -> (Judged, Ruling) {
        (Judged(self.message), self.ruling)
    }

    pub(crate) fn into_parts(self) -> (ProxyMessage, Ruling) {
        (self.message, self.ruling)
    }
}

/// What policy decided.
#[must_use]
#[derive(Debug)]
pub enum Verdict {
    Permitted(Judged, Rulings),
    Asked(Question),
    Refused(ProxyMessage, Refused),
}

/// Why a message goes nowhere.
#[derive(Debug)]
pub enum Refused {
    Denied(Box<Ruling>),
    /// It can be read two ways, or is nothing that may be sent here.
    Unfit(String),
    /// What rules say of its items, one of which at least is denied.
    Batch(Vec<(Message, Ruling)>),
}

/// What rules said of a message that goes on.
#[derive(Debug)]
pub enum Rulings {
    /// They were not asked.
    None,
    One(Ruling),
    /// The message is a batch.
    Each(Vec<(Message, Ruling)>),
}

/// What rules say of a message, and which of them.
#[derive(Clone, Debug)]
pub struct Ruling {
    pub verdict: VerdictKind,
    /// None did, and the default counts.
    pub rule: Option<Arc<str>>,
    pub message: Option<Arc<str>>,
    /// The method, and the tool, prompt or resource, where they can be told.
    pub about: Option<(Arc<str>, Option<Arc<str>>)>,
    pub operation: Option<Operation>,
    /// Rules that only observe, and match.
    pub observed: Vec<Arc<str>>,
    /// For how long whoever is asked may take, where the rule says so.
    pub timeout: Option<Duration>,
    pub on_timeout: Permission,
    /// Whether it is written down: a deed, or something that a rule was about.
    pub is_kept: bool,
    /// What it is about is not listed to its sender.
    pub is_hidden: bool,
    /// The server of a gateway that the message is for, or from.
    pub server: Option<Arc<str>>,
    /// Who decided, if it was not the rule.
    pub actor: Option<Arc<str>>,
}

impl Ruling {
    /// What is said of the rule to people.
    pub fn name(&self) -> &str {
        self.rule.as_deref().unwrap_or("default")
    }

    /// What somebody is asked about: the method, and the tool, prompt or resource. A call of a proxy tool is about
    /// what it uses.
    pub(crate) fn asks_about<'a>(&'a self, said: &'a Message) -> Option<(Cow<'a, str>, Option<Cow<'a, str>>)> {
        let method = said.method()?;
        match &self.about {
            Some((used, subject)) if method == "tools/call" => {
                Some((Cow::Borrowed(used), subject.as_deref().map(Cow::Borrowed)))
            }
            _ => Some((method, said.subject())),
        }
    }

    /// Who decided, as the audit has it.
    pub fn decider(&self) -> &str {
        self.actor.as_deref().unwrap_or(if self.rule.is_some() { "rule" } else { "default" })
    }
}

#[derive(Debug, Default)]
pub struct Policy {
    governed: Option<Box<Governed>>,
    /// The servers of a gateway, in the order in which they were met.
    servers: Vec<Arc<str>>,
    /// Those of them that are reached through a proxy tool of their own, and the tool.
    unwrapped: Vec<(Upstream, Arc<str>)>,
}

impl Policy {
    /// From now on these rules count.
    pub fn govern(&mut self, rules: Arc<Rules>) {
        match &mut self.governed {
            Some(governed) => governed.replace(rules),
            None => {
                let mut governed = Governed::new(rules, &self.servers);
                self.unwrapped.iter().for_each(|(upstream, tool)| governed.unwrap(*upstream, tool));
                self.governed = Some(Box::new(governed));
            }
        }
    }

    /// From now on a call of this tool of a server is what it uses through it.
    pub(crate) fn unwrap(&mut self, upstream: Upstream, tool: &Arc<str>) {
        self.unwrapped.retain(|(known, _)| *known != upstream);
        self.unwrapped.push((upstream, Arc::clone(tool)));
        if let Some(governed) = &mut self.governed {
            governed.unwrap(upstream, tool);
        }
    }

    /// Takes in what a server says of its tools, however it said so.
    pub(crate) fn learn_from(&mut self, upstream: Upstream, answer: &[u8]) {
        if let Some(governed) = &mut self.governed {
            governed.learn(upstream, answer);
        }
    }

    /// From now on there is this server too, if it was not known. Judged is by what it says of its own tools.
    pub(crate) fn meet_server(&mut self, server: &Arc<str>) -> Upstream {
        let known = self.servers.iter().position(|known| known == server);
        let upstream = Upstream::nth(known.unwrap_or(self.servers.len()));
        if known.is_none() {
            self.servers.push(Arc::clone(server));
            if let Some(governed) = &mut self.governed {
                governed.meet_server(server);
            }
        }
        upstream
    }

    pub(crate) fn upstream_named(&self, server: &str) -> Option<Upstream> {
        self.servers.iter().position(|known| **known == *server).map(Upstream::nth)
    }

    #[inline]
    pub fn is_governed(&self) -> bool {
        self.governed.is_some()
    }

    pub fn rules(&self) -> Option<&Arc<Rules>> {
        self.governed.as_ref().map(|governed| governed.rules())
    }

    /// What the server says of the tool that a request is about.
    pub(crate) fn annotations(&self, upstream: Upstream, method: &str, tool: Option<&str>) -> operation::Annotations {
        self.governed.as_ref().map(|governed| governed.annotations(upstream, method, tool)).unwrap_or_default()
    }

    /// Whether something that a server lists is not to be listed to a client: every use of it is denied.
    pub(crate) fn hides(&mut self, upstream: Upstream, method: &str, name: &str, speaker: &Speaker) -> bool {
        self.governed.as_mut().is_some_and(|governed| governed.hides(upstream, method, name, speaker))
    }

    /// Takes in what a list says, which everybody may see.
    pub(crate) fn learn(&mut self, judged: &Judged) {
        if let Some(governed) = &mut self.governed {
            governed.hear_list(judged.message());
        }
    }

    /// From now on something goes wrong whenever a message is judged.
    #[cfg(test)]
    pub(crate) fn go_wrong(&mut self) {
        self.governed.iter_mut().for_each(|governed| governed.is_faulty = true);
    }

    /// Whether answers that list something are on their way.
    #[inline]
    pub(crate) fn awaits_list(&self) -> bool {
        self.governed.as_ref().is_some_and(|governed| governed.lists.is_any_open())
    }

    /// A message as whoever it is for may see it, and what it was if it is another now.
    pub(crate) fn show(&mut self, judged: Judged, speaker: &Speaker) -> (Judged, Option<Hidden>) {
        match &mut self.governed {
            None => (judged, None),
            Some(governed) => governed.show(judged, speaker),
        }
    }

    /// Without rules everything may pass; with them, what is to be judged comes back.
    #[inline]
    pub fn permit_freely(&self, message: ProxyMessage) -> Result<Judged, ProxyMessage> {
        match self.governed {
            None => Ok(Judged(message)),
            Some(_) => Err(message),
        }
    }

    /// Why a message cannot be judged, where it would have to be.
    pub fn unfit(&self, message: &ProxyMessage) -> Option<String> {
        self.governed.as_ref()?.fit(message).err()
    }

    #[inline]
    pub fn permit(&mut self, message: ProxyMessage, speaker: &Speaker) -> Verdict {
        match &mut self.governed {
            None => Verdict::Permitted(Judged(message), Rulings::None),
            Some(governed) => governed.judge(message, speaker),
        }
    }
}
