//! The notes of a session as the member `metadata`. The program's own are strings. A file of another program may
//! have any JSON there, and keeps it through the store.

use std::collections::{BTreeMap, BTreeSet};

use mcp_wire::layout::compact;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::recorded::SessionHeader;
use crate::session::Summary;

/// Notes as they are written.
pub(crate) struct Metadata<'a> {
    pub notes: &'a BTreeMap<String, String>,
    /// Those whose text is JSON.
    pub json: &'a BTreeSet<String>,
}

/// Notes as they are read.
pub(super) type Listed = BTreeMap<String, Box<RawValue>>;

impl Summary {
    pub(crate) fn metadata(&self) -> Metadata<'_> {
        Metadata { notes: &self.notes, json: &self.header.json_notes }
    }
}

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.notes.len()))?;
        for (key, text) in self.notes {
            // A later note, or a mask, may have taken the place of the JSON.
            let json = self.json.contains(key).then(|| serde_json::from_str::<&RawValue>(text).ok()).flatten();
            match json {
                Some(json) => map.serialize_entry(key, json)?,
                None => map.serialize_entry(key, text)?,
            }
        }
        map.end()
    }
}

/// Adds what a file lists to the notes of a header.
pub(super) fn take(listed: Listed, header: &mut SessionHeader) {
    for (key, value) in listed {
        match serde_json::from_str::<String>(value.get()) {
            Ok(text) => {
                header.json_notes.remove(&key);
                header.notes.insert(key, text);
            }
            Err(_) => {
                header.json_notes.insert(key.clone());
                header.notes.insert(key, compact(value.get()));
            }
        }
    }
}
