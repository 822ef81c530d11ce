//! A gateway whose client is on our standard input and output, from its first message to its last.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use mcp_engine::entrance::Entrance;
use mcp_engine::{Pipeline, Side, StoreFailed};
use mcp_wire::reply::Refusal;
use tokio::time::timeout;

use super::Gateway;
use super::board::Board;
use super::settings::Settings;
use crate::bridge::outflow::{CLIENT_STALLED, Outflow};
use crate::bridge::pipe_client;
use crate::bridge::talk::{ClientEnd, ServerEnd, Talk};
use crate::http::hub::Hub;
use crate::signals::Signals;
use crate::stdio::pipe::Pipe;

/// For a client that takes nothing of what is left for it.
const CLIENT_STALLED_FOR: Duration = Duration::from_secs(30);
/// How often it is looked whether calls are answered.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// How a gateway ended.
pub struct Ended {
    pub pipeline: Pipeline,
    pub store_failed: Option<StoreFailed>,
    /// A person interrupted us.
    pub interrupted: bool,
}

/// Serves one client until it is done. Must be called where tasks can stay on their thread.
pub async fn serve(
    (stdin, stdout): (Pipe, Pipe),
    (settings, entrance, board): (Settings, Rc<Entrance>, Board),
    pipeline: Pipeline,
    message_bytes_max: usize,
    tell: Box<dyn Fn(String)>,
) -> io::Result<Ended> {
    let mut signals = Signals::listen()?;
    let hub = Hub::new(pipeline, message_bytes_max, tell);
    let committer = tokio::task::spawn_local(Rc::clone(&hub).keep_committing());
    let obeyer = tokio::task::spawn_local(Rc::clone(&hub).keep_obeying());
    let drain = settings.drain;
    let gateway = Gateway::new(&hub, settings, entrance, board);
    let out = Rc::new(Outflow::of_many());
    let conversation = Rc::new(RefCell::new(hub.look(|pipeline| pipeline.begin_entrance())));
    let talk = Talk::new(&hub, conversation, ClientEnd::Pipe(Rc::clone(&out)));
    talk.connect(ServerEnd::Gateway(gateway.welcome(&talk, None)));
    let (injected, of_client) = (Rc::downgrade(&gateway), Rc::downgrade(&talk));
    hub.inject_with(move |injection| {
        let Some(gateway) = injected.upgrade() else { return };
        if let (Err(injection), Some(talk)) = (gateway.inject(injection), of_client.upgrade()) {
            talk.inject(injection);
        }
    });
    let mut writing = tokio::task::spawn_local({
        let out = Rc::clone(&out);
        async move { out.write_to_reader(stdout).await }
    });
    let mut interrupted = false;
    let mut is_asked = false;
    tokio::select! {
        () = pipe_client::serve(&talk, stdin) => {}
        // Nobody reads our answers any more.
        _ = &mut writing => if out.has_stalled() {
            hub.tell(CLIENT_STALLED.into());
        },
        () = hub.stopped() => talk.answer_open_calls(&Refusal::NotRecorded),
        interrupt = signals.next() => (interrupted, is_asked) = (interrupt, true),
    }
    // What is still held goes on, as far as there is somewhere to go.
    hub.end_holds();
    gateway.stop();
    if is_asked {
        let answered = async {
            while talk.conversation.borrow().open_calls(Side::Client) > 0 {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        tokio::select! {
            _ = timeout(drain, answered) => {}
            // Whoever asks twice means now.
            _ = signals.next() => {}
        }
        talk.answer_open_calls(&Refusal::Ending);
    }
    gateway.end_listening();
    talk.end();
    tokio::select! {
        () = gateway.end() => {}
        _ = signals.next() => {}
    }
    if !writing.is_finished() {
        tokio::select! {
            _ = timeout(CLIENT_STALLED_FOR, &mut writing) => {}
            _ = signals.next() => {}
        }
    }
    writing.abort();
    drop((talk, gateway));
    for task in [committer, obeyer] {
        task.abort();
        let _ = task.await;
    }
    let (pipeline, store_failed) = hub.take_back();
    Ok(Ended { pipeline, store_failed, interrupted })
}
