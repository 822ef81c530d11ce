#!/usr/bin/env python3
"""Holds exports to what reads them: a HAR validator, a browser, curl.

    python3 interop/exports/run.py --proxy target/release/mcp-proxy [--only har,page,curl] [--pictures DIR]

`interop/exports/setup.sh` installs the tools. What is missing is skipped, and said so in capitals; with
--strict that is a failure.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SESSIONS = HERE.parents[1] / "fixtures" / "sessions"
TOOLS = Path(os.environ.get("MCP_INTEROP_DIR", Path(tempfile.gettempdir()) / "mcp-proxy-interop")) / "exports"
PATIENCE = 120


class Skipped(Exception):
    pass


class Failed(Exception):
    pass


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=PATIENCE, **options)
    if done.returncode:
        raise Failed(f"{Path(command[0]).name} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def tool(name, *others):
    found = next(filter(None, map(shutil.which, (name, *others))), None)
    if not found:
        raise Skipped(f"{name} is not installed")
    return found


def export(proxy, session, file, *flags):
    run(proxy, "export", session, "-o", file, *flags)
    return file


def large_session(path, calls=12_000):
    """More than a page holds."""
    session = json.loads((SESSIONS / "stdio.json").read_text())
    messages = []
    for call in range(calls):
        request, answer = dict(session["messages"][3]), dict(session["messages"][4])
        for offset, message in enumerate((request, answer)):
            message.update(id=None, sequence=2 * call + 1 + offset, timestamp=f"2026-11-15T{22 + call // 6000}:{call // 100 % 60:02}:{call % 60:02}.{offset}00000Z")
            message["raw"] = {**message["raw"], "id": call}
        messages += [request, answer]
    path.write_text(json.dumps({**session, "messages": [{k: v for k, v in m.items() if k not in ("id", "correlated_id")} for m in messages]}))
    return path


def check_har(proxy, scratch, options):
    node = tool("node")
    if not (TOOLS / "node_modules" / "har-validator").is_dir():
        raise Skipped(f"no har-validator in {TOOLS}; run {HERE / 'setup.sh'}")
    files = [export(proxy, SESSIONS / f"{name}.json", scratch / f"{name}.har") for name in ("stdio", "http", "hostile")]
    files.append(export(proxy, SESSIONS / "http.json", scratch / "bare.har", "--no-redact"))
    files.append(export(proxy, SESSIONS / "stdio.json", scratch / "part.har", "--filter", "status:err"))
    print(run(node, HERE / "har.mjs", TOOLS, *files), end="")
    # A validator that takes everything proves nothing.
    broken = json.loads(files[0].read_text())
    del broken["log"]["entries"][0]["response"]["status"]
    (scratch / "broken.har").write_text(json.dumps(broken))
    try:
        run(node, HERE / "har.mjs", TOOLS, scratch / "broken.har")
    except Failed:
        return
    raise Failed("the validator takes a HAR without a status")


def check_page(proxy, scratch, options):
    node, browser = tool("node"), tool("chromium", "chromium-browser", "google-chrome")
    for name in ("stdio", "http", "hostile"):
        export(proxy, SESSIONS / f"{name}.json", scratch / f"{name}.html")
    export(proxy, large_session(scratch / "large.json"), scratch / "large.html")
    print(run(node, HERE / "page.mjs", browser, scratch, *([options.pictures] if options.pictures else [])), end="")


def check_curl(proxy, scratch, options):
    """Records calls over HTTP, ends everything, and has the script make them again."""
    tool("curl")
    server = [sys.executable, str(HERE / "server.py")]
    state = scratch / "state"
    for transport, path in (("streamable-http", "mcp"), ("sse", "sse")):
        # A listener in front of the server is the HTTP server that is recorded by a second proxy.
        with Listener(proxy, scratch, "--transport", "stdio", "--target-command", " ".join(server), "--no-record") as origin:
            url = f"{origin.url}/{path}"
            client = [proxy, "--state-dir", state, "run", "--quiet", "--url", url, "--transport", transport, "--name", transport]
            asked = [
                {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
                {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "it's $(here) `%s` \\ \u202e \"x\""}}},
            ]
            answers = converse(client, asked)
            script = scratch / f"{transport}.sh"
            run(proxy, "--state-dir", state, "export", transport, "-o", script, "--filter", "tool:echo", "--output-format", "curl")
            said = run("sh", script, cwd=scratch, env={**os.environ, "WAIT": "1"})
        wanted = json.dumps(answers[1]["result"], sort_keys=True)
        got = [json.dumps(message.get("result"), sort_keys=True) for message in messages_in(said)]
        if wanted not in got:
            raise Failed(f"{transport}: {wanted} is not in {said}")
        print(f"PASS {transport}: the script got the same answer")


def messages_in(text):
    for line in text.splitlines():
        line = line.removeprefix("data:").strip()
        if line.startswith("{"):
            yield json.loads(line)


def converse(command, asked):
    child = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    answers = []
    try:
        for message in asked:
            child.stdin.write(json.dumps(message) + "\n")
            child.stdin.flush()
            if "id" in message:
                answers.append(json.loads(child.stdout.readline()))
        child.stdin.close()
        child.wait(PATIENCE)
    finally:
        child.kill()
        child.wait()
    return answers


class Listener:
    def __init__(self, proxy, scratch, *flags):
        command = [proxy, "--state-dir", scratch / "listener", "proxy", "--listen", "0", *flags]
        self.child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        for line in self.child.stderr:
            if "listening on " in line:
                self.url = line.split("listening on ")[1].split(";")[0].strip()
                return self
        raise Failed("the listener did not start")

    def __exit__(self, *_):
        self.child.send_signal(signal.SIGTERM)
        self.child.wait(PATIENCE)


CHECKS = {"har": check_har, "page": check_page, "curl": check_curl}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--proxy", type=Path, required=True, help="the proxy's binary")
    parser.add_argument("--only", default=",".join(CHECKS), help="some of %(default)s")
    parser.add_argument("--pictures", type=Path, help="put pictures of the pages into this directory")
    parser.add_argument("--strict", action="store_true", help="what cannot be checked has failed")
    options = parser.parse_args()
    proxy, failed, skipped = options.proxy.resolve(), [], []
    for name in options.only.split(","):
        with tempfile.TemporaryDirectory(prefix="mcp-proxy-exports-") as scratch:
            try:
                CHECKS[name](proxy, Path(scratch), options)
            except Skipped as reason:
                skipped.append(name)
                print(f"SKIPPED {name.upper()}: {reason}. NOTHING WAS CHECKED.", flush=True)
            except (Failed, subprocess.TimeoutExpired) as reason:
                failed.append(name)
                print(f"FAIL {name}: {reason}", flush=True)
    print(f"exports: {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or (skipped and options.strict) else 0


if __name__ == "__main__":
    sys.exit(main())
