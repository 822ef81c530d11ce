//! `held`: what waits for somebody.

use clap::Args;
use mcp_control::api::Held;
use mcp_store::StateDir;
use mcp_wire::visible::visible;

use super::which::Instance;
use super::{label, show};
use crate::failure::Failure;
use crate::inspect::json::inert;
use crate::inspect::lines::Lines;
use crate::report::{ColorChoice, Page, Style, duration};

#[derive(Args)]
pub struct HeldArgs {
    #[command(flatten)]
    which: Instance,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

pub fn held(args: &HeldArgs, state: &StateDir, color: ColorChoice) -> Result<(), Failure> {
    let face = args.which.attach(state)?;
    let list = face.ask(face.client.held())?.held;
    let mut page = Page::new(color);
    if args.json {
        for held in &list {
            page.line(&inert(&serde_json::to_string(held).expect("plain data always serialises")))?;
        }
    } else if list.is_empty() {
        page.line(&format!("{} holds nothing", label(&face.running)))?;
    } else {
        let several = list.iter().any(|held| held.conversation != list[0].conversation);
        let lines = Lines { show_conversation: several };
        for held in &list {
            page.line(&format!("{} {}", lines.line(&page, &show::told(&held.message)), waits(&page, held)))?;
        }
    }
    Ok(page.end()?)
}

/// `⏸ held 3.2s by b1, goes on in 41.8s`
fn waits(page: &Page, held: &Held) -> String {
    let mut waits = format!("⏸ held {} by {}", duration(held.held_ms * 1_000_000), visible(&held.why));
    if let Some(ms) = held.released_in_ms {
        waits.push_str(&format!(", goes on in {}", duration(ms * 1_000_000)));
    }
    if held.given_up {
        waits.push_str(&page.styled(Style::Bad, ", its sender no longer waits"));
    }
    waits
}
