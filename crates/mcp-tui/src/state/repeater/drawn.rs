//! What is drawn of the repeater, made once for each thing that is looked at.

use std::sync::Arc;

use super::tab::{Against, Original, Tab};
use crate::diff::{Diff, diff_json};
use crate::json::{Document, Pretty};
use crate::text;

/// Lines, and cells of each, kept of an answer that is not JSON.
const PLAIN_LINES_MAX: usize = 2_000;
const PLAIN_LINE_CELLS_MAX: usize = 500;

#[derive(Default)]
pub(crate) struct Drawn {
    request: Option<((u64, u64), Text)>,
    answer: Option<(u64, Text)>,
    diff: Option<(Compared, Diff)>,
}

/// A text as lines.
pub(crate) enum Text {
    Json(Pretty),
    /// Clean lines.
    Plain(Vec<String>),
}

/// Which answers are compared, by their sequences, and how.
#[derive(PartialEq, Eq)]
struct Compared {
    left: u64,
    right: u64,
    ignored: Vec<String>,
}

impl Text {
    fn new(text: &Arc<str>) -> Self {
        match Document::parse(Arc::clone(text)) {
            Ok(document) => Self::Json(Pretty::new(Arc::new(document))),
            Err(_) => {
                let lines = text.lines().take(PLAIN_LINES_MAX);
                Self::Plain(lines.map(|line| text::fit(line, PLAIN_LINE_CELLS_MAX, false)).collect())
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(pretty) => pretty.len(),
            Self::Plain(lines) => lines.len(),
        }
    }
}

impl Drawn {
    pub(crate) fn request(&mut self, tab: &Tab) -> &Text {
        let which = (tab.id, tab.edition);
        self.request.take_if(|(of, _)| *of != which);
        &self.request.get_or_insert_with(|| (which, Text::new(&tab.text))).1
    }

    /// An answer by its sequence.
    pub(crate) fn answer(&mut self, sequence: u64, text: &Arc<str>) -> &Text {
        self.answer.take_if(|(of, _)| *of != sequence);
        &self.answer.get_or_insert_with(|| (sequence, Text::new(text))).1
    }

    /// The shown run against what it is compared with: what that is, and where they differ. Words why
    /// there is nothing to compare.
    pub(crate) fn diff(&mut self, tab: &Tab) -> Result<(String, &Diff), &'static str> {
        let run = tab.shown_run().ok_or("nothing was sent yet")?;
        let answer = run.answer().ok_or("there is no answer to compare yet")?;
        let (title, other) = match tab.against {
            Against::Nothing => return Err("nothing is compared"),
            Against::RunBefore | Against::Marked => {
                let other = match tab.against {
                    Against::Marked => tab.marked_run().ok_or("this run is the marked one; `v` shows another")?,
                    _ => tab.run_before().ok_or("no run before this one has an answer; `r` sends it again")?,
                };
                let answer = other.answer().ok_or("the other run has no answer")?;
                (format!("run {} against run {}", other.number, run.number), answer)
            }
            Against::Original => match &tab.original {
                Original::Known(other) => {
                    (format!("what was recorded, #{}, against run {}", other.sequence, run.number), other)
                }
                Original::Unknown | Original::Looking { .. } => return Err("the recorded answer is looked for"),
                Original::NotFound => return Err("no answer to it was recorded"),
            },
        };
        let gone = "one of the two is not at hand any more";
        let (left, right) = (other.text().ok_or(gone)?, answer.text().ok_or(gone)?);
        let which = Compared { left: other.sequence, right: answer.sequence, ignored: tab.ignored.clone() };
        self.diff.take_if(|(of, _)| *of != which);
        let diff = &self.diff.get_or_insert_with(|| (which, diff_json(left, right, &tab.ignored))).1;
        Ok((title, diff))
    }
}
