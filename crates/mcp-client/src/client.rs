//! A client of one server: opened by its first request.

use std::sync::Arc;
use std::time::Duration;

use mcp_wire::framing::MESSAGE_BYTES_MAX;
use mcp_wire::revision::Era;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::error::ClientError;
use crate::opening::Session;
use crate::questions::{NobodyAnswers, Questions};
use crate::streams::Connector;

/// Wait for an answer unless the options say otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Rounds of one request: a server may ask for more this often before it answers.
const ROUNDS_MAX: usize = 16;

/// Which revisions are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speaks {
    /// The newest first, and those before it where a server does not know that.
    #[default]
    Either,
    Modern,
    Legacy,
}

#[derive(Clone)]
pub struct Options {
    /// What the client calls itself.
    pub name: String,
    pub version: String,
    pub speaks: Speaks,
    /// For each request; one may have another.
    pub timeout: Duration,
    /// The largest message that is taken.
    pub message_bytes_max: usize,
    pub questions: Arc<dyn Questions>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "mcp-client".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            speaks: Speaks::Either,
            timeout: TIMEOUT,
            message_bytes_max: MESSAGE_BYTES_MAX,
            questions: Arc::new(NobodyAnswers),
        }
    }
}

/// How far a call has come, as the server says.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// Called where messages are read, so it does not wait.
pub(crate) type ProgressTold = Arc<dyn Fn(Progress) + Send + Sync>;

/// What one use of a capability wants besides its result.
#[derive(Clone, Default)]
pub struct Use {
    pub progress: Option<ProgressTold>,
    /// In place of the client's.
    pub timeout: Option<Duration>,
}

impl Use {
    pub fn with_progress(told: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self { progress: Some(Arc::new(told)), timeout: None }
    }
}

pub struct Client {
    connector: Connector,
    pub(crate) options: Options,
    session: OnceCell<Session>,
}

impl Client {
    pub(crate) fn new(connector: Connector, options: Options) -> Self {
        Self { connector, options, session: OnceCell::new() }
    }

    /// Opens the connection, if it is not open yet.
    pub async fn open(&self) -> Result<(), ClientError> {
        self.session().await.map(drop)
    }

    pub(crate) async fn session(&self) -> Result<&Session, ClientError> {
        self.session.get_or_try_init(|| Session::open(&self.connector, &self.options)).await
    }

    /// The result of a request. `params` are a JSON object.
    pub async fn request(&self, method: &str, params: &str, wants: &Use) -> Result<Box<RawValue>, ClientError> {
        let session = self.session().await?;
        let after = wants.timeout.unwrap_or(self.options.timeout);
        let asked = timeout(after, self.ask_in_rounds(session, method, params, wants)).await;
        asked.unwrap_or_else(|_| Err(ClientError::Timeout { method: method.to_owned(), after }))
    }

    /// A server of the newest revision asks for what it needs in its answer, and is then asked again.
    async fn ask_in_rounds(
        &self,
        session: &Session,
        method: &str,
        params: &str,
        wants: &Use,
    ) -> Result<Box<RawValue>, ClientError> {
        let mut params = params.to_owned();
        let first = params.clone();
        for _ in 0..ROUNDS_MAX {
            let result = session.ask(method, &params, wants.progress.clone()).await?;
            match Round::of(&result).filter(|_| session.era == Era::Modern) {
                None => return Ok(result),
                Some(round) => params = with_members(&first, &self.responses(&round)?),
            }
        }
        Err(ClientError::AskedTooOften { method: method.to_owned(), rounds: ROUNDS_MAX })
    }

    /// What is sent with the same request once more.
    fn responses(&self, round: &Round<'_>) -> Result<String, ClientError> {
        let mut responses = Vec::new();
        for (key, question) in round.input_requests.iter().flatten() {
            let answer = self.options.questions.answer(&question.method, question.params);
            let answer = answer.map_err(|_| ClientError::Unanswered { question: question.method.clone() })?;
            responses.push(format!("{}:{answer}", serde_json::Value::from(key.as_str())));
        }
        let mut members = format!("\"inputResponses\":{{{}}}", responses.join(","));
        if let Some(state) = round.request_state {
            members.push_str(&format!(",\"requestState\":{state}"));
        }
        Ok(members)
    }

    /// Hangs up in good order: what was said last is still delivered, and the server may end by itself.
    pub async fn close(self) {
        if let Some(session) = self.session.into_inner() {
            session.close().await;
        }
    }
}

/// An object with further members in front.
pub(crate) fn with_members(object: &str, members: &str) -> String {
    let inside = object.trim().strip_prefix('{').unwrap_or("}");
    let comma = if inside.trim_start() == "}" { "" } else { "," };
    format!("{{{members}{comma}{inside}")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Round<'a> {
    result_type: String,
    #[serde(borrow)]
    input_requests: Option<std::collections::BTreeMap<String, Question<'a>>>,
    #[serde(borrow)]
    request_state: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Question<'a> {
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

impl<'a> Round<'a> {
    fn of(result: &'a RawValue) -> Option<Self> {
        let round: Self = serde_json::from_str(result.get()).ok()?;
        (round.result_type == "input_required").then_some(round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_put_in_front() {
        assert_eq!(with_members("{}", r#""a":1"#), r#"{"a":1}"#);
        assert_eq!(with_members(r#"{ "b" : 2 }"#, r#""a":1"#), r#"{"a":1, "b" : 2 }"#);
        assert_eq!(with_members("{ }", r#""a":1"#), r#"{"a":1 }"#);
    }
}
