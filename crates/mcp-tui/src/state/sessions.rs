//! Recordings: which there are, where words are found in them, and how two of them differ.

#[cfg(test)]
mod tests;

use super::common::Common;
use super::cursor::Cursor;
use super::prompt::Asking;
use crate::command::{Command, Screen};
use crate::library::{ComparedLine, Comparison, Hit, SessionRef, SessionRow, Trouble};
use crate::news::Effect;

#[derive(Default)]
pub(crate) struct Sessions {
    pub rows: Vec<SessionRow>,
    pub is_loading: bool,
    /// Why there is no list.
    pub trouble: Option<Trouble>,
    /// Sessions to compare, by their ids: two at most.
    pub marked: Vec<String>,
    pub cursor: Cursor,
    /// What is shown in place of the list.
    pub over: Over,
    /// The two that are being compared.
    comparing: Option<(String, String)>,
}

#[derive(Default)]
pub(crate) enum Over {
    #[default]
    Nothing,
    Hits(Hits),
    Compared(Compared),
}

pub(crate) struct Hits {
    pub words: String,
    /// Absent while they are looked for.
    pub found: Option<Vec<Hit>>,
    pub cursor: Cursor,
}

pub(crate) struct Compared {
    pub left: String,
    pub right: String,
    pub comparison: Comparison,
    pub cursor: Cursor,
}

impl Hits {
    fn hit(&self) -> Option<&Hit> {
        self.found.as_ref()?.get(self.cursor.at)
    }
}

impl Compared {
    pub(crate) fn line(&self) -> Option<&ComparedLine> {
        self.comparison.lines.get(self.cursor.at)
    }
}

impl Sessions {
    /// The screen is shown.
    pub(crate) fn enter(&mut self, common: &mut Common) {
        self.is_loading = true;
        common.wish(Effect::Sessions);
    }

    /// The session that is selected in the list, by its id.
    fn selected(&self) -> Option<&str> {
        self.rows.get(self.cursor.at).map(|row| row.id.as_str())
    }

    /// The session that a general command is about.
    pub(crate) fn subject(&self) -> Option<&str> {
        match &self.over {
            Over::Nothing => self.selected(),
            Over::Hits(hits) => hits.hit().map(|hit| hit.session.as_str()),
            Over::Compared(compared) => Some(&compared.left),
        }
    }

    /// A line was clicked.
    pub(crate) fn select(&mut self, line: usize) {
        match &mut self.over {
            Over::Nothing => self.cursor.at = line,
            Over::Hits(hits) => hits.cursor.at = line,
            Over::Compared(compared) => compared.cursor.at = line,
        }
    }

    /// Does what the command says, if that is this screen's to do.
    pub(crate) fn command(&mut self, command: Command, common: &mut Common) -> bool {
        let is_moved = match &mut self.over {
            Over::Nothing => self.cursor.motion(command, self.rows.len()),
            Over::Hits(hits) => hits.cursor.motion(command, hits.found.as_ref().map_or(0, Vec::len)),
            Over::Compared(compared) => compared.cursor.motion(command, compared.comparison.lines.len()),
        };
        if is_moved {
            return true;
        }
        match command {
            Command::Filter => common.prompt(Asking::Search, self.searched()),
            Command::Open => self.open(common),
            Command::Mark if self.is_list() => self.mark(common),
            Command::Mark => {}
            Command::Compare => self.compare(common),
            // Work that goes on is ended first.
            Command::Back if !self.is_list() && common.job.is_none() => self.over = Over::Nothing,
            _ => return false,
        }
        true
    }

    fn is_list(&self) -> bool {
        matches!(self.over, Over::Nothing)
    }

    fn searched(&self) -> &str {
        match &self.over {
            Over::Hits(hits) => &hits.words,
            _ => "",
        }
    }

    fn open(&mut self, common: &mut Common) {
        match &self.over {
            Over::Nothing => {
                let Some(row) = self.rows.get(self.cursor.at) else { return };
                if common.shows(&row.id) {
                    common.screen = Screen::Traffic;
                } else {
                    common.opening = None;
                    common.wish(Effect::Open(SessionRef::Stored(row.id.clone())));
                    common.say("opening the session");
                }
            }
            Over::Hits(hits) => {
                if let Some(hit) = hits.hit() {
                    common.open_at(&hit.session, hit.sequence);
                }
            }
            Over::Compared(compared) => match compared.line() {
                Some(ComparedLine { left: Some(sequence), .. }) => common.open_at(&compared.left, *sequence),
                Some(ComparedLine { right: Some(sequence), .. }) => common.open_at(&compared.right, *sequence),
                _ => {}
            },
        }
    }

    fn mark(&mut self, common: &mut Common) {
        let Some(id) = self.selected().map(str::to_owned) else { return };
        match self.marked.iter().position(|marked| *marked == id) {
            Some(at) => drop(self.marked.remove(at)),
            None => {
                // The newer mark stays.
                if self.marked.len() >= 2 {
                    self.marked.remove(0);
                }
                self.marked.push(id);
            }
        }
        self.cursor.motion(Command::Down, self.rows.len());
        if self.marked.len() == 2 {
            common.say("two are marked; `c` compares them");
        }
    }

    fn compare(&mut self, common: &mut Common) {
        let selected = self.selected();
        let (left, right) = match (self.marked.as_slice(), selected) {
            ([left, right], _) => (left.clone(), right.clone()),
            ([marked], Some(selected)) if marked != selected => (marked.clone(), selected.to_owned()),
            _ => return common.say("mark a session with the space bar, and select the one to compare it with"),
        };
        let Some(work) = common.begin("comparing") else { return };
        let [one, other] = [&left, &right].map(|id| SessionRef::Stored(id.clone()));
        common.wish(Effect::Compare(one, other, work));
        self.comparing = Some((left, right));
    }

    /// Looks for words in all sessions.
    pub(crate) fn search(&mut self, words: String, common: &mut Common) {
        if words.is_empty() {
            self.over = Over::Nothing;
            return;
        }
        common.wish(Effect::Search { words: words.clone() });
        self.over = Over::Hits(Hits { words, found: None, cursor: Cursor::default() });
    }

    pub(crate) fn list(&mut self, rows: Result<Vec<SessionRow>, Trouble>, _common: &mut Common) {
        self.is_loading = false;
        match rows {
            Ok(rows) => {
                let selected = self.selected().map(str::to_owned);
                let at = selected.and_then(|selected| rows.iter().position(|row| row.id == selected));
                self.cursor.at = at.unwrap_or(self.cursor.at).min(rows.len().saturating_sub(1));
                self.marked.retain(|marked| rows.iter().any(|row| row.id == *marked));
                (self.rows, self.trouble) = (rows, None);
            }
            Err(words) => self.trouble = Some(words),
        }
    }

    pub(crate) fn hits(&mut self, words: &str, found: Result<Vec<Hit>, Trouble>, common: &mut Common) {
        let Over::Hits(hits) = &mut self.over else { return };
        match found {
            // Something else is looked for by now.
            _ if hits.words != words => {}
            Ok(found) => hits.found = Some(found),
            Err(words) => {
                self.over = Over::Nothing;
                common.complain(words);
            }
        }
    }

    pub(crate) fn compared(&mut self, comparison: Result<Comparison, Trouble>, common: &mut Common) {
        let Some((left, right)) = self.comparing.take() else { return };
        match comparison {
            Ok(comparison) => {
                if common.screen != Screen::Sessions {
                    common.say("the sessions are compared; `9` shows how they differ");
                }
                self.over = Over::Compared(Compared { left, right, comparison, cursor: Cursor::default() });
            }
            Err(words) => common.complain(words),
        }
    }
}
