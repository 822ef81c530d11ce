//! Tokens that come with the message itself, as `params.proxy.authToken`, from clients that can send no
//! header. They are for us alone: they are taken out before anything else sees the message.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use bytes::Bytes;
use mcp_store::redact::Redactor;
use mcp_wire::scan::{self, Word};
use mcp_wire::splice::{splice, without_member};
use mcp_wire::{Kind, Message, Span};

const PARAMS: &str = "params";
const PROXY: &str = "proxy";
const AUTH_TOKEN: &str = "authToken";

static PLAIN: LazyLock<Word> = LazyLock::new(|| Word::new(b"\"authToken\""));
/// No letter can be spelled differently without this.
static ESCAPE: LazyLock<Word> = LazyLock::new(|| Word::new(b"\\u"));

/// A token that was shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Shown<'a>(Cow<'a, str>);

impl Shown<'_> {
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown(***)")
    }
}

/// Why it cannot be told which token a message shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    #[error("`params.proxy.authToken` can be read in two ways")]
    TwoWays,
    #[error("`params.proxy.authToken` is no text")]
    NotText,
}

impl From<Unclear> for mcp_wire::reply::Refusal {
    fn from(unclear: Unclear) -> Self {
        Self::BadRequest { what: unclear.to_string() }
    }
}

/// The token that a message shows. Of a batch it is the one that all of its messages show that show any.
pub fn shown_in(message: &Message) -> Result<Option<Shown<'_>>, Unclear> {
    if !shows(message) {
        return Ok(None);
    }
    let mut shown: Option<Shown<'_>> = None;
    for item in items(message) {
        let item = message.slice(item);
        let Some(found) = find(item)? else { continue };
        let token = scan::decode_string(&item[found.token.range()]).map(Shown).ok_or(Unclear::NotText)?;
        if shown.replace(token.clone()).is_some_and(|other| other != token) {
            return Err(Unclear::TwoWays);
        }
    }
    Ok(shown)
}

/// The message as it may be recorded and go on: without its token, and otherwise byte for byte as it came.
/// Of one that can be read in two ways, or is no JSON, nothing goes on; for the record, what can be taken
/// for a secret is masked in it.
pub fn without_token(message: &Message) -> Bytes {
    let bytes = message.bytes();
    if !mentions(bytes) {
        return bytes.clone();
    }
    stripped(message).unwrap_or_else(|| Redactor::default().message(bytes))
}

fn stripped(message: &Message) -> Option<Bytes> {
    if !shows(message) {
        return None;
    }
    let mut stripped = message.bytes().clone();
    // From the end, so that what comes before stays where it is.
    for item in items(message).into_iter().rev() {
        let text = message.bytes().slice(item.range());
        let Some(found) = find(&text).ok()? else { continue };
        let path: &[&str] = if found.is_alone { &[PARAMS, PROXY] } else { &[PARAMS, PROXY, AUTH_TOKEN] };
        stripped = splice(&stripped, item, &without_member(&text, path));
    }
    Some(stripped)
}

/// Whether a message has to be looked at: nearly none has.
/// Whether there could be a token in it. Says no quickly.
pub fn may_show(bytes: &[u8]) -> bool {
    mentions(bytes)
}

fn shows(message: &Message) -> bool {
    mentions(message.bytes()) && message.kind() != Kind::NotJson
}

fn mentions(bytes: &[u8]) -> bool {
    scan::mentions(bytes, &PLAIN) || scan::mentions(bytes, &ESCAPE)
}

/// Where the messages stand that it consists of.
fn items(message: &Message) -> Vec<Span> {
    match message.kind() {
        Kind::Batch => scan::batch_items(message.bytes()).collect(),
        _ => vec![Span::new(0..message.bytes().len())],
    }
}

/// Where a message has its token.
struct Found {
    token: Span,
    /// Nothing else stands beside it.
    is_alone: bool,
}

fn find(bytes: &[u8]) -> Result<Option<Found>, Unclear> {
    let whole = Member { value: Span::new(0..bytes.len()), is_plain: true };
    let params = members(bytes, &[whole], PARAMS);
    let proxies = members(bytes, &params, PROXY);
    let tokens = members(bytes, &proxies, AUTH_TOKEN);
    match (&*params, &*proxies, &*tokens) {
        (_, _, []) => Ok(None),
        // Of names that stand twice, or are spelled differently, parsers may see one or the other.
        ([params], [proxy], [token]) if params.is_plain && proxy.is_plain && token.is_plain => {
            let is_alone = scan::whole_members(&bytes[proxy.value.range()]).nth(1).is_none();
            Ok(Some(Found { token: token.value, is_alone }))
        }
        _ => Err(Unclear::TwoWays),
    }
}

struct Member {
    value: Span,
    /// Its name is spelled without escapes.
    is_plain: bool,
}

/// What stands under a name in these objects, in whatever spelling.
fn members(bytes: &[u8], objects: &[Member], name: &str) -> Vec<Member> {
    let of_object = |object: &Member| {
        let start = object.value.range().start;
        let object = &bytes[object.value.range()];
        let named = scan::whole_members(object).filter(|(key, ..)| key.as_deref() == Some(name));
        named.map(move |(_, member, value)| Member {
            value: value.shifted(start),
            is_plain: object[member.range()][1..].starts_with(name.as_bytes()),
        })
    };
    objects.iter().flat_map(of_object).collect()
}
