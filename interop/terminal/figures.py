#!/usr/bin/env python3
"""Measures the terminal on an instance that has passed a million messages.

    python3 interop/terminal/figures.py --proxy target/release/mcp-proxy [--messages 1000000]

Prints how long it takes from the start of `attach` until the newest screen is drawn, and from a key until all that
it changes is drawn (the last byte before the terminal is quiet for a tenth of a second), and the most memory that
the terminal's process had.
"""

import argparse
import fcntl
import json
import os
import pathlib
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

QUIET = 0.1
COLUMNS, ROWS = 120, 40


class Screen:
    """A terminal that reads what is drawn and remembers when."""

    def __init__(self, command, environment):
        self.begun = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, environment)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.text = b""

    def settle(self, since, within=20):
        """Seconds from `since` to the last thing drawn before it is quiet."""
        last = None
        while time.monotonic() - since < within:
            ready, _, _ = select.select([self.fd], [], [], QUIET)
            if not ready:
                if last is not None:
                    return last - since
                continue
            self.text += os.read(self.fd, 1 << 16)
            last = time.monotonic()
        return within

    def wait_for(self, words, since, within=20):
        """Seconds from `since` until these words were written."""
        while time.monotonic() - since < within:
            if words in self.text:
                return time.monotonic() - since
            if select.select([self.fd], [], [], 1)[0]:
                self.text += os.read(self.fd, 1 << 16)
        sys.exit(f"waited for {words!r} in vain")

    def key(self, key):
        self.text = b""
        begun = time.monotonic()
        os.write(self.fd, key)
        return self.settle(begun)

    def memory(self):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)


def fill(proxy, messages):
    """Passes so many messages through a proxy, and leaves it running."""
    stdin, stdout = proxy.stdin, proxy.stdout
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "figures", "version": "1"}}
    stdin.write(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info}).encode() + b"\n")
    calls = (messages - 2) // 2

    def send():
        for number in range(1, calls + 1):
            params = {"name": "add", "arguments": {"a": number, "b": 40}}
            call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            stdin.write(json.dumps(call).encode() + b"\n")
        stdin.flush()

    sender = threading.Thread(target=send)
    sender.start()
    for _ in range(calls + 1):
        stdout.readline()
    sender.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--proxy", required=True, type=pathlib.Path)
    parser.add_argument("--messages", type=int, default=999_998)
    args = parser.parse_args()
    program = str(args.proxy.resolve())
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
        command = [program, "run", "--quiet", "--name", "figures", "--", program, "__demo-server"]
        proxy = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        try:
            fill(proxy, args.messages)
            starts = []
            for _ in range(5):
                screen = Screen([program, "attach"], environment)
                starts.append(screen.wait_for(f"#{args.messages}".encode(), screen.begun))
                screen.settle(screen.begun)
                screen.end()
            print(f"attach, start to newest screen: median {statistics.median(starts) * 1000:.0f} ms, worst {max(starts) * 1000:.0f} ms")
            screen = Screen([program, "attach"], environment)
            screen.wait_for(f"#{args.messages}".encode(), screen.begun)
            screen.settle(screen.begun)
            keys = {
                "k (a line up)": [b"k"] * 40,
                "page up": [b"\x02"] * 40,
                "g (the beginning)": [b"g"] * 1,
                "page down": [b"\x06"] * 40,
                "G (the end)": [b"G"] * 1,
                "g and G, ten times": [b"g", b"G"] * 10,
                "v (another view)": [b"v"] * 14,
            }
            for name, presses in keys.items():
                times = [screen.key(press) * 1000 for press in presses]
                print(f"{name}: median {statistics.median(times):.0f} ms, worst {max(times):.0f} ms")
            print(f"memory of the terminal, at most: {screen.memory():.1f} MB")
            screen.end()
        finally:
            proxy.stdin.close()
            proxy.wait()


if __name__ == "__main__":
    main()
