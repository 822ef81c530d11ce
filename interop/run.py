#!/usr/bin/env python3
"""Drives real MCP servers with real MCP clients, directly and through a proxy, and compares what was observed.

    python3 interop/run.py --proxy target/release/mcp-proxy [--pairs http-stdio,…] [--only SUBSTRING] [--jobs N]

Every cell of the matrix is one client, one server, one era and one pair of transports. The client prints a
document of all it saw; the two documents must be equal, cover the features declared here, and leave no process
behind.
"""

import argparse
import os
import shlex
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.company import COMPANY
from harness.compare import Baselines
from harness.exceptions import NOT_COMPARED
from harness.matrix import PAIRS, Cell, matrix
from harness.peers import HERE, TOOLS
from harness.processes import Home, RunFailed, homes
from harness.proxy import Proxy
from harness.recorded import RECORDED


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--proxy", type=Path, help="the proxy's binary")
    parser.add_argument("--proxy-prefix", help="words to put before the server's command instead; implies --pairs stdio-stdio")
    parser.add_argument("--direct", action="store_true", help="without a proxy: compare two direct conversations")
    parser.add_argument("--pairs", help="client-server transports, comma-separated: http-stdio,sse-sse (default: all nine)")
    parser.add_argument("--all", action="store_true", help="the Inspector with every server on every pair, too")
    parser.add_argument("--only", default="", help="run the cells whose name contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="cells at a time (default %(default)s)")
    parser.add_argument("--keep", type=Path, help="write every document into this directory")
    options = parser.parse_args()

    known = ["-".join(pair) for pair in PAIRS]
    if options.proxy_prefix:
        options.pairs = "stdio-stdio"
    elif options.direct:
        options.pairs = options.pairs or "stdio-stdio,http-http,sse-sse"
    elif not options.proxy:
        parser.error("need --proxy, --proxy-prefix or --direct")
    options.pairs = options.pairs.split(",") if options.pairs else known
    if unknown := set(options.pairs) - set(known):
        parser.error(f"no such pair: {', '.join(unknown)}; there are {', '.join(known)}")
    if not (TOOLS / "stamp").is_file():
        parser.error(f"no peers in {TOOLS}; run {HERE / 'setup.sh'} first")
    return options


def verdict_on(cell, proxy, baselines, keep):
    if reason := cell.missing():
        return "SKIP", f"({reason})"
    begin = time.monotonic()
    try:
        text = cell.check(proxy, baselines, keep)
        return "PASS", f"{text} {time.monotonic() - begin:.1f} s"
    except RunFailed as failure:
        return "FAIL", str(failure)


def main():
    options = arguments()
    proxy = None
    if not options.direct:
        proxy = Proxy(str(options.proxy.resolve()) if options.proxy else "", tuple(shlex.split(options.proxy_prefix or "")))
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)

    def is_wanted(cell):
        return options.only in str(cell) and all("-".join(pair) in options.pairs for pair in cell.pairs)

    cells, left_out = matrix(options.all)
    recorded = RECORDED if options.proxy else []  # nobody else records
    cells = [cell for cell in cells + COMPANY + recorded if is_wanted(cell)]
    baselines, count, begin = Baselines(), {"PASS": 0, "FAIL": 0, "SKIP": 0}, time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            verdicts = pool.map(lambda cell: verdict_on(cell, proxy, baselines, options.keep), cells)
            for cell, (verdict, text) in zip(cells, verdicts):
                count[verdict] += 1
                print(verdict, cell, text, flush=True)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # one is enough; what follows has to be finished
            pool.shutdown(wait=False, cancel_futures=True)
            for home in list(homes):
                Home.kill(home.processes())
            return 130
    for reason, absent in left_out.items():
        if absent := [cell for cell in absent if is_wanted(cell)]:
            print(f"not run: {len(absent)} cells: {reason}")
    for entry in NOT_COMPARED:
        if excused := [cell for cell in cells if isinstance(cell, Cell) and entry.applies(cell)]:
            print(f"not compared: {entry.heard} in {len(excused)} cells: {entry.reason}")
    counts = f"{count['PASS']} passed, {count['FAIL']} failed, {count['SKIP']} skipped"
    print(f"{len(cells)} cells in {time.monotonic() - begin:.0f} s: {counts}")
    return 1 if count["FAIL"] or not cells else 0


if __name__ == "__main__":
    sys.exit(main())
