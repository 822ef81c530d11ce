"""Text that would take over the terminal goes through every screen, and every byte that is written is looked at."""

import json
import subprocess
import sys
from pathlib import Path

from harness.peers import HERE
from harness.processes import RunFailed
from holds.checks import expect

from .face import VIEWS
from .sequences import foreign

sys.path.insert(0, str(HERE / "servers"))
from hostile_server import ALL, WEAPONS  # noqa: E402

SERVER = HERE / "servers/hostile_server.py"
CALLED = ["title", "bidi", "csi-c1", "hidden"]
HELD = ["bidi", "csi-c1", "hidden", "marks"]
SCREENS = "12345689"
# What opens over a held message, and a word by which it is known.
OPENED = {"b": "Hold what matches:", "m": "ctrl-s sends it on", "d": "Drop #", "y": "Copy", ";": "Note:"}
RULES = """[[policy.rules]]
name = "no-titles"
match = "tool:title*"
verdict = "deny"
"""


class RawClient:
    """A client that says what it likes. No SDK would."""

    def __init__(self, running):
        self.running, self._asked = running, 0

    def send(self, method, **params):
        """Begins a request, and gives its number."""
        self._asked += 1
        message = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        self.running.popen.stdin.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
        self.running.popen.stdin.flush()
        return self._asked

    def call(self, weapon):
        meta = {"progressToken": f"token{ALL}"}
        return self.send("tools/call", name=f"{weapon}{WEAPONS[weapon]}", arguments={ALL: ALL}, _meta=meta)

    def answered(self, number):
        self.running.printed(rb'(?m)^(\{[^\n]*"id": ?%d[,}][^\n]*)\n' % number, f"answered {number}")


def unharmed(stage):
    client, face, written = begin(stage)
    terminal = stage.terminal
    send_again(terminal, face)
    look_at_messages(terminal, face)
    look_at_screens(terminal)
    expect_unharmed(written)
    open_everything(terminal, face, client)
    expect_unharmed(written)
    client.send("end")
    terminal.shows("— recording ")
    look_at_screens(terminal)
    end(stage, client, written)


def unharmed_with_rules(stage):
    """Rules refuse most of it, and the audit has what they refused."""
    rules = Path(stage.home.path, "rules.toml")
    rules.write_text(RULES)
    client, face, written = begin(stage, "--rules", str(rules))
    look_at_messages(stage.terminal, face)
    look_at_screens(stage.terminal)
    client.running.popen.stdin.close()
    end(stage, client, written)


def begin(stage, *flags):
    """Everything was said once, and a face is there whose every byte is recorded."""
    terminal, written = stage.sit_down(), Path(stage.home.path, "written")
    terminal.resize(120, 70)
    command = [stage.proxy.binary, "run", "--name", f"evil{ALL.replace(chr(0), '')}", *flags, "--", sys.executable, str(SERVER)]
    client = RawClient(stage.start("client", command, stdin=subprocess.PIPE))
    info = {"name": f"evil{ALL}", "version": ALL}
    client.answered(client.send("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info))
    client.answered(client.send("tools/list", cursor=ALL))
    for weapon in CALLED:
        client.answered(client.call(weapon))
    client.answered(client.send(f"no/{ALL}"))
    stage.title = terminal.fact("pane_title")
    terminal.record(written)
    return client, stage.attach(), written


def end(stage, client, written):
    terminal = stage.terminal
    terminal.press("Q")
    stage.restored()
    expect_unharmed(written)
    expect("the terminal's title", terminal.fact("pane_title"), stage.title)
    expect("what was put on the clipboard", terminal.clipboard(), "")
    # Something of it was on the screen, or nothing was shown.
    for weapon in CALLED:
        expect(f"whether {weapon} was shown", f"[{weapon}" in written.read_text(), True)
    client.running.popen.wait(20)
    stage.close()


def send_again(terminal, face):
    """For the repeater to have something, and something to compare."""
    face.select(face.row("a call", lambda row: row.is_to_server and "[bidi" in row.words).sequence)
    terminal.press("r")
    terminal.settled()
    terminal.press("r")
    terminal.settled()
    terminal.press("c")
    terminal.settled()
    terminal.press("1")
    terminal.shows("┌ Messages")


def look_at_messages(terminal, face):
    """Every view of every message."""
    face.row("the first message", lambda row: row.sequence == 1)
    terminal.press("g")
    terminal.shows("Detail #1 ")
    for view in VIEWS:
        face.show(view)
        last = face.row("a message", lambda row: True).sequence
        terminal.press("g", *["j"] * last)
        terminal.until("the last message", lambda screen: f"Detail #{last} " in screen)


def look_at_screens(terminal):
    """Every screen with what it opens."""
    is_live = "— recording " not in terminal.screen()
    for screen in SCREENS:
        terminal.press(screen, "j", "j", "k", "v", "v", "V", "z", "z", "C-r", "?")
        terminal.shows("Help: ")
        terminal.press("G")
        terminal.until("help to close", lambda screen: "Help: " not in screen)
        terminal.press(":")
        terminal.shows(" Commands ")
        for opens in ("Escape", "Enter", "Escape"):
            terminal.press(opens)
            terminal.settled()
    terminal.press("1")
    if is_live:
        terminal.until("what is live", lambda screen: "— recording " not in screen or terminal.press("Escape"))
    terminal.shows("┌ Messages")


def open_everything(terminal, face, client):
    """Hostile tools are opened to be called, hostile messages are held and opened for all that can be done to them."""
    terminal.press("5", "g")
    terminal.settled()
    for _ in WEAPONS:
        terminal.press("Enter")
        terminal.settled()
        terminal.press("Escape")
        terminal.settled()
        terminal.press("j")
    terminal.press("1", "G")
    terminal.shows("┌ Messages")
    face.hold("tools/call")
    for weapon in HELD:
        call = client.call(weapon)
        held = face.row("a held call", lambda row: row.is_held and row.is_to_server and f"[{weapon}" in row.words)
        face.select(held.sequence)
        for key, opened in OPENED.items():
            terminal.press(key)
            terminal.shows(opened)
            terminal.settled()
            if key == "m":
                terminal.press(*["Down"] * 30, "End")
            terminal.press("Escape")
            terminal.until(f"{opened!r} to close", lambda screen: opened not in screen)
        terminal.press("f")
        face.row("a held answer", lambda row: row.is_held and not row.is_to_server)
        terminal.press("F")
        client.answered(call)


def expect_unharmed(written):
    if found := foreign(written.read_bytes()):
        pieces = "\n".join(f"    {piece!a}" for piece in dict.fromkeys(found[:12]))
        raise RunFailed(f"{len(found)} foreign sequences were written, such as\n{pieces}")
