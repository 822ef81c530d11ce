//! Pages of the documents that hints send people to. They are in the program, because an installed one has no `docs`.

pub(crate) const CONFIGURATION: &str = include_str!("../../../docs/config.md");
pub(crate) const ERRORS: &str = include_str!("../../../docs/errors.md");
pub(crate) const OPERATIONS: &str = include_str!("../../../docs/operations.md");
pub(crate) const RULES: &str = include_str!("../../../docs/policy.md");

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Lines of code below `dir` that name a file of the documents.
    fn naming_files(dir: &Path, found: &mut Vec<String>) {
        for path in std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && name != "tests" {
                naming_files(&path, found);
            } else if name.ends_with(".rs") && name != "tests.rs" {
                let text = std::fs::read_to_string(&path).expect("it is text");
                let is_said = |line: &&str| {
                    line.contains("docs/")
                        && line.contains(".md")
                        && !line.trim_start().starts_with("//")
                        && !["include_str!", "CARGO_MANIFEST_DIR", "assert"].iter().any(|word| line.contains(word))
                };
                found.extend(text.lines().filter(is_said).map(|line| format!("{}: {line}", path.display())));
            }
        }
    }

    #[test]
    fn nothing_that_is_said_names_a_file_of_the_documents() {
        let crates = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let mut found = Vec::new();
        for entry in std::fs::read_dir(crates).expect("the crates are there") {
            naming_files(&entry.expect("an entry").path().join("src"), &mut found);
        }
        assert!(found.is_empty(), "an installed program has no such files: {found:#?}");
    }
}
