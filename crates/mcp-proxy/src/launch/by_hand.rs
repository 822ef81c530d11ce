//! `run` on a terminal, where no client speaks: the entry for a client's config, and `proxy` in its place.

use std::ffi::OsString;

use mcp_wire::visible::visible;

use crate::cli::{RunArgs, UrlTransportArg};

/// One line for a person who typed these words.
pub(crate) fn advice(args: &RunArgs, words: &[OsString]) -> String {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (program, ours) = words.split_first().map_or(("mcp-proxy", &[][..]), |(program, ours)| (program, ours));
    let config = format!("\"command\": {}, \"args\": {}", json(&for_config(program)), json(ours));
    let proxy = shell_words::join([program.to_owned()].into_iter().chain(proxy(args, ours)));
    let line = format!(
        "standard input is a terminal, not a client; a client's config takes {config}; to watch it here: {proxy}"
    );
    visible(&line).to_string()
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A client starts programs from any directory.
fn for_config(program: &str) -> String {
    let is_path = program.contains('/');
    let absolute = std::env::current_exe().ok().filter(|_| is_path);
    absolute.map_or(program.to_owned(), |path| path.to_string_lossy().into_owned())
}

/// The words of `proxy` with the server and the options of a `run`.
fn proxy(args: &RunArgs, ours: &[String]) -> Vec<String> {
    let options = ours.len().saturating_sub(args.command.len());
    let mut options = ours[..options].iter().filter(|word| *word != "--");
    let (mut words, mut has_command) = (Vec::new(), false);
    while let Some(word) = options.next() {
        match word.as_str() {
            "run" if !has_command => {
                has_command = true;
                words.push("proxy".to_owned());
            }
            "--url" | "--transport" => drop(options.next()),
            other if other.starts_with("--url=") || other.starts_with("--transport=") => {}
            other => words.push(other.to_owned()),
        }
    }
    let transport = match (&args.url, args.transport) {
        (None, _) => "stdio",
        (Some(_), Some(UrlTransportArg::Sse)) => "sse",
        (Some(_), _) => "streamable-http",
    };
    words.extend(["--transport".to_owned(), transport.to_owned()]);
    words.extend(match &args.url {
        Some(url) => ["--target-url".to_owned(), url.clone()],
        None => {
            let command = args.command.iter().map(|word| word.to_string_lossy());
            ["--target-command".to_owned(), shell_words::join(command)]
        }
    });
    words
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(subcommand)]
        command: Form,
    }

    #[derive(clap::Subcommand)]
    enum Form {
        Run(RunArgs),
    }

    #[track_caller]
    fn check(typed: &str, config: &str, proxy: &str) {
        let words = shell_words::split(typed).unwrap();
        let Form::Run(args) = Words::parse_from(&words).command;
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        let advice = advice(&args, &words);
        assert_eq!(advice.lines().count(), 1, "{advice}");
        let (before, here) = advice.split_once("; to watch it here: ").unwrap();
        assert_eq!(before.split_once("takes ").unwrap().1, config);
        assert_eq!(here, proxy);
    }

    #[test]
    fn a_run_becomes_a_config_and_a_proxy() {
        check(
            "mcp-proxy run -- npx 'a server' -q",
            r#""command": "mcp-proxy", "args": ["run","--","npx","a server","-q"]"#,
            r#"mcp-proxy proxy --transport stdio --target-command 'npx '\''a server'\'' -q'"#,
        );
        check(
            "mcp-proxy run --rules rules.toml srv run -- --url",
            r#""command": "mcp-proxy", "args": ["run","--rules","rules.toml","srv","run","--","--url"]"#,
            "mcp-proxy proxy --rules rules.toml --transport stdio --target-command 'srv run -- --url'",
        );
    }

    #[test]
    fn an_address_keeps_its_transport() {
        check(
            "mcp-proxy run --url http://h/mcp --name x",
            r#""command": "mcp-proxy", "args": ["run","--url","http://h/mcp","--name","x"]"#,
            "mcp-proxy proxy --name x --transport streamable-http --target-url http://h/mcp",
        );
        check(
            "mcp-proxy run --url=http://h/sse --transport SSE",
            r#""command": "mcp-proxy", "args": ["run","--url=http://h/sse","--transport","SSE"]"#,
            "mcp-proxy proxy --transport sse --target-url http://h/sse",
        );
    }
}
