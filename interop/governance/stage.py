"""A stage whose proxy has rules, in front of a server with repositories to lose."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from harness.peers import HERE, PYTHON, SERVERS, Server, on_each_transport
from harness.processes import RunFailed
from harness.proxy import Proxy
from holds.stage import Stage

GITHUB = Server("kit", on_each_transport(PYTHON, str(HERE / "servers/github_server.py")))
RULES = "mcp-rules/github.json"  # below the home, as a person would have it

# The two spellings of the same rules; only the second has room for a reason.
REASON = "Deleting is left to people."
SHORT = """// ~/mcp-rules/github.json
{
  "github": {
    "read": "allow",
    "write": "allow",
    "delete": "deny"
  }
}
"""
LONG = """{"rules": [
  {"service": "github", "operations": ["read", "write"], "permission": "allow"},
  {"service": "github", "operations": ["delete"], "permission": "deny", "reason": "%s"}
]}
""" % REASON
LIFTED = SHORT.replace("deny", "allow")


@dataclass(frozen=True)
class GovernedProxy(Proxy):
    """The short form where a client starts the proxy in front of a command, and flags everywhere else."""

    def command(self, server_side, target):
        rules = ["--rules", f"~/{RULES}"]
        if server_side == "stdio":
            program = str(Path(self.binary).with_name("mcp-governance-proxy"))
            return [program, "--target", shlex.join(target), *rules, "--env", "GITHUB_TOKEN=n0b0dys-t0k3n"]
        binary, command, *words = super().command(server_side, target)
        return [binary, command, *rules, *words]

    def listener(self, server_side, target):
        return [*super().listener(server_side, target), "--rules", f"~/{RULES}"]


class GovernedStage(Stage):
    def __init__(self, binary, cast):
        super().__init__(binary, cast)
        self.proxy = GovernedProxy(binary)

    def server(self):
        return SERVERS["filesystem"] if self.cast.server == "filesystem" else GITHUB

    def write_rules(self, text):
        """Appears whole, as editors do it."""
        path = Path(self.home.path, RULES)
        path.parent.mkdir(exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_text(text)
        draft.rename(path)

    def desert(self):
        """Ends what is left when the client was killed."""
        for service in reversed([one for one in self.running if one is not self.client.running]):
            service.terminate()
        if lingering := self.home.left_behind():
            raise RunFailed("left behind:\n" + "\n".join(f"  {pid} {line}" for pid, line in lingering.items()))

    def journal(self):
        """The calls that reached the server."""
        path = Path(self.home.path, "reached")
        return path.read_text().split() if path.exists() else []

    def decisions(self):
        """What the audit says of calls: of each the decision, with the outcome of the call if it has one."""
        lines = self.shell.listed("audit")
        returned = [line for line in lines if line["kind"] == "outcome"]
        returned += [call for line in lines if line["kind"] == "outcomes" for call in line["calls"]]
        outcomes = {call["of"]: call for call in returned}
        return [
            line | {"outcome": outcomes.get(line["seq"], {}).get("outcome")}
            for line in lines
            if line["kind"] == "decision" and line["method"] == "tools/call"
        ]
