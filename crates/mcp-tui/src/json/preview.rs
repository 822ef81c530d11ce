//! A value on one line. Strings are shown as they are spelled, a long one by its start and its size, and
//! one that carries a file by what it carries.

use super::{Document, Kind, NodeId, Shape, Span};
use crate::text::{clean, fit, human_size};

/// Keys that the protocol gives to files in base64.
const BLOB_KEYS: [&str; 2] = ["data", "blob"];
/// Shorter base64 may as well be read.
const BLOB_BYTES_MIN: usize = 256;
/// Bytes of a string that are examined to tell its type.
const LOOKED_AT: usize = 4096;
/// Members of an object that are asked for the type of a file beside them.
const SIBLINGS_MAX: usize = 32;
/// Keys named of a folded object, and cells of each: one line.
const KEYS_SHOWN: usize = 6;
const KEY_CELLS_MAX: usize = 40;

pub(super) fn spans(document: &Document, node: NodeId, chars_max: usize) -> Vec<Span> {
    let source = document.source(node);
    match document.shape(node) {
        Shape::String => string(document, node, source, chars_max),
        Shape::Number => vec![cut(Kind::Number, source, chars_max)],
        Shape::Bool => vec![Span::new(Kind::Bool, source)],
        Shape::Null => vec![Span::new(Kind::Null, source)],
        Shape::Object => object(document, node),
        Shape::Array => array(document, node),
        Shape::Rest => {
            let size = human_size(source.len() as u64);
            vec![Span::new(Kind::Fault, format!("… {size} more, too large to fold"))]
        }
    }
}

fn string(document: &Document, node: NodeId, source: &str, chars_max: usize) -> Vec<Span> {
    if let Some(what) = blob(document, node, source) {
        return vec![Span::new(Kind::Plain, what)];
    }
    let is_json = looks_like_json(source);
    let shown = cut(Kind::String, source, chars_max);
    let mut spans = vec![shown];
    if start(source, chars_max).len() < source.len() {
        spans.push(Span::new(Kind::Plain, format!(" {}", human_size(source.len() as u64 - 2))));
    }
    if is_json {
        spans.push(Span::new(Kind::Plain, " (json)"));
    }
    spans
}

fn cut(kind: Kind, source: &str, chars_max: usize) -> Span {
    let shown = start(source, chars_max);
    let mut text = clean(shown).into_owned();
    if shown.len() < source.len() {
        text.push('…');
    }
    Span { kind, text }
}

fn start(source: &str, chars_max: usize) -> &str {
    source.char_indices().nth(chars_max).map_or(source, |(at, _)| &source[..at])
}

fn object(document: &Document, node: NodeId) -> Vec<Span> {
    let mut spans = vec![Span::new(Kind::Punct, "{")];
    for (index, child) in document.children(node).take(KEYS_SHOWN).enumerate() {
        if index > 0 {
            spans.push(Span::new(Kind::Punct, ", "));
        }
        let key = document.key_source(child).map_or("…", bare);
        spans.push(Span::new(Kind::Key, fit(key, KEY_CELLS_MAX, false)));
    }
    let more = document.children_count(node).saturating_sub(KEYS_SHOWN);
    if more > 0 {
        spans.push(Span::new(Kind::Plain, format!(", {more} more")));
    }
    spans.push(Span::new(Kind::Punct, "}"));
    spans
}

fn array(document: &Document, node: NodeId) -> Vec<Span> {
    let words = match document.children_count(node) {
        0 => return vec![Span::new(Kind::Punct, "[]")],
        1 => "1 item".to_owned(),
        count => format!("{count} items, {}", human_size(document.source(node).len() as u64)),
    };
    vec![Span::new(Kind::Punct, "["), Span::new(Kind::Plain, words), Span::new(Kind::Punct, "]")]
}

/// What a string of base64 holds, by the type beside it or by its first bytes, and how much of it.
fn blob(document: &Document, node: NodeId, source: &str) -> Option<String> {
    let key = document.key_source(node)?;
    let inner = bare(source);
    if inner.len() < BLOB_BYTES_MIN || !BLOB_KEYS.contains(&bare(key)) || !looks_like_base64(inner) {
        return None;
    }
    let padding = inner.bytes().rev().take(2).filter(|byte| *byte == b'=').count();
    let size = human_size((inner.len() / 4 * 3 + inner.len() % 4 * 3 / 4 - padding) as u64);
    let kind = beside(document, node).or_else(|| sniffed(inner).map(str::to_owned));
    Some(format!("{} {size} (base64)", kind.unwrap_or_else(|| "file".to_owned())))
}

fn beside(document: &Document, node: NodeId) -> Option<String> {
    let mut siblings = document.children(document.parent(node)?).take(SIBLINGS_MAX);
    let kind = siblings.find(|sibling| document.key_source(*sibling) == Some("\"mimeType\""))?;
    (document.shape(kind) == Shape::String).then(|| fit(bare(document.source(kind)), KEY_CELLS_MAX, false))
}

fn sniffed(base64: &str) -> Option<&'static str> {
    const STARTS: [(&str, &str); 7] = [
        ("iVBORw0KGgo", "image/png"),
        ("/9j/", "image/jpeg"),
        ("R0lGOD", "image/gif"),
        ("UklGR", "image/webp"),
        ("JVBERi", "application/pdf"),
        ("UEsDB", "application/zip"),
        ("PHN2Zy", "image/svg+xml"),
    ];
    STARTS.iter().find(|(start, _)| base64.starts_with(start)).map(|(_, kind)| *kind)
}

/// Its start and its end are of base64; all of it would be too much to look at for every drawing.
fn looks_like_base64(inner: &str) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    let bytes = inner.as_bytes();
    let (head, tail) = (&bytes[..bytes.len().min(LOOKED_AT)], &bytes[bytes.len().saturating_sub(64)..]);
    let tail = tail.strip_suffix(b"==").or_else(|| tail.strip_suffix(b"=")).unwrap_or(tail);
    let head = if head.len() == bytes.len() { &head[..head.len() - 2] } else { head };
    head.iter().all(is_digit) && tail.iter().all(is_digit)
}

/// Whether a string holds JSON that is worth opening. A short one is read, a long one judged by its ends.
fn looks_like_json(source: &str) -> bool {
    let inner = bare(source);
    let ends = |open: char, close: char| inner.starts_with(open) && inner.ends_with(close);
    if inner.len() < 2 || !(ends('{', '}') || ends('[', ']')) {
        return false;
    }
    inner.len() > LOOKED_AT
        || serde_json::from_str::<String>(source)
            .is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok())
}

/// A string without its quotes.
pub(super) fn bare(source: &str) -> &str {
    &source[1..source.len() - 1]
}
