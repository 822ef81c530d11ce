//! One connection: a task that writes, a task that reads, and the requests that wait for their answers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use mcp_wire::{Cut, Deframer, scan};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::client::{Progress, ProgressTold};
use crate::error::{ClientError, RpcError};
use crate::questions::{self, Questions};
use crate::streams::{Reader, Streams, Writer, lock};

/// Messages that wait to be written. A caller that sends more waits; a server that asks more than it takes answers
/// for is disconnected.
const OUTBOX_MAX: usize = 256;
/// Room for one read: the default capacity of a pipe.
const READ_AT_LEAST: usize = 64 * 1024;
/// Time for a server to end by itself.
const PARTING: Duration = Duration::from_secs(10);

pub(crate) struct Connection {
    outbox: mpsc::Sender<String>,
    shared: Arc<Shared>,
    reading: Ended,
    child: Option<Child>,
}

/// A task that ends with whoever wants it.
struct Ended(JoinHandle<()>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Shared {
    waiting: Mutex<Table>,
    questions: Arc<dyn Questions>,
    message_bytes_max: usize,
}

#[derive(Default)]
struct Table {
    last_id: u64,
    is_over: bool,
    by_id: HashMap<u64, Waiting>,
}

struct Waiting {
    answer: oneshot::Sender<Came>,
    progress: Option<ProgressTold>,
}

enum Came {
    Result(Box<RawValue>),
    Error(RpcError),
    TooLarge,
    Garbled,
}

impl Connection {
    /// Must be called inside a tokio runtime.
    pub(crate) fn begin(streams: Streams, questions: Arc<dyn Questions>, message_bytes_max: usize) -> Self {
        let (outbox, messages) = mpsc::channel(OUTBOX_MAX);
        let shared = Arc::new(Shared { waiting: Mutex::default(), questions, message_bytes_max });
        tokio::spawn(write(streams.writer, messages));
        let reading = tokio::spawn(read(streams.reader, Arc::clone(&shared), outbox.downgrade()));
        Self { outbox, shared, reading: Ended(reading), child: streams.child }
    }

    /// Asks, and waits for the answer. The id of the request is known only here, so `params` are made of it.
    pub(crate) async fn ask(
        &self,
        method: &str,
        params: impl FnOnce(u64) -> String,
        progress: Option<ProgressTold>,
    ) -> Result<Box<RawValue>, ClientError> {
        let hung_up = || ClientError::HungUp { method: method.to_owned() };
        let (answer, came) = oneshot::channel();
        let id = self.shared.enter(Waiting { answer, progress }).ok_or_else(hung_up)?;
        // The protocol has no way to take back the opening.
        let _taken_back = TakenBack { connection: self, id, may_say_so: method != "initialize" };
        let method_json = serde_json::Value::from(method);
        let params = params(id);
        let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method_json},"params":{params}}}"#);
        self.outbox.send(message).await.map_err(|_| hung_up())?;
        let method = method.to_owned();
        match came.await.map_err(|_| hung_up())? {
            Came::Result(result) => Ok(result),
            Came::Error(error) => Err(error.into()),
            Came::TooLarge => Err(ClientError::TooLarge { method, limit: self.shared.message_bytes_max }),
            Came::Garbled => {
                Err(ClientError::Unexpected { method, what: "there is neither a result nor a readable error".into() })
            }
        }
    }

    pub(crate) async fn tell(&self, notification: &str) {
        // Nobody waits for it; who is gone hears nothing.
        let _ = self.outbox.send(notification.to_owned()).await;
    }

    /// Says nothing more, and waits for the server to end, but not for ever.
    pub(crate) async fn close(self) {
        let Self { outbox, mut reading, child, .. } = self;
        drop(outbox);
        let _ = timeout(PARTING, &mut reading.0).await;
        if let Some(mut child) = child {
            let _ = timeout(PARTING, child.wait()).await;
        }
    }
}

/// A request whose answer nobody waits for any longer is taken back.
struct TakenBack<'a> {
    connection: &'a Connection,
    id: u64,
    may_say_so: bool,
}

impl Drop for TakenBack<'_> {
    fn drop(&mut self) {
        let was_open = lock(&self.connection.shared.waiting).by_id.remove(&self.id).is_some();
        if was_open && self.may_say_so {
            let id = self.id;
            let told = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"no longer wanted"}}}}"#
            );
            // Where there is no room the server is not keeping up, and would not hear it in time.
            let _ = self.connection.outbox.try_send(told);
        }
    }
}

async fn write(mut writer: Writer, mut messages: mpsc::Receiver<String>) {
    while let Some(mut message) = messages.recv().await {
        message.push('\n');
        if writer.write_all(message.as_bytes()).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
    let _ = writer.shutdown().await;
}

async fn read(mut reader: Reader, shared: Arc<Shared>, outbox: mpsc::WeakSender<String>) {
    let mut deframer = Deframer::new(shared.message_bytes_max);
    let mut cuts = Vec::new();
    loop {
        deframer.buffer().reserve(READ_AT_LEAST);
        let is_over = !matches!(reader.read_buf(deframer.buffer()).await, Ok(count) if count > 0);
        if is_over {
            deframer.finish(&mut cuts)
        } else {
            deframer.cut(&mut cuts)
        }
        let keeps_up = cuts.drain(..).all(|cut| shared.take(cut, &outbox));
        if is_over || !keeps_up {
            return shared.hang_up();
        }
    }
}

/// What is read of any message.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProgressParams {
    progress_token: u64,
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl Shared {
    /// Nothing once the connection is over.
    fn enter(&self, waiting: Waiting) -> Option<u64> {
        let mut table = lock(&self.waiting);
        if table.is_over {
            return None;
        }
        table.last_id += 1;
        let id = table.last_id;
        table.by_id.insert(id, waiting);
        Some(id)
    }

    fn hang_up(&self) {
        let mut table = lock(&self.waiting);
        table.is_over = true;
        table.by_id.clear();
    }

    /// False if the server takes no answers.
    fn take(&self, cut: Cut, outbox: &mpsc::WeakSender<String>) -> bool {
        match cut {
            Cut::Frame(frame) if frame.bytes.starts_with(b"[") => {
                scan::batch_items(&frame.bytes).all(|item| self.hear(&frame.bytes.slice(item.range()), outbox))
            }
            Cut::Frame(frame) => self.hear(&frame.bytes, outbox),
            Cut::TooLarge { head, tail, .. } => {
                let about = scan::salvage(&head, &tail).filter(|about| !about.is_request);
                let id = about.and_then(|about| std::str::from_utf8(about.id).ok()?.parse().ok());
                self.answer(id, Came::TooLarge);
                true
            }
            // What is no message is some program's chatter.
            Cut::Unframed { .. } => true,
        }
    }

    fn hear(&self, message: &Bytes, outbox: &mpsc::WeakSender<String>) -> bool {
        let Ok(heard) = serde_json::from_slice::<Envelope<'_>>(message) else { return true };
        match (&heard.method, heard.id) {
            (Some(method), Some(id)) => {
                let answer = questions::answer(&*self.questions, id, method, heard.params);
                return outbox.upgrade().is_none_or(|outbox| outbox.try_send(answer).is_ok());
            }
            (Some(method), None) if method == "notifications/progress" => self.progress(heard.params),
            (Some(_), None) | (None, None) => {}
            (None, Some(id)) => {
                let came = match (heard.result, heard.error) {
                    (Some(result), None) => Came::Result(result.to_owned()),
                    (_, Some(error)) => serde_json::from_str(error.get()).map_or(Came::Garbled, Came::Error),
                    (None, None) => Came::Garbled,
                };
                self.answer(id.get().parse().ok(), came);
            }
        }
        true
    }

    fn answer(&self, id: Option<u64>, came: Came) {
        let waiting = id.and_then(|id| lock(&self.waiting).by_id.remove(&id));
        if let Some(waiting) = waiting {
            // Whoever asked may have left in this moment.
            let _ = waiting.answer.send(came);
        }
    }

    fn progress(&self, params: Option<&RawValue>) {
        let told = params.and_then(|params| serde_json::from_str::<ProgressParams>(params.get()).ok());
        let Some(ProgressParams { progress_token, progress, total, message }) = told else { return };
        let listener = lock(&self.waiting).by_id.get(&progress_token).and_then(|waiting| waiting.progress.clone());
        if let Some(listener) = listener {
            listener(Progress { progress, total, message });
        }
    }
}
