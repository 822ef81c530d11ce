"""The plays, and who is in them."""

from .commanded import ADDRESS, BEHIND_GATEWAY, COMMAND, commanded
from .reached import reached
from .shown import shown
from .transparent import Behind, transparent
from .visits import ToolVisitor, visited

SDKS = [("py", "legacy"), ("ts1", "legacy"), ("ts2", "legacy")]

CASES = [(reached, mode) for mode in ("beside", "instead")]
CASES += [(visited, ToolVisitor("py", *how)) for how in (("legacy", "stdio"), ("legacy", "http"), ("modern", "http"))]
CASES += [(transparent, Behind(*sdk, server, "stdio")) for sdk in SDKS for server in ("everything", "files", "memory")]
CASES += [(transparent, Behind("py", era, "kit", "http")) for era in ("legacy", "modern")]
CASES += [(transparent, Behind("ts2", "modern", "kit", "stdio"))]
CASES += [(commanded, way) for way in (COMMAND, ADDRESS, BEHIND_GATEWAY)]
CASES += [(shown, "a server that answers as the specification shows")]
