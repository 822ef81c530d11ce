//! The other direction of a request: a native use of a capability as a call of the tool.

use bytes::Bytes;

use crate::Type;
use crate::arguments::{self, Call, Mistake, Operation, Request};
use crate::detect::ProxyTool;
use crate::members::{Compose, Members, is_object, quoted};
use crate::select::Paging;

/// The `params` of the `tools/call` that lists capabilities.
pub fn list(tool: &ProxyTool, kind: Type, paging: Paging) -> Bytes {
    let paging = if tool.knows_paging { paging } else { Paging::default() };
    let arguments = Compose::new()
        .text("action", "list")
        .text("type", kind.as_str())
        .maybe(paging.limit, |arguments, limit| arguments.number("limit", limit))
        .maybe(paging.offset, |arguments, offset| arguments.number("offset", offset));
    Compose::new().text("name", &tool.name).json("arguments", arguments.done()).bytes()
}

/// The `params` of the `tools/call` that describes one capability.
pub fn info(tool: &ProxyTool, kind: Type, path: &str) -> Bytes {
    let arguments = Compose::new().text("action", "info").text("type", kind.as_str()).text("path", path);
    Compose::new().text("name", &tool.name).json("arguments", arguments.done()).bytes()
}

/// The `params` of the `tools/call` that stands for a native request of these `params` (JSON): `name` or `uri` and
/// `arguments` become arguments of the tool, everything else stays beside them. None if that is no such request.
pub fn call(tool: &ProxyTool, kind: Type, params: &[u8]) -> Option<Bytes> {
    let mut params = Members::of_any(params)?;
    let path = params.text(name_of(kind))?;
    let given = params.get("arguments").filter(|json| *json != b"null");
    if given.is_some_and(|json| !is_object(json)) {
        return None;
    }
    let leaves_text = (kind == Type::Resource && tool.knows_objectify).then_some(false);
    let arguments = Compose::new()
        .text("action", "call")
        .text("type", kind.as_str())
        .text("path", &path)
        .maybe(given.filter(|_| kind != Type::Resource), |arguments, json| arguments.json("args", json))
        .maybe(leaves_text, |arguments, flag| arguments.flag("objectify", flag))
        .done();
    params.rename(name_of(kind), "name", quoted(&tool.name));
    params.set("arguments", arguments);
    Some(params.write().into())
}

/// The native params that a call of a proxy tool with these `params` (JSON) stands for, one for each capability
/// that it would use; nothing for those that only list and describe. Err if the arguments are no proxy tool's,
/// or those of one operation are not: who cannot tell what is meant should not judge it.
pub fn native(params: &[u8]) -> Result<Vec<(Type, Bytes)>, Mistake> {
    let Some(params) = Members::of_any(params) else {
        return Err(Mistake("the parameters must be an object".into()));
    };
    if params.iter().filter(|(key, _)| *key == Some("arguments")).count() > 1 {
        return Err(Mistake("`arguments` stands twice".into()));
    }
    let calls = match arguments::parse(params.get("arguments"))? {
        Request::One(operation) => vec![operation],
        Request::Batch(operations) => operations.into_iter().collect::<Result<_, _>>()?,
    };
    let calls = calls.into_iter().filter_map(|operation| match operation {
        Operation::Call(call) => Some(call),
        Operation::List { .. } | Operation::Info { .. } => None,
    });
    Ok(calls.map(|call| (call.kind, native_params(&call, &params))).collect())
}

/// Everything beside name and arguments goes with each of the calls.
fn native_params(call: &Call, outer: &Members<'_>) -> Bytes {
    let mut native = outer.clone();
    native.rename("name", name_of(call.kind), quoted(&call.path));
    match &call.args {
        Some(args) => native.set("arguments", &**args),
        None => drop(native.remove("arguments")),
    }
    native.write().into()
}

/// The member that names a capability in a request of its own method.
fn name_of(kind: Type) -> &'static str {
    match kind {
        Type::Tool | Type::Prompt => "name",
        Type::Resource => "uri",
    }
}

#[cfg(test)]
mod tests;
