//! Commands for a running pipeline. Any thread sends one; the loop that owns the pipeline carries it out between two
//! batches. Nothing is shared, and nothing on the path is locked.

use tokio::sync::{mpsc, oneshot};

use crate::pipeline::Pipeline;

/// Commands that wait. Each is a few microseconds of work; a sender that finds the queue full waits.
const WAITING_MAX: usize = 256;

type Work = Box<dyn FnOnce(&mut Pipeline) + Send>;

/// Something to be done with the pipeline.
pub struct Command(Work);

impl Command {
    pub fn carry_out(self, pipeline: &mut Pipeline) {
        (self.0)(pipeline);
    }
}

/// The side that gives commands.
#[derive(Clone)]
pub struct CommandSender(mpsc::Sender<Command>);

/// The side that carries them out.
pub struct Commands(mpsc::Receiver<Command>);

pub fn commands() -> (CommandSender, Commands) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    (CommandSender(sender), Commands(receiver))
}

impl CommandSender {
    /// Has `work` done, and waits for what it gives. `None` if the pipeline is gone or going.
    pub async fn ask<R: Send + 'static>(&self, work: impl FnOnce(&mut Pipeline) -> R + Send + 'static) -> Option<R> {
        let (answer, answered) = oneshot::channel();
        let work = move |pipeline: &mut Pipeline| drop(answer.send(work(pipeline)));
        self.0.send(Command(Box::new(work))).await.ok()?;
        answered.await.ok()
    }
}

impl CommandSender {
    /// Has `work` done by whoever owns the pipeline, if it is still there. For threads that may wait for
    /// room, and not for what comes of it.
    pub fn leave(&self, work: impl FnOnce(&mut Pipeline) + Send + 'static) {
        let _ = self.0.blocking_send(Command(Box::new(work)));
    }

    /// Whether nobody carries out commands any more.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl Commands {
    /// The next command; `None` once nobody can give any.
    pub async fn next(&mut self) -> Option<Command> {
        self.0.recv().await
    }
}

/// The next command; never, where none can come any more.
pub async fn next_command(commands: &mut Option<Commands>) -> Command {
    if let Some(open) = commands {
        if let Some(command) = open.next().await {
            return command;
        }
        *commands = None;
    }
    std::future::pending().await
}
