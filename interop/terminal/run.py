#!/usr/bin/env python3
"""Works the terminal face by keys, with real clients and servers behind it, and looks at the screen.

    python3 interop/terminal/run.py --proxy target/release/mcp-proxy [--only TEXT] [--jobs N]

Needs tmux, and the peers that `interop/setup.sh` installs. Without them nothing is checked, and that is said in
capitals; with --strict it is a failure, as is everything else that is skipped.
"""

import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.peers import HERE, TOOLS
from harness.plays import arguments
from harness.processes import Home, RunFailed, homes
from terminal.cases import ALONE, CASES
from terminal.stage import Skipped, TerminalStage, missing

PASS, FAIL, SKIP = "PASS", "FAIL", "SKIPPED"


def lacks():
    if not (TOOLS / "stamp").is_file():
        return f"no peers in {TOOLS}; run {HERE / 'setup.sh'}"
    return missing()


def verdict_on(binary, play, cast):
    begin, name = time.monotonic(), f"{play.__name__}: {cast}"
    with TerminalStage(binary, cast) as stage:
        try:
            play(stage)
            notes = "".join(f", {note}" for note in stage.notes)
            return PASS, f"PASS {name} {time.monotonic() - begin:.1f} s{notes}"
        except Skipped as why:
            return SKIP, f"SKIPPED {name.upper()}: {why}. IT WAS NOT CHECKED."
        except Exception as failure:  # whatever it is, it is this case's, and the others go on
            what = str(failure) if isinstance(failure, RunFailed) else repr(failure)
            return FAIL, "\n".join([f"FAIL {name}: {what}", *stage.complaints()])


def main():
    options = arguments(__doc__)
    if lack := lacks():
        print(f"SKIPPED TERMINAL: {lack}. NOTHING WAS CHECKED.")
        print(f"0 passed, 0 failed, {len(CASES) + len(ALONE)} skipped")
        return 1 if options.strict else 0
    binary, begin = str(options.proxy.resolve()), time.monotonic()
    count = {PASS: 0, FAIL: 0, SKIP: 0}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for cases, jobs in ((CASES, options.jobs), (ALONE, 1)):
        chosen = [(play, cast) for play, cast in cases if options.only in f"{play.__name__}: {cast}"]
        with ThreadPoolExecutor(jobs) as pool:
            try:
                for verdict, text in pool.map(lambda case: verdict_on(binary, *case), chosen):
                    print(text, flush=True)
                    count[verdict] += 1
            except KeyboardInterrupt:
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # one is enough; what follows has to be finished
                pool.shutdown(wait=False, cancel_futures=True)
                for home in list(homes):
                    Home.kill(home.processes())
                return 130
    print(f"terminal: {sum(count.values())} cases in {time.monotonic() - begin:.0f} s")
    print(f"{count[PASS]} passed, {count[FAIL]} failed, {count[SKIP]} skipped")
    return 1 if count[FAIL] or (options.strict and count[SKIP]) or not any(count.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
