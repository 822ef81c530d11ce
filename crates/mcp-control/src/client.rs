//! The client of the control API: one connection a request, over an instance's socket or over TCP.

mod connect;
mod events;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use events::Events;

use crate::api::{
    Answer, ApiError, Approve, Breakpoints, Deny, Drop, EventsQuery, Exchange, Explanation, Fault, Hand, Held,
    HeldList, Instance, LeaseGrant, LeaseRequest, LeaseState, Mark, Message, Mode, ModeChange, Modify, Named,
    NewBreakpoint, Notes, Page, PageQuery, Policy, Released, Replay, Replayed, Save, Saved, Server, Servers, Snapshot,
};

/// An instance answers at once; if it has not by now, it is stuck or gone.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Where an instance is reached.
#[derive(Clone, Debug)]
pub enum Address {
    Socket(PathBuf),
    Tcp { address: SocketAddr, token: String },
}

#[derive(Clone, Debug)]
pub struct Client {
    address: Address,
    hand: Hand,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("the instance at {place} cannot be reached")]
    Unreached {
        place: String,
        #[source]
        source: io::Error,
    },
    #[error("the instance broke off")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the instance did not answer within {} s", ANSWER_TIMEOUT.as_secs())]
    Silent,
    #[error("the instance said something that this version does not understand")]
    NotUnderstood(#[source] serde_json::Error),
    #[error("the instance said more than this version takes")]
    TooMuch,
    /// It answered, and the answer is no.
    #[error("{}", .fault.message)]
    Refused { status: u16, fault: Fault },
}

impl Client {
    pub fn new(address: Address) -> Self {
        Self { address, hand: Hand::default() }
    }

    /// The same, acting as somebody.
    pub fn acting_as(self, hand: Hand) -> Self {
        Self { hand, ..self }
    }

    pub async fn instance(&self) -> Result<Instance, ClientError> {
        self.get("/v1/instance").await
    }

    pub async fn snapshot(&self) -> Result<Snapshot, ClientError> {
        self.get("/v1/snapshot").await
    }

    pub async fn messages(&self, which: &PageQuery) -> Result<Page, ClientError> {
        self.get(&with_query("/v1/messages", which)).await
    }

    pub async fn message(&self, sequence: u64) -> Result<Message, ClientError> {
        self.get(&format!("/v1/messages/{sequence}")).await
    }

    /// The HTTP exchange that a message came in.
    pub async fn exchange(&self, sequence: u64) -> Result<Exchange, ClientError> {
        self.get(&format!("/v1/messages/{sequence}/exchange")).await
    }

    /// What the rules that count now make of a message.
    pub async fn explain(&self, sequence: u64) -> Result<Explanation, ClientError> {
        self.get(&format!("/v1/messages/{sequence}/explain")).await
    }

    /// What happens from now on, or from a sequence on, until either side ends it.
    pub async fn events(&self, which: &EventsQuery) -> Result<Events, ClientError> {
        let path = with_query("/v1/events", which);
        let answer = in_time(connect::send(&self.address, Method::GET, &path, None)).await?;
        match answer.status().is_success() {
            true => Ok(Events::new(answer.into_body())),
            false => {
                let status = answer.status().as_u16();
                Err(refused(status, &in_time(connect::whole(answer)).await?))
            }
        }
    }

    pub async fn held(&self) -> Result<HeldList, ClientError> {
        self.get("/v1/held").await
    }

    /// One held message, however long it is.
    pub async fn held_message(&self, sequence: u64) -> Result<Held, ClientError> {
        self.get(&format!("/v1/held/{sequence}")).await
    }

    pub async fn forward(&self, sequence: u64) -> Result<Released, ClientError> {
        self.act(Method::POST, &format!("/v1/held/{sequence}/forward"), None::<&()>).await
    }

    pub async fn forward_all(&self) -> Result<Released, ClientError> {
        self.act(Method::POST, "/v1/held/forward", None::<&()>).await
    }

    pub async fn drop_held(&self, sequence: u64, drop: &Drop) -> Result<Released, ClientError> {
        self.act(Method::POST, &format!("/v1/held/{sequence}/drop"), Some(drop)).await
    }

    pub async fn modify(&self, sequence: u64, modify: &Modify) -> Result<Released, ClientError> {
        self.act(Method::POST, &format!("/v1/held/{sequence}/modify"), Some(modify)).await
    }

    pub async fn answer(&self, sequence: u64, answer: &Answer) -> Result<Released, ClientError> {
        self.act(Method::POST, &format!("/v1/held/{sequence}/answer"), Some(answer)).await
    }

    /// Lets a message go on that a rule asks about.
    pub async fn approve(&self, sequence: u64, approve: &Approve) -> Result<Released, ClientError> {
        self.act(Method::POST, &format!("/v1/held/{sequence}/approve"), Some(approve)).await
    }

    /// Does not let it go on.
    pub async fn deny(&self, sequence: u64, deny: &Deny) -> Result<Released, ClientError> {
        self.act(Method::POST, &format!("/v1/held/{sequence}/deny"), Some(deny)).await
    }

    /// The rules that messages are judged by.
    pub async fn policy(&self) -> Result<Policy, ClientError> {
        self.get("/v1/policy").await
    }

    /// Back to passthrough lets go of everything that is held; how much that was is returned.
    pub async fn set_mode(&self, mode: Mode) -> Result<Released, ClientError> {
        self.act(Method::PUT, "/v1/mode", Some(&ModeChange { mode })).await
    }

    pub async fn breakpoints(&self) -> Result<Breakpoints, ClientError> {
        self.get("/v1/breakpoints").await
    }

    pub async fn add_breakpoint(&self, new: &NewBreakpoint) -> Result<Named, ClientError> {
        self.act(Method::POST, "/v1/breakpoints", Some(new)).await
    }

    pub async fn remove_breakpoint(&self, name: &str) -> Result<(), ClientError> {
        let path = format!("/v1/breakpoints/{}", connect::escaped(name));
        self.act::<(), serde::de::IgnoredAny>(Method::DELETE, &path, None).await.map(|_| ())
    }

    pub async fn replay(&self, sequence: u64, replay: &Replay) -> Result<Replayed, ClientError> {
        self.act(Method::POST, &format!("/v1/messages/{sequence}/replay"), Some(replay)).await
    }

    pub async fn mark(&self, sequence: u64, mark: &Mark) -> Result<Mark, ClientError> {
        self.act(Method::PUT, &format!("/v1/messages/{sequence}/mark"), Some(mark)).await
    }

    pub async fn note(&self, notes: &Notes) -> Result<Notes, ClientError> {
        self.act(Method::PATCH, "/v1/notes", Some(notes)).await
    }

    /// The servers of a gateway.
    pub async fn servers(&self) -> Result<Servers, ClientError> {
        self.get("/v1/servers").await
    }

    /// Ends a server of a gateway; it is started again when somebody needs it, or somebody does already.
    pub async fn restart_server(&self, id: &str) -> Result<Server, ClientError> {
        self.order_server(id, "restart").await
    }

    /// Ends a server of a gateway, and offers nothing of it any more.
    pub async fn disable_server(&self, id: &str) -> Result<Server, ClientError> {
        self.order_server(id, "disable").await
    }

    pub async fn enable_server(&self, id: &str) -> Result<Server, ClientError> {
        self.order_server(id, "enable").await
    }

    async fn order_server(&self, id: &str, order: &str) -> Result<Server, ClientError> {
        self.act(Method::POST, &format!("/v1/servers/{}/{order}", connect::escaped(id)), None::<&()>).await
    }

    pub async fn save(&self, save: &Save) -> Result<Saved, ClientError> {
        self.act(Method::POST, "/v1/save", Some(save)).await
    }

    pub async fn lease(&self) -> Result<LeaseState, ClientError> {
        self.get("/v1/lease").await
    }

    /// Asks for the lease. It lapses unless an event stream is opened with it within three seconds.
    pub async fn take_lease(&self, request: &LeaseRequest) -> Result<LeaseGrant, ClientError> {
        self.ask(Method::POST, "/v1/lease", Some(request)).await
    }

    /// Gives up the lease of the hand that acts.
    pub async fn give_up_lease(&self) -> Result<LeaseState, ClientError> {
        self.act(Method::DELETE, "/v1/lease", None::<&()>).await
    }

    async fn get<R: DeserializeOwned>(&self, path: &str) -> Result<R, ClientError> {
        self.ask(Method::GET, path, None::<&()>).await
    }

    async fn act<B: Serialize, R: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&B>,
    ) -> Result<R, ClientError> {
        self.ask(method, &with_query(path, &self.hand), body).await
    }

    async fn ask<B: Serialize, R: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&B>,
    ) -> Result<R, ClientError> {
        let body = body.map(|body| Bytes::from(serde_json::to_vec(body).expect("plain data always serialises")));
        let (status, answer) = in_time(async {
            let answer = connect::send(&self.address, method, path, body).await?;
            Ok((answer.status(), connect::whole(answer).await?))
        })
        .await?;
        match status.is_success() {
            true => serde_json::from_slice(&answer).map_err(ClientError::NotUnderstood),
            false => Err(refused(status.as_u16(), &answer)),
        }
    }
}

async fn in_time<R>(answer: impl Future<Output = Result<R, ClientError>>) -> Result<R, ClientError> {
    tokio::time::timeout(ANSWER_TIMEOUT, answer).await.unwrap_or(Err(ClientError::Silent))
}

fn refused(status: u16, body: &[u8]) -> ClientError {
    match serde_json::from_slice::<ApiError>(body) {
        Ok(ApiError { error }) => ClientError::Refused { status, fault: error },
        Err(error) => ClientError::NotUnderstood(error),
    }
}

fn with_query(path: &str, query: &impl Serialize) -> String {
    match connect::query(query) {
        query if query.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}
