"""`mcp-proxy list`, `info` and `call`: of a server itself, and of what is behind the tool, they print the same."""

import json
import re
import subprocess

from gateway.compared import OF_ONE_ERA, without
from gateway.lineup import LINEUP
from harness.compare import difference
from harness.peers import SERVERS
from harness.processes import RunFailed
from harness.scene import READY

COMMAND, ADDRESS, BEHIND_GATEWAY = "a command", "an address", "one server of several"
PLACES = {place.id: place for place in LINEUP}
TIME = re.compile(r"\d{1,2}:\d\d:\d\d [AP]M")
OWN = re.compile(r',"_meta":\{"io\.github\.mcp-proxy/[^}]*\}')

COMMANDS = [
    (0, ["list"]),
    (0, ["list", "--type", "tool", "--limit", "3"]),
    (0, ["info", "get-sum"]),
    (0, ["info", "--type", "prompt", "args-prompt"]),
    (0, ["info", "demo://resource/static/document/features.md"]),
    (0, ["call", "echo", "message=hello \u00e9"]),
    (0, ["call", "get-sum", "a=2", "b=40"]),
    (0, ["call", "get-tiny-image"]),
    (0, ["call", "get-structured-content", "--args", '{"location": "Chicago"}']),
    (0, ["call", "get-resource-reference", "resourceType=Text", "resourceId=1"]),
    (0, ["call", "demo://resource/static/document/features.md"]),
    (0, ["call", "demo://resource/dynamic/text/{resourceId}", "resourceId=3"]),
    (0, ["call", "--type", "prompt", "args-prompt", "city=Z\u00fcrich"]),
    (None, ["call", "demo://resource/nowhere"]),
    (None, ["call", "nothing"]),
]
# Where each command starts servers of its own.
FEW = [COMMANDS[at] for at in (2, 6, 10, 12, 13)]
# Of an address that nobody has, a gateway of several has to speak itself.
OF_SEVERAL = [COMMANDS[at] for at in (2, 6, 10, 11, 12)]


def commanded(stage):
    """The play: each command, with the server and with what the cast puts before it."""
    place = PLACES["everything"]
    direct = ["--", *place.command()]
    if stage.cast == ADDRESS:
        # What stands before it stays, so that the commands are clients of one that runs.
        url = stage.start("server", SERVERS["everything"].command("http", "legacy"), SERVERS["everything"].environment)
        direct = ["--url", url.announced(READY)]
        behind = ["--url", listening(stage, [{"id": "everything", "url": direct[1]}])]
    elif stage.cast == COMMAND:
        behind = ["--", stage.binary, "run", "--proxy-tool", "--proxy-tool-mode", "instead", *direct]
    else:
        entries = stage.entries([place, PLACES["memory"]])
        behind = ["--url", listening(stage, entries)]
    for expected, words in {ADDRESS: COMMANDS, COMMAND: FEW, BEHIND_GATEWAY: OF_SEVERAL}[stage.cast]:
        one, other = printed(stage, words, direct), printed(stage, words, behind)
        if one[0] != other[0] or (expected is None) == (one[0] == 0):
            raise RunFailed(f"{words} ends with {one[0]}, and behind the tool with {other[0]}")
        if one[1] != other[1]:
            raise RunFailed(f"{words} differs\n{difference(one[1], other[1])}")
    stage.close([one for one in stage.running if one.name == "command"])


def listening(stage, entries):
    entries = [entry | {"prefix": False} for entry in entries]
    return stage.serve(stage.configure({"servers": entries, "proxy_tool": {"mode": "instead"}}), "http")


def printed(stage, words, peer):
    """How a command ends, and what it prints."""
    command = stage.start("command", [stage.binary, *words, "--json", "--quiet", *peer])
    try:
        command.popen.wait(60)
    except subprocess.TimeoutExpired:
        raise RunFailed(f"{words} does not end") from None
    text = OWN.sub("", TIME.sub("<time>", command.output().decode()))
    # What is behind a gateway may be spoken to in another era.
    return command.popen.returncode, without(json.loads(text), OF_ONE_ERA) if text.strip() else None
