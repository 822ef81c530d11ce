//! Lists without what their reader may not use. Items are cut out of the answer, and every other byte stays
//! as it came.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

use super::listed::{List, each_list, items};

/// What is left of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rest {
    pub bytes: Bytes,
    /// How many items are gone.
    pub hidden: usize,
}

/// An answer without the items for which `is_hidden` says so, asked by the method that would use them and
/// what they are called. An item without a readable name is hidden, too. `None` if everything stays.
pub(super) fn without_hidden(answer: &[u8], mut is_hidden: impl FnMut(&str, &str) -> bool) -> Option<Rest> {
    let mut cuts = Cuts { answer, rest: Vec::new(), taken_to: 0, hidden: 0 };
    each_list(answer, |list, json| {
        cuts.list(json, |item| {
            let mut names = list.names(answer, item).peekable();
            names.peek().is_none() || names.any(|name| is_one(list, name, &mut is_hidden))
        });
    });
    cuts.end()
}

fn is_one(list: &List, name: Option<Cow<'_, str>>, is_hidden: &mut impl FnMut(&str, &str) -> bool) -> bool {
    name.is_none_or(|name| is_hidden(list.used_by, &name))
}

/// The answer as far as it has been gone through.
struct Cuts<'a> {
    answer: &'a [u8],
    rest: Vec<u8>,
    taken_to: usize,
    hidden: usize,
}

impl Cuts<'_> {
    /// Leaves items out of a list. With the items go the commas after them; with the last ones, the comma
    /// before.
    fn list(&mut self, json: Range<usize>, mut is_hidden: impl FnMut(Range<usize>) -> bool) {
        let (mut stays_to, mut run) = (None, None::<Range<usize>>);
        for item in items(self.answer, json) {
            if is_hidden(item.clone()) {
                self.hidden += 1;
                run = Some(run.map_or(item.start, |run| run.start)..item.end);
                continue;
            }
            if let Some(run) = run.take() {
                self.cut(run.start..item.start);
            }
            stays_to = Some(item.end);
        }
        if let Some(run) = run {
            self.cut(stays_to.unwrap_or(run.start)..run.end);
        }
    }

    fn cut(&mut self, range: Range<usize>) {
        self.rest.extend_from_slice(&self.answer[self.taken_to..range.start]);
        self.taken_to = range.end;
    }

    fn end(mut self) -> Option<Rest> {
        if self.hidden == 0 {
            return None;
        }
        self.rest.extend_from_slice(&self.answer[self.taken_to..]);
        Some(Rest { bytes: self.rest.into(), hidden: self.hidden })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn hide(answer: &str, hidden: &[&str]) -> Option<(String, usize)> {
        let rest = without_hidden(answer.as_bytes(), |_, name| hidden.contains(&name))?;
        Some((String::from_utf8(rest.bytes.to_vec()).unwrap(), rest.hidden))
    }

    /// What is left when `a` and `b` are hidden.
    #[track_caller]
    fn check(answer: &str, expected: &str) {
        let rest = hide(answer, &["a", "b"]).map(|(rest, _)| rest);
        assert_eq!(rest.as_deref(), Some(expected).filter(|expected| *expected != answer), "{answer}");
    }

    #[test]
    fn every_other_byte_stays() {
        check(r#"{"result":{"tools":[]}}"#, r#"{"result":{"tools":[]}}"#);
        check(r#"{"result":{"tools":[{"name":"c"}]}}"#, r#"{"result":{"tools":[{"name":"c"}]}}"#);
        check(r#"{"result":{"tools":[{"name":"a"}]}}"#, r#"{"result":{"tools":[]}}"#);
        check(r#"{"result":{"tools":[{"name":"a"},{"name":"c"}]}}"#, r#"{"result":{"tools":[{"name":"c"}]}}"#);
        check(r#"{"result":{"tools":[{"name":"c"},{"name":"a"}]}}"#, r#"{"result":{"tools":[{"name":"c"}]}}"#);
        check(
            "{ \"id\": 1.0e0, \"result\" : {\"tools\" :\n[ {\"name\" : \"a\"} ,\n  {\"name\":\"c\", \"x\": 1e400},\n\t{\"name\":\"b\"}\n] ,\"nextCursor\":\"7\"} }\r\n",
            "{ \"id\": 1.0e0, \"result\" : {\"tools\" :\n[ {\"name\":\"c\", \"x\": 1e400}\n] ,\"nextCursor\":\"7\"} }\r\n",
        );
        check(
            r#"{"result":{"tools":[{"name":"c"} , {"name":"a"} , {"name":"b"} , {"name":"d"}]}}"#,
            r#"{"result":{"tools":[{"name":"c"} , {"name":"d"}]}}"#,
        );
        check(r#"{"result":{"tools":[ {"name":"a"} , {"name":"b"} ]}}"#, r#"{"result":{"tools":[  ]}}"#);
    }

    #[test]
    fn every_list_has_its_names() {
        check(r#"{"result":{"prompts":[{"name":"a"},{"name":"c"}]}}"#, r#"{"result":{"prompts":[{"name":"c"}]}}"#);
        check(
            r#"{"result":{"resources":[{"name":"a","uri":"c"},{"uri":"a","name":"c"}]}}"#,
            r#"{"result":{"resources":[{"name":"a","uri":"c"}]}}"#,
        );
        check(
            r#"{"result":{"resourceTemplates":[{"uriTemplate":"c"},{"uriTemplate":"a"}]}}"#,
            r#"{"result":{"resourceTemplates":[{"uriTemplate":"c"}]}}"#,
        );
        let asked = std::cell::RefCell::new(Vec::new());
        let answer = br#"{"result":{"resourceTemplates":[{"uriTemplate":"t"}],"tools":[{"name":"n"}],"prompts":[{"name":"p"}],"resources":[{"uri":"u"}]}}"#;
        without_hidden(answer, |method, name| {
            asked.borrow_mut().push(format!("{method} {name}"));
            false
        });
        let mut asked = asked.into_inner();
        asked.sort();
        assert_eq!(asked, ["prompts/get p", "resources/read t", "resources/read u", "tools/call n"]);
    }

    #[test]
    fn what_cannot_be_read_is_hidden() {
        for odd in [
            r#"{}"#,
            r#"{"title":"c"}"#,
            r#"{"name":1}"#,
            r#"{"name":null}"#,
            r#""c""#,
            r#"[]"#,
            r#"7"#,
            r#"{"name":"\ud800"}"#,
            r#"{"name":"c","name":"a"}"#,
            r#"{"name":"a","name":"c"}"#,
            r#"{"name":"c","name":1}"#,
            r#"{"n\u0061me":"\u0061"}"#,
        ] {
            check(
                &format!(r#"{{"result":{{"tools":[{odd},{{"name":"c"}}]}}}}"#),
                r#"{"result":{"tools":[{"name":"c"}]}}"#,
            );
        }
    }

    #[test]
    fn lists_are_found_wherever_a_client_may_look() {
        check(r#"{"result":{"\u0074ools":[{"name":"a"}]}}"#, r#"{"result":{"\u0074ools":[]}}"#);
        check(r#"{"result":{"tools":[{"name":"a"}],"tools":[{"name":"b"}]}}"#, r#"{"result":{"tools":[],"tools":[]}}"#);
        check(
            r#"[{"id":1,"result":{"tools":[{"name":"a"}]}}, {"id":2,"result":{"tools":[{"name":"c"},{"name":"b"}]}}]"#,
            r#"[{"id":1,"result":{"tools":[]}}, {"id":2,"result":{"tools":[{"name":"c"}]}}]"#,
        );
    }

    #[test]
    fn whatever_is_no_list_stays() {
        for other in [
            r#"{"tools":[{"name":"a"}]}"#,
            r#"{"error":{"tools":[{"name":"a"}]}}"#,
            r#"{"result":{"content":{"tools":[{"name":"a"}]}}}"#,
            r#"{"result":{"tools":{"name":"a"}}}"#,
            r#"{"result":[{"tools":[{"name":"a"}]}]}"#,
            r#"{"result":{"tools":"a"}}"#,
            "",
            "null",
        ] {
            check(other, other);
        }
    }

    fn blanks() -> impl Strategy<Value = String> {
        "[ \n\t\r]{0,2}"
    }

    /// Items with their names, and blanks before and after each.
    fn spread_out() -> impl Strategy<Value = (Vec<String>, String)> {
        let item = ("[a-d]", blanks(), blanks());
        (prop::collection::vec(item, 0..8), blanks()).prop_map(|(items, inner)| {
            let names = items.iter().map(|(name, ..)| name.clone()).collect();
            let spelled = |(name, before, after): &(String, String, String)| {
                format!(r#"{before}{{"description":"{name}, [a]",{inner}"name":{inner}"{name}"}}{after}"#)
            };
            let list: Vec<_> = items.iter().map(spelled).collect();
            (names, format!(r#"{{"id":1,"result":{{{inner}"tools":[{inner}{}],"nextCursor":"x"}}}}"#, list.join(",")))
        })
    }

    proptest! {
        /// What is left says what the answer says without the hidden items, and is made of its bytes.
        #[test]
        fn the_rest_is_the_answer_without_them((names, answer) in spread_out()) {
            let hidden = ["a", "c"];
            let rest = hide(&answer, &hidden);
            let gone = names.iter().filter(|name| hidden.contains(&name.as_str())).count();
            prop_assert_eq!(rest.as_ref().map_or(0, |(_, hidden)| *hidden), gone);
            let rest = rest.map_or_else(|| answer.clone(), |(rest, _)| rest);
            let mut expected: Value = serde_json::from_str(&answer).unwrap();
            let tools = expected["result"]["tools"].as_array_mut().unwrap();
            tools.retain(|tool| tool["name"] != json!("a") && tool["name"] != json!("c"));
            prop_assert_eq!(serde_json::from_str::<Value>(&rest).unwrap(), expected, "{}", rest);
            let mut bytes = answer.bytes();
            prop_assert!(rest.bytes().all(|byte| bytes.any(|came| came == byte)), "in this order");
        }

        #[test]
        fn any_bytes_can_be_gone_through(text in r#"[\[\]{}",:a1 \\]{0,40}"#) {
            for answer in [text.clone(), format!(r#"{{"result":{{"tools":[{text}]}}}}"#)] {
                hide(&answer, &["a"]);
            }
        }
    }
}
