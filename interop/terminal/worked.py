"""Somebody attaches, holds a call, changes it and sees what came of it; or goes away while it is held."""

import os
import re
import signal
import time

from holds.checks import expect


def worked(stage):
    """The server gets what was edited, the client sees no error, and the list and the views have both."""
    client, shell = stage.connect()
    stage.sit_down()
    face = stage.attach()
    face.row("what was said before", lambda row: row.words.startswith("initialize"))
    work(stage, face, client)
    face.leave()
    stage.restored()
    stage.close()
    edits = [message for message in stage.recorded().values() if message["modified"]]
    expect("edits that were recorded", [edit["raw"]["params"]["arguments"] for edit in edits], [{"message": "edited"}])


def work(stage, face, client):
    """Holds a call of `echo`, edits it, and lets the answer go on."""
    terminal = stage.terminal
    face.hold("tool:echo")
    call = client.call("echo", {"message": "typed"})
    request = face.held("echo")
    terminal.shows("1 held")
    face.edit('"typed"', '"edited"')
    answer = face.held("echo", is_to_server=False)
    face.select(answer.sequence)
    face.forward()
    expect("what the server got", client.text(call).lower(), "echo: edited")
    row = face.row("the call, which is held no more", lambda row: row.sequence == request.sequence and not row.is_held)
    expect("whether the call is marked as edited", row.is_edited, True)
    face.select(request.sequence)
    face.show("Diff")
    terminal.until("what it was, and what it is", re.compile(r'(?s)- +"message": "typed".*\n[^\n]*\+ +"message": "edited"').search)


def hold_one(stage):
    """An attached face that holds a call."""
    client, _ = stage.connect()
    stage.sit_down()
    face = stage.attach()
    face.hold("tool:echo")
    call = client.call("echo", {"message": "typed"})
    face.held("echo")
    return face, client, call


def left(stage):
    """Whoever leaves does not leave the client waiting, nor the terminal other than it was."""
    face, client, call = hold_one(stage)
    stage.terminal.press("q")
    stage.terminal.shows("1 message is held and will be forwarded. Leave?")
    stage.terminal.press("y")
    expect("what the server got", stage.answered_soon(call, time.monotonic()).lower(), "echo: typed")
    stage.restored()
    expect("a call that nobody holds", client.text(client.call("echo", {"message": "on"})).lower(), "echo: on")
    stage.close()


def killed(stage):
    """A face that is killed is missed, and the next one finds all that has passed."""
    face, client, call = hold_one(stage)
    os.kill(stage.terminal.program(), signal.SIGKILL)
    expect("what the server got", stage.answered_soon(call, time.monotonic()).lower(), "echo: typed")
    stage.terminal.anew()
    face = stage.attach()
    face.row("the backlog", lambda row: row.sequence == 1 and row.words.startswith("initialize"))
    face.row("the call that was let go", lambda row: "[echo]" in row.words and not row.is_held)
    call = client.call("echo", {"message": "again"})
    face.held("echo")
    face.edit('"again"', '"once more"')
    face.held("echo", is_to_server=False)
    face.forward()
    expect("what the server got then", client.text(call).lower(), "echo: once more")
    face.leave()
    stage.close()
