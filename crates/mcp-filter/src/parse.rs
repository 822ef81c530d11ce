//! From text to a tree. What a word may be depends on what stands around it:
//!
//! - a word directly before an operator is a field, and must be one; so is the name of a field with
//!   blanks before an operator;
//! - `>` and `<` where an operator cannot stand are directions;
//! - everything else that is not a keyword is searched for.

use std::ops::Range;

use mcp_wire::Direction;
use winnow::combinator::{eof, opt, peek};
use winnow::error::{ErrMode, ParserError};
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Location, Stateful, Stream};
use winnow::token::{any, literal, rest, take_while};

use crate::error::Fault;
use crate::fields::{FIELDS, Field};
use crate::path::{Path, STEPS_MAX, Step, is_plain_char};
use crate::syntax::{Expr, Op, Place, Regex, Value, Word};
use crate::{EXPRESSION_BYTES_MAX, NESTING_MAX};

type Input<'a> = Stateful<LocatingSlice<&'a str>, Depth>;
type Parsed<T> = Result<T, ErrMode<Fault>>;

/// How many parentheses and negations are open.
#[derive(Clone, Copy, Debug, Default)]
struct Depth(usize);

impl ParserError<Input<'_>> for Fault {
    type Inner = Self;

    fn from_input(input: &Input<'_>) -> Self {
        let at = input.current_token_start();
        Self::at(at..at, "this cannot be read")
    }

    fn into_inner(self) -> Result<Self, Self> {
        Ok(self)
    }
}

pub(crate) fn expression(text: &str) -> Result<Expr, Fault> {
    if text.len() > EXPRESSION_BYTES_MAX {
        let at = text.floor_char_boundary(EXPRESSION_BYTES_MAX);
        return Err(Fault::at(at..text.len(), format!("a filter may have {EXPRESSION_BYTES_MAX} bytes at most")));
    }
    let mut input = Stateful { input: LocatingSlice::new(text), state: Depth::default() };
    whole(&mut input).map_err(|error| match error {
        ErrMode::Backtrack(fault) | ErrMode::Cut(fault) => fault,
        ErrMode::Incomplete(_) => Fault::at(text.len()..text.len(), "something is missing here"),
    })
}

fn whole(input: &mut Input<'_>) -> Parsed<Expr> {
    blanks(input);
    if is_at_end(input) {
        return Ok(Expr::Everything);
    }
    let expr = either(input)?;
    if is_at_end(input) { Ok(expr) } else { fail(span_of_next(input), "this `)` closes nothing") }
}

/// `a or b`
fn either(input: &mut Input<'_>) -> Parsed<Expr> {
    let mut parts = vec![all(input)?];
    while keyword(input, &["or", "OR", "||"]) {
        parts.push(all(input)?);
    }
    Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::Or(parts) })
}

/// `a and b`, or just `a b`
fn all(input: &mut Input<'_>) -> Parsed<Expr> {
    let mut parts = vec![negation(input)?];
    loop {
        let is_named = keyword(input, &["and", "AND", "&&"]);
        if !is_named && (is_at_end(input) || peeked(input, ")") || is_next(input, &["or", "OR", "||"])) {
            break;
        }
        parts.push(negation(input)?);
    }
    Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::And(parts) })
}

fn negation(input: &mut Input<'_>) -> Parsed<Expr> {
    let is_mark = peeked(input, "!") && !peeked(input, "!=");
    if is_mark {
        any.void().parse_next(input)?;
        blanks(input);
    }
    if is_mark || keyword(input, &["not", "NOT"]) {
        return deeper(input, |input| Ok(Expr::Not(Box::new(negation(input)?))));
    }
    atom(input)
}

fn deeper<T>(input: &mut Input<'_>, parser: impl FnOnce(&mut Input<'_>) -> Parsed<T>) -> Parsed<T> {
    if input.state.0 >= NESTING_MAX {
        return fail(span_of_next(input), format!("more than {NESTING_MAX} levels inside each other"));
    }
    input.state.0 += 1;
    let parsed = parser(input)?;
    input.state.0 -= 1;
    Ok(parsed)
}

fn atom(input: &mut Input<'_>) -> Parsed<Expr> {
    let start = input.current_token_start();
    let parsed = match peek(opt(any)).parse_next(input)? {
        None => return fail(start..start, "something to look for is missing here"),
        Some('(') => group(input)?,
        Some(')') => return fail(start..start + 1, "something to look for is missing before this"),
        Some('"' | '\'') => Expr::Search(quoted_value(input)?),
        Some('/') => Expr::Regex(regex_literal(input)?),
        Some('$') => path_test(input)?,
        Some(c @ ('>' | '<' | '→' | '←')) => {
            any.void().parse_next(input)?;
            Expr::Direction(if matches!(c, '>' | '→') {
                Direction::ClientToServer
            } else {
                Direction::ServerToClient
            })
        }
        Some(',') => return fail(start..start + 1, "a field and an operator must stand before a list"),
        Some(_) => word(input)?,
    };
    blanks(input);
    Ok(parsed)
}

fn group(input: &mut Input<'_>) -> Parsed<Expr> {
    let open = input.current_token_start();
    any.void().parse_next(input)?;
    blanks(input);
    let inner = deeper(input, either)?;
    if opt(')').parse_next(input)?.is_none() {
        return fail(open..open + 1, "this `(` is not closed");
    }
    Ok(inner)
}

/// A word, and what it means by what comes after it.
fn word(input: &mut Input<'_>) -> Parsed<Expr> {
    if let Some(op) = peeked_op(input) {
        let at = input.current_token_start();
        let what = format!("a field must stand before `{}`", op.as_str());
        return Err(cut(Fault::at(at..at + op.as_str().len(), what).help(some_fields())));
    }
    let word = bare_word(input)?;
    for keyword in ["and", "or"] {
        if word.text.eq_ignore_ascii_case(keyword) {
            let what = format!("something to look for is missing before `{}`", word.text);
            let help = format!("to look for the word, write \"{}\"", word.text);
            return Err(cut(Fault::at(word.place.0, what).help(help)));
        }
    }
    let (name, part) = match word.text.split_once('.') {
        Some(("header", part)) => ("header", Some(part)),
        _ => (word.text.as_str(), None),
    };
    let is_field = Field::named(name).is_some();
    let after_word = input.checkpoint();
    if is_field {
        blanks(input);
    }
    let Some(op) = peeked_op(input) else {
        input.reset(&after_word);
        return Ok(match part {
            Some(part) => Expr::HasHeader(header_name(part, &word.place)?),
            None => Expr::Search(Value { text: word.text, quoted: false, place: word.place }),
        });
    };
    if !is_field {
        let names = FIELDS.iter().map(|field| field.name);
        let fault = Fault::at(word.place.0, format!("unknown filter field `{}`", word.text)).meant(&word.text, names);
        return Err(cut(fault.or_help(|| "to look for it as text, put it in quotes".to_owned())));
    }
    let part = part.map(|part| header_name(part, &word.place)).transpose()?;
    let field = Word { text: name.to_owned(), place: Place(word.place.0.start..word.place.0.start + name.len()) };
    let (op, values) = compared(input, op)?;
    Ok(Expr::Test { field, part, op, values })
}

fn header_name(part: &str, place: &Place) -> Parsed<Word> {
    if part.is_empty() {
        return fail(place.0.clone(), "the name of a header is missing after `header.`");
    }
    Ok(Word { text: part.to_owned(), place: Place(place.0.end - part.len()..place.0.end) })
}

fn bare_word(input: &mut Input<'_>) -> Parsed<Word> {
    let start = input.current_token_start();
    let mut text = String::new();
    while let Some(c) = peek(opt(any)).parse_next(input)? {
        if c.is_whitespace() || matches!(c, '(' | ')' | '"' | ',') || peeked_op(input).is_some() {
            break;
        }
        any.void().parse_next(input)?;
        text.push(c);
    }
    let place = Place(start..input.current_token_start());
    match peek(opt(any)).parse_next(input)? {
        Some(c @ ('(' | '"' | ',')) => {
            let at = input.current_token_start();
            let what = format!("`{c}` cannot stand in a word");
            Err(cut(Fault::at(at..at + 1, what).help("put the whole text in quotes, or a blank before it")))
        }
        _ => Ok(Word { text, place }),
    }
}

/// An operator and its values.
fn compared(input: &mut Input<'_>, op: Op) -> Parsed<(Op, Vec<Value>)> {
    literal(op.as_str()).void().parse_next(input)?;
    let mut values = vec![value(input, op, op.as_str())?];
    while op.takes_list() && opt(',').parse_next(input)?.is_some() {
        values.push(value(input, op, ",")?);
    }
    Ok((op, values))
}

/// The value after `before`, which has just been read.
fn value(input: &mut Input<'_>, op: Op, before: &str) -> Parsed<Value> {
    let missing_at = input.current_token_start() - before.len()..input.current_token_start();
    blanks(input);
    match peek(opt(any)).parse_next(input)? {
        Some('"' | '\'') => quoted_value(input),
        Some('/') if op == Op::Like && is_regex_literal(input) => regex_value(input),
        _ => {
            let value = bare_value(input, op)?;
            if value.text.is_empty() {
                let fault = Fault::at(missing_at, format!("a value must follow `{before}`"));
                return Err(cut(fault.help("an empty one is written \"\"")));
            }
            Ok(value)
        }
    }
}

/// `/pattern/` after `~` is kept as text, with its case in it.
fn regex_value(input: &mut Input<'_>) -> Parsed<Value> {
    let Regex { pattern, ignore_case, place } = regex_literal(input)?;
    let text = if ignore_case { format!("(?i){pattern}") } else { pattern };
    Ok(Value { text, quoted: true, place })
}

/// Up to a blank, a closing parenthesis, or in a list a comma. In a regular expression parentheses
/// may stand as long as they are closed.
fn bare_value(input: &mut Input<'_>, op: Op) -> Parsed<Value> {
    let start = input.current_token_start();
    let mut text = String::new();
    let mut open = 0usize;
    while let Some(c) = peek(opt(any)).parse_next(input)? {
        match c {
            c if c.is_whitespace() => break,
            ',' if op.takes_list() => break,
            ')' if open == 0 => break,
            ')' => open -= 1,
            '(' if op == Op::Like => open += 1,
            '(' | '"' => {
                let at = input.current_token_start();
                let fault = Fault::at(at..at + 1, format!("`{c}` cannot stand in a value"));
                return Err(cut(fault.help("put the whole value in quotes")));
            }
            _ => {}
        }
        any.void().parse_next(input)?;
        text.push(c);
    }
    // A pattern always prints in quotes, where every character stands for itself.
    Ok(Value { text, quoted: op == Op::Like, place: Place(start..input.current_token_start()) })
}

fn quoted_value(input: &mut Input<'_>) -> Parsed<Value> {
    let start = input.current_token_start();
    let quote = any.parse_next(input)?;
    let mut text = String::new();
    loop {
        let at = input.current_token_start();
        match opt(any).parse_next(input)? {
            None => return fail(start..start + 1, "this quote is not closed"),
            Some(c) if c == quote => break,
            Some('\\') => text.push(match opt(any).parse_next(input)? {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(c @ ('\\' | '"' | '\'' | '/')) => c,
                _ => {
                    let fault = Fault::at(at..input.current_token_start(), "no such escape");
                    return Err(cut(fault.help("there are \\\\ \\\" \\' \\n \\r \\t; a backslash is written \\\\")));
                }
            }),
            Some(c) => text.push(c),
        }
    }
    Ok(Value { text, quoted: true, place: Place(start..input.current_token_start()) })
}

/// Whether a slash that opens a pattern is closed by one that ends the word.
fn is_regex_literal(input: &mut Input<'_>) -> bool {
    let before = input.checkpoint();
    let is_literal = regex_literal(input).is_ok();
    input.reset(&before);
    is_literal
}

/// `/pattern/` or `/pattern/i`
fn regex_literal(input: &mut Input<'_>) -> Parsed<Regex> {
    let start = input.current_token_start();
    any.void().parse_next(input)?;
    let mut pattern = String::new();
    loop {
        match opt(any).parse_next(input)? {
            None => {
                let fault = Fault::at(start..start + 1, "this regular expression is not closed by a `/`");
                return Err(cut(fault.help("to look for a path, put it in quotes")));
            }
            Some('/') => break,
            Some('\\') => {
                pattern.push('\\');
                pattern.extend(opt(any).parse_next(input)?);
            }
            Some(c) => pattern.push(c),
        }
    }
    let flags = take_while(0.., |c: char| !c.is_whitespace() && !matches!(c, '(' | ')')).parse_next(input)?;
    let place = Place(start..input.current_token_start());
    match flags {
        "" | "i" => Ok(Regex { pattern, ignore_case: flags == "i", place }),
        _ => {
            let flags = place.0.end - flags.len()..place.0.end;
            let fault = Fault::at(flags, "a regular expression ends with `/` or `/i`");
            Err(cut(fault.help("to look for a path, put it in quotes")))
        }
    }
}

fn path_test(input: &mut Input<'_>) -> Parsed<Expr> {
    let start = input.current_token_start();
    let path = path(input)?;
    let place = Place(start..input.current_token_start());
    let after_path = input.checkpoint();
    blanks(input);
    let test = match peeked_op(input) {
        Some(op) => Some(compared(input, op)?),
        None => {
            input.reset(&after_path);
            None
        }
    };
    Ok(Expr::Path { path, place, test })
}

fn path(input: &mut Input<'_>) -> Parsed<Path> {
    any.void().parse_next(input)?;
    let mut path = Path::default();
    loop {
        let start = input.current_token_start();
        if opt(literal("..")).parse_next(input)?.is_some() {
            path.steps.push(Step::Below);
            if !peeked(input, "[") {
                path.steps.push(name_step(input, start)?);
            }
        } else if opt('.').parse_next(input)?.is_some() {
            path.steps.push(name_step(input, start)?);
        } else if opt('[').parse_next(input)?.is_some() {
            path.steps.push(bracket_step(input, start)?);
        } else {
            break;
        }
        if path.steps.len() > STEPS_MAX {
            return fail(start..input.current_token_start(), format!("a path may have {STEPS_MAX} steps at most"));
        }
    }
    match peek(opt(any)).parse_next(input)? {
        Some(c) if !c.is_whitespace() && c != ')' && peeked_op(input).is_none() => {
            let fault = Fault::at(span_of_next(input), "a path goes on with `.name`, `[0]`, `[*]` or `[\"name\"]`");
            Err(cut(fault))
        }
        _ => Ok(path),
    }
}

fn name_step(input: &mut Input<'_>, start: usize) -> Parsed<Step> {
    if opt('*').parse_next(input)?.is_some() {
        return Ok(Step::Any);
    }
    let name = take_while(0.., is_plain_char).parse_next(input)?;
    if name.is_empty() {
        let fault = Fault::at(start..input.current_token_start(), "a name must follow the dot");
        return Err(cut(fault.help("an unusual name is written [\"name\"]")));
    }
    Ok(Step::Member(name.to_owned()))
}

fn bracket_step(input: &mut Input<'_>, start: usize) -> Parsed<Step> {
    let step = match peek(opt(any)).parse_next(input)? {
        Some('"' | '\'') => Some(Step::Member(quoted_value(input)?.text)),
        Some('*') => any.value(Some(Step::Any)).parse_next(input)?,
        _ => {
            let digits = take_while(0.., |c: char| c.is_ascii_digit()).parse_next(input)?;
            digits.parse().ok().map(Step::Item)
        }
    };
    match (step, opt(']').parse_next(input)?) {
        (Some(step), Some(_)) => Ok(step),
        _ => fail(start..input.current_token_start().max(start + 1), "expected `[0]`, `[*]` or `[\"name\"]`"),
    }
}

fn peeked_op(input: &mut Input<'_>) -> Option<Op> {
    let text = *input.input.as_ref();
    Op::ALL.into_iter().find(|(spelled, _)| text.starts_with(spelled)).map(|(_, op)| op)
}

fn peeked(input: &mut Input<'_>, text: &str) -> bool {
    input.input.as_ref().starts_with(text)
}

/// Whether one of these words comes next, as a whole word.
fn is_next(input: &mut Input<'_>, words: &[&str]) -> bool {
    let text = *input.input.as_ref();
    words.iter().any(|word| {
        let after = text.strip_prefix(word).map(|rest| rest.chars().next());
        after.is_some_and(|after| after.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | ')' | '"' | '!')))
    })
}

fn keyword(input: &mut Input<'_>, words: &[&str]) -> bool {
    if !is_next(input, words) {
        return false;
    }
    let taken = take_while(1.., |c: char| !c.is_whitespace() && !matches!(c, '(' | ')' | '"' | '!'));
    let _: Parsed<&str> = { taken }.parse_next(input);
    blanks(input);
    true
}

fn blanks(input: &mut Input<'_>) {
    let _: Parsed<&str> = take_while(0.., char::is_whitespace).parse_next(input);
}

fn is_at_end(input: &mut Input<'_>) -> bool {
    let at_end: Parsed<&str> = peek(eof).parse_next(input);
    at_end.is_ok()
}

fn span_of_next(input: &mut Input<'_>) -> Range<usize> {
    let start = input.current_token_start();
    let next: Parsed<&str> = peek(rest).parse_next(input);
    let length = next.ok().and_then(|next| next.chars().next()).map_or(0, char::len_utf8);
    start..start + length
}

fn some_fields() -> String {
    "such as dir, kind, method, tool, server, status or dur".to_owned()
}

fn fail<T>(span: Range<usize>, what: impl Into<String>) -> Parsed<T> {
    Err(cut(Fault::at(span, what)))
}

fn cut(fault: Fault) -> ErrMode<Fault> {
    ErrMode::Cut(fault)
}
