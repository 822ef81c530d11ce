#!/usr/bin/env python3
"""Puts many real servers behind one endpoint: each has to show real clients what it shows them directly.

    python3 interop/gateway/run.py --proxy target/release/mcp-proxy [--only TEXT] [--jobs N]

`interop/setup.sh` installs the peers. Without them nothing is checked, and that is said in capitals; with --strict it
is a failure.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gateway.cases import CASES
from gateway.lineup import absent
from gateway.stage import GatewayStage
from harness.plays import run

# Much of it is servers that wait for a clock of their own, hence two more than there are cores.
JOBS = (os.cpu_count() or 2) + 2


def main():
    if reason := absent():
        print(f"SKIPPED GATEWAY: {reason}. NOTHING WAS CHECKED.")
        return 1 if "--strict" in sys.argv else 0
    return run(__doc__, "gateway", CASES, GatewayStage, JOBS)


if __name__ == "__main__":
    sys.exit(main())
