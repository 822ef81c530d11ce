//! `held`: what waits for somebody, and what it says.

use clap::Args;
use mcp_control::api::{Held, Question};
use mcp_store::StateDir;
use mcp_wire::inert::inert;
use mcp_wire::visible::visible;

use super::which::{Acting, is_message, sequence};
use super::{Face, label, show};
use crate::failure::Failure;
use crate::inspect::{lines::Lines, payload};
use crate::report::{ColorChoice, Page, Style, duration};

#[derive(Args)]
#[command(override_usage = "mcp-proxy held [OPTIONS] [INSTANCE] [MESSAGE]")]
pub(crate) struct HeldArgs {
    /// The instance by its id, the beginning of it, or its name, not needed while only one runs; and a
    /// message by its number, such as `#6`, to see what it says
    #[arg(value_name = "INSTANCE|MESSAGE", num_args = 0..=2)]
    words: Vec<String>,
    /// The instance, as an option
    #[arg(long = "in", value_name = "INSTANCE")]
    within: Option<String>,
    /// Print what the messages say
    #[arg(long, short)]
    verbose: bool,
    /// One JSON object a line
    #[arg(long, conflicts_with = "verbose")]
    json: bool,
}

pub(super) fn held(args: &HeldArgs, state: &StateDir, color: ColorChoice) -> Result<(), Failure> {
    let (instance, message) = match args.words.as_slice() {
        [] => (None, None),
        [word] if is_message(word) => (None, Some(sequence(word)?)),
        [word] => (Some(word.as_str()), None),
        [instance, message, ..] => (Some(instance.as_str()), Some(sequence(message)?)),
    };
    let face = Acting { within: args.within.clone(), take: false }.attach(instance, state)?;
    let list = match message {
        Some(sequence) => vec![face.decide(sequence, face.client.held_message(sequence))?],
        None => face.ask(face.client.held())?.held,
    };
    let mut page = Page::new(color);
    if args.json {
        for held in &list {
            page.line(&inert(&serde_json::to_string(held).expect("plain data always serialises")))?;
        }
    } else if list.is_empty() {
        page.line(&format!("{} holds nothing", label(&face.running)))?;
    } else {
        print(&mut page, &face, list, args.verbose || message.is_some())?;
    }
    Ok(page.end()?)
}

fn print(page: &mut Page, face: &Face, list: Vec<Held>, verbose: bool) -> Result<(), Failure> {
    let several = list.iter().any(|held| held.conversation != list[0].conversation);
    let lines = Lines { show_conversation: several };
    let (asked, held): (Vec<Held>, Vec<Held>) = list.into_iter().partition(|held| held.asks.is_some());
    let is_apart = !held.is_empty() && !asked.is_empty();
    print_each(page, face, &lines, held, verbose)?;
    if is_apart {
        page.line("")?;
    }
    if let Some(advice) = answered_by(&asked, &face.which()) {
        page.line(&page.styled(Style::Heading, &advice))?;
    }
    print_each(page, face, &lines, asked, verbose)
}

/// `rules ask about 1 message; `mcp-proxy approve 6` lets it go on, `mcp-proxy deny 6` does not`
fn answered_by(asked: &[Held], which: &str) -> Option<String> {
    let first = asked.first()?.sequence;
    Some(match asked.len() {
        1 => format!(
            "a rule asks about 1 message: `mcp-proxy approve{which} {first}` lets it go on, `mcp-proxy deny{which} {first}` does not"
        ),
        count => format!(
            "rules ask about {count} messages: `mcp-proxy approve{which} {first}` lets the first go on, `mcp-proxy deny{which} {first}` does not"
        ),
    })
}

fn print_each(page: &mut Page, face: &Face, lines: &Lines, list: Vec<Held>, verbose: bool) -> Result<(), Failure> {
    for mut held in list {
        if verbose && held.message.raw_omitted {
            // It may have gone on by now; then the rest is shown.
            held = face.wait(face.client.held_message(held.sequence)).unwrap_or(held);
        }
        let mut told = show::told(&held.message);
        if held.asks.is_some() {
            // How long it waits, and for what, says it already.
            told.recorded.verdict = None;
        }
        page.line(&format!("{} {}", lines.line(page, &told), waits(page, &held)))?;
        if let Some(said) = held.asks.as_ref().and_then(|question| question.message.as_ref()) {
            page.line(&format!("    {}", visible(said)))?;
        }
        match held.message.raw_omitted {
            false if verbose => payload::print(page, &told.recorded, &[])?,
            true if verbose => page.line("    it went on before it could be shown")?,
            _ => {}
        }
    }
    Ok(())
}

/// `⏸ held 3.2s by b1, goes on in 41.8s`, `⏸ 3.2s: rule "writes" asks (write), denied in 41.8s`
fn waits(page: &Page, held: &Held) -> String {
    let (held_for, why) = (duration(held.held_ms * 1_000_000), visible(&held.why));
    let mut waits = match &held.asks {
        None => format!("⏸ held {held_for} by {why}"),
        Some(Question { operation, in_client, .. }) => {
            let operation = operation.as_ref().map(|operation| format!(" ({})", visible(operation)));
            let place = if *in_client { " in the client" } else { "" };
            format!("⏸ {held_for}: rule \"{why}\" asks{place}{}", operation.unwrap_or_default())
        }
    };
    if let Some(ms) = held.released_in_ms {
        waits.push_str(&format!(", {} in {}", show::ends(held), duration(ms * 1_000_000)));
    }
    if held.given_up {
        waits.push_str(&page.styled(Style::Bad, ", its sender no longer waits"));
    }
    waits
}
