//! A client on stdio whose server has conversations with others too, or is not a process: on our own
//! standard input and output, or behind the door.

use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use mcp_engine::Side;
use mcp_wire::reply::Refusal;
use mcp_wire::{Deframer, Framing};
use tokio::time::{Instant, timeout};

use super::child_link::ChildLink;
use super::talk::{ClientEnd, ServerEnd, Talk};
use crate::stdio::pipe::Pipe;

/// What calls and messages on their way get to finish once the client sends no more.
const CALLS_FOR: Duration = Duration::from_secs(10);
/// How often they are counted meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// What a server that is a process gets to end by itself, without open calls.
const IDLE_FOR: Duration = Duration::from_secs(2);

/// Passes on what the client sends, until it sends no more and its calls are answered.
pub async fn serve(talk: &Rc<Talk>, mut stdin: Pipe) {
    let mut deframer = Deframer::new(talk.hub.message_bytes_max);
    let mut cuts = Vec::new();
    loop {
        talk.server_room().await;
        // A client that reads no answers gets to ask for no more of them.
        talk.client_room().await;
        let read = poll_fn(|cx| stdin.poll_read(cx, deframer.buffer(), false)).await;
        let at_end = !matches!(read, Ok(count) if count > 0);
        if at_end {
            deframer.finish(&mut cuts);
        } else {
            deframer.cut(&mut cuts);
        }
        if let ClientEnd::Pipe(out) = &talk.client {
            out.note_line_ends(&cuts);
        }
        if let Some(framing) = deframer.framing() {
            speak(talk, framing);
        }
        if !cuts.is_empty() {
            talk.from_client_cuts(&mut cuts);
        }
        if at_end {
            break;
        }
    }
    talk.client_is_silent();
    // What is held goes on in the end, or somebody decides otherwise.
    while talk.holds_from_client() && !talk.is_over() {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    if let Some(ServerEnd::Child(link)) = talk.server() {
        return see_out(talk, link).await;
    }
    if let Some(ServerEnd::Gateway(visitor)) = talk.server() {
        // Nothing is to be waited for where it only listened.
        visitor.end_listening();
    }
    let answered = async {
        while talk.conversation.borrow().open_calls(Side::Client) > 0 || !talk.server_was_told_all() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    if timeout(CALLS_FOR, answered).await.is_err() {
        talk.answer_open_calls(&Refusal::StreamLost);
    }
}

/// The client gets its own framing, and so does a server that is a process, which was made for such
/// clients.
fn speak(talk: &Talk, framing: Framing) {
    if let ClientEnd::Pipe(out) = &talk.client {
        out.speak(framing);
    }
    if let Some(ServerEnd::Child(link)) = talk.server() {
        link.stdin.speak(framing);
    }
}

/// Asks a server to end by closing its input, and passes on what it says until it has.
async fn see_out(talk: &Talk, link: &ChildLink) {
    link.stdin.close();
    let asked = Instant::now();
    while !talk.is_over() {
        let works = talk.conversation.borrow().open_calls(Side::Client) > 0;
        if asked.elapsed() > if works { CALLS_FOR } else { IDLE_FOR } {
            return talk.answer_open_calls(&Refusal::StreamLost);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
