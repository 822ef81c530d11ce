#!/usr/bin/env python3
"""A proxy with a terminal attached to it, on all processors: watched.py TMP PROXY SERVER ARGS..."""

import fcntl
import glob
import os
import pty
import signal
import struct
import sys
import termios
import threading
import time

tmp, proxy, *server = sys.argv[1:]
state = os.path.join(tmp, "state-watched")
if os.fork():
    os.execv(proxy, [proxy, "run", "--quiet", "--state-dir", state, "--", *server])

os.setsid()
null = os.open(os.devnull, os.O_RDWR)
for fd in range(3):
    os.dup2(null, fd)
os.sched_setaffinity(0, range(os.cpu_count()))
while not (socket := glob.glob(f"{state}/run/*.sock")):
    time.sleep(0.05)
face, screen = pty.fork()
if face == 0:
    os.environ["TERM"] = "xterm-256color"
    os.execv(proxy, [proxy, "attach", "--state-dir", state])
fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))


def look():
    try:
        while os.read(screen, 1 << 16):
            pass
    except OSError:
        pass


threading.Thread(target=look, daemon=True).start()
while os.path.exists(socket[0]):
    time.sleep(0.2)
os.kill(face, signal.SIGKILL)
