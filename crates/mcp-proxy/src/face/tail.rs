//! `tail`: the messages of an instance as they pass, in the lines of `inspect`.

mod printer;

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use mcp_control::api::{Event, EventsQuery, Message, PageQuery};
use mcp_control::{ClientError, Events, Instances};
use mcp_filter::Filter;
use mcp_store::StateDir;
use mcp_wire::visible::visible;
use rustix::event::{PollFd, PollFlags, poll};
use tokio::signal::unix::{SignalKind, signal};

use super::{Face, label};
use crate::failure::{Failure, exit};
use crate::report::{ColorChoice, say};
use printer::Printer;

/// Earlier messages that `-n` may ask for: they are held until they are printed. `inspect` shows a recording from
/// its beginning.
const EARLIER_MAX: u32 = 100_000;
/// Messages asked for at a time: an instance gives no more.
const PAGE: u32 = 1_000;
/// Wait for the end of an instance whose socket is closed: a killed process has ended by then on any usable
/// machine.
const PASSES_AWAY: Duration = Duration::from_secs(2);

#[derive(Args)]
pub(crate) struct TailArgs {
    /// The instance by its id, the beginning of it, or its name [default: `last`, the newest]
    instance: Option<String>,
    /// The same, as an option
    #[arg(long = "in", alias = "instance", value_name = "INSTANCE", conflicts_with = "instance")]
    within: Option<String>,
    /// Print only messages that this matches; see `mcp-proxy help filter`
    #[arg(long, value_name = "EXPR")]
    filter: Option<String>,
    /// One JSON object a line, with the members that `inspect --json` has
    #[arg(long)]
    json: bool,
    /// Begin with this many of the messages that have passed already
    #[arg(short = 'n', long = "lines", value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(..=i64::from(EARLIER_MAX)))]
    earlier: u32,
}

pub(super) fn tail(args: &TailArgs, state: &StateDir, color: ColorChoice) -> Result<ExitCode, Failure> {
    args.filter.as_deref().map(Filter::parse).transpose()?;
    let face = Face::attach_to_newest(state, args.instance.as_deref().or(args.within.as_deref()))?;
    let mut printer = Printer::new(args.json, args.filter.is_some(), face.which(), color);
    let ended = face.wait(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            ended = follow(args, &face, &mut printer) => ended.map(Some),
            _ = interrupt.recv() => Ok(None),
            _ = terminate.recv() => Ok(None),
            gone = reader_gone() => Err(gone.into()),
        }
    });
    match ended {
        Ok(Some(Ended::Said(why))) => say(&format!("mcp-proxy: {} has ended: {}", label(&face.running), visible(&why))),
        Ok(Some(Ended::BrokeOff)) => is_gone(&face, state)?,
        Ok(None) => {
            printer.end()?;
            return Ok(ExitCode::from(exit::INTERRUPTED));
        }
        Err(failure) => {
            let _ = printer.end();
            return Err(failure);
        }
    }
    printer.end()?;
    Ok(ExitCode::SUCCESS)
}

enum Ended {
    Said(String),
    /// The stream is over, and nobody said why.
    BrokeOff,
}

/// Prints what has passed and what passes, until the instance ends.
async fn follow(args: &TailArgs, face: &Face, printer: &mut Printer) -> Result<Ended, Failure> {
    let after = earlier(args, face, printer).await?;
    let query = EventsQuery { after: Some(after), filter: args.filter.clone(), ..EventsQuery::default() };
    let mut events = face.client.events(&query).await?;
    let mut has_begun = false;
    loop {
        let event = match next(&mut events, printer).await {
            Ok(Some(event)) => event,
            Ok(None) | Err(Stopped::Client(ClientError::Broken(_))) => return Ok(Ended::BrokeOff),
            Err(Stopped::Client(error)) => return Err(error.into()),
            Err(Stopped::Output(error)) => return Err(error.into()),
        };
        match event {
            Event::End(ended) => return Ok(Ended::Said(ended.why)),
            Event::Message(message) | Event::Fault(message) => printer.message(&whole(*message, face).await)?,
            Event::Snapshot(snapshot) if has_begun => printer.go_on(&snapshot)?,
            Event::Snapshot(snapshot) => {
                has_begun = true;
                printer.begin(*snapshot, after)?;
            }
            event => printer.event(&event)?,
        }
    }
}

enum Stopped {
    Client(ClientError),
    Output(io::Error),
}

/// The next event. What was printed so far is shown before anybody waits.
async fn next(events: &mut Events, printer: &mut Printer) -> Result<Option<Event>, Stopped> {
    if let Some(event) = events.ready().map_err(Stopped::Client)? {
        return Ok(Some(event));
    }
    printer.flush().map_err(Stopped::Output)?;
    events.next().await.map_err(Stopped::Client)
}

/// Prints the newest of what has passed. Where to go on from is returned.
async fn earlier(args: &TailArgs, face: &Face, printer: &mut Printer) -> Result<u64, Failure> {
    let mut pages: Vec<Vec<Message>> = Vec::new();
    let (mut missing, mut before, mut last) = (args.earlier, None, None);
    while missing > 0 || last.is_none() {
        let limit = Some(missing.clamp(1, PAGE));
        let query = PageQuery { before, after: None, limit, filter: args.filter.clone() };
        let mut page = face.client.messages(&query).await?;
        last.get_or_insert(page.last_sequence);
        page.messages.drain(..page.messages.len().saturating_sub(missing as usize));
        missing -= page.messages.len() as u32;
        pages.push(page.messages);
        before = page.older;
        if before.is_none() {
            break;
        }
    }
    printer.expect(pages.iter().rev().flatten());
    for message in pages.into_iter().rev().flatten() {
        printer.message(&whole(message, face).await)?;
    }
    Ok(last.unwrap_or_default())
}

/// Lists leave out what is long. If it cannot be had, the rest is shown.
async fn whole(message: Message, face: &Face) -> Message {
    match message.raw_omitted {
        true => face.client.message(message.sequence).await.unwrap_or(message),
        false => message,
    }
}

/// Ends when nobody reads our output any more, which a write would tell only with the next message.
async fn reader_gone() -> io::Error {
    let (gone, is_gone) = tokio::sync::oneshot::channel();
    // Ends with the program; a file or a terminal keeps it waiting.
    let watch = move || {
        let output = rustix::stdio::stdout();
        let mut fds = [PollFd::new(&output, PollFlags::empty())];
        while poll(&mut fds, None).is_err() {}
        let _ = gone.send(());
    };
    match std::thread::Builder::new().name("reader".into()).spawn(watch) {
        Ok(_) if is_gone.await.is_ok() => io::ErrorKind::BrokenPipe.into(),
        _ => std::future::pending().await,
    }
}

/// The stream broke off: fine if the instance is gone, which was killed then. Its socket is closed a
/// moment before its process has ended.
fn is_gone(face: &Face, state: &StateDir) -> Result<(), Failure> {
    let (instances, broke_off) = (Instances::below(state.root()), Instant::now());
    let id = face.running.description.id.to_string();
    while instances.find(Some(&id)).is_ok() {
        if broke_off.elapsed() > PASSES_AWAY {
            let what = format!("{} broke off, and still runs", label(&face.running));
            return Err(Failure::new(exit::CANNOT_RUN, what).hint("`mcp-proxy ps` shows whether it answers"));
        }
        std::thread::sleep(PASSES_AWAY / 100);
    }
    say(&format!("mcp-proxy: {} is gone", label(&face.running)));
    Ok(())
}
