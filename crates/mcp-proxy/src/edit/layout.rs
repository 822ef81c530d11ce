//! A message over several lines for a person to edit: every number and string as it was spelled, whole.

use mcp_wire::{Kind, Message};

/// Deeper than this, more blanks help nobody, and a hostile message could ask for gigabytes.
const INDENT_MAX: usize = 64;

/// JSON over several lines. What is not JSON stays as it is.
pub fn indented(raw: &bytes::Bytes) -> String {
    let text = String::from_utf8_lossy(raw);
    if Message::new(raw.clone()).kind() == Kind::NotJson {
        return text.into_owned();
    }
    let mut out = String::with_capacity(raw.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    let is_blank = |c: &char| matches!(c, ' ' | '\n' | '\r' | '\t');
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if in_string {
            out.push(c);
            (in_string, escaped) = (escaped || c != '"', !escaped && c == '\\');
            continue;
        }
        match c {
            c if is_blank(&c) => {}
            '{' | '[' => {
                out.push(c);
                while chars.next_if(is_blank).is_some() {}
                match chars.next_if(|next| matches!(next, '}' | ']')) {
                    Some(close) => out.push(close),
                    None => {
                        depth += 1;
                        new_line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c => {
                in_string = c == '"';
                out.push(c);
            }
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth.min(INDENT_MAX)));
}

#[cfg(test)]
mod tests {
    use super::indented;

    #[test]
    fn messages_keep_their_spelling() {
        let shown = indented(&br#"{ "a":1e400,"b" : [ ],"c":[1,{"d":"x, {y} \" \u0000"}] }"#.as_slice().into());
        let expected = "{\n  \"a\": 1e400,\n  \"b\": [],\n  \"c\": [\n    1,\n    {\n      \"d\": \"x, {y} \\\" \\u0000\"\n    }\n  ]\n}";
        assert_eq!(shown, expected);
        assert_eq!(indented(&"not json {".into()), "not json {");
    }
}
