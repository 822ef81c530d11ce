//! Messages changed before they are sent: a value put somewhere, or everything opened in an editor.

use std::io::Write;

use bytes::Bytes;
use mcp_engine::Transcript;
use mcp_engine::replay::{Script, Turn};
use mcp_wire::layout::indented;
use mcp_wire::visible::visible;
use mcp_wire::{Kind, Message};

use crate::edit::{Assignment, editor};
use crate::failure::Failure;
use crate::report::say;

/// Puts the value wherever a message has the path.
pub(super) fn apply(assignment: &Assignment, script: &mut Script) -> Result<(), Failure> {
    let places: usize = script.turns.iter_mut().map(|turn| assignment.replace(&mut turn.bytes)).sum();
    if places == 0 {
        return Err(Failure::usage(format!("no message has {}", visible(&assignment.to_string())))
            .hint("`mcp-proxy inspect SESSION -v` shows what the messages say; `--edit` changes them freely"));
    }
    Ok(())
}

const HEADING: &str = "#@ ";
const INTRODUCTION: &str = "# These messages are sent when you leave the editor. Change what you like.
# Each belongs to the line above it that begins with `#@`. Without a message, that one is not sent.
# If there are none left, nothing is.
";

/// Lets a person change the messages.
pub(super) fn in_editor(script: &mut Script, transcript: &Transcript) -> Result<(), Failure> {
    let before: Vec<String> = script.turns.iter().map(|turn| indented(&turn.bytes)).collect();
    let mut file = tempfile::Builder::new().prefix("mcp-proxy-replay-").suffix(".txt").tempfile()?;
    file.write_all(INTRODUCTION.as_bytes())?;
    for (at, (turn, text)) in script.turns.iter().zip(&before).enumerate() {
        writeln!(file, "\n{HEADING}{at} {}\n{text}", visible(&transcript.line(turn.line).call()))?;
    }
    file.flush()?;
    editor::open(file.path())?;
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
}
