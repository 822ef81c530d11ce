//! `break add|list|rm`: filters that hold what they match, while the instance runs.

use clap::{Args, Subcommand};
use mcp_control::ClientError;
use mcp_control::api::{Breakpoint, Code, NewBreakpoint, Owner};
use mcp_filter::Filter;
use mcp_store::StateDir;
use mcp_wire::visible::visible;

use super::decide::each;
use super::which::{Acting, Instance};
use super::{Face, label};
use crate::failure::{Failure, exit};
use crate::report::{ColorChoice, Page, Style, duration};

#[derive(Subcommand)]
pub(crate) enum BreakCommand {
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
    /// Remove breakpoints; what they hold stays held until somebody decides, or its time is over
    Rm {
        /// Their names
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        #[command(flatten)]
        acting: Acting,
    },
}

#[derive(Args)]
pub(crate) struct AddArgs {
    /// What to hold: an expression as for --filter, such as `tool:write_*` or `> method:tools/call`
    #[arg(value_name = "FILTER")]
    filter: String,
    /// What to call it; chosen for you otherwise
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    acting: Acting,
}

pub(super) fn breakpoints(command: &BreakCommand, state: &StateDir, color: ColorChoice) -> Result<(), Failure> {
    let mut page = Page::new(color);
    match command {
        BreakCommand::Add(args) => {
            // What is wrong with it is shown in the expression itself, which an instance cannot do.
            Filter::parse(&args.filter)?;
            if args.filter.trim().is_empty() {
                return Err(Failure::usage("an empty filter matches every message")
                    .hint("`mcp-proxy hold on` holds everything, `mcp-proxy hold off` ends that"));
            }
            let face = args.acting.attach(None, state)?;
            let new = NewBreakpoint { name: args.name.clone(), filter: args.filter.clone() };
            let named = face.ask(face.client.add_breakpoint(&new))?;
            page.line(&format!("breakpoint {} holds what matches `{}`", visible(&named.name), visible(&args.filter)))?;
        }
        BreakCommand::List { which, json } => {
            let face = which.attach(state)?;
            let snapshot = face.ask(face.client.snapshot())?;
            let list = snapshot.breakpoints;
            match (json, list.is_empty()) {
                (true, _) => {
                    for breakpoint in &list {
                        let json = serde_json::to_string(breakpoint).expect("plain data always serialises");
                        page.line(&mcp_wire::inert::inert(&json))?;
                    }
                }
                (false, true) => page.line(&format!("{} has no breakpoints", label(&face.running)))?,
                (false, false) => print(&mut page, &list, snapshot.hold_limit_ms)?,
            }
        }
        BreakCommand::Rm { names, acting } => {
            let face = acting.attach(None, state)?;
            let removed = each(names, |name| {
                remove(&face, name)?;
                Ok(page.line(&format!("breakpoint {} is gone", visible(name)))?)
            });
            page.flush()?;
            removed?;
        }
    }
    Ok(page.end()?)
}

fn remove(face: &Face, name: &str) -> Result<(), Failure> {
    match face.wait(face.client.remove_breakpoint(name)) {
        Err(ClientError::Refused { fault, .. }) if fault.code == Code::NotFound => {
            let what = format!("there is no breakpoint `{}`", visible(name));
            let hint = format!("`mcp-proxy break list{}` shows those there are", face.which());
            Err(Failure::new(exit::NEGATIVE, what).hint(hint))
        }
        answered => face.ask(async { answered }).map(drop),
    }
}

fn print(page: &mut Page, list: &[Breakpoint], limit_ms: Option<u64>) -> Result<(), Failure> {
    let limit = limit_ms.map_or("until somebody decides".into(), |ms| format!("up to {}", duration(ms * 1_000_000)));
    let whens: Vec<String> = list
        .iter()
        .map(|breakpoint| match breakpoint.owner {
            Owner::Command | Owner::Policy => limit.clone(),
            Owner::Start | Owner::Face => format!("while a face is in control, {limit}"),
        })
        .collect();
    let widest = |texts: &[String]| texts.iter().map(|text| text.chars().count()).max().unwrap_or_default();
    let names: Vec<String> = list.iter().map(|breakpoint| visible(&breakpoint.name).to_string()).collect();
    let (width, long) = (widest(&names).max(4), widest(&whens));
    page.line(&page.styled(Style::Heading, &format!("{:<width$}  {:>8}  {:<long$}  FILTER", "NAME", "HITS", "HOLDS")))?;
    for ((breakpoint, name), when) in list.iter().zip(&names).zip(&whens) {
        page.line(&format!("{name:<width$}  {:>8}  {when:<long$}  {}", breakpoint.hits, visible(&breakpoint.filter)))?;
    }
    Ok(())
}
