#!/usr/bin/env python3
"""Holds the control API to its own description, with schemathesis.

    python3 interop/control/run.py --proxy target/release/mcp-proxy [--examples N]

`interop/control/setup.sh` installs the tool. Without it there is nothing to run, which is said in capitals;
with --strict that is a failure.

A proxy with rules, traffic, marks and held messages is asked what its document describes, in ways that fit and in ways
that do not. Left out: the event stream, which has no end, and saving, which would write files wherever the tool
likes. Whatever was asked, the proxy must still do its work at the end. Then a gateway is asked about its servers.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOL = Path(os.environ.get("MCP_INTEROP_DIR", Path(tempfile.gettempdir()) / "mcp-proxy-interop")) / "control/venv/bin/schemathesis"
PATIENCE = 60
LEFT_OUT = ["/v1/events", "/v1/save", "/v1/login"]
# Most of what fits the document cannot be done as things stand: a message that is not held, a lease that is over.
NOT_CHECKED = ["positive_data_acceptance"]

SERVER = r"""
import json, sys
for line in sys.stdin:
    try:
        message = json.loads(line)
    except ValueError:
        continue
    if isinstance(message, dict) and "id" in message and "method" in message:
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""

# They let everything pass that says the same to everybody, and are there to be explained.
RULES = [
    {"name": "noted", "match": "tool:echo", "verdict": "observe"},
    {"name": "kept", "match": "tool:held", "verdict": "allow"},
    {"name": "never", "match": "tool:nothing_is_called_so", "verdict": "deny", "message": "No."},
]


def one_server(home):
    rules = Path(home) / "rules.json"
    rules.write_text(json.dumps({"policy": {"rules": RULES}}))
    return ["run", "--control-port", "0", "--hold-timeout", "0", "--rules", str(rules), "--", sys.executable, "-c", SERVER]


def many_servers(home):
    """One that is there, and one that never will be."""
    config = Path(home) / "gateway.json"
    servers = [{"id": "one", "command": [sys.executable, "-c", SERVER]}, {"id": "none", "command": ["false"]}]
    config.write_text(json.dumps({"servers": servers}))
    return ["serve", "--config", str(config), "--listen", "stdio", "--control-port", "0"]


class Proxy:
    def __init__(self, program, home, arguments):
        environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
        command = [program, *arguments]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)
        self.url = self.token = None
        for line in self.process.stderr:
            found = re.search(r"control API on (http://\S+)/#token=(\w+)", line)
            if found:
                self.url, self.token = found.groups()
                break
        assert self.url, "the proxy did not say where its control API is"
        # Nobody may be held up by words that nobody reads.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def answer(self, id):
        """The answer to this call, whatever else is said before it."""
        timer = threading.Timer(PATIENCE, self.process.kill)
        timer.start()
        try:
            for line in self.process.stdout:
                if json.loads(line).get("id") == id:
                    return
        finally:
            timer.cancel()
        raise SystemExit(f"the proxy no longer answers: call {id}")

    def control(self, method, path, body=None):
        import urllib.request

        headers = {"Authorization": f"Bearer {self.token}"}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)


def begin(proxy):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    proxy.send(id=1, method="initialize", params=hello)
    proxy.answer(1)


def prepare(proxy):
    """Something to look at, and something to decide about."""
    begin(proxy)
    for id in range(2, 12):
        proxy.send(id=id, method="tools/call", params={"name": "echo", "arguments": {"text": "x"}})
        proxy.answer(id)
    proxy.control("POST", "/v1/breakpoints", {"filter": "> tool:held", "name": "kept"})
    for id in range(100, 140):
        proxy.send(id=id, method="tools/call", params={"name": "held"})


def held_to_its_document(proxy, home, examples, only=()):
    """What the tool makes of it: zero is good."""
    command = [TOOL, "--config-file", HERE / "schemathesis.toml", "run", proxy.url + "/openapi.json", "--header", f"Authorization: Bearer {proxy.token}"]
    command += ["--checks", "all", "--exclude-checks", ",".join(NOT_CHECKED), "--seed", "1"]
    command += ["--max-examples", str(examples), "--phases", "examples,coverage,fuzzing"]
    command += ["--continue-on-failure", "--request-timeout", "30", "--suppress-health-check", "all", *only]
    for path in LEFT_OUT:
        command += ["--exclude-path", path]
    return subprocess.run(command, cwd=home, env={**os.environ, "NO_COLOR": "1"}).returncode


def ask_gateway(arguments):
    """Its servers can be looked at and ordered about, and it does its work after."""
    with tempfile.TemporaryDirectory() as home:
        gateway = Proxy(arguments.proxy, home, many_servers(home))
        try:
            begin(gateway)
            failed = held_to_its_document(gateway, home, arguments.examples, ["--include-path-regex", "^/v1/servers"])
            for order, state in [("disable", "disabled"), ("enable", None), ("restart", None)]:
                server = gateway.control("POST", f"/v1/servers/one/{order}?take=true")
                failed |= state is not None and server["state"] != state
            gateway.send(id=999, method="ping")
            gateway.answer(999)
        finally:
            gateway.process.stdin.close()
            ended = gateway.process.wait(PATIENCE)
        print(f"the gateway ended with {ended}")
        return bool(failed or ended)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--proxy", required=True, type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--examples", type=int, default=40, help="requests of a kind for each route")
    parser.add_argument("--strict", action="store_true")
    arguments = parser.parse_args()
    if not TOOL.exists():
        print("SKIPPED: SCHEMATHESIS IS NOT INSTALLED; run interop/control/setup.sh", flush=True)
        return 1 if arguments.strict else 0
    with tempfile.TemporaryDirectory() as home:
        proxy = Proxy(arguments.proxy, home, one_server(home))
        try:
            prepare(proxy)
            failed = held_to_its_document(proxy, home, arguments.examples)
            # It holds nothing any more, and does its work.
            proxy.control("PUT", "/v1/mode?take=true", {"mode": "passthrough"})
            for breakpoint in proxy.control("GET", "/v1/breakpoints")["breakpoints"]:
                proxy.control("DELETE", f"/v1/breakpoints/{breakpoint['name']}?take=true")
            proxy.send(id=999, method="ping")
            proxy.answer(999)
        finally:
            proxy.process.stdin.close()
            ended = proxy.process.wait(PATIENCE)
        print(f"the proxy ended with {ended}")
    return 1 if failed or ended or ask_gateway(arguments) else 0


if __name__ == "__main__":
    sys.exit(main())
