"""The real peers: where they are installed, and how to start each of them on each transport."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
TOOLS = Path(os.environ.get("MCP_INTEROP_DIR") or Path(os.environ.get("TMPDIR") or "/tmp", "mcp-proxy-interop")).resolve()
SHARED = Path(os.environ.get("MCP_SHARED") or HERE.parent.parent / "shared").resolve()
RAW_SERVER = SHARED / "conformance/fixtures/raw_server.py"

NODE, PYTHON = str(TOOLS / "bin/node"), str(TOOLS / "venv/bin/python")
PACKAGES = TOOLS / "sdk/node_modules/@modelcontextprotocol"
EVERYTHING, FILESYSTEM, MEMORY = (str(PACKAGES / f"server-{name}/dist/index.js") for name in ("everything", "filesystem", "memory"))

TRANSPORTS = ("stdio", "http", "sse")

CLIENTS = {
    "py": [PYTHON, str(HERE / "clients/py_client.py")],
    "ts1": [NODE, str(HERE / "clients/ts1_client.mjs")],
    "ts2": [NODE, str(HERE / "clients/ts2_client.mjs")],
    "inspector": [sys.executable, str(HERE / "clients/inspector_client.py")],
}


@dataclass(frozen=True)
class Server:
    """A server with its profile. On HTTP and SSE it prints `READY URL` on stderr once it listens."""

    profile: str
    start: dict  # transport: words
    takes_era: bool = False
    environment: dict = field(default_factory=dict)

    def command(self, transport, era):
        return [*self.start[transport], *(["--era", era] if self.takes_era else [])]


def on_each_transport(*words):
    return {transport: [*words, transport] for transport in TRANSPORTS}


SERVERS = {
    "everything": Server(
        "everything",
        {
            "stdio": [NODE, EVERYTHING, "stdio"],
            "http": [NODE, "--require", str(HERE / "servers/loopback.cjs"), EVERYTHING, "streamableHttp"],
            "sse": [NODE, "--require", str(HERE / "servers/loopback.cjs"), EVERYTHING, "sse"],
        },
        environment={"PORT": "0"},
    ),
    "py": Server("kit", on_each_transport(PYTHON, str(HERE / "servers/py_server.py"))),
    "ts": Server("kit", on_each_transport(NODE, str(HERE / "servers/ts_server.mjs"), str(TOOLS / "sdk"))),
    "raw": Server("raw", on_each_transport(sys.executable, str(RAW_SERVER), "--transport"), takes_era=True),
    # These know one transport and little else, so they have no place in the matrix.
    "filesystem": Server("filesystem", {"stdio": [NODE, FILESYSTEM, "."]}),
    # Told nothing, it keeps what it is told beside its own program.
    "memory": Server("memory", {"stdio": ["sh", "-c", 'MEMORY_FILE_PATH="$HOME/memory.jsonl" exec "$@"', "memory", NODE, MEMORY]}),
}


def peer_words(transport, peer):
    """How a client is told whom to talk to: a command's words, or a URL."""
    return ["--", *peer] if transport == "stdio" else ["--transport", transport, "--url", peer]
