//! One thing that a server offers, by its definition.

use std::borrow::Cow;

use mcp_control::api::Message;

use crate::json::{Document, NodeId, Shape};
use crate::text;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Tool,
    Prompt,
    Resource,
    Template,
}

impl Sort {
    pub(crate) const ALL: [Self; 4] = [Self::Tool, Self::Prompt, Self::Resource, Self::Template];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
        }
    }

    /// What a method lists.
    pub(crate) fn listed_by(method: Option<&str>) -> Option<Self> {
        Some(match method? {
            "tools/list" => Self::Tool,
            "prompts/list" => Self::Prompt,
            "resources/list" => Self::Resource,
            "resources/templates/list" => Self::Template,
            _ => return None,
        })
    }

    /// The member of a result that has them.
    pub(crate) fn member(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Prompt => "prompts",
            Self::Resource => "resources",
            Self::Template => "resourceTemplates",
        }
    }

    /// The member of a definition by which it is known.
    fn name(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "name",
            Self::Resource => "uri",
            Self::Template => "uriTemplate",
        }
    }
}

/// None of its texts is clean.
#[derive(Debug)]
pub(crate) struct Offer {
    pub sort: Sort,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    /// The definition as it was spelled.
    pub definition: String,
    /// The schema of its arguments, as it was spelled.
    pub schema: Option<String>,
    /// What the server says that it does: words of ours.
    pub hints: Vec<&'static str>,
    /// Something in it cannot be seen as it is: names, words, anything in the schema.
    pub is_hiding: bool,
    /// The request that was answered with the list, and the revision that was spoken.
    pub request: Option<u64>,
    pub revision: Option<String>,
}

const HINTS: [(&str, &str); 4] = [
    ("readOnlyHint", "read-only"),
    ("destructiveHint", "destructive"),
    ("idempotentHint", "idempotent"),
    ("openWorldHint", "open-world"),
];

impl Offer {
    /// Reads an item of a list; `None` if it has no name.
    pub(crate) fn read(sort: Sort, definition: &str, listed: &Message) -> Option<Self> {
        let document = Document::parse(definition).ok()?;
        if document.shape(0) != Shape::Object {
            return None;
        }
        let string = |name: &str| document.member(0, name).and_then(|node| document.string(node)).map(Cow::into_owned);
        let title = string("title").or_else(|| string("name").filter(|_| sort.name() != "name"));
        Some(Self {
            sort,
            name: string(sort.name())?,
            title,
            description: string("description"),
            schema: document.member(0, "inputSchema").map(|schema| document.source(schema).to_owned()),
            hints: hints(&document),
            is_hiding: is_hiding(&document),
            definition: definition.to_owned(),
            request: listed.answers,
            revision: listed.revision.clone(),
        })
    }

    /// What it says of itself, on one line: title, then the first line of the description. Not clean.
    pub(crate) fn about(&self) -> String {
        let first = self.description.as_deref().and_then(|words| words.trim_start().lines().next());
        [self.title.as_deref(), first].into_iter().flatten().collect::<Vec<_>>().join(": ")
    }

    /// Whether all these words, in lower case, are in what it says of itself.
    pub(crate) fn has(&self, words: &[String]) -> bool {
        let fields = [Some(self.sort.word()), Some(&self.name), self.title.as_deref(), self.description.as_deref()];
        let text = fields.into_iter().flatten().collect::<Vec<_>>().join("\n").to_lowercase();
        words.iter().all(|word| text.contains(word))
    }
}

fn hints(document: &Document) -> Vec<&'static str> {
    let Some(annotations) = document.member(0, "annotations") else { return Vec::new() };
    let is_said = |name: &str| document.member(annotations, name).is_some_and(|hint| document.source(hint) == "true");
    HINTS.into_iter().filter(|(name, _)| is_said(name)).map(|(_, word)| word).collect()
}

/// Whether some text in a definition has characters that cannot be seen, or that turn what is around them.
fn is_hiding(document: &Document) -> bool {
    // An escape may spell such a character, and most definitions have neither.
    let source = document.text();
    if source.is_ascii() && !["\\u", "\\b", "\\f", "\u{7f}"].iter().any(|escape| source.contains(escape)) {
        return false;
    }
    let hides =
        |words: Cow<'_, str>| words.split(['\n', '\r', '\t']).any(|line| matches!(text::clean(line), Cow::Owned(_)));
    let has_hidden = |node: NodeId| document.key(node).is_some_and(hides) || document.string(node).is_some_and(hides);
    (0..document.len() as NodeId).any(has_hidden)
}
