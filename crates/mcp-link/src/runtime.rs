//! The pipeline that all links of a process share, and the one writer behind it.
//!
//! All of it lives on one thread. Links and exchanges call the pipeline for each message, with no lock and no hop between
//! tasks; one write takes the records of all exchanges of a turn.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::ops::Deref;
use std::rc::Rc;
use std::task::Poll;

use foldhash::fast::RandomState;
use mcp_engine::commands::next_command;
use mcp_engine::pipeline::{Injection, Outgoing};
use mcp_engine::{Bus, Outbox, Pipeline, Recorder, Release, StoreFailed};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

/// Bytes of messages that wait for the commit at the end of a turn. Past it they are written at once: a busy
/// exchange makes a turn long, and waiting messages stay in memory.
const UNCOMMITTED_BYTES_MAX: usize = 512 * 1024;
/// Different failures of connections printed on standard error, each once: a server that fails in a new way each
/// time must not fill a log.
const TOLD_MAX: usize = 16;

/// Turns of the loop that one write may take together while each brings more, and the bytes of messages that
/// suffice for one. A write costs as much as recording several small messages; a turn is a fraction of a
/// millisecond.
const TURNS_MAX: usize = 16;
const WORTH_A_WRITE: usize = 64 * 1024;
/// Messages of one decision whose room is kept for the next.
const OUTBOX_KEPT: usize = 256;

pub struct Runtime {
    pipeline: RefCell<Pipeline>,
    pub message_bytes_max: usize,
    /// Whether a message must be on disk before it leaves, and so be held until it is whole.
    pub records_first: bool,
    /// Whether anything is written at all.
    writes: bool,
    uncommitted: Cell<bool>,
    uncommitted_bytes: Cell<usize>,
    commit: Notify,
    failed: RefCell<Option<StoreFailed>>,
    stop: Notify,
    /// Kept for the next decision.
    /// As many as decisions are ever made within each other.
    outboxes: RefCell<Vec<Outbox>>,
    calls: Rc<Cell<usize>>,
    /// What is to be done with messages that are parked, once they are free.
    waiting: RefCell<HashMap<u64, Waiter, RandomState>>,
    /// Something was parked, or came free.
    parked: Notify,
    /// Sends what no client sent.
    injector: RefCell<Option<Injector>>,
    tell: Box<dyn Fn(String)>,
    told: RefCell<HashSet<String>>,
}

/// What leaves after a decision. The room it takes is used again.
pub struct Decided<'a> {
    out: Outbox,
    runtime: &'a Runtime,
}

impl Deref for Decided<'_> {
    type Target = Outbox;

    fn deref(&self) -> &Outbox {
        &self.out
    }
}

impl Drop for Decided<'_> {
    fn drop(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        if out.to_client.capacity().max(out.to_server.capacity()) <= OUTBOX_KEPT {
            self.runtime.outboxes.borrow_mut().push(out);
        }
    }
}

/// Goes on once everything that is to be done in this turn of the loop is done: what a message woke, such as the writer
/// of the pipe that it goes to, comes behind whoever waited for this turn already.
async fn let_others_go_first() {
    let mut is_last = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut is_last, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

type Waiter = Box<dyn FnOnce(Release)>;
type Injector = Box<dyn Fn(Injection)>;

/// A call that somebody waits for, while it is open.
pub struct OpenCall(Rc<Cell<usize>>);

impl OpenCall {
    /// One that is counted there.
    pub fn counted(open: &Rc<Cell<usize>>) -> Self {
        open.set(open.get() + 1);
        Self(Rc::clone(open))
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Runtime {
    pub fn new(pipeline: Pipeline, message_bytes_max: usize, tell: Box<dyn Fn(String)>) -> Rc<Self> {
        let (records_first, writes) = (pipeline.journal.records_first(), pipeline.journal.writes());
        Rc::new(Self {
            pipeline: RefCell::new(pipeline),
            message_bytes_max,
            records_first,
            writes,
            uncommitted: Cell::new(false),
            uncommitted_bytes: Cell::new(0),
            commit: Notify::new(),
            failed: RefCell::default(),
            stop: Notify::new(),
            outboxes: RefCell::default(),
            calls: Rc::default(),
            waiting: RefCell::default(),
            parked: Notify::new(),
            injector: RefCell::default(),
            tell,
            told: RefCell::default(),
        })
    }

    /// Lets the pipeline decide something, and sees to it that what it recorded is written. Where
    /// the evidence must be complete that is done before anything leaves, and what could not be
    /// written stays.
    pub fn pass<R>(&self, decide: impl FnOnce(&mut Pipeline, &mut Outbox) -> R) -> (R, Decided<'_>) {
        let mut out = self.outboxes.borrow_mut().pop().unwrap_or_default();
        let mut pipeline = self.pipeline.borrow_mut();
        let result = decide(&mut pipeline, &mut out);
        let passed = out.to_server.iter().chain(&out.to_client).map(|outgoing| outgoing.frame().bytes.len());
        if !self.keep(pipeline, passed.sum()) {
            out.to_server.clear();
            // A refusal of our own is no evidence of anything.
            out.to_client.retain(|outgoing| matches!(outgoing, Outgoing::Reply(..)));
        }
        if !out.parked.is_empty() || out.withheld > 0 {
            self.parked.notify_one();
        }
        (result, Decided { out, runtime: self })
    }

    /// Does `then` when the parked message `sequence` is free. If the proxy ends first it is never done.
    pub fn when_released(&self, sequence: u64, then: impl FnOnce(Release) + 'static) {
        self.waiting.borrow_mut().insert(sequence, Box::new(then));
    }

    /// The same for a task that waits.
    pub fn released(&self, sequence: u64) -> oneshot::Receiver<Release> {
        let (sender, receiver) = oneshot::channel();
        self.when_released(sequence, move |release| drop(sender.send(release)));
        receiver
    }

    /// Whether messages are held, or could be.
    pub fn watches(&self) -> bool {
        self.look(|pipeline| pipeline.watches())
    }

    /// Whether messages are judged.
    pub fn is_governed(&self) -> bool {
        self.look(|pipeline| pipeline.governance.is_governed())
    }

    /// The parked message `sequence` is of no use to anybody any more.
    pub fn discard(&self, sequence: u64) {
        self.note(|pipeline| pipeline.decisions().discard(sequence));
        self.give_back_soon();
    }

    /// Holds nothing any more, and lets go of all that is held: the proxy is ending.
    pub fn end_holds(&self) {
        self.note(|pipeline| pipeline.decisions().end_holds());
        self.give_back();
    }

    /// Has what came free handed on, when this is done.
    pub fn give_back_soon(&self) {
        self.parked.notify_one();
    }

    /// A message was parked that had left already.
    pub fn release_late(&self, sequence: u64) {
        self.note(|pipeline| pipeline.decisions().release_late(sequence));
        self.give_back_soon();
    }

    /// Carries out commands, and lets messages go that were held long enough, over and over.
    pub async fn keep_obeying(self: Rc<Self>) {
        let mut commands = self.look(Pipeline::take_commands);
        loop {
            let deadline = self.look(|pipeline| pipeline.holds.deadline());
            tokio::select! {
                command = next_command(&mut commands) => self.look(|pipeline| command.carry_out(pipeline)),
                () = self.parked.notified() => {}
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    self.look(|pipeline| pipeline.decisions().release_overdue());
                }
            }
            self.give_back();
            for injection in self.look(|pipeline| pipeline.injections.take()) {
                if let Some(inject) = &*self.injector.borrow() {
                    inject(injection);
                }
            }
        }
    }

    /// From now on `inject` sends what no client sent.
    pub fn inject_with(&self, inject: impl Fn(Injection) + 'static) {
        self.injector.replace(Some(Box::new(inject)));
    }

    /// Hands what came free to whoever waits for it.
    pub fn give_back(&self) {
        for release in self.note(|pipeline| pipeline.holds.take_released()) {
            let waiter = self.waiting.borrow_mut().remove(&release.sequence);
            if let Some(waiter) = waiter.filter(|_| !self.has_failed()) {
                waiter(release);
            }
        }
    }

    /// Has what was recorded written, with messages of so many bytes. False if that had to be done at
    /// once, and failed.
    fn keep(&self, mut pipeline: RefMut<'_, Pipeline>, bytes: usize) -> bool {
        if !self.records_first {
            drop(pipeline);
            self.commit_soon(bytes);
            return true;
        }
        let committed = pipeline.commit();
        drop(pipeline);
        committed.map_err(|failed| self.fail(failed)).is_ok()
    }

    fn commit_soon(&self, bytes: usize) {
        if !self.writes {
            return;
        }
        self.uncommitted_bytes.set(self.uncommitted_bytes.get() + bytes);
        if self.uncommitted_bytes.get() > UNCOMMITTED_BYTES_MAX {
            self.commit_now();
        } else if !self.uncommitted.replace(true) {
            self.commit.notify_one();
        }
    }

    /// Has the pipeline take note of something that is no message.
    pub fn note<R>(&self, note: impl FnOnce(&mut Pipeline) -> R) -> R {
        let mut pipeline = self.pipeline.borrow_mut();
        let result = note(&mut pipeline);
        self.keep(pipeline, 0);
        result
    }

    /// When the newest message came, if that was a moment ago, and else now.
    pub fn recent(&self) -> Instant {
        // What is moments ago it knows by what was written since.
        if self.writes { Instant::from_std(self.pipeline.borrow().journal.recent()) } else { Instant::now() }
    }

    /// Looks at the pipeline without changing what is recorded.
    pub fn look<R>(&self, look: impl FnOnce(&mut Pipeline) -> R) -> R {
        look(&mut self.pipeline.borrow_mut())
    }

    /// Writes what was recorded, over and over. It comes last in a turn of the loop, so that one
    /// write takes all that the turn brought, and that of the next few while they bring more.
    pub async fn keep_committing(self: Rc<Self>) {
        loop {
            self.commit.notified().await;
            for _ in 0..TURNS_MAX {
                let before = self.uncommitted_bytes.get();
                tokio::task::yield_now().await;
                if self.uncommitted_bytes.get() == before || before > WORTH_A_WRITE {
                    break;
                }
            }
            let_others_go_first().await;
            self.commit_now();
        }
    }

    pub fn commit_now(&self) {
        self.uncommitted.set(false);
        self.uncommitted_bytes.set(0);
        let mut pipeline = self.pipeline.borrow_mut();
        let committed = pipeline.commit();
        let trouble = pipeline.journal.take_trouble();
        drop(pipeline);
        if let Some(trouble) = trouble {
            (self.tell)(trouble);
        }
        if let Err(failed) = committed {
            self.fail(failed);
        }
    }

    pub fn open_call(&self) -> OpenCall {
        OpenCall::counted(&self.calls)
    }

    pub fn open_calls(&self) -> usize {
        self.calls.get()
    }

    pub fn tell(&self, text: String) {
        (self.tell)(text);
    }

    /// Says what may happen over and over, the first time it does.
    pub fn tell_once(&self, text: &str) {
        let mut told = self.told.borrow_mut();
        if told.len() < TOLD_MAX && told.insert(text.to_owned()) {
            (self.tell)(text.to_owned());
        }
    }

    fn fail(&self, failed: StoreFailed) {
        self.failed.borrow_mut().get_or_insert(failed);
        self.stop.notify_one();
    }

    /// Whether the store failed and nothing may pass any more.
    pub fn has_failed(&self) -> bool {
        self.failed.borrow().is_some()
    }

    /// Comes when the proxy must end because it cannot record.
    pub async fn stopped(&self) {
        self.stop.notified().await;
    }

    /// Writes what is left and gives the pipeline back. Whatever still comes from an exchange that
    /// nobody waits for any more is no longer recorded.
    pub fn take_back(&self) -> (Pipeline, Option<StoreFailed>) {
        self.commit_now();
        let nothing = Pipeline::new(Recorder::off(), Bus::default(), self.message_bytes_max);
        (self.pipeline.replace(nothing), self.failed.take())
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::{LocalSet, spawn_local, yield_now};

    use super::*;

    /// A message wakes the writer of a pipe. Whoever was to go next by then goes after that writer all the same.
    #[tokio::test]
    async fn what_is_woken_meanwhile_goes_first() {
        let (order, written) = (Rc::new(RefCell::new(Vec::new())), Rc::new(Notify::new()));
        let tell = |what| {
            let order = Rc::clone(&order);
            move || order.borrow_mut().push(what)
        };
        let (is_written, is_recorded) = (tell("written"), tell("recorded"));
        let (wakes, is_woken) = (Rc::clone(&written), written);
        let tasks = LocalSet::new();
        tasks
            .run_until(async {
                let writer = spawn_local(async move {
                    is_woken.notified().await;
                    is_written();
                });
                yield_now().await;
                spawn_local(async move { wakes.notify_one() });
                let recorder = spawn_local(async move {
                    let_others_go_first().await;
                    is_recorded();
                });
                recorder.await.expect("it ends");
                writer.await.expect("it ends");
            })
            .await;
        assert_eq!(*order.borrow(), ["written", "recorded"]);
    }
}
