//! Rules: read from a file, checked, explained, and put in front of a server.

mod check;
mod explain;
mod file;
mod govern;
mod hints;
mod init;
mod native;
mod remarks;
mod service;
mod services;
mod watch;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Subcommand;
use mcp_store::StateDir;

pub(crate) use govern::{GovernArgs, Governing, Site};
pub(crate) use watch::{Stamp, stamp};

use crate::config::{Located, Reading};
use crate::failure::Failure;
use crate::report::{ColorChoice, Page};
use service::Naming;

#[derive(Subcommand)]
pub(crate) enum PolicyCommand {
    /// Say whether rules files are right, and what they say
    Check(check::CheckArgs),
    /// Say what a tool does, which rules match a call of it, and which decides
    Explain(explain::ExplainArgs),
    /// Write a rules file to begin with
    Init(init::InitArgs),
}

/// Rules that stand in another file, under `policy`. What is wrong with them is noted.
pub(crate) fn read_inline(policy: &Located, reading: &mut Reading<'_>) -> Option<()> {
    native::read(policy, Naming::default(), reading).map(drop)
}

/// Whether a rules file can be used in front of these servers of a gateway, what it says, and what to note.
pub(crate) fn summary_of(path: &Path, servers: &[Arc<str>]) -> Result<(String, Vec<String>), Failure> {
    let read = file::read(path, Naming { servers, ..Naming::default() })?;
    Ok((check::summary(&read), read.remarks))
}

/// `mcp-proxy policy …`
pub(crate) fn policy(
    command: &PolicyCommand,
    state: &dyn Fn() -> Result<StateDir, Failure>,
    color: ColorChoice,
) -> Result<ExitCode, Failure> {
    let mut page = Page::new(color);
    let code = match command {
        PolicyCommand::Check(args) => check::check(args, &mut page)?,
        PolicyCommand::Explain(args) => explain::explain(args, state, &mut page)?,
        PolicyCommand::Init(args) => init::init(args, &mut page).map(|()| ExitCode::SUCCESS)?,
    };
    page.end()?;
    Ok(code)
}

#[cfg(test)]
mod tests;
