#!/usr/bin/env python3
"""Runs the official conformance tools directly and through the proxy, and fails if the proxy costs a single pass.

    python3 conformance/run.py --proxy target/release/mcp-proxy [--only SUBSTRING] [--jobs N]

The tools, their fixture server and the scripts around them are in `../shared` beside the project, or in
$MCP_SHARED; without them there is nothing to run, which is said loudly and is no failure.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "interop"))

from harness.peers import RAW_SERVER, SHARED  # noqa: E402
from harness.processes import Home, RunFailed, homes  # noqa: E402
from harness.proxy import ENDPOINT, LISTENING, Proxy  # noqa: E402

SCRIPTS = SHARED / "conformance"
TOOLS = Path(os.environ.get("MCPC_DIR") or Path(os.environ.get("TMPDIR") or "/tmp", "mcp-conformance")).resolve()
ALLOWED = HERE / "allowed.json"

LEG_TIMEOUT_SECONDS = 180  # ten times what the slowest takes
READY = rb"READY (http\S+)"
SCENARIO = re.compile(r"^[✓✗] ([\w-]+): (\d+) passed, \d+ failed$", re.M)


@dataclass(frozen=True)
class Way:
    """Directly on a transport, or through the proxy on a pair of them."""

    client_side: str
    server_side: str
    is_proxied: bool
    is_gateway: bool = False  # with this one server behind it, under its own names

    def __str__(self):
        if not self.is_proxied:
            return f"{self.client_side} directly"
        return f"{self.client_side}-{self.server_side}{' gateway' if self.is_gateway else ''}"

    def peer(self, home, services, proxy, era):
        """Starts what has to listen; gives the words of a command or a URL."""
        side = self.server_side
        target = [sys.executable, str(RAW_SERVER), "--transport", side, "--era", era]
        if side != "stdio":
            services.append(home.start("server", target))
            target = services[-1].announced(READY)
        if not self.is_proxied:
            return target
        if self.is_gateway:
            entry = {"id": "fixture", "prefix": False} | ({"command": target} if side == "stdio" else {"url": target})
            config = Path(home.path, "gateway.json")
            config.write_text(json.dumps({"servers": [entry]}))
            services.append(home.start("gateway", [proxy.binary, "serve", "--config", str(config), "--listen", "0"]))
            return services[-1].announced(LISTENING) + ENDPOINT[self.client_side]
        if self.client_side == "stdio":
            return proxy.command(side, target)
        services.append(home.start("proxy", proxy.listener(side, target)))
        return services[-1].announced(LISTENING) + ENDPOINT[self.client_side]


# -- the tools: each gives the passes by scenario ---------------------------------------------------------


def run_script(home, environment, words):
    """Its output. The exit code says no more than the passes that we count, unless there are none."""
    script = home.start(Path(words[0]).name, words, environment)
    try:
        script.popen.wait(LEG_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise RunFailed(f"not done after {LEG_TIMEOUT_SECONDS} s") from None
    return script.output().decode()


@dataclass(frozen=True)
class Suite:
    """The official server scenarios of one revision."""

    revision: str
    baseline: int
    ways = tuple(Way("http", side, True, is_gateway) for is_gateway in (False, True) for side in ("http", "stdio"))

    def __str__(self):
        return f"server scenarios {self.revision}"

    def passes(self, home, services, way, proxy):
        url = way.peer(home, services, proxy, "dual")
        environment = tools_of(home) | {"REVS": self.revision}
        run_script(home, environment, [str(SCRIPTS / "run-direct.sh"), url, "run"])
        log = Path(environment["MCPC_DIR"], "results", f"run-suite-{self.revision}.txt").read_text()
        return {name: int(passed) for name, passed in SCENARIO.findall(log)}


@dataclass(frozen=True)
class ClientScenarios:
    """The official client scenarios: the tool is the server, and a proxy is started for each."""

    baseline: int
    ways = (Way("http", "http", True),)

    def __str__(self):
        return "client scenarios"

    def passes(self, home, services, way, proxy):
        environment = tools_of(home)
        if way.is_proxied:
            options = "proxy --transport streamable-http --target-url {url} --listen 127.0.0.1:{port}"
            environment |= {"MCPC_PROXY_CMD": f"{shlex.quote(proxy.binary)} {options}"}
        output = run_script(home, environment, [str(SCRIPTS / "run-client-scenarios.sh")])
        return {name: int("PASSED" in rest) for name, rest in re.findall(r"^client (\S+ \S+): (.*)$", output, re.M)}


@dataclass(frozen=True)
class Inspector:
    """The Inspector's command line, a process per method."""

    transport: str
    era: str
    baseline: int

    @property
    def ways(self):
        return (Way(self.transport, self.transport, True),)

    def __str__(self):
        return f"Inspector {self.era}, {self.transport}"

    def passes(self, home, services, way, proxy):
        peer = way.peer(home, services, proxy, "dual")
        words = [str(SCRIPTS / "inspector.sh"), "--era", self.era, *(["--", *peer] if self.transport == "stdio" else [peer])]
        output = run_script(home, tools_of(home), words)
        return {name: int(verdict == "PASS") for verdict, name in re.findall(r"^(PASS|FAIL) (\S+)", output, re.M)}


# What takes longest comes first. The baselines are those that a server without a proxy reaches.
TOOLS_TO_RUN = [
    ClientScenarios(13),
    Suite("2026-07-28", 196),
    Suite("2025-11-25", 83),
    Suite("0.1.16", 46),
    Inspector("stdio", "legacy", 9),
    Inspector("stdio", "modern", 9),
    Inspector("http", "legacy", 9),
    Inspector("http", "modern", 9),
    Inspector("sse", "legacy", 9),
]


def tools_of(home):
    """The installed tools under a roof of their own, so that runs at the same time do not mix their results."""
    roof = Path(home.path, "tools")
    if not roof.exists():
        roof.mkdir()
        for tool in ("node", "npm", "conformance-next", "inspector", "venv"):
            (roof / tool).symlink_to(TOOLS / tool)
        for own in ("results", "home"):
            (roof / own).mkdir()
    return {"MCPC_DIR": str(roof), "MCP_INSPECTOR_SECRET_STORE": "memory"}


# -- one leg ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Leg:
    tool: object
    way: Way

    def __str__(self):
        return f"{self.tool}, {self.way}"

    def run(self, proxy):
        """Passes by scenario, or what went wrong instead."""
        services = []
        try:
            with Home() as home:
                passes = self.tool.passes(home, services, self.way, proxy)
                why = complaints(home, passes)
                for service in reversed(services):
                    service.terminate()
                if lingering := home.left_behind():
                    raise RunFailed("left behind: " + "; ".join(lingering.values()))
                if any(b"panicked at" in service.stderr for service in services):
                    raise RunFailed("a panic")
                return passes, why
        except (RunFailed, OSError) as failure:
            return RunFailed("\n".join([str(failure), *filter(None, (s.complaint() for s in services))])), {}


def complaints(home, passes):
    """What the tool has to say, by scenario, about checks that were no success."""
    found = {}
    for report in Path(home.path).rglob("checks.json"):
        for name in passes:
            if re.fullmatch(rf"(server-)?{re.escape(name)}-\d{{4}}-.*", report.parent.name):
                others = [check for check in json.loads(report.read_text()) if check["status"] != "SUCCESS"]
                found[name] = [f"{c['status']} {c['id']}: {c.get('errorMessage', c.get('description'))}" for c in others]
    return found


# -- the verdict -----------------------------------------------------------------------------------------


def allowance(tool, way, scenario):
    """How many passes fewer are in order there, and why."""
    for entry in json.loads(ALLOWED.read_text()):
        if (entry["tool"], entry["scenario"]) == (str(tool), scenario) and str(way) in entry["pairs"]:
            return entry["fewer"], entry["reason"]
    return 0, None


def judge(tool, way, direct, proxied, why):
    """Whether the proxy costs nothing that is not allowed for, and all there is to say about the differences."""
    is_good, remarks = True, []
    for scenario, passed in direct.items():
        missing = passed - proxied.get(scenario, 0)
        fewer, reason = allowance(tool, way, scenario)
        if missing > fewer:
            is_good = False
            remarks += [f"{scenario}: {missing} passes fewer", *(f"  {line}" for line in why.get(scenario, []))]
        elif missing > 0:
            remarks.append(f"{scenario}: {missing} fewer, allowed: {reason}")
        elif fewer:
            remarks.append(f"{scenario}: nothing is missing any more, so {ALLOWED.name} need not allow for it")
    return is_good, remarks


def report(results):
    """Prints the table; says whether all is well."""
    print(f"{'':30} {'way':18} {'baseline':>8} {'directly':>8} {'proxied':>8}")
    is_well, remarks = True, []
    for tool in dict.fromkeys(leg.tool for leg in results):
        direct = next(result for leg, (result, _) in results.items() if leg.tool == tool and not leg.way.is_proxied)
        for leg in (leg for leg in results if leg.tool == tool and leg.way.is_proxied):
            proxied, why = results[leg]
            broken = [(how, r) for how, r in (("directly", direct), ("proxied", proxied)) if isinstance(r, RunFailed)]
            if broken:
                is_good, said = False, [f"{how}: {failure}" for how, failure in broken]
            else:
                is_good, said = judge(tool, leg.way, direct, proxied, why)
                if sum(direct.values()) < tool.baseline:
                    is_good, said = False, ["the tools or their fixture are not what they were", *said]
            counts = ["-" if isinstance(r, RunFailed) else sum(r.values()) for r in (direct, proxied)]
            verdict = "ok" if is_good else "FAILED"
            print(f"{str(tool):30} {str(leg.way):18} {tool.baseline:>8} {counts[0]:>8} {counts[1]:>8}  {verdict}")
            is_well &= is_good
            remarks += [f"{leg}: {line}" for line in said]
    print(*remarks, sep="\n", end="\n" if remarks else "")
    return is_well


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--proxy", type=Path, required=True, help="the proxy's binary")
    parser.add_argument("--only", default="", help="run the tools whose name contains this")
    # The suites wait more than they work, hence one more than there are cores.
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 2) + 1, help="at a time (default %(default)s)")
    options = parser.parse_args()
    if not (SCRIPTS / "run-direct.sh").is_file():
        print(f"SKIPPED: no conformance tools, because there is no {SCRIPTS}; set MCP_SHARED", file=sys.stderr)
        return 0
    setup = subprocess.run([SCRIPTS / "setup.sh"], env=os.environ | {"MCPC_DIR": str(TOOLS)}, stdin=subprocess.DEVNULL)
    if setup.returncode != 0:
        print("error: the conformance tools could not be installed", file=sys.stderr)
        return 1

    begin, proxy = time.monotonic(), Proxy(str(options.proxy.resolve()))
    tools = [tool for tool in TOOLS_TO_RUN if options.only in str(tool)]
    legs = [Leg(tool, way) for tool in tools for way in (Way(tool.ways[0].client_side, tool.ways[0].client_side, False), *tool.ways)]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            results = dict(zip(legs, pool.map(lambda leg: leg.run(proxy), legs)))
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # one is enough; what follows has to be finished
            pool.shutdown(wait=False, cancel_futures=True)
            for home in list(homes):
                Home.kill(home.processes())
            return 130
    for leg in legs:
        passes, _ = results[leg]
        # Some scenarios are held to times. A direct run says nothing of the proxy, and is repeated with the machine to itself.
        if not leg.way.is_proxied and (isinstance(passes, RunFailed) or sum(passes.values()) < leg.tool.baseline):
            print(f"{leg}: fewer passes than the baseline; it is run again alone")
            results[leg] = leg.run(proxy)
    is_well = bool(legs) and report(results)
    print(f"{len(legs)} runs in {time.monotonic() - begin:.0f} s: {'nothing is lost' if is_well else 'FAILED'}")
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
