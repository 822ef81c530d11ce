//! `policy check`: whether rules files are right, and what they say.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use mcp_engine::policy::rules::Rules;

use crate::answers;
use crate::config::expand_home;
use crate::failure::{Failure, exit, quoted};
use crate::report::{Page, say};

use super::file::{self, Read};
use super::service::Naming;

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// Rules files
    #[arg(required_unless_present = "rules", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A rules file, spelled as for `policy explain`
    #[arg(long, value_name = "FILE", visible_alias = "config")]
    rules: Vec<PathBuf>,
    /// The service that the server is, where a file has rules for several
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
}

/// Looks at every file, also after one that is wrong.
pub(super) fn check(args: &CheckArgs, page: &mut Page) -> Result<ExitCode, Failure> {
    let mut code = ExitCode::SUCCESS;
    let naming = Naming { service: args.service.as_deref(), ..Naming::default() };
    for path in args.rules.iter().chain(&args.files) {
        let path = expand_home(path);
        match file::read(&path, naming).and_then(|read| Ok((answers::shown(&path, &read.rules)?, read))) {
            Ok((answers, read)) => {
                page.line(&format!("{}: {}", quoted(&path), summary(&read)))?;
                read.remarks.iter().try_for_each(|remark| page.line(&format!("  note: {remark}")))?;
                answers.iter().try_for_each(|answer| page.line(&format!("  {answer}")))?;
            }
            Err(failure) => {
                page.flush()?;
                say(&failure.to_string());
                code = ExitCode::from(exit::USAGE);
            }
        }
    }
    Ok(code)
}

/// What was read, in one line.
pub(super) fn summary(Read { rules, note, .. }: &Read) -> String {
    let note = note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
    let (default, mode) = (rules.default.as_str(), rules.classifier.mode().name());
    format!("{}, default {default}, classify {mode} (version {}){note}", count(rules), rules.version)
}

/// How many rules there are.
pub(super) fn count(rules: &Rules) -> String {
    match rules.rules.len() {
        1 => "1 rule".into(),
        rules => format!("{rules} rules"),
    }
}
