//! The command line as a face: commands that speak to a running instance through its control API.

mod answer;
mod approve;
mod attach;
mod breakpoints;
mod change;
mod connect;
mod decide;
mod gone;
mod held;
mod hold;
mod modify;
pub(crate) mod ps;
pub(crate) mod replay;
mod save;
mod servers;
mod show;
mod tail;
mod which;

pub(crate) use which::Acting;

use std::process::ExitCode;

use clap::Subcommand;
use mcp_control::api::{Code, Hand};
use mcp_control::instances::{FindError, InstanceError, Running};
use mcp_control::{Address, Client, ClientError, Instances};
use mcp_store::StateDir;
use mcp_wire::visible::visible;
use tokio::runtime::{Builder, Runtime};

use crate::failure::{Failure, exit, own_directory};
use crate::report::{ColorChoice, say};

/// Instances named in an error: a screen has room for them.
const CANDIDATES_SHOWN: usize = 8;
/// The longest name of an acting face that an instance accepts.
const BY_BYTES_MAX: usize = 64;

#[derive(Subcommand)]
pub(crate) enum FaceCommand {
    /// List the running instances
    Ps(ps::PsArgs),
    /// Show a running instance on this terminal: what passes, what is held, and the keys to act
    #[command(visible_alias = "tui")]
    Attach(attach::AttachArgs),
    /// Be a client of a running instance, for client configs: its server on standard input and output
    Connect(connect::ConnectArgs),
    /// Print the messages of a running instance as they pass
    Tail(tail::TailArgs),
    /// Hold every message for somebody to decide, or stop that and let all go on
    Hold(hold::HoldArgs),
    /// Hold only the messages that a filter matches
    Break {
        #[command(subcommand)]
        command: breakpoints::BreakCommand,
    },
    /// List the messages that are held
    Held(held::HeldArgs),
    /// Send a held message on as it came
    Forward(decide::ForwardArgs),
    /// Do not send a held message on; say nothing, or answer with an error
    Drop(decide::DropArgs),
    /// Send a held message on with other content
    Modify(modify::ModifyArgs),
    /// Answer a held request in its peer's place
    Answer(answer::AnswerArgs),
    /// Let a message go on that a rule asks about, as it came or changed
    Approve(approve::ApproveArgs),
    /// Do not let a message go on that a rule asks about
    Deny(approve::DenyArgs),
    /// List, restart, disable and enable the servers of a running gateway
    Servers {
        #[command(subcommand)]
        command: servers::ServersCommand,
    },
    /// Write what an instance has recorded so far to a session file
    Save(save::SaveArgs),
}

pub(crate) fn face(command: &FaceCommand, state: &StateDir, color: ColorChoice) -> Result<ExitCode, Failure> {
    let answered = match command {
        FaceCommand::Attach(args) => attach::attach(args, state, color),
        FaceCommand::Connect(args) => connect::connect(args, state),
        FaceCommand::Tail(args) => tail::tail(args, state, color),
        FaceCommand::Ps(args) => done(ps::ps(args, state, color)),
        FaceCommand::Hold(args) => done(hold::hold(args, state)),
        FaceCommand::Break { command } => done(breakpoints::breakpoints(command, state, color)),
        FaceCommand::Held(args) => done(held::held(args, state, color)),
        FaceCommand::Forward(args) => done(decide::forward(args, state)),
        FaceCommand::Drop(args) => done(decide::drop_held(args, state)),
        FaceCommand::Modify(args) => done(modify::modify(args, state)),
        FaceCommand::Answer(args) => done(answer::answer(args, state)),
        FaceCommand::Approve(args) => done(approve::approve(args, state)),
        FaceCommand::Deny(args) => done(approve::deny(args, state)),
        FaceCommand::Servers { command } => done(servers::servers(command, state, color)),
        FaceCommand::Save(args) => done(save::save(args, state)),
    };
    answered.or_else(|failure| if failure.is_broken_pipe() { Ok(ExitCode::SUCCESS) } else { Err(failure) })
}

fn done(answered: Result<(), Failure>) -> Result<ExitCode, Failure> {
    answered.map(|()| ExitCode::SUCCESS)
}

/// One instance, to be asked and told things.
pub(crate) struct Face {
    pub running: Running,
    pub client: Client,
    instances: Instances,
    runtime: Runtime,
}

impl Face {
    /// Finds the instance that is meant. That it answers shows when it is asked.
    pub(crate) fn attach(state: &StateDir, wanted: Option<&str>, take: bool) -> Result<Self, Failure> {
        let instances = Instances::below(state.root());
        let running = instances.find(wanted)?;
        Self::of(instances, running, take)
    }

    /// Finds the instance to watch: the newest, if several are meant. That is said.
    pub(crate) fn attach_to_newest(state: &StateDir, wanted: Option<&str>) -> Result<Self, Failure> {
        let instances = Instances::below(state.root());
        let (running, count) = instances.newest(wanted)?;
        if count > 1 && wanted != Some("last") {
            let which = wanted.map(|wanted| format!(" named `{}`", visible(wanted))).unwrap_or_default();
            say(&format!("mcp-proxy: {count} instances{which} are running; this is the newest, {}", label(&running)));
        }
        Self::of(instances, running, false)
    }

    fn of(instances: Instances, running: Running, take: bool) -> Result<Self, Failure> {
        let hand = Hand { lease: None, by: Some(who("command line")), take };
        let client = Client::new(Address::Socket(running.socket.clone())).acting_as(hand);
        Ok(Self { running, client, instances, runtime: runtime()? })
    }

    pub(crate) fn ask<T>(&self, answer: impl Future<Output = Result<T, ClientError>>) -> Result<T, Failure> {
        self.runtime.block_on(answer).map_err(|error| self.failure(error))
    }

    /// The same about a held message. If it is held no longer, what became of it is said.
    pub(crate) fn decide<T>(
        &self,
        sequence: u64,
        decision: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, Failure> {
        self.wait(decision).map_err(|error| self.undecided(sequence, error))
    }

    pub(crate) fn undecided(&self, sequence: u64, error: ClientError) -> Failure {
        let message = match &error {
            ClientError::Refused { fault, .. } if fault.code == Code::NotHeld => {
                self.wait(self.client.message(sequence)).ok()
            }
            _ => None,
        };
        let failure = self.failure(error);
        match message.as_ref().and_then(gone::became) {
            Some(became) => failure.because(&became),
            None => failure,
        }
    }

    /// What an error of this instance means. Where several run, advice names it.
    fn failure(&self, error: ClientError) -> Failure {
        refusal(error, &self.which())
    }

    /// ` notes`, to stand behind a command in advice; nothing while only this one runs.
    pub(crate) fn which(&self) -> String {
        let running = self.instances.list().unwrap_or_default();
        let description = &self.running.description;
        let is_only =
            |name: &&String| running.iter().filter(|other| other.description.name.as_ref() == Some(*name)).count() == 1;
        match (running.len(), description.name.as_ref().filter(is_only)) {
            (0 | 1, _) => String::new(),
            (_, Some(name)) => format!(" {}", shell_words::quote(&visible(name).to_string())),
            (_, None) => format!(" {}", description.short_id()),
        }
    }

    /// Waits for what may take its time; everything of the runtime is at hand.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

fn runtime() -> Result<Runtime, Failure> {
    Ok(Builder::new_current_thread().enable_io().enable_time().build()?)
}

/// What is written down as the one who acted, by what kind of face.
pub(crate) fn who(face: &str) -> String {
    let name =
        ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
    let name = name.unwrap_or_else(|| rustix::process::getuid().as_raw().to_string());
    let mut who = format!("{face} ({name})");
    who.truncate(who.floor_char_boundary(BY_BYTES_MAX));
    who
}

/// How people are shown an instance: `7f3a9a52 (files)`.
pub(crate) fn label(running: &Running) -> String {
    let description = &running.description;
    match &description.name {
        Some(name) => format!("{} ({})", description.short_id(), visible(name)),
        None => description.short_id(),
    }
}

impl From<InstanceError> for Failure {
    fn from(error: InstanceError) -> Self {
        let failure = Self::caused_by(exit::CANNOT_RUN, &error);
        match error {
            InstanceError::NotPrivate { path } => failure.hint(own_directory(&path)),
            InstanceError::Io { .. } => failure,
        }
    }
}

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        let candidates = error.candidates();
        let mut shown: Vec<String> = candidates
            .iter()
            .take(CANDIDATES_SHOWN)
            .map(|running| format!("{}  {}", label(running), visible(running.description.server())))
            .collect();
        if let more @ 1.. = candidates.len().saturating_sub(CANDIDATES_SHOWN) {
            shown.push(format!("and {more} more"));
        }
        let what = error.to_string();
        match error {
            FindError::NoneRuns => Self::new(exit::CANNOT_RUN, "no instance is running")
                .hint("start one with `mcp-proxy run -- CMD`, or a client whose config says so"),
            FindError::Unknown { .. } => Self::new(exit::CANNOT_RUN, what)
                .evidence("running", &shown.join("\n"))
                .hint("`mcp-proxy ps` shows more"),
            FindError::Several { .. } | FindError::Ambiguous { .. } => Self::usage(what)
                .evidence("running", &shown.join("\n"))
                .hint("say which with --in, by its name, its id, or the beginning of its id"),
            FindError::Instances(error) => error.into(),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        refusal(error, "")
    }
}

/// Advice names the instance as `which` says.
fn refusal(error: ClientError, which: &str) -> Failure {
    let ClientError::Refused { fault, .. } = error else {
        return Failure::caused_by(exit::CANNOT_RUN, &error).hint("`mcp-proxy ps` shows which instances answer");
    };
    let code = match fault.code {
        Code::BadRequest | Code::BadFilter | Code::TooLarge => exit::USAGE,
        Code::NotHeld
        | Code::NotARequest
        | Code::IsAsked
        | Code::NotAsked
        | Code::Denied
        | Code::NotWritten
        | Code::NotJsonRpc
        | Code::NotFound
        | Code::NotPossible
        | Code::Exists
        | Code::TooMany
        | Code::Locked => exit::NEGATIVE,
        _ => exit::CANNOT_RUN,
    };
    let failure = Failure::new(code, fault.message);
    match fault.code {
        Code::NotHeld => failure.hint(format!("`mcp-proxy held{which}` shows what is held now")),
        Code::IsAsked => {
            failure.hint(format!("`mcp-proxy held{which}` shows what is asked, and the commands that answer it"))
        }
        Code::NotWritten => failure.hint("--for session counts while the proxy runs, and needs no file"),
        Code::NotJsonRpc => failure.hint("--not-json-rpc sends it all the same"),
        Code::Locked => failure.hint("--take acts all the same"),
        _ => failure,
    }
}
