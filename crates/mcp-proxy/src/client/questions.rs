//! Nobody is there to be asked: a command has its arguments and no more.

use mcp_client::{NobodyAnswers, Questions, RpcError, text_member};
use serde_json::value::RawValue;

use crate::report::say;

/// JSON-RPC leaves this code to applications, and the protocol's text shows it for a user who says no.
const DECLINED: i64 = -1;

/// Declines, and says what was asked. No capability is declared, so only servers ask that do not look.
pub(super) struct Declines;

impl Questions for Declines {
    fn answer(&self, method: &str, params: Option<&RawValue>) -> Result<String, RpcError> {
        let message = params.and_then(|params| text_member(params, "message")).unwrap_or_default();
        match method {
            "elicitation/create" => {
                say(&format!("mcp-proxy: declined what the server asks for: {message}"));
                Ok(r#"{"action":"decline"}"#.into())
            }
            "sampling/createMessage" => {
                say("mcp-proxy: declined what the server asks for: a sample of a model");
                Err(RpcError { code: DECLINED, message: "declined".into(), data: None })
            }
            _ => NobodyAnswers.answer(method, params),
        }
    }
}
