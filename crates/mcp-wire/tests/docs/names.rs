//! Names of code in documents: each exists in the code.

use std::collections::HashSet;

use crate::{ROOT, Source, sources};

const PAGES: &[&str] = &["ARCHITECTURE.md", "docs/life-of-a-message.md"];

/// Maps are read in one sitting: twelve kilobytes.
const MAP_BYTES_MAX: u64 = 12 * 1024;

/// Words of the protocol, of HTTP and of the standard library that look like names of code.
const NO_CODE: &[&str] = &["Authorization", "Host", "Origin", "endpoint", "initialize", "process::exit"];

/// What one file has: the names that it declares, and all of its words outside of comments.
struct File {
    path: String,
    declared: HashSet<String>,
    words: HashSet<String>,
}

impl File {
    fn new(source: &Source) -> Self {
        let mut file = Self { path: source.path.clone(), declared: HashSet::new(), words: HashSet::new() };
        for line in source.text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
            let words: Vec<&str> = line.split(|c| !is_name_char(c)).filter(|word| !word.is_empty()).collect();
            file.words.extend(words.iter().map(|word| (*word).to_owned()));
            let items = words.windows(2).filter(|pair| ITEMS.contains(&pair[0])).map(|pair| pair[1]);
            file.declared.extend(items.chain(variant_or_field(line)).map(str::to_owned));
        }
        file
    }

    /// Whether the file declares `name`, and knows the type or module that `owner` names.
    fn declares(&self, owner: &str, name: &str) -> bool {
        let is_of_module = || self.path.split(['/', '.']).any(|part| part == owner);
        self.declared.contains(name) && (owner.is_empty() || self.words.contains(owner) || is_of_module())
    }
}

const ITEMS: &[&str] = &["fn", "struct", "enum", "trait", "type", "const", "static", "mod"];

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn variant_or_field(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub").map_or(line, |rest| rest.trim_start_matches(['(', ' ']));
    let line = ["crate) ", "super) "].iter().find_map(|scope| line.strip_prefix(scope)).unwrap_or(line);
    let (name, rest) = line.split_at(line.find(|c| !is_name_char(c))?);
    let is_declared = [",", ":", "(", " {"].iter().any(|next| rest.starts_with(next)) && !rest.starts_with("::");
    (is_declared && !name.is_empty()).then_some(name)
}

/// A path in the code, or a name with the types and modules in front of it.
fn looks_like_code(text: &str) -> bool {
    let is_name =
        |part: &str| part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && part.chars().all(is_name_char);
    is_path(text) || (text.split("::").all(is_name) && !NO_CODE.contains(&text))
}

fn is_path(text: &str) -> bool {
    text.ends_with(".rs") || text.starts_with("crates/") || text.contains("/src/")
}

fn exists(name: &str, files: &[File]) -> bool {
    if is_path(name) {
        let path = name.strip_prefix("crates/").unwrap_or(name).trim_end_matches('/');
        let ends = format!("/{path}");
        let begins = format!("{path}/");
        return files
            .iter()
            .any(|file| file.path == path || file.path.ends_with(&ends) || file.path.starts_with(&begins));
    }
    let (owner, last) = name.rsplit_once("::").unwrap_or(("", name));
    let owner = owner.rsplit("::").next().unwrap_or_default();
    files.iter().any(|file| file.declares(owner, last))
}

#[test]
fn maps_are_short() {
    for page in ["ARCHITECTURE.md", "docs/life-of-a-message.md"] {
        let bytes = std::fs::metadata(format!("{ROOT}/{page}")).unwrap().len();
        assert!(bytes <= MAP_BYTES_MAX, "{page} has {bytes} bytes, and {MAP_BYTES_MAX} at most");
    }
}

#[test]
fn names_in_documents_exist() {
    let files: Vec<File> = sources().iter().map(File::new).collect();
    let mut missing = Vec::new();
    for page in PAGES {
        let text = std::fs::read_to_string(format!("{ROOT}/{page}")).unwrap();
        let prose = text.split("```").step_by(2).collect::<String>();
        let quoted = prose.split('`').skip(1).step_by(2).map(|name| name.trim_end_matches("()"));
        let unknown = quoted.filter(|name| looks_like_code(name) && !exists(name, &files));
        missing.extend(unknown.map(|name| format!("{page}: `{name}`")));
    }
    assert!(missing.is_empty(), "names that the code does not have:\n{}", missing.join("\n"));
}
