"""Many clients in one process whose ids, progress tokens and questions all collide. Standard library only.

    python crowd.py --era legacy|modern --transport http|sse --url URL --clients N [--one-too-many]

Legacy clients open their sessions first, and go on when all of them are open. Each then makes the same calls with
the same ids, and what tells the answers apart is only that every client asks about its own number. Prints how many
answers of each kind were right; a single wrong one ends it. `--one-too-many` tries one more client while all are
there, prints the status it is refused with, and waits until it is welcome because the others have left.
"""

import argparse
import asyncio
import json
import sys
from contextlib import asynccontextmanager
from urllib.parse import urljoin, urlsplit

from pylib.http import Pool

LIMIT_SECONDS = 90
LEGACY, MODERN = "2025-11-25", "2026-07-28"
NS = "io.modelcontextprotocol/"
INFO = {"name": "interop-crowd", "version": "1.0.0"}
CAPABILITIES = {"sampling": {}}
TOKEN = "the same for everyone"
NAMED = {"tools/call": "name", "resources/read": "uri"}


class Wrong(Exception):
    """An answer that was not the right one."""


class Refused(Exception):
    """The other end wants no more clients."""


def expect(what, seen, wanted):
    if seen != wanted:
        raise Wrong(f"{what}: {seen!r} instead of {wanted!r}")


def target_of(url):
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


# -- transports: `send(message)` iterates over what comes back for it --------------------------------------


class Http:
    """Streamable HTTP, either era."""

    def __init__(self, pool, url):
        self.pool, self.target = pool, target_of(url)
        self.headers = {"accept": "application/json, text/event-stream"}

    @asynccontextmanager
    async def open(self):
        yield self
        if "mcp-session-id" in self.headers:
            async with self.pool.request("DELETE", self.target, self.headers) as response:
                expect("the end of the session", response.status // 100, 2)
                await response.body()

    async def send(self, message):
        headers, params = self.headers, message.get("params", {})
        if NS + "protocolVersion" in params.get("_meta", {}):
            headers = headers | {"mcp-protocol-version": MODERN, "mcp-method": message["method"], "mcp-name": params["name"]}
        async with self.pool.request("POST", self.target, headers, message) as response:
            if response.status == 503:
                raise Refused(response.status)
            if response.status >= 300:
                raise Wrong(f"status {response.status}: {(await response.body())[:200]!r}")
            if message.get("method") == "initialize":
                self.headers |= {"mcp-session-id": response.headers["mcp-session-id"], "mcp-protocol-version": LEGACY}
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                async for _, data in response.events():
                    yield json.loads(data)
            elif body := await response.body():
                yield json.loads(body)


class Sse:
    """HTTP+SSE: one stream per session, from which every exchange takes what is its own."""

    def __init__(self, pool, url):
        self.pool, self.url = pool, url
        self.inboxes = {}  # by the id's spelling, as 1 and "1" differ

    @asynccontextmanager
    async def open(self):
        async with self.pool.request("GET", target_of(self.url), {"accept": "text/event-stream"}) as response:
            if response.status == 503:
                raise Refused(response.status)
            expect("the status of the stream", response.status, 200)
            stream = response.events()
            event, where = await anext(stream)
            expect("the first event", event, "endpoint")
            self.endpoint = target_of(urljoin(self.url, where))
            reader = asyncio.create_task(self._read(stream))
            try:
                yield self
            finally:
                reader.cancel()

    async def _read(self, stream):
        async for _, data in stream:
            message = json.loads(data)
            # Progress and questions name no exchange of ours, so they go to all under way, who know their own. So
            # does an answer that nobody waits for, and there it ends in a complaint.
            mine = None if "method" in message else self.inboxes.get(repr(message.get("id")))
            for inbox in [mine] if mine else self.inboxes.values():
                inbox.put_nowait(message)
        for inbox in self.inboxes.values():
            inbox.put_nowait(None)

    async def send(self, message):
        key = repr(message["id"]) if "method" in message and "id" in message else None
        if key:
            inbox = self.inboxes[key] = asyncio.Queue()
        async with self.pool.request("POST", self.endpoint, {}, message) as response:
            if response.status == 503:
                raise Refused(response.status)
            expect("the status of a message", response.status // 100, 2)
            await response.body()
        while key in self.inboxes and (received := await inbox.get()):
            if "method" not in received:
                del self.inboxes[key]
            yield received


# -- one client ----------------------------------------------------------------------------------------


class Client:
    def __init__(self, number, era, transport, right):
        self.number, self.era, self.transport, self.right = number, era, transport, right

    def request(self, request_id, method, params):
        if self.era == "modern":
            own = {NS + "protocolVersion": MODERN, NS + "clientInfo": INFO, NS + "clientCapabilities": CAPABILITIES}
            params = params | {"_meta": own | params.get("_meta", {})}
        return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}

    async def exchange(self, request, on_other=None):
        """The result of a request. What else comes on the way goes to `on_other`; nothing may come after it."""
        answer = None
        async for message in self.transport.send(request):
            if answer:
                raise Wrong(f"client {self.number}: after the answer {message}")
            if "method" not in message:
                answer = message
            elif on_other:
                await on_other(message)
        if not answer or "result" not in answer:
            raise Wrong(f"client {self.number}: {answer} to {request}")
        # Type and spelling: 1 and "1" are different ids, and both are under way.
        expect(f"the id of {self.number}", repr(answer.get("id")), repr(request["id"]))
        return answer["result"]

    async def tell(self, message):
        async for unexpected in self.transport.send({"jsonrpc": "2.0"} | message):
            raise Wrong(f"client {self.number}: {unexpected} instead of nothing")

    async def initialize(self):
        params = {"protocolVersion": LEGACY, "capabilities": CAPABILITIES, "clientInfo": INFO}
        answer = await self.exchange(self.request(0, "initialize", params))
        expect("the revision", answer["protocolVersion"], LEGACY)
        await self.tell({"method": "notifications/initialized"})
        self.right["handshakes"] += 1

    async def echo(self, request_id):
        words = f"client {self.number}, id {request_id!r}"
        answer = await self.exchange(self.request(request_id, "tools/call", {"name": "echo", "arguments": {"message": words}}))
        expect("an echo", answer["content"][0]["text"], f"Echo: {words}")
        self.right["echoes"] += 1

    async def progress(self, request_id):
        heard = []

        async def note(message):
            if message["method"] == "notifications/progress":
                expect("the token", message["params"]["progressToken"], TOKEN)
                heard.append(message["params"]["progress"])

        params = {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": TOKEN}}
        await self.exchange(self.request(request_id, "tools/call", params), note)
        expect(f"the progress of {self.number}", heard, [0, 50, 100])
        self.right["progress"] += 1

    async def question(self, request_id):
        """The server asks back; legacy servers number these questions alike in every session."""
        prompt = f"who is {self.number}?"
        answer = lambda text: {"role": "assistant", "model": "m", "content": {"type": "text", "text": text}}

        async def reply(message):
            if message["method"] == "sampling/createMessage":
                asked = message["params"]["messages"][0]["content"]["text"]
                expect("the question", asked, prompt)
                await self.tell({"id": message["id"], "result": answer(f"I am {self.number}")})

        if self.era == "legacy":
            params = {"name": "test_sampling", "arguments": {"prompt": prompt}}
            result = await self.exchange(self.request(request_id, "tools/call", params), reply)
            expect("what the server made of it", result["content"][0]["text"], f"LLM response: I am {self.number}")
        else:
            params = {"name": "test_input_required_result_sampling", "arguments": {}}
            asked = await self.exchange(self.request(request_id, "tools/call", params))
            (key,) = asked["inputRequests"]
            params |= {"inputResponses": {key: answer(f"I am {self.number}")}}
            result = await self.exchange(self.request(f"{request_id} again", "tools/call", params))
            expect("what the server made of it", result["content"][0]["text"], f"Sampling said: I am {self.number}")
        self.right["questions"] += 1

    async def work(self):
        await asyncio.gather(self.echo(1), self.echo("1"))
        await asyncio.gather(self.echo(2), self.progress(3))
        await self.question(4)


# -- all of them ---------------------------------------------------------------------------------------


async def crowd(options):
    right = {"handshakes": 0, "echoes": 0, "progress": 0, "questions": 0}
    kind = {"http": Http, "sse": Sse}[options.transport]
    everyone_is_in, may_work = asyncio.Barrier(options.clients + 1), asyncio.Event()
    pool = Pool(options.url)

    async def one(number):
        async with kind(pool, options.url).open() as transport:
            client = Client(number, options.era, transport, right)
            if options.era == "legacy":
                await client.initialize()
            await everyone_is_in.wait()
            await may_work.wait()
            await client.work()

    async def one_more():
        """The status it is refused with, if so."""
        try:
            async with kind(pool, options.url).open() as transport:
                await Client(options.clients, "legacy", transport, dict(right)).initialize()
        except Refused as refused:
            return refused.args[0]

    async with asyncio.TaskGroup() as tasks:
        for number in range(options.clients):
            tasks.create_task(one(number))
        await everyone_is_in.wait()
        if options.one_too_many:
            right["one too many"] = await one_more()
        may_work.set()
    if options.one_too_many:
        while await one_more():  # a place is free once its server is gone, which takes a moment
            await asyncio.sleep(0.05)
        right["welcome afterwards"] = True
    pool.close()
    return right


def innermost(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", choices=("legacy", "modern"), required=True)
    parser.add_argument("--transport", choices=("http", "sse"), required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--one-too-many", action="store_true")
    async with asyncio.timeout(LIMIT_SECONDS):
        print(json.dumps(await crowd(parser.parse_args())))


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except Exception as error:
        print(f"crowd: {type(innermost(error)).__name__}: {innermost(error)}", file=sys.stderr)
        sys.exit(1)
