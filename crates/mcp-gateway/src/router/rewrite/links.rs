//! Links inside what a server says: addresses of resources and ids of tasks.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use bytes::Bytes;
use mcp_wire::{Message, scan, splice};
use memchr::memmem::Finder;

use crate::router::Namespace;
use crate::router::place::{Edits, change_text, is_object, items, members};

/// Results within results (of tasks) and contents within contents (of tools that a model used) whose links are
/// rewritten.
const NESTED_MAX: usize = 4;
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The edits that rewrite the links of an answer to a request of this method.
pub fn answer(ns: &Namespace, method: &str, answer: &Message) -> Edits {
    let mut edits = Edits::new();
    if !has_links(method) || !may_have_links(ns, answer) {
        return edits;
    }
    let answer = answer.bytes();
    let mut links = Links::new(ns, answer, &mut edits);
    for result in members(answer, 0..answer.len(), "result") {
        links.result(result, NESTED_MAX);
    }
    for error in members(answer, 0..answer.len(), "error") {
        links.error(error);
    }
    edits
}

/// A notification of a server's, or a request, with its links rewritten.
pub fn notification(ns: &Namespace, message: Bytes) -> Bytes {
    let message = Message::new(message);
    let may_have_links = may_have_links(ns, &message);
    let message = message.into_bytes();
    if !may_have_links {
        return message;
    }
    let method = scan::member_at(&message, ["method"]).and_then(|method| scan::decode_string(&message[method.range()]));
    let mut edits = Edits::new();
    let mut links = Links::new(ns, &message, &mut edits);
    for params in members(&message, 0..message.len(), "params") {
        match method.as_deref() {
            Some("notifications/resources/updated") => links.resource(params),
            Some("notifications/subscriptions/acknowledged") => links.acknowledged(params),
            // They tell of a task as its answers do.
            Some("notifications/tasks" | "notifications/tasks/status") => links.result(params, NESTED_MAX),
            Some("sampling/createMessage") => links.asked(params),
            _ => links.metas_of(params),
        }
    }
    drop(method);
    spliced(message, edits)
}

fn has_links(method: &str) -> bool {
    let about_resources = matches!(method, "resources/read" | "resources/subscribe" | "resources/unsubscribe");
    let others = matches!(method, "tools/call" | "prompts/get" | "completion/complete");
    about_resources || others || method.starts_with("tasks/")
}

fn spliced(message: Bytes, mut edits: Edits) -> Bytes {
    if edits.is_empty() { message } else { splice::splice_all(&message, &mut edits) }
}

/// Whether any member stands in a message that a link could be. Says no quickly, and never wrongly: a key
/// that is spelled with escapes is taken for one.
pub(super) fn may_have_links(ns: &Namespace, message: &Message) -> bool {
    static TASK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("taskId"));
    static ADDRESSES: LazyLock<[Finder<'static>; 3]> =
        LazyLock::new(|| ["\"uri\"", "esourceUri\"", "resourceSubscriptions"].map(Finder::new));
    let bytes = message.bytes();
    TASK.find(bytes).is_some()
        || (ns.is_prefixed() && ADDRESSES.iter().any(|address| address.find(bytes).is_some()))
        || (message.has_escapes() && spells_letters_as_escapes(bytes))
}

/// Nobody who writes JSON escapes plain letters (`\u0041` to `\u007a`) but to hide them.
fn spells_letters_as_escapes(message: &[u8]) -> bool {
    static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\\u00"));
    ESCAPE.find_iter(message).any(|at| matches!(message.get(at + 4), Some(b'4'..=b'7')))
}

/// Rewrites the links of one message.
pub(super) struct Links<'a> {
    ns: &'a Namespace,
    bytes: &'a [u8],
    edits: &'a mut Edits,
}

impl<'a> Links<'a> {
    pub(super) fn new(ns: &'a Namespace, bytes: &'a [u8], edits: &'a mut Edits) -> Self {
        Self { ns, bytes, edits }
    }

    /// What is in the `_meta` of an object.
    pub(super) fn metas_of(&mut self, object: Range<usize>) {
        for meta in members(self.bytes, object, "_meta") {
            self.meta(meta);
        }
    }

    fn meta(&mut self, meta: Range<usize>) {
        for (key, value) in self.members(meta) {
            match &*key {
                "ui" => self.each(value, "resourceUri", Self::uri),
                "ui/resourceUri" => self.uri(value),
                RELATED_TASK => self.each(value, "taskId", Self::task),
                _ => {}
            }
        }
    }

    /// A result, or what tells of a task.
    fn result(&mut self, result: Range<usize>, nested: usize) {
        for (key, value) in self.members(result) {
            match &*key {
                "_meta" => self.meta(value),
                "content" => self.contents(value, nested),
                "contents" => self.each_item(value, Self::resource),
                "messages" => self.messages(value, nested),
                "taskId" => self.task(value),
                "task" => self.each(value, "taskId", Self::task),
                "tasks" => self.each_item(value, |links, task| links.each(task, "taskId", Self::task)),
                "inputRequests" => self.questions(value),
                "result" if nested > 0 => self.result(value, nested - 1),
                "error" => self.error(value),
                _ => {}
            }
        }
    }

    /// The requests that an answer puts to the client instead.
    fn questions(&mut self, questions: Range<usize>) {
        for (_, question) in self.members(questions) {
            self.each(question, "params", Self::asked);
        }
    }

    fn asked(&mut self, params: Range<usize>) {
        self.metas_of(params.clone());
        self.each(params, "messages", |links, messages| links.messages(messages, NESTED_MAX));
    }

    fn messages(&mut self, messages: Range<usize>, nested: usize) {
        self.each_item(messages, |links, message| {
            links.metas_of(message.clone());
            links.each(message, "content", |links, content| links.contents(content, nested));
        });
    }

    /// One content, or a list of them.
    fn contents(&mut self, contents: Range<usize>, nested: usize) {
        if is_object(self.bytes, &contents) {
            return self.content(contents, nested);
        }
        self.each_item(contents, |links, content| links.content(content, nested));
    }

    fn content(&mut self, content: Range<usize>, nested: usize) {
        self.metas_of(content.clone());
        let bytes = self.bytes;
        let kinds = members(bytes, content.clone(), "type").filter_map(|kind| scan::decode_string(&bytes[kind]));
        let kinds: BTreeSet<_> = kinds.collect();
        if kinds.contains("resource_link") {
            self.each(content.clone(), "uri", Self::uri);
        }
        if kinds.contains("resource") {
            self.each(content.clone(), "resource", Self::resource);
        }
        if kinds.contains("tool_result") && nested > 0 {
            self.each(content, "content", |links, contents| links.contents(contents, nested - 1));
        }
    }

    /// A resource, or whatever else has an address and `_meta`.
    fn resource(&mut self, resource: Range<usize>) {
        self.metas_of(resource.clone());
        self.each(resource, "uri", Self::uri);
    }

    fn acknowledged(&mut self, params: Range<usize>) {
        self.metas_of(params.clone());
        self.each(params, "notifications", |links, granted| {
            links.each(granted, "resourceSubscriptions", |links, uris| links.each_item(uris, Self::uri));
        });
    }

    /// Errors about a resource name it.
    fn error(&mut self, error: Range<usize>) {
        self.each(error, "data", |links, data| links.each(data, "uri", Self::uri));
    }

    fn uri(&mut self, value: Range<usize>) {
        if self.ns.is_prefixed() {
            change_text(self.bytes, value, self.edits, |uri| Some(self.ns.uri(uri)));
        }
    }

    fn task(&mut self, value: Range<usize>) {
        change_text(self.bytes, value, self.edits, |task| Some(self.ns.task(task)));
    }

    fn each(&mut self, object: Range<usize>, name: &str, mut visit: impl FnMut(&mut Self, Range<usize>)) {
        for value in members(self.bytes, object, name).collect::<Vec<_>>() {
            visit(self, value);
        }
    }

    fn each_item(&mut self, list: Range<usize>, mut visit: impl FnMut(&mut Self, Range<usize>)) {
        items(self.bytes, list).for_each(|item| visit(self, item));
    }

    fn members(&self, object: Range<usize>) -> impl Iterator<Item = (Cow<'a, str>, Range<usize>)> + use<'a> {
        let start = object.start;
        scan::object_members(&self.bytes[object]).map(move |(key, value)| (key, value.shifted(start).range()))
    }
}
