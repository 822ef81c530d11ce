//! The reference of a gateway's configuration, written from the table of keys: `docs/config.md`.

use super::keys::{Key, PROXY_TOOL, SERVER, TOKEN, TOOL, TOP, Takes};
use super::world::{PASSED, PASSED_PREFIXES};

/// For `docs/config.md`.
pub(super) fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    for (title, keys) in [
        ("## The gateway", TOP),
        ("## A server", SERVER),
        ("## A tool of a server", TOOL),
        ("## The proxy tool", PROXY_TOOL),
        ("## A token", TOKEN),
    ] {
        page.push_str(&format!("\n{title}\n\n| key | takes | default | |\n|---|---|---|---|\n"));
        page.extend(keys.iter().map(row));
    }
    let passed: Vec<String> = PASSED
        .iter()
        .map(|name| format!("`{name}`"))
        .chain(PASSED_PREFIXES.iter().map(|prefix| format!("`{prefix}*`")))
        .collect();
    page.push_str(&REST.replace("PASSED", &filled(&passed.join(", "))));
    page
}

fn row(key: &Key) -> String {
    let default = if key.default.is_empty() { "" } else { &format!("`{}`", key.default) };
    let default = if key.default.contains(' ') { key.default } else { default };
    format!("| `{}` | {} | {default} | {} |\n", key.name, takes(key.takes), key.about)
}

fn takes(takes: Takes) -> String {
    match takes {
        Takes::Text => "text".into(),
        Takes::Secret => "text that is not empty".into(),
        Takes::Flag => "`true`, `false`".into(),
        Takes::Duration => "a duration".into(),
        Takes::DurationOrOff => "a duration, or `0`".into(),
        Takes::Count { min, .. } => format!("a number from {min}"),
        Takes::Words(words) => {
            let words = words.iter().filter(|word| !word.contains(|c: char| c.is_ascii_uppercase()));
            words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
        Takes::Texts => "a list of text".into(),
        Takes::Pairs => "a table of text".into(),
        Takes::Command => "a list of words, or a program".into(),
        Takes::Listen => "`stdio`, a port, an address".into(),
        Takes::Notifications => "`concerned`, `all`, `nobody`, or a list of ids".into(),
        Takes::Tool => "`true`, `false`, or a name".into(),
        Takes::ToolWith(_) => "`true`, `false`, a name, or a table".into(),
        Takes::Policy => "a table, or a path".into(),
        Takes::List(_) => "a list of tables".into(),
        Takes::Named(_) => "a table of tables".into(),
        Takes::Servers(_) => "a list, or a table by id".into(),
    }
}

/// Lines that are not too long.
fn filled(text: &str) -> String {
    const WIDTH: usize = 120;
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split(' ') {
        if line.len() + 1 + word.len() > WIDTH {
            lines.push_str(&format!("{line}\n"));
            line.clear();
        }
        let blank = if line.is_empty() { "" } else { " " };
        line.push_str(&format!("{blank}{word}"));
    }
    lines + &line
}

const INTRODUCTION: &str = "\
# Configuration

`mcp-proxy serve --config FILE` puts the servers of a file behind one endpoint. The file is a gateway's own, described
here, or that of any client as it is ([below](#files-of-clients)). It is JSON (comments and trailing commas are fine),
TOML or YAML, by the end of its name.

```toml
listen = 8900
auth_token = \"${env:GATEWAY_TOKEN}\"

[[servers]]
id = \"files\"
command = [\"npx\", \"-y\", \"@modelcontextprotocol/server-filesystem\", \"/srv\"]

[[servers]]
id = \"tracker\"
url = \"https://tracker.example/mcp\"
headers = { Authorization = \"Bearer ${file:~/.tracker-token}\" }
```

- `mcp-proxy config check FILE` says what a file is taken for, which servers it has, and what is wrong, with the line and
  what was probably meant. It ends with 2 if the file cannot be used, and if the program of an enabled server is not on
  its `PATH` or cannot be executed. `serve` warns of such a server and starts without it.
- `mcp-proxy config show FILE` prints what counts, every default included, in the gateway's own form (`--json`, `--toml`,
  `--yaml`). Secrets are masked; what stands for one, such as `${env:NAME}`, is not. So it also turns a client's file
  into a gateway's own.
- `mcp-proxy config schema` prints the JSON Schema, for editors.

A key that is not in these tables is an error, and so is one that comes twice. `null` is the same as leaving a key out.
A duration is a number of seconds (`0.5`), or text with a unit: `\"500ms\"`, `\"30s\"`, `\"5m\"`, `\"1h\"`; up to a day.
";

const REST: &str = "
The defaults are those of a gateway for people at work. A command gets 30 s to introduce itself, and an address 15 s:
`npx` and `uvx` download a server before it can say anything. `in_flight` is higher for an address because it is not one
pipe that everything waits for. `max_message_bytes` is what the other forms of the proxy take, too.

## What stands for something else

| written | is |
|---|---|
| `${env:NAME}` | the variable of the gateway's environment |
| `${env:NAME:-something}` | the same, or `something` where it is not set or empty |
| `${file:PATH}` | the text of the file, without the end of its last line; seen from the directory of the configuration |
| `$${` | `${` |

These work in every text of the file but the rules. A variable that is not set or empty, a file that is missing or empty,
and a header or a token without a value are errors: nobody sends an empty secret. For a server that takes no part they
are only told. What is expanded is never shown: command lines and addresses are seen as they are written. A file with a
secret that others on the machine can read is told.

## The environment of servers

A command gets its `env`, what `pass_env` names, and of the gateway's own environment only:

PASSED

Everything else may be a secret of somebody else's. Variables for proxies are in because nothing could be downloaded
without them; take care that they hold no password, or set them per server.

## Files of clients

What a file is shows in what is in it, not in its name.

| it has | so it is of |
|---|---|
| `servers`, a list; or a table without `inputs` and `type` | a gateway: the form above |
| `mcpServers`, a table | Claude Desktop, Claude Code (`.mcp.json`), Cursor, Windsurf, Gemini, Copilot, Cline, Kiro, LM Studio and others |
| `projects` with `mcpServers` in them | Claude Code (`~/.claude.json`): those for everywhere, and those of the directory that the gateway is started in or the nearest above it, which count first |
| `mcpServers`, a list | Continue |
| `amp.mcpServers` | Amp |
| `servers`, a table, with `inputs` or with `type` in its entries; also below `mcp` | VS Code |
| `mcp_servers`, a table | Codex |
| `mcp_servers`, a list | Mistral Vibe |
| `context_servers` | Zed |
| `mcp` | opencode |
| `extensions` | Goose |
| `packages` or `remotes` | a registry (`server.json`): the first npm, PyPI or OCI package, or else the first address |

`.mcpb` bundles are not read.

In such a file keys that a gateway does not know are the client's own, and no error. `config check` tells which of them
stand in a server's entry, and what was meant if one is near to a known key. If a server has no address because of it
(`comand`), that is an error. Servers that are a part of the client, such as Goose's built-in extensions, are left out.
Lists of tools that a client may or may not use are kept (`enabled_tools`, `disabled_tools`).

- **Ids.** What a client calls a server becomes its id: characters other than letters, digits, `-` and `_` become `-`,
  `__` becomes `_`, and a `_` at the end `-`. Two servers that would have one id are an error.
- **Variables.** `${env:NAME}` and `${file:PATH}` work in all of them. `${NAME}` and `${NAME:-something}` work in files
  with `mcpServers`, and where `env` has nothing but `$NAME` for a value; in a command `${NAME}` stays as it is if there
  is no such variable, for a shell may be meant. `${workspaceFolder}` is the directory that the gateway was started in and
  `${userHome}` the home, there and in VS Code's. `{env:NAME}` and `{file:PATH}` work in opencode's, and
  `${{ secrets.NAME }}` is the variable `NAME` in Continue's.
- **Inputs.** VS Code asks its user for `${input:api-key}`. A gateway takes `--input api-key=VALUE`, else the variable
  `api-key` or `API_KEY`, else the input's `default`.
- **Timeouts.** `timeout` is seconds to some clients and milliseconds to others. Where the file does not tell whose it is,
  1000 and more are milliseconds.
";
