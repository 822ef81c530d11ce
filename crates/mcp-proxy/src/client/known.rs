//! Servers that are found by their name alone: those in the files of the clients that somebody uses. Files of projects
//! are not among them, since nobody has agreed to what a directory from elsewhere wants to have started.

use std::path::{Path, PathBuf};

use mcp_transport::connect::ServerTarget;

use crate::config::expand_home;
use crate::failure::{Failure, quoted};
use crate::gateway::world::World;
use crate::gateway::{ServerSettings, load};

/// Where clients keep their servers.
const FILES: [&str; 18] = [
    "~/.claude.json",
    "~/.config/Claude/claude_desktop_config.json",
    "~/Library/Application Support/Claude/claude_desktop_config.json",
    "~/.cursor/mcp.json",
    "~/.config/Code/User/mcp.json",
    "~/.copilot/mcp-config.json",
    "~/.codex/config.toml",
    "~/.gemini/settings.json",
    "~/.gemini/antigravity/mcp_config.json",
    "~/.codeium/windsurf/mcp_config.json",
    "~/.config/zed/settings.json",
    "~/.kiro/settings/mcp.json",
    "~/.lmstudio/mcp.json",
    "~/.config/amp/settings.json",
    "~/.config/opencode/opencode.json",
    "~/.config/goose/config.yaml",
    "~/.continue/config.yaml",
    "~/.vibe/config.toml",
];

/// The server of this name, and the file that has it.
pub(super) fn find(name: &str, world: &World) -> Result<(ServerSettings, PathBuf), Failure> {
    let mut found: Vec<(ServerSettings, PathBuf)> = Vec::new();
    let (mut others, mut unread) = (Vec::new(), Vec::new());
    for file in FILES.iter().map(|file| expand_home(Path::new(file))).filter(|file| file.is_file()) {
        let Ok(loaded) = load::load(&file, world) else {
            unread.push(quoted(&file));
            continue;
        };
        for server in loaded.config.settings.servers {
            match &*server.id == name {
                true => found.push((server, file.clone())),
                false => others.push(server.id),
            }
        }
    }
    let is_another = |(server, _): &(ServerSettings, PathBuf)| shown(server) != shown(&found[0].0);
    if found.iter().any(is_another) {
        let files: Vec<String> = found.iter().map(|(_, file)| quoted(file)).collect();
        return Err(Failure::usage(format!(
            "several files have a server `{name}`, and not the same: {}",
            files.join(", ")
        ))
        .hint("give the file that is meant with --config"));
    }
    found.into_iter().next().ok_or_else(|| not_found(name, &others, &unread))
}

fn not_found(name: &str, others: &[std::sync::Arc<str>], unread: &[String]) -> Failure {
    let mut text = format!("no client's file has a server `{name}`");
    if !unread.is_empty() {
        text.push_str(&format!("; not all can be read: {}", unread.join(", ")));
    }
    let hint = match mcp_filter::nearest(name, others.iter().map(|id| &**id)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "give --config FILE --server NAME, --url URL, or -- CMD".into(),
    };
    Failure::usage(text).hint(hint)
}

/// What of it could be another's.
fn shown(server: &ServerSettings) -> &str {
    match &server.target {
        ServerTarget::Command { shown, .. } => shown,
        ServerTarget::Url { given, .. } => given,
    }
}
