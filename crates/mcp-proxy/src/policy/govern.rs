//! Puts rules in front of a server, and begins the audit of what they decide.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use mcp_engine::audit::Audit;
use mcp_engine::pipeline::wall_ns;
use mcp_engine::policy::Answered;
use mcp_engine::policy::rules::Rules;
use mcp_engine::{CommandSender, Pipeline};
use mcp_store::StateDir;
use mcp_store::audit::{AuditLog, Begin};
use rustix::fs::OFlags;
use uuid::Uuid;

use super::check::summary;
use super::service::Naming;
use super::watch::Watch;
use crate::answers::{AnswersFile, AnswersWatch};
use crate::config::expand_home;
use crate::failure::{Failure, exit, quoted};
use crate::report::say;

/// What both forms of the proxy take.
#[derive(Args, Clone, Default)]
pub struct GovernArgs {
    /// Pass only what the rules in this file let pass, and keep an audit of what they decide; changes of the
    /// file count within a second
    #[arg(long, value_name = "FILE", visible_alias = "config")]
    pub rules: Option<PathBuf>,
    /// The service that the server is, where the rules are for several [default: --name]
    #[arg(long, value_name = "NAME", requires = "rules")]
    pub service: Option<String>,
    /// A file that gets the lines of the audit, too.
    #[arg(skip)]
    pub log: Option<PathBuf>,
}

/// Opens a file for lines that are added to it. A pipe without a reader must not stop the proxy.
fn open_copy(path: &Path) -> Result<File, Failure> {
    let path = expand_home(path);
    let flags = OFlags::NONBLOCK.bits() as i32;
    let opened = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(&path);
    opened.map_err(|error| {
        Failure::new(exit::CANNOT_RUN, format!("cannot open {} for audit lines: {error}", quoted(&path)))
            .hint("give --log a file in a directory that can be written to")
    })
}

/// Rules that are right.
pub struct Governing {
    rules: Arc<Rules>,
    /// What they are, for people.
    summary: String,
    remarks: Vec<String>,
    watch: Watch,
    /// What people answered to them for good.
    answers: AnswersWatch,
    written: Vec<Answered>,
    /// A file of the user's that gets the lines of the audit, too.
    copy: Option<File>,
}

/// What a proxy is that is governed.
pub struct Site<'a> {
    /// What faces know it by.
    pub instance: Uuid,
    /// What the server is called, where the rules do not name it.
    pub server: Option<&'a str>,
    pub state: &'a StateDir,
    pub commands: CommandSender,
    pub quiet: bool,
}

impl GovernArgs {
    /// A file that is missing or wrong is found here.
    pub fn check(&self, name: Option<&str>) -> Result<Option<Governing>, Failure> {
        self.check_for(name, &[])
    }

    /// The same for a gateway, whose servers have these ids.
    pub fn check_for(&self, name: Option<&str>, servers: &[Arc<str>]) -> Result<Option<Governing>, Failure> {
        let Some(path) = &self.rules else { return Ok(None) };
        let path = std::path::absolute(expand_home(path))?;
        let mut watch = Watch::new(path, Naming { service: self.service.as_deref(), servers, name });
        let read = watch.read()?;
        let summary = summary(&read);
        let mut answers = AnswersWatch::new(AnswersFile::beside(watch.path()));
        let written = answers.read()?;
        let copy = self.log.as_deref().map(open_copy).transpose()?;
        let (rules, remarks) = (Arc::new(read.rules), read.remarks);
        Ok(Some(Governing { rules, summary, remarks, watch, answers, written, copy }))
    }
}

impl Governing {
    /// Where the rules are.
    pub fn file(&self) -> &Path {
        self.watch.path()
    }

    /// Has the rules decide what passes, and those that the file will have.
    pub fn begin(self, pipeline: Pipeline, site: Site<'_>) -> Result<Pipeline, Failure> {
        let server = self.rules.server.as_deref().or(site.server);
        let program = concat!("mcp-proxy ", env!("CARGO_PKG_VERSION"));
        let begin =
            Begin { time_ns: wall_ns(), instance: site.instance, program, server, rules_version: &self.rules.version };
        let dir = site.state.audit();
        let instance = &site.instance.to_string()[..8];
        let mut log = match AuditLog::begin(&dir, &begin) {
            Ok(log) => log,
            Err(error) if self.rules.audit_required => {
                let what = format!("the audit cannot begin in {}: {error}", quoted(&dir));
                return Err(Failure::new(exit::CANNOT_RUN, what).hint(
                    "give --state-dir a directory that can be written to; without `audit_required` the proxy starts all the same",
                ));
            }
            Err(error) => {
                say(&format!(
                    "mcp-proxy {instance}: warning: the audit log in {} cannot be opened: {error}. Decisions go \
                     unwritten until it opens; the proxy keeps trying.",
                    quoted(&dir)
                ));
                AuditLog::unopened(&dir, &begin, &error)
            }
        };
        if let Some(copy) = self.copy {
            log.copy_to(copy)?;
        }
        let is_unwritten = !log.is_open();
        let audit = Audit::new(log, site.instance, server.map(Into::into));
        self.watch.start(self.answers, site.commands, (site.quiet, is_unwritten))?;
        if !site.quiet {
            say(&format!("mcp-proxy {instance}: rules: {}", self.summary));
            self.remarks.iter().for_each(|remark| say(&format!("mcp-proxy {instance}: note: {remark}")));
        }
        let mut pipeline = pipeline.governed_by(self.rules, audit);
        pipeline.governance.set_written_answers(self.written);
        Ok(pipeline)
    }
}
