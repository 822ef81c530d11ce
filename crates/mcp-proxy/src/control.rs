//! The control endpoint of a running proxy: a private socket, and loopback TCP if asked for. It lives
//! on a thread of its own, sends the data path commands and listens to its bus; the data path waits for
//! nothing here.

mod act;
mod aloud;
mod asks;
pub(crate) mod exchange;
mod explain;
mod gate;
mod heard;
pub(crate) mod history;
mod holds;
mod hub;
mod lease;
mod look;
mod openapi;
mod policy;
mod reply;
mod request;
mod ring;
mod server;
mod servers;
mod shared;
mod site;
mod strangers;
mod stream;
pub(crate) mod tell;

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use mcp_control::api::Code;
use mcp_control::instances::{Description, InstanceError, Instances, Registration};
use mcp_engine::{Bus, CommandSender};
use mcp_gateway::board::Board;
use mcp_store::recorded::timestamp;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

use gate::Gate;
use hub::Hub;
use shared::Shared;

use crate::report::{announce, say};

pub(crate) use aloud::voice;
pub(crate) use shared::Card;

/// Time for faces to hear that the proxy has ended; the process exits after it.
const GOODBYE_FOR: Duration = Duration::from_millis(400);
/// Threads that read history.
const READING_THREADS: usize = 4;

/// What a control endpoint is made of.
pub struct Setup {
    pub card: Card,
    /// Where instances are found; without it there is no socket.
    pub state: Option<PathBuf>,
    /// Loopback TCP.
    pub tcp: Option<TcpListener>,
    pub commands: CommandSender,
    pub bus: Bus,
    /// Whether what passes can be read from a recording.
    pub is_recorded: bool,
    pub message_bytes_max: usize,
    /// Where the rules were read from.
    pub rules_file: Option<PathBuf>,
    /// How the servers of a gateway are; none where there is one server only.
    pub board: Option<Board>,
    /// What is said of questions that rules ask.
    pub questions: Option<mpsc::Receiver<String>>,
}

/// A control endpoint that runs until it is ended.
pub struct Control {
    pub id: Uuid,
    /// Where the private socket is, once faces can connect to it; never if there is none.
    pub socket: Option<oneshot::Receiver<PathBuf>>,
    /// The door for clients on stdio, if there is one.
    pub door: Option<oneshot::Receiver<UnixListener>>,
    end: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Control {
    /// Begins at once; everything that takes time happens on the new thread.
    pub fn start(setup: Setup) -> std::io::Result<Self> {
        let (end, ended) = oneshot::channel();
        let ((to_socket, socket), (to_door, door)) = (oneshot::channel(), oneshot::channel());
        let opened = Opened { socket: to_socket, door: setup.card.listens().then_some(to_door) };
        let (id, hub) = (setup.card.id, Hub::new(setup.bus.clone()));
        let begin = move || run(setup, hub, opened, ended);
        let thread = std::thread::Builder::new().name("control".into()).spawn(begin)?;
        Ok(Self { id, socket: Some(socket), door: Some(door), end, thread })
    }

    /// Tells the faces, and takes the instance away from where it is found.
    pub fn end(self) {
        let _ = self.end.send(());
        let _ = self.thread.join();
    }
}

/// Who is told what was opened.
struct Opened {
    socket: oneshot::Sender<PathBuf>,
    /// Where clients do not come over our own standard input.
    door: Option<oneshot::Sender<UnixListener>>,
}

fn run(setup: Setup, hub: Arc<Hub>, opened: Opened, ended: oneshot::Receiver<()>) {
    let _nobody_after = NobodyAfter(setup.commands.clone());
    let runtime = Builder::new_current_thread().enable_io().enable_time().max_blocking_threads(READING_THREADS).build();
    match runtime {
        Ok(runtime) => {
            runtime.block_on(serve(setup, hub, opened, ended));
            // Whoever still reads history does so for nobody.
            runtime.shutdown_background();
        }
        Err(error) => say(&format!("mcp-proxy: warning: nobody can attach to this instance: {error}")),
    }
}

/// However this thread ends, the data path learns that nobody is there any more who could decide.
struct NobodyAfter(CommandSender);

impl Drop for NobodyAfter {
    fn drop(&mut self) {
        self.0.leave(|pipeline| {
            pipeline.decisions().set_watchers(0);
            pipeline.decisions().set_face(false);
        });
    }
}

async fn serve(setup: Setup, hub: Arc<Hub>, opened: Opened, ended: oneshot::Receiver<()>) {
    let (ending, is_ending) = watch::channel(false);
    let limits = (setup.message_bytes_max, setup.is_recorded);
    let governed = (setup.rules_file, setup.board);
    let shared = Shared::new(setup.commands, hub, setup.card, limits, governed, is_ending);
    let _registration = setup.state.and_then(|state| register(state, &shared, opened));
    if let Some(listener) = setup.tcp {
        open_tcp(listener, &shared);
    }
    let (stop, stopped) = oneshot::channel();
    let listening = tokio::spawn(hub::listen(shared.clone(), stopped));
    tokio::spawn(watch_lease(shared.clone()));
    tokio::spawn(watch_faces(shared.clone()));
    if let Some(questions) = setup.questions {
        tokio::spawn(aloud::say_all(questions));
    }
    let _ = ended.await;
    let _ = stop.send(());
    let _ = listening.await;
    ending.send_replace(true);
    let hub = Arc::clone(&shared.hub);
    let all_left = async {
        while hub.faces() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // What was said last is still being written.
        tokio::task::yield_now().await;
    };
    let _ = tokio::time::timeout(GOODBYE_FOR, all_left).await;
}

/// Opens the private sockets. Without them the proxy does its work all the same.
fn register(state: PathBuf, shared: &Shared, opened: Opened) -> Option<Registration> {
    let (pid, pid_started) = Description::this_process();
    let card = &shared.card;
    let description = Description {
        id: card.id,
        pid,
        pid_started,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        name: card.name.clone(),
        server_command: card.server_command.clone(),
        server_url: card.server_url.clone(),
        client_transport: if card.listens() { "http" } else { "stdio" }.to_owned(),
        server_transport: card.transport.as_str().to_owned(),
        started_at: timestamp(card.started_ns),
    };
    match open(&Instances::below(&state), &description, opened.door) {
        Ok((registration, listener)) => {
            tokio::spawn(server::serve_socket(listener, shared.clone()));
            let _ = opened.socket.send(registration.socket().to_owned());
            Some(registration)
        }
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            say(&format!("mcp-proxy: warning: nobody can attach to this instance: {error}{cause}"));
            None
        }
    }
}

fn open(
    instances: &Instances,
    description: &Description,
    to_door: Option<oneshot::Sender<UnixListener>>,
) -> Result<(Registration, UnixListener), InstanceError> {
    let Some(to_door) = to_door else { return instances.register(description) };
    let (registration, listener, door) = instances.register_with_door(description)?;
    // Whoever lets clients in may have ended.
    let _ = to_door.send(door);
    Ok((registration, listener))
}

fn open_tcp(listener: TcpListener, shared: &Shared) {
    let Ok(address) = listener.local_addr() else { return };
    let (gate, token) = Gate::new(address.port());
    tokio::spawn(server::serve_tcp(listener, Arc::new(gate), shared.clone()));
    // Whoever asked for the port waits for this line, so it is said even if we are to be quiet.
    announce(&format!("mcp-proxy: control API on http://{address}/#token={token}"));
}

/// Tells the data path how many faces read along, whenever that changes.
async fn watch_faces(shared: Shared) {
    loop {
        shared.hub.faces_changed().await;
        while let Err(refusal) = shared.count_watchers().await {
            if refusal.code == Code::Ending {
                return;
            }
        }
    }
}

/// Tells the data path when the face that may decide has been away for too long.
async fn watch_lease(shared: Shared) {
    loop {
        shared.leases.lapsed().await;
        let _ = shared.face_changed().await;
    }
}

#[cfg(test)]
mod tests {
    use mcp_engine::{Pipeline, Recorder};

    use super::*;

    /// Whatever ends the thread: a question waits for nobody who is not there.
    #[test]
    fn nobody_is_there_once_the_thread_has_died() {
        let (sender, mut commands) = mcp_engine::commands();
        let dying = std::thread::spawn(move || {
            let _nobody_after = NobodyAfter(sender);
            std::panic::resume_unwind(Box::new("as a thread may"));
        });
        assert!(dying.join().is_err());
        let mut pipeline = Pipeline::new(Recorder::off(), Bus::default(), 1024);
        pipeline.decisions().set_watchers(2);
        pipeline.decisions().set_face(true);
        assert!(pipeline.decisions().has_somebody());
        let command = Builder::new_current_thread().build().unwrap().block_on(commands.next());
        command.expect("it was left").carry_out(&mut pipeline);
        assert!(!pipeline.decisions().has_somebody());
    }
}
