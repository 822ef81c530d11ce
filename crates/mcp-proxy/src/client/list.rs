//! `mcp-proxy list`: what a server has.

use std::process::ExitCode;

use clap::Args;
use mcp_client::{Listing, ProxyClient, Type, member, text_member};
use mcp_tui::width;
use mcp_wire::inert::inert;
use serde_json::value::RawValue;

use super::args::{ServerArgs, TypeArg};
use super::filter::FilterArgs;
use super::show::{first_line, shown};
use super::target::{self, StateOf};
use super::told;
use crate::failure::Failure;
use crate::report::{ColorChoice, Page, Style, say, terminal_width};

#[derive(Args)]
#[command(
    override_usage = "mcp-proxy list [OPTIONS] -- CMD [ARGS]...\n       mcp-proxy list [OPTIONS] --url URL\n       mcp-proxy list [OPTIONS] --config FILE --server NAME"
)]
pub(crate) struct ListArgs {
    /// List only this [default: all there is]
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    kind: Option<TypeArg>,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    server: ServerArgs,
}

/// What a list showed, and what of it was left out.
struct Section {
    kind: Type,
    listing: Listing,
    total: usize,
}

pub(crate) fn list(args: &ListArgs, state: StateOf<'_>, color: ColorChoice) -> Result<ExitCode, Failure> {
    let kinds = match args.kind {
        Some(kind) => vec![kind.into()],
        None => Type::ALL.to_vec(),
    };
    let (sections, failure) = target::with_client(&args.server, state, async |client: &ProxyClient| {
        let (mut sections, mut failure) = (Vec::new(), None);
        for kind in &kinds {
            match client.list(*kind).await {
                Ok(listing) => {
                    let (listing, total) = args.filter.pick(listing);
                    sections.push(Section { kind: *kind, listing, total });
                }
                // A server that refuses one list may have the others.
                Err(error) if error.rpc().is_some() && kinds.len() > 1 => {
                    failure.get_or_insert((*kind, told::failure(&error)));
                }
                Err(error) => return Err(told::failure(&error)),
            }
        }
        match (sections.is_empty(), failure) {
            (true, Some((_, failure))) => Err(failure),
            (_, failure) => Ok((sections, failure)),
        }
    })?;
    let mut page = Page::new(color);
    match args.server.json {
        true => page.line(&inert(&document(&sections)))?,
        false => print(&sections, terminal_width(), &mut page)?,
    }
    page.end()?;
    if !args.server.recording.quiet {
        say_what_is_missing(&sections, args.server.json);
    }
    match failure {
        Some((kind, failure)) => {
            Err(Failure::new(failure.code, format!("cannot list {}s: {}", kind.as_str(), failure.what())))
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

fn say_what_is_missing(sections: &[Section], is_json: bool) {
    if !is_json && sections.iter().all(|section| section.listing.items.is_empty()) {
        say("mcp-proxy: there is nothing to list");
    }
    if let Some(absent) = told::absent(sections.iter().map(|section| &section.listing)) {
        say(&format!("mcp-proxy: not in this list: {absent}"));
    }
}

/// The lists under the names that the protocol has for them.
fn document(sections: &[Section]) -> String {
    let list = |name: &str, items: Vec<&str>| format!("\"{name}\":[{}]", items.join(","));
    let mut members = Vec::new();
    for section in sections {
        let items = || section.listing.items.iter().map(AsRef::as_ref);
        let all = || items().map(RawValue::get).collect();
        let part = |is_template: bool| {
            items().filter(|item| member(item, "uriTemplate").is_some() == is_template).map(RawValue::get).collect()
        };
        match section.kind {
            Type::Tool => members.push(list("tools", all())),
            Type::Prompt => members.push(list("prompts", all())),
            Type::Resource => {
                members.push(list("resources", part(false)));
                members.push(list("resourceTemplates", part(true)));
            }
        }
    }
    format!("{{{}}}", members.join(","))
}

fn print(sections: &[Section], columns: Option<usize>, page: &mut Page) -> std::io::Result<()> {
    let has_headings = sections.len() > 1;
    let mut is_first = true;
    for Section { kind, listing, total } in sections {
        if listing.items.is_empty() {
            continue;
        }
        if has_headings {
            if !std::mem::take(&mut is_first) {
                page.line("")?;
            }
            page.line(&page.styled(Style::Heading, &format!("{}s", kind.as_str())))?;
        }
        let rows: Vec<Row> = listing.items.iter().map(|item| Row::of(item)).collect();
        lines(&rows, columns).iter().try_for_each(|line| page.line(line))?;
        let more = total - listing.items.len();
        if more > 0 {
            page.line(&page.styled(Style::Faint, &format!("and {more} more")))?;
        }
    }
    Ok(())
}

/// An item a line. On a terminal only a name or an address is ever wider than that, because a piece of one is of
/// no use.
fn lines(rows: &[Row], columns: Option<usize>) -> Vec<String> {
    let has_addresses = rows.iter().any(|row| !row.address.is_empty());
    // Straight columns are not worth the room that a narrow terminal has for descriptions.
    let most = columns.map_or(NAME_WIDTH, |columns| NAME_WIDTH.min(columns / if has_addresses { 3 } else { 2 }));
    let widest = |cell: fn(&Row) -> &String| rows.iter().map(|row| width(cell(row))).max().unwrap_or(0).min(most);
    let (name_width, address_width) = (widest(|row| &row.name), widest(|row| &row.address));
    let line = |Row { name, address, description }: &Row| {
        let mut line = padded(name, name_width);
        if address_width > 0 {
            line.push_str(&padded(address, address_width));
        }
        let left = columns.map(|columns| columns.saturating_sub(width(&line)));
        line.push_str(&cut(description, left));
        line.truncate(line.trim_end().len());
        line
    };
    rows.iter().map(line).collect()
}

/// A cell, and the gap behind it.
fn padded(text: &str, cells: usize) -> String {
    format!("{text}{:1$}  ", "", cells.saturating_sub(width(text)))
}

/// Columns for names and addresses; longer ones stick out.
const NAME_WIDTH: usize = 48;
/// Columns below which a description is left out: it would say nothing.
const DESCRIPTION_LEAST: usize = 8;

struct Row {
    name: String,
    /// Of a resource, or a template of resources.
    address: String,
    description: String,
}

impl Row {
    fn of(item: &RawValue) -> Self {
        let text = |key: &str| text_member(item, key);
        let address = text("uri").or_else(|| text("uriTemplate")).unwrap_or_default();
        let name = text("name").or_else(|| text("title")).unwrap_or_default();
        let said = text("description").or_else(|| text("title")).filter(|said| *said != name).unwrap_or_default();
        Self { name: shown(&name), address: shown(&address), description: first_line(&said) }
    }
}

/// What has room, to the end of a word.
fn cut(text: &str, room: Option<usize>) -> String {
    let Some(room) = room.filter(|room| width(text) > *room) else { return text.to_owned() };
    if room < DESCRIPTION_LEAST {
        return String::new();
    }
    let mut fits = &text[..text.char_indices().nth(room).map_or(text.len(), |(at, _)| at)];
    while width(fits) >= room {
        fits = &fits[..fits.floor_char_boundary(fits.len() - 1)];
    }
    let ends_a_word = text[fits.len()..].starts_with(' ');
    let words = fits.rsplit_once(' ').filter(|_| !ends_a_word).map_or(fits, |(words, _)| words);
    format!("{}…", words.trim_end_matches([' ', ',', ';', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_takes_one_line_of_a_terminal() {
        let row = |name: &str, address: &str, description: &str| Row {
            name: name.into(),
            address: address.into(),
            description: description.into(),
        };
        let description = "Reads a file and says what is in it, 漢字 and all, to the very last of its lines";
        let tools = [
            row("files__read_multiple_files", "", description),
            row("a", "", description),
            row("files__a_name_that_is_rather_long_for_a_tool", "", "short"),
        ];
        let resources = [row("notes", "mem://notes/of/a/day", description), row("b", "mem://b", "")];
        for columns in 48..130 {
            for rows in [&tools[..], &resources] {
                for line in lines(rows, Some(columns)) {
                    assert!(width(&line) <= columns, "{columns}: {line}");
                }
            }
        }
        let shown = lines(&tools, Some(80));
        assert!(shown[1].starts_with("a  ") && shown[1].ends_with('…'), "{shown:?}");
        assert!(lines(&tools, Some(20))[0] == "files__read_multiple_files", "names stay whole");
        assert!(lines(&tools, None).iter().take(2).all(|line| line.ends_with(description)), "a pipe gets it all");
    }

    #[test]
    fn descriptions_are_cut_at_a_word() {
        let text = "Returns the sum of two numbers";
        assert_eq!(cut(text, None), text);
        assert_eq!(cut(text, Some(30)), text);
        assert_eq!(cut(text, Some(29)), "Returns the sum of two…");
        assert_eq!(cut(text, Some(12)), "Returns the…");
        assert_eq!(cut(text, Some(7)), "", "there is no room to speak of");
        assert_eq!(cut("漢字の説明文", Some(9)), "漢字の説…");
        assert_eq!(cut("Supercalifragilisticexpialidocious", Some(20)), "Supercalifragilisti…");
    }
}
