//! What comes in from outside, and what is wanted of it. The state hears [`News`] and leaves
//! [`Effect`]s; who brings and fetches them is no business of the state's.

use std::path::PathBuf;
use std::sync::Arc;

use mcp_control::api::{
    Answer, Approve, Code, Deny, Drop, Event, Exchange, Explanation, Mark, Message, Mode, Modify, NewBreakpoint, Page,
    PageQuery, Policy, Replay, Servers,
};

use crate::Left;
use crate::library::{Comparison, Decision, Export, Exported, Hit, Recording, SessionRef, SessionRow, Trouble, Work};

/// Who asked for a page, and the number of the asking: what was asked before the last is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ticket {
    pub asker: Asker,
    pub number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Asker {
    /// The list of messages.
    Traffic,
    /// The next or previous match.
    Find,
    /// How many messages there are, where a filter leaves most out.
    Count,
    Waterfall,
    Tools,
    /// Answers that the repeater waits for.
    Repeater,
}

/// Something to be done outside.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Listen to the instance: only to messages that match.
    Watch {
        filter: Option<String>,
    },
    Page {
        ticket: Ticket,
        query: PageQuery,
    },
    Message {
        sequence: u64,
    },
    Exchange {
        sequence: u64,
    },
    Explain {
        sequence: u64,
    },
    Policy,
    Servers,
    Lease {
        take: bool,
    },
    Act(Act),

    Sessions,
    Search {
        words: String,
    },
    /// Show this recording instead of the instance.
    Open(SessionRef),
    /// The same of a session file.
    Load(PathBuf, Work),
    /// Back to the instance.
    Leave,
    Export(Export, Work),
    Compare(SessionRef, SessionRef, Work),
    Audit {
        filter: Option<String>,
    },

    /// Into the terminal's clipboard.
    Copy(String),
    /// Edit a text in `$EDITOR`.
    Editor {
        text: String,
        why: Editing,
    },
    /// Keep what was written for a held message that went on, in a file.
    Keep {
        sequence: u64,
        text: String,
    },
    Redraw,
    Suspend,
    End(Left),
}

/// What is done to the instance.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Forward(u64),
    ForwardAll,
    Drop(u64, Drop),
    Modify(u64, Modify),
    Answer(u64, Answer),
    Approve(u64, Approve),
    Deny(u64, Deny),
    Mode(Mode),
    AddBreakpoint(NewBreakpoint),
    /// Takes one away, and sets another in its place.
    ChangeBreakpoint(String, NewBreakpoint),
    RemoveBreakpoint(String),
    /// The number says which run of the repeater it is for.
    Replay {
        sequence: u64,
        replay: Replay,
        run: u64,
    },
    Mark(u64, Mark),
    Save(PathBuf),
    /// By its id.
    RestartServer(String),
    DisableServer(String),
    EnableServer(String),
}

/// What became of an [`Act`].
#[derive(Clone, Debug)]
pub(crate) enum Acted {
    Done,
    /// So many held messages went on.
    Released(u64),
    /// The breakpoint has this name.
    Named(String),
    /// The message that was sent again.
    Replayed(u64),
    Saved {
        files: Vec<String>,
        messages: u64,
    },
}

/// Why something was not done: a code for us, words for people.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub code: Option<Code>,
    pub words: Trouble,
}

/// What a text is edited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Editing {
    /// A held message, to be sent on.
    Modify(u64),
    /// The answer to a held request.
    Answer(u64),
    /// The request of the repeater.
    Request(u64),
    /// The arguments of a tool.
    Arguments(String),
}

/// Something that happened outside.
pub(crate) enum News {
    /// What an instance tells, in order.
    Events(Vec<Event>),
    /// Nobody tells anything any more, and why; it is tried again.
    Lost(Trouble),
    /// We have the lease, since then.
    Leased(Result<String, Refused>),
    Page(Ticket, Result<Page, Trouble>),
    Message(u64, Result<Box<Message>, Trouble>),
    Exchange(u64, Result<Exchange, Trouble>),
    Explanation(u64, Result<Explanation, Trouble>),
    Policy(Result<Policy, Trouble>),
    Servers(Result<Servers, Refused>),
    Acted(Act, Result<Acted, Refused>),

    Sessions(Result<Vec<SessionRow>, Trouble>),
    /// What was found of these words.
    Hits(String, Result<Vec<Hit>, Trouble>),
    /// From where, and what it is.
    Opened(SessionRef, Result<Arc<dyn Recording>, Trouble>),
    Exported(Result<Exported, Trouble>),
    Compared(Result<Comparison, Trouble>),
    /// The decisions that this filter leaves.
    Audit(Option<String>, Result<Vec<Decision>, Trouble>),

    /// The text before it was edited, and what came of that; `None` if nothing was changed.
    Edited(Editing, String, Result<Option<String>, Trouble>),
    /// Where an edit of this held message is.
    Kept(u64, Result<PathBuf, Trouble>),
    Copied(Result<(), Trouble>),
}
