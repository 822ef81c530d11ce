"""Lists as they are on the wire: each member of every tool has to be spelled as by its server, byte for byte."""

import json
import subprocess

from harness.processes import RunFailed

from .lineup import LINEUP
from .names import META, name

INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "reader", "version": "1"}}
decoder = json.JSONDecoder()


def spelled(stage):
    """The play: the tools of every server, read from it and from the gateway."""
    lineup = [place for place in LINEUP if place.side == "stdio"]
    through = tools_of(stage, stage.serve(stage.configure({"servers": stage.entries(lineup)}), "stdio"))
    for place in lineup:
        direct = tools_of(stage, place.command())
        theirs = {given: tool for given, tool in through.items() if json.loads(tool["_meta"])[META + "server"] == place.id}
        if list(theirs) != [name(place, original) for original in direct]:
            raise RunFailed(f"{place.id}: the gateway has {list(theirs)}, the server {list(direct)}")
        for original, tool in direct.items():
            given = theirs[name(place, original)]
            changed = [key for key in tool if key not in ("name", "_meta") and given[key] != tool[key]]
            if changed or given.keys() - {"_meta"} != tool.keys() - {"_meta"}:
                raise RunFailed(f"{place.id}: {original} differs in {changed or list(given)}")
    stage.close(stage.running)


def tools_of(stage, command):
    """By name, the text of each member of every tool."""
    peer = stage.start("server", command, stdin=subprocess.PIPE)
    exchange(peer, 1, "initialize", INITIALIZE)
    tell(peer, {"method": "notifications/initialized"})
    (answer,) = [text for key, text in members(exchange(peer, 2, "tools/list", {})) if key == "result"]
    (tools,) = [text for key, text in members(answer) if key == "tools"]
    peer.popen.stdin.close()
    peer.popen.wait(30)
    return {json.loads(tool["name"]): tool for tool in (dict(members(item)) for item in items(tools))}


def exchange(peer, number, method, params):
    tell(peer, {"id": number, "method": method, "params": params})
    return peer.printed(rb'(?m)^(\{(?=.*"id": ?%d\b)(?=.*"result").*)$' % number, f"done with {method}")


def tell(peer, message):
    peer.popen.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
    peer.popen.stdin.flush()


def members(text):
    """The members of an object: the key, and the value as it is spelled."""
    at = text.index("{") + 1
    while text[at:].lstrip()[0] != "}":
        at = text.index('"', at)
        key, at = decoder.raw_decode(text, at)
        at = skip(text, text.index(":", at) + 1)
        _, end = decoder.raw_decode(text, at)
        yield key, text[at:end]
        at = skip(text, end)
        at += text[at] == ","


def items(text):
    at = skip(text, 1)
    while text[at] != "]":
        _, end = decoder.raw_decode(text, at)
        yield text[at:end]
        at = skip(text, end)
        at = skip(text, at + (text[at] == ","))


def skip(text, at):
    while text[at] in " \t\r\n":
        at += 1
    return at
