//! `mcp-proxy info`: what one capability is, and what it takes.

use std::process::ExitCode;

use clap::Args;
use mcp_client::{ClientError, Listing, ProxyClient, Type, text_member};
use mcp_wire::inert::inert;
use serde_json::value::RawValue;

use super::args::{ServerArgs, TypeArg};
use super::schema::{Parameter, parameters};
use super::show::{shown, shown_lines};
use super::target::{self, StateOf};
use super::told;
use crate::failure::Failure;
use crate::report::{ColorChoice, Page, Style};

#[derive(Args)]
#[command(
    override_usage = "mcp-proxy info [OPTIONS] PATH -- CMD [ARGS]...\n       mcp-proxy info [OPTIONS] PATH --url URL\n       mcp-proxy info [OPTIONS] PATH --config FILE --server NAME"
)]
pub(crate) struct InfoArgs {
    /// The name of a tool or prompt, or the address of a resource
    path: String,
    /// What it is [default: what the server has of that name]
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    kind: Option<TypeArg>,
    #[command(flatten)]
    server: ServerArgs,
}

/// A capability that was looked up.
pub(super) struct Known {
    pub kind: Type,
    pub item: Box<RawValue>,
}

pub(crate) fn info(args: &InfoArgs, state: StateOf<'_>, color: ColorChoice) -> Result<ExitCode, Failure> {
    let kind = args.kind.map(Type::from);
    let known =
        target::with_client(&args.server, state, async |client: &ProxyClient| find(client, kind, &args.path).await)?;
    let mut page = Page::new(color);
    match args.server.json {
        true => page.line(&inert(known.item.get()))?,
        false => print(&known, &mut page)?,
    }
    page.end()?;
    Ok(ExitCode::SUCCESS)
}

/// Looks for something of that name: a tool, then a prompt, then a resource, unless it is said what it is.
pub(super) async fn find(client: &ProxyClient, kind: Option<Type>, path: &str) -> Result<Known, Failure> {
    let kinds = match kind {
        Some(kind) => vec![kind],
        None if path.contains("://") => vec![Type::Resource],
        None => vec![Type::Tool, Type::Prompt, Type::Resource],
    };
    for kind in &kinds {
        match client.info(*kind, path).await {
            Ok(item) => return Ok(Known { kind: *kind, item }),
            // Who is asked for one thing by its name says in one of these ways that there is none.
            Err(ClientError::NoSuch { .. } | ClientError::Refused(_)) => {}
            Err(ClientError::Rpc(error)) if is_unknown(error.code) => {}
            Err(error) => return Err(told::failure(&error)),
        }
    }
    let mut lists = Vec::new();
    for kind in &kinds {
        let Ok(listing) = client.list(*kind).await else { continue };
        // A proxy tool need not know resources by their names.
        if let Some(item) = listing.find(path).filter(|_| *kind == Type::Resource) {
            return Ok(Known { kind: *kind, item: item.to_owned() });
        }
        lists.push(listing);
    }
    Err(unknown(&kinds, &lists, path))
}

/// What servers answer about what they do not have: unknown method, bad params, no such resource.
fn is_unknown(code: i64) -> bool {
    matches!(code, -32601 | -32602 | -32002)
}

fn unknown(kinds: &[Type], lists: &[Listing], path: &str) -> Failure {
    let items = || lists.iter().flat_map(|listing| &listing.items);
    let names: Vec<String> = ["uri", "uriTemplate", "name"]
        .iter()
        .flat_map(|key| items().filter_map(|item| text_member(item, key)))
        .collect();
    let what = match kinds {
        [kind] => kind.as_str(),
        _ => "tool, prompt or resource",
    };
    let absent = told::absent(lists).map(|absent| format!(" (not in its list: {absent})")).unwrap_or_default();
    let failure = Failure::usage(format!("the server has no {what} `{path}`{absent}"));
    failure.hint(match suggestion(path, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`mcp-proxy list` shows what it has".to_owned(),
    })
}

/// What may be meant: behind a gateway also what is called so but for the server in front of it.
fn suggestion<'a>(path: &str, names: &'a [String]) -> Option<&'a str> {
    let bare = |name: &'a str| name.split_once("__").map_or(name, |(_, bare)| bare);
    let names = || names.iter().map(String::as_str);
    let near_bare = || mcp_filter::nearest(path, names().map(bare));
    let exact = names().find(|name| bare(name) == path);
    exact
        .or_else(|| mcp_filter::nearest(path, names()))
        .or_else(|| near_bare().and_then(|near| names().find(|name| bare(name) == near)))
}

fn print(known: &Known, page: &mut Page) -> std::io::Result<()> {
    let text = |key: &str| text_member(&known.item, key);
    let path = ["uri", "uriTemplate", "name"].into_iter().find_map(text).unwrap_or_default();
    let heading = page.styled(Style::Heading, &shown(&path));
    page.line(&format!("{heading} ({})", known.kind.as_str()))?;
    for key in ["title", "name"] {
        if let Some(said) = text(key).filter(|said| *said != path) {
            page.line(&shown(&said))?;
        }
    }
    if let Some(description) = text("description") {
        page.line(&format!("\n{}", shown_lines(description.trim())))?;
    }
    if let Some(mime_type) = text("mimeType") {
        page.line(&format!("\ncontent: {}", shown(&mime_type)))?;
    }
    let parameters = parameters(known.kind, &known.item);
    if !parameters.is_empty() {
        page.line("\nparameters:")?;
    }
    print_parameters(&parameters, "  ", page)
}

fn print_parameters(parameters: &[Parameter], indent: &str, page: &mut Page) -> std::io::Result<()> {
    let width = parameters.iter().map(|parameter| shown(&parameter.name).chars().count()).max().unwrap_or(0);
    for parameter in parameters {
        let types = shown(&parameter.shown_types());
        let described = parameter.description.as_deref().map(|text| format!("  {}", shown(text))).unwrap_or_default();
        let line = format!("{indent}{:width$}  {types}{described}", shown(&parameter.name));
        page.line(line.trim_end())?;
        print_parameters(&parameter.fields, &format!("{indent}    "), page)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_suggested_without_their_server_too() {
        let names = ["everything__get-sum", "files__read_file", "add"].map(str::to_owned);
        assert_eq!(suggestion("get-sum", &names), Some("everything__get-sum"));
        assert_eq!(suggestion("raed_file", &names), Some("files__read_file"));
        assert_eq!(suggestion("ad", &names), Some("add"));
        assert_eq!(suggestion("quite-different", &names), None);
    }
}
