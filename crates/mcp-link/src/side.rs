//! The traits of the two sides of a link; `Connector` and `Backend` supply server sides.

use std::any::Any;
use std::borrow::Cow;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use mcp_engine::entrance::{Entrance, Principal};
use mcp_engine::pipeline::{Injection, Outgoing};
use mcp_engine::{Conversation, Lane};
use mcp_store::Transport;
use mcp_wire::reply::Refusal;
use mcp_wire::revision::Era;
use mcp_wire::{Cut, FrameRef, Framing, Id, Message};

use crate::Link;

/// The status of a server's process that never began.
pub const NOT_STARTED: &str = "could not be started";

/// A wait in a box. Sides say without one whether there is anything to wait for.
pub type Waiting<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A message that passed the pipeline, on its way to a side.
#[derive(Clone, Copy)]
pub struct Passed<'a> {
    pub frame: FrameRef<'a>,
    /// The scanned message, unless the proxy composed it.
    message: Option<&'a Message>,
    /// The number under which it is recorded; 0 if it is not.
    pub sequence: u64,
}

impl<'a> Passed<'a> {
    pub fn of(outgoing: &'a Outgoing) -> Self {
        Self { frame: outgoing.frame(), message: outgoing.message(), sequence: outgoing.sequence() }
    }

    /// A message that was recorded as `sequence` in another form.
    pub fn composed(message: &'a Message, sequence: u64) -> Self {
        Self { frame: FrameRef::composed(message.bytes()), message: Some(message), sequence }
    }

    /// A frame of the proxy's own that no record stands for.
    pub fn unrecorded(frame: FrameRef<'a>) -> Self {
        Self { frame, message: None, sequence: 0 }
    }

    pub fn message(&self) -> Cow<'a, Message> {
        match self.message {
            Some(message) => Cow::Borrowed(message),
            None => Cow::Owned(Message::new(self.frame.bytes.clone())),
        }
    }
}

/// The side of a link that faces a client.
pub trait ClientSide {
    /// The transport that recordings name.
    fn transport(&self) -> Transport;

    /// Takes a message for the client.
    fn deliver(&self, passed: Passed<'_>);

    /// Bytes that the client has yet to read.
    fn unread_bytes(&self) -> usize;

    /// The wait until the client has read enough of what waits for it; `None` if there is room.
    fn room(&self) -> Option<Waiting<'_>>;

    /// The link has ended.
    fn end(&self, link: &Link);

    /// The client's exchanges, if each of its requests comes in one.
    fn exchanges(&self) -> Option<&dyn Exchanges> {
        None
    }

    /// The gateway's connection, if that is the client.
    fn upstream(&self) -> Option<&dyn UpstreamClient> {
        None
    }
}

/// The exchanges of a client that sends each request in one of its own.
pub trait Exchanges {
    fn era(&self) -> Era;

    /// Every answer names its request: nothing is taken to belong to the only open call.
    fn answers_name_requests(&self);

    /// Passes what one read of a server's pipe brought.
    fn pass_cuts(&self, link: &Link, cuts: &mut Vec<Cut>);

    /// Passes a message of the server that concerns the request `about`, as the server knows it.
    fn pass(&self, link: &Link, lane: Lane<'_>, about: Option<&Id>, message: Message);

    /// Lends every open call to the conversation while `answer` answers from there.
    fn lend_calls(&self, conversation: &mut Conversation, answer: &mut dyn FnMut(&mut Conversation));

    /// Closes the stream of the call `known`; a client that can asks for the rest after `retry`.
    fn pause(&self, known: &Id, retry: Option<Duration>);
}

/// A gateway's connection to one of its servers, which is the client of that server.
pub trait UpstreamClient {
    /// The server's id.
    fn server(&self) -> &str;

    /// Runs `take` for messages that came with the answer to `about`.
    fn take_about(&self, about: Option<&Id>, take: &mut dyn FnMut());

    /// The server's process ended by itself, with these last words.
    fn died(&self, status: &str, last_words: &str);

    /// A session that the server had forgotten was opened again.
    fn reopened(&self);

    /// The server closed the stream of an answer before that came, to be asked for the rest after `retry`.
    fn paused(&self, about: Option<&Id>, retry: Option<Duration>);

    /// The server refused a call by an HTTP status; its answer comes next.
    fn refused(&self, about: Option<&Id>, refusal: &Refusal);
}

/// The side of a link that faces a server.
pub trait ServerSide {
    /// Takes a message for the server.
    fn take(&self, passed: Passed<'_>);

    /// The wait until the server has taken enough of what waits for it; `None` if there is room.
    fn room(&self) -> Option<Waiting<'_>> {
        None
    }

    /// Takes out of the client's messages what must not be recorded.
    fn cleanse(&self, _cuts: &mut [Cut]) {}

    /// The client sends nothing more. True if the server ends by itself once it has read all of it.
    fn input_ended(&self) -> bool {
        false
    }

    /// The framing of the client, for a server without one of its own.
    fn speak(&self, _framing: Framing) {}

    /// Whether everything that asks for no answer has reached the server.
    fn has_told_all(&self) -> bool {
        true
    }

    /// The headers of `edited` repeat what the message said as it came.
    fn keep_headers(&self, _edited: Option<&Bytes>, _came: &Message) {}

    /// Whether the server's process is stopped, as by SIGSTOP.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Whether the server was tried for, and never once reached.
    fn was_missed(&self) -> bool {
        false
    }

    /// The link has ended.
    fn end(&self) {}
}

/// Held by a server side until nothing of its server is left.
pub type Alive = Box<dyn Any>;

/// Reaches one server: starts its process, or speaks with its address.
pub trait Connector {
    /// Gives `link` its server side. `alive` is held until nothing of the server is left.
    fn connect(&self, link: &Rc<Link>, alive: Alive) -> io::Result<()>;

    /// The transport, by which people know the connection.
    fn transport(&self) -> Transport;

    /// Whether the server is a process of ours.
    fn is_process(&self) -> bool {
        false
    }

    /// Whether the command may have to install its server first.
    fn may_install(&self) -> bool {
        false
    }

    /// Whether answers and other messages share one stream, which does not say what belongs together.
    fn has_one_stream(&self) -> bool {
        self.is_process()
    }

    /// The address takes no messages in this way. True if there is another, which is tried from now on.
    fn try_another_way(&self) -> bool {
        false
    }

    /// The server introduced itself.
    fn opened(&self) {}

    /// The server did not introduce itself.
    fn not_opened(&self) {}
}

/// A server that is not ready, as anyone may know.
pub struct Unready {
    pub id: String,
    pub state: &'static str,
    pub retry_after_ms: Option<u64>,
}

/// Many servers behind the links of a process.
pub trait Backend {
    /// Checks who clients are.
    fn entrance(&self) -> &Rc<Entrance>;

    /// Starts the servers that do not wait for a client.
    fn start_early(&self);

    /// The server side for a client whose link is `link`.
    fn welcome(&self, link: &Rc<Link>, principal: Option<Rc<Principal>>) -> Rc<dyn ServerSide>;

    /// Sends a server a message that no client sent; it comes back if it is for a client's conversation.
    fn inject(&self, injection: Injection) -> Result<(), Injection>;

    fn unready(&self) -> Vec<Unready>;

    /// Starts nothing any more, and ends subscriptions.
    fn stop(&self);

    /// Ends every server, and waits until nothing of them is left.
    fn end(&self) -> Waiting<'_>;
}
