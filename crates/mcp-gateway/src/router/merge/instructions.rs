//! What servers want models to know, under a heading for each.

use mcp_wire::scan;

use super::Part;

/// Bytes of one server's instructions: models read and pay for every word, of all servers, in every conversation.
const PART_BYTES_MAX: usize = 16 * 1024;
/// Bytes of all instructions together.
const BYTES_MAX: usize = 64 * 1024;

/// What the servers say, in the order of the configuration, after what is said in the name of all.
pub fn instructions(parts: &[Part<'_>], own: Option<&str>) -> Option<String> {
    let mut text = own.map(str::trim).unwrap_or_default().to_owned();
    for part in parts {
        let said = scan::member_at(part.answer, ["result", "instructions"]);
        let said = said.and_then(|span| scan::decode_string(&part.answer[span.range()]));
        let Some(said) = said.as_deref().map(str::trim).filter(|said| !said.is_empty()) else { continue };
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&format!("## {}\n\n", part.id));
        text.push_str(&cut(said, PART_BYTES_MAX));
    }
    (!text.is_empty()).then(|| cut(&text, BYTES_MAX))
}

fn cut(text: &str, bytes_max: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max - MARK.len());
    format!("{}{MARK}", &text[..end])
}
