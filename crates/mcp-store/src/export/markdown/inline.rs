//! Text of peers inside Markdown. It only ever stands in code, where nothing in it is a tag, a link, an
//! image or a heading, behind a fence that it does not hold itself.

use mcp_wire::visible::{visible, visible_lines};

/// Characters of a text within a line of a report.
const SHOWN: usize = 160;

/// Text in a line, as code.
pub(super) fn code(text: &str) -> String {
    let shown = visible(text).to_string();
    let mut shown = match shown.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    };
    if shown.trim().is_empty() {
        shown = "␠".into();
    }
    let fence = "`".repeat(longest_run(&shown) + 1);
    let is_edgy = shown.starts_with(['`', ' ']) || shown.ends_with(['`', ' ']);
    let pad = if is_edgy { " " } else { "" };
    format!("{fence}{pad}{shown}{pad}{fence}")
}

/// The same in a cell of a table, which a bar would end even inside code.
pub(super) fn code_cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// Text over several lines.
pub(super) fn block(language: &str, text: &str) -> String {
    let shown = visible_lines(text).to_string();
    let fence = "`".repeat((longest_run(&shown) + 1).max(3));
    format!("{fence}{language}\n{shown}\n{fence}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// A duration as people say it.
pub(super) fn duration(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} µs", ns / 1_000),
        1_000_000..10_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        10_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_gets_out_of_its_code() {
        assert_eq!(code("plain"), "`plain`");
        assert_eq!(code("a`b``c"), "```a`b``c```");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code("a\n# b\x1b"), "`a␊# b␛`");
        assert_eq!(code(""), "`␠`");
        assert_eq!(code_cell("a|b`"), "`` a\\|b` ``");
        assert_eq!(block("json", "x\n```\n# out"), "````json\nx\n```\n# out\n````");
        assert_eq!(block("", "`".repeat(5).as_str()).lines().next().map(str::len), Some(6));
        assert!(code(&"x".repeat(1000)).len() < 200);
    }
}
