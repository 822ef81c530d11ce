//! What HTTP says beside the messages: the heads of requests and answers, and how exchanges end. A
//! head is read leniently: what stands in it came from a peer, and a reader shows it, no more.

use std::collections::BTreeMap;

use crate::recorded::{Direction, Recorded};
use crate::segment::{Mark, Outcome, Verdict};

/// Unfinished exchanges that a reader remembers, and the bytes of their heads; the oldest goes first. A person
/// follows fewer at once, and a message may weigh more.
pub const OPEN_EXCHANGES_MAX: usize = 4096;
const OPEN_HEAD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How an exchange ended whose body was no message: this, and how it begins.
pub const NO_MESSAGE: &str = "a body that is no message";

/// One thing in a session, in the order in which it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are messages")]
pub enum SessionEntry {
    Message(Recorded),
    Request(ExchangeMark, RequestHead),
    Answer(ExchangeMark, AnswerHead),
    /// An exchange is over; with how, if not as it should be.
    End(ExchangeMark, Option<String>),
    /// Something about a message that was told before this was known; only while a session is followed.
    Amendment(Amendment),
}

/// What became of an earlier message, what was decided about it, or what somebody wrote beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amendment {
    /// The message.
    pub sequence: u64,
    pub conversation: u32,
    pub direction: Direction,
    /// When this happened.
    pub time_ns: u64,
    pub said: Said,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Outcome(Outcome),
    Mark(Mark),
    Verdict(Verdict),
}

impl SessionEntry {
    pub fn conversation(&self) -> u32 {
        match self {
            Self::Message(message) => message.conversation,
            Self::Request(mark, _) | Self::Answer(mark, _) | Self::End(mark, _) => mark.conversation,
            Self::Amendment(amendment) => amendment.conversation,
        }
    }
}

/// Which exchange something belongs to, and when it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeMark {
    /// From 1 in a run of the proxy, which may be several sessions.
    pub exchange: u64,
    pub conversation: u32,
    pub time_ns: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHead {
    pub method: String,
    pub target: String,
    pub headers: Headers,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerHead {
    /// 0 if it could not be read.
    pub status: u16,
    pub headers: Headers,
}

/// Names and values in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<(String, String)>);

impl RequestHead {
    pub fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (start, headers) = text.split_once('\n').unwrap_or((&text, ""));
        let (method, rest) = start.trim().split_once(' ').unwrap_or((start.trim(), ""));
        let target = rest.rsplit_once(" HTTP/").map_or(rest, |(target, _)| target);
        Self { method: method.to_owned(), target: target.to_owned(), headers: Headers::parse(headers) }
    }
}

impl AnswerHead {
    pub fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (start, headers) = text.split_once('\n').unwrap_or((&text, ""));
        let status = start.split_ascii_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, headers: Headers::parse(headers) }
    }

    /// The media type of its body, without parameters.
    pub fn content_type(&self) -> Option<&str> {
        let value = self.headers.get("content-type")?;
        Some(value.split(';').next().unwrap_or_default().trim_end()).filter(|media| !media.is_empty())
    }
}

impl Headers {
    fn parse(lines: &str) -> Self {
        let lines = lines.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        let headers = lines.filter(|line| !line.is_empty()).map(|line| {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            (name.to_owned(), value.trim().to_owned())
        });
        Self(headers.collect())
    }

    /// The first value of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    fn weight(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len() + size_of::<(String, String)>()).sum()
    }
}

/// What is known of one exchange. Any part may be missing: it is yet to come, could not be written,
/// or stands in the session before or after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    pub conversation: u32,
    pub request: Option<(u64, RequestHead)>,
    pub answer: Option<(u64, AnswerHead)>,
    pub end: Option<(u64, Option<String>)>,
}

/// Exchanges that have begun and not ended, with what a reader wants to remember of each.
#[derive(Debug)]
pub struct OpenExchanges<T> {
    open: BTreeMap<u64, (T, usize)>,
    head_bytes: usize,
}

impl<T> Default for OpenExchanges<T> {
    fn default() -> Self {
        Self { open: BTreeMap::new(), head_bytes: 0 }
    }
}

impl<T: Default> OpenExchanges<T> {
    pub fn get(&self, exchange: u64) -> Option<&T> {
        self.open.get(&exchange).map(|(value, _)| value)
    }

    pub fn get_mut(&mut self, exchange: u64) -> Option<&mut T> {
        self.open.get_mut(&exchange).map(|(value, _)| value)
    }

    /// The exchange, new if need be; `headers` of it will be kept.
    pub fn keep(&mut self, exchange: u64, headers: &Headers) -> &mut T {
        let (value, head_bytes) = self.open.entry(exchange).or_default();
        *head_bytes += headers.weight();
        self.head_bytes += headers.weight();
        value
    }

    pub fn remove(&mut self, exchange: u64) -> Option<T> {
        let (value, head_bytes) = self.open.remove(&exchange)?;
        self.head_bytes -= head_bytes;
        Some(value)
    }

    pub fn remove_if(&mut self, exchange: u64, condition: impl FnOnce(&T) -> bool) -> Option<T> {
        self.get(exchange).is_some_and(condition).then(|| self.remove(exchange))?
    }

    /// The oldest, if there are too many. To be asked after every `keep`, until there is none.
    pub fn pop_excess(&mut self) -> Option<(u64, T)> {
        if self.open.len() <= OPEN_EXCHANGES_MAX && self.head_bytes <= OPEN_HEAD_BYTES_MAX {
            return None;
        }
        self.pop_oldest()
    }

    pub fn pop_oldest(&mut self) -> Option<(u64, T)> {
        let (exchange, (value, head_bytes)) = self.open.pop_first()?;
        self.head_bytes -= head_bytes;
        Some((exchange, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn headers(pairs: &[(&str, &str)]) -> Headers {
        Headers(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn heads_are_taken_apart() {
        let head = RequestHead::parse(b"POST /mcp?a=b HTTP/1.1\r\nHost: x:1\r\nempty:\r\nx-odd:  \xff, \x80 \r\n");
        assert_eq!((head.method.as_str(), head.target.as_str()), ("POST", "/mcp?a=b"));
        assert_eq!(head.headers, headers(&[("Host", "x:1"), ("empty", ""), ("x-odd", "\u{fffd}, \u{fffd}")]));
        assert_eq!(head.headers.get("hOST"), Some("x:1"));
        let head = AnswerHead::parse(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream ; charset=utf-8\r\n");
        assert_eq!((head.status, head.content_type()), (200, Some("text/event-stream")));
    }

    #[test]
    fn garbled_heads_give_what_they_have() {
        let head = RequestHead::parse(b"nonsense\r\nno colon\n: no name\n\r\n\r\nend: here");
        assert_eq!((head.method.as_str(), head.target.as_str()), ("nonsense", ""));
        assert_eq!(head.headers, headers(&[("no colon", ""), ("", "no name"), ("end", "here")]));
        for text in ["", "HTTP/1.1", "HTTP/1.1 99999 much\r\n", "200", "HTTP/1.1 -1\r\n"] {
            assert_eq!(AnswerHead::parse(text.as_bytes()), AnswerHead::default(), "{text}");
        }
    }

    #[test]
    fn what_a_reader_keeps_in_mind_is_bounded() {
        let mut open = OpenExchanges::<u8>::default();
        for exchange in 0..2 * OPEN_EXCHANGES_MAX as u64 {
            open.keep(exchange, &Headers::default());
            let excess = open.pop_excess().map(|(excess, _)| excess);
            assert_eq!(excess, exchange.checked_sub(OPEN_EXCHANGES_MAX as u64));
        }
        while open.pop_oldest().is_some() {}
        let large = headers(&[("large", &"x".repeat(OPEN_HEAD_BYTES_MAX / 2))]);
        open.keep(1, &large);
        assert!(open.pop_excess().is_none());
        open.keep(2, &large);
        assert_eq!((open.pop_excess(), open.pop_excess()), (Some((1, 0)), None));
        assert_eq!((open.remove(2), open.head_bytes), (Some(0), 0));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_head(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (RequestHead::parse(&bytes), AnswerHead::parse(&bytes).content_type());
        }
    }
}
