//! What a message says, over several lines, with every number and string as it was spelled. Long
//! strings are folded, hostile ones inert, and neither depth nor length of a message can flood.

use mcp_store::{Direction, Recorded};
use mcp_wire::layout::{Token, Tokens, indent};
use mcp_wire::visible::{visible, visible_bytes, visible_lines};
use mcp_wire::{Kind, Message};

use super::hold;
use crate::failure::Failure;
use crate::report::{self, Page, Style};

/// Bytes shown of one string or number: a few lines of a terminal.
const STRING_SHOWN: usize = 512;
/// Bytes shown of a payload that is not JSON.
const TEXT_SHOWN: usize = 16 * 1024;
/// Lines shown of one message: a hostile one has millions.
const LINES_SHOWN: usize = 10_000;

/// Prints when a message came and how large it is, what stands `beside` it, and the message.
pub(crate) fn print(page: &mut Page, recorded: &Recorded, beside: &[String]) -> Result<(), Failure> {
    let is_message = recorded.event.is_none();
    let side = match recorded.direction {
        Direction::ClientToServer => "client to server",
        Direction::ServerToClient => "server to client",
    };
    if is_message {
        let line = format!("    {:.3} {side}, {} bytes", recorded.timestamp(), recorded.raw.len());
        page.line(&page.styled(Style::Faint, &line))?;
    }
    for line in beside {
        page.line(line)?;
    }
    for line in hold::details(page, recorded) {
        page.line(&line)?;
    }
    if let Some(original) = &recorded.original_raw {
        page.line(&page.styled(Style::Faint, &format!("    it came as, {} bytes", original.len())))?;
        print_body(page, original)?;
        page.line(&page.styled(Style::Faint, "    and went on as"))?;
    }
    if is_message {
        print_body(page, &recorded.raw)?;
    }
    Ok(())
}

fn print_body(page: &mut Page, raw: &bytes::Bytes) -> Result<(), Failure> {
    let lines = if Message::new(raw.clone()).kind() == Kind::NotJson { text(raw) } else { indented(page, raw) };
    for line in lines {
        page.line(&format!("    {line}"))?;
    }
    Ok(())
}

/// What is not JSON, as it is.
fn text(raw: &[u8]) -> Vec<String> {
    let shown = String::from_utf8_lossy(&raw[..raw.len().min(TEXT_SHOWN)]);
    let mut lines: Vec<String> = visible_lines(&shown).to_string().lines().map(str::to_owned).collect();
    if raw.len() > TEXT_SHOWN {
        lines.push(format!("… {} in all", report::size(raw.len() as u64)));
    }
    lines
}

/// JSON over several lines. `raw` is JSON; if it were not, something would be shown all the same.
fn indented(page: &Page, raw: &[u8]) -> Vec<String> {
    let (mut line, mut lines, mut tokens) = (String::new(), Vec::new(), Tokens::new(raw));
    while lines.len() < LINES_SHOWN
        && let Some(token) = tokens.next()
    {
        match token {
            Token::Key(text) => push_word(&mut line, page, text, Style::Key),
            Token::Text(text) => push_word(&mut line, page, text, Style::Text),
            Token::Word(text) => push_word(&mut line, page, text, Style::Number),
            Token::Mark(mark) => line.push_str(mark),
            Token::Before(mark, depth) => {
                line.push(mark);
                lines.push(std::mem::replace(&mut line, indent(depth).collect()));
            }
            Token::After(mark, depth) => {
                lines.push(std::mem::replace(&mut line, indent(depth).collect()));
                line.push(mark);
            }
        }
    }
    lines.extend(Some(line).filter(|line| !line.trim().is_empty()));
    if !tokens.rest().trim_ascii().is_empty() {
        lines.push(format!("… {} more", report::size(tokens.rest().len() as u64)));
    }
    lines
}

/// Adds a string, number or word, folded if it is long.
fn push_word(line: &mut String, page: &Page, word: &[u8], style: Style) {
    if word.len() <= STRING_SHOWN {
        line.push_str(&page.styled(style, &visible_bytes(word)));
        return;
    }
    // Cut between two characters; the text shown need not have all of an escape.
    let shown = String::from_utf8_lossy(&word[..STRING_SHOWN]);
    let shown = shown.trim_end_matches('\u{fffd}');
    let quote = if word[0] == b'"' { "\"" } else { "" };
    line.push_str(&page.styled(style, &format!("{}…{quote}", visible(shown))));
    line.push_str(&page.styled(Style::Faint, &format!(" ({})", report::size(word.len() as u64))));
}

#[cfg(test)]
mod tests {
    use mcp_wire::layout::INDENT_MAX;

    use super::*;
    use crate::report::ColorChoice;

    fn shown(raw: &[u8]) -> String {
        indented(&Page::new(ColorChoice::Never), raw).join("\n")
    }

    #[test]
    fn payloads_keep_their_spelling() {
        let shown = shown(br#"{ "a":1e400,"b" : [ ],"c":[1,{"d":"x, {y} \" \u0000"}] }"#);
        let expected = "{\n  \"a\": 1e400,\n  \"b\": [],\n  \"c\": [\n    1,\n    {\n      \"d\": \"x, {y} \\\" \\u0000\"\n    }\n  ]\n}";
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_huge_is_folded() {
        let long = "é".repeat(5 << 20);
        let string = shown(format!("{{\"a\":\"{long}\"}}").as_bytes());
        assert_eq!(string.lines().nth(1), Some(&*format!("  \"a\": \"{}…\" (10.0 MB)", "é".repeat(255))));
        let key = shown(format!("{{\"{long}\":1}}").as_bytes());
        assert!(key.len() < 2 * STRING_SHOWN && key.contains("…\" (10.0 MB): 1"), "{key}");
        let number = shown("1".repeat(10_000).as_bytes());
        assert!(number.ends_with("1… (9.8 KB)"), "{number}");
        let list = shown(format!("[{}1]", "1,".repeat(1 << 20)).as_bytes());
        assert_eq!(list.lines().count(), LINES_SHOWN + 1);
        assert!(list.ends_with("… 2.0 MB more"), "{}", &list[list.len() - 40..]);
        let deep = shown(format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)).as_bytes());
        assert!(deep.len() < 10_000 * 3 * INDENT_MAX);
        let text = text("x\n".repeat(1 << 20).as_bytes());
        assert_eq!(text.last().map(String::as_str), Some("… 2.0 MB in all"));
        assert_eq!(text.len(), TEXT_SHOWN / 2 + 1);
    }

    #[test]
    fn hostile_text_is_inert() {
        let shown = shown("{\"\u{202e}k\":\"\u{7f}\u{9b}31m\u{e0041}\",\"x\":\"\x1b]0;t\x07\"}".as_bytes());
        assert!(!shown.contains(['\u{202e}', '\u{7f}', '\u{9b}', '\u{e0041}', '\x1b', '\x07']), "{shown}");
    }

    #[test]
    fn colour_marks_what_is_what() {
        let page = Page::new(ColorChoice::Always);
        let line = indented(&page, br#"{"k":["s",1,null]}"#).join("");
        let plain: String =
            line.split('\x1b').map(|part| part.split_once('m').map_or(part, |(_, text)| text)).collect();
        assert_eq!(plain, r#"{  "k": [    "s",    1,    null  ]}"#);
        assert!(line.contains("\x1b[36m\"k\"\x1b[0m") && line.contains("\x1b[32m\"s\"\x1b[0m"), "{line:?}");
    }
}
