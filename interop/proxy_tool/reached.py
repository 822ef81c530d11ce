"""All that three servers have, natively and through the tool: the same lists, descriptions, results and errors."""

import json
import re
from pathlib import Path

from gateway.compared import HOME
from gateway.lineup import LINEUP
from gateway.stage import GatewayStage
from harness.compare import difference
from harness.peers import PYTHON, peer_words
from harness.processes import RunFailed
from harness.scene import finish

from .alike import same
from .plan import plan

PLACES = [place for place in LINEUP if place.id in ("everything", "files", "memory")]
TASK = re.compile(r"everything:[0-9a-f]{32}")
DATE = re.compile(r"\w{3} \w{3} \d\d \d{4} <time> GMT[^\\\"]*")


def reached(stage):
    """The play: the servers are new on each of the two ways, so that what a call changes is changed on both."""
    through = walked(stage, stage.cast, ["--through-tool", "proxy"])
    with GatewayStage(stage.binary, "beside") as alone:
        natively = walked(alone, "beside", [])
    if through != natively:
        raise RunFailed(f"differs\n{difference(natively, through)}")


def walked(stage, mode, options):
    configuration = {"servers": stage.entries(PLACES), "proxy_tool": {"mode": mode}}
    peer = stage.serve(stage.configure(configuration), "stdio")
    words = [PYTHON, str(Path(__file__).with_name("walker.py")), "--era", "legacy", "--profile", "walk", *options]
    words += ["--profiles", str(stage.configure({"walk": plan(PLACES)}, "plan.json"))]
    client = stage.start("client", [*words, *peer_words("stdio", peer)])
    finish([client])
    seen = json.loads(TASK.sub("<task>", DATE.sub("<date>", HOME.sub("<home>", client.output().decode()))))
    stage.close([client])
    return same(seen)
