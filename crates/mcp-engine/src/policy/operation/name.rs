//! What the name of a tool says that it does.
//!
//! Every verb in its plain form counts, and the most dangerous one decides, deleting before all:
//! `read_and_delete` deletes, and so does `cancel_delete`, since we cannot know better. Verbs that are
//! nouns as well (`run`, `commit`) count only where they lead, or are joined to another verb:
//! `list_commits` and `get_test_run` read. Other forms (`deleted`, `deletion`) say how things are, not
//! what is done to them, and count where there is nothing else.

use super::Operation;
use super::lexicon::{Form, Meaning};
use super::reason::Reason;
use super::verbs::{Group, KEYS, SETTINGS, Verb};
use super::words::{Word, Words};

/// The operation that a name stands for, and why.
pub fn judge(name: &str) -> (Operation, Reason) {
    let words = Words::of(name);
    let own = words.own();
    let judged = if own.iter().any(is_verb) { own } else { words.all() };
    let (operation, reason) = Sentence { words: &words, all: judged }.judge();
    match words.is_disguised && operation < Operation::Write {
        true => (Operation::Write, Reason::Disguised),
        false => (operation, reason),
    }
}

/// A name as what is done to what.
struct Sentence<'a> {
    words: &'a Words,
    all: &'a [Word],
}

/// A verb in a name.
#[derive(Clone, Copy)]
struct Act {
    at: usize,
    group: &'static Group,
    verb: &'static Verb,
    form: Form,
}

impl Sentence<'_> {
    fn judge(&self) -> (Operation, Reason) {
        let Some(act) = self.decisive() else { return self.without_verb() };
        let word = self.text(act.at);
        if act.group.yields
            && let Some(right) = self.right(act.at)
        {
            return (Operation::Admin, Reason::About { word, right: self.text(right) });
        }
        (act.group.operation, Reason::Verb { word, verb: act.verb.word })
    }

    /// The verb that decides: of those that say what is done, the most dangerous, and the first of
    /// these.
    fn decisive(&self) -> Option<Act> {
        let acts: Vec<Act> = self.acts().collect();
        let plain = || acts.iter().filter(|act| act.form == Form::Plain);
        let Some(first) = plain().next() else { return most_dangerous(acts.iter()) };
        let done = plain().filter(|act| self.is_done(act, first.at));
        let decisive = most_dangerous(done).unwrap_or(*first);
        // What only looks stays so with `deletion` in its name. For anything else that is a hint.
        match decisive.group.operation {
            Operation::Read => Some(decisive),
            _ => {
                let happening = acts.iter().filter(|act| act.form == Form::Happening && !act.verb.is_noun);
                let dangerous = happening.filter(|act| is_destructive(act.group.operation));
                most_dangerous([&decisive].into_iter().chain(dangerous))
            }
        }
    }

    fn acts(&self) -> impl Iterator<Item = Act> {
        self.all.iter().enumerate().filter_map(|(at, word)| match word.meaning {
            Some(Meaning::Verb { group, verb, form }) => Some(Act { at, group, verb, form }),
            _ => None,
        })
    }

    /// Whether a plain verb says what is done. One that may be a noun does where no verb comes before
    /// it in its part of the name, or if it is joined to one.
    fn is_done(&self, act: &Act, first: usize) -> bool {
        if !act.verb.is_noun {
            return true;
        }
        let is_joined = act.at > 0 && matches!(self.all[act.at - 1].meaning, Some(Meaning::Joint));
        let leads = act.at == first || self.all[act.at].leads_part;
        is_joined || leads && (!self.ends_in_look(act.at) || is_destructive(act.group.operation))
    }

    /// Whether the name ends in a verb that only looks and is no noun, as in `pull_request_read`.
    /// What comes before is then a thing, unless it is done as well, as in `run_and_read`.
    fn ends_in_look(&self, at: usize) -> bool {
        let last = self.all.len() - 1;
        let joint = |word: &Word| matches!(word.meaning, Some(Meaning::Joint));
        at < last
            && !self.all.iter().any(joint)
            && matches!(
                self.all[last].meaning,
                Some(Meaning::Verb { group, verb, form: Form::Plain })
                    if group.operation == Operation::Read && !verb.is_noun
            )
    }

    /// The right that the verb at `at` is done to, if it is one.
    fn right(&self, at: usize) -> Option<usize> {
        let right = |word: &Word| matches!(word.meaning, Some(Meaning::Right));
        let holder = |object: &usize| matches!(self.all[*object].meaning, Some(Meaning::Holder));
        let setting = |next: &usize| self.all.get(*next).is_some_and(|_| SETTINGS.contains(&&*self.text(*next)));
        (self.all.iter().position(right))
            .or_else(|| self.key())
            .or_else(|| self.object(at).filter(holder))
            .or_else(|| Some(at + 1).filter(setting))
    }

    /// A key that opens something: `api_key`, `ssh_key`.
    fn key(&self) -> Option<usize> {
        let is_key = |at: &usize| matches!(&*self.text(*at), "key" | "keys");
        (1..self.all.len()).find(|at| is_key(at) && KEYS.contains(&&*self.text(at - 1)))
    }

    /// What the verb is done to: the last word before a preposition, or else before the verb.
    fn object(&self, at: usize) -> Option<usize> {
        let after = &self.all[at + 1..];
        let length = after.iter().position(|word| matches!(word.meaning, Some(Meaning::Preposition)));
        match length.unwrap_or(after.len()) {
            0 => at.checked_sub(1),
            length => Some(at + length),
        }
    }

    /// Without a verb the last word tells, if any.
    fn without_verb(&self) -> (Operation, Reason) {
        let Some(last) = self.all.len().checked_sub(1) else { return (Operation::Write, Reason::Unknown) };
        match self.all[last].meaning {
            Some(Meaning::Shown) => (Operation::Read, Reason::Shows { word: self.text(last) }),
            Some(Meaning::Run) => (Operation::Execute, Reason::Runs { word: self.text(last) }),
            _ => (Operation::Write, Reason::Unknown),
        }
    }

    fn text(&self, at: usize) -> String {
        self.words.text(&self.all[at])
    }
}

fn is_verb(word: &Word) -> bool {
    matches!(word.meaning, Some(Meaning::Verb { .. }))
}

fn is_destructive(operation: Operation) -> bool {
    matches!(operation, Operation::Delete | Operation::Admin)
}

fn most_dangerous<'a>(acts: impl Iterator<Item = &'a Act>) -> Option<Act> {
    acts.copied().reduce(|one, other| if danger(&other) > danger(&one) { other } else { one })
}

/// Deleting comes before what can do more in general. Rules often forbid that alone, and must then hold
/// for whatever says that it deletes: `dry_run_delete` too.
fn danger(act: &Act) -> (bool, Operation) {
    (act.group.operation == Operation::Delete, act.group.operation)
}
