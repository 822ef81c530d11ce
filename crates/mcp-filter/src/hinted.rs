//! What a filter by operation matched while `destructiveHint: true` alone made a delete of a tool, in place of
//! a write. Rules that were written then are told from this, with the filter that restores them.

use crate::Filter;
use crate::compile::{Compiled, compile};
use crate::judge::holds;
use crate::spelling::Reading;
use crate::subject::Subject;
use crate::syntax::Expr;

/// The difference for tools that a server calls destructive and whose name says write.
#[derive(Debug)]
pub struct Hinted {
    /// Matches all that the filter did.
    pub restored: Filter,
    /// The filter no longer matches such a tool.
    pub loses: bool,
    /// It matches one that it did not match.
    pub gains: bool,
}

impl Filter {
    /// `None` if the hint makes no difference, or the filter asks for hints itself.
    pub fn hinted(&self) -> Option<Hinted> {
        let mut heed = Heed { loses: false, gains: false };
        let restored = heed.restored(&self.written, false);
        let is_other = (heed.loses || heed.gains) && self.fields().iter().all(|(field, _)| *field != "hint");
        let restored = Self::parse(&restored.to_string()).ok().filter(|_| is_other)?;
        Some(Hinted { restored, loses: heed.loses, gains: heed.gains })
    }
}

struct Heed {
    loses: bool,
    gains: bool,
}

impl Heed {
    fn restored(&mut self, expr: &Expr, is_negated: bool) -> Expr {
        match expr {
            Expr::Or(parts) => Expr::Or(parts.iter().map(|part| self.restored(part, is_negated)).collect()),
            Expr::And(parts) => Expr::And(parts.iter().map(|part| self.restored(part, is_negated)).collect()),
            Expr::Not(inner) => Expr::Not(Box::new(self.restored(inner, !is_negated))),
            test => match (is_true_of(test, "delete"), is_true_of(test, "write")) {
                (true, false) => {
                    *if is_negated { &mut self.gains } else { &mut self.loses } = true;
                    Expr::Or(vec![test.clone(), destructive()])
                }
                (false, true) => {
                    *if is_negated { &mut self.loses } else { &mut self.gains } = true;
                    Expr::And(vec![test.clone(), Expr::Not(Box::new(destructive()))])
                }
                _ => test.clone(),
            },
        }
    }
}

fn destructive() -> Expr {
    Filter::parse("hint:destructive").expect("a filter").written
}

/// Whether a test holds of a subject of which only the operation is known.
fn is_true_of(test: &Expr, operation: &'static str) -> bool {
    struct Class(&'static str);
    impl Subject for Class {
        fn operation(&self) -> Option<&str> {
            Some(self.0)
        }
    }
    matches!(test, Expr::Test { field, .. } if field.text == "op")
        && compile(test).is_ok_and(|Compiled { test, .. }| holds(&test, &Class(operation), Reading::Written))
}

#[cfg(test)]
mod tests {
    use crate::Filter;

    #[track_caller]
    fn check(filter: &str, expected: Option<(&str, &str)>) {
        let hinted = Filter::parse(filter).unwrap().hinted();
        let change = hinted.map(|hinted| {
            let change = match (hinted.loses, hinted.gains) {
                (true, true) => "both",
                (true, false) => "loses",
                _ => "gains",
            };
            (hinted.restored.to_string(), change)
        });
        assert_eq!(change.as_ref().map(|(filter, change)| (filter.as_str(), *change)), expected, "{filter}");
    }

    #[test]
    fn a_filter_that_a_hint_alone_made_match_can_be_restored() {
        check("op:delete", Some(("op:delete or hint:destructive", "loses")));
        check("op:delete,admin tool:x_*", Some(("(op:delete,admin or hint:destructive) and tool:x_*", "loses")));
        check("op:read,write", Some(("op:read,write and not hint:destructive", "gains")));
        check("not op:write", Some(("not (op:write and not hint:destructive)", "loses")));
        check("op!=delete", Some(("op!=delete and not hint:destructive", "gains")));
        check("op>=delete", Some(("op>=delete or hint:destructive", "loses")));
        for filter in
            ["", "op>=write", "op:execute,admin", "op:read", "tool:x", "op:delete or hint:destructive", "op:*"]
        {
            check(filter, None);
        }
    }
}
