//! What the name of a tool says that it does.
//!
//! Every verb in its plain form counts, and the most dangerous one decides, deleting before all:
//! `read_and_delete` deletes, and so does `cancel_delete`, since we cannot know better. Verbs that are
//! nouns as well (`run`, `commit`) count only where they lead, are joined to another verb, or end a name
//! that leads with a noun: `list_commits` and `get_test_run` read, `query_stop` stops. Other forms (`deleted`, `deletion`) say how things are, not
//! what is done to them, and count where there is nothing else.

use super::Operation;
use super::lexicon::{Form, Meaning};
use super::reason::Reason;
use super::verbs::{ASKING, CREATING, DONE_TO, FILLERS, GROUPED, GROUPING, Group, KEYS, SETTINGS, Verb, WRITING};
use super::words::{Word, Words};

/// The operation that a name stands for, and why.
pub(super) fn judge(name: &str) -> (Operation, Reason) {
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
            return (Operation::Admin, Reason::About { word, object: self.text(right) });
        }
        if let Some(engine) = self.statement(&act) {
            return (Operation::Execute, Reason::About { word, object: self.text(engine) });
        }
        if let Some((operation, object)) = self.done_to(&act) {
            return (operation, Reason::About { word, object });
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
        let ends = self.ends_after_noun(act, first);
        is_joined || ends || leads && (!self.is_thing(act.at) || is_destructive(act.group.operation))
    }

    /// Whether the name ends in a verb that only looks or makes and is no noun, as in `pull_request_read`. What
    /// comes before is then a thing, unless it is done as well, as in `run_and_read`.
    fn is_thing(&self, at: usize) -> bool {
        let last = self.all.len() - 1;
        let joint = |word: &Word| matches!(word.meaning, Some(Meaning::Joint));
        at < last
            && !self.all.iter().any(joint)
            && matches!(
                self.all[last].meaning,
                Some(Meaning::Verb { group, verb, form: Form::Plain })
                    if group.operation == Operation::Read && !verb.is_noun || verb.word == CREATING
            )
    }

    /// Whether a dangerous verb ends a name that begins with a noun, as in `query_stop`.
    fn ends_after_noun(&self, act: &Act, first: usize) -> bool {
        let begins_in_noun = matches!(
            self.all[first].meaning,
            Some(Meaning::Verb { group, verb, .. }) if verb.is_noun && group.operation == Operation::Read
        );
        begins_in_noun && first < act.at && act.at == self.all.len() - 1 && act.group.operation > Operation::Write
    }

    /// The right that the verb at `at` is done to, if it is one.
    fn right(&self, at: usize) -> Option<usize> {
        let right = |word: &Word| matches!(word.meaning, Some(Meaning::Right));
        let holder = |object: &usize| matches!(self.all[*object].meaning, Some(Meaning::Holder));
        let setting = |next: &usize| self.all.get(*next).is_some_and(|_| SETTINGS.contains(&&*self.text(*next)));
        (self.all.iter().position(right))
            .or_else(|| self.key())
            .or_else(|| self.object(at).filter(|object| holder(object) || self.is_group(*object, at)))
            .or_else(|| Some(at + 1).filter(setting))
    }

    /// Whether an object is a group of those who have rights: right beside the verb, or behind a word for them.
    fn is_group(&self, object: usize, verb: usize) -> bool {
        let before = object.checked_sub(1).filter(|before| *before != verb);
        let of_holders = |at: usize| GROUPING.contains(&&*self.text(at));
        let is_beside = object.abs_diff(verb) == 1;
        GROUPED.contains(&&*self.text(object)) && (is_beside || before.is_some_and(of_holders))
    }

    /// A key that opens something: `api_key`, `ssh_key`.
    fn key(&self) -> Option<usize> {
        let is_key = |at: &usize| matches!(&*self.text(*at), "key" | "keys");
        (1..self.all.len()).find(|at| is_key(at) && KEYS.contains(&&*self.text(at - 1)))
    }

    /// What runs the statement that a verb takes: in words before it, or right behind it.
    fn statement(&self, act: &Act) -> Option<usize> {
        let is_engine = |at: &usize| matches!(self.all[*at].meaning, Some(Meaning::Engine));
        let next = Some(act.at + 1).filter(|at| *at < self.all.len());
        match act.verb.word {
            verb if ASKING.contains(&verb) => (0..act.at).find(is_engine).or_else(|| next.filter(is_engine)),
            WRITING => self.object(act.at).filter(|at| is_engine(at) || ASKING.contains(&&*self.text(*at))),
            _ => None,
        }
    }

    /// The operation of a verb that does something else to its object. Another verb in the name that does more
    /// forbids to make less of it: `run_test_report` runs a test, `generate_and_send_code` sends.
    fn done_to(&self, act: &Act) -> Option<(Operation, String)> {
        let object = self.text(self.object(act.at)?);
        let (.., operation) =
            DONE_TO.iter().find(|(verbs, objects, _)| verbs.contains(&act.verb.word) && objects.contains(&&*object))?;
        let is_other = |other: &Act| other.at != act.at && other.form == Form::Plain;
        let mut others = self.acts().filter(is_other);
        let is_less = *operation < act.group.operation;
        (!is_less || others.all(|other| other.group.operation <= *operation)).then_some((*operation, object))
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

    /// Without a verb the last word tells, if it is something to look at; else any that runs what it is given.
    fn without_verb(&self) -> (Operation, Reason) {
        let fillers = self.all.iter().rev().take_while(|word| FILLERS.contains(&&*self.words.text(word))).count();
        let told = &self.all[..self.all.len() - fillers];
        let runs = |word: &Word| matches!(word.meaning, Some(Meaning::Run));
        match (told.last(), told.iter().rposition(runs)) {
            (Some(word), _) if matches!(word.meaning, Some(Meaning::Shown)) => {
                (Operation::Read, Reason::Shows { word: self.words.text(word) })
            }
            (_, Some(at)) => (Operation::Execute, Reason::Runs { word: self.text(at) }),
            (Some(word), None) if matches!(word.meaning, Some(Meaning::Engine)) => {
                (Operation::Execute, Reason::Runs { word: self.words.text(word) })
            }
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
