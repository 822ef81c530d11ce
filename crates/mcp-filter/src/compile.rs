//! From a tree to tests: every field, operator and value is checked, every pattern compiled, so that
//! judging a message cannot fail.

use mcp_wire::Era;
use regex::bytes::{Regex, RegexBuilder};

use crate::error::Fault;
use crate::fields::{self, Asks, Choice, Field, Values};
use crate::glob::Glob;
use crate::numbers::{Measure, Range};
use crate::path::Path;
use crate::spelling::folded;
use crate::syntax::{self, Expr, Op, Value, Word};
use crate::{Needs, REGEX_BYTES_MAX, REGEXES_MAX};

/// Groups and repetitions inside each other in one regular expression: the compiler follows them on the stack.
const REGEX_NESTING_MAX: u32 = 64;

#[derive(Clone, Debug)]
pub(crate) enum Node {
    Everything,
    Any(Vec<Node>),
    All(Vec<Node>),
    Not(Box<Node>),
    Test(Test),
}

#[derive(Clone, Debug)]
pub(crate) enum Test {
    Text(Asks, TextTest),
    /// Text that is a name, which may be spelled otherwise.
    Name(Asks, Spelt<TextTest>),
    /// One of these words.
    Words(Asks, Vec<&'static str>),
    Number(Asks, Vec<Range>),
    Flag(Asks, bool),
    /// There is a value at all.
    Present(Asks),
    /// The tool is said to be one of these.
    Hint(Vec<&'static str>),
    Era(Era),
    /// In method, tool or body.
    Search(Spelt<Regex>),
    Body(Regex),
    /// A header whose name fits.
    HeaderNamed(Glob),
    Header(String, TextTest),
    Path(Path, PathTest),
    /// What the path leads to is a name.
    NamePath(Path, Spelt<PathTest>),
}

/// A test of a name, for each reading of it.
#[derive(Clone, Debug)]
pub(crate) struct Spelt<T> {
    pub written: T,
    pub folded: T,
}

#[derive(Clone, Debug)]
pub(crate) enum TextTest {
    Any,
    Globs(Vec<Glob>),
    Begins(String),
    Like(Regex),
}

#[derive(Clone, Debug)]
pub(crate) enum PathTest {
    Present,
    /// One of these; text in quotes is only ever text.
    Equal(Vec<Scalar>),
    /// Text, or a number as it is spelled.
    Globs(Vec<Glob>),
    Begins(String),
    Like(Regex),
    Number(Op, f64),
}

#[derive(Clone, Debug)]
pub(crate) struct Scalar {
    pub text: String,
    pub is_text: bool,
    /// What it is as a number, if it is one.
    pub number: Option<f64>,
}

type Checked<T> = Result<T, Fault>;

pub(crate) struct Compiled {
    pub test: Node,
    pub needs: Needs,
    /// It asks for names, so that their spelling matters.
    pub has_names: bool,
    /// It asks for the origin.
    pub has_origin: bool,
}

pub(crate) fn compile(expr: &Expr) -> Checked<Compiled> {
    let mut compiler = Compiler::default();
    let test = compiler.node(expr)?;
    let Compiler { needs, has_names, has_origin, .. } = compiler;
    Ok(Compiled { test, needs, has_names, has_origin })
}

#[derive(Default)]
struct Compiler {
    needs: Needs,
    has_names: bool,
    has_origin: bool,
    regexes: usize,
}

impl Compiler {
    fn node(&mut self, expr: &Expr) -> Checked<Node> {
        Ok(match expr {
            Expr::Everything => Node::Everything,
            Expr::Or(parts) => Node::Any(self.nodes(parts)?),
            Expr::And(parts) => Node::All(self.nodes(parts)?),
            Expr::Not(inner) => Node::Not(Box::new(self.node(inner)?)),
            Expr::Direction(direction) => Node::Test(Test::Words(Asks::Direction, vec![direction.as_str()])),
            Expr::Search(value) => {
                self.note(Asks::Method);
                self.needs.body = true;
                let written = self.search(value)?;
                let folded = match folded_value(value) {
                    folded if folded.text == value.text => written.clone(),
                    folded => regex(&search_pattern(&folded), true, &value.place)?,
                };
                Node::Test(Test::Search(Spelt { written, folded }))
            }
            Expr::Regex(syntax::Regex { pattern, ignore_case, place }) => {
                self.note(Asks::Method);
                self.needs.body = true;
                let written = self.regex(pattern, *ignore_case, place)?;
                Node::Test(Test::Search(Spelt { written, folded: regex(pattern, true, place)? }))
            }
            Expr::Test { field, part, op, values } => self.test(field, part.as_ref(), *op, values)?,
            Expr::HasHeader(name) => {
                self.needs.headers = true;
                Node::Test(Test::Header(name.text.clone(), TextTest::Any))
            }
            Expr::Path { path, test, .. } => {
                self.needs.body = true;
                self.path(path, test.as_ref())?
            }
        })
    }

    /// Parts in the order of what they cost, so that a message is only looked into if it must be.
    fn nodes(&mut self, parts: &[Expr]) -> Checked<Vec<Node>> {
        let mut nodes = parts.iter().map(|part| self.node(part)).collect::<Checked<Vec<_>>>()?;
        nodes.sort_by_key(Node::cost);
        Ok(nodes)
    }

    fn test(&mut self, name: &Word, part: Option<&Word>, op: Op, values: &[Value]) -> Checked<Node> {
        let field = Field::named(&name.text).ok_or_else(|| Fault::at(name.place.0.clone(), "unknown filter field"))?;
        if !field.ops().contains(&op) {
            let ops = field.ops().iter().map(|op| op.as_str()).collect::<Vec<_>>().join(" ");
            let what = format!("`{}` cannot be compared with `{}`", field.name, op.as_str());
            return Err(Fault::at(name.place.0.clone(), what).help(format!("it takes {ops}")));
        }
        self.note(field.asks);
        let asks = field.asks;
        let test = match (field.values, part) {
            (_, Some(header)) => Test::Header(header.text.clone(), self.text_test(op, values)?),
            (Values::Header, None) => header_named(op, values)?,
            (Values::Words(_), _) if asks == Asks::Hint => Test::Hint(hints(field, op, values)?),
            (Values::Words(_) | Values::Ranks(_) | Values::Flag, _) if is_anything(op, values) => Test::Present(asks),
            (Values::Ranks(choices), _) if !op.takes_list() => Test::Words(asks, ranks(choices, field, op, values)?),
            (Values::Words(choices) | Values::Ranks(choices), _) => Test::Words(asks, words(choices, field, values)?),
            (Values::Flag, _) => Test::Flag(asks, flag(field, values)?),
            (Values::Number(_), _) if is_anything(op, values) => Test::Present(asks),
            (Values::Number(measure), _) => Test::Number(asks, numbers(measure, op, values)?),
            (Values::Text, _) if matches!(asks, Asks::Method | Asks::Tool) => {
                let written = self.text_test(op, values)?;
                Test::Name(asks, Spelt { written, folded: folded_text(op, values)? })
            }
            (Values::Text, _) => Test::Text(asks, self.text_test(op, values)?),
            (Values::WordsOrText(_), _) => return self.era(op, values),
            (Values::Search, _) if op == Op::Like => Test::Body(self.pattern(values)?),
            (Values::Search, _) => return self.any_search(values),
        };
        Ok(negated_if(op == Op::NotEqual, Node::Test(test)))
    }

    fn any_search(&mut self, values: &[Value]) -> Checked<Node> {
        let searches = values.iter().map(|value| Ok(Node::Test(Test::Body(self.search(value)?))));
        Ok(Node::Any(searches.collect::<Checked<_>>()?))
    }

    /// `legacy` and `modern` among dates.
    fn era(&mut self, op: Op, values: &[Value]) -> Checked<Node> {
        let mut tests = Vec::new();
        let mut dates = Vec::new();
        for value in values {
            match value.text.as_str() {
                fields::LEGACY if op.takes_list() => tests.push(Node::Test(Test::Era(Era::Legacy))),
                fields::MODERN if op.takes_list() => tests.push(Node::Test(Test::Era(Era::Modern))),
                text if op.takes_list() && !text.starts_with(|c: char| c.is_ascii_digit() || c == '*') => {
                    let fault = Fault::at(value.place.0.clone(), format!("no such era: `{text}`"));
                    let eras = [fields::LEGACY, fields::MODERN];
                    return Err(fault.meant(text, eras).or_help(|| "it is legacy, modern, or a date".to_owned()));
                }
                _ => dates.push(value.clone()),
            }
        }
        if !dates.is_empty() {
            tests.push(Node::Test(Test::Text(Asks::Revision, self.text_test(op, &dates)?)));
        }
        Ok(negated_if(op == Op::NotEqual, Node::Any(tests)))
    }

    fn text_test(&mut self, op: Op, values: &[Value]) -> Checked<TextTest> {
        Ok(match op {
            Op::Begins => TextTest::Begins(only(values)?.text.clone()),
            Op::Like => TextTest::Like(self.pattern(values)?),
            _ if is_anything(op, values) => TextTest::Any,
            _ => TextTest::Globs(globs(op, values)),
        })
    }

    fn path(&mut self, path: &Path, test: Option<&(Op, Vec<Value>)>) -> Checked<Node> {
        let Some((op, values)) = test else { return Ok(Node::Test(Test::Path(path.clone(), PathTest::Present))) };
        let test = match op {
            Op::Has => PathTest::Globs(globs(*op, values)),
            Op::Equal | Op::NotEqual => PathTest::Equal(values.iter().map(scalar).collect()),
            Op::Begins => PathTest::Begins(only(values)?.text.clone()),
            Op::Like => PathTest::Like(self.pattern(values)?),
            Op::Less | Op::LessOrEqual | Op::Greater | Op::GreaterOrEqual => {
                let value = only(values)?;
                let number = number(&value.text)
                    .ok_or_else(|| Fault::at(value.place.0.clone(), format!("`{}` needs a number", op.as_str())))?;
                PathTest::Number(*op, number)
            }
        };
        let test = match path.leads_to_name() {
            true => {
                self.has_names = true;
                let folded = folded_path_test(&test, *op, values)?;
                Test::NamePath(path.clone(), Spelt { written: test, folded })
            }
            false => Test::Path(path.clone(), test),
        };
        Ok(negated_if(*op == Op::NotEqual, Node::Test(test)))
    }

    /// A word or text as it is searched for.
    fn search(&mut self, value: &Value) -> Checked<Regex> {
        self.regex(&search_pattern(value), true, &value.place)
    }

    fn pattern(&mut self, values: &[Value]) -> Checked<Regex> {
        let value = only(values)?;
        self.regex(&value.text, false, &value.place)
    }

    fn regex(&mut self, pattern: &str, ignore_case: bool, place: &syntax::Place) -> Checked<Regex> {
        self.regexes += 1;
        if self.regexes > REGEXES_MAX {
            let what = format!("a filter may have {REGEXES_MAX} regular expressions and searched words at most");
            return Err(Fault::at(place.0.clone(), what));
        }
        regex(pattern, ignore_case, place)
    }

    /// Takes note of what a field needs.
    fn note(&mut self, asks: Asks) {
        self.has_names |= matches!(asks, Asks::Method | Asks::Tool);
        self.has_origin |= asks == Asks::Origin;
        let needs = &mut self.needs;
        match asks {
            Asks::Direction | Asks::Size | Asks::Sequence | Asks::Noise | Asks::Edited | Asks::Held | Asks::Mark => {}
            Asks::Replay | Asks::Rule | Asks::Verdict | Asks::Server => {}
            Asks::Kind | Asks::Id => needs.scan = true,
            Asks::Method | Asks::Tool | Asks::Operation | Asks::Hint | Asks::Status | Asks::Code => {
                needs.scan = true;
                needs.story = true;
            }
            Asks::Duration | Asks::Client | Asks::Revision | Asks::Origin => needs.story = true,
            Asks::Text => needs.body = true,
            Asks::Header => needs.headers = true,
        }
    }
}

impl Node {
    /// Roughly what judging costs.
    fn cost(&self) -> u8 {
        match self {
            Self::Everything => 0,
            Self::Any(parts) | Self::All(parts) => parts.iter().map(Self::cost).max().unwrap_or(0),
            Self::Not(inner) => inner.cost(),
            Self::Test(test) => match test {
                Test::Number(..) | Test::Flag(..) | Test::Present(_) => 0,
                Test::Words(..) | Test::Hint(_) | Test::Era(_) => 1,
                Test::Text(_, TextTest::Like(_)) => 3,
                Test::Name(_, Spelt { written: TextTest::Like(_), .. }) => 3,
                Test::Text(..) | Test::Name(..) => 2,
                Test::HeaderNamed(_) | Test::Header(..) => 3,
                Test::Path(..) | Test::NamePath(..) => 4,
                Test::Search(_) | Test::Body(_) => 5,
            },
        }
    }
}

/// Whatever its case, and `*` for any text if not quoted.
fn search_pattern(value: &Value) -> String {
    match value.quoted {
        true => regex::escape(&value.text),
        false => value.text.split('*').map(regex::escape).collect::<Vec<_>>().join(".*?"),
    }
}

fn regex(pattern: &str, ignore_case: bool, place: &syntax::Place) -> Checked<Regex> {
    RegexBuilder::new(pattern)
        .case_insensitive(ignore_case)
        .dot_matches_new_line(true)
        .size_limit(REGEX_BYTES_MAX)
        .dfa_size_limit(REGEX_BYTES_MAX)
        .nest_limit(REGEX_NESTING_MAX)
        .build()
        .map_err(|error| bad_regex(&error, place))
}

/// What a folded name is held against. A regular expression cannot be folded, `\S` is not `\s`; it takes
/// any case instead.
fn folded_text(op: Op, values: &[Value]) -> Checked<TextTest> {
    Ok(match op {
        Op::Begins => TextTest::Begins(folded(&only(values)?.text).into_owned()),
        Op::Like => TextTest::Like(folded_pattern(values)?),
        _ if is_anything(op, values) => TextTest::Any,
        _ => TextTest::Globs(globs(op, &folded_values(values))),
    })
}

fn folded_path_test(written: &PathTest, op: Op, values: &[Value]) -> Checked<PathTest> {
    Ok(match written {
        PathTest::Equal(_) => PathTest::Equal(folded_values(values).iter().map(scalar).collect()),
        PathTest::Globs(_) => PathTest::Globs(globs(op, &folded_values(values))),
        PathTest::Begins(prefix) => PathTest::Begins(folded(prefix).into_owned()),
        PathTest::Like(_) => PathTest::Like(folded_pattern(values)?),
        PathTest::Present | PathTest::Number(..) => written.clone(),
    })
}

fn folded_pattern(values: &[Value]) -> Checked<Regex> {
    let value = only(values)?;
    regex(&value.text, true, &value.place)
}

fn folded_values(values: &[Value]) -> Vec<Value> {
    values.iter().map(folded_value).collect()
}

fn folded_value(value: &Value) -> Value {
    Value { text: folded(&value.text).into_owned(), ..value.clone() }
}

fn negated_if(negated: bool, node: Node) -> Node {
    if negated { Node::Not(Box::new(node)) } else { node }
}

/// `field:*` asks whether there is a value at all.
fn is_anything(op: Op, values: &[Value]) -> bool {
    op == Op::Has && values.iter().any(|value| value.text == "*" && !value.quoted)
}

fn globs(op: Op, values: &[Value]) -> Vec<Glob> {
    let glob = |value: &Value| match op == Op::Has && !value.quoted {
        true => Glob::new(&value.text),
        false => Glob::literal(&value.text),
    };
    values.iter().map(glob).collect()
}

fn only(values: &[Value]) -> Checked<&Value> {
    values.first().ok_or_else(|| Fault::at(0..0, "a value is missing"))
}

fn words(choices: &'static [Choice], field: &Field, values: &[Value]) -> Checked<Vec<&'static str>> {
    let mut words = Vec::new();
    for value in values {
        let word = fields::choice(choices, &value.text).ok_or_else(|| no_such(choices, field, value))?;
        words.push(word);
        // An error is a response, too.
        if field.asks == Asks::Kind && word == "response" {
            words.push("error");
        }
    }
    Ok(words)
}

/// Those on one side of a word, in their order.
fn ranks(choices: &'static [Choice], field: &Field, op: Op, values: &[Value]) -> Checked<Vec<&'static str>> {
    let value = only(values)?;
    let word = fields::choice(choices, &value.text).ok_or_else(|| no_such(choices, field, value))?;
    let all = choices.iter().map(|choice| choice.word);
    let rank = |word: &str| choices.iter().position(|choice| choice.word == word);
    let is_meant = |other: &&str| match op {
        Op::Less => rank(other) < rank(word),
        Op::LessOrEqual => rank(other) <= rank(word),
        Op::Greater => rank(other) > rank(word),
        _ => rank(other) >= rank(word),
    };
    let words: Vec<_> = all.filter(is_meant).collect();
    match words.is_empty() {
        true => Err(Fault::at(value.place.0.clone(), format!("nothing is `{}{}{word}`", field.name, op.as_str()))),
        false => Ok(words),
    }
}

/// `hint:*` is any that the server gives.
fn hints(field: &Field, op: Op, values: &[Value]) -> Checked<Vec<&'static str>> {
    match is_anything(op, values) {
        true => Ok(fields::HINTS.iter().map(|choice| choice.word).filter(|word| *word != fields::UNLISTED).collect()),
        false => words(fields::HINTS, field, values),
    }
}

fn flag(field: &Field, values: &[Value]) -> Checked<bool> {
    let value = only(values)?;
    let word = fields::choice(fields::FLAGS, &value.text).ok_or_else(|| no_such(fields::FLAGS, field, value))?;
    match values {
        [_] => Ok(word == fields::FLAGS[0].word),
        _ => Err(Fault::at(values[1].place.0.clone(), format!("`{}` takes one value", field.name))),
    }
}

fn no_such(choices: &'static [Choice], field: &Field, value: &Value) -> Fault {
    let fault = Fault::at(value.place.0.clone(), format!("`{}` cannot be `{}`", field.name, value.text));
    let all = || format!("it is {}", choices.iter().map(|choice| choice.word).collect::<Vec<_>>().join(", "));
    fault.meant(&value.text, choices.iter().map(|choice| choice.word)).or_help(all)
}

fn numbers(measure: Measure, op: Op, values: &[Value]) -> Checked<Vec<Range>> {
    let expected = |value: &Value| {
        Fault::at(value.place.0.clone(), format!("`{}` is no value for this", value.text))
            .help(format!("expected {}", measure.expected()))
    };
    if op.takes_list() {
        let range = |value: &Value| measure.parse_range(&value.text).ok_or_else(|| expected(value));
        return values.iter().map(range).collect();
    }
    let value = only(values)?;
    let range = measure.parse(&value.text).ok_or_else(|| expected(value))?;
    let start = *range.start();
    Ok(vec![match op {
        Op::Less => i128::MIN..=start - 1,
        Op::LessOrEqual => i128::MIN..=start,
        Op::Greater => start + 1..=i128::MAX,
        _ => start..=i128::MAX,
    }])
}

fn header_named(op: Op, values: &[Value]) -> Checked<Test> {
    let value = only(values)?;
    if op != Op::Has || values.len() > 1 {
        let fault = Fault::at(value.place.0.clone(), "`header:NAME` takes the name of one header");
        return Err(fault.help("its value is compared with header.NAME, such as header.host:localhost"));
    }
    Ok(Test::HeaderNamed(Glob::new(&value.text.to_ascii_lowercase())))
}

fn scalar(value: &Value) -> Scalar {
    Scalar { text: value.text.clone(), is_text: value.quoted, number: number(&value.text).filter(|_| !value.quoted) }
}

/// A number as JSON spells it.
pub(crate) fn number(text: &str) -> Option<f64> {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    text.parse().ok().filter(|_| is_number)
}

fn bad_regex(error: &regex::Error, place: &syntax::Place) -> Fault {
    let why = match error {
        regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
        // The last line says what is wrong; those before it show where, which we do ourselves.
        error => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
    };
    Fault::at(place.0.clone(), format!("this regular expression cannot be used: {why}"))
}
