"""Processes of one run: all of them live in a home of their own, and by it what is left of them can be found."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from .peers import TOOLS

EXIT_GRACE_SECONDS = 8    # longer than the escalation of any SDK: close, SIGTERM, SIGKILL
DRAIN_SECONDS = 2         # for calls under way; some servers never answer a cancelled one, so it is no use to wait longer
READY_SECONDS = 60        # most take one on an idle machine; a client was not connected after 30 on one with ten other jobs

homes = set()  # of the runs under way, so that an interrupt can end them


class RunFailed(Exception):
    """The run gave no document to compare."""


class Running:
    """A process whose output is read as it comes: a full pipe must not stop it, nor an inherited one hide its end."""

    def __init__(self, name, popen):
        self.name, self.popen = name, popen
        self.stdout, self.stderr = bytearray(), bytearray()
        self._news = threading.Condition()
        pipes = ((popen.stdout, self.stdout), (popen.stderr, self.stderr))
        self._readers = [threading.Thread(target=self._read, args=pipe, daemon=True) for pipe in pipes]
        for reader in self._readers:
            reader.start()

    def _read(self, pipe, text):
        while chunk := pipe.read1(65536):
            with self._news:
                text += chunk
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def announced(self, pattern):
        """Waits for what this process says on stderr once it is ready, and gives the pattern's group."""
        return self._said(self.stderr, pattern, "ready")

    def printed(self, pattern, what):
        """Waits for what this process prints on stdout, and gives the pattern's group. `what` is for when it does not."""
        return self._said(self.stdout, pattern, what)

    def _said(self, text, pattern, what):
        deadline = time.monotonic() + READY_SECONDS
        with self._news:
            while not (found := re.search(pattern, text)):
                left = deadline - time.monotonic()
                if self.popen.poll() is not None:
                    raise RunFailed(f"{self.name} ended with {self.popen.returncode} before it was {what}")
                if left <= 0:
                    raise RunFailed(f"{self.name} is not {what} after {READY_SECONDS} s")
                self._news.wait(min(left, 0.2))
        return found[1].decode()

    def terminate(self):
        """Asks a service to end, then tells it to do so at once. It may not have ended before."""
        if (code := self.popen.poll()) is not None:
            raise RunFailed(f"{self.name} ended by itself with {code}")
        for patience in (DRAIN_SECONDS, EXIT_GRACE_SECONDS):
            self.popen.terminate()
            try:
                return self.popen.wait(patience)
            except subprocess.TimeoutExpired:
                continue
        raise RunFailed(f"{self.name} still runs {EXIT_GRACE_SECONDS} s after a second SIGTERM")

    def output(self):
        """All of stdout, once the process has ended and nobody else has inherited it."""
        self._readers[0].join(EXIT_GRACE_SECONDS)
        return bytes(self.stdout)

    def complaint(self, lines=12):
        """The end of stderr. What is still on its way gets a moment, should the process have ended."""
        if self.popen.poll() is not None:
            self._readers[1].join(0.5)
        said = self.stderr.decode(errors="replace").strip().splitlines()[-lines:]
        return "\n".join([f"  {self.name} said:", *(f"    {line}" for line in said)]) if said else ""


class Home:
    """Where the processes of one run live: SDKs pass little environment on to servers, but all pass HOME."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="mcp-interop-")
        homes.add(self)
        self.environment = {
            "HOME": self.path,
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "MCP_INTEROP_DIR": str(TOOLS),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NODE_COMPILE_CACHE": str(TOOLS / "compiled"),  # a third of what a start of Node costs
        }
        return self

    def __exit__(self, *_):
        self.kill(self.processes())
        homes.discard(self)
        shutil.rmtree(self.path, ignore_errors=True)

    def start(self, name, words, environment=None, stdin=subprocess.DEVNULL):
        streams = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        environment = self.environment | (environment or {})
        return Running(name, subprocess.Popen(words, cwd=self.path, env=environment, **streams, start_new_session=True))

    def processes(self):
        marker = b"HOME=" + os.fsencode(self.path)  # or a directory below it
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    if marker in (entry / "environ").read_bytes():
                        found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                except OSError:
                    continue  # it ended, or it is not ours
        return found

    def left_behind(self):
        """What still runs after everyone was told to end and every grace period has passed."""
        deadline = time.monotonic() + EXIT_GRACE_SECONDS
        while (alive := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return alive

    @staticmethod
    def kill(pids):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
