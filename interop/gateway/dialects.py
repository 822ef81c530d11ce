"""The same servers in the files of different clients: each is read as it stands, and the tools are the same."""

import json
from pathlib import Path

from harness.peers import EVERYTHING, MEMORY, NODE
from harness.processes import RunFailed

from .spelling import tools_of

WORDS = {"everything": [EVERYTHING, "stdio"], "memory": [MEMORY]}


def env(stage):
    return {"MEMORY_FILE_PATH": str(Path(stage.home.path, "memory.jsonl"))}


def codex(stage):
    """As `codex mcp add` leaves it, among what else is there."""
    lines = ['model = "gpt-5-codex"', 'approval_policy = "on-request"', ""]
    lines += [f"[projects.{json.dumps(stage.home.path)}]", 'trust_level = "trusted"']
    for server, words in WORDS.items():
        lines += ["", f"[mcp_servers.{server}]", f"command = {json.dumps(NODE)}", f"args = {json.dumps(words)}"]
        lines += ["startup_timeout_sec = 30.0"]
    lines += ["", "[mcp_servers.memory.env]", *(f"{key} = {json.dumps(value)}" for key, value in env(stage).items())]
    return "config.toml", "\n".join(lines) + "\n"


def table(stage, extra=None):
    entries = {server: (extra or {}) | {"command": NODE, "args": words} for server, words in WORDS.items()}
    entries["memory"]["env"] = env(stage)
    return entries


def claude(stage):
    return "claude_desktop_config.json", json.dumps({"globalShortcut": "", "mcpServers": table(stage)}, indent=2)


def vscode(stage):
    servers = json.dumps(table(stage, {"type": "stdio"}), indent=2)
    return "mcp.json", f'{{\n  // what the editor asks for\n  "inputs": [],\n  "servers": {servers},\n}}\n'


def zed(stage):
    servers = json.dumps(table(stage, {"source": "custom"}), indent=2)
    return "settings.json", f'// Zed settings\n{{\n  "theme": "One Dark",\n  "context_servers": {servers},\n}}\n'


def own(stage):
    """The gateway's own, as it was first asked for."""
    servers = [{"id": server, "command": [NODE, *words]} for server, words in WORDS.items()]
    servers[1] |= {"env": env(stage), "startup_timeout": 30, "shutdown_grace": 2, "stdio_mode": "newline"}
    others = {"log_level": "info", "structured_logging": True, "response_timeout": 30}
    others |= {"healthcheck_interval": 60, "healthcheck_timeout": 5}
    return "proxy_config.json", json.dumps({"servers": servers} | others, indent=2)


def read(stage):
    """The play: `everything__*` and `memory__*` come out, whoever's the file is."""
    expected = [f"everything__{tool}" for tool in tools_of(stage, [NODE, *WORDS["everything"]])]
    expected += [f"memory__{tool}" for tool in tools_of(stage, [NODE, *WORDS["memory"]])]
    for dialect in (codex, claude, vscode, zed, own):
        name, text = dialect(stage)
        folder = Path(stage.home.path, dialect.__name__)
        folder.mkdir()
        (folder / name).write_text(text)
        tools = list(tools_of(stage, stage.serve(folder / name, "stdio")))
        if tools != expected:
            raise RunFailed(f"{dialect.__name__} gives {tools}, not {expected}")
    # The short form, in which the gateway is started by whoever takes it for a server.
    if list(tools_of(stage, [stage.binary, "--config", str(folder / name)])) != expected:
        raise RunFailed("--config alone gives something else")
    stage.close(stage.running)
