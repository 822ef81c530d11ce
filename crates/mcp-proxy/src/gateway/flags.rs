//! The proxy tool on the command line: to be given to clients, or to be looked behind.

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use mcp_gateway::settings::{ProxyToolMode, ProxyToolSettings, UnwrapTool};
use mcp_proxy_tool::definition::DEFAULT_NAME;
use mcp_proxy_tool::shape::Dialect;

use super::ids;
use crate::failure::Failure;

/// What every form of the proxy takes.
#[derive(Args, Clone, Default)]
pub struct ProxyToolArgs {
    /// Give clients a tool that lists, describes and calls whatever there is [default name: proxy]. In front of one
    /// server, its exit code is not passed on then
    #[arg(long, value_name = "NAME", num_args = 0..=1, value_parser = tool_name)]
    pub proxy_tool: Option<Option<String>>,
    /// Whether clients see that tool beside everything else, or nothing but the tool [default: beside]
    #[arg(long, value_enum, value_name = "beside|instead", hide_possible_values = true)]
    pub proxy_tool_mode: Option<ProxyToolModeArg>,
    /// How that tool spells the types of what it lists: `magg` for the client of Magg [default: extension]
    #[arg(long, value_enum, value_name = "extension|magg", hide_possible_values = true)]
    pub proxy_tool_dialect: Option<ProxyToolDialectArg>,
}

/// What those take that stand in front of one server.
#[derive(Args, Clone, Default)]
pub struct UnwrapArgs {
    /// Show what the server has behind a proxy tool of its own as the server's; without a name the tool is found.
    /// The server's exit code is not passed on then
    #[arg(long, value_name = "NAME", num_args = 0..=1, value_parser = tool_name)]
    pub unwrap_proxy_tool: Option<Option<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProxyToolModeArg {
    Beside,
    Instead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProxyToolDialectArg {
    Extension,
    Magg,
}

impl ProxyToolArgs {
    /// What counts together with what a file says: each thing that is given here counts before it.
    pub fn over(&self, file: Option<ProxyToolSettings>) -> Result<Option<ProxyToolSettings>, Failure> {
        let mode = self.proxy_tool_mode.map(|mode| match mode {
            ProxyToolModeArg::Beside => ProxyToolMode::Beside,
            ProxyToolModeArg::Instead => ProxyToolMode::Instead,
        });
        let dialect = self.proxy_tool_dialect.map(|dialect| match dialect {
            ProxyToolDialectArg::Extension => Dialect::Extension,
            ProxyToolDialectArg::Magg => Dialect::Magg,
        });
        let (file_mode, file_dialect) = file.as_ref().map(|file| (file.mode, file.dialect)).unzip();
        let name = file.map(|file| file.name);
        let name = match (&self.proxy_tool, name) {
            (Some(Some(given)), _) => given.clone(),
            (_, Some(name)) => name,
            (Some(None), None) => DEFAULT_NAME.to_owned(),
            (None, None) if mode.is_some() || dialect.is_some() => {
                let flag = if mode.is_some() { "--proxy-tool-mode" } else { "--proxy-tool-dialect" };
                return Err(Failure::usage(format!("{flag} is for a proxy tool, and there is none"))
                    .hint("give --proxy-tool too"));
            }
            (None, None) => return Ok(None),
        };
        let (mode, dialect) = (mode.or(file_mode).unwrap_or_default(), dialect.or(file_dialect).unwrap_or_default());
        Ok(Some(ProxyToolSettings { name, mode, dialect }))
    }
}

impl UnwrapArgs {
    pub fn tool(&self) -> Option<UnwrapTool> {
        self.unwrap_proxy_tool.as_ref().map(|name| name.clone().map_or(UnwrapTool::Found, UnwrapTool::Named))
    }
}

/// A word behind one of these flags is the name of a tool, and would be the program to whoever leaves the name out. So
/// a command begins with dashes where one stands there. `words` are all of the command line.
pub fn check_names(command: &[OsString], words: &[OsString]) -> Result<(), Failure> {
    let ours = &words[..words.len().saturating_sub(command.len())];
    if command.is_empty() || ours.last().is_some_and(|word| word == "--") {
        return Ok(());
    }
    let is_flag = |word: &OsString| word == "--proxy-tool" || word == "--unwrap-proxy-tool";
    match ours.windows(2).find(|pair| is_flag(&pair[0]) && !pair[1].to_string_lossy().starts_with('-')) {
        Some([flag, name]) => {
            let (flag, name) = (flag.to_string_lossy(), name.to_string_lossy());
            Err(Failure::usage(format!("`{name}` may be the name of the tool, or the program"))
                .hint(format!("write {flag}={name}, or `--` before the program")))
        }
        _ => Ok(()),
    }
}

fn tool_name(name: &str) -> Result<String, String> {
    ids::check_tool(name).map(|()| name.to_owned()).map_err(|why| format!("no tool can be called that: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, mode: ProxyToolMode) -> Option<ProxyToolSettings> {
        Some(ProxyToolSettings { name: name.into(), mode, dialect: Dialect::Extension })
    }

    #[track_caller]
    fn check(
        proxy_tool: Option<Option<&str>>,
        proxy_tool_mode: Option<ProxyToolModeArg>,
        file: Option<ProxyToolSettings>,
        expected: Option<ProxyToolSettings>,
    ) {
        let proxy_tool = proxy_tool.map(|name| name.map(str::to_owned));
        let args = ProxyToolArgs { proxy_tool, proxy_tool_mode, proxy_tool_dialect: None };
        assert_eq!(args.over(file).expect("it is right"), expected);
    }

    #[test]
    fn the_command_line_counts_before_the_file() {
        let (beside, instead) = (ProxyToolMode::Beside, ProxyToolMode::Instead);
        check(None, None, None, None);
        check(None, None, tool("a", instead), tool("a", instead));
        check(Some(None), None, None, tool("proxy", beside));
        check(Some(None), None, tool("a", instead), tool("a", instead));
        check(Some(Some("b")), None, tool("a", instead), tool("b", instead));
        check(Some(Some("b")), Some(ProxyToolModeArg::Instead), None, tool("b", instead));
        check(None, Some(ProxyToolModeArg::Beside), tool("a", instead), tool("a", beside));
        let (mode, dialect) = (Some(ProxyToolModeArg::Instead), Some(ProxyToolDialectArg::Magg));
        for (proxy_tool_mode, proxy_tool_dialect) in [(mode, None), (None, dialect)] {
            let args = ProxyToolArgs { proxy_tool: None, proxy_tool_mode, proxy_tool_dialect };
            assert!(args.over(None).is_err());
            let told = args.over(tool("a", beside)).expect("it is right").expect("there is one");
            let expected =
                if dialect.is_some() && proxy_tool_mode.is_none() { Dialect::Magg } else { Dialect::Extension };
            assert_eq!(told.dialect, expected);
        }
    }

    #[test]
    fn a_name_apart_from_its_flag_needs_dashes_before_the_program() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let check = |line: &str, command: &str| {
            let command = if command.is_empty() { Vec::new() } else { words(command) };
            check_names(&command, &words(line)).map_err(|failure| failure.advice().unwrap_or_default().to_owned())
        };
        assert_eq!(check("run --proxy-tool all -- npx x", "npx x"), Ok(()));
        assert_eq!(check("run --proxy-tool -- npx -- x", "npx -- x"), Ok(()));
        assert_eq!(check("run --proxy-tool=all npx x", "npx x"), Ok(()));
        assert_eq!(check("run --proxy-tool all --url u", ""), Ok(()));
        assert_eq!(check("run -q npx --proxy-tool x", "npx --proxy-tool x"), Ok(()));
        let advice = Err("write --proxy-tool=npx, or `--` before the program".to_owned());
        assert_eq!(check("run --proxy-tool npx x", "x"), advice);
    }
}
