"""One client, one connection, and every server in turn: each has to show through the gateway what it shows directly."""

import json
from dataclasses import dataclass

from harness.compare import Baselines, difference
from harness.peers import CLIENTS, HERE, SERVERS, peer_words
from harness.processes import RunFailed
from harness.scene import Scene, finish

from .compared import comparable
from .lineup import LINEUP, features_of
from .names import NotItsOwn, as_directly, given

PROFILES = json.loads((HERE / "profiles.json").read_text())
baselines = Baselines()


@dataclass(frozen=True)
class Visitor:
    client: str
    era: str
    side: str

    def __str__(self):
        return f"{self.client} {self.era} at {self.side}"

    def lineup(self):
        """Who is there."""
        return LINEUP

    def places(self):
        """Whom to visit. The Inspector starts all of them for every method that it calls on stdio, so there it is few."""
        return LINEUP[:2] if (self.client, self.side) == ("inspector", "stdio") else LINEUP

    def features(self, place):
        return features_of(self.client, place, self.era)

    def configuration(self, entries):
        """Of the gateway that is visited."""
        return {"servers": entries}

    def words(self):
        return [*CLIENTS[self.client], "--era", self.era]

    def alike(self, seen):
        """What is compared of what was seen, directly and through the gateway."""
        return seen


@dataclass(frozen=True)
class Alone:
    """A client with one of the servers, directly, on the server's transport and in its era."""

    client: str
    server: str
    era: str
    side: str

    def directly(self):
        return self

    def scene(self):
        features = features_of_all(self.client, self.server, self.side, self.era)
        words = [*CLIENTS[self.client], "--era", self.era, "--profile", SERVERS[self.server].profile]
        return Scene(self.server, self.era, self.side, ((self.side, [*words, "--features", ",".join(sorted(features))]),))


def features_of_all(client, server, side, era):
    """What any visitor compares with what is seen here, so that all can share it."""
    there = [place for place in LINEUP if (place.server, place.side) == (server, side)]
    met = [(place, seen) for place in there for seen in ("legacy", "modern") if place.spoken_with(seen) == era]
    return set().union(*(features_of(client, place, seen) for place, seen in met))


def visited(stage):
    """The play: everything that the line-up has to show, compared with what it shows directly."""
    cast = stage.cast
    features = {place: cast.features(place) for place in cast.places()}
    profiles = {
        place.id: given(place, PROFILES[place.profile()], cast.era) | {"features": sorted(wanted)}
        for place, wanted in features.items()
    }
    peer = stage.serve(stage.configure(cast.configuration(stage.entries(cast.lineup()))), cast.side)
    words = [*cast.words(), "--profile", ",".join(profiles)]
    words += ["--profiles", str(stage.configure(profiles, "profiles.json")), *peer_words(cast.side, peer)]
    client = stage.start("client", words)
    finish([client])
    documents = {document["profile"]: document["features"] for document in json.loads(client.output())}
    stage.close([client])
    found = [what for place, wanted in features.items() if (what := differs(cast, place, wanted, documents[place.id]))]
    if found:
        raise RunFailed("\n".join(found))


def differs(cast, place, wanted, seen):
    spoken = place.spoken_with(cast.era)
    client = "ts2" if cast.client == "ts1" and spoken == "modern" else cast.client
    direct = baselines.get(Alone(client, place.server, spoken, place.side))["features"]
    if missing := wanted - (seen.keys() & direct.keys()):
        return f"{place.id}: nothing observed of {', '.join(sorted(missing))}"
    ways = {"is_crossed": spoken != cast.era, "is_printed": cast.client == "inspector"}
    try:
        seen = comparable(as_directly(place, seen), wanted, **ways)
    except NotItsOwn as stray:
        return f"{place.id}: {stray}"
    seen, direct = cast.alike(seen), cast.alike(comparable(direct, wanted, **ways))
    return None if direct == seen else f"{place.id} differs\n{difference(direct, seen)}"
