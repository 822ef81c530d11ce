"""The MCP Inspector's command line as a client: one process, and thus one connection, per method.

It cannot complete, subscribe, cancel or listen, and it declares neither sampling nor elicitation, so this
client covers less than the others. Standard library only; the Inspector itself runs on Node.
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pylib.document import load_profile, parse, print_document

TOOLS = Path(os.environ["MCP_INTEROP_DIR"])
LAUNCHER = TOOLS / "inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"

PATIENCE_SECONDS = 30
AT_ONCE = 3  # some servers outlive their connection by two idle seconds, so there is time to overlap
TOOL_ERROR, PROTOCOL_ERROR = 5, 1  # the Inspector's exit codes
ROOTS = [{"uri": "file:///interop/project", "name": "project"}]


def call(tool):
    return ["tools/call", "--tool-name", tool["name"], "--tool-args-json", json.dumps(tool["arguments"])]


def plan(profile, era):
    """Feature, expected exit code, and the arguments that follow `--method`; one process each, so few of them."""
    yield "handshake", 0, ["initialize"]
    yield "tools-list", 0, ["tools/list"]
    yield "structured", 0, call(profile["structured"])
    yield "tool-error", TOOL_ERROR, call(profile["errors"][0])
    if "roots" in profile:
        yield "roots", 0, call(profile["roots"]["calls"][0])
    if "reads" in profile:
        yield "resources-list", 0, ["resources/list"]
        yield "resource-templates", 0, ["resources/templates/list"]
        yield "resource-read", 0, ["resources/read", "--uri", profile["reads"][-1]]
        yield "protocol-error", PROTOCOL_ERROR, ["resources/read", "--uri", profile["missing"]]
    if "prompts" in profile:
        prompt = profile["prompts"][0]
        arguments = [f"{key}={value}" for key, value in prompt["arguments"].items()]
        yield "prompts-list", 0, ["prompts/list"]
        yield "prompt-get", 0, ["prompts/get", "--prompt-name", prompt["name"], *(["--prompt-args", *arguments] if arguments else [])]
    if era == "legacy":
        yield "logging", 0, ["logging/setLevel", "--log-level", "info"]


def steps_of(profile, options):
    wanted = profile.get("features", options.features)
    return [step for step in plan(profile, options.era) if not wanted or step[0] in wanted]


def invoke(config, expected, arguments):
    command = [TOOLS / "bin/node", LAUNCHER, "--cli", "--config", config, "--server", "peer"]
    command += ["--quiet", "--format", "json", "--method", *arguments]
    # Left to itself it opens a browser and looks for a keychain.
    environment = os.environ | {"MCP_AUTO_OPEN_ENABLED": "false", "MCP_INSPECTOR_SECRET_STORE": "memory"}
    # A server that lingers keeps our stderr open, so that is a file: it is the Inspector's exit that counts.
    with tempfile.TemporaryFile("w+") as stderr:
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": stderr}
        try:
            done = subprocess.run(command, env=environment, **streams, text=True, timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"still running after {PATIENCE_SECONDS} s") from None
        stderr.seek(0)
        complaint = stderr.read().strip()
    if done.returncode != expected:
        raise RuntimeError(f"exit {done.returncode} instead of {expected}: {complaint[-400:]}")
    # On success stderr is noise; on failure its last line is the error.
    said = [done.stdout] if expected == 0 else [done.stdout, complaint.splitlines()[-1]]
    documents = [json.loads(text) for text in said if text.strip()]
    if expected == PROTOCOL_ERROR and "resource" not in documents[-1]["error"]["message"].lower():
        raise RuntimeError(f"not the server's refusal: {documents[-1]}")
    return {"exit": done.returncode, "output": documents}


def peer_of(options):
    if options.transport == "stdio":
        command, *args = options.command
        return {"type": "stdio", "command": command, "args": args}
    return {"type": {"http": "streamable-http", "sse": "sse"}[options.transport], "url": options.url}


def main(arguments):
    options = parse(arguments)
    peer = peer_of(options) | {"protocolEra": options.era, "roots": ROOTS}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config, ThreadPoolExecutor(AT_ONCE) as pool:
        json.dump({"mcpServers": {"peer": peer}}, config)
        config.flush()
        running = {
            (name, feature): pool.submit(invoke, config.name, *step)
            for name in options.profile.split(",")
            for feature, *step in steps_of(load_profile(name, options), options)
        }
        visits = {}
        for (name, feature), run in running.items():
            try:
                visits.setdefault(name, {})[feature] = {"observed": run.result()}
            except Exception as error:
                pool.shutdown(wait=False, cancel_futures=True)  # one failure decides; spare us the other waits
                raise RuntimeError(f"{name}: {feature}: {error}") from error
    print_document("inspector", options, visits)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Exception as error:
        print(f"inspector: {error}", file=sys.stderr)
        sys.exit(1)
