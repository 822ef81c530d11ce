"""A stage with a terminal on it: real peers, a proxy between them, and somebody who works its face by keys."""

import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass

from harness.peers import CLIENTS, SERVERS
from harness.processes import RunFailed
from harness.proxy import Proxy
from holds.checks import expect
from holds.stage import Client, Stage

from .face import Face
from .terminal import Terminal

AWAY_SECONDS = 3     # after a face is gone for so long, what it held goes on
MARGIN_SECONDS = 5   # for a busy machine


class Skipped(Exception):
    """It cannot be checked here."""


@dataclass(frozen=True)
class Alone:
    """A cast for plays that bring their own."""

    what: str

    def __str__(self):
        return self.what


@dataclass(frozen=True)
class HeadlessProxy(Proxy):
    def listener(self, server_side, target):
        return [*super().listener(server_side, target), "--ui", "none"]


class TerminalStage(Stage):
    def __init__(self, binary, cast):
        super().__init__(binary, cast)
        self.proxy = HeadlessProxy(binary)
        self.terminal = None
        self.notes = []  # figures that are reported

    def complaints(self):
        screen = self.terminal.complaint() if self.terminal else ""
        return [*([screen] if screen else []), *super().complaints()]

    def sit_down(self):
        """A terminal with a shell, and how it is set before anything was done to it."""
        self.terminal = Terminal(self.proxy.binary, self.home)
        self.before = self.terminal.settings()
        return self.terminal

    def attach(self):
        """The face on the terminal."""
        self.terminal.write("mcp-proxy attach\n")
        face = Face(self.terminal)
        face.drawn()
        return face

    def drawn_proxy(self):
        """A proxy that a person starts on the terminal, and that draws. Clients come in by the doors that it shows."""
        target = shlex.join(SERVERS[self.cast.server].command("stdio", self.cast.era))
        command = ["mcp-proxy", "proxy", "--transport", "stdio", "--target-command", target, "--listen", "127.0.0.1:0"]
        self.terminal.write(shlex.join(command) + "\n")
        face = Face(self.terminal)
        face.drawn()
        return face

    def start(self, name, words, stdin=subprocess.DEVNULL):
        return self._start(name, words, stdin=stdin)

    def start_client_of(self, words):
        """A client on stdio or HTTP of whatever these words name."""
        cast = self.cast
        words = [*CLIENTS[cast.client], "--orders", "--era", cast.era, "--profile", SERVERS[cast.server].profile, *words]
        self.client = Client(self._start("client", words, stdin=subprocess.PIPE))
        self.client.connected()
        return self.client

    def answered_soon(self, call, since):
        """What came of a call whose face went away at `since`."""
        text = self.client.text(call)
        took = time.monotonic() - since
        self.notes.append(f"answered {took:.1f} s after the face was gone")
        if took > AWAY_SECONDS + MARGIN_SECONDS:
            raise RunFailed(f"the call was answered only {took:.1f} s after the face was gone")
        return text

    def restored(self):
        """The terminal is a shell's again, in every respect."""
        self.terminal.at_the_shell()
        expect("how the terminal is set", self.terminal.settings(), self.before)
        self.terminal.run("echo it-works | tr a-z A-Z")
        self.terminal.shows("IT-WORKS")

    def close(self):
        """Closes the terminal, then ends everybody else as they would be ended. Nobody may be left."""
        self.terminal.close()
        if self.client:
            super().close()
        elif lingering := self.home.left_behind():
            raise RunFailed("left behind:\n" + "\n".join(f"  {pid} {line}" for pid, line in lingering.items()))


def missing():
    return next((f"no `{name}`" for name in ("tmux", "bash", "stty") if not shutil.which(name)), None)
