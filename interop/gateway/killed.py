"""One server is killed while all are in use: its own calls fail at once, nobody else's do, and it comes back."""

import os
import signal
import subprocess
import time

from harness.peers import CLIENTS, EVERYTHING, NODE, peer_words
from harness.processes import READY_SECONDS, RunFailed
from harness.scene import finish
from holds.stage import Client

from .lineup import LINEUP

UNDER_WAY = {
    "everything": ("trigger-long-running-operation", {"duration": 600, "steps": 600}),
    "kit": ("steps", {"count": 2}),  # until it is released
    "raw": ("slow", {"ms": 3000}),
    "raw-old": ("slow", {"ms": 3000}),
    "raw-new": ("slow", {"ms": 3000}),
}
QUICK = {
    "everything": ("echo", {"message": "hello"}),
    "files": ("list_allowed_directories", {}),
    "memory": ("read_graph", {}),
    "kit": ("echo", {"message": "hello"}),
    "web": ("echo", {"message": "hello"}),
    "raw": ("echo", {"message": "hello"}),
    "raw-old": ("echo", {"message": "hello"}),
    "raw-new": ("echo", {"message": "hello"}),
}


def killed(stage):
    cast, neighbours = stage.cast, [place.id for place in LINEUP if place.id != "everything"]
    peer = stage.serve(stage.configure({"servers": stage.entries()}), cast.side)
    words = [*CLIENTS[cast.client], "--orders", "--era", cast.era, "--profile", "everything", *peer_words(cast.side, peer)]
    client = Client(stage.start("client", words, stdin=subprocess.PIPE))
    client.connected()
    for server in QUICK:
        client.text(call(client, server, QUICK))

    under_way = {server: call(client, server, UNDER_WAY) for server in UNDER_WAY}
    # By the time of its answer those before are under way; one that is not would be refused all the same.
    client.text(call(client, "everything", QUICK))
    (victim,) = [pid for pid, line in stage.home.processes().items() if line == f"{NODE} {EVERYTHING} stdio "]
    os.kill(victim, signal.SIGKILL)

    refused = client.outcome(under_way.pop("everything"))
    if "error" not in refused or "everything" not in refused["error"]["message"]:
        raise RunFailed(f"the call of the one that was killed: {refused}")
    for server in neighbours:
        client.text(call(client, server, QUICK))
    client.text(client.call("kit__release"))
    for started in under_way.values():
        client.text(started)
    comes_back(client)
    if victim in stage.home.processes():
        raise RunFailed("the one that was killed is still there")
    client.running.popen.stdin.close()
    finish([client.running])
    stage.close([client.running])


def call(client, server, calls):
    name, arguments = calls[server]
    return client.call(f"{server}__{name}", arguments)


def comes_back(client):
    """Whoever calls a server that is down is told when to try again; nobody has to."""
    deadline = time.monotonic() + READY_SECONDS
    while "result" not in (outcome := client.outcome(call(client, "everything", QUICK))):
        if time.monotonic() > deadline:
            raise RunFailed(f"it did not come back: {outcome}")
