//! What a caller of the tool wants, or what is wrong with how it says so.

mod given;
mod nearest;
pub mod template;

use bytes::Bytes;
use mcp_wire::scan;

use self::given::{Given, names, said, shown, wrong};
use self::template::Template;
use crate::Type;
use crate::members::{Members, compact, is_json, is_list, is_object, items};
use crate::select::{Filter, Paging};

/// Operations of one batch: each is judged, sent and answered by itself.
pub const OPERATIONS_MAX: usize = 100;

/// Items of one page: a model reads and pays for them.
pub const LIMIT_MAX: usize = 1000;

/// Tags of one filter: every item of a list is compared with each.
const TAGS_MAX: usize = 100;

/// Nesting of arguments. They become part of another message and stand deeper there, and many readers take no more
/// than [`scan::DEPTH_MAX`].
const DEPTH_MAX: usize = scan::DEPTH_MAX - 8;

#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    One(Operation),
    /// Each on its own: a mistake in one does not stop the others.
    Batch(Vec<Result<Operation, Mistake>>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    List { kind: Type, paging: Paging, filter: Filter },
    Info { kind: Type, path: String },
    Call(Call),
}

/// A use of one capability.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub kind: Type,
    /// The name of a tool or prompt; the address of a resource, templates already filled in.
    pub path: String,
    /// An object, as the caller spelled it.
    pub args: Option<Bytes>,
    /// Whether the text of a resource that is JSON is written anew as such.
    pub objectify: bool,
}

/// What is wrong with a caller's arguments, for the caller to read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mistake(pub String);

const PARAMETERS: [&str; 10] =
    ["action", "type", "path", "args", "limit", "offset", "filter", "filter_server", "operations", "objectify"];
const OF_FILTER: [&str; 4] = ["prefix", "tags", "server", "query"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    List,
    Info,
    Call,
    Batch,
}

impl Action {
    fn parse(text: &str) -> Option<Self> {
        [Self::List, Self::Info, Self::Call, Self::Batch].into_iter().find(|action| action.as_str() == text)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Info => "info",
            Self::Call => "call",
            Self::Batch => "batch",
        }
    }

    /// The actions that a parameter is for.
    fn that_take(parameter: &str) -> &'static [Self] {
        match parameter {
            "path" => &[Self::Info, Self::Call],
            "args" | "objectify" => &[Self::Call],
            "limit" | "offset" | "filter" | "filter_server" => &[Self::List],
            "operations" => &[Self::Batch],
            _ => &[Self::List, Self::Info, Self::Call, Self::Batch],
        }
    }
}

/// Reads the `arguments` of a call of the tool, as JSON.
pub fn parse(arguments: Option<&[u8]>) -> Result<Request, Mistake> {
    let arguments = arguments.filter(|json| *json != b"null").unwrap_or(b"{}");
    match scan::nesting(arguments) {
        None => return wrong("the arguments are not JSON"),
        Some(depth) if depth > DEPTH_MAX => return wrong("the arguments are nested too deep"),
        Some(_) => {}
    }
    let given = Given::read(arguments, "the arguments", &PARAMETERS)?;
    match action(&given)? {
        Action::Batch => batch(&given).map(Request::Batch),
        action => operation(&given, action).map(Request::One),
    }
}

fn action(given: &Given<'_>) -> Result<Action, Mistake> {
    let Some(text) = given.text("action")? else {
        return wrong("`action` is required: list, info, call or batch");
    };
    let Some(action) = Action::parse(&text) else {
        return wrong(format_args!("unknown action {}; use list, info, call or batch", said(&text)));
    };
    for name in PARAMETERS {
        let takers = Action::that_take(name);
        // Some callers always send `args`, and empty ones ask for nothing.
        let is_given = given.has(name) && (name != "args" || !has_empty_args(given));
        if is_given && !takers.contains(&action) {
            let takers: Vec<_> = takers.iter().map(|taker| format!("\"{}\"", taker.as_str())).collect();
            let actions = if takers.len() == 1 { "action" } else { "actions" };
            return wrong(format_args!("`{name}` is only for {actions} {}", takers.join(" and ")));
        }
    }
    Ok(action)
}

fn batch(given: &Given<'_>) -> Result<Vec<Result<Operation, Mistake>>, Mistake> {
    kind(given)?;
    let Some(operations) = given.maybe("operations", "a list of objects", |json| is_list(json).then_some(json))? else {
        return wrong("`operations` is required for action \"batch\": a list of objects with action, type, path, args");
    };
    match items(operations).count() {
        0 => wrong("`operations` is empty; give at least one"),
        count if count > OPERATIONS_MAX => {
            wrong(format_args!("`operations` has {count} items; give at most {OPERATIONS_MAX}"))
        }
        _ => Ok(items(operations).map(of_batch).collect()),
    }
}

fn of_batch(json: &[u8]) -> Result<Operation, Mistake> {
    let given = Given::read(json, "an operation", &PARAMETERS)?;
    match action(&given)? {
        Action::Batch => wrong("a batch cannot stand in a batch; use list, info or call"),
        action => operation(&given, action),
    }
}

fn operation(given: &Given<'_>, action: Action) -> Result<Operation, Mistake> {
    let Some(kind) = kind(given)? else {
        let action = action.as_str();
        return wrong(format_args!("`type` is required for action \"{action}\": tool, resource or prompt"));
    };
    Ok(match action {
        Action::List => Operation::List { kind, paging: paging(given)?, filter: filter(given)? },
        Action::Info => Operation::Info { kind, path: path(given, kind, action)? },
        Action::Call | Action::Batch => Operation::Call(call(given, kind, action)?),
    })
}

fn kind(given: &Given<'_>) -> Result<Option<Type>, Mistake> {
    let Some(text) = given.text("type")? else { return Ok(None) };
    match Type::parse(&text) {
        Some(kind) => Ok(Some(kind)),
        None => wrong(format_args!("unknown type {}; use tool, resource or prompt", said(&text))),
    }
}

fn path(given: &Given<'_>, kind: Type, action: Action) -> Result<String, Mistake> {
    let what = match kind {
        Type::Tool => "the name of the tool",
        Type::Resource => "the URI of the resource",
        Type::Prompt => "the name of the prompt",
    };
    match given.text("path")? {
        Some(path) if path.is_empty() => wrong(format_args!("`path` is empty; give {what}")),
        Some(path) => Ok(path.into_owned()),
        None => wrong(format_args!("`path` is required for action \"{}\": {what}", action.as_str())),
    }
}

fn paging(given: &Given<'_>) -> Result<Paging, Mistake> {
    Ok(Paging { limit: given.number("limit", 1, LIMIT_MAX)?, offset: given.number("offset", 0, usize::MAX)? })
}

fn filter(given: &Given<'_>) -> Result<Filter, Mistake> {
    let text = |given: &Given<'_>, name| Ok(given.text(name)?.filter(|text| !text.trim().is_empty()).map(Into::into));
    let server_prefix = text(given, "filter_server")?;
    let what = format!("an object with {}", names(&OF_FILTER));
    let Some(json) = given.maybe("filter", &what, |json| is_object(json).then_some(json))? else {
        return Ok(Filter { server_prefix, ..Filter::default() });
    };
    let given = Given::read(json, "`filter`", &OF_FILTER)?;
    let text = |name| text(&given, name);
    let tags = given.texts("tags")?;
    if tags.len() > TAGS_MAX {
        return wrong(format_args!("`tags` has {} items; give at most {TAGS_MAX}", tags.len()));
    }
    Ok(Filter { prefix: text("prefix")?, tags, server: text("server")?, server_prefix, query: text("query")? })
}

fn call(given: &Given<'_>, kind: Type, action: Action) -> Result<Call, Mistake> {
    let objectify = given.flag("objectify")?;
    if objectify.is_some() && kind != Type::Resource {
        return wrong("`objectify` is only for type \"resource\"");
    }
    let (path, args) = (path(given, kind, action)?, args(given)?);
    let (path, args) = match kind {
        Type::Resource => (address(path, args)?, None),
        Type::Tool | Type::Prompt => (path, args),
    };
    Ok(Call { kind, path, args, objectify: objectify.unwrap_or(true) })
}

/// Whether `args` are given and say nothing.
fn has_empty_args(given: &Given<'_>) -> bool {
    args(given).is_ok_and(|args| args.as_deref().and_then(Members::of).is_none_or(|args| args.is_empty()))
}

fn args(given: &Given<'_>) -> Result<Option<Bytes>, Mistake> {
    let Some(json) = given.get("args") else { return Ok(None) };
    if is_object(json) {
        return Ok(Some(Bytes::copy_from_slice(json)));
    }
    let text = scan::decode_string(json);
    match text.as_deref().map(str::trim) {
        Some("") => Ok(None),
        Some(text) if is_object(text.as_bytes()) && is_json(text.as_bytes()) => {
            if scan::nesting(text.as_bytes()).is_some_and(|depth| depth > DEPTH_MAX) {
                return wrong("`args` is nested too deep");
            }
            // Text may have line breaks in it, and what is sent on may not.
            Ok(Some(compact(text.as_bytes()).into()))
        }
        _ => wrong(format_args!("`args` must be an object, or text that holds one as JSON; given: {}", shown(json))),
    }
}

/// The address of a resource, of which arguments fill in what is left open.
fn address(path: String, args: Option<Bytes>) -> Result<String, Mistake> {
    let values = args.as_deref().and_then(Members::of).unwrap_or_else(Members::none);
    // Without anything to fill in, what looks like a template may be an address with braces in it.
    match Template::of(&path).filter(|_| !values.is_empty()) {
        Some(template) => template.fill(&values),
        None if values.is_empty() => Ok(path),
        None => wrong("`args` of a resource fill in a template such as notes://{name}, and `path` is none"),
    }
}

#[cfg(test)]
mod tests;
