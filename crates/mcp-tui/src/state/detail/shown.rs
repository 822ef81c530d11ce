//! A message as it is drawn, made once for each message and view.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use mcp_control::api::Message;

use crate::diff::{Diff, diff_json};
use crate::json::{Document, Pretty, Tree, Wrap};

#[derive(Default)]
pub(crate) struct Shown {
    /// Whose.
    of: Option<u64>,
    document: Option<Arc<Document>>,
    pub pretty: Option<Pretty>,
    pub tree: Option<Tree>,
    pub raw: Option<Wrap>,
    pub diff: Option<Diff>,
    /// The two that are compared.
    compared: Option<(u64, Option<u64>)>,
    pub pair: Option<(u64, Pretty)>,
}

impl Shown {
    /// It is another now.
    pub(crate) fn forget(&mut self, sequence: u64) {
        if self.of == Some(sequence) {
            *self = Self::default();
        } else {
            self.pair.take_if(|(of, _)| *of == sequence);
            self.compared.take_if(|(_, other)| *other == Some(sequence));
        }
    }

    fn turn_to(&mut self, message: &Message) {
        if self.of != Some(message.sequence) {
            *self = Self { of: Some(message.sequence), ..Self::default() };
        }
    }

    fn document(&mut self, message: &Message) -> Option<Arc<Document>> {
        self.turn_to(message);
        if self.document.is_none() {
            self.document = read(message);
        }
        self.document.clone()
    }

    pub(crate) fn pretty(&mut self, message: &Message) -> Option<&Pretty> {
        let document = self.document(message)?;
        Some(self.pretty.get_or_insert_with(|| Pretty::new(document)))
    }

    pub(crate) fn tree(&mut self, message: &Message) -> Option<&Tree> {
        let document = self.document(message)?;
        Some(self.tree.get_or_insert_with(|| Tree::new(document)))
    }

    /// The bytes as they came, in lines of a width.
    pub(crate) fn raw(&mut self, message: &Message, width: usize) -> &mut Wrap {
        self.turn_to(message);
        self.raw.take_if(|raw| raw.width() != width);
        self.raw.get_or_insert_with(|| Wrap::new(bytes(message), width))
    }

    /// What it was against what was sent, or another message against this one.
    pub(crate) fn diff(&mut self, message: &Message, other: Option<&Message>) -> Option<&Diff> {
        self.turn_to(message);
        let which = (message.sequence, other.map(|other| other.sequence));
        if self.compared != Some(which) {
            let raw = message.raw.as_ref()?.get();
            let left = match other {
                Some(other) => other.raw.as_ref()?.get(),
                None => message.original_raw.as_ref()?.get(),
            };
            self.diff = Some(diff_json(left, raw, &[]));
            self.compared = Some(which);
        }
        self.diff.as_ref()
    }

    pub(crate) fn pair(&mut self, pair: &Message) -> Option<&Pretty> {
        self.pair.take_if(|(of, _)| *of != pair.sequence);
        if self.pair.is_none() {
            self.pair = Some((pair.sequence, Pretty::new(read(pair)?)));
        }
        self.pair.as_ref().map(|(_, pretty)| pretty)
    }
}

fn read(message: &Message) -> Option<Arc<Document>> {
    let raw = message.raw.as_ref()?;
    Document::parse(raw.get()).ok().map(Arc::new)
}

/// What came, as text: what is no UTF-8 in it is replaced.
pub(crate) fn bytes(message: &Message) -> String {
    match (&message.raw, &message.raw_base64) {
        (Some(raw), _) => raw.get().to_owned(),
        (None, Some(base64)) => {
            String::from_utf8_lossy(&BASE64_STANDARD.decode(base64).unwrap_or_default()).into_owned()
        }
        (None, None) => String::new(),
    }
}
