//! The reference of the language, written from the table of fields: as a page, and for a terminal.

use crate::fields::{Choice, FIELDS, Field, Values};

/// For `docs/filter.md`.
pub fn markdown() -> String {
    let mut page = format!("{TITLE}\n\n{INTRODUCTION}\n\n## Fields\n\n");
    page.push_str("| field | asks | takes | for example |\n|---|---|---|---|\n");
    for field in FIELDS {
        let (name, takes) = (field.name, takes(field).replace('|', "\\|"));
        page.push_str(&format!("| `{name}` | {} | {takes} | `{}` |\n", field.about, field.example));
    }
    page.push_str(&format!("\n{REST}"));
    page
}

/// For `mcp-proxy help filter`.
pub fn plain() -> String {
    let mut page = without_marks(INTRODUCTION);
    page.push_str("\nFields:\n");
    for field in FIELDS {
        page.push_str(&format!("\n  {:<8} {}\n", field.name, field.example));
        page.push_str(&indented(11, &format!("{} Takes {}.", field.about, takes(field))));
    }
    page.push_str(&format!("\n{}", without_marks(REST)));
    page
}

const TITLE: &str = "# Filters";
/// Columns of a terminal that is not wide.
const PLAIN_WIDTH: usize = 80;

const INTRODUCTION: &str = "\
One language says which messages are meant. It narrows what `inspect` and `tail` print, what `sessions search` finds and
what `export` writes, picks what `replay` sends, and says what `break add` and `--break` hold.

```text
tool:write_* not server:test        such tools, but not on that server
status:err dur>1s                   errors that took long
$.params.arguments.path ^= \"/etc\"   calls with such an argument
kind:request (tool:add or size>1k)  requests of either sort
> timeout                           what clients send with this word in it
```

An expression is tests, one after the other; all must hold. Between them `and`, `or` and `not` (or `!`) may stand, and
parentheses. `not` binds closest, then `and`, then `or`. An empty expression matches everything.

| test | holds if |
|---|---|
| `word` | the method, the tool or the text of the message has it, whatever its case; `*` is any text |
| `\"some words\"` | the same, with everything in the quotes as it is; `'…'` are quotes, too |
| `/regex/` | the same, as a regular expression; `/regex/i` for any case |
| `>`, `<` | the message goes to the server, to the client |
| `field:value` | the field is that; `*` in it is any text, and `field:*` asks whether there is a value |
| `field:a,b` | it is one of them |
| `field=value`, `field!=value` | it is exactly that, or is not; a field without a value is not |
| `field^=value` | it begins so |
| `field~regex` | the regular expression is found in it |
| `field<value`, `<=`, `>`, `>=` | it is a number, a duration, a size or an operation like that; `field:10..20` is a range |
| `$.path` | the message has something there |
| `$.path` and any of `: = != ^= ~ < <= > >=` | what it has there is like that |

Fields that a message does not have match nothing, and so `not field:value` and `field!=value` match them.";

const REST: &str = "\
## Paths

A path leads into the message: `$.params.name`, `$.params.list[0]`, `$.result.content[*].text` for every item,
`$.params.*` for every member, `$..uri` for every `uri` at any depth, `$.params[\"odd name\"]` for a name with other
characters in it. A test holds if it does for any value that the path leads to.

`$.id = 1` is the number (or the text) 1, `$.id = \"1\"` only the text. Numbers are compared by their value: `1.0` is
`1`. On a list or an object `~` looks at its JSON.

## Values

A value ends at a blank, a comma or a parenthesis; put it in quotes if it has one. In quotes `\\\"`, `\\'`, `\\\\`, `\\n`,
`\\r` and `\\t` are escapes. A word that is no field and stands before an operator is an error, so a text such as
`file:///tmp` needs quotes, too.

Regular expressions are those of the Rust crate `regex`: no look-around, no back references, and no text that takes them
forever. Text is searched as it stands in the message, and, where that has escapes, as it reads without them.

## Limits

An expression may have 16,384 bytes, 64 levels of parentheses, and 32 regular expressions or searched words of up to
1 MB each when compiled. A path may have 31 steps.
";

fn takes(field: &Field) -> String {
    let words =
        |choices: &[Choice]| choices.iter().map(|choice| format!("`{}`", choice.word)).collect::<Vec<_>>().join(", ");
    match field.values {
        Values::Words(choices) | Values::Ranks(choices) => words(choices),
        Values::Text => "text".to_owned(),
        Values::WordsOrText(choices) => format!("{} or text", words(choices)),
        Values::Number(measure) => measure.expected().to_owned(),
        Values::Flag => "`yes`, `no`".to_owned(),
        Values::Search => "text, with `:` or `~`".to_owned(),
        Values::Header => "a name, or text after `header.NAME`".to_owned(),
    }
}

/// Markdown as a terminal shows it: paragraphs filled, tables in two columns, code as it is.
fn without_marks(markdown: &str) -> String {
    let (mut page, mut paragraph, mut is_code) = (String::new(), String::new(), false);
    for line in markdown.lines().chain([""]) {
        if let Some(row) = line.strip_prefix('|').filter(|row| !row.starts_with("---") && !row.starts_with(" test |")) {
            let (test, meaning) = row.trim_end_matches('|').split_once('|').unwrap_or((row, ""));
            page.push_str(&format!("  {}\n{}", unquoted(test.trim()), indented(6, meaning.trim())));
        } else if line.starts_with("```") {
            is_code = !is_code;
        } else if is_code {
            page.push_str(&format!("  {line}\n"));
        } else if let Some(title) = line.strip_prefix("## ") {
            page.push_str(&format!("{title}:\n"));
        } else if line.is_empty() {
            page.push_str(&indented(0, &paragraph));
            page.push('\n');
            paragraph.clear();
        } else if !line.starts_with('|') {
            paragraph.push_str(if paragraph.is_empty() { "" } else { " " });
            paragraph.push_str(line);
        }
    }
    page
}

/// Text in lines that fit, each with so many blanks before it.
fn indented(blanks: usize, text: &str) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in unquoted(text).split(' ').filter(|word| !word.is_empty()) {
        if blanks + line.chars().count() + 1 + word.chars().count() > PLAIN_WIDTH {
            lines.push_str(&format!("{:blanks$}{line}\n", ""));
            line.clear();
        }
        line.push_str(if line.is_empty() { "" } else { " " });
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push_str(&format!("{:blanks$}{line}\n", ""));
    }
    lines
}

fn unquoted(text: &str) -> String {
    text.replace('`', "")
}
