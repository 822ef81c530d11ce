//! The client that people use: capabilities as if they were the server's own, wherever they are.

mod tool;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_proxy_tool::Type;
use mcp_proxy_tool::detect::{self, ProxyTool};
use mcp_proxy_tool::{unwrap, wrap};
use mcp_wire::Era;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::client::{Client, Options, Use};
use crate::error::ClientError;
use crate::listing::{Listing, member, text_member};
use crate::native::List;
use crate::streams::Connector;

/// When capabilities are reached through a proxy tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Those that the server does not list itself.
    #[default]
    Auto,
    Always,
    Never,
}

pub struct ProxyClient {
    client: Client,
    mode: Mode,
    /// What the proxy tool is called, if it is known.
    tool_name: Option<String>,
    found: OnceCell<Found>,
    /// What the server lists itself: resources with templates, and prompts.
    resources: OnceCell<Listing>,
    prompts: OnceCell<Listing>,
}

/// What a server's own list of tools told.
struct Found {
    tool: Option<ProxyTool>,
    tools: Listing,
    /// Nobody was given the list yet: who asks for it first need not have it fetched again.
    is_new: AtomicBool,
}

/// What came of a call of a tool.
#[derive(Clone, Debug)]
pub struct ToolResult {
    /// The native result.
    pub json: Box<RawValue>,
    /// The tool says that it failed.
    pub is_error: bool,
}

impl ProxyClient {
    /// Over a pair of streams, one message a line.
    pub fn over(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        options: Options,
    ) -> Self {
        Self::new(Client::new(Connector::ready(Box::new(reader), Box::new(writer)), options))
    }

    /// Of a server that is a command. It is started by the first request, and ended with the client.
    pub fn spawn(command: Command, options: Options) -> Self {
        Self::new(Client::new(Connector::command(command), options))
    }

    fn new(client: Client) -> Self {
        let (found, resources, prompts) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { client, mode: Mode::Auto, tool_name: None, found, resources, prompts }
    }

    pub fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Takes the tool of this name for the proxy tool, and no other.
    pub fn tool_name(self, name: impl Into<String>) -> Self {
        Self { tool_name: Some(name.into()), ..self }
    }

    /// For whatever else a server knows.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Hangs up in good order.
    pub async fn close(self) {
        self.client.close().await;
    }

    /// The name of the server's proxy tool, if it has one and it is used.
    pub async fn proxy_tool(&self) -> Result<Option<&str>, ClientError> {
        Ok(self.tool().await?.map(|tool| tool.name.as_str()))
    }

    pub async fn list_tools(&self) -> Result<Listing, ClientError> {
        self.list(Type::Tool).await
    }

    pub async fn list_resources(&self) -> Result<Listing, ClientError> {
        let mut listing = self.list(Type::Resource).await?;
        listing.items.retain(|item| !is_template(item));
        Ok(listing)
    }

    pub async fn list_resource_templates(&self) -> Result<Listing, ClientError> {
        let mut listing = self.list(Type::Resource).await?;
        listing.items.retain(|item| is_template(item));
        Ok(listing)
    }

    pub async fn list_prompts(&self) -> Result<Listing, ClientError> {
        self.list(Type::Prompt).await
    }

    /// Everything of a type; of resources also the templates. What the server lists itself comes first, then what is
    /// only behind its proxy tool.
    pub async fn list(&self, kind: Type) -> Result<Listing, ClientError> {
        let Some(tool) = self.tool().await? else { return self.native(kind).await };
        if self.mode == Mode::Always {
            return self.list_behind(tool, kind).await;
        }
        let mut listing = self.native(kind).await?;
        if kind == Type::Tool {
            listing.items.retain(|item| text_member(item, "name").as_ref() != Some(&tool.name));
        }
        match self.list_behind(tool, kind).await {
            Ok(mut behind) => {
                let known: HashSet<String> = listing.items.iter().filter_map(|item| path_of(item)).collect();
                let is_new = |item: &RawValue| path_of(item).is_none_or(|path| !known.contains(&path));
                behind.items.retain(|item| is_new(item));
                listing.append(behind);
                Ok(listing)
            }
            // It only looked like a proxy tool.
            Err(ClientError::Unexpected { .. }) => self.native(kind).await,
            Err(error) => Err(error),
        }
    }

    /// The definition of one capability: a tool or prompt by its name, a resource by its address or name.
    pub async fn info(&self, kind: Type, path: &str) -> Result<Box<RawValue>, ClientError> {
        let tool = self.tool().await?;
        if self.mode != Mode::Always || tool.is_none() {
            let listing = self.native(kind).await?;
            let is_the_tool = kind == Type::Tool && tool.is_some_and(|tool| tool.name == path);
            if let Some(item) = listing.find(path).filter(|_| !is_the_tool) {
                return Ok(item.to_owned());
            }
        }
        match tool {
            Some(tool) => self.info_behind(tool, kind, path).await,
            None => Err(ClientError::NoSuch { kind: kind.as_str(), path: path.to_owned() }),
        }
    }

    /// Calls a tool. `arguments` are a JSON object.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Option<&RawValue>,
        wants: &Use,
    ) -> Result<ToolResult, ClientError> {
        let json = self.use_capability(Type::Tool, name, arguments, wants).await?;
        let is_error = member(&json, "isError").is_some_and(|value| value.get() == "true");
        Ok(ToolResult { json, is_error })
    }

    /// The result of `resources/read`.
    pub async fn read_resource(&self, uri: &str, wants: &Use) -> Result<Box<RawValue>, ClientError> {
        self.use_capability(Type::Resource, uri, None, wants).await
    }

    /// The result of `prompts/get`. `arguments` are a JSON object.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: Option<&RawValue>,
        wants: &Use,
    ) -> Result<Box<RawValue>, ClientError> {
        self.use_capability(Type::Prompt, name, arguments, wants).await
    }

    async fn use_capability(
        &self,
        kind: Type,
        path: &str,
        arguments: Option<&RawValue>,
        wants: &Use,
    ) -> Result<Box<RawValue>, ClientError> {
        let params = native_params(kind, path, arguments);
        let tool = match self.tool().await? {
            Some(tool) if self.mode == Mode::Always || !self.is_native(kind, path).await? => tool,
            _ => return self.client.request(kind.method(), &params, wants).await,
        };
        let outer = wrap::call(tool, kind, params.as_bytes());
        let outer = outer.and_then(|outer| String::from_utf8(outer.to_vec()).ok()).ok_or(ClientError::Over)?;
        let result = self.client.request(Type::Tool.method(), &outer, wants).await?;
        match unwrap::call(kind, result.get().as_bytes(), Era::Modern) {
            Ok(native) => tool::json(&native),
            // A tool that fails says so in its result, and so does one behind a proxy tool.
            Err(_) if kind == Type::Tool && tool::failed(&result) => Ok(result),
            Err(not) => Err(not.into()),
        }
    }

    /// Whether the server lists it itself.
    async fn is_native(&self, kind: Type, path: &str) -> Result<bool, ClientError> {
        let listing = match kind {
            Type::Tool => {
                let found = self.found().await?;
                let is_the_tool = found.tool.as_ref().is_some_and(|tool| tool.name == path);
                return Ok(!is_the_tool && is_listed(&found.tools, path));
            }
            Type::Resource => self.resources.get_or_try_init(|| self.native(kind)).await?,
            Type::Prompt => self.prompts.get_or_try_init(|| self.native(kind)).await?,
        };
        Ok(is_listed(listing, path) || kind == Type::Resource && listing.items.iter().any(|item| may_make(item, path)))
    }

    async fn native(&self, kind: Type) -> Result<Listing, ClientError> {
        match kind {
            Type::Tool => match self.found.get() {
                Some(found) if found.is_new.swap(false, Ordering::Relaxed) => Ok(found.tools.clone()),
                _ => self.client.list(List::Tools).await,
            },
            Type::Prompt => self.client.list(List::Prompts).await,
            Type::Resource => {
                let mut listing = self.client.list(List::Resources).await?;
                listing.append(self.client.list(List::ResourceTemplates).await?);
                Ok(listing)
            }
        }
    }

    async fn found(&self) -> Result<&Found, ClientError> {
        let look = async || {
            let tools = self.client.list(List::Tools).await?;
            let items = tools.items.iter().map(|item| item.get().as_bytes());
            Ok(Found { tool: detect::find(items, self.tool_name.as_deref()), tools, is_new: AtomicBool::new(true) })
        };
        self.found.get_or_try_init(look).await
    }

    /// The proxy tool, where one may be used.
    async fn tool(&self) -> Result<Option<&ProxyTool>, ClientError> {
        match self.mode {
            Mode::Never => Ok(None),
            Mode::Auto if self.tool_name.is_none() => Ok(self.found().await?.tool.as_ref()),
            Mode::Auto | Mode::Always => self.found().await?.tool.as_ref().map(Some).ok_or(ClientError::NoProxyTool),
        }
    }
}

fn native_params(kind: Type, path: &str, arguments: Option<&RawValue>) -> String {
    let path = Value::from(path);
    match (kind, arguments) {
        (Type::Resource, _) => format!("{{\"uri\":{path}}}"),
        (_, None) => format!("{{\"name\":{path}}}"),
        (_, Some(arguments)) => format!("{{\"name\":{path},\"arguments\":{arguments}}}"),
    }
}

fn is_template(item: &RawValue) -> bool {
    member(item, "uriTemplate").is_some()
}

/// What an item is used by.
fn path_of(item: &RawValue) -> Option<String> {
    ["uri", "uriTemplate", "name"].into_iter().find_map(|key| text_member(item, key))
}

fn is_listed(listing: &Listing, path: &str) -> bool {
    listing.items.iter().any(|item| path_of(item).as_deref() == Some(path))
}

/// Whether an address may be made of a template: it begins as that does. A close look is for the server.
fn may_make(item: &RawValue, uri: &str) -> bool {
    let template = text_member(item, "uriTemplate");
    template.is_some_and(|template| template.split_once('{').is_some_and(|(fixed, _)| uri.starts_with(fixed)))
}
