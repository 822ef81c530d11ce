//! The arguments of a request in a few words: `path="/tmp/x" mode=420`.

use mcp_control::api::{Message, MessageKind};

use crate::json::Document;
use crate::text;

/// Arguments that are shown, and letters and cells of them: a list has no room for more.
const SHOWN: usize = 8;
const CHARS_MAX: usize = 40;
const CELLS_MAX: usize = 120;

/// Arguments of a tool or a prompt, the address of a resource; of anything else nothing.
pub(super) fn of(message: &Message) -> String {
    let (MessageKind::Request, Some(raw)) = (message.kind, &message.raw) else { return String::new() };
    let Ok(document) = Document::parse(raw.get()) else { return String::new() };
    let Some(params) = document.member(0, "params") else { return String::new() };
    let value = |node| document.preview(node, CHARS_MAX).into_iter().map(|span| span.text).collect::<String>();
    let shown = match (document.member(params, "arguments"), document.member(params, "uri")) {
        (Some(arguments), _) => document
            .children(arguments)
            .take(SHOWN)
            .map(|argument| format!("{}={}", text::clean(&document.key(argument).unwrap_or_default()), value(argument)))
            .collect::<Vec<_>>()
            .join(" "),
        (None, Some(uri)) => value(uri),
        (None, None) => String::new(),
    };
    text::fit(&shown, CELLS_MAX, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HOSTILE, call, message};

    #[track_caller]
    fn check(message: &Message, expected: &str) {
        assert_eq!(of(message), expected);
    }

    #[test]
    fn arguments_in_a_few_words() {
        check(&call(1, "add", r#"{"a":2,"b":40.50}"#), "a=2 b=40.50");
        check(
            &call(1, "write", r#"{"path":"/tmp/x","lines":[1,2],"new":true}"#),
            r#"path="/tmp/x" lines=[2 items, 5 B] new=true"#,
        );
        check(&call(1, "chatter", "{}"), "");
        check(&call(1, "odd", r#""text""#), "");
        let read =
            |params| message(1, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{params}}}"#));
        check(&read(r#"{"uri":"file:///etc/hosts"}"#), r#""file:///etc/hosts""#);
        check(&read("[]"), "");
        check(&message(2, r#"{"jsonrpc":"2.0","id":1,"result":{"params":{"uri":"x"}}}"#), "");
    }

    #[test]
    fn long_and_hostile_arguments_are_cut_and_clean() {
        let many = (0..100).map(|at| format!("\"{at}\":{at}")).collect::<Vec<_>>().join(",");
        let shown = of(&call(1, "add", &format!("{{{many}}}")));
        assert!(shown.starts_with("0=0 1=1 ") && shown.ends_with("7=7"), "{shown}");
        let hostile = serde_json::json!({ HOSTILE: HOSTILE, "b": HOSTILE }).to_string();
        let shown = of(&call(1, HOSTILE, &hostile));
        assert_eq!(text::clean(&shown), shown);
        assert!(text::width(&shown) <= CELLS_MAX);
    }
}
