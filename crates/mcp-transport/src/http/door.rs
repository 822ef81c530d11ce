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
use tokio::time::sleep;

use super::sessions;
use super::site::Site;
use crate::peer;
use crate::stdio::client::PipeClient;
use crate::stdio::pipe::Pipe;
use crate::stdio::writer::PipeWriter;

/// Pause before the next attempt to accept when the system has no descriptor left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

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
    let out = Rc::new(PipeWriter::of_many());
    match sessions::begin_piped(&site, Rc::clone(&out)) {
        Ok(link) => {
            let client = PipeClient::new(Rc::clone(&link), out, (stdin, stdout));
            client.serve().await;
            link.end();
            client.flush().await;
            site.sessions.left(&link);
        }
        Err(refusal) => site.state.tell_once(&format!("a client was turned away at the door: {}", refusal.text())),
    }
}

/// The two directions of a connection.
fn ends(stream: &UnixStream) -> io::Result<(Pipe, Pipe)> {
    let end = || Pipe::shared(stream.as_fd(), OFlags::empty());
    Ok((end()?, end()?))
}
