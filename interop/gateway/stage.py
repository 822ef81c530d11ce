"""A stage with many servers and one gateway before them."""

import json
from pathlib import Path

from harness.peers import SERVERS
from harness.processes import Home, RunFailed
from harness.proxy import ENDPOINT, LISTENING
from harness.scene import READY

from .lineup import LINEUP


class GatewayStage:
    """Servers with an address run at once, and so does a listening gateway. At the end all have to be gone."""

    def __init__(self, binary, cast):
        self.binary, self.cast, self.running = binary, cast, []

    def __enter__(self):
        self.home = Home().__enter__()
        return self

    def __exit__(self, *failure):
        self.home.__exit__(*failure)

    def entries(self, lineup=LINEUP):
        """The servers as a gateway's configuration has them; those with an address are started."""
        return [self._entry(place) for place in lineup]

    def _entry(self, place):
        if place.side == "stdio":
            return {"id": place.id, "command": place.command()}
        url = self.start(place.id, place.command(), SERVERS[place.server].environment).announced(READY)
        return {"id": place.id, "url": url} | ({"transport": "sse"} if place.side == "sse" else {})

    def configure(self, content, name="gateway.json"):
        path = Path(self.home.path, name)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
        return path

    def serve(self, config, side):
        """Whom a client on this transport has to do with: the words of a command, or an address."""
        words = [self.binary, "serve", "--config", str(config)]
        if side == "stdio":
            return words
        return self.start("gateway", [*words, "--listen", "0"]).announced(LISTENING) + ENDPOINT[side]

    def start(self, name, words, environment=None, **streams):
        self.running.append(self.home.start(name, words, environment, **streams))
        return self.running[-1]

    def close(self, clients=()):
        """Ends everything as it would be ended, and complains about whoever does not go."""
        for service in reversed([one for one in self.running if one not in clients]):
            service.terminate()
        if lingering := self.home.left_behind():
            raise RunFailed("left behind:\n" + "\n".join(f"  {pid} {line}" for pid, line in lingering.items()))
        if any(b"panicked at" in one.stderr for one in self.running):
            raise RunFailed("a panic")

    def complaints(self):
        return [complaint for one in self.running if (complaint := one.complaint())]
