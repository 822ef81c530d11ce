//! What somebody answered to rules that ask, where the answer was to count for more than once. It counts
//! only for what that rule asks about: nothing that another rule denies is permitted by it.

use std::sync::Arc;

use super::rules::Permission;
use super::{Question, Refused, Ruling, Rulings, Verdict};

/// Answers that are kept. A person gives each of them.
const ANSWERS_MAX: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    pub rule: Arc<str>,
    pub method: Arc<str>,
    /// The tool, prompt or resource.
    pub subject: Option<Arc<str>>,
    pub permission: Permission,
    /// Who said so.
    pub by: Arc<str>,
}

#[derive(Debug, Default)]
pub struct Answers {
    /// The newest last, which counts.
    kept: Vec<Answered>,
}

impl Answers {
    pub fn keep(&mut self, answered: Answered) {
        self.kept.retain(|kept| !kept.is_about_the_same(&answered));
        if self.kept.len() >= ANSWERS_MAX {
            self.kept.remove(0);
        }
        self.kept.push(answered);
    }

    pub fn all(&self) -> &[Answered] {
        &self.kept
    }

    pub(crate) fn find(&self, question: &Question) -> Option<Answered> {
        let said = &question.message().message;
        let (method, subject) = (said.method()?, said.subject());
        let is_meant = |kept: &&Answered| {
            question.ruling.rule.as_ref() == Some(&kept.rule)
                && *kept.method == *method
                && kept.subject.as_deref() == subject.as_deref()
        };
        self.kept.iter().rev().find(is_meant).cloned()
    }
}

impl Answered {
    fn is_about_the_same(&self, other: &Self) -> bool {
        (&self.rule, &self.method, &self.subject) == (&other.rule, &other.method, &other.subject)
    }

    /// The like of `question`, answered for longer than once.
    pub(crate) fn to(question: &Question, permission: Permission, by: &str) -> Option<Self> {
        let said = &question.message().message;
        Some(Self {
            rule: Arc::clone(question.ruling.rule.as_ref()?),
            method: (*said.method()?).into(),
            subject: said.subject().map(|subject| (*subject).into()),
            permission,
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
                Verdict::Refused(message, Refused::Denied(Ruling { actor, ..ruling }))
            }
        }
    }
}
