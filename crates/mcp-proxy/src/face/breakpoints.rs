//! `break add|list|rm`: filters that hold what they match, while the instance runs.

use clap::{Args, Subcommand};
use mcp_control::api::{Breakpoint, NewBreakpoint, Owner};
use mcp_filter::Filter;
use mcp_store::StateDir;
use mcp_wire::visible::visible;

use super::label;
use super::which::{Acting, Instance};
use crate::failure::Failure;
use crate::report::{ColorChoice, Page, Style};

#[derive(Subcommand)]
pub enum BreakCommand {
    /// Hold what a filter matches, from now on
    Add(AddArgs),
    /// List the breakpoints
    List {
        #[command(flatten)]
        which: Instance,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Remove a breakpoint; what it holds stays held until somebody decides, or its time is over
    Rm {
        /// Its name
        name: String,
        #[command(flatten)]
        acting: Acting,
    },
}

#[derive(Args)]
pub struct AddArgs {
    /// What to hold: an expression as for --filter, such as `tool:write_*` or `> method:tools/call`
    #[arg(value_name = "FILTER")]
    filter: String,
    /// What to call it; chosen for you otherwise
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    acting: Acting,
}

pub fn breakpoints(command: &BreakCommand, state: &StateDir, color: ColorChoice) -> Result<(), Failure> {
    let mut page = Page::new(color);
    match command {
        BreakCommand::Add(args) => {
            // What is wrong with it is shown in the expression itself, which an instance cannot do.
            Filter::parse(&args.filter)?;
            let face = args.acting.attach(None, state)?;
            let new = NewBreakpoint { name: args.name.clone(), filter: args.filter.clone() };
            let named = face.ask(face.client.add_breakpoint(&new))?;
            page.line(&format!("breakpoint {} holds what matches `{}`", visible(&named.name), visible(&args.filter)))?;
        }
        BreakCommand::List { which, json } => {
            let face = which.attach(state)?;
            let list = face.ask(face.client.breakpoints())?.breakpoints;
            match (json, list.is_empty()) {
                (true, _) => {
                    for breakpoint in &list {
                        let json = serde_json::to_string(breakpoint).expect("plain data always serialises");
                        page.line(&crate::inspect::json::inert(&json))?;
                    }
                }
                (false, true) => page.line(&format!("{} has no breakpoints", label(&face.running)))?,
                (false, false) => print(&mut page, &list)?,
            }
        }
        BreakCommand::Rm { name, acting } => {
            let face = acting.attach(None, state)?;
            face.ask(face.client.remove_breakpoint(name))?;
            page.line(&format!("breakpoint {} is gone", visible(name)))?;
        }
    }
    Ok(page.end()?)
}

fn print(page: &mut Page, list: &[Breakpoint]) -> Result<(), Failure> {
    let names: Vec<String> = list.iter().map(|breakpoint| visible(&breakpoint.name).to_string()).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default().max(4);
    page.line(&page.styled(Style::Heading, &format!("{:<width$}  {:>8}  {:<18}  FILTER", "NAME", "HELD", "HOLDS")))?;
    for (breakpoint, name) in list.iter().zip(&names) {
        let when = match breakpoint.owner {
            Owner::Command => "up to the limit",
            Owner::Start | Owner::Face => "while a face is in control",
        };
        page.line(&format!("{name:<width$}  {:>8}  {when:<18}  {}", breakpoint.hits, visible(&breakpoint.filter)))?;
    }
    Ok(())
}
