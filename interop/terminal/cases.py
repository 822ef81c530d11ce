"""Who sits at the terminal in which case."""

from holds.stage import Cast

from .demo import toured, toured_in_any_order
from .drawn import closed, connected, drawn
from .endings import (
    abandoned_attach,
    abandoned_demo,
    abandoned_proxy,
    ended_in_editor,
    resized,
    signalled,
    stopped,
    stopped_proxy,
    suspended,
)
from .flood import flooded
from .hostile import unharmed, unharmed_with_rules
from .stage import Alone
from .worked import killed, left, worked

STDIO = Cast("py", "py", "legacy", "stdio", "stdio")
SSE = Cast("py", "everything", "legacy", "sse", "sse")
HTTP = Cast("ts1", "everything", "legacy", "http", "http")
DOOR = Cast("py", "py", "legacy", "http", "stdio")
CONNECT = Cast("py", "py", "legacy", "stdio", "stdio")

CASES = [
    *((play, cast) for play in (worked, left, killed) for cast in (STDIO, SSE, HTTP)),
    (drawn, DOOR),
    (closed, DOOR),
    (connected, CONNECT),
    (toured, Alone("the demo")),
    (toured_in_any_order, Alone("the demo")),
    (signalled, STDIO),
    (abandoned_demo, Alone("the demo")),
    (abandoned_proxy, DOOR),
    (abandoned_attach, STDIO),
    (suspended, STDIO),
    (stopped, STDIO),
    (stopped_proxy, DOOR),
    (ended_in_editor, STDIO),
    (resized, STDIO),
    (unharmed, Alone("text that would take over a terminal")),
    (unharmed_with_rules, Alone("the same")),
]

# These measure, so nothing else runs beside them.
ALONE = [(flooded, Alone("calls as fast as they go"))]
