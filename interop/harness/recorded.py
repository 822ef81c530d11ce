"""What a recording is good for: a real conversation is recorded, replayed against the same server and against one
that answers something else, and served to the same client without the server."""

import json
import subprocess
import sys
from dataclasses import dataclass

from .compare import compare
from .matrix import Cell, client_words, features_of
from .peers import HERE, RAW_SERVER, SERVERS, peer_words
from .processes import Home, RunFailed
from .proxy import ENDPOINT, LISTENING
from .scene import finish

REPLAY_TIMEOUT_SECONDS = 120   # several times what it takes on a busy machine
ANSWER_TIMEOUT_SECONDS = "60"  # for each answer: a busy machine is no drift

SAME, DRIFTED = 0, 1


@dataclass(frozen=True)
class Recorded:
    client: str
    server: str
    era: str
    mocked_on: tuple      # transports
    old: str              # what a call results in, and what it results in when the server has changed
    new: str
    at: str               # where that stands

    def __str__(self):
        return f"recording of {self.client} × {self.server} {self.era}"

    @property
    def pairs(self):
        return {("stdio", "stdio"), *((transport, "stdio") for transport in self.mocked_on)}

    def missing(self):
        return None if self.server != "raw" or RAW_SERVER.is_file() else f"no {RAW_SERVER}; set MCP_SHARED"

    def check(self, proxy, baselines, keep):
        with Home() as home:
            # Some of what a server says is new each time; two recordings tell what.
            documents = [self._record(home, proxy, file) for file in ("one.json", "two.json")]
            command = SERVERS[self.server].command("stdio", self.era)
            drift = self._replay(home, proxy, command)
            if drift["code"] != SAME:
                raise RunFailed(f"the same server has drifted, exit {drift['code']}\n{drift['shown']}")
            changed = [sys.executable, str(HERE / "servers/changed.py"), self.old, self.new, *command]
            seen = self._replay(home, proxy, changed)
            if seen["code"] != DRIFTED or seen["paths"] != {self.at}:
                raise RunFailed(f"exit {seen['code']} and {seen['paths']} of a changed server\n{seen['shown']}")
            for transport in self.mocked_on:
                compare(self._cell(transport), documents[0], self._mock(home, proxy, transport), keep)
            if lingering := home.left_behind():
                raise RunFailed("left behind:\n" + "\n".join(f"  {pid} {line}" for pid, line in lingering.items()))
        return f"({drift['same']} answers the same, mocked on {', '.join(self.mocked_on)})"

    def _cell(self, transport):
        features = frozenset(features_of(self.client, self.server, self.era))
        return Cell(self.client, self.server, self.era, transport, "stdio", features)

    def _converse(self, home, transport, peer):
        """What the client sees of a peer."""
        client = home.start("client", [*client_words(self._cell(transport)), *peer_words(transport, peer)])
        try:
            finish([client])
            return json.loads(client.output())
        except (RunFailed, json.JSONDecodeError) as failure:
            raise RunFailed(f"{failure}\n{client.complaint()}") from failure

    def _record(self, home, proxy, file):
        server = SERVERS[self.server].command("stdio", self.era)
        return self._converse(home, "stdio", [proxy.binary, "run", "--session-file", f"{home.path}/{file}", "--", *server])

    def _replay(self, home, proxy, server):
        words = [proxy.binary, "replay", "one.json", "--learn", "two.json", "--timeout", ANSWER_TIMEOUT_SECONDS]
        replay = home.start("replay", [*words, "--output", "replay.json", "--force", "--", *server])
        try:
            code = replay.popen.wait(REPLAY_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise RunFailed(f"not replayed after {REPLAY_TIMEOUT_SECONDS} s") from None
        shown = replay.output().decode(errors="replace") + replay.complaint()
        if code not in (SAME, DRIFTED):
            raise RunFailed(f"replay exit {code}\n{shown}")
        with open(f"{home.path}/replay.json") as file:
            report = json.load(file)
        paths = {difference["path"] for call in report["calls"] for difference in call.get("differences", [])}
        return {"code": code, "shown": shown, "paths": paths, "same": report["summary"]["same"]}

    def _mock(self, home, proxy, transport):
        words = [proxy.binary, "mock", f"{home.path}/one.json"]
        if transport == "stdio":
            return self._converse(home, transport, words)
        mock = home.start("mock", [*words, "--listen", "127.0.0.1:0"])
        try:
            document = self._converse(home, transport, mock.announced(LISTENING) + ENDPOINT[transport])
            mock.terminate()
        except RunFailed as failure:
            raise RunFailed(f"mocked on {transport}: {failure}\n{mock.complaint()}") from failure
        if b"panicked at" in mock.stderr:
            raise RunFailed(f"a panic\n{mock.complaint()}")
        return document


RECORDED = [
    Recorded("py", "everything", "legacy", ("stdio", "http", "sse"), "Echo: hello", "Echo: HELLO", "$.result.content[0].text"),
    Recorded("py", "py", "modern", ("stdio", "http"), "echo: plain", "echo: PLAIN", "$.result.content[0].text"),
    Recorded("ts1", "ts", "legacy", ("stdio", "http", "sse"), "echo: plain", "echo: PLAIN", "$.result.content[0].text"),
]
