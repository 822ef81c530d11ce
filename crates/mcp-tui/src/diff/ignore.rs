//! Paths of what is not compared. They are those of filters, and a name after a dot may have stars in it.

use mcp_filter::Glob;

use crate::json::{Document, NodeId};

/// Steps of one path: they are the bits of a number.
const STEPS_MAX: usize = 31;

pub(super) struct Pattern {
    steps: Vec<Step>,
}

enum Step {
    Member(Glob),
    Item(usize),
    /// Any member or item.
    Any,
    /// Everything below, at any depth; the step after it says which.
    Below,
}

impl Pattern {
    pub(super) fn parse(path: &str) -> Option<Self> {
        let mut rest = path.trim().strip_prefix('$')?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("..") {
                steps.push(Step::Below);
                rest = after;
                if !rest.starts_with('[') {
                    rest = name(rest, &mut steps)?;
                }
            } else if let Some(after) = rest.strip_prefix('.') {
                rest = name(after, &mut steps)?;
            } else {
                rest = bracket(rest.strip_prefix('[')?, &mut steps)?;
            }
        }
        (steps.len() <= STEPS_MAX).then_some(Self { steps })
    }

    fn goal(&self) -> u32 {
        1 << self.steps.len()
    }

    /// Where everything below may come next, so may what follows it.
    fn opened(&self, mut next: u32) -> u32 {
        for (index, step) in self.steps.iter().enumerate() {
            if matches!(step, Step::Below) && next & (1 << index) != 0 {
                next |= 1 << (index + 1);
            }
        }
        next
    }

    fn taken(&self, next: u32, key: Option<&str>, order: usize) -> u32 {
        let mut taken = 0;
        for (index, step) in self.steps.iter().enumerate().filter(|(index, _)| next & (1 << index) != 0) {
            let fits = match step {
                Step::Below => {
                    taken |= 1 << index;
                    continue;
                }
                Step::Any => true,
                Step::Item(item) => key.is_none() && *item == order,
                Step::Member(glob) => key.is_some_and(|key| glob.matches(key)),
            };
            taken |= u32::from(fits) << (index + 1);
        }
        self.opened(taken)
    }
}

/// A name up to the next step, and what follows it.
fn name<'a>(rest: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    steps.push(match name {
        "" => return None,
        "*" => Step::Any,
        name => Step::Member(Glob::new(name)),
    });
    Some(rest)
}

/// What follows an opening bracket: a number, a star, or a name in quotes that stands for itself.
fn bracket<'a>(rest: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    if let Some(quoted) = rest.strip_prefix('"') {
        let mut name = String::new();
        let mut chars = quoted.chars();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => name.push(match chars.next()? {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    c => c,
                }),
                c => name.push(c),
            }
        }
        steps.push(Step::Member(Glob::literal(&name)));
        return chars.as_str().strip_prefix(']');
    }
    let (item, rest) = rest.split_once(']')?;
    steps.push(if item == "*" { Step::Any } else { Step::Item(item.parse().ok()?) });
    Some(rest)
}

/// How far each pattern has come at one value.
pub(super) struct Reached(Vec<u32>);

impl Reached {
    pub(super) fn at_root(patterns: &[Pattern]) -> Self {
        Self(patterns.iter().map(|pattern| pattern.opened(1)).collect())
    }

    pub(super) fn below(&self, document: &Document, child: NodeId, patterns: &[Pattern]) -> Self {
        // Most values are out of every pattern's way; then the key need not be decoded.
        if self.0.iter().all(|next| *next == 0) {
            return Self(vec![0; self.0.len()]);
        }
        let key = document.key(child);
        let taken = |(pattern, next): (&Pattern, &u32)| pattern.taken(*next, key.as_deref(), document.order(child));
        Self(patterns.iter().zip(&self.0).map(taken).collect())
    }

    pub(super) fn is_goal(&self, patterns: &[Pattern]) -> bool {
        patterns.iter().zip(&self.0).any(|(pattern, next)| next & pattern.goal() != 0)
    }
}
