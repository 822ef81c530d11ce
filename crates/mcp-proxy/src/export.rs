//! Writes a session in another format. What is written to a file appears whole or not at all.

mod output;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use mcp_filter::Filter;
use mcp_store::export::{Chosen, ExportError, Format, Outcome, Picked};
use mcp_store::redact::{JsonPath, Redactor};
use mcp_store::{Session, StateDir, Told};

use crate::chosen;
use crate::failure::{Failure, exit, quoted};
use crate::progress::{Interrupted, Unit, Waiter};
use crate::report::say;
pub(crate) use output::{Output, exists};

#[derive(Args)]
pub(crate) struct ExportArgs {
    /// A session file, or a recorded session by its id, the beginning of it, or its name [default: `last`,
    /// the newest]
    session: Option<String>,
    #[arg(long, value_name = "FILE", conflicts_with = "session", help = "The session, as a file")]
    session_file: Option<PathBuf>,
    /// What to write [default: what the name of --output ends in, on standard output json]
    #[arg(long, value_enum, value_name = "FORMAT")]
    output_format: Option<FormatArg>,
    /// Where to write it; `-` is standard output
    #[arg(long, short, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
    /// Only messages that match, such as `tool:write_* status:err`; see `mcp-proxy help filter`
    #[arg(long, value_name = "EXPR")]
    filter: Option<String>,
    /// Only messages with these numbers: `12`, `3-9`, or several with commas between them
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = numbers)]
    only: Vec<(u64, u64)>,
    /// Only this conversation
    #[arg(long, value_name = "N")]
    conversation: Option<u32>,
    /// Mask what stands at this path of a message too, such as `$.params.arguments.pin`
    #[arg(long, value_name = "PATH", conflicts_with = "no_redact")]
    redact: Vec<JsonPath>,
    /// Mask nothing
    #[arg(long)]
    no_redact: bool,
    /// Replace a file that exists
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// The session file: verbatim in a file named `*.json`, else masked
    Json,
    /// The session, then a message a line
    Ndjson,
    /// HTTP archive, for browsers and HTTP tools
    Har,
    /// A bug report in Markdown
    Md,
    /// One page for a browser, offline
    Html,
    /// A shell script that makes the calls again
    Curl,
}

pub(crate) fn export(args: &ExportArgs, state: &StateDir) -> Result<(), Failure> {
    let format = args.format()?;
    let filter = args.filter.as_deref().map(Filter::parse).transpose()?;
    let output = Output::open(&args.output, args.force)?;
    let is_verbatim = is_evidence(format, &args.output) && output.appears_whole();
    if is_verbatim && !args.redact.is_empty() {
        return Err(Failure::usage("a session file is evidence, and nothing in it is masked").hint(
            "without --output the session file is masked; --output-format ndjson has the same messages, masked",
        ));
    }
    let session = args.session(state)?;
    let part = Part { filter, only: args.only.clone(), conversation: args.conversation };
    let redactor = if args.no_redact || is_verbatim { Redactor::off() } else { Redactor::new(args.redact.clone()) };
    let appears_whole = output.appears_whole();
    let outcome = write(&session, format, &part, redactor, output, &Waiter::Command)?;
    args.tell(format, is_verbatim, &outcome);
    if outcome.is_partial { Err(interrupted(&args.output, &outcome, appears_whole)) } else { Ok(()) }
}

/// Which messages of a session are exported: all that fit everything that is said here.
#[derive(Default)]
pub(crate) struct Part {
    pub filter: Option<Filter>,
    /// Numbers, from and to.
    pub only: Vec<(u64, u64)>,
    pub conversation: Option<u32>,
}

/// Writes a part of a session. Stopped before its end, it says that what is there is not all.
pub(crate) fn write(
    session: &Session,
    format: Format,
    part: &Part,
    mut redactor: Redactor,
    output: Output,
    waiter: &Waiter,
) -> Result<Outcome, Failure> {
    let chosen = part.choose(session, format, waiter)?;
    let progress = waiter.begin("exporting", Unit::Messages, Some(session.summary().messages));
    let mut go_on = |read: u64| progress.reach(read).is_ok();
    output.write(|out| {
        let outcome = mcp_store::export::export(session, format, &chosen, &mut redactor, out, &mut go_on)?;
        Ok((outcome.is_partial, outcome))
    })
}

/// Whether this is the session file as evidence: verbatim, never masked.
pub(crate) fn is_evidence(format: Format, path: &Path) -> bool {
    format == Format::Json && path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// What to say of an export that was stopped.
pub(crate) fn interrupted(path: &Path, outcome: &Outcome, appears_whole: bool) -> Failure {
    let what = match appears_whole {
        true => format!("interrupted; {} was not written", quoted(path)),
        false => format!("interrupted; what was written is whole, with the first {} messages", outcome.messages),
    };
    Failure::new(exit::INTERRUPTED, what)
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Json => Self::Json,
            FormatArg::Ndjson => Self::Ndjson,
            FormatArg::Har => Self::Har,
            FormatArg::Md => Self::Markdown,
            FormatArg::Html => Self::Html,
            FormatArg::Curl => Self::Curl,
        }
    }
}

impl ExportArgs {
    fn format(&self) -> Result<Format, Failure> {
        if let Some(given) = self.output_format {
            return Ok(given.into());
        }
        let extension = self.output.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("json") => Ok(Format::Json),
            Some("ndjson" | "jsonl") => Ok(Format::Ndjson),
            Some("har") => Ok(Format::Har),
            Some("md" | "markdown") => Ok(Format::Markdown),
            Some("html" | "htm") => Ok(Format::Html),
            Some("sh") => Ok(Format::Curl),
            _ if is_stream(&self.output) => Ok(Format::Json),
            _ => Err(Failure::usage(format!("the name {} does not tell the format", quoted(&self.output))).hint(
                "end it in .json, .ndjson, .har, .md, .html or .sh, or give --output-format \
                 json|ndjson|har|md|html|curl",
            )),
        }
    }

    fn session(&self, state: &StateDir) -> Result<Session, Failure> {
        match (&self.session_file, &self.session) {
            (Some(file), _) => Ok(Session::open(file, Some(state))?),
            (None, wanted) => chosen::open(wanted.as_deref(), state),
        }
    }

    fn tell(&self, format: Format, is_verbatim: bool, outcome: &Outcome) {
        let count = match outcome.messages {
            1 => "1 message".to_owned(),
            count => format!("{count} messages"),
        };
        let masked = match (is_verbatim, self.no_redact, outcome.masked) {
            (true, ..) => "verbatim: secrets in it are not masked".to_owned(),
            (_, true, _) => "nothing was masked".to_owned(),
            (.., 0) => "no secrets were found to mask".to_owned(),
            (.., 1) => "1 secret was masked".to_owned(),
            (.., masked) => format!("{masked} secrets were masked"),
        };
        let place =
            if self.output.as_os_str() == "-" { String::new() } else { format!(" to {}", quoted(&self.output)) };
        if !outcome.is_partial {
            say(&format!("mcp-proxy: wrote {count} as {}{place}; {masked}", format.as_str()));
        }
        if let Some(left_out) = &outcome.left_out {
            say(&format!("mcp-proxy: left out: {left_out}"));
        }
    }
}

/// Standard output, a pipe or a device. Its name tells no format.
fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-" || path.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
}

impl Part {
    fn choose(&self, session: &Session, format: Format, waiter: &Waiter) -> Result<Chosen, Failure> {
        let filter = self.filter.as_ref();
        if filter.is_none() && self.only.is_empty() && self.conversation.is_none() {
            return Ok(Chosen::default());
        }
        let progress = waiter.begin("choosing", Unit::Messages, Some(session.summary().messages));
        let fits = |told: &Told| {
            self.conversation.is_none_or(|wanted| wanted == told.recorded.conversation)
                && (self.only.is_empty()
                    || self.only.iter().any(|(from, to)| (from..=to).contains(&&told.recorded.sequence)))
                && filter.is_none_or(|filter| filter.matches(told))
        };
        let picked = Picked::look(session, format.shows_calls(), fits, &mut |read| progress.reach(read).is_ok())?;
        drop(progress);
        let picked = picked.ok_or(Interrupted)?;
        if picked.count() == 0 {
            let all = session.summary().messages;
            return Err(Failure::new(exit::NEGATIVE, format!("none of the {all} messages of the session is meant"))
                .hint("`mcp-proxy inspect SESSION` shows them with their numbers and conversations"));
        }
        // A conversation alone is taken whole, with exchanges that have no message.
        let is_narrowed = filter.is_some() || !self.only.is_empty();
        Ok(Chosen { conversation: self.conversation, picked: is_narrowed.then_some(picked) })
    }
}

/// `12`, `#12` or `3-9`
fn numbers(text: &str) -> Result<(u64, u64), String> {
    let number = |text: &str| text.trim().trim_start_matches('#').parse::<u64>().ok();
    let range = match text.split_once('-') {
        Some((from, to)) => number(from).zip(number(to)),
        None => number(text).map(|number| (number, number)),
    };
    range
        .filter(|(from, to)| from <= to)
        .ok_or_else(|| "expected a number such as `12`, or a range such as `3-9`".into())
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Store(error) => error.into(),
            ExportError::Io(error) => error.into(),
        }
    }
}
