//! Puts rules in front of a server, and begins the audit of what they decide.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use mcp_engine::Pipeline;
use mcp_engine::audit::Audit;
use mcp_engine::pipeline::wall_ns;
use mcp_engine::policy::rules::Rules;
use mcp_store::StateDir;
use mcp_store::audit::{AuditLog, Begin};
use uuid::Uuid;

use super::file;
use super::service::Naming;
use crate::config::expand_home;
use crate::failure::{Failure, exit, quoted};

/// What both forms of the proxy take.
#[derive(Args, Clone, Default)]
pub struct GovernArgs {
    /// Pass only what the rules in this file let pass, and keep an audit of what they decide
    #[arg(long, value_name = "FILE", visible_alias = "config")]
    pub rules: Option<PathBuf>,
    /// The service that the server is, where the rules are for several [default: --name]
    #[arg(long, value_name = "NAME", requires = "rules")]
    pub service: Option<String>,
}

/// Rules that are right.
pub struct Governing {
    pub rules: Arc<Rules>,
}

impl GovernArgs {
    /// A file that is missing or wrong is found here.
    pub fn check(&self, name: Option<&str>) -> Result<Option<Governing>, Failure> {
        let Some(path) = &self.rules else { return Ok(None) };
        let path = expand_home(path);
        let read = file::read(&path, Naming { service: self.service.as_deref(), name })?;
        Ok(Some(Governing { rules: Arc::new(read.rules) }))
    }
}

impl Governing {
    /// Has the rules decide what passes. `instance` is what faces know this proxy by, `server` what
    /// the server is called where the rules do not name it.
    pub fn begin(
        self,
        pipeline: Pipeline,
        instance: Uuid,
        server: Option<&str>,
        state: &StateDir,
    ) -> Result<Pipeline, Failure> {
        let server = self.rules.server.as_deref().or(server);
        let program = concat!("mcp-proxy ", env!("CARGO_PKG_VERSION"));
        let begin = Begin { time_ns: wall_ns(), instance, program, server, rules_version: &self.rules.version };
        let log = AuditLog::begin(&state.audit(), &begin).map_err(|error| {
            Failure::new(exit::CANNOT_RUN, format!("the audit cannot begin in {}: {error}", quoted(&state.audit())))
        })?;
        let audit = Audit::new(log, instance, server.map(Into::into));
        Ok(pipeline.governed_by(Arc::clone(&self.rules), audit))
    }
}
