//! YAML, one document. Words without quotes mean what the core schema of YAML 1.2 says: `no` and `off`
//! are text. Anchors, aliases and tags are not read, so a short file cannot become a long one.

use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span, Tag};

use super::mistake::Mistake;
use super::tree::{Located, Member, Value};

/// `None` if there is nothing but comments.
pub(super) fn parse(text: &str) -> Result<Option<Located>, Mistake> {
    let mut builder = Builder::default();
    for next in Parser::new_from_str(text) {
        let (event, span) = next.map_err(|error| {
            let at = error.marker().byte_offset().unwrap_or(text.len()).min(text.len());
            Mistake::at(at..at, format!("this is not YAML: {}", error.info()))
        })?;
        builder.take(event, place(&span, text))?;
    }
    Ok(builder.root)
}

fn place(span: &Span, text: &str) -> Range<usize> {
    let range = span.byte_range().unwrap_or(0..0);
    let end = range.end.min(text.len());
    // A block ends where the next thing begins.
    let start = range.start.min(end);
    start..start + text[start..end].trim_end().len()
}

#[derive(Default)]
struct Builder {
    root: Option<Located>,
    documents: usize,
    /// What is still open, outermost first.
    open: Vec<Open>,
}

enum Open {
    List { items: Vec<Located>, start: usize },
    Table { members: Vec<Member>, key: Option<(String, Range<usize>)>, start: usize },
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Range<usize>) -> Result<(), Mistake> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(Mistake::at(span, "there is a second document, and only one is read"));
                }
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                return Err(Mistake::at(span, "aliases are not read here").help("write it out"));
            }
            Event::Scalar(text, style, _, tag) => {
                refuse(tag.as_deref(), &span)?;
                let value = if style == ScalarStyle::Plain { plain(&text) } else { Value::Text(text.into_owned()) };
                return self.put(Located { value, span });
            }
            Event::SequenceStart(_, _, tag) => {
                refuse(tag.as_deref(), &span)?;
                self.open.push(Open::List { items: Vec::new(), start: span.start });
            }
            Event::MappingStart(_, _, tag) => {
                refuse(tag.as_deref(), &span)?;
                self.open.push(Open::Table { members: Vec::new(), key: None, start: span.start });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let closed = match self.open.pop() {
                    Some(Open::List { items, start }) => (Value::List(items), start),
                    Some(Open::Table { members, start, .. }) => (Value::Table(members), start),
                    None => return Ok(()),
                };
                let (value, start) = closed;
                return self.put(Located { value, span: start..span.end.max(start) });
            }
            _ => {}
        }
        Ok(())
    }

    /// A value is complete, and belongs to what is open around it.
    fn put(&mut self, value: Located) -> Result<(), Mistake> {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List { items, .. }) => items.push(value),
            Some(Open::Table { members, key, .. }) => match key.take() {
                Some((key, key_span)) => members.push(Member { key, key_span, value }),
                None => *key = Some(name(value)?),
            },
        }
        Ok(())
    }
}

/// A key is a word, whatever a value that looks so would be.
fn name(value: Located) -> Result<(String, Range<usize>), Mistake> {
    let key = match value.value {
        Value::Text(text) | Value::Number(text) => text,
        Value::Flag(flag) => flag.to_string(),
        other => return Err(Mistake::at(value.span, format!("a key is text, and this is {}", other.kind()))),
    };
    Ok((key, value.span))
}

fn refuse(tag: Option<&Tag>, span: &Range<usize>) -> Result<(), Mistake> {
    match tag {
        Some(_) => Err(Mistake::at(span.clone(), "tags are not read here").help("leave out what begins with `!`")),
        None => Ok(()),
    }
}

fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Nothing,
        "true" | "True" | "TRUE" => Value::Flag(true),
        "false" | "False" | "FALSE" => Value::Flag(false),
        _ if is_number(text) => Value::Number(text.to_owned()),
        _ => Value::Text(text.to_owned()),
    }
}

/// Words such as `inf` and `nan` are text: nobody means them here.
fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && text.contains(|c: char| c.is_ascii_digit())
        && text.parse::<f64>().is_ok()
}
