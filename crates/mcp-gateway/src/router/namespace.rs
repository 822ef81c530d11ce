//! What the things of one server are called towards clients, so that each tells whose it is.
//!
//! | what | is given out as |
//! |---|---|
//! | tool, prompt | `<id>__<name>`, of 64 characters at most; a long id is shortened, too |
//! | resource | `proxy://resource/<base64url of {"server","uri"}>` |
//! | template | `proxy://template/<id>/<original text>`, so that what it expands to routes back as well |
//! | resource of a user interface | `ui://proxy/resource/<base64url…>`: clients know these by their scheme |
//! | template of such | `ui://proxy/template/<id>/<original text>` |
//! | task | `<id>:<task id>` |
//!
//! In a `ui://` address the first part after the slashes is a host, which readers may put in lower case; what
//! must keep its case therefore comes after it.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use serde::{Deserialize, Serialize};

/// Characters of a name that the gateway gives out: several model APIs refuse longer ones.
pub(super) const NAME_CHARS_MAX: usize = 64;
/// Characters of the hash at the end of a shortened name: forty bits keep the long names of one server apart.
const HASH_CHARS: usize = 10;
const SEPARATOR: &str = "__";
/// Characters of a server's id at the beginning of a name: the separator, `_` and the hash still fit behind it.
const ID_CHARS_MAX: usize = NAME_CHARS_MAX - SEPARATOR.len() - 1 - HASH_CHARS;
/// Characters of a longer id that stay before its hash; the remaining room is for the name.
const ID_HEAD_CHARS: usize = 24;
const RESOURCE: &str = "proxy://resource/";
const TEMPLATE: &str = "proxy://template/";
const UI_RESOURCE: &str = "ui://proxy/resource/";
const UI_TEMPLATE: &str = "ui://proxy/template/";
const UI_SCHEME: &str = "ui://";

/// One server, as its things are named.
#[derive(Clone, Debug)]
pub struct Namespace {
    id: Arc<str>,
    /// The id as names begin with it: a long one is shortened with a hash, so that names fit behind it.
    label: Arc<str>,
    prefix: bool,
}

impl Namespace {
    /// `id` has letters, digits, `-` and `_`, but never `__`. Without `prefix` names and addresses are given
    /// out as they are; task ids are not, since nobody lists them and nothing else would tell whose they are.
    pub fn new(id: Arc<str>, prefix: bool) -> Self {
        let label = match id.chars().nth(ID_CHARS_MAX) {
            None => Arc::clone(&id),
            Some(_) => {
                let head: String = id.chars().take(ID_HEAD_CHARS).collect();
                format!("{}-{}", head.trim_end_matches('_'), short_hash(&id)).into()
            }
        };
        Self { id, label, prefix }
    }

    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    pub fn is_prefixed(&self) -> bool {
        self.prefix
    }

    /// The name of a tool or prompt. One that gets too long is cut and ends in a hash of all of it, so that
    /// it comes out the same whatever else there is.
    pub fn name(&self, original: &str) -> String {
        if !self.prefix {
            return original.to_owned();
        }
        let whole = format!("{}{SEPARATOR}{original}", self.label);
        if whole.chars().nth(NAME_CHARS_MAX).is_none() { whole } else { self.shortened(original) }
    }

    /// The address of a resource. One that is ours and this server's already stays as it is; one of another
    /// server's does not: nobody may link into a neighbour.
    pub fn uri(&self, original: &str) -> String {
        if !self.prefix || self.owns(original) {
            return original.to_owned();
        }
        let start = if is_ui(original) { UI_RESOURCE } else { RESOURCE };
        let wrapped = serde_json::to_string(&Wrapped { server: &*self.id, uri: original });
        format!("{start}{}", BASE64URL.encode(wrapped.expect("two texts are JSON")))
    }

    /// The text of a template.
    pub fn template(&self, original: &str) -> String {
        if !self.prefix || self.owns(original) {
            return original.to_owned();
        }
        let start = if is_ui(original) { UI_TEMPLATE } else { TEMPLATE };
        format!("{start}{}/{original}", self.id)
    }

    /// The id of a task.
    pub fn task(&self, original: &str) -> String {
        format!("{}:{original}", self.id)
    }

    /// What the server calls the task that was given out so, if it is one of its.
    pub fn original_task<'a>(&self, given: &'a str) -> Option<&'a str> {
        given.strip_prefix(&*self.id)?.strip_prefix(':')
    }

    /// The name behind the prefix. It may be a shortened one.
    pub fn unprefixed<'a>(&self, given: &'a str) -> Option<&'a str> {
        let name = given.strip_prefix(&*self.label)?.strip_prefix(SEPARATOR)?;
        (self.prefix && !name.is_empty()).then_some(name)
    }

    /// Whether what stands behind the prefix looks like a shortened name. Others may look so by chance.
    pub(super) fn looks_shortened(&self, unprefixed: &str) -> bool {
        let Some(at) = unprefixed.len().checked_sub(HASH_CHARS + 1) else { return false };
        let is_hash = |hash: &str| hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let tail = unprefixed.get(at..).and_then(|tail| tail.strip_prefix('_'));
        tail.is_some_and(is_hash) && unprefixed[..at].chars().count() == self.head_chars()
    }

    fn owns(&self, uri: &str) -> bool {
        Ours::read(uri).is_some_and(|ours| ours.server == *self.id)
    }

    fn shortened(&self, original: &str) -> String {
        let head: String = original.chars().take(self.head_chars()).collect();
        format!("{}{SEPARATOR}{head}_{}", self.label, short_hash(original))
    }

    /// How much of a name is left in its short form.
    fn head_chars(&self) -> usize {
        ID_CHARS_MAX - self.label.chars().count()
    }
}

fn short_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..HASH_CHARS].to_owned()
}

#[derive(Serialize, Deserialize)]
struct Wrapped<S> {
    server: S,
    uri: S,
}

/// An address that a gateway gave out: this one, or one behind it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ours {
    pub server: String,
    pub original: String,
}

impl Ours {
    /// The scheme may come back in another case, as readers of addresses are free to spell it.
    pub(super) fn read(uri: &str) -> Option<Self> {
        let after = |start: &str| {
            let head = uri.get(..start.len())?;
            head.eq_ignore_ascii_case(start).then(|| &uri[start.len()..])
        };
        if let Some(expanded) = after(TEMPLATE).or_else(|| after(UI_TEMPLATE)) {
            let (server, original) = expanded.split_once('/')?;
            return (!original.is_empty()).then(|| Self { server: server.into(), original: original.into() });
        }
        let wrapped = BASE64URL.decode(after(RESOURCE).or_else(|| after(UI_RESOURCE))?).ok()?;
        let Wrapped { server, uri } = serde_json::from_slice::<Wrapped<String>>(&wrapped).ok()?;
        Some(Self { server, original: uri })
    }
}

fn is_ui(uri: &str) -> bool {
    uri.get(..UI_SCHEME.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(UI_SCHEME))
}

#[cfg(test)]
mod tests;
