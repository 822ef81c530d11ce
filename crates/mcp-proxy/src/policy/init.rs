//! `policy init`: a rules file to begin with.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::config::expand_home;
use crate::failure::{Failure, exit, quoted};
use crate::report::Page;

#[derive(Args)]
pub(crate) struct InitArgs {
    /// Where to write it; .toml, .yaml, .yml, .json or .jsonc says in which format
    #[arg(default_value = "rules.toml")]
    file: PathBuf,
}

/// In the format that the file's name tells.
fn starter(path: &Path) -> Option<&'static str> {
    match path.extension()?.to_str()? {
        "toml" => Some(include_str!("starter/rules.toml")),
        "yaml" | "yml" => Some(include_str!("starter/rules.yaml")),
        "json" | "jsonc" => Some(include_str!("starter/rules.jsonc")),
        _ => None,
    }
}

pub(super) fn init(args: &InitArgs, page: &mut Page) -> Result<(), Failure> {
    let path = expand_home(&args.file);
    let text = starter(&path).ok_or_else(|| {
        Failure::usage(format!("cannot tell by its name in which format {} should be", quoted(&path)))
            .hint("call it .toml, .yaml, .yml, .json or .jsonc")
    })?;
    write_new(&path, text)?;
    let path = quoted(&path);
    page.line(&format!("wrote {path}; change it, then look at it with `mcp-proxy policy check {path}`"))?;
    page.line(&format!("use it with `mcp-proxy run --rules {path} -- SERVER`"))?;
    Ok(())
}

fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::usage(format!("there is a file {} already, and it stays", quoted(path))).hint("give another name")
        }
        _ => Failure::new(exit::CANNOT_RUN, format!("cannot write {}: {error}", quoted(path))),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::starter;
    use crate::config::Source;
    use crate::policy::file;
    use crate::policy::service::Naming;

    /// The same rules in every format, and nothing wrong with any.
    #[test]
    fn the_starters_are_right_and_the_same() {
        let read = |name: &str| {
            let source = Source::for_test(name, starter(Path::new(name)).unwrap());
            let rules = file::of(&source, Naming::default()).unwrap_or_else(|failure| panic!("{failure}")).rules;
            let shown = rules.rules.iter().map(|rule| {
                let filter = rule.filter.to_string().replace('\'', "\"");
                format!("{} {filter} {:?} {:?} {:?}", rule.name, rule.verdict, rule.message, rule.timeout)
            });
            (shown.collect::<Vec<_>>(), rules.default)
        };
        let toml = read("rules.toml");
        assert_eq!(toml.0.len(), 4);
        assert_eq!(toml, read("rules.yaml"));
        assert_eq!(toml, read("rules.json"));
    }

    /// A client that gives up before the rule does never hears why. Nothing is to be noted of a new file, either.
    #[test]
    fn rules_that_ask_time_out_before_clients_do() {
        let source = Source::for_test("rules.toml", starter(Path::new("rules.toml")).unwrap());
        let read = file::of(&source, Naming::default()).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(read.remarks, [""; 0]);
        let rules = read.rules;
        let timeouts: Vec<_> = rules.rules.iter().filter_map(|rule| rule.timeout).collect();
        assert_eq!(timeouts, [mcp_engine::intercept::HOLD_FOR; 2]);
    }
}
