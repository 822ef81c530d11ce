//! The short form that client configs use to govern a server: `--target CMD --rules FILE`, without a
//! command. It is all that `mcp-governance-proxy` does, and `mcp-proxy` takes it, too.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Command, CommandFactory, FromArgMatches, Parser};

use crate::cli::{self, RecordingArgs};
use crate::failure::Failure;
use crate::holding::HoldArgs;
use crate::plan::Plan;
use crate::policy::GovernArgs;
use crate::report::ColorChoice;
use crate::run;

/// The first word by which `mcp-governance-proxy` starts this program.
pub(crate) const WORD: &str = "__governance";

const NAME: &str = "mcp-governance-proxy";

/// Stand between an MCP client and a server, pass only what rules let pass, and keep an audit
#[derive(Parser)]
#[command(version, arg_required_else_help = true, max_term_width = 100)]
#[command(
    after_help = "`mcp-proxy policy init` writes rules to begin with, `mcp-proxy policy check` looks for mistakes in them, `mcp-proxy audit` shows what they decided."
)]
struct GovernanceCli {
    /// The server's command line, split like a shell would, but no shell runs it; or its address
    #[arg(long, short, value_name = "CMD|URL")]
    target: String,
    #[command(flatten)]
    govern: GovernArgs,
    /// Append the lines of the audit to this file as well
    #[arg(long, short, value_name = "FILE")]
    log: Option<PathBuf>,
    #[command(flatten)]
    recording: RecordingArgs,
    #[command(flatten)]
    hold: HoldArgs,
    /// Where recordings and the audit are kept [default: ~/.local/state/mcp-proxy]
    #[arg(long, value_name = "DIR", env = "MCP_PROXY_STATE_DIR", hide_env_values = true)]
    state_dir: Option<PathBuf>,
    /// Every command takes it, so this one does, and has nothing to colour.
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN", hide = true)]
    color: ColorChoice,
}

/// Whether these words, the program's name left out, are in this form: without a command, with a target or
/// rules. A configuration without a target is a gateway's.
pub(crate) fn is_meant(args: &[OsString]) -> bool {
    let gives_one = |long, short| gives(args, long) || gives(args, short);
    has_no_command(args) && (gives_one("--target", "-t") || gives_one("--rules", "-r") && !gives(args, "--config"))
}

/// Whether a flag comes first that is not one of every command.
pub(crate) fn has_no_command(args: &[OsString]) -> bool {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let common = ["--state-dir", "--color"].into_iter().find(|flag| is(arg, flag));
        match common {
            // Its value is the next word, unless it stands behind the `=`.
            Some(flag) if arg == flag => drop(rest.next()),
            Some(_) => {}
            None if ["--help", "-h", "--version", "-V"].iter().any(|flag| arg == flag) => return false,
            None => return arg.as_encoded_bytes().starts_with(b"-"),
        }
    }
    false
}

/// Whether the flag is among these words.
pub(crate) fn gives(args: &[OsString], flag: &str) -> bool {
    args.iter().any(|arg| is(arg, flag))
}

fn is(arg: &OsStr, flag: &str) -> bool {
    arg.as_encoded_bytes().strip_prefix(flag.as_bytes()).is_some_and(is_value)
}

/// What may follow the name of a flag.
fn is_value(rest: &[u8]) -> bool {
    rest.is_empty() || rest.starts_with(b"=")
}

/// `mcp-governance-proxy`, which `ps` and `pkill` find by that name.
pub(crate) fn program(args: impl Iterator<Item = OsString>) -> ExitCode {
    // A refusal costs the name and nothing else.
    let _ = rustix::thread::set_name(c"mcp-governance-proxy");
    main(NAME, args)
}

/// Reads these words, the program's own left out, under this name, and does what they say.
pub(crate) fn main(name: &'static str, args: impl Iterator<Item = OsString>) -> ExitCode {
    let command = command().name(name);
    let matches = command.get_matches_from(std::env::args_os().take(1).chain(args));
    let cli = GovernanceCli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    cli::code_of(cli.run())
}

/// In this form rules are a must, and they and the service have short flags.
fn command() -> Command {
    let command = GovernanceCli::command().mut_arg("rules", |rules| rules.required(true).short('r'));
    command.mut_arg("service", |service| service.short('s'))
}

impl GovernanceCli {
    fn run(&self) -> Result<ExitCode, Failure> {
        let mut plan = Plan::of_target(&self.target, &self.recording)?;
        plan.says_ready = !self.recording.quiet;
        let state = cli::state_dir(self.state_dir.as_deref());
        let govern = GovernArgs { log: self.log.clone(), ..self.govern.clone() };
        run::carry_out(plan, &self.recording, Some((&self.hold, &govern)), state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(args: &str, expected: bool) {
        let args: Vec<OsString> = args.split(' ').map(OsString::from).collect();
        assert_eq!(is_meant(&args), expected, "{args:?}");
    }

    #[test]
    fn a_command_line_is_in_this_form_if_a_flag_comes_first() {
        check("--target x --rules y", true);
        check("--rules=y --target=x", true);
        check("--env A=B --rules y", true);
        check("-t x -r y", true);
        check("-q -t=x", true);
        check("run -t x", false);
        check("-r y --config x", false);
        check("--state-dir d --color=never -q --target x", true);
        check("run --rules y -- x --target z", false);
        check("--state-dir d run --rules y x", false);
        check("--state-dir --target run", false);
        check("--color never run x --target y", false);
        check("--target-command x --rulesy", false);
        check("--help --target", false);
        check("-V", false);
        check("--config y", false);
        check("--config y --rules z", false);
        check("--config y --target x", true);
        check("", false);
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
