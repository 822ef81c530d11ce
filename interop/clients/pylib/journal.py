"""Everything that happened on one connection, in order, and a way to wait for it instead of sleeping."""

from contextlib import asynccontextmanager

import anyio

PATIENCE_SECONDS = 20  # far beyond what any step takes; running out of it is a failure, never a pause


class Journal:
    """The messages as the transport delivered them, before the SDK looked at them."""

    def __init__(self):
        self.received, self.sent = [], []
        self._news = anyio.Event()

    def poke(self):
        self._news.set()
        self._news = anyio.Event()

    async def until(self, what, is_true, patience_seconds=PATIENCE_SECONDS):
        try:
            with anyio.fail_after(patience_seconds):
                while not is_true():
                    await self._news.wait()
        except TimeoutError:
            raise RuntimeError(f"waited in vain for {what}") from None

    def notifications(self, method, mark=0):
        return [m.get("params") for m in self.received[mark:] if m.get("method") == method]

    def summary(self, mark):
        """How often the server spoke up by itself after `mark`, and the questions it put into results."""
        heard, questions = {}, []
        for message in self.received[mark:]:
            if "method" in message:
                heard[message["method"]] = heard.get(message["method"], 0) + 1
            if (message.get("result") or {}).get("resultType") == "input_required":
                questions.append(message["result"])
        return {"heard": heard, **({"questions": questions} if questions else {})}

    @asynccontextmanager
    async def tapped(self, transport):
        """A transport of the SDK, with every message noted on its way through."""
        async with transport as (server_out, server_in):
            deliver, client_in = anyio.create_memory_object_stream(0)
            client_out, collect = anyio.create_memory_object_stream(0)

            async def pump(source, sink, log):
                async with source, sink:
                    async for message in source:
                        if not isinstance(message, Exception):  # a line that is no message
                            log.append(message.message.model_dump(by_alias=True, mode="json", exclude_unset=True))
                        try:
                            await sink.send(message)
                        except anyio.BrokenResourceError:
                            return  # the client has closed while the server still talked
                        self.poke()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(pump, server_out, deliver, self.received)
                tasks.start_soon(pump, collect, server_in, self.sent)
                yield client_in, client_out
                tasks.cancel_scope.cancel()
