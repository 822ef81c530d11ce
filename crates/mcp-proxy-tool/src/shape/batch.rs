//! What came of several operations, in one result.

use bytes::Bytes;

use super::annotated;
use crate::Type;
use crate::members::{self, Compose, Members, is_list, quoted};

/// What came of one operation of a batch.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// `list`, `info`, `call`; none where the operation could not be read.
    pub action: Option<&'static str>,
    pub kind: Option<Type>,
    pub path: Option<String>,
    pub came: Came,
}

#[derive(Clone, Debug)]
pub enum Came {
    /// A result that one of the functions here made.
    Result(Bytes),
    /// The `error` member of an answer, as JSON.
    Error(Bytes),
}

/// The answer to `batch`: the content of all operations in their order, each item with the place of its operation
/// (`proxyIndex`), and in `structuredContent.results` what came of each.
pub fn batch(outcomes: &[Outcome]) -> Bytes {
    let parts: Vec<_> = outcomes.iter().enumerate().map(|(index, outcome)| outcome.part(index)).collect();
    let results = members::list(parts.iter().map(|part| &part.told));
    let batch = Compose::new()
        .json("content", members::list(parts.iter().flat_map(|part| &part.content)))
        .json("structuredContent", Compose::new().json("results", results).done());
    match !parts.is_empty() && parts.iter().all(|part| part.failed) {
        true => batch.flag("isError", true).bytes(),
        false => batch.bytes(),
    }
}

/// What one operation adds to the result.
struct Part {
    content: Vec<Vec<u8>>,
    /// Its entry in `structuredContent.results`.
    told: Vec<u8>,
    failed: bool,
}

impl Outcome {
    fn part(&self, index: usize) -> Part {
        match &self.came {
            Came::Result(result) => self.of_result(index, result),
            Came::Error(error) => self.of_error(index, error),
        }
    }

    fn of_result(&self, index: usize, result: &[u8]) -> Part {
        let members = Members::of_any(result).unwrap_or_else(Members::none);
        let failed = members.get("isError") == Some(b"true");
        let annotations = self.annotations(index, failed);
        let content = members.get("content").filter(|content| is_list(content));
        let items: Vec<_> = content.into_iter().flat_map(members::items).collect();
        let told = self
            .told(index, failed, items.len())
            .maybe(members.get("structuredContent"), |told, json| told.json("structuredContent", json))
            .maybe(members.get("_meta"), |told, json| told.json("_meta", json))
            // A task, or a question to the caller: there is nothing else to see of it.
            .maybe((content.is_none() && !members.is_empty()).then_some(result), |told, json| {
                told.json("result", json)
            });
        let content = items.into_iter().map(|item| annotated(item, &annotations)).collect();
        Part { content, told: told.done(), failed }
    }

    fn of_error(&self, index: usize, error: &[u8]) -> Part {
        let members = Members::of_any(error).unwrap_or_else(Members::none);
        let message = members.text("message").unwrap_or("the operation failed".into());
        let item = Compose::new().text("type", "text").text("text", &message).done();
        let told = self
            .told(index, true, 1)
            .maybe((!members.is_empty()).then_some(error), |told, error| told.json("error", error));
        Part { content: vec![annotated(&item, &self.annotations(index, true))], told: told.done(), failed: true }
    }

    /// Those of the operation; an item that has them already has the same.
    fn annotations(&self, index: usize, failed: bool) -> Vec<(&'static str, Vec<u8>)> {
        let texts = [
            ("proxyType", self.kind.map(Type::as_str)),
            ("proxyAction", self.action),
            ("proxyPath", self.path.as_deref()),
        ];
        let mut annotations: Vec<_> =
            texts.into_iter().filter_map(|(name, text)| Some((name, quoted(text?)))).collect();
        annotations.push(("proxyIndex", index.to_string().into()));
        if failed {
            annotations.push(("proxyError", b"true".to_vec()));
        }
        annotations
    }

    fn told(&self, index: usize, failed: bool, count: usize) -> Compose {
        Compose::new()
            .number("index", index)
            .maybe(self.action, |told, action| told.text("action", action))
            .maybe(self.kind, |told, kind| told.text("type", kind.as_str()))
            .maybe(self.path.as_deref(), |told, path| told.text("path", path))
            .flag("isError", failed)
            .number("count", count)
    }
}
