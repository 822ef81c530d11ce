//! Whether a tool that a server lists is a proxy tool, and what it knows beyond the extension.

use crate::definition::DEFAULT_NAME;
use crate::members::Members;

/// A proxy tool of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyTool {
    pub name: String,
    /// Its schema has `limit` and `offset`.
    pub knows_paging: bool,
    /// Its schema has `objectify`. Such a tool also gives results of tools as they are, `structuredContent` included.
    pub knows_objectify: bool,
}

/// Finds the proxy tool among the items of `tools/list`: that of the given name, or else the one called `proxy`
/// or described as one.
pub fn find<'a>(items: impl IntoIterator<Item = &'a [u8]>, name: Option<&str>) -> Option<ProxyTool> {
    let mut described = None;
    for item in items {
        let Some(tool) = Members::of_any(item) else { continue };
        let Some(found) = tool.text("name") else { continue };
        let properties = properties(&tool);
        let is_it = match name {
            Some(name) => found == name,
            // Other things are called proxies, too; but a schema that says nothing does not speak against it.
            None => found == DEFAULT_NAME && (properties.is_empty() || has(&properties, "action")),
        };
        if is_it {
            return Some(known(&found, &properties));
        }
        if name.is_none() && described.is_none() && is_described(&tool, &properties) {
            described = Some(known(&found, &properties));
        }
    }
    described
}

/// The names of a tool's parameters.
fn properties(tool: &Members<'_>) -> Vec<String> {
    let schema = tool.get("inputSchema").and_then(Members::of);
    let properties = schema.as_ref().and_then(|schema| schema.get("properties")).and_then(Members::of);
    properties.iter().flat_map(Members::iter).filter_map(|(key, _)| key.map(Into::into)).collect()
}

fn has(properties: &[String], name: &str) -> bool {
    properties.iter().any(|property| property == name)
}

/// Whether the description has the words of such a tool, and the schema its parameters.
fn is_described(tool: &Members<'_>, properties: &[String]) -> bool {
    let description = tool.text("description").unwrap_or_default().to_lowercase();
    let says = |word: &str| description.contains(word);
    says("proxy")
        && ["list", "info", "call"].into_iter().any(says)
        && ["action", "type", "path"].into_iter().all(|name| has(properties, name))
}

fn known(name: &str, properties: &[String]) -> ProxyTool {
    ProxyTool {
        name: name.into(),
        knows_paging: has(properties, "limit") && has(properties, "offset"),
        knows_objectify: has(properties, "objectify"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tool of this name, description and parameters.
    fn tool(name: &str, description: &str, parameters: &[&str]) -> String {
        let properties: Vec<_> = parameters.iter().map(|name| format!(r#""{name}":{{}}"#)).collect();
        let schema = format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(","));
        format!(r#"{{"name":"{name}","description":"{description}","inputSchema":{schema}}}"#)
    }

    fn found(tools: &[String], name: Option<&str>) -> Option<String> {
        find(tools.iter().map(String::as_bytes), name).map(|tool| tool.name)
    }

    const OWN: [&str; 4] = ["action", "type", "path", "args"];

    #[test]
    fn it_is_found_by_name_or_description() {
        let (other, named) = (tool("read", "Reads", &["path"]), tool("proxy", "", &OWN));
        let described = tool("mcp:hub", "The PROXY tool: list, info and call", &OWN);
        assert_eq!(found(&[other.clone(), named.clone()], None).unwrap(), "proxy");
        assert_eq!(found(&[other.clone(), described.clone()], None).unwrap(), "mcp:hub");
        assert_eq!(found(&[described.clone(), named], None).unwrap(), "proxy");
        assert_eq!(found(&[other.clone(), described], Some("read")).unwrap(), "read");
        assert_eq!(found(&[other.clone(), r#"{"name":"proxy"}"#.into()], None).unwrap(), "proxy");
        assert_eq!(found(&[other], None), None);
    }

    #[test]
    fn other_proxies_are_not_it() {
        assert_eq!(found(&[tool("proxy", "Sets the proxy to call", &["host", "port"])], None), None);
        assert_eq!(found(&[tool("set", "Sets the proxy to call", &["action", "path"])], None), None);
        assert_eq!(found(&[tool("set", "Lists and calls", &OWN)], None), None);
        assert_eq!(found(&[tool("proxy", "list", &OWN)], Some("other")), None);
        assert_eq!(found(&["{".into(), "7".into(), "{}".into()], None), None);
    }

    #[test]
    fn what_it_knows_is_in_its_schema() {
        let know = |parameters: &[&str]| {
            let tool = find([tool("proxy", "", parameters).as_bytes()], None).unwrap();
            (tool.knows_paging, tool.knows_objectify)
        };
        assert_eq!(know(&OWN), (false, false));
        assert_eq!(know(&["action", "limit", "offset", "objectify"]), (true, true));
        assert_eq!(know(&["action", "limit"]), (false, false));
        let own = crate::definition::definition("proxy", false);
        let expected = ProxyTool { name: "proxy".into(), knows_paging: true, knows_objectify: true };
        assert_eq!(find([&*own], None), Some(expected));
    }
}
