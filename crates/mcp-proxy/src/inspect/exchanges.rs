//! What `inspect` shows of HTTP: lines for exchanges that no message speaks for, and what stands
//! beside a message with `-v`.

use mcp_store::exchange::{NO_MESSAGE, OpenExchanges};
use mcp_store::{AnswerHead, Direction, ExchangeMark, Headers, Recorded, RequestHead, SessionEntry};
use mcp_wire::Message;
use mcp_wire::visible::visible;

use super::lines::{quote, short};
use super::mirror;
use crate::report::{Page, Style};

const EVENT_STREAM: &str = "text/event-stream";

/// Follows the exchanges of a session while it is printed.
pub(super) struct Exchanges {
    view: View,
    /// What is known of exchanges before they are printed, from reading ahead.
    foreseen: OpenExchanges<Foreseen>,
    open: OpenExchanges<Open>,
}

#[derive(Clone, Copy)]
struct View {
    verbose: bool,
    show_conversation: bool,
}

/// What a person wants to know of an exchange before it comes.
#[derive(Default)]
struct Foreseen {
    has_messages: bool,
    /// Its body is no message, which its end tells; there is one line for that and the answer.
    has_other_body: bool,
    /// Where we are the server, its head is recorded after the message that it brings.
    answer: Option<AnswerHead>,
}

#[derive(Default)]
struct Open {
    request: Option<(ExchangeMark, RequestHead)>,
    answer: Option<AnswerHead>,
    /// Whether a message or a line of its own has been shown.
    is_shown: bool,
    request_headers_shown: bool,
    answer_headers_shown: bool,
}

impl Exchanges {
    pub(super) fn new(verbose: bool) -> Self {
        let view = View { verbose, show_conversation: false };
        Self { view, foreseen: OpenExchanges::default(), open: OpenExchanges::default() }
    }

    pub(super) fn show_conversation(&mut self, show: bool) {
        self.view.show_conversation = show;
    }

    /// Takes note of what will be printed soon.
    pub(super) fn foresee(&mut self, entry: &SessionEntry) {
        let exchange = match entry {
            SessionEntry::Message(message) => message.exchange,
            SessionEntry::Request(mark, _) | SessionEntry::Answer(mark, _) => Some(mark.exchange),
            SessionEntry::End(mark, Some(how)) if how.starts_with(NO_MESSAGE) => Some(mark.exchange),
            SessionEntry::End(..) | SessionEntry::Amendment(_) => None,
        };
        let Some(exchange) = exchange else { return };
        let (known, none) = (&mut self.foreseen, Headers::default());
        let known = match entry {
            SessionEntry::Answer(_, head) => known.keep(exchange, &head.headers),
            _ => known.keep(exchange, &none),
        };
        match entry {
            SessionEntry::Message(_) => known.has_messages = true,
            SessionEntry::Answer(_, head) => known.answer = Some(head.clone()),
            SessionEntry::End(..) => known.has_other_body = true,
            SessionEntry::Request(..) | SessionEntry::Amendment(_) => {}
        }
        while self.foreseen.pop_excess().is_some() {}
    }

    /// Takes note of part of an exchange, and returns the lines it is worth.
    pub(super) fn pass(&mut self, page: &Page, entry: SessionEntry) -> Vec<String> {
        let mut lines = Vec::new();
        match entry {
            SessionEntry::Message(_) | SessionEntry::Amendment(_) => {}
            SessionEntry::Request(mark, head) => {
                self.open.remove(mark.exchange);
                let open = self.open.keep(mark.exchange, &head.headers);
                open.request = Some((mark, head));
            }
            SessionEntry::Answer(mark, head) => {
                let known = self.foreseen.get(mark.exchange);
                let is_silent = known.is_some_and(|known| !known.has_messages);
                let is_told_later = known.is_some_and(|known| known.has_other_body);
                let is_worth_a_line = (is_silent || head.status >= 400) && !is_told_later;
                let open = self.open.keep(mark.exchange, &head.headers);
                open.answer = Some(head);
                if is_worth_a_line {
                    lines = self.view.lines(page, mark, open, None);
                }
            }
            SessionEntry::End(mark, how) => {
                self.foreseen.remove(mark.exchange);
                let mut open = self.open.remove(mark.exchange).unwrap_or(Open { is_shown: true, ..Open::default() });
                if how.is_some() || !open.is_shown {
                    lines = self.view.lines(page, mark, &mut open, how.as_deref());
                }
            }
        }
        while self.open.pop_excess().is_some() {}
        lines
    }

    /// The lines of exchanges that nothing was said of, when the session is over.
    pub(super) fn rest(&mut self, page: &Page) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some((_, mut open)) = self.open.pop_oldest() {
            if let Some((mark, _)) = open.request.as_ref().filter(|_| !open.is_shown) {
                lines.extend(self.view.lines(page, *mark, &mut open, None));
            }
        }
        lines
    }

    /// What the exchange of a request says otherwise than the request itself.
    pub(super) fn disagreement(&self, recorded: &Recorded) -> Option<String> {
        if recorded.direction != Direction::ClientToServer {
            return None;
        }
        let (_, head) = self.open.get(recorded.exchange?)?.request.as_ref()?;
        let (header, body) = mirror::disagreement(head, &Message::new(recorded.raw.clone()))?;
        Some(format!("header says {}, body says {}", quote(header.as_bytes()), quote(body.as_bytes())))
    }

    /// Takes note of a message that was shown, and returns what is to be said beside it with `-v`.
    pub(super) fn beside(&mut self, page: &Page, recorded: &Recorded) -> Vec<String> {
        let Some(exchange) = recorded.exchange else { return Vec::new() };
        let mut unknown = Open::default();
        let open = self.open.get_mut(exchange).unwrap_or(&mut unknown);
        open.is_shown = true;
        if !self.view.verbose {
            return Vec::new();
        }
        if open.answer.is_none() {
            open.answer = self.foreseen.get(exchange).and_then(|known| known.answer.clone());
        }
        let mut line = match &open.request {
            Some(_) => format!("exchange {exchange}: {}", open.name(exchange)),
            None => open.name(exchange),
        };
        line.extend(open.answer.as_ref().map(|answer| format!(" → {}", outcome(answer))));
        if recorded.direction == Direction::ServerToClient {
            line.extend(open.stream(exchange).map(|stream| format!(", {stream}")));
        }
        line.extend(recorded.event_id.as_ref().map(|id| format!(", event id {}", visible(id))));
        let mut lines = vec![page.styled(Style::Faint, &format!("    {line}"))];
        lines.extend(open.unseen_headers(page, recorded.direction));
        lines
    }
}

impl View {
    /// `       GET /mcp 200 text/event-stream`, with its method under that of `#003 → tools/call`.
    fn lines(self, page: &Page, mark: ExchangeMark, open: &mut Open, how: Option<&str>) -> Vec<String> {
        let (number_place, arrow_place) = ("    ", " ");
        let answer = open.answer.as_ref().map_or("unanswered".to_owned(), outcome);
        let is_bad = open.answer.as_ref().is_some_and(|head| head.status >= 400);
        let mut line = vec![number_place.to_owned()];
        line.extend(self.show_conversation.then(|| format!("c{}", mark.conversation)));
        line.push(arrow_place.to_owned());
        line.push(page.styled(Style::Faint, &open.name(mark.exchange)));
        line.push(page.styled(if is_bad { Style::Bad } else { Style::Faint }, &answer));
        line.extend(how.map(|how| page.styled(Style::Bad, &format!("! {}", visible(how)))));
        let mut lines = vec![line.join(" ")];
        if self.verbose {
            let time = mcp_store::recorded::timestamp(mark.time_ns);
            lines.push(page.styled(Style::Faint, &format!("    {time:.3} exchange {}", mark.exchange)));
            lines.extend(open.unseen_headers(page, Direction::ServerToClient));
        }
        open.is_shown = true;
        lines
    }
}

impl Open {
    fn name(&self, exchange: u64) -> String {
        match &self.request {
            Some((_, head)) => format!("{} {}", short(head.method.as_bytes()), short(head.target.as_bytes())),
            None => format!("exchange {exchange}"),
        }
    }

    /// The stream that its messages come on, if they do.
    fn stream(&self, exchange: u64) -> Option<String> {
        self.answer.as_ref()?.content_type().filter(|media| media.eq_ignore_ascii_case(EVENT_STREAM))?;
        Some(match self.request.as_ref()?.1.method.as_str() {
            "GET" => "GET stream".to_owned(),
            method => format!("response stream of {} {exchange}", short(method.as_bytes())),
        })
    }

    /// Headers that have not been shown: beside a message to the server those of the request, else all.
    fn unseen_headers(&mut self, page: &Page, direction: Direction) -> Vec<String> {
        let mut lines = Vec::new();
        let mut show = |mark: char, headers: &Headers| {
            lines.extend(headers.0.iter().map(|(name, value)| {
                page.styled(Style::Faint, &format!("    {mark} {}: {}", visible(name), visible(value)))
            }));
        };
        if let Some((_, head)) = &self.request
            && !std::mem::replace(&mut self.request_headers_shown, true)
        {
            show('>', &head.headers);
        }
        if let Some(head) = &self.answer
            && direction == Direction::ServerToClient
            && !std::mem::replace(&mut self.answer_headers_shown, true)
        {
            show('<', &head.headers);
        }
        lines
    }
}

/// `200 application/json`
fn outcome(head: &AnswerHead) -> String {
    let status = if head.status == 0 { "?".to_owned() } else { head.status.to_string() };
    match head.content_type() {
        Some(media) => format!("{status} {}", short(media.as_bytes())),
        None => status,
    }
}
