//! The plain form of an address: what is left when everything is undone that servers and file
//! systems undo themselves.

use std::borrow::Cow;

/// `uri` percent-decoded (however often it was encoded), without dot segments, doubled slashes and
/// fragment, its scheme and host in lower case, `\` as `/`. A file's address has neither query nor
/// the host `localhost`. Borrowed where nothing changes.
///
/// The form loses what some servers tell apart, so a pattern should be tried on the address as it
/// came as well.
pub fn plain_uri(uri: &str) -> Cow<'_, str> {
    if is_plain(uri) {
        return Cow::Borrowed(uri);
    }
    let plain = Parts::of(uri).joined();
    if plain == uri { Cow::Borrowed(uri) } else { Cow::Owned(plain) }
}

/// `text` percent-decoded, however often it was encoded; `None` where nothing changes.
pub fn unescaped(text: &str) -> Option<String> {
    text.contains('%').then(|| decoded(text)).filter(|plain| plain != text)
}

/// A quick look that recognises most addresses.
fn is_plain(uri: &str) -> bool {
    let (scheme, rest) = split_scheme(uri);
    let Some(rest) = rest.strip_prefix("//").filter(|rest| scheme != "file" || rest.starts_with('/')) else {
        return false;
    };
    let is_quiet = |byte: &u8| !matches!(byte, b'%' | b'\\' | b'#' | b'?' | b'A'..=b'Z' | 0..=b' ' | 0x7f..);
    !scheme.is_empty() && uri.as_bytes().iter().all(is_quiet) && !rest.contains("//") && !rest.contains("/.")
}

struct Parts {
    scheme: String,
    /// What stands between `//` and the path.
    host: Option<String>,
    path: String,
    query: String,
}

impl Parts {
    fn of(uri: &str) -> Self {
        let uri = uri.trim();
        // Query and fragment begin where the address says so itself, not where an encoded sign does.
        let (uri, _fragment) = uri.split_once('#').unwrap_or((uri, ""));
        let (uri, query) = uri.split_once('?').unwrap_or((uri, ""));
        let (scheme, rest) = split_scheme(uri);
        let rest = decoded(rest).replace('\\', "/");
        let (host, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let end = rest.find('/').unwrap_or(rest.len());
                (Some(rest[..end].to_lowercase()), &rest[end..])
            }
            None => (None, &*rest),
        };
        Self { scheme: scheme.to_ascii_lowercase(), host, path: without_dots(path), query: decoded(query) }
    }

    fn joined(mut self) -> String {
        if self.scheme == "file" {
            self.query.clear();
            let host = self.host.take().unwrap_or_default();
            self.host = Some(if host == "localhost" { String::new() } else { host });
        }
        let mut uri = self.scheme;
        if !uri.is_empty() {
            uri.push(':');
        }
        if let Some(host) = self.host {
            uri.push_str("//");
            uri.push_str(&host);
        }
        uri.push_str(&self.path);
        if !self.query.is_empty() {
            uri.push('?');
            uri.push_str(&self.query);
        }
        uri
    }
}

fn split_scheme(uri: &str) -> (&str, &str) {
    // A pattern may leave it open.
    let is_scheme = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '*')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'*'))
    };
    uri.split_once(':').filter(|(scheme, _)| is_scheme(scheme)).unwrap_or(("", uri))
}

/// Decodes until nothing is left to decode, in one pass: what was decoded last may complete an
/// escape with what follows.
fn decoded(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        plain.push(byte);
        while let Some(byte) = escape_at_end(&plain) {
            plain.truncate(plain.len() - 3);
            plain.push(byte);
        }
    }
    String::from_utf8(plain).unwrap_or_else(|wrong| String::from_utf8_lossy(wrong.as_bytes()).into_owned())
}

fn escape_at_end(text: &[u8]) -> Option<u8> {
    let [.., b'%', high, low] = text else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

/// The path without `.`, `..` and empty segments; a slash at its end stays.
fn without_dots(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let mut plain = String::with_capacity(path.len());
    if path.starts_with('/') {
        plain.push('/');
    }
    plain.push_str(&segments.join("/"));
    let is_directory = matches!(path.rsplit('/').next(), Some("" | "." | ".."));
    if is_directory && !segments.is_empty() {
        plain.push('/');
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(uri: &str, expected: &str) {
        assert_eq!(plain_uri(uri), expected, "{uri}");
    }

    #[test]
    fn spellings_of_an_address_have_one_form() {
        for uri in [
            "file:///etc/passwd",
            "FILE:///etc/passwd",
            "file:/etc/passwd",
            "file://localhost/etc/passwd",
            "file://LOCALHOST/etc/passwd",
            "file:////etc//passwd",
            "file:///etc/./passwd",
            "file:///tmp/../etc/passwd",
            "file:///../../etc/passwd",
            "file:///etc/%70asswd",
            "file:///etc%2fpasswd",
            "file:///etc%252Fpasswd",
            "file:///tmp/%2e%2e/etc/passwd",
            "file:///tmp/.%252e/etc/passwd",
            "file:///tmp\\..\\etc\\passwd",
            "file:///tmp/%5c../etc/passwd",
            "file:///etc/passwd#part",
            "file:///etc/passwd?x=1",
            " file:///etc/passwd ",
        ] {
            check(uri, "file:///etc/passwd");
        }
        check("https://Example.COM/A/b?q=%41", "https://example.com/A/b?q=A");
        check("note://Inbox/%31", "note://inbox/1");
        check("file:///etc/", "file:///etc/");
        check("file:///etc/x/..", "file:///etc/");
        check("../a", "a");
        check("", "");
        check("%", "%");
        check("%4", "%4");
        check("mem:a/../b", "mem:b");
        check("note://%ff", "note://\u{fffd}");
    }

    #[test]
    fn escapes_are_undone_however_deep() {
        assert_eq!(unescaped("danger%5Fdelete").as_deref(), Some("danger_delete"));
        assert_eq!(unescaped("danger%255fdelete").as_deref(), Some("danger_delete"));
        for plain in ["delete_repo", "100%", "a%zz", ""] {
            assert_eq!(unescaped(plain), None, "{plain}");
        }
    }

    #[test]
    fn patterns_stay_patterns() {
        for pattern in ["*://secret/*", "file:///etc/*", "file://*", "note://*/a*b", "*/secret/*", "note*"] {
            check(pattern, pattern);
        }
    }

    #[test]
    fn encoding_over_and_over_takes_one_pass() {
        let uri = format!("note://%{}41", "25".repeat(100_000));
        check(&uri, "note://a");
    }

    #[test]
    fn ordinary_addresses_are_borrowed() {
        for uri in ["note://inbox/1", "https://example.com/a/b", "file:///etc/passwd", "ui://x/y.html"] {
            assert!(matches!(plain_uri(uri), Cow::Borrowed(_)), "{uri}");
        }
    }

    proptest! {
        #[test]
        fn a_quick_look_is_never_wrong(uri in "[a-zA-Z:/.%?#0-9\\\\]{0,24}") {
            if is_plain(&uri) {
                prop_assert_eq!(Parts::of(&uri).joined(), uri);
            }
        }

        #[test]
        fn an_escape_changes_nothing(path in "[a-z./]{0,16}", at in 0usize..16) {
            let uri = format!("note://host/{path}");
            let at = "note://host/".len() + at % (path.len() + 1);
            prop_assume!(at < uri.len());
            let escaped = format!("{}%{:02x}{}", &uri[..at], uri.as_bytes()[at], &uri[at + 1..]);
            prop_assert_eq!(plain_uri(&escaped), plain_uri(&uri));
        }
    }
}
