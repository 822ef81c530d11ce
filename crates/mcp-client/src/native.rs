//! Lists as a server gives them itself, page by page.

use mcp_wire::scan;
use serde_json::value::RawValue;

use crate::client::{Client, Use};
use crate::error::ClientError;
use crate::listing::{Listing, member};

/// Pages of one list that are followed. A server that has more leads in a circle, or wears its clients out.
const PAGES_MAX: usize = 1000;

/// A list of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
}

impl List {
    fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::ResourceTemplates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    /// Where the items are in the answer.
    fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources | Self::ResourceTemplates => "resources",
            Self::Prompts => "prompts",
        }
    }
}

impl Client {
    /// All pages of a list; nothing where the server says that it has no such things.
    pub async fn list(&self, list: List) -> Result<Listing, ClientError> {
        let is_offered = self.session().await?.offers(list.capability());
        // Tools are what most servers are for, and some forget to say that they have them.
        if !is_offered && list != List::Tools {
            return Ok(Listing::default());
        }
        match self.pages(list).await {
            Err(ClientError::Rpc(_)) if !is_offered => Ok(Listing::default()),
            // Servers with resources need not know templates.
            Err(ClientError::Rpc(_)) if list == List::ResourceTemplates => Ok(Listing::default()),
            listed => listed,
        }
    }

    async fn pages(&self, list: List) -> Result<Listing, ClientError> {
        let mut listing = Listing::default();
        let mut params = "{}".to_owned();
        for _ in 0..PAGES_MAX {
            let page = self.request(list.method(), &params, &Use::default()).await?;
            let items = member(&page, list.member()).and_then(|items| serde_json::from_str(items.get()).ok());
            let items: Vec<Box<RawValue>> = items.ok_or(ClientError::Unexpected {
                method: list.method().to_owned(),
                what: "there is no list in it".into(),
            })?;
            listing.items.extend(items);
            listing.miss_those_of(&page);
            let cursor =
                member(&page, "nextCursor").filter(|cursor| scan::decode_string(cursor.get().as_bytes()).is_some());
            let Some(cursor) = cursor else { return Ok(listing) };
            let next = format!("{{\"cursor\":{cursor}}}");
            if next == params {
                break;
            }
            params = next;
        }
        Err(ClientError::Endless { method: list.method() })
    }
}
