//! What every request needs: the way to the data path, the hub, the lease, and who we are.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcp_control::api;
use mcp_engine::intercept::Owner;
use mcp_engine::{CommandSender, Pipeline, Status};
use mcp_gateway::board::Board;
use mcp_store::{SessionHeader, Transport};
use tokio::sync::{Mutex, Semaphore, watch};
use uuid::Uuid;

use super::history::{Part, Parts, Segments};
use super::hub::Hub;
use super::lease::Leases;
use super::policy;
use super::reply::Refusal;

/// Time for the data path to carry out an order, which takes microseconds between two batches.
const ORDER_FOR: Duration = Duration::from_secs(10);
/// Requests for history that run at once; further ones wait.
const READERS_MAX: usize = 4;

#[derive(Clone)]
pub(crate) struct Shared(Arc<Inner>);

pub(crate) struct Inner {
    pub commands: CommandSender,
    pub hub: Arc<Hub>,
    pub leases: Arc<Leases>,
    pub card: Card,
    pub message_bytes_max: usize,
    /// Whether there is a recording to read.
    pub is_recorded: bool,
    pub segments: Arc<Segments>,
    pub readers: Semaphore,
    /// Where the rules were read from.
    pub rules_file: Option<PathBuf>,
    /// How the servers of a gateway are.
    pub board: Option<Board>,
    /// One answer at a time is written beside the rules.
    pub answering: Mutex<()>,
    /// Turns true when the proxy ends.
    pub ending: watch::Receiver<bool>,
}

/// What does not change about this instance.
#[derive(Clone, Debug)]
pub struct Card {
    pub id: Uuid,
    pub started_ns: u64,
    pub name: Option<String>,
    pub server_command: Option<String>,
    pub server_url: Option<String>,
    pub transport: Transport,
    pub listen: String,
}

impl Card {
    /// Whether clients come to a listener, and not over our standard input.
    pub fn listens(&self) -> bool {
        self.listen != "stdio"
    }
}

/// How the data path stands.
pub(crate) struct Standing {
    pub status: Status,
    /// The session that is recorded, and how many messages came before those of it.
    pub session: Option<Uuid>,
    pub earlier: u64,
}

impl Deref for Shared {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Shared {
    pub(crate) fn new(
        commands: CommandSender,
        hub: Arc<Hub>,
        card: Card,
        (message_bytes_max, is_recorded): (usize, bool),
        (rules_file, board): (Option<PathBuf>, Option<Board>),
        ending: watch::Receiver<bool>,
    ) -> Self {
        Self(Arc::new(Inner {
            commands,
            hub,
            leases: Arc::default(),
            card,
            message_bytes_max,
            is_recorded,
            segments: Arc::default(),
            readers: Semaphore::new(READERS_MAX),
            rules_file,
            board,
            answering: Mutex::default(),
            ending,
        }))
    }

    /// Has something done on the data path.
    pub(crate) async fn order<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Pipeline) -> R + Send + 'static,
    ) -> Result<R, Refusal> {
        match tokio::time::timeout(ORDER_FOR, self.commands.ask(work)).await {
            Ok(done) => done.ok_or_else(Refusal::ending),
            Err(_) => Err(Refusal::too_many("the proxy is busy; it may still do what it was asked")),
        }
    }

    pub(crate) async fn standing(&self) -> Result<Standing, Refusal> {
        self.order(standing).await
    }

    /// The same, with everything up to its sequence where it can be read.
    pub(crate) async fn committed_standing(&self) -> Result<Standing, Refusal> {
        let work = |pipeline: &mut Pipeline| {
            // A store that fails is told and dealt with on the path, which commits again and again.
            let _ = pipeline.commit();
            standing(pipeline)
        };
        self.order(work).await
    }

    /// The sessions of this run, with all that has passed.
    pub(crate) async fn parts(&self) -> Result<Parts, Refusal> {
        let work = |pipeline: &mut Pipeline| {
            let _ = pipeline.commit();
            let recorder = pipeline.journal.recorder();
            let part = |(segment, earlier): (&Path, u64)| Part { segment: segment.to_owned(), earlier, index: None };
            let mut parts: Vec<Part> = recorder.segments().map(part).collect();
            if let Some(current) = parts.last_mut() {
                current.index = recorder.index();
            }
            Parts { parts, last_sequence: pipeline.journal.sequence() }
        };
        self.order(work).await
    }

    /// Tells the data path whether a face is there that may decide, and all faces who it is. What
    /// counts is how that stands when the order is carried out: two of them may overtake each other.
    pub(crate) async fn face_changed(&self) -> Result<(), Refusal> {
        let leases = Arc::clone(&self.leases);
        self.tell_lease();
        self.order(move |pipeline| pipeline.decisions().set_face(leases.now().is_some())).await
    }

    /// Tells the data path how many faces read along, who can answer what rules ask. As above, what
    /// counts is how that stands by then.
    pub(crate) async fn count_watchers(&self) -> Result<(), Refusal> {
        let hub = Arc::clone(&self.hub);
        self.order(move |pipeline| pipeline.decisions().set_watchers(hub.faces())).await
    }

    pub(crate) fn tell_lease(&self) {
        self.hub.tell(api::Event::Lease(api::LeaseState { lease: self.leases.now() }));
    }

    pub(crate) fn instance(&self, standing: &Standing) -> api::Instance {
        let status = &standing.status;
        let speakers = status.clients.iter().map(|(conversation, speaker)| api::Speaker {
            conversation: *conversation,
            client: speaker.client.as_deref().map(str::to_owned),
            revision: speaker.revision.as_deref().map(str::to_owned),
        });
        let holds = |owner: Owner| status.has_face || owner == Owner::Command;
        let card = &self.card;
        api::Instance {
            id: card.id.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            name: card.name.clone(),
            server_command: card.server_command.clone(),
            server_url: card.server_url.clone(),
            transport: card.transport,
            listen: card.listen.clone(),
            started_at: mcp_store::recorded::timestamp(card.started_ns).to_string(),
            session: standing.session.map(|id| id.to_string()),
            // A client on our standard input is there from the start.
            clients: status.connected.max(usize::from(!card.listens())) as u64,
            servers: self.board.as_ref().map_or(1, |board| board.servers().len()) as u64,
            messages: status.sequence,
            held: status.held.len() as u64,
            questions: status.held.iter().filter(|held| held.asks.is_some()).count() as u64,
            policy: policy::governed(status),
            mode: status.mode,
            mode_owner: status.mode_owner,
            has_face: status.has_face,
            lease: self.leases.now(),
            breakpoints: status.breakpoints.len() as u64,
            breakpoints_that_hold: status.breakpoints.iter().filter(|at| holds(at.owner)).count() as u64,
            // Those whom the data path counts on; one that has just come is told of in a moment.
            faces: status.watchers as u32,
            conversations: speakers.collect(),
        }
    }
}

fn standing(pipeline: &mut Pipeline) -> Standing {
    let recorder = pipeline.journal.recorder();
    let session = recorder.current().map(|(header, _)| header.id);
    Standing { session, earlier: recorder.earlier(), status: pipeline.status() }
}

impl Card {
    /// What a recording of this instance would begin with.
    pub fn header(&self) -> SessionHeader {
        SessionHeader {
            server_command: self.server_command.clone(),
            server_url: self.server_url.clone(),
            name: self.name.clone(),
            ..SessionHeader::begun(self.id, self.started_ns, self.transport)
        }
    }
}
