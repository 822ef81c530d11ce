//! Whether bytes that reached a server have a denied call in them, to any reader that a server could be:
//! one that cuts lines where others do not, takes the first of two keys or the last, ignores case, stops
//! at a NUL, or mends what is broken.

use mcp_wire::checks::{Document, Reader};
use mcp_wire::fold::{plain_uri, skeleton};

/// What rules deny.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// Deletes alone, as the rules file of a single service says.
    Deletes,
    /// Tools, arguments, prompts and resources as well.
    More,
}

/// Every denied call that a reader could find.
pub fn denied_calls(received: &[u8], denied: Denied) -> Vec<String> {
    let mut found = Vec::new();
    for text in texts(received) {
        for separators in SEPARATORS {
            for piece in text.split(|c| separators.contains(&c)) {
                for document in documents(piece) {
                    find(&document, denied, &mut found);
                }
            }
        }
    }
    found
}

/// Where readers of lines cut.
const SEPARATORS: [&[char]; 4] = [
    &[],
    &['\n'],
    &['\n', '\r'],
    &['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\0', '\u{85}', '\u{2028}', '\u{2029}'],
];

/// The bytes as text: as it is, with what is broken replaced or left out, and in twos.
fn texts(received: &[u8]) -> Vec<String> {
    let lossy = String::from_utf8_lossy(received).into_owned();
    let left_out = lossy.replace('\u{fffd}', "");
    let in_twos = |read: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = received.chunks_exact(2).map(|two| read([two[0], two[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    let mut texts = vec![lossy];
    if texts[0] != left_out {
        texts.push(left_out);
    }
    if received.contains(&0) {
        texts.extend([in_twos(u16::from_le_bytes), in_twos(u16::from_be_bytes)]);
    }
    texts
}

/// The documents that stand in a piece, one after the other; what is no document between them is passed
/// over.
fn documents(piece: &str) -> Vec<Document> {
    let mut documents = Vec::new();
    let mut rest = piece;
    while let Some(at) = rest.find(['{', '[']) {
        rest = &rest[at..];
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Document>();
        match stream.next() {
            Some(Ok(document)) => {
                documents.push(document);
                rest = &rest[stream.byte_offset()..];
            }
            _ => match mended(rest) {
                Some(document) => {
                    documents.push(document);
                    break;
                }
                // Whoever looks for the next message finds it after a line or a header at best.
                None => rest = &rest[1..],
            },
        }
    }
    documents
}

/// What a reader makes of text that is nearly JSON.
fn mended(text: &str) -> Option<Document> {
    /// Nobody mends more than that, and trying is slow.
    const LONGEST: usize = 4_096;
    if text.len() > LONGEST {
        return None;
    }
    let without_comments = text.split("//").next()?.replace("/**/", "");
    let without_commas = without_comments.replace(",}", "}").replace(",]", "]");
    let quoted = without_commas.replace('\'', "\"");
    let ended = format!("{}}}", text.trim_end());
    [without_comments, without_commas, quoted, ended].iter().find_map(|text| Document::parse(text.as_bytes()))
}

fn find(document: &Document, denied: Denied, found: &mut Vec<String>) {
    match document {
        Document::List(items) => items.iter().for_each(|item| find(item, denied, found)),
        Document::Object(_) => {
            for reader in Reader::ALL {
                if let Some(what) = what_is_denied(document, reader, denied) {
                    found.push(format!("{reader:?} reads {what}"));
                }
            }
        }
        _ => {}
    }
}

fn what_is_denied(document: &Document, reader: Reader, denied: Denied) -> Option<String> {
    let get = |path: &[&str]| reader.get(document, path);
    let text = |path: &[&str]| get(path).and_then(text);
    let method = skeleton(&text(&["method"])?).into_owned();
    let name = text(&["params", "name"]).map(|name| skeleton(&plain_uri(&name)).into_owned());
    let is_secret = |uri: &str| plain_uri(uri).starts_with("file:///secret");
    let is_denied = match &*method {
        "tools/call" if name.as_deref() == Some("delete_repo") => true,
        _ if denied == Denied::Deletes => false,
        "tools/call" => {
            name.as_deref() == Some("shutdown_host")
                || text(&["params", "arguments", "path"]).is_some_and(|path| path.starts_with("/etc"))
        }
        "prompts/get" => name.as_deref() == Some("secret_prompt"),
        "resources/read" | "resources/subscribe" => text(&["params", "uri"]).is_some_and(|uri| is_secret(&uri)),
        "completion/complete" => {
            text(&["params", "ref", "name"]).is_some_and(|name| skeleton(&name) == "secret_prompt")
                || text(&["params", "ref", "uri"]).is_some_and(|uri| is_secret(&uri))
        }
        "subscriptions/listen" => match get(&["params", "notifications", "resourceSubscriptions"]) {
            Some(Document::List(uris)) => uris.into_iter().filter_map(self::text).any(|uri| is_secret(&uri)),
            _ => false,
        },
        _ => false,
    };
    is_denied.then(|| format!("{method} {}", name.unwrap_or_default()))
}

/// What a text is to a reader that makes one of whatever it gets.
fn text(document: Document) -> Option<String> {
    match document {
        Document::Text(text) => Some(text),
        Document::List(mut items) if items.len() == 1 => text(items.remove(0)),
        _ => None,
    }
}

#[test]
fn readers_find_what_is_there() {
    let finds = |text: &str| !denied_calls(text.as_bytes(), Denied::More).is_empty();
    let denied = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete_repo"}}"#;
    let harmless = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"x":1}}}"#;
    assert!(finds(denied) && !finds(harmless));
    for text in [
        format!("{harmless}{denied}"),
        format!("{harmless}\r{denied}"),
        format!("Content-Length: 5\r\n\r\n{denied}"),
        format!("[{harmless},[{denied}]]"),
        harmless.replace("\"echo\"", "\"echo\",\"Name\":\"delete_repo\""),
        harmless.replace("\"echo\"", "\"delete_repo\",\"name\":\"echo\""),
        harmless.replace("\"echo\"", "\"delete_repo\\u0000x\""),
        harmless.replace("\"echo\"", "[\"delete_repo\"]"),
        harmless.replace("\"x\":1", &format!("\"x\":\r{denied}\r")),
        harmless.replace("\"x\":1", "\"path\":\"/etc/passwd\""),
        denied.replace('"', "'"),
        format!("{denied},"),
    ] {
        assert!(finds(&text), "{text}");
    }
    let utf16: Vec<u8> = denied.encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert!(!denied_calls(&utf16, Denied::Deletes).is_empty());
}
