//! `config check`, `config show` and `config schema`: what a gateway makes of a file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use mcp_store::redact::Redactor;
use mcp_wire::visible::visible;

use crate::cli::pair;
use crate::config::{Mistake, Mistakes, Source, expand_home};
use crate::failure::{Failure, exit, quoted};
use crate::gateway::load::{self, Loaded, load};
use crate::gateway::model::{At, Server};
use crate::gateway::program;
use crate::gateway::schema::schema;
use crate::gateway::show;
use crate::gateway::world::World;
use crate::policy;
use crate::report::{ColorChoice, Page, Style, say};

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say whether files can be used for a gateway, what they are taken for and which servers they have
    Check(CheckArgs),
    /// Print a file as it counts, in the gateway's own form, with every default; secrets are masked
    Show(ShowArgs),
    /// Print the JSON Schema of the gateway's own form
    Schema,
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// Configurations, or files of clients
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What a client would ask its user for, where its file has `${input:NAME}`
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    input: Vec<(String, String)>,
}

#[derive(Args)]
pub(crate) struct ShowArgs {
    /// A configuration, or the file of a client
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// As JSON [default: the format of the file]
    #[arg(long, conflicts_with_all = ["toml", "yaml"])]
    json: bool,
    /// As TOML
    #[arg(long, conflicts_with = "yaml")]
    toml: bool,
    /// As YAML
    #[arg(long)]
    yaml: bool,
    /// What a client would ask its user for, where its file has `${input:NAME}`
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    input: Vec<(String, String)>,
}

/// `mcp-proxy config …`
pub(crate) fn config(command: &ConfigCommand, color: ColorChoice) -> Result<ExitCode, Failure> {
    let mut page = Page::new(color);
    let code = match command {
        ConfigCommand::Check(args) => check(args, &mut page)?,
        ConfigCommand::Show(args) => {
            page.raw(shown(args)?.as_bytes())?;
            ExitCode::SUCCESS
        }
        ConfigCommand::Schema => {
            let schema = serde_json::to_string_pretty(&schema()).expect("plain data always serialises");
            page.line(&schema)?;
            ExitCode::SUCCESS
        }
    };
    page.end()?;
    Ok(code)
}

/// Looks at every file, also after one that is wrong.
fn check(args: &CheckArgs, page: &mut Page) -> Result<ExitCode, Failure> {
    let mut code = ExitCode::SUCCESS;
    for file in &args.files {
        let path = expand_home(file);
        let checked = Source::read(&path, "the configuration").and_then(|source| {
            let loaded = load::of(&source, &World::own(&args.input))?;
            let programs = find_programs(&source, &loaded);
            let ids: Vec<_> = loaded.config.settings.servers.iter().map(|server| server.id.clone()).collect();
            let rules = loaded.config.rules.as_deref().map(|rules| policy::summary_of(rules, &ids)).transpose()?;
            Ok((loaded, rules, programs))
        });
        let found = match checked {
            Ok((loaded, rules, programs)) => {
                tell(&path, &loaded, rules.as_ref(), page)?;
                programs
            }
            Err(failure) => Err(failure),
        };
        if let Err(failure) = found {
            page.flush()?;
            say(&failure.to_string());
            code = ExitCode::from(exit::USAGE);
        }
    }
    Ok(code)
}

/// Looks up what every enabled server would start, as starting it would.
fn find_programs(source: &Source, loaded: &Loaded) -> Result<(), Failure> {
    let mut mistakes = Mistakes::default();
    for (server, settings) in loaded.gateway.servers.iter().zip(&loaded.config.settings.servers) {
        if let (At::Command { place, .. }, Some((what, help))) = (&server.at, program::fault(settings)) {
            mistakes.add(Mistake::at(place.clone(), what).help(help));
        }
    }
    if mistakes.is_empty() {
        return Ok(());
    }
    let shown = mistakes.shown(source);
    Err(Failure::usage(format!("a gateway starts without these servers of {}\n\n{shown}", quoted(source.path()))))
}

fn tell(path: &Path, loaded: &Loaded, rules: Option<&(String, Vec<String>)>, page: &mut Page) -> Result<(), Failure> {
    page.line(&format!("{}: {}", quoted(path), loaded.dialect.about()))?;
    let servers = &loaded.gateway.servers;
    let width = servers.iter().map(|server| server.id.len()).max().unwrap_or_default();
    for server in servers {
        let state = if server.enabled { "" } else { "  (disabled)" };
        let line = format!("  {:width$}  {:15}  {}{state}", server.id, spoken(server), reached(server));
        page.line(&if server.enabled { line } else { page.styled(Style::Faint, &line) })?;
    }
    if let Some((rules, remarks)) = rules {
        page.line(&format!("  rules: {rules}"))?;
        remarks.iter().try_for_each(|remark| page.line(&format!("  note: {remark}")))?;
    }
    let tokens = loaded.gateway.tokens.len() + usize::from(loaded.gateway.auth_token.is_some());
    if tokens > 0 {
        page.line(&format!("  {tokens} {}", if tokens == 1 { "token" } else { "tokens" }))?;
    }
    if !loaded.warnings.is_empty() {
        page.line(&format!("\nworth knowing:\n\n{}\n", loaded.warnings))?;
    }
    Ok(())
}

fn spoken(server: &Server) -> &'static str {
    match &server.at {
        At::Command { .. } => "stdio",
        At::Url { transport, .. } => match show::transport_word(*transport) {
            "auto" => "http or sse",
            word => word,
        },
    }
}

/// How it is reached, as people may see it.
fn reached(server: &Server) -> String {
    let text = match &server.at {
        At::Command { words, .. } => shell_words::join(show::masked_words(words)),
        At::Url { url, .. } => Redactor::default().text(&url.written).into_owned(),
    };
    visible(&text).to_string()
}

fn shown(args: &ShowArgs) -> Result<String, Failure> {
    let path = expand_home(&args.file);
    let loaded = load(&path, &World::own(&args.input))?;
    let shown = show::shown(&loaded.gateway);
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    Ok(match (args.json, args.toml, args.yaml, extension.as_deref()) {
        (true, ..) => shown.json(),
        (_, true, ..) => shown.toml(),
        (_, _, true, _) => shown.yaml(),
        (.., Some("toml")) => shown.toml(),
        (.., Some("yaml" | "yml")) => shown.yaml(),
        _ => shown.json(),
    })
}
