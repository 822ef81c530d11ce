//! The whole story, offline: a scripted client talks to a bundled server through the real proxy, in
//! processes of their own. On a terminal one works its traffic, led by a coach; elsewhere the recording
//! is printed with a word to each step.

mod client;
mod live;
mod plain;
pub(crate) mod server;

use clap::Args;

use crate::failure::{Failure, exit};
use crate::launch::Terminals;
use crate::report::ColorChoice;

/// The word that makes this program the bundled server instead.
pub(crate) const SERVER_WORD: &str = "__demo-server";

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Print an annotated transcript, as is done where there is no terminal
    #[arg(long)]
    plain: bool,
    /// Draw with plain letters, for terminals and fonts that have no others
    #[arg(long, conflicts_with = "plain")]
    ascii: bool,
}

pub(crate) fn demo(args: &DemoArgs, color: ColorChoice) -> Result<(), Failure> {
    let terminals = Terminals::of_this_process();
    match args.plain || !terminals.can_be_drawn_on() || !terminals.foreground {
        true => plain::demo(color),
        false => live::demo(args.ascii, color),
    }
}

fn broken(what: &str) -> Failure {
    Failure::new(exit::CANNOT_RUN, format!("the demo did not go as it should: {what}")).hint("mcp-proxy doctor")
}
