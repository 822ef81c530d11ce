//! A message as a line. Whatever a peer chose in it is made visible, and cut if it is long.

use mcp_store::story::{Fault, Status};
use mcp_store::{MessageKind, Told};
use mcp_wire::reply;
use mcp_wire::visible::visible_bytes;

use super::hold;
use crate::report::{self, Page, Style};

/// Characters that are shown of a text, and of the name of a tool or resource.
const TEXT_SHOWN: usize = 72;
const NAME_SHOWN: usize = 200;

/// Turns messages into lines.
#[derive(Default)]
pub(crate) struct Lines {
    pub show_conversation: bool,
}

impl Lines {
    /// `#003 → tools/call [read_file] id=2`, `#004 ← tools/call [read_file] id=2 12ms ok ↩ #003`; between a
    /// gateway and one of its servers `#005 c2 → [files] tools/call [read_file] id=1 from #003`; of a proxy tool
    /// `#006 → tools/call [proxy: call read_file] id=3`
    pub(crate) fn line(&self, page: &Page, told: &Told) -> String {
        let recorded = &told.recorded;
        let mut parts = vec![page.styled(Style::Faint, &format!("#{:03}", recorded.sequence))];
        parts.extend(self.show_conversation.then(|| format!("c{}", recorded.conversation)));
        parts.push(recorded.direction.arrow().to_string());
        parts.extend(recorded.upstream.as_deref().map(|server| format!("[{}]", cut(server.as_bytes(), NAME_SHOWN))));
        describe(page, told, &mut parts);
        if recorded.from_proxy {
            parts.push(if is_denial(told) { "denied by the proxy" } else { "by the proxy" }.into());
        }
        parts.extend(hold::signs(page, recorded));
        if let Some(ambiguity) = told.opaque() {
            parts.push(page.styled(Style::Bad, &format!("opaque: {ambiguity}")));
        }
        parts.extend(told.answers.map(|request| page.styled(Style::Faint, &format!("↩ #{request:03}"))));
        parts.extend(recorded.parent.map(|parent| page.styled(Style::Faint, &format!("from #{parent:03}"))));
        parts.extend(round(told).map(|round| page.styled(Style::Faint, &round)));
        parts.join(" ")
    }
}

fn describe(page: &Page, told: &Told, parts: &mut Vec<String>) {
    let raw = &told.recorded.raw;
    match told.kind {
        MessageKind::Request | MessageKind::Notification | MessageKind::Response | MessageKind::Error => {
            parts.push(what(told));
            parts.extend(told.id().map(|id| format!("id={}", short(id))));
            parts.extend(told.duration_ns().map(report::duration));
            parts.extend(told.status().map(|status| show_status(page, status)));
        }
        MessageKind::Batch => parts.push(format!("batch of {}", mcp_wire::scan::batch_items(raw).count())),
        MessageKind::OtherJson => parts.push(format!("json {}", quote(raw))),
        MessageKind::NotJson => parts.push(format!("bytes {}", quote(raw))),
        MessageKind::Noise => parts.push(format!("noise {}", quote(raw))),
        MessageKind::Event => {
            let event = told.recorded.event.as_deref().unwrap_or_default();
            parts.push(page.styled(Style::Bad, &format!("! {}", cut(event.as_bytes(), NAME_SHOWN))));
        }
    }
}

fn what(told: &Told) -> String {
    let Some(method) = told.method() else { return "response".to_owned() };
    match (told.subject(), told.proxied()) {
        (Some(tool), Some(does)) => format!("{method} [{}: {does}]", cut(tool.as_bytes(), NAME_SHOWN)),
        (subject, _) => about(&method, subject.as_deref()),
    }
}

/// A method, with the tool, prompt or resource it is about.
pub(crate) fn about(method: &str, subject: Option<&str>) -> String {
    let method = cut(method.as_bytes(), NAME_SHOWN);
    match subject {
        Some(subject) => format!("{method} [{}]", cut(subject.as_bytes(), NAME_SHOWN)),
        None => method,
    }
}

/// A retry after `input_required` belongs to the operation that the first request began.
fn round(told: &Told) -> Option<String> {
    let asked = told.asked.as_ref().filter(|asked| asked.round > 1)?;
    let mut round = format!("round {} of #{:03}", asked.round, asked.operation);
    let is_over = told.answers.is_some() && told.status() != Some(&Status::InputRequired);
    if is_over && asked.operation_began_ns > 0 {
        let took = told.recorded.time_ns.saturating_sub(asked.operation_began_ns);
        round.push_str(&format!(", {} in all", report::duration(took)));
    }
    Some(round)
}

fn show_status(page: &Page, status: &Status) -> String {
    match status {
        Status::Ok => page.styled(Style::Good, "ok"),
        Status::InputRequired => "input required".to_owned(),
        Status::Err(Fault::Tool) => page.styled(Style::Bad, "tool error"),
        Status::Err(Fault::Error { code, message }) => {
            let code = code.as_ref().map(|code| match code {
                Ok(code) => format!(" {code}"),
                Err(spelled) => format!(" {}", short(spelled.as_bytes())),
            });
            let text = message.as_ref().map(|text| format!(" {}", quote(text.as_bytes())));
            page.styled(Style::Bad, &format!("error{}{}", code.unwrap_or_default(), text.unwrap_or_default()))
        }
    }
}

fn is_denial(told: &Told) -> bool {
    told.status().and_then(Status::code) == Some(reply::DENIED)
}

/// The beginning of something a peer sent.
pub(crate) fn short(bytes: &[u8]) -> String {
    cut(bytes, TEXT_SHOWN)
}

pub(crate) fn quote(bytes: &[u8]) -> String {
    format!("\"{}\"", short(bytes))
}

/// As many characters of something a peer sent as are shown of it.
pub(crate) fn cut(bytes: &[u8], shown: usize) -> String {
    let text = visible_bytes(&bytes[..bytes.len().min(4 * shown)]);
    let mut beginning: String = text.chars().take(shown).collect();
    if beginning.len() < text.len() || bytes.len() > 4 * shown {
        beginning.push('…');
    }
    beginning
}
