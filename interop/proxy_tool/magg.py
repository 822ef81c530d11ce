"""Magg 1.3, whose proxy tool the extension describes: behind the proxy, and its client and its browser in front of it."""

import json
import re
import shlex
from dataclasses import dataclass

from gateway.compared import comparable
from gateway.lineup import LINEUP
from harness.compare import difference
from harness.peers import CLIENTS, HERE, TOOLS, peer_words
from harness.processes import RunFailed
from harness.scene import finish

BIN = TOOLS / "magg/bin"
(EVERYTHING,) = (place for place in LINEUP if place.id == "everything")
# Progress does not pass Magg, and its tool gives text alone.
SHOWN = set(
    "tools-list tool-call tool-error link-read concurrent-calls large-message resources-list resource-templates"
    " resource-read prompts-list prompt-get".split()
)
TIME = re.compile(r"\d{1,2}:\d\d:\d\d [AP]M")


def absent():
    """Why Magg cannot be there, if so."""
    return None if (TOOLS / "magg/stamp").is_file() else f"no Magg in {TOOLS}, which needs Python 3.13"


# -- behind the proxy ---------------------------------------------------------------------------------------


def unwrapped(stage):
    """The play: an SDK sees behind Magg's tool what it sees of Magg itself, which shows the same natively."""
    configuration = {"everything": {"source": "https://localhost", "command": EVERYTHING.command()[0], "args": EVERYTHING.command()[1:]}}
    magg = [str(BIN / "magg"), "--config", str(stage.configure({"servers": configuration}, "magg.json")), "serve"]
    behind = [stage.binary, "run", "--unwrap-proxy-tool", "--name", "magg", "--", *magg]
    words = [*CLIENTS[stage.cast], "--era", "legacy", "--profile", EVERYTHING.profile(), "--features", ",".join(sorted(SHOWN))]
    clients = [stage.start("client", [*words, *peer_words("stdio", peer)]) for peer in (magg, behind)]
    finish(clients)
    direct, seen = (json.loads(client.output())["features"] for client in clients)
    stage.close(clients)
    if missing := SHOWN - (seen.keys() & direct.keys()):
        raise RunFailed(f"nothing observed of {', '.join(sorted(missing))}")
    ways = {"is_crossed": False, "is_printed": False}
    # The tool itself is hidden, and nothing that it gives keeps the promise of a schema.
    tools = direct["tools-list"]["observed"]["tools"]
    direct["tools-list"]["observed"]["tools"] = [without_output(tool) for tool in tools if tool["name"] != "proxy"]
    same_or_raise(timeless(comparable(direct, SHOWN, **ways)), timeless(comparable(seen, SHOWN, **ways)))


def without_output(tool):
    return {key: value for key, value in tool.items() if key not in ("outputSchema", "output_schema")}


# -- in front of it -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gateway:
    mode: str
    side: str

    def __str__(self):
        return f"{self.mode} at {self.side}"

    def serve(self, stage):
        configuration = {"servers": [entry | {"prefix": False} for entry in stage.entries([EVERYTHING])]}
        configuration["proxy_tool"] = {"mode": self.mode, "dialect": "magg"}
        return stage.serve(stage.configure(configuration), self.side)


def asked(stage):
    """The play: Magg's client gets through the tool what the client that it is made of gets from the server itself."""
    peer = stage.cast.serve(stage)
    words = [str(BIN / "python"), str(HERE / "clients/magg_client.py")]
    behind = ["--", *peer] if stage.cast.side == "stdio" else [peer]
    clients = [
        stage.start("client", [*words, "natively", EVERYTHING.profile(), "--", *EVERYTHING.command()]),
        stage.start("client", [*words, "through-tool", EVERYTHING.profile(), *behind]),
    ]
    finish(clients)
    direct, seen = (timeless(json.loads(client.output())) for client in clients)
    stage.close(clients)
    same_or_raise(direct, seen)


STATIC = "demo://resource/static/document/features.md"
ITSELF = [
    "tools",
    "resources",
    "prompts",
    "info tool get-sum",
    "info prompt args-prompt",
    "call get-sum a=2 b=40",
    "call get-tiny-image",
    f"resource {STATIC}",
    "prompt args-prompt city=Zürich",
]
THROUGH = [
    "call proxy action=list type=tool",
    "call proxy action=list type=resource",
    "call proxy action=list type=prompt",
    "call proxy action=info type=tool path=get-sum",
    "call proxy action=info type=prompt path=args-prompt",
    """call proxy action=call type=tool path=get-sum 'args={"a": 2, "b": 40}'""",
    "call proxy action=call type=tool path=get-tiny-image",
]
DESCRIBED = ["tools", "info tool proxy"]


def browsed(stage):
    """The play: Magg's browser prints of a gateway what it prints of the server, natively and through the tool."""
    peer = stage.cast.serve(stage)
    peer = shlex.join(peer) if stage.cast.side == "stdio" else peer
    browsers = [
        browser(stage, ["--json", "--indent", "0"], shlex.join(EVERYTHING.command()), ITSELF),
        browser(stage, ["--json", "--indent", "0"], peer, [*ITSELF, *THROUGH]),
        browser(stage, ["--no-rich"], peer, DESCRIBED),
    ]
    finish(browsers)
    # The first line says how much there is, and the tool is one more.
    direct, seen = ([json.loads(line) for line in printed(one)[1:]] for one in browsers[:2])
    stage.close(browsers)
    seen[0]["tools"] = [tool for tool in seen[0]["tools"] if tool["name"] != "proxy"]
    same_or_raise(direct, seen[: len(ITSELF)])
    same_or_raise(direct[: len(THROUGH)], unmarked(seen[len(ITSELF) :]))
    if "args (object | string)" not in "\n".join(printed(browsers[2])):
        raise RunFailed("the tool's parameters are not described")


def browser(stage, options, peer, commands):
    words = [str(BIN / "mbro"), *options, "--no-interactive", "--env-pass"]
    words += ["; ".join([f"connect peer {shlex.quote(peer)}", *commands])]
    # For people it prints on standard error.
    return stage.start("mbro", words if "--json" in options else ["sh", "-c", 'exec "$@" 2>&1', "mbro", *words])


def printed(one):
    return TIME.sub("<time>", one.output().decode()).splitlines()


def unmarked(value):
    """Without what the tool says of a result."""
    if isinstance(value, list):
        return [unmarked(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: unmarked(item) for key, item in value.items() if key != "annotations"}


# -- verdicts -----------------------------------------------------------------------------------------------


def timeless(value):
    return json.loads(TIME.sub("<time>", json.dumps(value, ensure_ascii=False)))


def same_or_raise(direct, seen):
    if direct != seen:
        raise RunFailed(f"differs\n{difference(direct, seen)}")


CASES = [(unwrapped, client) for client in ("py", "ts1", "ts2")]
CASES += [(asked, Gateway("instead", "stdio")), (asked, Gateway("beside", "http"))]
CASES += [(browsed, Gateway("beside", side)) for side in ("stdio", "http")]
