//! The command line of a gateway, and what comes of it together with the file.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use mcp_engine::entrance::{Entrance, NamedToken};
use mcp_wire::framing::MESSAGE_BYTES_MAX;

use super::flags::ProxyToolArgs;
use super::load::{self, Loaded};
use super::world::World;
use crate::cli::{Listen, RecordingArgs, pair};
use crate::config::expand_home;
use crate::failure::Failure;
use crate::governance::{gives, has_no_command};
use crate::holding::HoldArgs;
use crate::plan::read_token;
use crate::policy::GovernArgs;

/// What a token that was given on the command line is called.
const TOKEN_FILE: &str = "token-file";

/// What `config show` writes in place of a secret.
const MASKED: &str = "***";

#[derive(Args)]
pub struct ServeArgs {
    /// The servers: the gateway's own configuration (`mcp-proxy help configuration`), or the file of any client as it is
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Where clients connect: `stdio`, a port on 127.0.0.1, or an IP address with a port [default: what the
    /// configuration says, or stdio]
    #[arg(long, value_name = "stdio|[HOST:]PORT")]
    pub listen: Option<Listen>,
    /// Let in clients that show the first line of this file as a bearer token, besides those with a token of
    /// the configuration; a token is required where other machines can connect
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// What a client would ask its user for, where its file has `${input:NAME}`
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub input: Vec<(String, String)>,
    /// Pass only what the rules in this file let pass, and keep an audit of what they decide; changes of the
    /// file count within a second
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    #[command(flatten)]
    pub proxy_tool: ProxyToolArgs,
    #[command(flatten)]
    pub hold: HoldArgs,
    #[command(flatten)]
    pub recording: RecordingArgs,
}

/// What is to be served, and where.
pub struct ServePlan {
    pub loaded: Loaded,
    pub entrance: Entrance,
    pub listen: Listen,
    pub govern: GovernArgs,
    /// What the command line says, or else the configuration.
    pub message_bytes_max: usize,
}

impl ServeArgs {
    /// Everything that is wrong with the file or the command line is found here.
    pub fn plan(&self) -> Result<ServePlan, Failure> {
        if !self.recording.env.is_empty() || !self.recording.header.is_empty() {
            return Err(Failure::usage("--env and --header are for a single server")
                .hint("a gateway's servers have `env` and `headers` in its configuration"));
        }
        let mut loaded = load::load(&expand_home(&self.config), &World::own(&self.input))?;
        let settings = &mut loaded.config.settings;
        settings.proxy_tool = self.proxy_tool.over(settings.proxy_tool.take())?;
        if let Some(file) = &self.token_file {
            let token = read_token(file)?;
            let token =
                NamedToken { name: TOKEN_FILE.into(), token, servers: None, tools: None, rate_limit_per_minute: None };
            loaded.config.entrance.tokens.push(token);
        }
        let entrance = Entrance::new(&loaded.config.entrance).map_err(|error| Failure::usage(error.to_string()))?;
        let given = &loaded.config.entrance;
        let mut tokens = given.tokens.iter().map(|named| named.token.as_str()).chain(given.auth_token.as_deref());
        if tokens.any(|token| token == MASKED) {
            return Err(Failure::usage(format!("a token in the configuration is `{MASKED}`, which stands for one"))
                .hint("write the token in its place, or `${env:NAME}`"));
        }
        let listen = self.listen.or(loaded.config.listen).unwrap_or(Listen::Stdio);
        if let Listen::At(address) = listen
            && !address.ip().is_loopback()
            && !entrance.asks_for_token()
        {
            return Err(Failure::usage(format!(
                "{address} can be reached from other machines, so clients need a token"
            ))
            .hint(
                "set `auth_token` or `tokens` in the configuration, give --token-file FILE, or listen on 127.0.0.1",
            ));
        }
        if self.rules.is_some() && loaded.config.rules.is_some() {
            return Err(
                Failure::usage("the configuration has rules, and --rules gives others").hint("leave out either")
            );
        }
        let rules = self.rules.clone().or(loaded.config.rules.clone());
        let message_bytes_max = match self.recording.message_limit {
            MESSAGE_BYTES_MAX => loaded.config.message_bytes_max,
            given => given,
        };
        Ok(ServePlan {
            loaded,
            entrance,
            listen,
            govern: GovernArgs { rules, ..GovernArgs::default() },
            message_bytes_max,
        })
    }
}

/// The words of `mcp-proxy --config FILE …`, which is `serve --listen stdio`, in that form; `None` if they are
/// something else. The program's name is left out.
pub fn without_command(args: &[OsString]) -> Option<Vec<OsString>> {
    if !has_no_command(args) || !gives(args, "--config") || gives(args, "--target") {
        return None;
    }
    let mut words: Vec<OsString> = vec!["serve".into()];
    if !gives(args, "--listen") {
        words.push("--listen=stdio".into());
    }
    words.extend_from_slice(args);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(args: &str, expected: Option<&str>) {
        let args: Vec<OsString> = args.split(' ').map(OsString::from).collect();
        let words = without_command(&args).map(|words| words.join(" ".as_ref()).into_string().unwrap());
        assert_eq!(words.as_deref(), expected, "{args:?}");
    }

    #[test]
    fn a_config_without_a_target_is_a_gateways() {
        check("--config f.json", Some("serve --listen=stdio --config f.json"));
        check("--state-dir d --config=f", Some("serve --listen=stdio --state-dir d --config=f"));
        check("--config f --listen 80", Some("serve --config f --listen 80"));
        check("--config f --rules r", Some("serve --listen=stdio --config f --rules r"));
        check("--target x --config f", None);
        check("run --config f x", None);
        check("--state-dir d serve --config f", None);
        check("--help --config", None);
        check("--configure", None);
    }
}
