//! Prints a session: what it is, then a line a message. It is read as a stream: the first lines are
//! there before the rest is read, and what is held does not grow with the session.

mod ahead;
mod exchanges;
mod header;
pub(crate) mod hold;
pub(crate) mod json;
pub(crate) mod lines;
mod mirror;
pub(crate) mod payload;
pub(crate) mod ruling;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use mcp_filter::Filter;
use mcp_store::{Amendment, Entries, SessionEntry, StateDir, Story, Told};

use crate::failure::Failure;
use crate::report::{ColorChoice, Page, Style, say};
use ahead::Ahead;
use exchanges::Exchanges;
use header::Header;
pub(crate) use header::print_header;
pub(crate) use lines::Lines;

/// Interval between two looks at a session that is being recorded: as fast as people read, and no load.
const FOLLOW_EVERY: Duration = Duration::from_millis(100);

#[derive(Args)]
pub(crate) struct InspectArgs {
    /// A session file, or a recorded session by its id, the beginning of it, or its name [default: `last`,
    /// the newest]
    session: Option<String>,
    #[arg(long, value_name = "FILE", conflicts_with = "session", help = "The session, as a file")]
    session_file: Option<PathBuf>,
    /// Print what the messages say, and the headers they came with
    #[arg(long, short)]
    verbose: bool,
    /// Print only messages that match, such as `tool:write_* status:err`; see `mcp-proxy help filter`
    #[arg(long, value_name = "EXPR")]
    filter: Option<String>,
    /// One JSON object a line, for scripts: each message whole, with what is known of it
    #[arg(long, conflicts_with = "verbose")]
    json: bool,
    /// Go on while the session is being recorded
    #[arg(long, short)]
    follow: bool,
}

pub(crate) fn inspect(args: &InspectArgs, state: &StateDir, color: ColorChoice) -> Result<(), Failure> {
    let filter = args.filter.as_deref().map(Filter::parse).transpose()?;
    let entries = match (&args.session_file, &args.session) {
        (Some(file), _) => Entries::open(file, Some(state))?,
        (None, wanted) => {
            let (entries, findings) = Entries::find(wanted.as_deref(), state)?;
            findings.iter().for_each(|finding| say(&format!("mcp-proxy: {finding}")));
            entries
        }
    };
    Inspection {
        page: Page::new(color),
        story: Story::of(entries.header()),
        exchanges: Exchanges::new(args.verbose),
        ahead: Ahead::new(entries),
        lines: Lines::default(),
        shown: 0,
        left_out: 0,
        filter,
        args,
    }
    .run()
}

struct Inspection<'a> {
    args: &'a InspectArgs,
    page: Page,
    ahead: Ahead,
    story: Story,
    exchanges: Exchanges,
    lines: Lines,
    filter: Option<Filter>,
    shown: u64,
    /// Health checks and discovery, which are shown only if the filter asks for the origin.
    left_out: u64,
}

impl Inspection<'_> {
    fn run(mut self) -> Result<(), Failure> {
        self.read_ahead()?;
        let header = self.print_header()?;
        loop {
            while let Some(entry) = self.ahead.pop() {
                self.print(entry)?;
                self.read_ahead()?;
            }
            if !self.args.follow || !self.ahead.entries().is_live() {
                break;
            }
            self.page.flush()?;
            std::thread::sleep(FOLLOW_EVERY);
            self.ahead.look_again()?;
            self.read_ahead()?;
        }
        if !self.args.json {
            if self.filter.is_none() {
                self.print_lines(|exchanges, page| exchanges.rest(page))?;
            }
            header.print_rest(
                &mut self.page,
                self.ahead.entries().summary(),
                self.filter.as_ref().map(|_| self.shown),
                self.left_out,
            )?;
        }
        Ok(self.page.end()?)
    }

    fn read_ahead(&mut self) -> Result<(), Failure> {
        Ok(self.ahead.fill(|entry| self.exchanges.foresee(entry))?)
    }

    /// Prints what is known by now.
    fn print_header(&mut self) -> Result<Header, Failure> {
        let entries = self.ahead.entries();
        let goes_on = self.args.follow && entries.is_live();
        let is_whole = entries.is_whole() && !goes_on;
        let mut header = Header::new(is_whole, self.filter.is_some());
        if !self.args.json {
            header.print(&mut self.page, entries.summary())?;
            self.page.line("")?;
        }
        Ok(header)
    }

    fn print(&mut self, entry: SessionEntry) -> Result<(), Failure> {
        let several = self.ahead.entries().summary().several_conversations;
        self.lines.show_conversation = several;
        self.exchanges.show_conversation(several);
        if let SessionEntry::Message(message) = entry {
            let told = self.story.tell(message);
            return self.print_message(&told);
        }
        if let SessionEntry::Amendment(amendment) = &entry {
            return self.print_amendment(amendment);
        }
        if self.filter.as_ref().is_some_and(|filter| filter.needs().headers) {
            self.story.hear(entry.clone());
        }
        // Nothing that a filter could match, and nothing that is a message.
        let is_left_out = self.filter.is_some() || self.args.json;
        let lines = self.exchanges.pass(&self.page, entry);
        lines.iter().filter(|_| !is_left_out).try_for_each(|line| self.page.line(line))?;
        Ok(())
    }

    fn print_message(&mut self, told: &Told) -> Result<(), Failure> {
        if self.filter.as_ref().is_some_and(|filter| !filter.matches(told)) {
            return Ok(());
        }
        if told.is_own() && !self.filter.as_ref().is_some_and(Filter::has_origin) {
            self.left_out += 1;
            return Ok(());
        }
        self.shown += 1;
        if self.args.json {
            return Ok(self.page.line(&json::object(told))?);
        }
        let mut line = self.lines.line(&self.page, told);
        if let Some(disagreement) = self.exchanges.disagreement(&told.recorded) {
            line = format!("{line} {}", self.page.styled(Style::Bad, &disagreement));
        }
        self.page.line(&line)?;
        let beside = self.exchanges.beside(&self.page, &told.recorded);
        if self.args.verbose {
            payload::print(&mut self.page, &told.recorded, &beside)?;
        }
        Ok(())
    }

    /// What became of a message that was printed before. A filter was asked about that one, and is not again.
    fn print_amendment(&mut self, amendment: &Amendment) -> Result<(), Failure> {
        match (self.filter.is_some(), self.args.json) {
            (true, _) => Ok(()),
            (false, true) => Ok(self.page.line(&json::amendment(amendment))?),
            (false, false) => Ok(self.page.line(&hold::line(&self.page, amendment))?),
        }
    }

    fn print_lines(&mut self, lines: impl FnOnce(&mut Exchanges, &Page) -> Vec<String>) -> Result<(), Failure> {
        for line in lines(&mut self.exchanges, &self.page) {
            self.page.line(&line)?;
        }
        Ok(())
    }
}
