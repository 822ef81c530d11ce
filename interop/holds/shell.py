"""Another shell of the same user: everything that is done to a running proxy is done by commands."""

import json
import subprocess
import time

from harness.processes import RunFailed

PATIENCE_SECONDS = 20  # far beyond what any step takes; and less than the 45 s after which a hold ends by itself
PAUSE_SECONDS = 0.01   # between two looks, each of which starts a process


class Shell:
    def __init__(self, binary, home):
        self.binary, self.home = binary, home

    def try_out(self, *words):
        """What a command says, and whether it worked."""
        options = {"cwd": self.home.path, "env": self.home.environment, "stdin": subprocess.DEVNULL}
        return subprocess.run([self.binary, *words], capture_output=True, text=True, timeout=PATIENCE_SECONDS, **options)

    def run(self, *words):
        """What a command prints. It has to work."""
        done = self.try_out(*words)
        if done.returncode or "panicked at" in done.stderr:
            raise RunFailed(f"`mcp-proxy {' '.join(words)}` exit {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def listed(self, *words):
        return [json.loads(line) for line in self.run(*words, "--json").splitlines()]

    def until(self, what, look):
        """The first thing that `look` sees."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (seen := look()):
            if time.monotonic() > deadline:
                raise RunFailed(f"waited in vain for {what}; held: {self.try_out('held').stdout}")
            time.sleep(PAUSE_SECONDS)
        return seen

    def instance(self):
        """The one that runs. Some clients start a first one only to find out what the server speaks."""

        def the_only_one():
            running = self.listed("ps")
            return running[0] if len(running) == 1 and running[0]["answers"] else None

        return self.until("one instance that answers", the_only_one)

    def held(self, kind, method):
        """The held message of this kind (`request`, `response`, …) and method, once there is one."""

        def the_message():
            return next((h for h in self.listed("held") if (h["message"]["kind"], h["message"]["method"]) == (kind, method)), None)

        return Held(self, self.until(f"a held {kind} of {method}", the_message))


class Held:
    """A held message, and what can be done with it."""

    def __init__(self, shell, told):
        self.shell, self.sequence, self.message = shell, told["sequence"], told["message"]
        self.raw, self.direction = self.message["raw"], told["direction"]

    def forward(self):
        self._decide("forward")

    def modify(self, *assignments, raw_headers=False):
        words = [word for assignment in assignments for word in ("--set", assignment)]
        self._decide("modify", *words, *(["--raw-headers"] if raw_headers else []))

    def drop(self, error=None):
        """Without an error nobody is told."""
        self._decide("drop", *([f"--error={error}"] if error else []))

    def answer(self, result):
        self._decide("answer", "--result", json.dumps(result))

    def _decide(self, action, *words):
        self.shell.run(action, f"#{self.sequence}", *words)
