//! What a session says in the end: messages, heads, and how exchanges ended.

use mcp_store::exchange::{AnswerHead, RequestHead, SessionEntry};
use mcp_store::{Direction, Recorded, Session, StoreError};

use crate::kit::Sandbox;

pub struct Recording {
    entries: Vec<SessionEntry>,
}

impl Recording {
    /// The only session of a sandbox, as far as it was written.
    #[track_caller]
    pub fn of(sandbox: &Sandbox) -> Self {
        let segments = sandbox.segments();
        assert_eq!(segments.len(), 1, "there is one session");
        let session = Session::open_segment(&segments[0]).expect("the session opens");
        let mut entries = Vec::new();
        session
            .for_each_entry(|entry| {
                entries.push(entry);
                Ok::<_, StoreError>(())
            })
            .expect("the session can be read");
        Self { entries }
    }

    pub fn messages(&self) -> Vec<&Recorded> {
        let messages = self.entries.iter().filter_map(|entry| match entry {
            SessionEntry::Message(message) => Some(message),
            _ => None,
        });
        messages.filter(|message| message.event.is_none()).collect()
    }

    fn by(&self, direction: Direction) -> Vec<&Recorded> {
        self.messages().into_iter().filter(|message| message.direction == direction).collect()
    }

    pub fn by_client(&self) -> Vec<&Recorded> {
        self.by(Direction::ClientToServer)
    }

    pub fn by_server(&self) -> Vec<&Recorded> {
        self.by(Direction::ServerToClient)
    }

    /// The message that has `text` in it.
    #[track_caller]
    pub fn message(&self, text: &str) -> &Recorded {
        let found = self.messages().into_iter().find(|message| String::from_utf8_lossy(&message.raw).contains(text));
        found.unwrap_or_else(|| panic!("nothing recorded has {text} in it: {:?}", self.entries))
    }

    /// What happened where a message should have been.
    pub fn events(&self) -> Vec<String> {
        let messages = self.entries.iter().filter_map(|entry| match entry {
            SessionEntry::Message(message) => message.event.clone(),
            _ => None,
        });
        messages.collect()
    }

    pub fn requests(&self) -> Vec<&RequestHead> {
        let requests = self.entries.iter().filter_map(|entry| match entry {
            SessionEntry::Request(_, head) => Some(head),
            _ => None,
        });
        requests.collect()
    }

    pub fn answers(&self) -> Vec<&AnswerHead> {
        let answers = self.entries.iter().filter_map(|entry| match entry {
            SessionEntry::Answer(_, head) => Some(head),
            _ => None,
        });
        answers.collect()
    }

    /// How each exchange ended, in the order in which they did; empty as they should.
    pub fn ends(&self) -> Vec<String> {
        let ends = self.entries.iter().filter_map(|entry| match entry {
            SessionEntry::End(_, how) => Some(how.clone().unwrap_or_default()),
            _ => None,
        });
        ends.collect()
    }
}
