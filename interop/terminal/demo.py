"""The demo, walked through by keys as its coach says."""

import json
import re
from pathlib import Path

from holds.checks import expect, expect_in

from .face import Face, rows

LEAVING = re.compile(r"1 message is held and will be denied in (1m )?\d+ ?s unless answered elsewhere\. Leave\?")



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

    terminal.press("Escape")
    terminal.until("every message", lambda screen: {"[add]" in row.words for row in rows(screen)} == {True, False})
    terminal.press("i")
    terminal.shows("Step 4 of 8")
    call_with_numbers(face)
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


def toured_in_any_order(stage):
    """On a small terminal, last things first: each counts, and stays done."""
    stage.sit_down()
    terminal, face = stage.terminal, Face(stage.terminal)
    terminal.resize(80, 24)
    terminal.write("mcp-proxy demo\n")
    step(terminal, "Step 1 of 8 ")

    terminal.press("s")
    terminal.shows("Save session to:")
    terminal.press("Enter")
    step(terminal, "Step 1 of 8, 1 more done ")
    terminal.press("i")
    step(terminal, "Step 1 of 8, 2 more done ")
    call_with_numbers(face)
    face.edit('"b": 40', '"b": 2')
    step(terminal, "Step 1 of 8, 3 more done ")
    terminal.press("i")
    step(terminal, "Step 1 of 8, 4 more done ")

    face.row("an answer that was held", lambda row: not row.is_to_server and not row.is_held)
    terminal.press("k", "k", "j")
    step(terminal, "Step 2 of 8, 4 more done ")
    terminal.press("/")
    face.answer_prompt("Filter", "tool:add")
    step(terminal, "Step 6 of 8, 1 more done ")
    terminal.press(">")
    step(terminal, "Step 7 of 8, 1 more done ")
    terminal.press("2")
    terminal.shows("delete_note", "denied in ", "D deny")
    terminal.press("q")
    terminal.until("words on leaving", lambda screen: LEAVING.search(" ".join(screen.replace("│", " ").split())))
    terminal.press("Escape")  # with a key right behind it, it would be that key with alt
    terminal.until("the question to close", lambda screen: "Leave?" not in screen)
    terminal.press("D")
    terminal.shows("Deny #")
    terminal.press("o")
    terminal.shows("That is all of it")
    terminal.press("Q")
    terminal.shows("Put your own server behind it")
    stage.close()


def step(terminal, title):
    """Waits for a step, and sees that its words fit."""
    screen = terminal.until(repr(title), lambda screen: title in screen and screen)
    expect("words that are cut off", [line for line in screen.splitlines()[1:4] if "…" in line], [])


def call_with_numbers(face):
    """The first call that is held is one to change; an answer that was on its way goes on."""

    def look(screen):
        held = [row for row in rows(screen) if row.is_held]
        if held and not any(row.is_to_server for row in held):
            face.terminal.press("F")
        return next((row for row in held if row.is_to_server), None)

    expect_in("the call that is held", "[add]", face.terminal.until("a held call", look).words)


def check(stage, file):
    """The saved session has the edit."""
    expect_in("what `inspect` prints of the file", "tools/call", stage.shell.run("inspect", file))
    saved = json.loads(Path(stage.home.path, file).read_text())["messages"]
    edited = [message["raw"]["params"]["arguments"]["b"] for message in saved if message.get("modified")]
    expect("what was edited", edited, [2])
