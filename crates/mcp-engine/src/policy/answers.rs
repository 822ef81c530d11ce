//! What somebody answered to rules that ask, where the answer was to count for more than once. It counts
//! only for what that rule asks about: nothing that another rule denies is permitted by it.

use std::collections::VecDeque;
use std::sync::Arc;

use mcp_wire::Message;

use super::rules::Permission;
use super::{Question, Refused, Ruling, Rulings, Verdict};

/// Answers that are kept: of this run, written ones, and those of clients each. A person gives each of
/// them.
pub const ANSWERS_MAX: usize = 10_000;
/// The longest name of something that answers are kept about. Names come from peers, and real ones are
/// far shorter.
pub const SUBJECT_BYTES_MAX: usize = 4_096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    pub rule: Arc<str>,
    pub method: Arc<str>,
    /// The tool, prompt or resource.
    pub subject: Option<Arc<str>>,
    pub permission: Permission,
    /// The server of a gateway. What one of them may do says nothing of the others.
    pub server: Option<Arc<str>>,
    /// Who said so.
    pub by: Arc<str>,
}

#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// Those that count while this proxy runs. The newest last.
    said: Vec<Answered>,
    /// Those that are written beside the rules, in the order that they have there.
    written: Vec<Answered>,
    /// Those that a client gave, with its conversation. They permit nothing to anybody else.
    of_clients: VecDeque<(u32, Answered)>,
}

impl Answers {
    /// Counts from now on, while this proxy runs.
    pub fn keep(&mut self, answered: Answered) {
        put(&mut self.said, answered);
    }

    /// Counts from now on, in the place of what was said before: it is written.
    pub fn keep_written(&mut self, answered: Answered) {
        self.said.retain(|said| !said.is_about_the_same(&answered));
        put(&mut self.written, answered);
    }

    /// Counts from now on, in this conversation.
    pub(crate) fn keep_in(&mut self, conversation: u32, answered: Answered) {
        if self.of_clients.len() >= ANSWERS_MAX {
            self.of_clients.pop_front();
        }
        self.of_clients.push_back((conversation, answered));
    }

    /// What is written is this, whatever it was before.
    pub fn set_written(&mut self, written: Vec<Answered>) {
        self.written = written;
    }

    pub fn said(&self) -> &[Answered] {
        &self.said
    }

    pub fn written(&self) -> &[Answered] {
        &self.written
    }

    /// What was answered about such messages of a conversation, to whichever rules: what counts first.
    pub(crate) fn about(
        &self,
        conversation: u32,
        server: Option<&str>,
        method: &str,
        subject: Option<&str>,
    ) -> impl Iterator<Item = &Answered> {
        let of_client = self.of_clients.iter().filter(move |(of, _)| *of == conversation).map(|(_, answered)| answered);
        // Whoever runs the proxy has the last word.
        let all = self.said.iter().rev().chain(self.written.iter().rev()).chain(of_client.rev());
        all.filter(move |kept| {
            *kept.method == *method && kept.subject.as_deref() == subject && kept.server.as_deref() == server
        })
    }

    pub(crate) fn find(&self, question: &Question) -> Option<Answered> {
        let (method, subject) = question.ruling.asks_about(&question.message().message)?;
        let rule = question.ruling.rule.as_ref();
        let (conversation, server) = (question.message().conversation, question.ruling.server.as_deref());
        let mut kept = self.about(conversation, server, &method, subject.as_deref());
        kept.find(|kept| rule == Some(&kept.rule)).cloned()
    }
}

fn put(answers: &mut Vec<Answered>, answered: Answered) {
    answers.retain(|kept| !kept.is_about_the_same(&answered));
    if answers.len() >= ANSWERS_MAX {
        answers.remove(0);
    }
    answers.push(answered);
}

impl Answered {
    pub fn is_about_the_same(&self, other: &Self) -> bool {
        (&self.rule, &self.server, &self.method, &self.subject)
            == (&other.rule, &other.server, &other.method, &other.subject)
    }

    /// The like of `said`, answered for longer than once. Nothing, if that cannot be remembered.
    pub(crate) fn about(said: &Message, ruling: &Ruling, permission: Permission, by: &str) -> Option<Self> {
        let (method, subject) = ruling.asks_about(said)?;
        if method.len() + subject.as_ref().map_or(0, |subject| subject.len()) > SUBJECT_BYTES_MAX {
            return None;
        }
        Some(Self {
            rule: Arc::clone(ruling.rule.as_ref()?),
            method: (*method).into(),
            subject: subject.map(|subject| (*subject).into()),
            permission,
            server: ruling.server.clone(),
            by: by.into(),
        })
    }

    /// The question, answered.
    pub(crate) fn apply(&self, question: Question) -> Verdict {
        let actor = Some(Arc::clone(&self.by));
        match self.permission {
            Permission::Allow => {
                let (judged, ruling) = question.approved();
                Verdict::Permitted(judged, Rulings::One(Ruling { actor, ..ruling }))
            }
            Permission::Deny => {
                let (message, ruling) = question.into_parts();
                Verdict::Refused(message, Refused::Denied(Box::new(Ruling { actor, ..ruling })))
            }
        }
    }
}
