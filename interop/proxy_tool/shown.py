"""A server that has only the tool, and answers as the specification shows: our own client reads it, and so do others."""

import json
from pathlib import Path

from harness.compare import difference
from harness.peers import HERE, PYTHON, peer_words
from harness.processes import RunFailed
from harness.scene import finish

from .commanded import printed

SERVER = [PYTHON, str(HERE / "servers/shown_server.py")]
ADD = {
    "name": "calculator_add",
    "description": "Add two numbers",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
}
FAIL = {"name": "fail", "inputSchema": {"type": "object"}}
SETTINGS = {"name": "settings", "uri": "demo://settings", "mimeType": "text/plain"}
PIXEL = {"name": "pixel", "uri": "demo://pixel", "mimeType": "image/png"}
NOTE = {"name": "note", "uriTemplate": "demo://note/{id}"}
GREET = {"name": "greet", "description": "Greets", "arguments": [{"name": "who", "required": True}]}
LISTS = {"tool": [ADD, FAIL], "resource": [SETTINGS, PIXEL, NOTE], "prompt": [GREET]}

SUM = {"content": [{"type": "text", "text": "8"}]}
FAILED = {"content": [{"type": "text", "text": "failing as asked"}], "isError": True}
HELLO = {"description": "Greets", "messages": [{"role": "user", "content": {"type": "text", "text": "Hello you"}}]}
KEY = {"contents": [{"uri": "demo://settings", "mimeType": "text/plain", "text": '{"key":"value"}'}]}
BLOB = {"contents": [{"uri": "demo://pixel", "mimeType": "image/png", "blob": "aGk="}]}
FIRST = {"contents": [{"uri": "demo://note/1", "mimeType": "text/plain", "text": "the first"}]}

BY_COMMAND = [
    (["list", "--type", "resource"], 0, {"resources": [SETTINGS, PIXEL], "resourceTemplates": [NOTE]}),
    (["info", "demo://note/{id}"], 0, NOTE),
    (["call", "calculator_add", "a=5", "b=3"], 0, SUM),
    (["call", "fail"], 1, FAILED),
    (["call", "demo://settings"], 0, KEY),
    (["call", "demo://pixel"], 0, BLOB),
    (["call", "demo://note/{id}", "id=1"], 0, FIRST),
    (["call", "greet", "who=you"], 0, HELLO),
]
PLAN = {
    "calls": [{"name": "calculator_add", "arguments": {"a": 5, "b": 3}}, {"name": "fail", "arguments": {}}],
    "tasks": [],
    "reads": ["demo://note/1", "demo://nowhere"],
    "prompts": [{"name": "greet", "arguments": {"who": "you"}}],
}
CAME = [SUM, FAILED, KEY, BLOB, FIRST, {"error": {"code": -32002, "message": "Resource not found"}}, HELLO]


def shown(stage):
    """The play: by our own commands, and by another's client that knows nothing of such a tool."""
    for words, code, expected in BY_COMMAND:
        ended, came = printed(stage, words, ["--", *SERVER])
        if (ended, native(came)) != (code, expected):
            raise RunFailed(f"{words} ended with {ended}\n{difference(expected, came)}")
    peer = [stage.binary, "run", "--unwrap-proxy-tool", "--", *SERVER]
    words = [PYTHON, str(Path(__file__).with_name("walker.py")), "--era", "legacy", "--profile", "walk"]
    words += ["--profiles", str(stage.configure({"walk": PLAN}, "plan.json"))]
    client = stage.start("client", [*words, *peer_words("stdio", peer)])
    finish([client])
    seen = native(json.loads(client.output()))
    stage.close(stage.running)
    expected = {"lists": LISTS, "came": CAME}
    seen = {"lists": seen["lists"], "came": [came for _, came in seen["came"]]}
    if seen != expected:
        raise RunFailed(f"differs\n{difference(expected, seen)}")


def native(value):
    """What was seen, without what a gateway and the SDKs add."""
    if isinstance(value, list):
        return [native(item) for item in value]
    if not isinstance(value, dict):
        return value
    left_out = {"_meta", "resultType", "ttlMs", "cacheScope", "execution"}
    there = {key: native(item) for key, item in value.items() if key not in left_out}
    return {key: item for key, item in there.items() if (key, item) != ("isError", False)}
