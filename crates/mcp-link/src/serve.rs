//! The serve-and-shutdown sequence of a process, the same for a listener and for one client on a pipe.

use std::rc::Rc;

use mcp_engine::{Pipeline, StoreFailed};
use tokio::task::spawn_local;

use crate::Runtime;

/// Lets clients in: a listener, or the one pipe of a process.
pub trait Front {
    /// Serves clients until no more can come.
    fn serve(&self) -> impl Future<Output = ()>;

    /// Lets no more clients in and starts nothing new: this is the first step of the end.
    fn close(&self, why: Closing);

    /// Lets open calls finish, as long as they may.
    fn drain(&self) -> impl Future<Output = ()>;

    /// Ends links and servers, and waits until nothing of the servers is left.
    fn end(&self) -> impl Future<Output = ()>;

    /// Lets clients read what waits for them.
    fn flush(&self) -> impl Future<Output = ()>;
}

/// The reason that a front closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// No more clients can come.
    Done,
    /// The recording cannot be written.
    NotRecorded,
    /// The process was asked to end.
    Interrupted,
}

/// Signals that ask the process to end.
pub trait Interrupts {
    /// The next signal; true if a person sent it from the keyboard.
    fn next(&mut self) -> impl Future<Output = bool>;
}

/// How a front ended.
pub struct Ended {
    pub pipeline: Pipeline,
    pub store_failed: Option<StoreFailed>,
    /// A person interrupted it.
    pub interrupted: bool,
}

/// Runs `front` from its first client to its last. Each further signal cuts one step of the end short. Must be called
/// where tasks can stay on their thread.
pub async fn serve(runtime: &Rc<Runtime>, front: impl Front, interrupts: &mut impl Interrupts) -> Ended {
    let writing = spawn_local(Rc::clone(runtime).keep_committing());
    let obeying = spawn_local(Rc::clone(runtime).keep_obeying());
    let mut interrupted = false;
    let closing = tokio::select! {
        () = front.serve() => Closing::Done,
        () = runtime.stopped() => Closing::NotRecorded,
        by_person = interrupts.next() => {
            interrupted = by_person;
            Closing::Interrupted
        }
    };
    // Held messages go on, as far as there is somewhere to go.
    runtime.end_holds();
    front.close(closing);
    unless_interrupted(front.drain(), interrupts).await;
    unless_interrupted(front.end(), interrupts).await;
    unless_interrupted(front.flush(), interrupts).await;
    drop(front);
    for task in [writing, obeying] {
        task.abort();
        let _ = task.await;
    }
    let (pipeline, store_failed) = runtime.take_back();
    Ended { pipeline, store_failed, interrupted }
}

async fn unless_interrupted(step: impl Future<Output = ()>, interrupts: &mut impl Interrupts) {
    tokio::select! {
        biased;
        () = step => {}
        _ = interrupts.next() => {}
    }
}
