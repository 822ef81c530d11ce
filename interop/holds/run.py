#!/usr/bin/env python3
"""Interferes with real clients and servers from another shell: holds, edits, drops and answers what they say.

    python3 interop/holds/run.py --proxy target/release/mcp-proxy [--only TEXT] [--jobs N]

`interop/setup.sh` installs the peers. Without them nothing is checked, and that is said in capitals; with --strict
it is a failure.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.plays import run
from holds.cases import CASES
from holds.stage import Stage

if __name__ == "__main__":
    sys.exit(run(__doc__, "holds", CASES, Stage))
