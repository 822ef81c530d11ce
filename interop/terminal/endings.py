"""What is done to the terminal itself: signals, suspending, sizes."""

import signal
import time
from pathlib import Path

from harness.processes import RunFailed
from holds.checks import expect

from .face import Face
from .terminal import COLUMNS, LINES

SIZES = [(1, 1), (500, 100), (3, 60), (200, 2), (COLUMNS, LINES)]
PANICKED = 101  # the exit code of a Rust program
STOPS = 6       # where the order of two threads decides


def signalled(stage):
    """However a face is told to end, the terminal is as before, and the client gets its answer."""
    client, _ = stage.connect()
    stage.sit_down()
    stage.attach().hold("> tool:echo")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        # A face draws a moment before it is in control, and until then nothing is held for it.
        stage.shell.until("the breakpoint to hold", lambda: stage.shell.listed("ps")[0]["breakpoints_that_hold"] == 1)
        call = client.call("echo", {"message": number.name})
        Face(stage.terminal).held("echo")
        stage.terminal.signal(number)
        text = stage.answered_soon(call, time.monotonic())
        expect(f"what the server got at {number.name}", text.lower(), f"echo: {number.name}".lower())
        stage.restored()
        stage.terminal.run("clear")
        stage.attach()  # what the last one holds, this one does, too
    Face(stage.terminal).leave()
    stage.close()


def abandoned_demo(stage):
    """Whoever closes the window leaves nothing behind."""
    stage.sit_down().write("mcp-proxy demo\n")
    stage.terminal.shows("Step 1 of 8", "tools/call")
    stage.close()


def abandoned_proxy(stage):
    stage.sit_down()
    stage.drawn_proxy()
    stage.close()


def abandoned_attach(stage):
    """A face whose window is closed ends by itself, and not by a panic."""
    stage.connect()
    stage.sit_down()
    note = Path(stage.home.path, "exit-code")
    command = f"mcp-proxy attach; echo $? > {note}.draft; mv {note}.draft {note}"
    stage.terminal.write(f"bash -c 'trap : HUP; {command}'\n")
    Face(stage.terminal).drawn()
    stage.terminal.anew()
    stage.terminal.until("the exit code", lambda _: note.exists())
    if (code := int(note.read_text())) == PANICKED:
        raise RunFailed(f"`attach` panicked: exit {code}")
    stage.close()


def suspended(stage):
    """The shell gets the terminal as it was, and `fg` draws anew, with what has passed meanwhile."""
    client, _ = stage.connect()
    stage.sit_down()
    face = stage.attach()
    for _ in range(2):
        stage.terminal.press("C-z")
        stage.terminal.shows("Stopped")
        stage.restored()
        client.text(client.call("echo", {"message": "meanwhile"}))
        stage.terminal.write("fg\n")
        face.drawn()
        face.row("what passed meanwhile", lambda row: "[echo]" in row.words)
        stage.terminal.press("?")
        stage.terminal.shows("Help: Traffic")
        stage.terminal.press("G")
        stage.terminal.until("help to close", lambda screen: "Help: Traffic" not in screen)
    face.leave()
    stage.restored()
    stage.close()


def stopped(stage):
    """The same for SIGTSTP from outside, also while an editor has the terminal: that stops once, with its face."""
    client, _ = stage.connect()
    stage.sit_down()
    editor = Path(stage.home.path, "editor")
    editor.write_text('#!/bin/sh\nkill -s TSTP 0\nsed -i s/typed/edited/ "$1"\n')
    editor.chmod(0o755)
    stage.terminal.run(f"export EDITOR={editor}")
    face = stage.attach()
    for _ in range(2):
        stage.terminal.signal(signal.SIGTSTP)
        stage.terminal.shows("Stopped")
        stage.restored()
        stage.terminal.write("clear; fg\n")
        face.drawn()
    face.hold("> tool:echo")
    call = client.call("echo", {"message": "typed"})
    face.held("echo")
    stage.terminal.press("e")
    stage.terminal.shows("Stopped")
    stage.terminal.at_the_shell()
    stage.terminal.write("clear; fg\n")
    expect("what the server got", client.text(call).lower(), "echo: edited")
    face.row("the edited call", lambda row: "[echo]" in row.words and row.is_edited)
    stage.terminal.press("?")
    stage.terminal.shows("Help: Traffic")
    stage.terminal.press("G")
    stage.terminal.until("help to close", lambda screen: "Help: Traffic" not in screen)
    face.leave()
    stage.restored()
    stage.close()


def stopped_proxy(stage):
    """SIGTSTP from outside for a proxy that draws, on a thread other than its first."""
    stage.sit_down()
    face = stage.drawn_proxy()
    for _ in range(STOPS):
        stage.terminal.signal(signal.SIGTSTP)
        stage.terminal.shows("Stopped")
        stage.restored()
        stage.terminal.write("clear; fg\n")
        face.drawn()
    stage.close()


def ended_in_editor(stage):
    """SIGTERM and SIGHUP end a face whose user is in an editor, and the editor with it."""
    client, _ = stage.connect()
    stage.sit_down()
    editor = Path(stage.home.path, "editor")
    editor.write_text("#!/bin/sh\nclear\necho in-the-editor\nexec sleep 600\n")
    editor.chmod(0o755)
    stage.terminal.run(f"export EDITOR={editor}; clear")
    stage.attach().hold("> tool:echo")
    for number in (signal.SIGTERM, signal.SIGHUP):
        # A face draws a moment before it is in control, and until then nothing is held for it.
        stage.shell.until("the breakpoint to hold", lambda: stage.shell.listed("ps")[0]["breakpoints_that_hold"] == 1)
        call = client.call("echo", {"message": number.name})
        Face(stage.terminal).held("echo")
        stage.terminal.press("e")
        stage.terminal.shows("in-the-editor")
        stage.terminal.signal(number)
        stage.restored()
        text = stage.answered_soon(call, time.monotonic())
        expect(f"what the server got at {number.name}", text.lower(), f"echo: {number.name}".lower())
        stage.terminal.run("clear")
        stage.attach()  # what the last one holds, this one does, too
    Face(stage.terminal).leave()
    stage.close()


def resized(stage):
    """No size is too small or too large to go on."""
    client, _ = stage.connect()
    stage.sit_down()
    face = stage.attach()
    program = stage.terminal.program()
    for columns, lines in SIZES:
        stage.terminal.resize(columns, lines)
        stage.terminal.press("?")
        if columns > 60 and lines > 5:
            stage.terminal.shows("Help: Traffic")
        stage.terminal.press("G")  # closes it, and does no harm by itself
        expect("the size", stage.terminal.fact("pane_width") + "x" + stage.terminal.fact("pane_height"), f"{columns}x{lines}")
    face.drawn()
    expect("the process", stage.terminal.program(), program)
    client.text(client.call("echo", {"message": "on"}))
    face.row("what passes", lambda row: "[echo]" in row.words)
    face.leave()
    stage.restored()
    stage.close()
