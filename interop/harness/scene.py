"""One run: a server, perhaps a proxy before it, and the clients that talk to it, all in a home of their own."""

import json
import subprocess
import time
from dataclasses import dataclass

from .peers import SERVERS, peer_words
from .processes import Home, RunFailed
from .proxy import ENDPOINT, LISTENING

RUN_TIMEOUT_SECONDS = 120    # several times what the slowest run takes on a busy machine
READY = rb"READY (http\S+)"
CONNECTED = rb"(CONNECTED)"


@dataclass(frozen=True)
class Scene:
    server: str
    era: str
    server_side: str
    clients: tuple  # (transport, words of the client before those that name its peer)

    def play(self, proxy):
        """The documents of the clients, in their order. Without a proxy they talk to the server itself."""
        with Home() as home:
            services, clients = [], []
            try:
                self._start(home, proxy, services, clients)
                finish(clients)
                for service in reversed(services):  # the proxy before the server that it talks to
                    service.terminate()
                if lingering := home.left_behind():
                    raise RunFailed("left behind:\n" + "\n".join(f"  {pid} {line}" for pid, line in lingering.items()))
                for one in (*clients, *services):
                    if b"panicked at" in one.stderr:
                        raise RunFailed("a panic")
                return [json.loads(client.output()) for client in clients]
            except (RunFailed, json.JSONDecodeError) as failure:
                said = [complaint for one in (*clients, *services) if (complaint := one.complaint())]
                raise RunFailed("\n".join([str(failure), *said])) from failure

    def _start(self, home, proxy, services, clients):
        target = SERVERS[self.server].command(self.server_side, self.era)
        if self.server_side != "stdio":
            services.append(home.start("server", target, SERVERS[self.server].environment))
            target = services[-1].announced(READY)
        address = None
        if proxy and any(transport != "stdio" for transport, _ in self.clients):
            services.append(home.start("proxy", proxy.listener(self.server_side, target)))
            address = services[-1].announced(LISTENING)
        together = ["--together"] if len(self.clients) > 1 else []
        for transport, words in self.clients:
            if address:
                peer = address + ENDPOINT[transport]
            else:
                peer = proxy.command(self.server_side, target) if proxy else target
            words = [*words, *together, *peer_words(transport, peer)]
            clients.append(home.start("client", words, stdin=subprocess.PIPE if together else subprocess.DEVNULL))
        if together:
            for client in clients:
                client.announced(CONNECTED)
            for client in clients:
                client.popen.stdin.close()


def finish(clients):
    deadline = time.monotonic() + RUN_TIMEOUT_SECONDS
    for client in clients:
        try:
            client.popen.wait(deadline - time.monotonic())
        except subprocess.TimeoutExpired:
            raise RunFailed(f"not done after {RUN_TIMEOUT_SECONDS} s") from None
        if client.popen.returncode != 0:
            raise RunFailed(f"client exit {client.popen.returncode}")
