//! The door of an instance that listens: a private socket whose connections are clients on stdio. Each has
//! a server of its own, as a client that started us would, and a conversation among the others.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::rc::Rc;
use std::time::Duration;

use rustix::fs::OFlags;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::outflow::{CLIENT_STALLED, Outflow};
use super::pipe_client;
use super::talk::Talk;
use crate::http::crossing;
use crate::http::site::Site;
use crate::peer;
use crate::stdio::pipe::Pipe;

/// For another try when the system has no descriptor left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// For a client that takes nothing of what is left for it.
const CLIENT_STALLED_FOR: Duration = Duration::from_secs(30);

/// Lets clients in for ever, once the door is there.
pub async fn serve(site: Rc<Site>, door: oneshot::Receiver<StdUnixListener>) {
    let Some(listener) = door.await.ok().and_then(|door| UnixListener::from_std(door).ok()) else { return };
    loop {
        match listener.accept().await {
            Ok((stream, _)) if peer::is_own(&stream) => {
                tokio::task::spawn_local(attend(Rc::clone(&site), stream));
            }
            Ok(_) => {}
            Err(_) => sleep(ACCEPT_AGAIN).await,
        }
    }
}

/// Sees a client through from its first message to its last.
async fn attend(site: Rc<Site>, stream: UnixStream) {
    let Ok((stdin, stdout)) = ends(&stream) else { return };
    drop(stream);
    let out = Rc::new(Outflow::of_many());
    match crossing::begin_piped(&site, Rc::clone(&out)) {
        Ok(talk) => {
            relay(&talk, stdin, stdout, out).await;
            site.crossings.left(&talk);
        }
        Err(refusal) => site.hub.tell_once(&format!("a client was turned away at the door: {}", refusal.text())),
    }
}

async fn relay(talk: &Rc<Talk>, stdin: Pipe, stdout: Pipe, out: Rc<Outflow>) {
    let mut writing = tokio::task::spawn_local({
        let out = Rc::clone(&out);
        async move { out.write_to_reader(stdout).await }
    });
    tokio::select! {
        () = pipe_client::serve(talk, stdin) => {}
        // Nobody reads our answers any more.
        _ = &mut writing => if out.has_stalled() {
            talk.hub.tell(CLIENT_STALLED.into());
        },
        () = talk.over() => {}
    }
    talk.end();
    if !writing.is_finished() {
        let _ = timeout(CLIENT_STALLED_FOR, &mut writing).await;
    }
    writing.abort();
}

/// The two directions of a connection.
fn ends(stream: &UnixStream) -> io::Result<(Pipe, Pipe)> {
    let end = || Pipe::shared(stream.as_fd(), OFlags::empty());
    Ok((end()?, end()?))
}
