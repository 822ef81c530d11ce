//! The little that forwarding needs to know of a message: is it a request, an answer or neither, and
//! under which id. It stops as soon as that is known and checks nothing else, so it costs next to
//! nothing however large the message is. Whoever judges a message asks for its [`Peek`] instead.

use super::specials::next_quote;
use super::{Kind, Peek, Span, scan};

/// What correlation goes by. For a message that is valid and unambiguous it says the same as a
/// [`Peek`]; for any other it is a guess, good enough to pair answers with and nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    pub kind: Kind,
    pub id: Option<Span>,
    pub method: Option<Span>,
}

impl From<&Peek> for Glance {
    fn from(peek: &Peek) -> Self {
        // A method that is no string makes no request.
        let method = peek.method.filter(|_| matches!(peek.kind, Kind::Request | Kind::Notification));
        Self { kind: peek.kind, id: peek.id, method }
    }
}

pub fn glance(bytes: &[u8]) -> Glance {
    let mut skim = Skim { bytes, at: 0 };
    skim.blanks();
    match bytes.get(skim.at) {
        // A key spelled with escapes needs the whole scan; so does whatever cannot be followed.
        Some(b'{') => skim.envelope().unwrap_or_else(|| Glance::from(&scan(bytes))),
        Some(b'[') => Glance { kind: Kind::Batch, id: None, method: None },
        _ => Glance::from(&scan(bytes)),
    }
}

/// Runs over JSON without looking at it more than it must.
struct Skim<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Skim<'a> {
    fn envelope(&mut self) -> Option<Glance> {
        let mut seen = Glance { kind: Kind::OtherJson, id: None, method: None };
        let mut answer = None;
        self.at += 1;
        self.blanks();
        while self.byte()? != b'}' {
            match self.key()? {
                b"id" if seen.id.is_none() => seen.id = Some(self.value_span()?),
                b"method" if seen.method.is_none() && self.byte()? == b'"' => seen.method = Some(self.value_span()?),
                key => {
                    match key {
                        b"result" => answer = answer.or(Some(Kind::Response)),
                        b"error" => answer = answer.or(Some(Kind::Error)),
                        _ => {}
                    }
                    if answer.is_none() || seen.id.is_none() {
                        self.value()?;
                    }
                }
            }
            match (seen.method, answer, seen.id) {
                (Some(_), _, Some(_)) => return Some(Glance { kind: Kind::Request, ..seen }),
                (None, Some(kind), Some(_)) => return Some(Glance { kind, ..seen }),
                _ => {}
            }
            self.blanks();
            if self.byte()? == b',' {
                self.at += 1;
                self.blanks();
            }
        }
        seen.kind = match (seen.method, answer) {
            (Some(_), _) => Kind::Notification,
            (None, Some(Kind::Error)) => Kind::Error,
            _ => Kind::OtherJson,
        };
        Some(seen)
    }

    fn byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    /// The next key, if it is spelled plainly; the cursor ends on its value.
    fn key(&mut self) -> Option<&'a [u8]> {
        if self.byte()? != b'"' {
            return None;
        }
        let start = self.at + 1;
        let end = next_quote(self.bytes, start)?;
        self.at = end;
        if self.byte()? == b'\\' {
            return None;
        }
        self.at += 1;
        self.blanks();
        if self.byte()? != b':' {
            return None;
        }
        self.at += 1;
        self.blanks();
        Some(&self.bytes[start..end])
    }

    fn value_span(&mut self) -> Option<Span> {
        let start = self.at;
        self.value()?;
        (self.at > start).then(|| Span::new(start..self.at))
    }

    fn value(&mut self) -> Option<()> {
        match self.byte()? {
            b'"' => self.string(),
            b'{' | b'[' => self.container(),
            _ => {
                while !matches!(self.byte()?, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n') {
                    self.at += 1;
                }
                Some(())
            }
        }
    }

    fn container(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.byte()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            self.at = next_quote(self.bytes, self.at)?;
            if self.byte()? == b'"' {
                self.at += 1;
                return Some(());
            }
            self.at += 2;
        }
    }
}
