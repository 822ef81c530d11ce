//! A client on our standard input and output, in front of a server that is not a process.

use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use mcp_engine::Side;
use mcp_wire::Deframer;
use mcp_wire::reply::Refusal;
use tokio::time::timeout;

use super::talk::{ClientEnd, Talk};
use crate::stdio::pipe::Pipe;

/// What calls and messages on their way get to finish once the client sends no more.
const CALLS_FOR: Duration = Duration::from_secs(10);
/// How often they are counted meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

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
        if let (ClientEnd::Pipe(out), Some(framing)) = (&talk.client, deframer.framing()) {
            out.speak(framing);
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
    let answered = async {
        while talk.conversation.borrow().open_calls(Side::Client) > 0 || !talk.server_was_told_all() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    if timeout(CALLS_FOR, answered).await.is_err() {
        talk.answer_open_calls(&Refusal::StreamLost);
    }
}
