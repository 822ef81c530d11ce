//! What a session is: its server, its times, its notes. What only the whole of a long session can
//! tell comes after the last line.

use mcp_store::Summary;
use mcp_wire::visible::visible;

use crate::failure::Failure;
use crate::report::{self, Page, Style};

type Fact = (&'static str, String);

pub(crate) fn print_header(page: &mut Page, summary: &Summary) -> Result<(), Failure> {
    facts(summary, true, None).iter().try_for_each(|fact| print_fact(page, fact))
}

/// What has been said of a session, and what remains to be said.
pub(super) struct Header {
    is_whole: bool,
    /// Only some messages are shown, so their number is not known at the beginning.
    is_filtered: bool,
    said: Vec<Fact>,
}

impl Header {
    pub(super) fn new(is_whole: bool, is_filtered: bool) -> Self {
        Self { is_whole, is_filtered, said: Vec::new() }
    }

    pub(super) fn print(&mut self, page: &mut Page, summary: &Summary) -> Result<(), Failure> {
        self.said = facts(summary, self.is_whole, None);
        self.said.retain(|(label, _)| !self.is_filtered || *label != "messages");
        self.said.iter().try_for_each(|fact| print_fact(page, fact))
    }

    /// What was not known yet; `shown` is how many messages a filter let through, `left_out` how many of
    /// those were health checks and discovery.
    pub(super) fn print_rest(
        &self,
        page: &mut Page,
        summary: &Summary,
        shown: Option<u64>,
        left_out: u64,
    ) -> Result<(), Failure> {
        let own = (left_out > 0).then(|| {
            let count = if left_out == 1 { "1 message".to_owned() } else { format!("{left_out} messages") };
            ("left out", format!("{count} of health checks and discovery; --filter 'origin:*' shows everything"))
        });
        let rest = facts(summary, true, shown).into_iter().filter(|fact| !self.said.contains(fact)).chain(own);
        for (index, fact) in rest.enumerate() {
            if index == 0 && shown != Some(0) {
                page.line("")?;
            }
            print_fact(page, &fact)?;
        }
        Ok(())
    }
}

fn print_fact(page: &mut Page, (label, fact): &Fact) -> Result<(), Failure> {
    let label = page.styled(Style::Heading, &format!("{label:<12}"));
    Ok(page.line(&format!("{label} {fact}"))?)
}

/// Without the whole session, only what is known for certain.
fn facts(summary: &Summary, is_whole: bool, shown: Option<u64>) -> Vec<Fact> {
    let header = &summary.header;
    let server = header.server_command.as_deref().or(header.server_url.as_deref()).unwrap_or("unknown");
    let mut facts = vec![("session", header.id.to_string())];
    facts.extend(header.name.as_ref().map(|name| ("name", visible(name).to_string())));
    facts.push(("server", format!("{} ({})", visible(server), header.transport.as_str())));
    facts.push(("started", format!("{:.3}", header.started_at())));
    if is_whole || summary.live || summary.ended_ns.is_some() {
        facts.push(("ended", ending(summary)));
    }
    match shown {
        Some(shown) => facts.push(("messages", format!("{shown} of {} match", summary.messages))),
        None if is_whole => facts.push(("messages", summary.messages.to_string())),
        None => {}
    }
    let next = summary.end.as_ref().and_then(|end| end.continued_in);
    facts.extend(next.map(|next| ("goes on in", next.to_string())));
    facts.extend(header.continues.map(|earlier| ("goes on from", earlier.to_string())));
    for (key, value) in &summary.notes {
        facts.push(("note", format!("{} = {}", visible(key), visible(value))));
    }
    for warning in &summary.warnings {
        facts.push(("warning", visible(warning).to_string()));
    }
    facts
}

fn ending(summary: &Summary) -> String {
    let Some(ended_ns) = summary.ended_ns else {
        return if summary.live {
            "still running".into()
        } else {
            "unknown: it still ran when this was written, or was interrupted".into()
        };
    };
    let lasted = report::duration(ended_ns.saturating_sub(summary.header.started_ns));
    let how = match &summary.end {
        Some(end) if end.recovered => ", interrupted".to_owned(),
        Some(end) => end.server.as_ref().map(|status| format!(", server: {}", visible(status))).unwrap_or_default(),
        None => String::new(),
    };
    format!("{:.3} (after {lasted}{how})", mcp_store::recorded::timestamp(ended_ns))
}
