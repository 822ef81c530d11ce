"""A server behind a gateway that shows nothing but the tool, and before that a proxy that looks behind it."""

import json
from dataclasses import dataclass

from gateway.compared import comparable
from gateway.lineup import LINEUP, features_of
from gateway.visits import Alone, baselines
from harness.compare import difference
from harness.peers import CLIENTS, peer_words
from harness.processes import RunFailed
from harness.proxy import ENDPOINT, LISTENING
from harness.scene import finish

from .visits import REACHED

PLACES = {place.id: place for place in LINEUP}


@dataclass(frozen=True)
class Behind:
    client: str
    era: str
    server: str  # of the line-up
    side: str    # of everyone but the server

    def __str__(self):
        return f"{self.client} {self.era} × {self.server} at {self.side}"


def transparent(stage):
    """The play: the client sees what it sees of the server itself."""
    cast, place = stage.cast, PLACES[stage.cast.server]
    wanted = features_of(cast.client, place, cast.era) & REACHED
    entries = [entry | {"prefix": False} for entry in stage.entries([place])]
    hidden = stage.serve(stage.configure({"servers": entries, "proxy_tool": {"mode": "instead"}}), cast.side)
    words = [*CLIENTS[cast.client], "--era", cast.era, "--profile", place.profile(), "--features", ",".join(sorted(wanted))]
    client = stage.start("client", [*words, *peer_words(cast.side, before(stage, place, hidden))])
    finish([client])
    seen = json.loads(client.output())["features"]
    stage.close([client])
    direct = baselines.get(Alone(cast.client, place.server, cast.era, place.side))["features"]
    if missing := wanted - (seen.keys() & direct.keys()):
        raise RunFailed(f"nothing observed of {', '.join(sorted(missing))}")
    ways = {"is_crossed": False, "is_printed": False}
    seen, direct = comparable(seen, wanted, **ways), comparable(direct, wanted, **ways)
    if seen != direct:
        raise RunFailed(f"differs\n{difference(direct, seen)}")


def before(stage, place, hidden):
    """The proxy that shows what is hidden: the words of a command, or an address."""
    if stage.cast.side == "stdio":
        return [stage.binary, "run", "--unwrap-proxy-tool", "--name", place.id, "--", *hidden]
    words = [stage.binary, "proxy", "--transport", "streamable-http", "--target-url", hidden, "--unwrap-proxy-tool"]
    shown = stage.start("proxy", [*words, "--name", place.id, "--listen", "127.0.0.1:0"])
    return shown.announced(LISTENING) + ENDPOINT[stage.cast.side]
