"""Several clients at once on one listening proxy: two of the real ones, or a crowd whose ids all collide.

Both kinds of SDK number their requests from 0 or 1, so with two of them nearly every id is under way twice.
"""

from dataclasses import dataclass

from .compare import compare
from .matrix import Cell, client_words, features_of
from .peers import HERE, PYTHON, RAW_SERVER
from .processes import RunFailed
from .scene import Scene

# What one client does there, another one would notice, directly as well.
SHARED = {"subscription", "server-closes-subscription", "list-changed", "cancellation"}
SHARED_IN_KITS = SHARED | {"progress", "logging"}

SESSIONS_MAX = 64  # that a listening proxy keeps open towards a stdio server, each with a process of its own


@dataclass(frozen=True)
class Couple:
    clients: tuple  # (client, transport)
    server: str
    era: str
    server_side: str

    def __str__(self):
        who = " + ".join(f"{client} {side}" for client, side in self.clients)
        return f"{who} × {self.server} {self.era} at {self.server_side}"

    @property
    def pairs(self):
        return {(side, self.server_side) for _, side in self.clients}

    def missing(self):
        return self.cells()[0].missing()

    def cells(self):
        """What each of them would do alone."""
        # A legacy session has a stdio server of its own; all others share one.
        alone = self.server_side == "stdio" and self.era == "legacy"
        unseen = set() if alone else SHARED if self.server == "raw" else SHARED_IN_KITS
        return [
            Cell(client, self.server, self.era, side, self.server_side, frozenset(features_of(client, self.server, self.era) - unseen))
            for client, side in self.clients
        ]

    def check(self, proxy, baselines, keep):
        cells = self.cells()
        alone = [baselines.get(cell) for cell in cells]
        clients = tuple((cell.client_side, client_words(cell)) for cell in cells)
        server_side = self.server_side if proxy else self.clients[0][1]
        together = Scene(self.server, self.era, server_side, clients).play(proxy)
        for cell, one, other in zip(cells, alone, together):
            compare(cell, one, other, None)
        return f"({', '.join(str(len(document['features'])) for document in together)} features)"


@dataclass(frozen=True)
class Crowd:
    size: int
    era: str
    client_side: str
    server_side: str
    is_limited: bool = False

    def __str__(self):
        return f"crowd of {self.size} × raw {self.era} {self.client_side}-{self.server_side}"

    @property
    def pairs(self):
        return {(self.client_side, self.server_side)}

    def missing(self):
        return None if RAW_SERVER.is_file() else f"no {RAW_SERVER}; set MCP_SHARED"

    def check(self, proxy, baselines, keep):
        words = [PYTHON, str(HERE / "clients/crowd.py"), "--era", self.era, "--clients", str(self.size)]
        (direct,) = Scene("raw", self.era, self.client_side, ((self.client_side, words),)).play(None)
        if not proxy:
            return f"({direct})"
        if self.is_limited:
            words += ["--one-too-many"]
            direct |= {"one too many": 503, "welcome afterwards": True}
        (proxied,) = Scene("raw", self.era, self.server_side, ((self.client_side, words),)).play(proxy)
        if direct != proxied:
            raise RunFailed(f"{proxied} instead of {direct}")
        return "(" + ", ".join(f"{count} {what}" for what, count in proxied.items()) + ")"


COMPANY = [
    Couple((("py", "http"), ("py", "http")), "everything", "legacy", "stdio"),
    Couple((("ts1", "http"), ("ts2", "http")), "raw", "legacy", "http"),
    Couple((("ts1", "sse"), ("py", "http")), "raw", "legacy", "stdio"),
    Couple((("ts2", "sse"), ("ts1", "sse")), "py", "legacy", "sse"),
    Couple((("py", "http"), ("ts2", "http")), "raw", "modern", "stdio"),
    Couple((("ts2", "http"), ("ts2", "http")), "ts", "modern", "http"),
    Crowd(200, "legacy", "http", "http"),
    Crowd(200, "modern", "http", "http"),
    Crowd(SESSIONS_MAX, "legacy", "http", "stdio", is_limited=True),
    Crowd(SESSIONS_MAX, "legacy", "sse", "stdio", is_limited=True),
    Crowd(200, "modern", "http", "stdio"),
]
