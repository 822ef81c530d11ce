//! What a server has, as it says it.

use serde::Deserialize;
use serde_json::value::RawValue;

/// Items of a list, each as the server wrote it.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    pub items: Vec<Box<RawValue>>,
    /// Servers behind a gateway whose items would be there, and are not.
    pub absent: Vec<String>,
}

/// Where a gateway says who is missing in a list.
const ABSENT: &str = "io.github.mcp-proxy/absent";

impl Listing {
    /// The first item that is called so: by name, address or template of addresses.
    pub fn find(&self, path: &str) -> Option<&RawValue> {
        let by = |key: &str| self.items.iter().find(|item| text_member(item, key).as_deref() == Some(path));
        ["uri", "uriTemplate", "name"].into_iter().find_map(by).map(AsRef::as_ref)
    }

    /// Puts another list behind this one.
    pub(crate) fn append(&mut self, other: Self) {
        self.items.extend(other.items);
        self.miss(other.absent);
    }

    /// Notes who is missing, once each.
    fn miss(&mut self, absent: Vec<String>) {
        for server in absent {
            if !self.absent.contains(&server) {
                self.absent.push(server);
            }
        }
    }

    /// Notes who is missing in a result that has items of the list.
    pub(crate) fn miss_those_of(&mut self, result: &RawValue) {
        let absent = member(result, "_meta").and_then(|meta| member(meta, ABSENT));
        let absent: Option<Vec<Box<RawValue>>> = absent.and_then(|absent| serde_json::from_str(absent.get()).ok());
        self.miss(absent.iter().flatten().filter_map(|absent| text_member(absent, "server")).collect());
    }

    pub fn names(&self) -> impl Iterator<Item = String> {
        self.items.iter().filter_map(|item| text_member(item, "name"))
    }
}

/// A member of an object, as it is written there.
pub fn member<'a>(object: &'a RawValue, key: &str) -> Option<&'a RawValue> {
    let mut members: std::collections::BTreeMap<std::borrow::Cow<'_, str>, &RawValue> =
        serde_json::from_str(object.get()).ok()?;
    members.remove(key)
}

/// A member that is a string.
pub fn text_member(object: &RawValue, key: &str) -> Option<String> {
    String::deserialize(&mut serde_json::Deserializer::from_str(member(object, key)?.get())).ok()
}
