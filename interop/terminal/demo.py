"""The demo, walked through by keys as its coach says."""

import json
import re
from pathlib import Path

from holds.checks import expect, expect_in

from .face import Face, rows
from .terminal import PATIENCE_SECONDS

ROUND_SECONDS = 6  # until the client of the demo has made each of its calls


def toured(stage):
    stage.sit_down()
    terminal, face = stage.terminal, Face(stage.terminal)
    terminal.write("mcp-proxy demo\n")
    terminal.shows("Step 1 of 8")

    face.row("a call", lambda row: "tools/call" in row.words)
    terminal.press("k", "k", "j")
    terminal.shows("Step 2 of 8")

    terminal.press("/")
    face.answer_prompt("Filter", "tool:add")
    terminal.shows("Step 3 of 8")
    terminal.until("only what matches", lambda screen: {"[add]" in row.words for row in rows(screen)} == {True})

    terminal.press("i")
    terminal.shows("Step 4 of 8")
    call_of_add(face)
    face.edit('"b": 40', '"b": 2')
    terminal.shows("Step 5 of 8")

    answer = face.held("add", is_to_server=False)
    face.select(answer.sequence)
    face.forward()
    terminal.shows(f"#{answer.sequence} sent on as it came")
    terminal.press("i")
    terminal.shows("Step 6 of 8")

    face.select(face.row("a call", lambda row: row.is_to_server).sequence)
    terminal.press("r")
    terminal.shows("Step 7 of 8")

    terminal.press("2")
    terminal.shows("1 held")
    terminal.press("D")
    terminal.shows("Deny #")
    terminal.press("o")
    terminal.shows("Step 8 of 8")

    terminal.press("s")
    file = terminal.until("the name of a file", re.compile(r"Save session to: (session-\w+\.json)").search)[1]
    terminal.press("Enter")
    terminal.shows("That is all of it", f"messages written to {stage.home.path}")
    terminal.press("q")
    terminal.shows("Put your own server behind it")
    stage.restored()
    check(stage, file)
    stage.close()


def call_of_add(face):
    """Lets go whatever is held until it is a call of `add`; the client does one after the other, round and round."""

    def look(screen):
        if any(row.is_held and row.is_to_server for row in rows(screen)):
            return True
        if re.search(r"\d held", screen):
            face.terminal.press("F")
        return False

    face.terminal.until("a held call of add", look, ROUND_SECONDS + PATIENCE_SECONDS)


def check(stage, file):
    """The saved session has what was done to the messages."""
    expect_in("what `inspect` prints of the file", "tools/call", stage.shell.run("inspect", file))
    saved = json.loads(Path(stage.home.path, file).read_text())["messages"]
    edited = [message["raw"]["params"]["arguments"]["b"] for message in saved if message.get("modified")]
    expect("what was edited", edited, [2])
