//! What is known of a word: the table of verbs with all their forms, made once and looked up.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use super::Operation;
use super::compound::VERB_BYTES_MIN;
use super::verbs::{ENGINES, GROUPS, Group, HOLDERS, JOINTS, PREPOSITIONS, RIGHTS, RUN, SHOWN, UNCUT, Verb};

/// What a word is.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    Verb {
        group: &'static Group,
        verb: &'static Verb,
        form: Form,
    },
    /// A right, or what gives one.
    Right,
    /// Somebody or something that has rights.
    Holder,
    Shown,
    Run,
    /// Something that takes statements.
    Engine,
    Joint,
    Preposition,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// `delete`
    Plain,
    /// `deletes`, `deleting`, `deletion`, `deleter`: what happens, the plural of a noun, or what does it
    Happening,
    /// `deleted`: how something is
    Done,
}

/// No known word is longer, and a longer one is not looked up.
pub(super) const WORD_BYTES_MAX: usize = 24;

/// The meaning of a word in lower case.
pub(super) fn meaning(word: &str) -> Option<Meaning> {
    (word.len() <= WORD_BYTES_MAX).then(|| MEANINGS.get(word).copied()).flatten()
}

/// The words are ours, so the hash needs no seed of its own: nobody else adds to the table.
static MEANINGS: LazyLock<HashMap<Box<str>, Meaning, FixedState>> = LazyLock::new(|| {
    let mut meanings = HashMap::with_hasher(FixedState::default());
    let mut learn = |word: String, meaning: Meaning| {
        meanings.entry(word.into_boxed_str()).or_insert(meaning);
    };
    // Plain forms go first: no form of another verb may hide one.
    for (group, verb) in verbs() {
        learn(verb.word.to_owned(), Meaning::Verb { group, verb, form: Form::Plain });
    }
    let lists = [
        (RIGHTS, Meaning::Right),
        (HOLDERS, Meaning::Holder),
        (SHOWN, Meaning::Shown),
        (RUN, Meaning::Run),
        (ENGINES, Meaning::Engine),
        (JOINTS, Meaning::Joint),
        (PREPOSITIONS, Meaning::Preposition),
    ];
    for (words, meaning) in lists {
        words.iter().for_each(|word| learn((*word).to_owned(), meaning));
    }
    for (group, verb) in verbs() {
        let agents = agents(group, verb).map(|word| (word, Form::Happening));
        for (word, form) in forms(verb).into_iter().chain(agents) {
            learn(word, Meaning::Verb { group, verb, form });
        }
    }
    meanings
});

fn verbs() -> impl Iterator<Item = (&'static Group, &'static Verb)> {
    GROUPS.iter().flat_map(|group| group.verbs.iter().map(move |verb| (group, verb)))
}

/// All forms but the plain one. Some are no English (`runed`); nobody will use them.
fn forms(verb: &Verb) -> Vec<(String, Form)> {
    let word = verb.word;
    let (stem, last) = word.split_at(word.len() - 1);
    let mut forms = match last {
        "e" => vec![
            (format!("{word}s"), Form::Happening),
            (format!("{stem}ing"), Form::Happening),
            (format!("{word}d"), Form::Done),
        ],
        "y" if !stem.ends_with(['a', 'e', 'o', 'u']) => {
            vec![
                (format!("{stem}ies"), Form::Happening),
                (format!("{word}ing"), Form::Happening),
                (format!("{stem}ied"), Form::Done),
            ]
        }
        _ => {
            let s = if word.ends_with(['s', 'x', 'z']) || word.ends_with("ch") || word.ends_with("sh") {
                "es"
            } else {
                "s"
            };
            vec![
                (format!("{word}{s}"), Form::Happening),
                (format!("{word}ing"), Form::Happening),
                (format!("{word}{last}ing"), Form::Happening),
                (format!("{word}ed"), Form::Done),
                (format!("{word}{last}ed"), Form::Done),
            ]
        }
    };
    forms.extend(verb.irregular.iter().map(|form| ((*form).to_owned(), Form::Done)));
    forms.extend(verb.nominal.iter().map(|form| ((*form).to_owned(), Form::Happening)));
    forms
}

/// Nouns for what does it: `deleter`, `executor`. Of verbs that are nouns as well they are mostly products and
/// parts: `cleaner`, `launcher`.
fn agents(group: &Group, verb: &Verb) -> impl Iterator<Item = String> {
    let has_agent = group.operation > Operation::Write && !verb.is_noun && verb.word.len() >= VERB_BYTES_MIN;
    let stem = verb.word.strip_suffix('e').unwrap_or(verb.word);
    let last = &stem[stem.len() - 1..];
    let agents = [format!("{stem}er"), format!("{stem}or"), format!("{stem}{last}er")];
    let known = agents.into_iter().filter(move |agent| has_agent && !UNCUT.contains(&&**agent));
    known.flat_map(|agent| [format!("{agent}s"), agent])
}
