//! What a configuration may ask of the machine around it: variables, directories, and what servers get of
//! the environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Variables of the gateway's own environment that every server gets. Whatever else is in it may be a
/// secret of somebody else's: a server that needs it is given it by name.
pub const PASSED: &[&str] = &[
    // Who and where.
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "TZ",
    "TERM",
    "LANG",
    "LANGUAGE",
    // The way out, without which `npx` and `uvx` fetch nothing.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    // Where programs and their caches are.
    "NVM_DIR",
    "NVM_BIN",
    "VOLTA_HOME",
    "PNPM_HOME",
    "NPM_CONFIG_CACHE",
    "npm_config_cache",
    "UV_CACHE_DIR",
    "UV_PYTHON_INSTALL_DIR",
    "UV_TOOL_DIR",
    "DOCKER_HOST",
    "DOCKER_CONFIG",
    // The screen, for servers that work a browser.
    "DISPLAY",
    "WAYLAND_DISPLAY",
];
/// And those that begin so.
pub const PASSED_PREFIXES: &[&str] = &["LC_", "XDG_"];

#[derive(Clone, Debug, Default)]
pub struct World {
    pub variables: BTreeMap<OsString, OsString>,
    /// Where the gateway was started.
    pub cwd: PathBuf,
    /// What a client would ask its user for, by name.
    pub inputs: Vec<(String, String)>,
}

impl World {
    /// The one around this process.
    pub fn own(inputs: &[(String, String)]) -> Self {
        let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        Self { variables: std::env::vars_os().collect(), cwd, inputs: inputs.to_vec() }
    }

    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(OsStr::new(name)).and_then(|value| value.to_str())
    }

    pub fn input(&self, name: &str) -> Option<&str> {
        self.inputs.iter().rev().find(|(input, _)| input == name).map(|(_, value)| value.as_str())
    }

    pub fn home(&self) -> Option<&str> {
        self.variable("HOME").filter(|home| !home.is_empty())
    }

    /// A path as a file in `dir` writes it.
    pub fn path(&self, written: &str, dir: &Path) -> PathBuf {
        match (written.strip_prefix('~'), self.home()) {
            (Some(""), Some(home)) => PathBuf::from(home),
            (Some(rest), Some(home)) if rest.starts_with('/') => Path::new(home).join(&rest[1..]),
            _ => self.cwd.join(dir).join(written),
        }
    }

    /// The whole environment of a server: what every one gets, what it is passed by name, and its own.
    pub fn for_server<'a>(
        &self,
        passed: &[String],
        own: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Vec<(OsString, OsString)> {
        let is_passed = |name: &str| {
            PASSED.contains(&name)
                || PASSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                || passed.iter().any(|pass| pass == name)
        };
        // Functions that a shell exports are programs, not settings.
        let is_function = |value: &OsStr| value.as_encoded_bytes().starts_with(b"()");
        let mut environment: BTreeMap<OsString, OsString> = self
            .variables
            .iter()
            .filter(|(name, value)| name.to_str().is_some_and(is_passed) && !is_function(value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        environment.extend(own.into_iter().map(|(name, value)| (name.into(), value.into())));
        environment.into_iter().collect()
    }
}
