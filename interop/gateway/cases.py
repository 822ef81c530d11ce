"""The plays, and who is in them."""

from .dialects import read
from .killed import killed
from .spelling import spelled
from .visits import Visitor, visited

SDKS = [("py", "legacy"), ("py", "modern"), ("ts1", "legacy"), ("ts2", "legacy"), ("ts2", "modern")]

CASES = [(visited, Visitor(client, era, side)) for side in ("stdio", "http") for client, era in SDKS]
CASES += [(visited, Visitor("ts1", "legacy", "sse"))]
CASES += [(visited, Visitor("inspector", *how)) for how in (("legacy", "http"), ("modern", "http"), ("legacy", "stdio"))]
CASES += [(killed, Visitor("ts1", "legacy", "stdio")), (killed, Visitor("py", "modern", "http"))]
CASES += [(spelled, "every tool, as its server spells it"), (read, "the files of five clients")]
