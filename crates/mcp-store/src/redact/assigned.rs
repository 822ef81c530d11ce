//! Secrets that text gives a name: `password=…`, `"api_key": "…"`, `--token …`, `Authorization: …`,
//! `<secret>…</secret>`, `?token=…`. Whether the name is one of a secret is for [`names`] to say.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

use super::Hidden;
use super::known::is_unlike_words;
use super::names;

/// Every name that can be one of a secret has one of these in it.
static KEYWORD: LazyLock<Regex> = LazyLock::new(|| {
    let words = "pass|pwd|secret|token|[_-]?key|credential|authorization|cookie|jwt|bearer|otp|auth|sig\
                 |session|sid|code|mnemonic|seed_?phrase|verif|assertion|recovery|backup_?code|cvv|cvc|card_?number";
    RegexBuilder::new(words).unicode(false).case_insensitive(true).build().expect("these are words")
});
/// Bytes before and after a keyword that may belong to the same name.
const NAME_MAX: usize = 64;
/// Blanks around an equals sign or a colon.
const BLANKS_MAX: usize = 4;

pub(super) fn find(text: &[u8], hidden: &mut Vec<Hidden>) {
    let mut at = 0;
    while let Some(keyword) = KEYWORD.find_at(text, at) {
        at = keyword.end();
        let name = name_around(text, keyword.range());
        // The same name is not looked at twice, nor any keyword inside a value.
        at = at.max(name.end);
        let Some((value, is_secret)) = value_of(text, &name) else { continue };
        // A long one is not looked into again: a line could be nothing but names.
        if is_secret || value.len() > NAME_MAX {
            at = at.max(value.end);
        }
        if is_secret {
            hidden.push(Hidden::named(value));
        }
    }
}

fn name_around(text: &[u8], keyword: Range<usize>) -> Range<usize> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let before = text[..keyword.start].iter().rev().take(NAME_MAX).take_while(|byte| is_part(byte)).count();
    let after = text[keyword.end..].iter().take(NAME_MAX).take_while(|byte| is_part(byte)).count();
    keyword.start - before..keyword.end + after
}

/// What stands after the name of a secret, if that is a value, and whether it looks like a secret.
fn value_of(text: &[u8], name: &Range<usize>) -> Option<(Range<usize>, bool)> {
    let spelled = std::str::from_utf8(&text[name.clone()]).ok()?;
    let plain_name = spelled.trim_start_matches('-');
    let is_parameter =
        name.start > 0 && matches!(text[name.start - 1], b'?' | b'&') && text.get(name.end) == Some(&b'=');
    let is_secret = names::is_secret(plain_name)
        || names::is_secret_header(plain_name)
        || (is_parameter && names::is_secret_parameter(plain_name));
    if !is_secret {
        return None;
    }
    let mut reader = Reader { text, at: name.end };
    let is_tag = name.start > 0 && text[name.start - 1] == b'<' && reader.takes(b">");
    if is_tag {
        let value = reader.until(|byte| byte == b'<')?;
        let is_secret = is_filled_in(&text[value.clone()]);
        return Some((value, is_secret));
    }
    let name_is_quoted = reader.quote().is_some();
    let is_flag = spelled.starts_with("--");
    let blanks = reader.blanks();
    let separator = reader.separator();
    if separator.is_none() && !(is_flag && blanks == 1) {
        return None;
    }
    let blanks_around = blanks + reader.blanks();
    let value = match reader.quote() {
        Some(quote) => reader.until_quote(&quote)?,
        None if takes_the_line(plain_name) && separator == Some(b':') => {
            reader.until(|byte| b"\r\n\"'\\".contains(&byte))?
        }
        None => reader.until(|byte| byte.is_ascii_whitespace() || b"\"'`,;&<>(){}[]\\|#".contains(&byte))?,
    };
    let is_quoted = value.start > 0 && is_quote(text[value.start - 1]);
    let value = value.start + after_scheme(&text[value.clone()])..value.end;
    let bytes = &text[value.clone()];
    if !is_filled_in(bytes) || names::is_directory(plain_name, bytes) {
        return Some((value, false));
    }
    // `token: string` and `password = input` are code or prose. Without blanks, in quotes or after a
    // flag it is a value, unless it is called like a function.
    let is_certain = is_quoted || name_is_quoted || is_flag || (separator == Some(b'=') && blanks_around == 0);
    let is_number = bytes.len() >= 6 && bytes.iter().all(u8::is_ascii_digit);
    let is_call = matches!(text.get(value.end), Some(b'(' | b'[' | b'{')) && !is_quoted;
    let is_path = !is_quoted && bytes.contains(&b'.') && !bytes.iter().any(u8::is_ascii_digit);
    let is_one = if is_certain {
        !is_call && !is_path
    } else {
        is_unlike_words(bytes) || is_number || takes_the_line(plain_name)
    };
    Some((value, is_one))
}

/// Headers whose value goes on to the end of the line.
fn takes_the_line(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("authorization") || name.ends_with("cookie")
}

/// Where the proof begins in `Bearer abc`; only that is secret.
pub(super) fn after_scheme(value: &[u8]) -> usize {
    const SCHEMES: [&str; 8] =
        ["bearer", "basic", "digest", "token", "negotiate", "apikey", "aws4-hmac-sha256", "dpop"];
    match value.iter().position(|&byte| byte == b' ') {
        Some(blank) if SCHEMES.iter().any(|scheme| value[..blank].eq_ignore_ascii_case(scheme.as_bytes())) => blank + 1,
        _ => 0,
    }
}

/// Not a place for a secret: a variable, a template, a word for nothing, or one that is masked already.
fn is_filled_in(value: &[u8]) -> bool {
    const NOTHING: [&str; 12] = [
        "null",
        "none",
        "nil",
        "true",
        "false",
        "undefined",
        "string",
        "str",
        "required",
        "optional",
        "redacted",
        "masked",
    ];
    let is_template =
        value.starts_with(b"$") || value.starts_with(b"<") || value.starts_with(b"{") || value.starts_with(b"%");
    let is_blotted = value.iter().all(|byte| b"*x.\xe2\x80\xa2\xa6 ".contains(byte));
    let is_nothing = NOTHING.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()));
    !(value.is_empty() || is_template || is_blotted || is_nothing)
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    fn takes(&mut self, what: &[u8]) -> bool {
        let is_there = self.rest().starts_with(what);
        self.at += if is_there { what.len() } else { 0 };
        is_there
    }

    fn blanks(&mut self) -> usize {
        let count = self.rest().iter().take(BLANKS_MAX).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        self.at += count;
        count
    }

    /// `=`, `:`, `=>` or `:=`
    fn separator(&mut self) -> Option<u8> {
        for (spelling, meaning) in [(&b"=>"[..], b'='), (b":=", b'='), (b"=", b'='), (b":", b':')] {
            if self.takes(spelling) {
                return Some(meaning);
            }
        }
        None
    }

    /// A quote, with the backslashes before it where quoted text is quoted again.
    fn quote(&mut self) -> Option<Vec<u8>> {
        let slashes = self.rest().iter().take(BLANKS_MAX).take_while(|&&byte| byte == b'\\').count();
        let quote = *self.rest().get(slashes).filter(|&&byte| is_quote(byte))?;
        let spelled = [&b"\\".repeat(slashes)[..], &[quote]].concat();
        self.at += spelled.len();
        Some(spelled)
    }

    fn until(&mut self, is_end: impl Fn(u8) -> bool) -> Option<Range<usize>> {
        let length = self.rest().iter().position(|&byte| is_end(byte)).unwrap_or(self.rest().len());
        (length > 0).then(|| self.at..self.at + length)
    }

    fn until_quote(&mut self, quote: &[u8]) -> Option<Range<usize>> {
        let rest = self.rest();
        let line = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        let length = rest[..line].windows(quote.len()).position(|window| window == quote).unwrap_or(line);
        (length > 0).then(|| self.at..self.at + length)
    }
}
