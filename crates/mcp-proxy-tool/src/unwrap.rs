//! Results of a proxy tool as native ones again, by their annotations, and made valid where that can be done: some tools
//! write what their language has, with nulls and under its own names.

use bytes::Bytes;
use mcp_wire::fit::{Fit, What, Writer, fit};
use mcp_wire::{Era, splice};

use crate::Type;
use crate::detect::ProxyTool;
use crate::members::{self, Members, compact, is_json, is_list, is_object, items};
use crate::select::Page;
use crate::shape::{ABOUT_THE_ANSWER, PAGE, is_complete};

#[derive(Debug, thiserror::Error)]
pub enum NotNative {
    /// The tool says that something went wrong; this is what it says.
    #[error("{0}")]
    Failed(String),
    #[error("the proxy tool's answer is not what the extension says: {0}")]
    Unexpected(&'static str),
    /// It is that, and no result of the method that was asked for.
    #[error("the proxy tool's answer is no valid result: {0}")]
    Invalid(String),
}

use NotNative::Unexpected;

/// What a `list` gave.
#[derive(Debug)]
pub struct Listed {
    /// Valid as far as they can be made so.
    pub items: Vec<Bytes>,
    pub page: Option<Page>,
}

pub fn list(tool: &ProxyTool, kind: Type, result: &[u8]) -> Result<Listed, NotNative> {
    let result = succeeded(result)?;
    // Some have nothing to show for an empty list.
    if result.get("content").is_some_and(|content| is_list(content) && items(content).next().is_none()) {
        return Ok(Listed { items: Vec::new(), page: page_in_meta(&result) });
    }
    let data = Data::of(&result)?;
    let listed: Vec<Bytes> = if is_list(&data.json) {
        items(&data.json).map(Bytes::copy_from_slice).collect()
    } else if data.is_many == Some(true) {
        return Err(Unexpected("many items that are no list"));
    } else {
        vec![data.json.into()]
    };
    match listed.iter().all(|item| is_object(item)) {
        true => {
            let items = listed.into_iter().map(|item| native_item(tool, kind, item)).collect();
            Ok(Listed { items, page: data.page })
        }
        false => Err(Unexpected("an item of the list is no object")),
    }
}

/// The one item that an `info` gave.
pub fn info(tool: &ProxyTool, kind: Type, result: &[u8]) -> Result<Bytes, NotNative> {
    let data = Data::of(&succeeded(result)?)?;
    // Some give a list of one.
    let mut listed = items(&data.json);
    let item = match (listed.next(), listed.next()) {
        (Some(item), None) => item,
        _ => &data.json,
    };
    match is_object(item) {
        true => Ok(native_item(tool, kind, Bytes::copy_from_slice(item))),
        false => Err(Unexpected("not one item")),
    }
}

/// An item as its own method would list it; as it is, if it cannot be made valid.
fn native_item(tool: &ProxyTool, kind: Type, item: Bytes) -> Bytes {
    let item = match kind {
        // Clients refuse results without the structured content that was promised, and this tool passes none on.
        Type::Tool if !tool.knows_objectify => splice::without_member(&item, &["outputSchema"]),
        _ => item,
    };
    let what = match kind {
        Type::Tool => What::Tool,
        Type::Prompt => What::Prompt,
        Type::Resource if is_template(&item) => What::Template,
        Type::Resource => What::Resource,
    };
    match fit(what, &item, Era::Modern, Writer::ProxyTool) {
        Fit::Mended { json, .. } => json,
        Fit::AsItIs | Fit::Bad(_) => item,
    }
}

/// Whether an item of resources is a template.
pub fn is_template(item: &[u8]) -> bool {
    Members::of(item).is_some_and(|item| item.get("uriTemplate").is_some_and(|template| template != b"null"))
}

/// The result of the capability's own method, from that of a `call`, as a client of this era knows it.
pub fn call(kind: Type, result: &[u8], era: Era) -> Result<Bytes, NotNative> {
    let members = object(result)?;
    let has_content = members.get("content").is_some_and(is_list);
    if !is_complete(&members) || (!has_content && members.get("task").is_some()) {
        return Ok(Bytes::copy_from_slice(result));
    }
    if kind != Type::Tool && members.get("isError") == Some(b"true") {
        return Err(failed(&members));
    }
    let (what, native) = match kind {
        Type::Tool => (What::CallResult, tool_result(members)),
        Type::Resource => (What::ReadResult, resource_result(members)?),
        Type::Prompt => (What::PromptResult, prompt_result(&members)?),
    };
    match fit(what, &native, era, Writer::ProxyTool) {
        Fit::AsItIs => Ok(native),
        Fit::Mended { json, .. } => Ok(json),
        Fit::Bad(wrong) => Err(NotNative::Invalid(wrong)),
    }
}

fn object(result: &[u8]) -> Result<Members<'_>, NotNative> {
    Members::of_any(result).ok_or(Unexpected("no object"))
}

fn succeeded(result: &[u8]) -> Result<Members<'_>, NotNative> {
    let members = object(result)?;
    match members.get("isError") {
        Some(b"true") => Err(failed(&members)),
        _ => Ok(members),
    }
}

fn failed(result: &Members<'_>) -> NotNative {
    let texts: Vec<_> = content(result).filter_map(|item| Some(item.text("text")?.into_owned())).collect();
    match texts.is_empty() {
        true => NotNative::Failed("the proxy tool failed and does not say why".into()),
        false => NotNative::Failed(texts.join("\n")),
    }
}

fn content<'r>(result: &'r Members<'_>) -> impl Iterator<Item = Members<'r>> {
    result.get("content").into_iter().flat_map(items).filter_map(Members::of)
}

/// What stands in a result's embedded resource.
struct Data {
    /// Without blanks: it becomes part of messages that have one line.
    json: Vec<u8>,
    is_many: Option<bool>,
    page: Option<Page>,
}

impl Data {
    fn of(result: &Members<'_>) -> Result<Self, NotNative> {
        let mut found = content(result).filter(|item| item.text("type").is_some_and(|kind| kind == "resource"));
        let item = found.next().ok_or(Unexpected("no embedded resource"))?;
        let resource = item.get("resource").and_then(Members::of);
        let text = resource.as_ref().and_then(|resource| resource.text("text"));
        let text = text.filter(|text| is_json(text.as_bytes())).ok_or(Unexpected("the resource's text is not JSON"))?;
        let annotations = item.get("annotations").and_then(Members::of).unwrap_or_else(Members::none);
        let is_many = annotations.get("many").or_else(|| annotations.get("isArray")).map(|json| json == b"true");
        let page = page(&annotations).or_else(|| page_in_meta(result));
        Ok(Self { json: compact(text.as_bytes()), is_many, page })
    }
}

/// The page where somebody between us and the tool kept only annotations that they knew.
fn page_in_meta(result: &Members<'_>) -> Option<Page> {
    let meta = result.get("_meta").and_then(Members::of)?;
    let said = meta.get(PAGE).and_then(Members::of)?;
    let number = |key| std::str::from_utf8(said.get(key)?).ok()?.parse().ok();
    Some(Page { total: number("total")?, offset: number("offset").unwrap_or(0), limit: number("limit") })
}

fn page(annotations: &Members<'_>) -> Option<Page> {
    let number = |key| std::str::from_utf8(annotations.get(key)?).ok()?.parse().ok();
    // The first is ours, the second Magg's.
    for [total, offset, limit] in [["proxyTotal", "proxyOffset", "proxyLimit"], ["totalCount", "offset", "limit"]] {
        if let Some(total) = number(total) {
            return Some(Page { total, offset: number(offset).unwrap_or(0), limit: number(limit) });
        }
    }
    None
}

fn tool_result(mut result: Members<'_>) -> Bytes {
    if let Some(content) = result.get("content").filter(|content| is_list(content)) {
        let native: Vec<_> = items(content).map(without_annotations).collect();
        result.set("content", members::list(native));
    }
    result.write().into()
}

/// An item of content without what a proxy tool says of where it is from.
fn without_annotations(item: &[u8]) -> Vec<u8> {
    let Some(mut members) = Members::of(item) else { return item.to_vec() };
    let Some(mut annotations) = members.get("annotations").and_then(Members::of) else { return item.to_vec() };
    let mut is_changed = false;
    for name in ["proxyType", "proxyAction", "proxyPath"] {
        is_changed |= annotations.remove(name);
    }
    let rest = (!annotations.is_empty()).then(|| annotations.write());
    match (is_changed, rest) {
        (false, _) => return item.to_vec(),
        (true, Some(rest)) => members.set("annotations", rest),
        (true, None) => drop(members.remove("annotations")),
    }
    members.write()
}

fn resource_result(mut result: Members<'_>) -> Result<Bytes, NotNative> {
    let content = result.get("content").filter(|content| is_list(content)).ok_or(Unexpected("no content"))?;
    let contents: Option<Vec<_>> = items(content).map(native_resource).collect();
    let contents = contents.ok_or(Unexpected("content that is no resource"))?;
    result.rename("content", "contents", members::list(contents));
    // These speak of the call of a tool.
    result.remove("isError");
    result.remove("structuredContent");
    Ok(result.write().into())
}

fn native_resource(item: &[u8]) -> Option<Vec<u8>> {
    let item = Members::of(item)?;
    let embedded = item.get("resource")?;
    let mut resource = Members::of(embedded)?;
    let is_json = resource.text("mimeType").is_some_and(|mime_type| mime_type == "application/json");
    match resource.text("contentType").filter(|_| is_json) {
        Some(content_type) => {
            let content_type = members::quoted(&content_type);
            resource.set("mimeType", content_type);
            resource.remove("contentType");
            Some(resource.write())
        }
        None => Some(embedded.to_vec()),
    }
}

fn prompt_result(result: &Members<'_>) -> Result<Bytes, NotNative> {
    let data = Data::of(result)?;
    let mut prompt = Members::of(&data.json).ok_or(Unexpected("the prompt is no object"))?;
    for name in ABOUT_THE_ANSWER {
        if let Some(json) = result.get(name).filter(|_| prompt.get(name).is_none()) {
            prompt.set(name, json);
        }
    }
    Ok(prompt.write().into())
}

#[cfg(test)]
mod tests;
