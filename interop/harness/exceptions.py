"""All that is not run or not compared, with the reason. Nothing else is left out.

A pair is compared with a direct conversation on the client's transport. Where the server behind the proxy speaks
another one, it may itself say something else there; such differences are of the server, not of the proxy.
"""

from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class NotRun:
    applies: Callable  # to a cell
    reason: str


@dataclass(frozen=True)
class NotCompared:
    applies: Callable  # to a cell
    heard: str         # a method
    reason: str
    feature: str = ""  # the one it is about, if it is not about all


def crosses(cell, transport):
    """Whether one side of the cell, and only one, is on this transport."""
    return (cell.client_side == transport) != (cell.server_side == transport)


NOT_RUN = [
    NotRun(
        lambda cell: cell.era == "modern" and "sse" in cell.pair,
        "2026-07-28 does not exist on HTTP+SSE, and a proxy between transports does not translate between eras",
    ),
    NotRun(
        lambda cell: cell.era == "auto" and "sse" in cell.pair and cell.server == "ts",
        "on HTTP+SSE this server is legacy only, so the client finds another era there than on its own transport",
    ),
]

NOT_COMPARED = [
    NotCompared(
        lambda cell: cell.server == "everything" and crosses(cell, "http"),
        "notifications/tools/list_changed",
        "it adds tools while it handles `initialized`; on HTTP no stream is open yet that could say so",
    ),
    NotCompared(
        lambda cell: cell.server == "raw" and crosses(cell, "stdio"),
        "notifications/com.example/custom",
        "its `noise` is for stdio only",
    ),
    NotCompared(
        lambda cell: cell.server == "everything" and crosses(cell, "http"),
        "notifications/progress",
        "it goes on to report progress after a cancellation; the exchange that the report would belong to may be over",
        feature="cancellation",
    ),
]


def not_run(cell):
    return next((entry for entry in NOT_RUN if entry.applies(cell)), None)


def compared(cell, document):
    """The document without what is not compared, and the reasons why something is missing."""
    entries = [entry for entry in NOT_COMPARED if entry.applies(cell)]

    def reduced(name, feature):
        unheard = {entry.heard for entry in entries if entry.feature in ("", name)}
        heard = {method: count for method, count in feature.get("heard", {}).items() if method not in unheard}
        return feature | {"heard": heard}

    features = {name: reduced(name, feature) for name, feature in document["features"].items()}
    return document | {"features": features}, entries
