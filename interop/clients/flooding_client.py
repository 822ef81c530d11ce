"""Calls as fast as it can for as long as it is told, with a few dozen calls under way at any time.

    python flooding_client.py SECONDS COMMAND...

Prints how many calls were answered. An answer that does not come, or not in order, is a failure.
"""

import json
import subprocess
import sys
import time

UNDER_WAY = 32


def main(seconds, command):
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as peer:

        def send(**message):
            peer.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

        info = {"name": "flooding", "version": "1"}
        send(id=0, method="initialize", params={"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
        peer.stdin.flush()
        peer.stdout.readline()
        send(method="notifications/initialized")
        until, done = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            for number in range(done + 1, done + UNDER_WAY + 1):
                call = {"name": "echo", "arguments": {"message": f"call {number} " + "x" * 200}}
                send(id=number, method="tools/call", params=call)
            peer.stdin.flush()
            for number in range(done + 1, done + UNDER_WAY + 1):
                answer = json.loads(peer.stdout.readline())
                if answer.get("id") != number or "result" not in answer:
                    sys.exit(f"call {number} was answered with {answer}")
            done += UNDER_WAY
        peer.stdin.close()
        peer.wait()
    print(f"answered: {done}", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
