//! From a file to rules. A file with `policy` at its top is in the native form; everything else is a
//! table of services and what is allowed of each.

use std::path::Path;
use std::sync::Arc;

use mcp_engine::policy::rules::{Permission, Rules};

use crate::config::{Reading, Source, member};
use crate::failure::Failure;
use crate::gateway;

use super::native;
use super::service::Naming;
use super::services;

/// Rules that a file may have. Each is tried on what no rule before it decided.
pub(super) const RULES_MAX: usize = 10_000;

/// What a permission is called.
pub(super) const PERMISSIONS: [(&str, Permission); 2] = [("allow", Permission::Allow), ("deny", Permission::Deny)];

/// Rules, and what to say of where they came from.
#[derive(Debug)]
pub(super) struct Read {
    pub rules: Rules,
    /// What people should know about how they apply.
    pub note: Option<String>,
    /// Parts that do not do what the file may have been written for.
    pub remarks: Vec<String>,
}

/// Reads the rules in a file. All of its mistakes are in the failure.
pub(super) fn read(path: &Path, naming: Naming<'_>) -> Result<Read, Failure> {
    of(&Source::read(path, "the rules")?, naming)
}

pub(super) fn of(source: &Source, naming: Naming<'_>) -> Result<Read, Failure> {
    let mut reading = Reading::new(source);
    let root = source.parse(&mut reading.mistakes);
    let mut read = None;
    if let Some(root) = &root
        && let Some(members) = reading.table(root, "a rules file")
    {
        read = match member(members, "policy") {
            Some(policy) => {
                // Beside `servers` it is a part of a gateway's configuration, and the rest is read by others.
                match member(members, "servers") {
                    Some(_) => reading.only(members, &gateway::keys::names(gateway::keys::TOP)),
                    None => reading.only(members, &["policy"]),
                }
                native::read(&policy.value, naming, &mut reading).map(Ok)
            }
            None => services::read(root, members, &mut reading).map(|services| services.apply(source, naming)),
        };
    }
    match read {
        Some(read) if reading.mistakes.is_empty() => read,
        _ => Err(source.refused("the rules", reading.mistakes).hint(
            "`mcp-proxy help rules` explains the rules, and `mcp-proxy policy init` writes a file to begin with",
        )),
    }
}

/// Text that is kept for as long as the rules are.
pub(super) fn kept(text: &str) -> Arc<str> {
    Arc::from(text)
}
