#!/usr/bin/env python3
"""Drives real MCP servers with real MCP clients, directly and through a proxy, and compares what was observed.

    python3 interop/run.py --proxy target/release/mcp-proxy [--only SUBSTRING] [--jobs N]

Every cell of the matrix is one client, one server and one era. The client prints a document of all it saw;
the two documents must be equal, cover the features declared here, and leave no process behind.
"""

import argparse
import difflib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOLS = Path(os.environ.get("MCP_INTEROP_DIR") or Path(os.environ.get("TMPDIR") or "/tmp", "mcp-proxy-interop")).resolve()
SHARED = Path(os.environ.get("MCP_SHARED") or HERE.parent.parent / "shared").resolve()
RAW_SERVER = SHARED / "conformance/fixtures/raw_server.py"

RUN_TIMEOUT_SECONDS = 120    # several times what the slowest run takes on a busy machine
EXIT_GRACE_SECONDS = 8       # longer than the escalation of any SDK: close, SIGTERM, SIGKILL
DIFF_LINES_MAX = 80

# -- the matrix ----------------------------------------------------------------------------------------

NODE, PYTHON = str(TOOLS / "bin/node"), str(TOOLS / "venv/bin/python")
EVERYTHING = TOOLS / "sdk/node_modules/@modelcontextprotocol/server-everything/dist/index.js"

CLIENTS = {
    "py": [PYTHON, str(HERE / "clients/py_client.py")],
    "ts1": [NODE, str(HERE / "clients/ts1_client.mjs")],
    "ts2": [NODE, str(HERE / "clients/ts2_client.mjs")],
    "inspector": [sys.executable, str(HERE / "clients/inspector_client.py")],
}

SERVERS = {  # profile, command
    "everything": ("everything", [NODE, str(EVERYTHING), "stdio"]),
    "py": ("kit", [PYTHON, str(HERE / "servers/py_server.py")]),
    "ts": ("kit", [NODE, str(HERE / "servers/ts_server.mjs"), str(TOOLS / "sdk")]),
    "raw": ("raw", [sys.executable, str(RAW_SERVER), "--transport", "stdio", "--era"]),
}

ALWAYS = set(
    "handshake roots tools-list tool-call tool-error structured protocol-error concurrent-calls large-message progress"
    " cancellation logging sampling elicitation resources-list resource-templates resource-read prompts-list prompt-get"
    " completion subscription list-changed".split()
)
BY_ERA = {"legacy": {"ping"}, "modern": {"discover", "rounds"}}
BY_SERVER = {
    ("py", "legacy"): {"rounds"},
    ("ts", "legacy"): {"rounds"},
    ("raw", "legacy"): {"request-bytes"},
    ("raw", "modern"): {"request-bytes", "server-closes-subscription"},
}
AUTO = {"handshake", "roots", "tools-list", "tool-call"}
# The Inspector starts a server per method, so it does less where that takes long.
INSPECTOR = {"handshake", "structured", "prompt-get"}
INSPECTOR_QUICK = INSPECTOR | {"tool-error", "roots", "resource-read"}
INSPECTOR_IN_FULL = INSPECTOR_QUICK | {"tools-list", "resource-templates", "protocol-error", "logging"}


@dataclass(frozen=True)
class Cell:
    client: str
    server: str
    era: str
    features: frozenset

    def __str__(self):
        return f"{self.client} × {self.server} {self.era}"

    def missing(self):
        """Why this cell cannot run here, if so."""
        if self.server == "raw" and not RAW_SERVER.is_file():
            return f"no {RAW_SERVER}; set MCP_SHARED"
        return None


def features_of(client, server, era):
    if era == "auto":
        return AUTO
    if client == "inspector":
        return {"everything": INSPECTOR_IN_FULL, "py": INSPECTOR}.get(server, INSPECTOR_QUICK)
    return ALWAYS | BY_ERA[era] | BY_SERVER.get((server, era), set())


def matrix():
    legacy = [(c, s, "legacy") for s in SERVERS for c in CLIENTS]
    modern = [(c, s, "modern") for s in SERVERS for c in CLIENTS if s != "everything" and c != "ts1"]
    # A client that has to find out the era first: towards a server of either.
    auto = [(c, s, "auto") for s in ("everything", "ts") for c in ("py", "ts2")]
    return [Cell(c, s, e, frozenset(features_of(c, s, e))) for c, s, e in legacy + modern + auto]


# -- one run -------------------------------------------------------------------------------------------


class RunFailed(Exception):
    """The run gave no document to compare."""


def command_of(cell, prefix):
    profile, server = SERVERS[cell.server]
    server = server + [cell.era] if cell.server == "raw" else server
    options = ["--era", cell.era, "--profile", profile]
    if cell.client == "inspector":
        options += ["--features", ",".join(sorted(cell.features))]
    return [*CLIENTS[cell.client], *options, "--", *prefix, *server]


def processes_at(home):
    """Processes that belong to a run: SDKs pass little environment on to servers, but all pass HOME."""
    marker = b"HOME=" + os.fsencode(home)
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue  # it ended, or it is not ours
    return found


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def left_behind(home):
    """What still runs after the client is gone and every grace period has passed; kills it too."""
    deadline = time.monotonic() + EXIT_GRACE_SECONDS
    while (alive := processes_at(home)) and time.monotonic() < deadline:
        time.sleep(0.02)
    kill(alive)
    return alive


homes = set()  # of the runs under way, so that an interrupt can end them


def run(cell, prefix):
    """One conversation in a home of its own. Returns the client's document."""
    home = tempfile.mkdtemp(prefix="mcp-interop-")
    homes.add(home)
    environment = {
        "HOME": home,
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "MCP_INTEROP_DIR": str(TOOLS),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        client = subprocess.Popen(
            command_of(cell, prefix),
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        # Read aside: a server that lingers holds these pipes open, and must not hide that the client is done.
        with ThreadPoolExecutor(2) as readers:
            out, err = readers.submit(client.stdout.read), readers.submit(client.stderr.read)
            try:
                client.wait(RUN_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(client.pid, signal.SIGKILL)
            lingering = left_behind(home)
            client.wait()
        document, complaint = out.result(), tail(err.result())
        if client.returncode == -signal.SIGKILL:
            raise RunFailed(f"not done after {RUN_TIMEOUT_SECONDS} s\n{complaint}")
        if client.returncode != 0:
            raise RunFailed(f"client exit {client.returncode}\n{complaint}")
        if lingering:
            raise RunFailed("left behind:\n" + "\n".join(f"  {pid} {line}" for pid, line in lingering.items()))
        return json.loads(document)
    finally:
        homes.discard(home)
        shutil.rmtree(home, ignore_errors=True)


def tail(text, lines=12):
    return "\n".join("  " + line for line in text.decode(errors="replace").strip().splitlines()[-lines:])


# -- one cell ------------------------------------------------------------------------------------------


def uncovered(cell, document):
    """Declared features that the document says nothing about."""
    seen = document.get("features", {})
    return sorted(name for name in cell.features if not seen.get(name) or "observed" not in seen[name])


def difference(direct, proxied):
    def lines(document):
        return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False).splitlines()

    diff = list(difflib.unified_diff(lines(direct), lines(proxied), "direct", "proxied", lineterm="", n=4))
    if len(diff) > DIFF_LINES_MAX:
        diff[DIFF_LINES_MAX:] = [f"… {len(diff) - DIFF_LINES_MAX} more lines"]
    return "\n".join("  " + line[:300] for line in diff)


def check(cell, prefix, keep):
    """(verdict, text) for one cell."""
    if reason := cell.missing():
        return "SKIP", f"({reason})"
    documents = {}
    for way, words in (("direct", []), ("proxied", prefix)):
        try:
            documents[way] = run(cell, words)
        except (RunFailed, json.JSONDecodeError) as failure:
            return "FAIL", f"{way}: {failure}"
        if keep:
            name = f"{cell.client}-{cell.server}-{cell.era}-{way}.json"
            (keep / name).write_text(json.dumps(documents[way], indent=1, sort_keys=True, ensure_ascii=False))
        if gaps := uncovered(cell, documents[way]):
            return "FAIL", f"{way}: nothing observed of {', '.join(gaps)}"
    if documents["direct"] != documents["proxied"]:
        return "FAIL", "differs\n" + difference(documents["direct"], documents["proxied"])
    return "PASS", f"({len(documents['direct']['features'])} features)"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--proxy", type=Path, help="the proxy's binary; run as `PROXY run -- SERVER…`")
    parser.add_argument("--proxy-prefix", help="words to put before the server's command instead")
    parser.add_argument("--only", default="", help="run the cells whose name contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="cells at a time (default %(default)s)")
    parser.add_argument("--keep", type=Path, help="write every document into this directory")
    options = parser.parse_args()

    if options.proxy_prefix:
        prefix = shlex.split(options.proxy_prefix)
    elif options.proxy:
        prefix = [str(options.proxy.resolve()), "run", "--"]
    else:
        parser.error("need --proxy or --proxy-prefix")
    if not (TOOLS / "stamp").is_file():
        parser.error(f"no peers in {TOOLS}; run {HERE / 'setup.sh'} first")
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)

    cells = [cell for cell in matrix() if options.only in str(cell)]
    count = {"PASS": 0, "FAIL": 0, "SKIP": 0}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            for cell, (verdict, text) in zip(cells, pool.map(lambda c: check(c, prefix, options.keep), cells)):
                count[verdict] += 1
                print(verdict, cell, text, flush=True)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            kill(pid for home in list(homes) for pid in processes_at(home))
            return 130
    print(f"{count['PASS']} passed, {count['FAIL']} failed, {count['SKIP']} skipped")
    return 1 if count["FAIL"] or not cells else 0


if __name__ == "__main__":
    sys.exit(main())
