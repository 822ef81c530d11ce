//! What a server asks its client: roots, a sample of a model, something of the user. Whether it is asked by a request
//! or in the answer to a call, the same answers it.

use serde_json::value::RawValue;

use crate::error::RpcError;

/// JSON-RPC has this code for what a peer does not know.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

/// Answers what a server asks. Called where messages are read, so it does not wait.
pub trait Questions: Send + Sync {
    /// The capabilities that the client declares because of it, as a JSON object.
    fn capabilities(&self) -> String {
        "{}".into()
    }

    /// The result, as JSON, or the error.
    fn answer(&self, method: &str, params: Option<&RawValue>) -> Result<String, RpcError>;
}

/// Has no answer to anything.
pub struct NobodyAnswers;

impl Questions for NobodyAnswers {
    fn answer(&self, method: &str, _params: Option<&RawValue>) -> Result<String, RpcError> {
        Err(RpcError { code: METHOD_NOT_FOUND, message: format!("Method not found: {method}"), data: None })
    }
}

/// The answer to a request of a server, as a message.
pub(crate) fn answer(questions: &dyn Questions, id: &RawValue, method: &str, params: Option<&RawValue>) -> String {
    let answered = match method {
        "ping" => Ok("{}".into()),
        _ => questions.answer(method, params),
    };
    match answered {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Err(RpcError { code, message, .. }) => {
            let error = serde_json::json!({ "code": code, "message": message });
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
        }
    }
}
