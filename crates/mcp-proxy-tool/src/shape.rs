//! Results as the extension has them. Each function makes the `result` of a `tools/call`, as JSON.

mod batch;

use bytes::Bytes;

pub use self::batch::{Came, Outcome, batch};
use crate::Type;
use crate::arguments::{Call, Mistake};
use crate::members::{self, Compose, Members, compact, is_json, is_list, quoted, quoted_json};
use crate::select::Page;

const JSON: &str = "application/json";

/// How a list or description says what it is of. Magg's client decodes nothing but what is spelled as it spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    #[default]
    Extension,
    Magg,
}

impl Dialect {
    /// That of a client by the name that it gives itself.
    pub fn of_client(name: &str) -> Self {
        if name.to_ascii_lowercase().contains("magg") { Self::Magg } else { Self::Extension }
    }

    /// What `pythonType` says.
    fn python_type(self, kind: Type, data_type: &str) -> &str {
        match (self, kind) {
            (Self::Magg, Type::Resource) => "mcp.types.Resource | mcp.types.ResourceTemplate",
            _ => data_type,
        }
    }
}

/// The answer to `list`; the items are JSON already and stand in it byte for byte.
pub fn list<'a>(kind: Type, items: impl IntoIterator<Item = &'a [u8]>, page: Option<Page>, dialect: Dialect) -> Bytes {
    let items: Vec<_> = items.into_iter().collect();
    let data_type = match kind {
        Type::Tool => "Tool",
        Type::Resource => "Resource|ResourceTemplate",
        Type::Prompt => "Prompt",
    };
    let annotations = Compose::new().text("proxyAction", "list").text("proxyType", kind.as_str());
    let annotations = typed(annotations, data_type, dialect.python_type(kind, data_type), true)
        .maybe(page, |annotations, page| of_page(annotations, page, items.len()))
        .done();
    let uri = format!("proxy:list/{}", kind.as_str());
    let given = items.len();
    let resource = embedded(&uri, &members::list(items), &annotations);
    let result = Compose::new().json("content", members::list([resource])).bytes();
    match page {
        Some(page) => with_meta(&result, PAGE, &of_page_in_meta(page, given)),
        None => result,
    }
}

/// In `_meta` of a list's result: the page as in the annotations, for clients that keep only those they know.
pub const PAGE: &str = "io.github.mcp-proxy/page";

fn of_page_in_meta(page: Page, given: usize) -> Vec<u8> {
    let next = page.offset.saturating_add(given);
    Compose::new()
        .number("total", page.total)
        .number("offset", page.offset)
        .maybe(page.limit, |said, limit| said.number("limit", limit))
        .maybe((next < page.total).then_some(next), |said, next| said.number("nextOffset", next))
        .done()
}

/// The same result with something more in its `_meta`.
pub fn with_meta(result: &Bytes, key: &'static str, json: &[u8]) -> Bytes {
    let Some(mut members) = Members::of_any(result) else { return result.clone() };
    let meta = {
        let mut meta = members.get("_meta").and_then(Members::of).unwrap_or_else(Members::none);
        meta.set(key, json);
        meta.write()
    };
    members.set("_meta", meta);
    members.write().into()
}

fn of_page(annotations: Compose, page: Page, given: usize) -> Compose {
    let next = page.offset.saturating_add(given);
    annotations
        .number("proxyTotal", page.total)
        .number("proxyOffset", page.offset)
        .maybe(page.limit, |annotations, limit| annotations.number("proxyLimit", limit))
        .maybe((next < page.total).then_some(next), |annotations, next| annotations.number("proxyNextOffset", next))
}

/// The answer to `info`.
pub fn info(kind: Type, path: &str, item: &[u8], dialect: Dialect) -> Bytes {
    let is_template = || Members::of(item).is_some_and(|item| item.get("uriTemplate").is_some());
    let data_type = match kind {
        Type::Tool => "Tool",
        Type::Resource if is_template() => "ResourceTemplate",
        Type::Resource => "Resource",
        Type::Prompt => "Prompt",
    };
    let annotations = Compose::new().text("proxyAction", "info").text("proxyType", kind.as_str());
    let python_type = dialect.python_type(kind, data_type);
    let annotations = typed(annotations.text("proxyPath", path), data_type, python_type, false).done();
    let uri = format!("proxy:info/{}/{}", kind.as_str(), address(path));
    Compose::new().json("content", members::list([embedded(&uri, item, &annotations)])).bytes()
}

/// How the data can be read back: as the extension has it, and as it wants to have it one day.
fn typed(annotations: Compose, data_type: &str, python_type: &str, many: bool) -> Compose {
    annotations.text("pythonType", python_type).flag("many", many).text("dataType", data_type).flag("isArray", many)
}

fn embedded(uri: &str, json: &[u8], annotations: &[u8]) -> Vec<u8> {
    let resource = Compose::new().text("uri", uri).text("mimeType", JSON).json("text", quoted_json(json)).done();
    content(&resource, annotations)
}

fn content(resource: &[u8], annotations: &[u8]) -> Vec<u8> {
    Compose::new().text("type", "resource").json("resource", resource).json("annotations", annotations).done()
}

/// A path as a part of an address: what no address may have in it is escaped.
fn address(path: &str) -> String {
    let mut address = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte) => {
                address.push(char::from(byte));
            }
            byte => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address
}

/// The answer to `call`, made of the result of the capability's own method. What is no complete result (a task,
/// a question to the caller) stays as it is.
pub fn call(call: &Call, result: &[u8]) -> Bytes {
    let shaped = Members::of_any(result).filter(is_complete).and_then(|members| match call.kind {
        Type::Tool => tool_result(call, members),
        Type::Resource => resource_result(call, members),
        Type::Prompt => prompt_result(call, members, result),
    });
    shaped.unwrap_or_else(|| Bytes::copy_from_slice(result))
}

/// Whether a result is the last word about its request.
pub(crate) fn is_complete(result: &Members<'_>) -> bool {
    result.text("resultType").is_none_or(|kind| kind == "complete")
}

fn tool_result(call: &Call, mut result: Members<'_>) -> Option<Bytes> {
    let content = result.get("content").filter(|content| is_list(content))?;
    let by_call = by_call(call);
    let items: Vec<_> = members::items(content).map(|item| annotated(item, &by_call)).collect();
    result.set("content", members::list(items));
    Some(result.write().into())
}

fn by_call(call: &Call) -> [(&'static str, Vec<u8>); 3] {
    [("proxyType", quoted(call.kind.as_str())), ("proxyAction", quoted("call")), ("proxyPath", quoted(&call.path))]
}

/// Gives an item of content these annotations beside those that it has.
fn annotated(item: &[u8], added: &[(&'static str, Vec<u8>)]) -> Vec<u8> {
    let Some(mut item) = Members::of(item) else { return item.to_vec() };
    let mut annotations = item.get("annotations").and_then(Members::of).unwrap_or_else(Members::none);
    for (name, json) in added {
        annotations.set(name, json.as_slice());
    }
    let annotations = annotations.write();
    item.set("annotations", annotations);
    item.write()
}

fn resource_result(call: &Call, mut result: Members<'_>) -> Option<Bytes> {
    let contents = result.get("contents").filter(|contents| is_list(contents))?;
    let annotations = annotations_by(call).done();
    let items: Vec<_> = members::items(contents)
        .map(|resource| match objectified(resource).filter(|_| call.objectify) {
            Some(object) => content(&object, &annotations),
            None => content(resource, &annotations),
        })
        .collect();
    result.rename("contents", "content", members::list(items));
    Some(result.write().into())
}

/// A resource whose text is JSON, as JSON. None for one of another kind, and for one that has the member already
/// that would tell of what kind it was.
fn objectified(resource: &[u8]) -> Option<Vec<u8>> {
    let mut resource = Members::of(resource)?;
    let text = resource.text("text").filter(|text| is_json(text.as_bytes()))?;
    if resource.get("contentType").is_some() || resource.get("blob").is_some() {
        return None;
    }
    let text = quoted_json(&compact(text.as_bytes()));
    let mime_type = resource.get("mimeType").map(<[u8]>::to_vec);
    resource.set("mimeType", quoted(JSON));
    resource.set("text", text);
    if let Some(mime_type) = mime_type {
        resource.set("contentType", mime_type);
    }
    Some(resource.write())
}

fn annotations_by(call: &Call) -> Compose {
    by_call(call).iter().fold(Compose::new(), |annotations, (name, json)| annotations.json(name, json))
}

/// The whole result stands in the text; what speaks of the answer as such stands beside it, too.
fn prompt_result(call: &Call, members: Members<'_>, result: &[u8]) -> Option<Bytes> {
    members.get("messages")?;
    let annotations = annotations_by(call).text("pythonType", "GetPromptResult").text("dataType", "GetPromptResult");
    let uri = format!("proxy:call/prompt/{}", address(&call.path));
    let mut shaped = Members::none();
    shaped.set("content", members::list([embedded(&uri, &compact(result), &annotations.done())]));
    for name in ABOUT_THE_ANSWER {
        if let Some(json) = members.get(name) {
            shaped.set(name, json);
        }
    }
    Some(shaped.write().into())
}

/// Members of any result that those read who do not know what it is about.
pub(crate) const ABOUT_THE_ANSWER: [&str; 2] = ["resultType", "_meta"];

/// A result that says what is wrong.
pub fn mistake(mistake: &Mistake) -> Bytes {
    let item = Compose::new().text("type", "text").text("text", &mistake.0).done();
    Compose::new().json("content", members::list([item])).flag("isError", true).bytes()
}

#[cfg(test)]
mod tests;
