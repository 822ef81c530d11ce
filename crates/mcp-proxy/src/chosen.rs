//! Which recorded conversation a command is about, and that conversation.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use mcp_engine::Transcript;
use mcp_store::catalogue::open_session;
use mcp_store::{Session, StateDir, Story, Summary, Told};
use mcp_wire::visible::visible;

use crate::failure::Failure;
use crate::progress::{Progress, Unit};
use crate::report::say;

/// Conversations listed when one has to be chosen: a screen.
const LISTED_MAX: usize = 20;

#[derive(Args)]
pub(crate) struct ChosenArgs {
    /// A session file, or a recorded session by its id, the beginning of it, or its name [default: `last`,
    /// the newest]
    pub session: Option<String>,
    #[arg(long, value_name = "FILE", conflicts_with = "session", help = "The session, as a file")]
    pub session_file: Option<PathBuf>,
    /// Which conversation, where a session has several
    #[arg(long, value_name = "N")]
    pub conversation: Option<u32>,
}

/// A recorded conversation.
pub(crate) struct Chosen {
    pub summary: Summary,
    pub conversation: u32,
    pub transcript: Transcript,
}

impl ChosenArgs {
    /// Reads the conversation; `visit` sees each of its messages.
    pub(crate) fn read(&self, state: &StateDir, visit: impl FnMut(&Told)) -> Result<Chosen, Failure> {
        let session = match (&self.session_file, &self.session) {
            (Some(file), _) => Session::open(file, Some(state))?,
            (None, wanted) => open(wanted.as_deref(), state)?,
        };
        read(session, self.conversation, visit)
    }
}

/// Opens a session by its file, id or name; the newest if none is given.
pub(crate) fn open(wanted: Option<&str>, state: &StateDir) -> Result<Session, Failure> {
    let (session, findings) = open_session(wanted, state)?;
    findings.iter().for_each(|finding| say(&format!("mcp-proxy: {finding}")));
    Ok(session)
}

/// Reads one conversation of a session: the only one, or the one with this number.
pub(crate) fn read(session: Session, wanted: Option<u32>, mut visit: impl FnMut(&Told)) -> Result<Chosen, Failure> {
    let conversation = choose(&session, wanted)?;
    let mut transcript = Transcript::default();
    let mut story = Story::of(&session.summary().header);
    let progress = Progress::begin("reading", Unit::Messages, Some(session.summary().messages));
    session.for_each_entry(|entry| -> Result<(), Failure> {
        let Some(told) = story.hear(entry) else { return Ok(()) };
        if told.recorded.conversation == conversation {
            transcript.add(&told);
            visit(&told);
        }
        Ok(progress.advance(1)?)
    })?;
    Ok(Chosen { summary: session.summary().clone(), conversation, transcript })
}

/// A conversation that can be chosen.
#[derive(Default)]
struct Found {
    messages: u64,
    client: Option<String>,
    /// Of a gateway.
    server: Option<Arc<str>>,
}

fn choose(session: &Session, wanted: Option<u32>) -> Result<u32, Failure> {
    let mut found: BTreeMap<u32, Found> = BTreeMap::new();
    if wanted.is_some() || session.summary().several_conversations {
        let mut story = Story::of(&session.summary().header);
        session.for_each(|message| -> Result<(), Failure> {
            let told = story.tell(message);
            let conversation = found.entry(told.recorded.conversation).or_default();
            conversation.messages += 1;
            if conversation.client.is_none() {
                conversation.client = told.client.as_deref().map(str::to_owned);
            }
            if conversation.server.is_none() {
                conversation.server = told.recorded.upstream;
            }
            Ok(())
        })?;
    }
    // What belongs to no conversation where there are others.
    if found.len() > 1 {
        found.remove(&0);
    }
    match wanted {
        Some(wanted) if found.contains_key(&wanted) => Ok(wanted),
        Some(wanted) => {
            Err(Failure::usage(format!("there is no conversation {wanted} in this session")).hint(list(&found)))
        }
        None if found.len() > 1 => {
            let what = format!("this session has {} conversations", found.len());
            Err(Failure::usage(what).hint(format!("give --conversation N; {}", list(&found))))
        }
        None => Ok(found.keys().next().copied().unwrap_or_else(|| only(session))),
    }
}

/// The number of the only conversation.
fn only(session: &Session) -> u32 {
    let mut first = 0;
    let _ = session.for_each(|message| {
        if message.conversation != 0 {
            first = message.conversation;
            return Err(mcp_store::StoreError::Unknown { wanted: String::new() });
        }
        Ok(())
    });
    first
}

fn list(found: &BTreeMap<u32, Found>) -> String {
    let one = |(number, conversation): (&u32, &Found)| {
        let server = conversation.server.as_deref().map(|server| format!("with {}, ", visible(server)));
        // What a gateway says to its servers, it says for whichever client.
        let client = conversation.client.as_deref().filter(|_| server.is_none());
        let client = client.map(|client| format!("{}, ", visible(client)));
        let peer = server.or(client).unwrap_or_default();
        format!("{number} ({peer}{} messages)", conversation.messages)
    };
    let mut listed: Vec<String> = found.iter().take(LISTED_MAX).map(one).collect();
    if found.len() > LISTED_MAX {
        listed.push(format!("{} more", found.len() - LISTED_MAX));
    }
    format!("there are {}", listed.join(", "))
}
