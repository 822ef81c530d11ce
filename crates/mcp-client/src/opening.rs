//! How a connection is opened: the server is asked which revisions it knows, and begun with in one of them.

use std::time::Duration;

use mcp_wire::reply;
use mcp_wire::revision::{Era, Revision};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::client::{Options, ProgressTold, Speaks, with_members};
use crate::connection::Connection;
use crate::error::{ClientError, RpcError};
use crate::listing::member;
use crate::streams::Connector;

/// A server that says nothing to a question of the newest revision for this long is asked in the older way.
const SILENT_FOR: Duration = Duration::from_secs(4);
const DISCOVER: &str = "server/discover";
const INITIALIZE: &str = "initialize";

/// An open connection, and who is at the other end.
pub(crate) struct Session {
    connection: Connection,
    pub era: Era,
    /// What names the client in each request of the newest revision.
    identity: String,
    /// The result of the opening.
    introduction: Box<RawValue>,
}

impl Session {
    pub(crate) async fn open(connector: &Connector, options: &Options) -> Result<Self, ClientError> {
        let opened = match options.speaks {
            Speaks::Modern => Opening::begin(connector, options)?.discover(options.timeout).await,
            Speaks::Legacy => Opening::begin(connector, options)?.initialize(options.timeout).await,
            Speaks::Either => Self::open_in_either(connector, options).await,
        };
        opened.map_err(|error| match error {
            ClientError::Spawn { .. } | ClientError::NotOpened(_) => error,
            other => ClientError::NotOpened(Box::new(other)),
        })
    }

    async fn open_in_either(connector: &Connector, options: &Options) -> Result<Self, ClientError> {
        let opening = Opening::begin(connector, options)?;
        let answered = opening.ask_to_discover(SILENT_FOR.min(options.timeout)).await;
        let was_silent = matches!(answered, Err(ClientError::Timeout { .. }));
        match answered {
            Ok(introduction) if knows_the_newest(&introduction) => return Ok(opening.opened(Era::Modern, introduction)),
            Ok(_) => {}
            Err(ClientError::Rpc(error)) if is_about_the_way(&error) => {
                // It may have ended because it was asked in a way that it does not know.
                return match connector.can_connect_again() {
                    true => Opening::begin(connector, options)?.initialize(options.timeout).await,
                    false => Err(error.into()),
                };
            }
            Err(ClientError::Rpc(_) | ClientError::Timeout { .. }) => {}
            Err(ClientError::HungUp { .. }) if connector.can_connect_again() => {
                return Opening::begin(connector, options)?.initialize(options.timeout).await;
            }
            Err(error) => return Err(error),
        }
        match opening.ask_to_initialize(options.timeout).await {
            Ok(introduction) => Ok(opening.initialized(introduction).await),
            // It was only slow.
            Err(ClientError::Rpc(_)) if was_silent => opening.discover(options.timeout).await,
            Err(error) => Err(error),
        }
    }

    /// Whether the server says that it has such things.
    pub(crate) fn offers(&self, capability: &str) -> bool {
        let declared = member(&self.introduction, "capabilities").and_then(|all| member(all, capability));
        declared.is_some_and(|value| !matches!(value.get(), "null" | "false"))
    }

    pub(crate) async fn ask(
        &self,
        method: &str,
        params: &str,
        progress: Option<ProgressTold>,
    ) -> Result<Box<RawValue>, ClientError> {
        let has_progress = progress.is_some();
        let with_meta = |id: u64| {
            let mut meta = match self.era {
                Era::Modern => vec![self.identity.clone()],
                Era::Legacy => Vec::new(),
            };
            if has_progress {
                meta.push(format!("\"progressToken\":{id}"));
            }
            match meta.is_empty() {
                true => params.to_owned(),
                false => with_members(params, &format!("\"_meta\":{{{}}}", meta.join(","))),
            }
        };
        self.connection.ask(method, with_meta, progress).await
    }

    pub(crate) async fn close(self) {
        self.connection.close().await;
    }
}

/// A connection over which nothing is agreed yet.
struct Opening {
    connection: Connection,
    info: String,
    capabilities: String,
}

impl Opening {
    fn begin(connector: &Connector, options: &Options) -> Result<Self, ClientError> {
        let streams = connector.connect()?;
        let connection = Connection::begin(streams, options.questions.clone(), options.message_bytes_max);
        let info = serde_json::json!({ "name": options.name, "version": options.version }).to_string();
        Ok(Self { connection, info, capabilities: options.questions.capabilities() })
    }

    fn identity(&self) -> String {
        let (info, capabilities, revision) = (&self.info, &self.capabilities, Revision::NEWEST.as_str());
        format!(
            "\"io.modelcontextprotocol/protocolVersion\":\"{revision}\",\
             \"io.modelcontextprotocol/clientInfo\":{info},\
             \"io.modelcontextprotocol/clientCapabilities\":{capabilities}"
        )
    }

    async fn ask_to_discover(&self, patience: Duration) -> Result<Box<RawValue>, ClientError> {
        let params = format!("{{\"_meta\":{{{}}}}}", self.identity());
        self.ask_within(patience, DISCOVER, params).await
    }

    async fn ask_to_initialize(&self, patience: Duration) -> Result<Box<RawValue>, ClientError> {
        let (revision, capabilities, info) = (Revision::NEWEST_LEGACY.as_str(), &self.capabilities, &self.info);
        let params =
            format!("{{\"protocolVersion\":\"{revision}\",\"capabilities\":{capabilities},\"clientInfo\":{info}}}");
        self.ask_within(patience, INITIALIZE, params).await
    }

    async fn ask_within(&self, after: Duration, method: &str, params: String) -> Result<Box<RawValue>, ClientError> {
        let answer = timeout(after, self.connection.ask(method, |_| params, None)).await;
        answer.unwrap_or_else(|_| Err(ClientError::Timeout { method: method.to_owned(), after }))
    }

    async fn discover(self, patience: Duration) -> Result<Session, ClientError> {
        let introduction = self.ask_to_discover(patience).await?;
        Ok(self.opened(Era::Modern, introduction))
    }

    async fn initialize(self, patience: Duration) -> Result<Session, ClientError> {
        let introduction = self.ask_to_initialize(patience).await?;
        Ok(self.initialized(introduction).await)
    }

    async fn initialized(self, introduction: Box<RawValue>) -> Session {
        self.connection.tell(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        self.opened(Era::Legacy, introduction)
    }

    fn opened(self, era: Era, introduction: Box<RawValue>) -> Session {
        let identity = self.identity();
        Session { connection: self.connection, era, identity, introduction }
    }
}

fn knows_the_newest(introduction: &RawValue) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Discovered {
        supported_versions: Vec<String>,
    }
    let discovered = serde_json::from_str::<Discovered>(introduction.get());
    discovered.is_ok_and(|known| known.supported_versions.iter().any(|known| known == Revision::NEWEST.as_str()))
}

/// Nothing was said of revisions: a proxy on the way could not reach the server, or it wants something else first.
fn is_about_the_way(error: &RpcError) -> bool {
    match reply::status_said(error.code, &error.message) {
        Some(status) => !(400..500).contains(&status) || matches!(status, 401 | 403 | 407 | 429),
        None => reply::is_own_failure(error.code),
    }
}
