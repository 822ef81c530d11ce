//! Arguments as they are written on a command line: `key=value`, `key:=JSON`, `key=@FILE`, or all as one JSON object.
//! They are read before there is a server, so that nothing is started for a slip of the pen.

use std::io::Read;
use std::path::Path;

use serde_json::value::RawValue;

use super::arguments::{Members, Object};
use crate::config::expand_home;
use crate::failure::{Failure, quoted};

/// One argument, of which only the capability can say more.
pub(super) struct Word {
    pub key: String,
    pub value: Written,
}

pub(super) enum Written {
    /// Text, or JSON if the capability wants that.
    Plain(String),
    /// The same, from a file.
    File(String),
    Json(Box<RawValue>),
}

pub(super) fn read(words: &[String]) -> Result<Vec<Word>, Failure> {
    let mut read: Vec<Word> = Vec::new();
    let mut files = Files::default();
    for word in words {
        let word = read_word(word, &mut files)?;
        if read.iter().any(|other| other.key == word.key) {
            return Err(given_twice(&word.key));
        }
        read.push(word);
    }
    Ok(read)
}

fn read_word(word: &str, files: &mut Files) -> Result<Word, Failure> {
    let Some((key, value)) = word.split_once('=').filter(|(key, _)| !matches!(*key, "" | ":")) else {
        return Err(Failure::usage(format!("`{word}` is no argument")).hint("write key=value, or key:=JSON"));
    };
    let file = value.strip_prefix('@').map(|file| files.read(file)).transpose()?;
    let (key, value) = match (key.strip_suffix(':'), file) {
        (Some(key), file) => (key, Written::Json(json(key, &file.unwrap_or_else(|| value.to_owned()))?)),
        (None, Some(text)) => (key, Written::File(text)),
        (None, None) => (key, Written::Plain(value.to_owned())),
    };
    Ok(Word { key: key.to_owned(), value })
}

pub(super) fn json(key: &str, text: &str) -> Result<Box<RawValue>, Failure> {
    RawValue::from_string(text.trim().to_owned())
        .map_err(|error| Failure::usage(format!("the value of `{key}` is not JSON: {error}")))
}

/// `--args`: JSON, a file of it, or standard input.
pub(super) fn of_json(given: &str) -> Result<Members, Failure> {
    let text = match given.strip_prefix('@') {
        Some(file) => Files::default().read(file)?,
        None if given == "-" => Files::default().read("-")?,
        None => given.to_owned(),
    };
    let wrong = |why: String| Failure::usage(format!("--args is no JSON object: {why}"));
    let Object(members) = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let is_double = |at: usize, key: &String| members.iter().take(at).any(|(other, _)| other == key);
    match members.iter().enumerate().find(|(at, (key, _))| is_double(*at, key)) {
        Some((_, (key, _))) => Err(given_twice(key)),
        None => Ok(members),
    }
}

fn given_twice(key: &str) -> Failure {
    Failure::usage(format!("`{key}` is given twice"))
}

/// What `@` leads to; standard input only once, as it is gone then.
#[derive(Default)]
struct Files {
    has_read_input: bool,
}

impl Files {
    fn read(&mut self, file: &str) -> Result<String, Failure> {
        if file != "-" {
            let path = expand_home(Path::new(file));
            return std::fs::read_to_string(&path)
                .map_err(|error| Failure::usage(format!("cannot read {}: {error}", quoted(&path))));
        }
        if std::mem::replace(&mut self.has_read_input, true) {
            return Err(Failure::usage("standard input can be given to one argument only"));
        }
        let mut text = String::new();
        std::io::stdin()
            .lock()
            .read_to_string(&mut text)
            .map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            read(&words).err().expect("it is wrong").what().to_owned()
        };
        assert_eq!(wrong(&["text"]), "`text` is no argument");
        assert_eq!(wrong(&["=x"]), "`=x` is no argument");
        assert!(wrong(&["text:={"]).starts_with("the value of `text` is not JSON"));
        assert!(wrong(&["text=@/no/such/file"]).starts_with("cannot read /no/such/file"));
        assert!(wrong(&["text:=@/no/such/file"]).starts_with("cannot read /no/such/file"));
        assert_eq!(wrong(&["n=1", "n:=2"]), "`n` is given twice");
        assert!(of_json("[1]").unwrap_err().what().starts_with("--args is no JSON object"));
        assert_eq!(of_json(r#"{"a":1,"b":2,"a":3}"#).unwrap_err().what(), "`a` is given twice");
    }
}
