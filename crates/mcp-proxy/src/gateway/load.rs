//! From a file to what a gateway is told.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::dialect::{self, Dialect};
use super::expand::{Text, has_reference};
use super::fields::{Reader, is_secret_name};
use super::model::{At, Gateway, GatewayConfig};
use super::native;
use super::world::World;
use crate::config::{Mistake, Source};
use crate::failure::Failure;

/// A file that is right.
pub struct Loaded {
    pub gateway: Gateway,
    pub dialect: Dialect,
    pub config: GatewayConfig,
    /// What people should know, each with its place; empty if there is nothing.
    pub warnings: String,
}

/// Reads a gateway's configuration, or a client's file of servers. All of its mistakes are in the failure.
pub fn load(path: &Path, world: &World) -> Result<Loaded, Failure> {
    of(&Source::read(path, "the configuration")?, world)
}

pub fn of(source: &Source, world: &World) -> Result<Loaded, Failure> {
    let mut reader = Reader::new(source, world);
    let root = source.parse(&mut reader.reading.mistakes);
    let translated = root.and_then(|root| dialect::translated(&root, &mut reader));
    let read = translated.and_then(|(dialect, root)| Some((dialect, native::read(&root, &mut reader)?)));
    let (mistakes, mut warnings) = (reader.reading.mistakes, reader.warnings);
    let Some((dialect, gateway)) = read.filter(|_| mistakes.is_empty()) else {
        return Err(source.refused("the configuration", mistakes).hint(
            "`mcp-proxy help configuration` explains the keys, and `mcp-proxy config check` looks for mistakes",
        ));
    };
    if has_secret(&gateway) && is_exposed(source.path()) {
        let what = "others on this machine can read this file, and there is a secret in it";
        warnings.add(Mistake::at(0..0, what).help("`chmod 600`, or write `${env:NAME}` in its place"));
    }
    let config = gateway.config(world, source.path());
    Ok(Loaded { gateway, dialect, config, warnings: warnings.shown(source) })
}

fn is_exposed(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

/// Whether one is written out in it.
fn has_secret(gateway: &Gateway) -> bool {
    let is_literal = |text: &Text| !text.value.is_empty() && !has_reference(&text.written);
    let tokens = gateway.auth_token.iter().chain(gateway.tokens.iter().map(|token| &token.token));
    let of_servers = gateway.servers.iter().flat_map(|server| match &server.at {
        At::Command { env, .. } => env,
        At::Url { headers, .. } => headers,
    });
    tokens.into_iter().any(is_literal)
        || of_servers.into_iter().any(|(name, text)| is_secret_name(name) && is_literal(text))
}
