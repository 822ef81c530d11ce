//! `connect`: a stdio client's way into an instance that runs already.

use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use clap::Args;
use mcp_control::Instances;
use mcp_control::instances::Running;
use mcp_store::StateDir;
use mcp_transport::stdio::relay;
use mcp_transport::stdio::through::{self, Ended};

use super::which::Instance;
use super::{label, runtime};
use crate::failure::{Failure, exit};

#[derive(Args)]
pub(crate) struct ConnectArgs {
    #[command(flatten)]
    which: Instance,
}

pub(super) fn connect(args: &ConnectArgs, state: &StateDir) -> Result<ExitCode, Failure> {
    let running = Instances::below(state.root()).find(args.which.wanted())?;
    let door = knock(&running)?;
    let carried = runtime()?.block_on(async { through::carry(relay::client_pipes()?, &door).await })?;
    match carried {
        Ended::Closed | Ended::ClientGone => Ok(ExitCode::SUCCESS),
        Ended::Unanswered => {
            Err(Failure::new(exit::CANNOT_RUN, format!("{} closed the connection without an answer", label(&running)))
                .hint("`mcp-proxy ps` shows whether it runs; it says on its own standard error what went wrong"))
        }
    }
}

fn knock(running: &Running) -> Result<UnixStream, Failure> {
    if running.description.client_transport == "stdio" {
        let said = format!("{} serves the client that started it, and has no door for others", label(running));
        return Err(Failure::new(exit::CANNOT_RUN, said).hint(
            "start one that others can connect to with `mcp-proxy proxy`: on a terminal, or with --listen PORT",
        ));
    }
    UnixStream::connect(running.door()).map_err(|error| {
        Failure::new(exit::CANNOT_RUN, format!("cannot connect to {}: {error}", label(running)))
            .hint("`mcp-proxy ps` shows which instances answer")
    })
}
