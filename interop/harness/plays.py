"""Runs cases: each is a play and its cast, on a stage of its own."""

import argparse
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .peers import HERE, TOOLS
from .processes import Home, RunFailed, homes


def arguments(doc, jobs=os.cpu_count() or 2):
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--proxy", type=Path, required=True, help="the proxy's binary")
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--jobs", type=int, default=jobs, help="cases at a time (default %(default)s)")
    parser.add_argument("--strict", action="store_true", help="what cannot be checked has failed")
    return parser.parse_args()


def verdict_on(stage_for, binary, play, cast):
    begin = time.monotonic()
    with stage_for(binary, cast) as stage:
        try:
            play(stage)
            return True, f"PASS {play.__name__}: {cast} {time.monotonic() - begin:.1f} s"
        except Exception as failure:  # whatever it is, it is this case's, and the others go on
            what = str(failure) if isinstance(failure, RunFailed) else repr(failure)
            return False, "\n".join([f"FAIL {play.__name__}: {cast}: {what}", *stage.complaints()])


def run(doc, name, all_cases, stage_for, jobs=os.cpu_count() or 2):
    """What the program ends with. `stage_for` makes the stage of a case out of the proxy's binary and the cast."""
    options = arguments(doc, jobs)
    if not (TOOLS / "stamp").is_file():
        print(f"SKIPPED {name.upper()}: no peers in {TOOLS}; run {HERE / 'setup.sh'}. NOTHING WAS CHECKED.")
        return 1 if options.strict else 0
    binary, begin = str(options.proxy.resolve()), time.monotonic()
    cases = [(play, cast) for play, cast in all_cases if options.only in f"{play.__name__}: {cast}"]
    failed = 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            for passed, text in pool.map(lambda case: verdict_on(stage_for, binary, *case), cases):
                print(text, flush=True)
                failed += not passed
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # one is enough; what follows has to be finished
            pool.shutdown(wait=False, cancel_futures=True)
            for home in list(homes):
                Home.kill(home.processes())
            return 130
    print(f"{name}: {len(cases)} cases in {time.monotonic() - begin:.0f} s: {len(cases) - failed} passed, {failed} failed")
    return 1 if failed or not cases else 0
