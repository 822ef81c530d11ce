"""Who plays in a case: a real server, the proxy, a real client that takes orders, and a shell beside them."""

import json
import subprocess
from dataclasses import dataclass

from harness.peers import CLIENTS, SERVERS, peer_words
from harness.processes import Home, RunFailed
from harness.proxy import ENDPOINT, LISTENING, Proxy
from harness.scene import READY, finish

from .shell import Shell


@dataclass(frozen=True)
class Cast:
    client: str
    server: str
    era: str
    client_side: str
    server_side: str

    def __str__(self):
        return f"{self.client} × {self.server} {self.era} {self.client_side}-{self.server_side}"


class Client:
    """A client of an SDK: the orders it gets, and what came of them."""

    def __init__(self, running):
        self.running, self._calls = running, 0

    def connected(self):
        self.running.printed(rb'(?m)^(\{"connected".*)\n', "connected")

    def call(self, name, arguments=None, **options):
        """Begins a call, and gives its number."""
        self._calls += 1
        self._order({"call": self._calls, "name": name, "arguments": arguments or {}, **options})
        return self._calls

    def list_tools(self):
        """Asks for the list of tools, and gives its items."""
        self._calls += 1
        self._order({"list": self._calls})
        return self.outcome(self._calls)["result"]["tools"]

    def fill_in(self, form):
        """What forms are answered with from now on; with none they are left open."""
        self._order({"form": form})

    def cancel(self, call):
        self._order({"cancel": call})

    def outcome(self, call):
        """What came of a call, and what the server has asked until then."""
        pattern = rb'(?m)^(\{"call": ?%d\b.*)\n' % call
        return json.loads(self.running.printed(pattern, f"done with call {call}"))

    def text(self, call):
        """The text of a result. It has to be one."""
        outcome = self.outcome(call)
        if "result" not in outcome or outcome["result"].get("isError"):
            raise RunFailed(f"call {call}: {outcome}")
        return "\n".join(item["text"] for item in outcome["result"]["content"])

    def _order(self, order):
        self.running.popen.stdin.write(json.dumps(order).encode() + b"\n")
        self.running.popen.stdin.flush()


class Stage:
    """The server and a listening proxy run at once, the client when it is asked for. At the end all have to be gone."""

    def __init__(self, binary, cast):
        self.proxy, self.cast = Proxy(binary), cast

    def __enter__(self):
        self.home = Home().__enter__()
        self.shell, self.running, self.client = Shell(self.proxy.binary, self.home), [], None
        self.session = None
        return self

    def __exit__(self, *failure):
        self.home.__exit__(*failure)

    def server(self):
        return SERVERS[self.cast.server]

    def open(self):
        """Starts what listens. A proxy on stdio is started by its client."""
        server, side = self.server(), self.cast.server_side
        self.target, self.address = server.command(side, self.cast.era), None
        if side != "stdio":
            self.target = self._start("server", self.target, server.environment).announced(READY)
        if self.cast.client_side != "stdio":
            self.address = self._start("proxy", self.proxy.listener(side, self.target)).announced(LISTENING)

    def start_client(self):
        cast = self.cast
        peer = self.address + ENDPOINT[cast.client_side] if self.address else self.proxy.command(cast.server_side, self.target)
        words = [*CLIENTS[cast.client], "--orders", "--era", cast.era, "--profile", self.server().profile]
        words += peer_words(cast.client_side, peer)
        self.client = Client(self._start("client", words, stdin=subprocess.PIPE))
        return self.client

    def connect(self):
        """A connected client, and the shell of somebody who will interfere."""
        self.open()
        self.start_client().connected()
        self.session = self.shell.instance()["session"]
        return self.client, self.shell

    def close(self):
        """Ends everything as it would be ended, and complains about whoever does not go."""
        self.session = self.session or self.shell.instance()["session"]
        self.client.running.popen.stdin.close()
        finish([self.client.running])
        for service in reversed([one for one in self.running if one is not self.client.running]):
            service.terminate()
        if lingering := self.home.left_behind():
            raise RunFailed("left behind:\n" + "\n".join(f"  {pid} {line}" for pid, line in lingering.items()))
        if any(b"panicked at" in one.stderr for one in self.running):
            raise RunFailed("a panic")

    def recorded(self, filter_=""):
        """The messages of the session, by sequence."""
        lines = self.shell.listed("inspect", self.session, *(["--filter", filter_] if filter_ else []))
        return {line["sequence"]: line for line in lines if "raw" in line}

    def complaints(self):
        return [complaint for one in self.running if (complaint := one.complaint())]

    def _start(self, name, words, environment=None, stdin=subprocess.DEVNULL):
        self.running.append(self.home.start(name, words, environment, stdin))
        return self.running[-1]
