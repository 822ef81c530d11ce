#!/usr/bin/env python3
"""Interferes with real clients and servers from another shell: holds, edits, drops and answers what they say.

    python3 interop/holds/run.py --proxy target/release/mcp-proxy [--only TEXT] [--jobs N]

`interop/setup.sh` installs the peers. Without them nothing is checked, and that is said in capitals; with --strict
it is a failure.
"""

import argparse
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.peers import HERE, TOOLS
from harness.processes import Home, RunFailed, homes
from holds.cases import CASES
from holds.stage import Stage


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--proxy", type=Path, required=True, help="the proxy's binary")
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="cases at a time (default %(default)s)")
    parser.add_argument("--strict", action="store_true", help="what cannot be checked has failed")
    return parser.parse_args()


def verdict_on(binary, play, cast):
    begin = time.monotonic()
    with Stage(binary, cast) as stage:
        try:
            play(stage)
            return True, f"PASS {play.__name__}: {cast} {time.monotonic() - begin:.1f} s"
        except Exception as failure:  # whatever it is, it is this case's, and the others go on
            what = str(failure) if isinstance(failure, RunFailed) else repr(failure)
            return False, "\n".join([f"FAIL {play.__name__}: {cast}: {what}", *stage.complaints()])


def main():
    options = arguments()
    if not (TOOLS / "stamp").is_file():
        print(f"SKIPPED HOLDS: no peers in {TOOLS}; run {HERE / 'setup.sh'}. NOTHING WAS CHECKED.")
        return 1 if options.strict else 0
    binary, begin = str(options.proxy.resolve()), time.monotonic()
    cases = [(play, cast) for play, cast in CASES if options.only in f"{play.__name__}: {cast}"]
    failed = 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            for passed, text in pool.map(lambda case: verdict_on(binary, *case), cases):
                print(text, flush=True)
                failed += not passed
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # one is enough; what follows has to be finished
            pool.shutdown(wait=False, cancel_futures=True)
            for home in list(homes):
                Home.kill(home.processes())
            return 130
    print(f"holds: {len(cases)} cases in {time.monotonic() - begin:.0f} s: {len(cases) - failed} passed, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
