"""The proxy's command lines, one per pair of transports."""

import shlex
from dataclasses import dataclass

ENDPOINT = {"http": "/mcp", "sse": "/sse"}
LISTENING = rb"listening on (http://127\.0\.0\.1:\d+)"


@dataclass(frozen=True)
class Proxy:
    binary: str
    prefix: tuple = ()  # words that stand for the whole of `BINARY run --`, to try the harness without a proxy

    def command(self, server_side, target):
        """What a client on stdio starts instead of its server. `target` is a command's words or a URL."""
        if server_side == "stdio":
            return [*(self.prefix or (self.binary, "run", "--")), *target]
        return [self.binary, "run", *(["--transport", "sse"] if server_side == "sse" else []), "--url", target]

    def listener(self, server_side, target):
        """What clients on HTTP and SSE connect to, both at the same port."""
        name = {"http": "streamable-http"}.get(server_side, server_side)
        where = ["--target-command", shlex.join(target)] if server_side == "stdio" else ["--target-url", target]
        return [self.binary, "proxy", "--transport", name, *where, "--listen", "127.0.0.1:0"]
