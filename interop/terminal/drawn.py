"""A person starts a proxy on a terminal. It draws, and clients come in by the doors that it shows."""

import re
import signal
import time

from harness.processes import RunFailed
from holds.checks import expect

from .stage import Skipped
from .worked import work

DOOR = re.compile(r"(http://127\.0\.0\.1:\d+/mcp)")
CONNECT = re.compile(r"mcp-proxy connect ([0-9a-f]+)")


def door(stage, pattern):
    return stage.terminal.until("a door", pattern.search)[1]


def drawn(stage):
    """A client over HTTP is seen and worked, and the proxy ends when its user says so."""
    stage.sit_down()
    face = stage.drawn_proxy()
    url = door(stage, DOOR)
    client = stage.start_client_of(["--transport", "http", "--url", url])
    seen_and_worked(stage, face, client)


def connected(stage):
    """The same for a client that starts `connect`."""
    if stage.shell.try_out("connect", "--help").returncode:
        raise Skipped("this proxy has no `connect`")
    stage.sit_down()
    face = stage.drawn_proxy()
    instance = door(stage, CONNECT)
    client = stage.start_client_of(["--", stage.proxy.binary, "connect", instance])
    seen_and_worked(stage, face, client)


def seen_and_worked(stage, face, client):
    face.row("the client", lambda row: row.words.startswith("initialize"))
    work(stage, face, client)
    end_client(stage)
    stage.terminal.press("q")
    stage.terminal.shows("Leave?", "end the proxy")
    stage.terminal.press("e")
    stage.restored()
    end(stage)


def closed(stage):
    """The screen is closed while a call is held: the client gets its answer, and the proxy goes on until Ctrl-C."""
    stage.sit_down()
    face = stage.drawn_proxy()
    client = stage.start_client_of(["--transport", "http", "--url", door(stage, DOOR)])
    face.hold("tool:echo")
    call = client.call("echo", {"message": "typed"})
    face.held("echo")
    stage.terminal.press("q")
    stage.terminal.shows("close this screen")
    stage.terminal.press("d")
    expect("what the server got", stage.answered_soon(call, time.monotonic()).lower(), "echo: typed")
    stage.terminal.shows("goes on serving its clients")
    expect("a call after that", client.text(client.call("echo", {"message": "on"})).lower(), "echo: on")
    stage.terminal.press("C-c")
    stage.restored()
    stage.client.running.popen.send_signal(signal.SIGKILL)
    end(stage)


def end_client(stage):
    running = stage.client.running
    running.popen.stdin.close()
    if code := running.popen.wait(20):
        raise RunFailed(f"client exit {code}")


def end(stage):
    """Nobody is left, save for the terminal."""
    stage.client = None
    stage.close()
