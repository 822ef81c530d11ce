"""A server on stdio that answers as fast as it reads. An SDK would be what a flood waits for."""

import json
import sys

INFO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "echoing", "version": "1"}}


def result(request):
    if request["method"] == "initialize":
        return INFO
    return {"content": [{"type": "text", "text": request["params"]["arguments"]["message"]}]}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result(request)}), flush=True)
