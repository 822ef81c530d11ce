//! Lists and definitions that a proxy tool gives.

use bytes::Bytes;
use mcp_proxy_tool::Type;
use mcp_proxy_tool::detect::ProxyTool;
use mcp_proxy_tool::select::Paging;
use mcp_proxy_tool::{unwrap, wrap};
use serde_json::value::RawValue;

use super::ProxyClient;
use crate::client::Use;
use crate::error::ClientError;
use crate::listing::{Listing, member};

/// Items that are asked for at once, where a proxy tool can be asked for some: a message holds them.
const PAGE: usize = 500;
/// Pages of one list that are followed: a server that has more goes in circles.
const PAGES_MAX: usize = 1000;
const CALL: &str = "tools/call";

impl ProxyClient {
    pub(super) async fn list_behind(&self, tool: &ProxyTool, kind: Type) -> Result<Listing, ClientError> {
        let mut listing = Listing::default();
        for _ in 0..PAGES_MAX {
            let paging = match tool.knows_paging {
                true => Paging { limit: Some(PAGE), offset: Some(listing.items.len()) },
                false => Paging::default(),
            };
            let params = wrap::list(tool, kind, paging);
            let result = self.client.request(CALL, text(&params)?, &Use::default()).await?;
            let listed = unwrap::list(tool, kind, result.get().as_bytes())?;
            listing.miss_those_of(&result);
            let came = listed.items.len();
            for item in &listed.items {
                listing.items.push(json(item)?);
            }
            let has_more = listed.page.is_some_and(|page| listing.items.len() < page.total);
            if came == 0 || !has_more {
                return Ok(listing);
            }
        }
        Err(ClientError::Endless { method: CALL })
    }

    pub(super) async fn info_behind(
        &self,
        tool: &ProxyTool,
        kind: Type,
        path: &str,
    ) -> Result<Box<RawValue>, ClientError> {
        let params = wrap::info(tool, kind, path);
        let result = self.client.request(CALL, text(&params)?, &Use::default()).await?;
        json(&unwrap::info(tool, kind, result.get().as_bytes())?)
    }
}

/// Whether a result says that its tool failed.
pub(super) fn failed(result: &RawValue) -> bool {
    member(result, "isError").is_some_and(|value| value.get() == "true")
}

pub(super) fn json(bytes: &Bytes) -> Result<Box<RawValue>, ClientError> {
    serde_json::from_slice(bytes)
        .map_err(|_| ClientError::Unexpected { method: CALL.into(), what: "what is in it is not JSON".into() })
}

fn text(bytes: &Bytes) -> Result<&str, ClientError> {
    std::str::from_utf8(bytes).map_err(|_| ClientError::Over)
}
