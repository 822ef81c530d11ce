//! `attach`: an instance on this terminal.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use mcp_control::Address;
use mcp_store::StateDir;
use mcp_tui::{Left, Options, Source, Theme};
use mcp_wire::visible::visible;

use super::which::Instance;
use super::{Face, label};
use crate::failure::{Failure, exit};
use crate::launch::{Terminals, no_terminal};
use crate::report::{ColorChoice, say};
use crate::{screen, shelf};

#[derive(Args)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    which: Instance,
    /// Only watch: never be the one who may act
    #[arg(long)]
    read_only: bool,
    /// Draw with plain letters, for terminals and fonts that have no others
    #[arg(long)]
    ascii: bool,
    /// The terminal's background: auto, light or dark
    #[arg(long, value_enum, default_value = "auto", value_name = "THEME", hide_possible_values = true)]
    theme: ThemeArg,
    /// Take the meaning of keys from this file
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ThemeArg {
    Auto,
    Light,
    Dark,
}

pub(super) fn attach(args: &AttachArgs, state: &StateDir, color: ColorChoice) -> Result<ExitCode, Failure> {
    if !Terminals::of_this_process().can_be_drawn_on() {
        return Err(no_terminal("`mcp-proxy attach`"));
    }
    let face = args.which.attach(state)?;
    let source = Source::Instance(Address::Socket(face.running.socket.clone()));
    let left = mcp_tui::run(source, shelf::library(state), args.options(color, doors(&face, state)?));
    if let Left::InstanceEnded(why) = left.map_err(|error| Failure::caused_by(exit::CANNOT_RUN, &error))? {
        say(&format!("mcp-proxy: {} has ended: {}", label(&face.running), visible(&why)));
    }
    Ok(ExitCode::SUCCESS)
}

/// How clients get into an instance that others can connect to.
fn doors(face: &Face, state: &StateDir) -> Result<Vec<String>, Failure> {
    let instance = face.ask(face.client.instance())?;
    let listens_at = instance.listen.parse().ok();
    Ok(listens_at.map(|at| screen::doors(state, &face.running.description.short_id(), at)).unwrap_or_default())
}

impl AttachArgs {
    fn options(&self, color: ColorChoice, doors: Vec<String>) -> Options {
        Options {
            ascii: self.ascii,
            theme: match self.theme {
                ThemeArg::Auto => Theme::Auto,
                ThemeArg::Light => Theme::Light,
                ThemeArg::Dark => Theme::Dark,
            },
            read_only: self.read_only,
            keys: self.keys.clone(),
            ..screen::options(color, doors)
        }
    }
}
