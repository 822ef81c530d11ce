//! Sends a recorded client's messages to a server again, and says where its answers differ.

mod client;
mod document;
mod edit;
mod junit;
mod words;

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use mcp_engine::compare::{Pattern, Volatile};
use mcp_engine::replay::{Handshake, Options, Outcomes, Pace, Replay, Script, learn};
use mcp_engine::transcript::Line;
use mcp_engine::{Bus, Pipeline, Transcript};
use mcp_filter::Filter;
use mcp_store::{SessionHeader, StateDir};
use tokio::runtime::{Builder, LocalOptions};

use crate::chosen::{self, Chosen, ChosenArgs};
use crate::cli::{TargetArgs, UrlTransportArg};
use crate::edit::{Assignment, assignment};
use crate::export::Output;
use crate::face::{self, Acting, replay::Live};
use crate::failure::{Failure, exit};
use crate::inner;
use crate::plan::ServerSide;
use crate::progress::{Progress, Unit};
use crate::recording;
use crate::report::ColorChoice;

#[derive(Args)]
#[command(
    override_usage = "mcp-proxy replay [OPTIONS] [SESSION] --target-command CMD\n       mcp-proxy replay [OPTIONS] [SESSION] --target-url URL\n       mcp-proxy replay [OPTIONS] [SESSION] -- CMD [ARGS]...\n       mcp-proxy replay --live [OPTIONS] [INSTANCE] MESSAGE"
)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    chosen: ChosenArgs,
    /// With --live: the message by its number, such as `#12`, if an instance stands before it
    #[arg(requires = "live")]
    message: Option<String>,
    /// Send one message of a running instance's client to its server again, and print the answer
    #[arg(long, conflicts_with_all = ["session_file", "conversation", "target_command", "target_url", "command", "transport", "no_handshake", "only", "ignore", "learn", "compare_notifications", "edit", "pace", "output", "junit", "name"])]
    live: bool,
    /// With --live: the instance by its id, the beginning of it, or its name
    #[arg(long = "in", value_name = "INSTANCE", requires = "live")]
    within: Option<String>,
    /// With --live: act even if somebody else is in control
    #[arg(long, requires = "live")]
    take: bool,
    /// With --live: print the answer as a JSON object, with the members that `inspect --json` has
    #[arg(long, requires = "live")]
    json: bool,
    #[command(flatten)]
    target: TargetArgs,
    /// How the server at --target-url is reached [default: streamable-http]
    #[arg(long, value_enum, ignore_case = true, requires = "target_url")]
    transport: Option<UrlTransportArg>,
    /// Send the recorded messages and nothing else, not even a handshake that the server needs
    #[arg(long)]
    no_handshake: bool,
    /// Send only what this filter matches, or whose answer it matches
    #[arg(long, value_name = "FILTER")]
    only: Option<String>,
    /// Let this differ: a path such as `$.result.content[*].text` or `$..createdAt`
    #[arg(long, value_name = "PATH", value_parser = pattern)]
    ignore: Vec<Pattern>,
    /// Let differ what differs between the session and this other recording of the same calls
    #[arg(long, value_name = "SESSION")]
    learn: Vec<String>,
    /// Take a different number of notifications or questions by method for drift, too
    #[arg(long)]
    compare_notifications: bool,
    /// Put this value, as JSON or as text, wherever a message has the path
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    set: Vec<Assignment>,
    /// Open the messages in $EDITOR before they are sent
    #[arg(long)]
    edit: bool,
    /// `recorded` keeps the client's pauses
    #[arg(long, value_enum, default_value = "fast")]
    pace: PaceArg,
    /// Seconds for each answer, beyond those it took in the recording
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
    /// Write what came of it to this file, as JSON
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write what came of it to this file, as JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    force: bool,
    /// Say something about every call, not only about those that differ
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PaceArg {
    Fast,
    Recorded,
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::parse(text).map_err(|error| error.to_string())
}

/// From a millisecond to a day.
fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected a number of seconds, up to a day".into()),
    }
}

/// What came of a replay, for every kind of report.
pub(crate) struct Played {
    pub recorded: SessionHeader,
    pub conversation: u32,
    pub target: String,
    pub transcript: Transcript,
    pub outcomes: Outcomes,
    pub volatile: Volatile,
    /// The session that this replay was recorded as.
    pub recorded_as: Option<SessionHeader>,
    pub interrupted: bool,
    pub compares_notifications: bool,
    pub timeout: Duration,
    pub took: Duration,
}

impl Played {
    pub(crate) fn is_drifted(&self) -> bool {
        let tally = self.outcomes.tally();
        let heard_else =
            self.compares_notifications && self.outcomes.heard.values().any(|count| count.now != count.recorded);
        tally.drifted > 0 || tally.no_answer > 0 || heard_else
    }
}

pub(crate) fn replay(args: &ReplayArgs, state: StateDir, color: ColorChoice) -> Result<ExitCode, Failure> {
    if args.live {
        let live = Live {
            words: args.chosen.session.iter().chain(&args.message).cloned().collect(),
            acting: Acting { within: args.within.clone(), take: args.take },
            set: &args.set,
            timeout: args.timeout,
            json: args.json,
        };
        return face::replay::replay(&live, &state, color);
    }
    // A report that cannot be written fails before anything is sent.
    let open = |file: &Option<PathBuf>| file.as_deref().map(|file| Output::file(file, args.force)).transpose();
    let (output, junit) = (open(&args.output)?, open(&args.junit)?);
    let only =
        args.only.as_deref().map(Filter::parse).transpose().map_err(|error| Failure::usage(error.to_string()))?;
    let mut wanted = HashSet::new();
    let chosen = args.chosen.read(&state, |told| {
        if only.as_ref().is_none_or(|only| only.matches(told)) {
            wanted.insert(told.recorded.sequence);
        }
    })?;
    let volatile = volatile(args, &chosen, &state)?;
    let script = script(args, &chosen, &wanted)?;
    let recording = args.target.recording((SessionHeader::REPLAYS, chosen.summary.header.id.to_string()));
    let server = args.target.server(args.transport, &recording)?.ok_or_else(|| {
        Failure::usage("replay needs a server").hint("give --target-command CMD, --target-url URL, or -- CMD")
    })?;
    let played = carry_out(args, chosen, script, volatile, server, &recording, state)?;
    words::print(&played, args.verbose, color)?;
    if let Some(output) = output {
        write(output, &document::document(&played)?)?;
    }
    if let Some(output) = junit {
        write(output, junit::junit(&played).as_bytes())?;
    }
    Ok(match (played.interrupted, played.is_drifted()) {
        (true, _) => ExitCode::from(exit::INTERRUPTED),
        (false, true) => ExitCode::from(exit::NEGATIVE),
        (false, false) => ExitCode::SUCCESS,
    })
}

fn write(output: Output, report: &[u8]) -> Result<(), Failure> {
    output.write(|out| Ok((false, out.write_all(report)?)))
}

/// What may differ.
fn volatile(args: &ReplayArgs, chosen: &Chosen, state: &StateDir) -> Result<Volatile, Failure> {
    let mut volatile = Volatile::default();
    args.ignore.iter().cloned().for_each(|pattern| volatile.name(pattern));
    for wanted in &args.learn {
        let session = chosen::open(Some(wanted), state)?;
        let conversation = args.chosen.conversation.filter(|_| session.summary().several_conversations);
        let other = chosen::read(session, conversation, |_| ())?;
        if learn(&mut volatile, &chosen.transcript, &other.transcript) == 0 {
            return Err(Failure::usage(format!("nothing can be learned from {wanted}: it has none of the same calls")));
        }
    }
    Ok(volatile)
}

/// What is sent, of what is wanted by its own account or by its answer's.
fn script(args: &ReplayArgs, chosen: &Chosen, wanted: &HashSet<u64>) -> Result<Script, Failure> {
    let handshake = if args.no_handshake { Handshake::Verbatim } else { Handshake::AsNeeded };
    let transcript = &chosen.transcript;
    let is_named = |line: &Line| wanted.contains(&line.sequence);
    let mut any = false;
    let mut script = Script::of(transcript, handshake, |at| {
        let is_wanted = is_named(transcript.line(at)) || transcript.answer(at).is_some_and(is_named);
        any |= is_wanted;
        is_wanted
    });
    if let (Some(only), false) = (&args.only, any) {
        return Err(Failure::usage(format!("`{only}` matches nothing that the client sent, and no answer to it")));
    }
    for assignment in &args.set {
        edit::apply(assignment, &mut script)?;
    }
    if args.edit {
        edit::in_editor(&mut script, &chosen.transcript)?;
    }
    if script.turns.is_empty() {
        return Err(Failure::usage("there is nothing to send: this conversation has no message of a client"));
    }
    Ok(script)
}

fn carry_out(
    args: &ReplayArgs,
    chosen: Chosen,
    script: Script,
    volatile: Volatile,
    server: ServerSide,
    recording: &crate::cli::RecordingArgs,
    state: StateDir,
) -> Result<Played, Failure> {
    let target = server.command().or(server.url()).unwrap_or_default();
    let recorder = recording::begin(recording, &server, Ok(state))?;
    let pipeline = Pipeline::new(recorder, Bus::default(), recording.message_limit);
    let timeout_ns = u64::try_from(args.timeout.as_nanos()).unwrap_or(u64::MAX);
    let pace = if args.pace == PaceArg::Fast { Pace::Fast } else { Pace::Recorded };
    let options = Options { timeout_ns, pace, keeps_messages: args.output.is_some() };
    let mut replay = Replay::new(chosen.transcript, script, volatile, options);
    let begun = Instant::now();
    let progress = Progress::begin("replaying", Unit::Messages, Some(replay.progress().1 as u64));
    let runtime = Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())?;
    let ended = runtime.block_on(async {
        let (pipes, client) = inner::pipes(recording.message_limit)?;
        let proxy = inner::stand_between(pipes, server, pipeline, recording, Duration::ZERO);
        let client = client::play(&mut replay, client, &progress);
        tokio::join!(proxy, client).0
    })?;
    drop(progress);
    let (outcomes, transcript, volatile) = replay.finish();
    let nothing_came = !ended.interrupted && outcomes.tally().no_answer > 0 && !outcomes.is_any_answered();
    if let Some(failure) = ended.failure {
        return Err(failure);
    }
    if nothing_came {
        return Err(words::nothing_answered(&outcomes, args.timeout, ended.status.as_deref(), &ended.last_words));
    }
    Ok(Played {
        recorded: chosen.summary.header,
        conversation: chosen.conversation,
        target,
        transcript,
        outcomes,
        volatile,
        recorded_as: ended.sessions.into_iter().next().map(|(header, _)| header),
        interrupted: ended.interrupted,
        compares_notifications: args.compare_notifications,
        timeout: args.timeout,
        took: begun.elapsed(),
    })
}
