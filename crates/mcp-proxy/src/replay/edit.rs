//! Messages changed before they are sent: a value put somewhere, or everything opened in an editor.

use std::io::Write;
use std::process::Command;

use bytes::Bytes;
use mcp_engine::Transcript;
use mcp_engine::compare::Pattern;
use mcp_engine::compare::path::split_assignment;
use mcp_engine::replay::{Script, Turn};
use mcp_wire::splice::splice;
use mcp_wire::visible::visible;
use mcp_wire::{Kind, Message};
use serde_json::value::RawValue;

use super::layout::indented;
use crate::failure::{Failure, exit};
use crate::report::say;

/// `--set PATH=VALUE`
#[derive(Clone, Debug)]
pub struct Assignment {
    path: Pattern,
    value: String,
}

pub fn assignment(text: &str) -> Result<Assignment, String> {
    let (path, value) = split_assignment(text).ok_or("expected PATH=VALUE")?;
    let path = Pattern::parse(path).map_err(|error| error.to_string())?;
    // What is no JSON is text.
    let value = match serde_json::from_str::<&RawValue>(value) {
        Ok(json) => json.get().to_owned(),
        Err(_) => serde_json::Value::from(value).to_string(),
    };
    Ok(Assignment { path, value })
}

impl Assignment {
    /// Puts the value wherever a message has the path.
    pub fn apply(&self, script: &mut Script) -> Result<(), Failure> {
        let mut places = 0;
        for turn in &mut script.turns {
            for span in self.path.find(&turn.bytes).into_iter().rev() {
                turn.bytes = splice(&turn.bytes, span, self.value.as_bytes());
                places += 1;
            }
        }
        if places == 0 {
            return Err(Failure::usage(format!("no message has {}", visible(&self.path.to_string())))
                .hint("`mcp-proxy inspect SESSION -v` shows what the messages say; `--edit` changes them freely"));
        }
        Ok(())
    }
}

const HEADING: &str = "#@ ";
const INTRODUCTION: &str = "# These messages are sent when you leave the editor. Change what you like.
# Each belongs to the line above it that begins with `#@`. Without a message, that one is not sent.
# If there are none left, nothing is.
";

/// Lets a person change the messages.
pub fn in_editor(script: &mut Script, transcript: &Transcript) -> Result<(), Failure> {
    let before: Vec<String> = script.turns.iter().map(|turn| indented(&turn.bytes)).collect();
    let mut file = tempfile::Builder::new().prefix("mcp-proxy-replay-").suffix(".txt").tempfile()?;
    file.write_all(INTRODUCTION.as_bytes())?;
    for (at, (turn, text)) in script.turns.iter().zip(&before).enumerate() {
        writeln!(file, "\n{HEADING}{at} {}\n{text}", visible(&transcript.line(turn.line).call()))?;
    }
    file.flush()?;
    open_editor(file.path())?;
    let after = std::fs::read_to_string(file.path())?;
    let edited = read_back(&after, script.turns.len())?;
    let turns = std::mem::take(&mut script.turns);
    for ((turn, text), edited) in turns.into_iter().zip(before).zip(edited) {
        match edited {
            // Untouched, it goes as it was.
            Some(edited) if edited.trim() == text.trim() => script.turns.push(turn),
            Some(edited) => script.turns.push(changed(turn, edited)),
            None => script.left_out.extend(turn.asks),
        }
    }
    Ok(())
}

fn changed(turn: Turn, text: String) -> Turn {
    let bytes = Bytes::from(text.trim().to_owned());
    if Message::new(bytes.clone()).kind() == Kind::NotJson {
        say("mcp-proxy: one of the messages is not JSON; it is sent as it is");
    }
    Turn { bytes, ..turn }
}

/// What stands under each heading, by the number in it.
fn read_back(text: &str, count: usize) -> Result<Vec<Option<String>>, Failure> {
    let mut messages: Vec<Option<String>> = vec![None; count];
    let mut current = None;
    for (number, line) in text.lines().enumerate() {
        if let Some(heading) = line.strip_prefix(HEADING) {
            let at = heading.split_ascii_whitespace().next().and_then(|at| at.parse::<usize>().ok());
            current = at.filter(|&at| at < count);
            if current.is_none_or(|at| messages[at].is_some()) {
                return Err(misplaced(number, "this heading is not one of those that were there, or stands twice"));
            }
        } else if let Some(at) = current {
            if !line.trim().is_empty() || messages[at].is_some() {
                let message = messages[at].get_or_insert_default();
                message.push_str(line);
                message.push('\n');
            }
        } else if !line.starts_with('#') && !line.trim().is_empty() {
            return Err(misplaced(number, "this belongs to no heading"));
        }
    }
    Ok(messages)
}

fn misplaced(line: usize, what: &str) -> Failure {
    Failure::usage(format!("line {} of the edited messages: {what}", line + 1)).hint("nothing was sent; try again")
}

fn open_editor(path: &std::path::Path) -> Result<(), Failure> {
    let editor = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".into());
    let words = shell_words::split(&editor).unwrap_or_default();
    let (program, args) = words.split_first().ok_or_else(|| Failure::usage("$EDITOR is empty"))?;
    let status = Command::new(program).args(args).arg(path).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(exit::CANNOT_RUN, format!("the editor `{editor}` ended with {status}"))
            .hint("nothing was sent")),
        Err(error) => Err(Failure::new(exit::CANNOT_RUN, format!("cannot start the editor `{editor}`: {error}"))
            .hint("set EDITOR to one that is there")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_back_by_their_headings() {
        let text = "# hello\n\n#@ 0 initialize\n{\n  \"id\": 1\n\n}\n\n#@ 1 gone\n\n#@ 2 x\n# not a comment any more\n";
        let read = read_back(text, 3).expect("it is as it should be");
        assert_eq!(read[0].as_deref().map(str::trim), Some("{\n  \"id\": 1\n\n}"));
        assert_eq!(read[1], None);
        assert_eq!(read[2].as_deref(), Some("# not a comment any more\n"));
        assert!(read_back("{}", 1).is_err() && read_back("#@ 5 x\n{}", 1).is_err());
        assert!(read_back("#@ 0 x\n{}\n#@ 0 x\n{}", 1).is_err());
    }

    #[test]
    fn a_value_is_json_or_text() {
        let value = |text: &str| assignment(text).map(|assignment| assignment.value);
        assert_eq!(value("$.a=1e400").as_deref(), Ok("1e400"));
        assert_eq!(value("$.a={\"b\":[]}").as_deref(), Ok("{\"b\":[]}"));
        assert_eq!(value("$.a=hello \"you\"").as_deref(), Ok("\"hello \\\"you\\\"\""));
        assert_eq!(value("$.a=").as_deref(), Ok("\"\""));
        assert!(value("$.a").is_err() && value("a=1").is_err());
    }
}
