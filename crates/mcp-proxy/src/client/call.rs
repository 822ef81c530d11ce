//! `mcp-proxy call`: uses one capability.

use std::process::ExitCode;

use clap::Args;
use mcp_client::{ProxyClient, Type, text_member};
use mcp_proxy_tool::arguments::template;
use mcp_wire::inert::inert;
use serde_json::value::RawValue;

use super::args::{ServerArgs, TypeArg};
use super::arguments::{self, Members};
use super::info::{Known, find};
use super::target::{self, StateOf};
use super::words::{self, Word};
use super::{show, told, wait};
use crate::failure::{Failure, exit};
use crate::report::{ColorChoice, Page, say};

#[derive(Args)]
#[command(
    override_usage = "mcp-proxy call [OPTIONS] PATH [KEY=VALUE]... -- CMD [ARGS]...\n       mcp-proxy call [OPTIONS] PATH [KEY=VALUE]... --url URL\n       mcp-proxy call [OPTIONS] PATH [KEY=VALUE]... --config FILE --server NAME"
)]
pub(crate) struct CallArgs {
    /// The name of a tool or prompt, or the address of a resource or the template of one
    path: String,
    /// An argument: key=value is text or JSON as the capability wants it, key:=JSON always JSON; key=@FILE and
    /// key:=@FILE have it in a file, or in standard input with @-
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,
    /// All arguments as a JSON object, from a file with @FILE, from standard input with -
    #[arg(long, value_name = "JSON", conflicts_with = "arguments", allow_hyphen_values = true)]
    args: Option<String>,
    /// What it is [default: what the server has of that name]
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    kind: Option<TypeArg>,
    #[command(flatten)]
    server: ServerArgs,
}

/// The arguments, as they were written.
enum Given {
    Whole(Members),
    Words(Vec<Word>),
}

impl Given {
    fn members(&self, known: &Known) -> Result<Members, Failure> {
        match self {
            Self::Whole(members) => Ok(members.clone()),
            Self::Words(words) => arguments::of_words(words, known),
        }
    }
}

/// What came of it.
struct Called {
    kind: Type,
    json: Box<RawValue>,
    is_error: bool,
}

pub(crate) fn call(args: &CallArgs, state: StateOf<'_>, color: ColorChoice) -> Result<ExitCode, Failure> {
    let given = match &args.args {
        Some(json) => Given::Whole(words::of_json(json)?),
        None => Given::Words(words::read(&args.arguments)?),
    };
    let called =
        target::with_client(&args.server, state, async |client: &ProxyClient| use_it(args, &given, client).await)?;
    let mut page = Page::new(color);
    match args.server.json {
        true => page.line(&inert(called.json.get()))?,
        false => show::result(called.kind, &called.json, &mut page)?,
    }
    page.end()?;
    if called.is_error {
        say("mcp-proxy: the tool says that it failed");
        return Ok(ExitCode::from(exit::NEGATIVE));
    }
    Ok(ExitCode::SUCCESS)
}

async fn use_it(args: &CallArgs, given: &Given, client: &ProxyClient) -> Result<Called, Failure> {
    let wants = wait::showing(&args.server);
    let known = what_is_meant(args, client).await?;
    let members = given.members(&known)?;
    arguments::check(&members, &known, &args.path)?;
    if !args.server.recording.quiet {
        let doubts = arguments::doubts(&members, &known, &args.path);
        doubts.iter().for_each(|doubt| say(&format!("mcp-proxy: {doubt}")));
    }
    let given = arguments::object(&members);
    let came = match known.kind {
        Type::Tool => {
            client.call_tool(&args.path, given.as_deref(), &wants).await.map(|called| (called.json, called.is_error))
        }
        Type::Prompt => client.get_prompt(&args.path, given.as_deref(), &wants).await.map(|json| (json, false)),
        Type::Resource => {
            let uri = address(&known, &members)?.unwrap_or_else(|| args.path.clone());
            client.read_resource(&uri, &wants).await.map(|json| (json, false))
        }
    };
    let (json, is_error) = came.map_err(|error| told::failure(&error))?;
    Ok(Called { kind: known.kind, json, is_error })
}

async fn what_is_meant(args: &CallArgs, client: &ProxyClient) -> Result<Known, Failure> {
    let kind = args.kind.map(Type::from);
    let may_be_read = matches!(kind, None | Some(Type::Resource));
    // What a server has need not be in its list.
    if may_be_read && args.path.contains("://") {
        return Ok(unlisted(&args.path));
    }
    match find(client, kind, &args.path).await {
        Err(failure) if kind == Some(Type::Resource) && args.path.contains(':') && failure.code == exit::USAGE => {
            Ok(unlisted(&args.path))
        }
        found => found,
    }
}

/// An address, or a template of one, that is taken as it is written.
fn unlisted(path: &str) -> Known {
    let item = serde_json::json!({ "uriTemplate": path }).to_string();
    Known { kind: Type::Resource, item: RawValue::from_string(item).unwrap_or_else(|_| RawValue::NULL.to_owned()) }
}

/// Where a resource is, with the arguments in their places if there is a template.
fn address(known: &Known, members: &Members) -> Result<Option<String>, Failure> {
    if let Some(uri) = text_member(&known.item, "uri") {
        return Ok(Some(uri));
    }
    let Some(template) = text_member(&known.item, "uriTemplate") else { return Ok(None) };
    let wanted = template::wanted(&template);
    let mut values = members.clone();
    values.retain(|(key, _)| wanted.iter().any(|wanted| wanted.name == *key));
    let values = arguments::object(&values).map_or("{}".into(), |values| values.get().to_owned());
    template::filled(&template, values.as_bytes()).map(Some).map_err(|mistake| Failure::usage(mistake.to_string()))
}
