#!/usr/bin/env python3
"""Puts rules between real clients and a real server: what is denied never reaches it, and the audit has it all.

    python3 interop/governance/run.py --proxy target/release/mcp-proxy [--only TEXT] [--jobs N]

`mcp-governance-proxy` has to lie beside the proxy. `interop/setup.sh` installs the peers. Without them nothing is
checked, and that is said in capitals; with --strict it is a failure.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from governance.cases import CASES
from governance.stage import GovernedStage
from harness.plays import run

if __name__ == "__main__":
    sys.exit(run(__doc__, "governance", CASES, GovernedStage))
