"""More passes than anybody can read, and keys are answered all the same."""

import statistics
import sys
import time

from harness.peers import HERE
from harness.processes import RunFailed

from .terminal import memory_peak_bytes

FLOOD_SECONDS = 6
KEYS = 5
KEY_SECONDS_MAX = 1.0
MEMORY_BYTES_MAX = 150_000_000
LOOK_SECONDS = 0.005


def flooded(stage):
    stage.sit_down()
    server = [stage.proxy.binary, "run", "--", sys.executable, str(HERE / "servers/echoing_server.py")]
    program = [sys.executable, str(HERE / "clients/flooding_client.py")]
    client = stage.start("client", [*program, str(FLOOD_SECONDS), *server])
    stage.shell.instance()
    face = stage.attach()
    face.row("the flood", lambda row: row.sequence > 500)
    times = [time_of_key(stage.terminal) for _ in range(KEYS)]
    still = client.popen.poll() is None
    peak = memory_peak_bytes(stage.terminal.program())
    client.popen.wait(30)
    calls = int(client.printed(rb"answered: (\d+)", "done"))
    rate = calls / FLOOD_SECONDS
    shown = ", ".join(f"{seconds * 1000:.0f}" for seconds in times)
    stage.notes.append(f"{rate:.0f} calls/s, keys drawn after {shown} ms, {peak / 1e6:.0f} MB at most")
    if not still:
        raise RunFailed(f"the flood was over before the keys were pressed: {stage.notes[-1]}")
    if statistics.median(times) > KEY_SECONDS_MAX or peak > MEMORY_BYTES_MAX:
        raise RunFailed(stage.notes[-1])
    face.leave()
    stage.restored()
    stage.close()


def time_of_key(terminal):
    """From pressing a key until what it does is on the screen."""
    begin = time.monotonic()
    terminal.press("?")
    terminal.until("help", lambda screen: "Help: Traffic" in screen, look_seconds=LOOK_SECONDS)
    took = time.monotonic() - begin
    terminal.press("G")
    terminal.until("help to close", lambda screen: "Help: Traffic" not in screen)
    return took
