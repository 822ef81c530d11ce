//! `${env:NAME}` and `${file:PATH}` in the text of a configuration. What is not there, or empty, is a
//! mistake: an empty secret would be sent as one.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mcp_filter::nearest;

use super::world::World;

/// Bytes of a file that `${file:…}` stands for: a secret is a line or a key.
const FILE_BYTES_MAX: u64 = 64 * 1024;
const KINDS: [&str; 2] = ["env", "file"];

/// Text as it is written, and what it comes to.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Text {
    pub written: String,
    pub value: String,
}

impl Text {
    pub fn plain(text: impl Into<String>) -> Self {
        let written = text.into();
        Self { value: written.clone(), written }
    }
}

/// What it comes to may be a secret.
impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written.fmt(f)
    }
}

/// What is wrong, and with which bytes of the text.
#[derive(Debug)]
pub(super) struct Fault {
    pub at: Range<usize>,
    pub what: String,
    pub help: String,
}

/// What was found out besides.
#[derive(Debug, Default)]
pub(super) struct Expanded {
    pub text: Text,
    /// Files with secrets that others on this machine can read.
    pub exposed: Vec<String>,
}

/// `dir` is where the configuration lies.
pub(super) fn expand(written: &str, world: &World, dir: &Path) -> Result<Expanded, Fault> {
    let (mut value, mut rest, mut exposed) = (String::new(), 0, Vec::new());
    while let Some(found) = written[rest..].find("${") {
        let at = rest + found;
        // `$${` is how `${` is written that is meant as it stands.
        if written[rest..at].ends_with('$') {
            value.push_str(&written[rest..at - 1]);
            value.push_str("${");
            rest = at + 2;
            continue;
        }
        value.push_str(&written[rest..at]);
        let Some(length) = written[at..].find('}') else {
            value.push_str(&written[at..]);
            rest = written.len();
            break;
        };
        let span = at..at + length + 1;
        let inner = &written[at + 2..at + length];
        match reference(inner) {
            Some(("env", named)) => value.push_str(&variable(named, world, &span)?),
            Some(("file", path)) => {
                let (text, is_exposed) = contents(&world.path(path, dir), path, &span)?;
                exposed.extend(is_exposed.then(|| path.to_owned()));
                value.push_str(&text);
            }
            Some((kind, _)) => return Err(unknown(kind, span)),
            None => value.push_str(&written[span.clone()]),
        }
        rest = span.end;
    }
    value.push_str(&written[rest..]);
    Ok(Expanded { text: Text { written: written.to_owned(), value }, exposed })
}

/// Whether it says `${env:…}` or `${file:…}` somewhere.
pub(super) fn has_reference(written: &str) -> bool {
    KINDS.iter().any(|kind| written.contains(&format!("${{{kind}:")))
}

/// `word:rest`. What a shell makes of `${NAME:-default}` is its own affair, as is everything else.
fn reference(inner: &str) -> Option<(&str, &str)> {
    let (kind, rest) = inner.split_once(':')?;
    let is_word = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_lowercase());
    (is_word && !rest.starts_with(['-', '=', '+', '?'])).then_some((kind, rest))
}

fn unknown(kind: &str, at: Range<usize>) -> Fault {
    let meant = nearest(kind, KINDS).map(|near| format!("did you mean `${{{near}:…}}`? "));
    let help = format!("{}`$${{` is a plain `${{`", meant.unwrap_or_default());
    Fault { at, what: format!("nothing is known by `${{{kind}:…}}`"), help }
}

fn variable(named: &str, world: &World, at: &Range<usize>) -> Result<String, Fault> {
    let (name, default) = match named.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (named, None),
    };
    match (world.variable(name).filter(|value| !value.trim().is_empty()), default) {
        (Some(value), _) => Ok(value.to_owned()),
        (None, Some(default)) => Ok(default.to_owned()),
        (None, None) => {
            let is = if world.variable(name).is_some() { "is empty" } else { "is not set" };
            let what = format!("`{name}` {is} in the environment");
            let help = format!("set it, or write `${{env:{name}:-something}}`");
            Err(Fault { at: at.clone(), what, help })
        }
    }
}

/// What the file says, without the end of its last line; and whether others can read it.
fn contents(path: &Path, written: &str, at: &Range<usize>) -> Result<(String, bool), Fault> {
    let fault = |why: &str, help: &str| Fault {
        at: at.clone(),
        what: format!("the file `{written}` {why}"),
        help: help.to_owned(),
    };
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => fault("is not there", "paths are seen from the directory of this file"),
        std::io::ErrorKind::PermissionDenied => fault("may not be read", "give yourself leave to read it"),
        _ => fault(&format!("cannot be read: {error}"), "give another"),
    };
    // A pipe could keep us waiting for ever, so we look before we open.
    let found = std::fs::metadata(path).map_err(unreadable)?;
    if !found.is_file() {
        return Err(fault("is no regular file", "give another"));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(fault("is longer than 64 KiB", "give another"));
    }
    let Ok(text) = String::from_utf8(bytes) else { return Err(fault("is not text in UTF-8", "give another")) };
    let text = text.trim_end_matches(['\r', '\n']);
    if text.trim().is_empty() {
        return Err(fault("is empty", "write the secret into it, on one line"));
    }
    Ok((text.to_owned(), found.permissions().mode() & 0o077 != 0))
}
