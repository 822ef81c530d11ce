//! Where orders for the data path are handed in. Whoever wants something of a running pipeline, from
//! whatever thread, leaves an order; the loop that owns the pipeline carries it out between two
//! batches. Nothing is shared, and nothing on the path is locked.

use tokio::sync::{mpsc, oneshot};

use crate::pipeline::Pipeline;

/// Orders that wait. Each is a few microseconds of work; a sender that finds the queue full waits.
const WAITING_MAX: usize = 256;

type Work = Box<dyn FnOnce(&mut Pipeline) + Send>;

/// Something to be done with the pipeline.
pub struct Order(Work);

impl Order {
    pub fn carry_out(self, pipeline: &mut Pipeline) {
        (self.0)(pipeline);
    }
}

/// The side that gives orders.
#[derive(Clone)]
pub struct Orders(mpsc::Sender<Order>);

/// The side that carries them out.
pub struct Desk(mpsc::Receiver<Order>);

pub fn desk() -> (Orders, Desk) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    (Orders(sender), Desk(receiver))
}

impl Orders {
    /// Has `work` done, and waits for what it gives. `None` if the pipeline is gone or going.
    pub async fn ask<R: Send + 'static>(&self, work: impl FnOnce(&mut Pipeline) -> R + Send + 'static) -> Option<R> {
        let (answer, answered) = oneshot::channel();
        let work = move |pipeline: &mut Pipeline| drop(answer.send(work(pipeline)));
        self.0.send(Order(Box::new(work))).await.ok()?;
        answered.await.ok()
    }
}

impl Orders {
    /// Has `work` done by whoever owns the pipeline, if it is still there. For threads that may wait for
    /// room, and not for what comes of it.
    pub fn leave(&self, work: impl FnOnce(&mut Pipeline) + Send + 'static) {
        let _ = self.0.blocking_send(Order(Box::new(work)));
    }

    /// Whether nobody carries out orders any more.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl Desk {
    /// The next order; `None` once nobody can give any.
    pub async fn next(&mut self) -> Option<Order> {
        self.0.recv().await
    }
}

/// The next order; never, where none can come any more.
pub async fn next_order(desk: &mut Option<Desk>) -> Order {
    if let Some(open) = desk {
        if let Some(order) = open.next().await {
            return order;
        }
        *desk = None;
    }
    std::future::pending().await
}
