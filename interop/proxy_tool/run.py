#!/usr/bin/env python3
"""Reaches real servers through the proxy tool: what is seen there has to be what is seen without it.

    python3 interop/proxy_tool/run.py --proxy target/release/mcp-proxy [--only TEXT] [--jobs N]

`interop/setup.sh` installs the peers. Without them nothing is checked, and that is said in capitals; with --strict it
is a failure. The same goes for Magg and the cases with it.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gateway.stage import GatewayStage
from harness.plays import run
from proxy_tool import magg
from proxy_tool.cases import CASES

# As in gateway/run.py: servers wait for clocks of their own.
JOBS = (os.cpu_count() or 2) + 2


def main():
    if not (reason := magg.absent()):
        return run(__doc__, "proxy_tool", CASES + magg.CASES, GatewayStage, JOBS)
    code = run(__doc__, "proxy_tool", CASES, GatewayStage, JOBS)
    print(f"SKIPPED MAGG: {reason}. ITS {len(magg.CASES)} CASES WERE NOT RUN.")
    return code or ("--strict" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
