//! What a server says of its tools where it lists them. It may only ever make them more dangerous than it
//! said before: a tool that was listed as one that deletes does not become harmless because a later list
//! says so.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;
use mcp_wire::fold::skeleton;

use super::listed::{TOOLS, each_list, items, members};
use super::operation::Annotations;

/// Tools of which it is known what is said of them; no server has as many that a model could choose from.
const TOOLS_MAX: usize = 10_000;
/// A tool with a longer name is not remembered. Clients allow 64 or 128.
const NAME_BYTES_MAX: usize = 256;

/// By their names in any spelling.
#[derive(Debug, Default)]
pub(super) struct Tools {
    known: HashMap<Box<str>, Annotations, RandomState>,
}

impl Tools {
    /// What is said of a tool.
    pub(super) fn of(&self, name: &str) -> Annotations {
        if self.known.is_empty() {
            return Annotations::UNLISTED;
        }
        self.known.get(&*skeleton(name)).copied().unwrap_or(Annotations::UNLISTED)
    }

    /// Takes in what an answer lists. Whether anything is known now that was not.
    pub(super) fn learn(&mut self, answer: &[u8]) -> bool {
        let mut is_news = false;
        each_list(answer, |list, json| {
            if *list == TOOLS {
                for item in items(answer, json) {
                    let said = annotations(answer, item.clone());
                    let names = TOOLS.names(answer, item).flatten();
                    is_news |= names.fold(false, |is_news, name| self.hear(&name, said) | is_news);
                }
            }
        });
        is_news
    }

    fn hear(&mut self, name: &str, said: Annotations) -> bool {
        let name = skeleton(name);
        if let Some(known) = self.known.get_mut(&*name) {
            let before = std::mem::replace(known, after(*known, said));
            return *known != before;
        }
        if self.known.len() >= TOOLS_MAX || name.len() > NAME_BYTES_MAX {
            return false;
        }
        self.known.insert(name.into(), said);
        true
    }
}

/// What counts once something else was said before. A danger that was named stays; what is harmless must
/// have been called so from the first.
fn after(before: Annotations, later: Annotations) -> Annotations {
    let danger = |before: Option<bool>, later: Option<bool>| match (before, later) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (before, later) => before.or(later),
    };
    let harmless = |before: Option<bool>, later: Option<bool>| match (before, later) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (before, later) => before.and(later),
    };
    Annotations {
        read_only: harmless(before.read_only, later.read_only),
        destructive: danger(before.destructive, later.destructive),
        idempotent: harmless(before.idempotent, later.idempotent),
        open_world: danger(before.open_world, later.open_world),
        is_unlisted: false,
    }
}

/// What an item of the list says of its tool. Of two members of one name both count.
fn annotations(answer: &[u8], tool: Range<usize>) -> Annotations {
    let all = members(answer, tool, "annotations").map(|json| {
        let said = |name| members(answer, json.clone(), name).map(|value| flag(&answer[value]));
        let least = |one: Option<bool>, other: Option<bool>| Some(one? && other?);
        let most = |one: Option<bool>, other: Option<bool>| one.max(other);
        Annotations {
            read_only: said("readOnlyHint").reduce(least).flatten(),
            destructive: said("destructiveHint").reduce(most).flatten(),
            idempotent: said("idempotentHint").reduce(least).flatten(),
            open_world: said("openWorldHint").reduce(most).flatten(),
            is_unlisted: false,
        }
    });
    all.reduce(after).unwrap_or_default()
}

fn flag(json: &[u8]) -> Option<bool> {
    match json {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn listed(tools: &str) -> String {
        format!(r#"{{"id":1,"result":{{"tools":[{tools}]}}}}"#)
    }

    fn tool(name: &str, annotations: &str) -> String {
        format!(r#"{{"name":"{name}","annotations":{{{annotations}}}}}"#)
    }

    fn learned(lists: &[String]) -> Tools {
        let mut tools = Tools::default();
        for list in lists {
            tools.learn(listed(list).as_bytes());
        }
        tools
    }

    /// What is known of the tool `t` after these lists: `read_only destructive idempotent open_world`.
    #[track_caller]
    fn check(lists: &[&str], expected: &str) {
        let lists: Vec<_> = lists.iter().map(|annotations| tool("t", annotations)).collect();
        let Annotations { read_only, destructive, idempotent, open_world, is_unlisted } = learned(&lists).of("t");
        assert!(!is_unlisted, "{lists:?}");
        let sign = |said: Option<bool>| said.map_or("-", |said| if said { "y" } else { "n" });
        assert_eq!([read_only, destructive, idempotent, open_world].map(sign).concat(), expected, "{lists:?}");
    }

    #[test]
    fn lists_say_what_tools_do() {
        check(&[""], "----");
        check(&[r#""readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false"#], "ynyn");
        check(&[r#" "destructiveHint" : true ,"title":"T""#], "-y--");
        check(&[r#""readOnlyHint":"true","destructiveHint":1,"openWorldHint":null"#], "----");
        check(&[r#""read\u004fnlyHint":true"#], "y---");
    }

    #[test]
    fn nothing_becomes_harmless_later() {
        check(&[r#""destructiveHint":true"#, r#""destructiveHint":false"#], "-y--");
        check(&[r#""destructiveHint":true"#, ""], "-y--");
        check(&[r#""destructiveHint":false"#, r#""destructiveHint":true"#], "-y--");
        check(&["", r#""openWorldHint":true"#], "---y");
        check(&[r#""readOnlyHint":true"#, r#""readOnlyHint":false"#], "n---");
        check(&[r#""readOnlyHint":false"#, r#""readOnlyHint":true"#], "n---");
        check(&["", r#""readOnlyHint":true,"idempotentHint":true"#], "----");
        check(&[r#""readOnlyHint":true"#, ""], "----");
        check(&[r#""readOnlyHint":true"#, r#""readOnlyHint":true"#], "y---");
    }

    #[test]
    fn of_what_stands_twice_the_worse_counts() {
        check(&[r#""destructiveHint":true,"destructiveHint":false"#], "-y--");
        check(&[r#""readOnlyHint":true,"readOnlyHint":false"#], "n---");
        check(&[r#""readOnlyHint":true,"readOnlyHint":1"#], "----");
        let twice = r#"{"name":"t","annotations":{"readOnlyHint":true},"annotations":{"destructiveHint":true}}"#;
        let tools = learned(&[twice.to_owned()]);
        assert_eq!((tools.of("t").read_only, tools.of("t").destructive), (None, Some(true)));
        let tools = learned(&[format!("{},{}", tool("t", r#""readOnlyHint":true"#), tool("t", ""))]);
        assert_eq!(tools.of("t").read_only, None);
    }

    #[test]
    fn a_tool_is_known_in_any_spelling() {
        let tools = learned(&[tool("Wipe_Disk", r#""destructiveHint":true"#)]);
        for name in ["Wipe_Disk", "wipe_disk", "WIPE_DISK\0", "wip\u{435}_disk"] {
            assert_eq!(tools.of(name).destructive, Some(true), "{name:?}");
        }
        assert_eq!(tools.of("wipe"), Annotations::UNLISTED);
    }

    #[test]
    fn only_news_is_news() {
        let mut tools = Tools::default();
        let list = listed(&[tool("a", ""), tool("b", r#""readOnlyHint":true"#)].join(","));
        assert!(tools.learn(list.as_bytes()));
        assert!(!tools.learn(list.as_bytes()));
        assert!(!tools.learn(br#"{"result":{"prompts":[{"name":"a","annotations":{"destructiveHint":true}}]}}"#));
        assert!(tools.learn(listed(&tool("a", r#""destructiveHint":true"#)).as_bytes()));
        assert!(tools.learn(listed(&tool("c", "")).as_bytes()), "a tool that is listed is no longer unknown");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let list: Vec<_> = (0..TOOLS_MAX + 9).map(|n| tool(&format!("t{n}"), r#""destructiveHint":true"#)).collect();
        let mut tools = learned(&[list.join(",")]);
        assert_eq!(tools.known.len(), TOOLS_MAX);
        tools.learn(listed(&tool("t0", r#""openWorldHint":true"#)).as_bytes());
        assert_eq!(tools.of("t0").open_world, Some(true), "what is known still learns");
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        assert_eq!(learned(&[tool(&long, r#""destructiveHint":true"#)]).of(&long), Annotations::UNLISTED);
    }

    proptest! {
        /// However lists follow each other: dangers only grow, and harmlessness only shrinks.
        #[test]
        fn what_is_known_only_gets_worse(said in prop::collection::vec(any::<[Option<bool>; 4]>(), 1..6)) {
            let mut tools = Tools::default();
            let mut before: Option<Annotations> = None;
            for [read_only, destructive, idempotent, open_world] in said {
                let is_unlisted = false;
                tools.hear("t", Annotations { read_only, destructive, idempotent, open_world, is_unlisted });
                let now = tools.of("t");
                if let Some(before) = before {
                    prop_assert!(before.destructive != Some(true) || now.destructive == Some(true));
                    prop_assert!(before.open_world != Some(true) || now.open_world == Some(true));
                    prop_assert!(before.read_only == Some(true) || now.read_only != Some(true));
                    prop_assert!(before.read_only != Some(false) || now.read_only == Some(false));
                    prop_assert!(before.idempotent == Some(true) || now.idempotent != Some(true));
                }
                before = Some(now);
            }
        }

        #[test]
        fn any_bytes_can_be_learned_from(text in r#"[\[\]{}",:at \\]{0,40}"#) {
            Tools::default().learn(listed(&text).as_bytes());
            Tools::default().learn(listed(&tool("t", &text)).as_bytes());
        }
    }
}
