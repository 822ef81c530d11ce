//! The live server behind a mock: started when it is first needed, through the ordinary proxy, so that
//! what it is asked and answers is recorded as a session that extends the mocked one.

use std::time::Duration;

use mcp_engine::mock::Live;
use mcp_engine::{Bus, Pipeline};
use mcp_store::StateDir;
use tokio::task::JoinHandle;

use crate::cli::RecordingArgs;
use crate::duplex::Duplex;
use crate::failure::Failure;
use crate::inner::{self, Ended};
use crate::plan::ServerSide;
use crate::recording;
use crate::report::say;

pub(super) struct Fallback {
    /// What to start, until it was.
    unstarted: Option<ServerSide>,
    args: RecordingArgs,
    state: StateDir,
    running: Option<Running>,
    pub live: Live,
}

struct Running {
    server: Duplex,
    proxy: JoinHandle<Result<Ended, Failure>>,
}

impl Fallback {
    pub(super) fn new(server: ServerSide, args: RecordingArgs, state: StateDir) -> Self {
        Self { unstarted: Some(server), args, state, running: None, live: Live::default() }
    }

    /// Whether the server can be asked.
    pub(super) fn is_there(&self) -> bool {
        self.unstarted.is_some() || self.running.is_some()
    }

    /// The way to the server, which is started if it never was. Nothing once it is gone.
    pub(super) fn server(&mut self) -> Option<&mut Duplex> {
        if let Some(server) = self.unstarted.take() {
            match self.start(server) {
                Ok(running) => self.running = Some(running),
                Err(failure) => say(&failure.to_string()),
            }
        }
        self.running()
    }

    fn start(&self, server: ServerSide) -> Result<Running, Failure> {
        let recorder = recording::begin(&self.args, &server, Ok(self.state.clone()))?;
        let pipeline = Pipeline::new(recorder, Bus::default(), self.args.message_limit);
        let (pipes, duplex) = inner::pipes(self.args.message_limit)?;
        let args = self.args.clone();
        let proxy = async move { inner::stand_between(pipes, server, pipeline, &args, Duration::ZERO).await };
        Ok(Running { server: duplex, proxy: tokio::task::spawn_local(proxy) })
    }

    pub(super) fn running(&mut self) -> Option<&mut Duplex> {
        self.running.as_mut().map(|running| &mut running.server)
    }

    /// Hangs up, sees the server ended, and says what went wrong, if something did.
    pub(super) async fn end(&mut self) {
        let Some(Running { server, proxy }) = self.running.take() else { return };
        drop(server);
        if let Ok(Ok(Ended { failure: Some(failure), .. }) | Err(failure)) = proxy.await {
            say(&failure.to_string());
        }
    }
}
