//! Bytes between a client on our standard input and output and a connection to an instance, as they are:
//! messages are the instance's business.

use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::task::Poll;

use mcp_wire::Gather;
use rustix::fs::OFlags;
use rustix::net::{Shutdown, shutdown};

use super::pipe::Pipe;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The instance closed its end, after it said something or when nobody asked anything any more.
    Closed,
    /// The instance closed its end on a client that had spoken and was there, and never said anything.
    Unanswered,
    /// The client reads no more.
    ClientGone,
}

/// Carries bytes both ways until the instance closes its end, or the client is gone.
pub async fn carry((mut stdin, mut stdout): (Pipe, Pipe), instance: &UnixStream) -> io::Result<Ended> {
    let end = || Pipe::shared(instance.as_fd(), OFlags::empty());
    let (mut from, mut to) = (end()?, end()?);
    let mut waits = false;
    let up = async {
        while let Some(bytes) = read(&mut stdin).await {
            waits = true;
            if write(&mut to, &bytes).await.is_err() {
                return std::future::pending().await;
            }
        }
        waits = false;
        // What is on its way back comes all the same.
        let _ = shutdown(instance, Shutdown::Write);
        std::future::pending().await
    };
    let (mut answered, mut gone) = (false, false);
    let down = async {
        while let Some(bytes) = read_while_wanted(&mut from, &mut stdout).await {
            answered = true;
            if write(&mut stdout, &bytes).await.is_err() {
                gone = true;
                return;
            }
        }
        gone = poll_fn(|cx| Poll::Ready(stdout.poll_unread(cx))).await;
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
    Ok(match (gone, waits && !answered) {
        (true, _) => Ended::ClientGone,
        (false, true) => Ended::Unanswered,
        (false, false) => Ended::Closed,
    })
}

/// What comes next; nothing at the end.
async fn read(from: &mut Pipe) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = poll_fn(|cx| from.poll_read(cx, &mut bytes, false)).await;
    matches!(read, Ok(count) if count > 0).then_some(bytes)
}

/// The same, unless nobody wants it any more.
async fn read_while_wanted(from: &mut Pipe, reader: &mut Pipe) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = poll_fn(|cx| {
        if reader.poll_unread(cx) {
            return Poll::Ready(Ok(0));
        }
        from.poll_read(cx, &mut bytes, false)
    });
    matches!(read.await, Ok(count) if count > 0).then_some(bytes)
}

async fn write(to: &mut Pipe, bytes: &[u8]) -> io::Result<()> {
    let mut waiting = Gather::default();
    waiting.copy(bytes);
    poll_fn(|cx| to.poll_write(cx, &mut waiting)).await
}
