//! The piece of a message around what was found. The index keeps no text, so the message is read from
//! its segment and searched once more by itself: with the same rules, so that the same words are found.

use rusqlite::{Connection, params};

use super::query::Query;
use crate::StoreError;

/// Words shown around a hit: a line or two.
const SHOWN_WORDS: i64 = 24;
/// Marks that no text has, because they mean no character.
const BEGIN: char = '\u{fdd0}';
const END: char = '\u{fdd1}';

/// A piece of text; hostile, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    /// It is what was searched for.
    pub is_hit: bool,
}

/// Cuts pieces out of texts that a query finds.
pub struct Snippets {
    connection: Connection,
    query: Query,
}

impl Snippets {
    pub fn new(query: &Query) -> Result<Self, StoreError> {
        let connection = Connection::open_in_memory()?;
        connection
            .execute_batch("CREATE VIRTUAL TABLE one USING fts5(body, tokenize='unicode61 remove_diacritics 2')")?;
        Ok(Self { connection, query: query.clone() })
    }

    /// The best piece of `text`; nothing if the query does not find it.
    pub fn of(&self, text: &str) -> Result<Vec<Piece>, StoreError> {
        let text = text.replace([BEGIN, END], " ");
        self.connection.prepare_cached("DELETE FROM one")?.execute([])?;
        self.connection.prepare_cached("INSERT INTO one (rowid, body) VALUES (1, ?1)")?.execute([text])?;
        let mut statement =
            self.connection.prepare_cached("SELECT snippet(one, 0, ?2, ?3, '…', ?4) FROM one WHERE one MATCH ?1")?;
        let marks = (BEGIN.to_string(), END.to_string());
        let mut rows = statement.query(params![self.query.as_match(), marks.0, marks.1, SHOWN_WORDS])?;
        Ok(match rows.next()? {
            Some(row) => pieces(&row.get::<_, String>(0)?),
            None => Vec::new(),
        })
    }
}

fn pieces(marked: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut push = |text: &str, is_hit| {
        if !text.is_empty() {
            pieces.push(Piece { text: text.to_owned(), is_hit });
        }
    };
    for (index, part) in marked.split(BEGIN).enumerate() {
        match part.split_once(END) {
            Some((hit, after)) if index > 0 => {
                push(hit, true);
                push(after, false);
            }
            _ => push(part, false),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(typed: &str, text: &str, expected: &str) {
        let snippets = Snippets::new(&Query::parse(typed).unwrap()).unwrap();
        let pieces = snippets.of(text).unwrap();
        let shown: String = pieces
            .iter()
            .map(|piece| if piece.is_hit { format!("<{}>", piece.text) } else { piece.text.clone() })
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_was_found_is_marked() {
        check("fox", "the quick brown Fox jumps", "the quick brown <Fox> jumps");
        check("\"brown fox\" the", "the quick brown fox", "<the> quick <brown fox>");
        check("mull*", "Dr. Müller", "Dr. <Müller>");
        check("read_file", "tools/call read_file x", "tools/call <read_file> x");
        check("absent", "the quick brown fox", "");
        check("hit", "\u{fdd0}a hit\u{fdd1}", " a <hit> ");
    }

    #[test]
    fn a_long_text_is_cut_around_the_hit() {
        let text = format!("{}needle {}", "hay ".repeat(500), "hay ".repeat(500));
        let snippets = Snippets::new(&Query::parse("needle").unwrap()).unwrap();
        let pieces = snippets.of(&text).unwrap();
        assert!(pieces.iter().any(|piece| piece.is_hit && piece.text == "needle"));
        assert!(pieces.iter().map(|piece| piece.text.len()).sum::<usize>() < 200);
        // One text does not show in the next.
        assert_eq!(snippets.of("nothing").unwrap(), []);
    }
}
