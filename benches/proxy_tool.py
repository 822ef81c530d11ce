#!/usr/bin/env python3
"""What the proxy tool costs over many tools, in time and in bytes, as its client sees it.

    python3 benches/proxy_tool.py target/quick/mcp-proxy [--tools 5000] [--rounds 400]

The server is this program too: generated tools of about 400 bytes each, over stdio, in one page.
"""

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time

SERVICES = "mail calendar files tracker wiki billing deploy metrics chat crm storage search photos maps tickets forms payroll fleet garden library".split()
VERBS = "create read update delete list archive restore share export import rename copy move merge split approve reject assign schedule cancel watch tag rate print translate".split()
NOUNS = "report invoice message event folder customer ticket picture route contract".split()


def tools(count):
    for service, verb, noun in itertools.islice(itertools.product(SERVICES, VERBS, NOUNS), count):
        text = f"{verb.capitalize()} one {noun} of the {service} service, by its id; says what became of it, and when that was."
        properties = {
            f"{noun}_id": {"type": "string", "description": f"The {noun} to {verb}"},
            "dry_run": {"type": "boolean", "description": f"Only say what {verb} would do"},
        }
        schema = {"type": "object", "properties": properties, "required": [f"{noun}_id"]}
        yield {"name": f"{service}_{verb}_{noun}", "description": text, "inputSchema": schema}


def serve(count):
    listed = list(tools(count))
    info = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "many", "version": "1"}}
    info["capabilities"] = {"tools": {"listChanged": True}}
    for line in sys.stdin:
        request = json.loads(line)
        match request.get("method"):
            case "initialize":
                result = info
            case "tools/list":
                result = {"tools": listed}
            case "tools/call":
                result = {"content": [{"type": "text", "text": "done"}]}
            case _:
                result = {}
        if "id" in request:
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


class Client:
    """One connection over stdio; what it sends and gets is counted as it stands on the wire."""

    def __init__(self, proxy, home, count, mode):
        command = [sys.executable, os.path.abspath(__file__), "--serve", "--tools", str(count)]
        config = os.path.join(home, f"{mode}.json")
        with open(config, "w") as file:
            json.dump({"servers": [{"id": "many", "command": command}], "proxy_tool": {"mode": mode}}, file)
        words = [proxy, "serve", "--quiet", "--state-dir", os.path.join(home, "state"), "--config", config]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ids, self.bytes = itertools.count(1), 0
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", info)
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        line = json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n"
        self.process.stdin.write(line)
        self.process.stdin.flush()
        self.bytes += len(line)

    def ask(self, method, params):
        number = next(self.ids)
        self.send({"id": number, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            self.bytes += len(line)
            message = json.loads(line)
            if message.get("id") == number and "method" not in message:
                return message["result"]

    def use(self, **arguments):
        result = self.ask("tools/call", {"name": "proxy", "arguments": arguments})
        assert not result.get("isError"), result
        return result["content"][0]

    def took(self, act):
        begin = time.perf_counter()
        act()
        return (time.perf_counter() - begin) * 1e3

    def counted(self, act):
        before = self.bytes
        act()
        return self.bytes - before

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def every_tool(client):
    cursor = {}
    while cursor is not None:
        page = client.ask("tools/list", cursor)
        cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None


def agent(client):
    """Finds a tool by words, looks at it and calls it, and has to know the definition of the proxy tool for that."""
    client.ask("tools/list", {})
    found = client.use(action="list", type="tool", limit=5, filter={"query": "approve an invoice in billing"})
    name = json.loads(found["resource"]["text"])[0]["name"]
    assert name == "many__billing_approve_invoice", name
    client.use(action="info", type="tool", path=name)
    client.use(action="call", type="tool", path=name, args={"invoice_id": "7"})


def report(name, times):
    times = sorted(times)
    at = lambda share: times[min(int(len(times) * share), len(times) - 1)]
    print(f"{name:<34} median {at(0.5):7.2f} ms   p99 {at(0.99):7.2f} ms   worst {times[-1]:7.2f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("proxy", nargs="?", help="the proxy's binary")
    parser.add_argument("--tools", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--serve", action="store_true", help="be the server")
    options = parser.parse_args()
    if options.serve:
        return serve(options.tools)
    dice, rounds = random.Random(7), range(options.rounds)
    names = [tool["name"] for tool in tools(options.tools)]
    with tempfile.TemporaryDirectory() as home:
        client = Client(options.proxy, home, options.tools, "instead")
        definition = client.counted(lambda: client.ask("tools/list", {}))
        first = client.took(lambda: client.use(action="list", type="tool", limit=50))
        query = lambda: {"query": " ".join(dice.choice(words) for words in (VERBS, NOUNS, SERVICES))}
        cold = client.took(lambda: client.use(action="list", type="tool", limit=20, filter=query()))
        page = lambda: client.use(action="list", type="tool", limit=50, offset=dice.randrange(options.tools - 50))
        pages = [client.took(page) for _ in rounds]
        found = lambda: client.use(action="list", type="tool", limit=20, filter=query())
        queries = [client.took(found) for _ in rounds]
        told = lambda: client.use(action="info", type="tool", path="many__" + dice.choice(names))
        infos = [client.took(told) for _ in rounds]
        transcript = client.counted(lambda: agent(client))
        client.end()
        native = Client(options.proxy, home, options.tools, "beside")
        whole = native.counted(lambda: every_tool(native))
        native.end()
    print(f"{options.tools} tools, {options.rounds} rounds each")
    print(f"{'the first page, with the whole list':<34} {first:7.1f} ms   the first query after it {cold:7.1f} ms")
    report("`list`, a page of 50", pages)
    report("`list` with a `query`, limit 20", queries)
    report("`info`", infos)
    print(f"definition (`tools/list`)  {definition:>10,} B")
    print(f"query, info, call          {transcript:>10,} B   {transcript / whole:.2%} of")
    print(f"the native list            {whole:>10,} B")


main()
