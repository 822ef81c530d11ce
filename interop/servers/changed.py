"""A server that says one thing otherwise: `changed.py FROM TO COMMAND ARGS...` on stdio."""

import subprocess
import sys
import threading

_, old, new, *command = sys.argv
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def pass_on():
    for line in sys.stdin.buffer:
        server.stdin.write(line)
        server.stdin.flush()
    server.stdin.close()


threading.Thread(target=pass_on, daemon=True).start()
for line in server.stdout:
    sys.stdout.buffer.write(line.replace(old.encode(), new.encode()))
    sys.stdout.buffer.flush()
sys.exit(server.wait())
