"""A client that does what it is told, for whoever acts from elsewhere while a call is under way.

An order is a line of JSON on stdin: `{"call": 1, "name": …, "arguments": …}`, or `{"cancel": 1}`; `{"list": 2}`
lists the tools. What came of a call is one on stdout, with all that the server has asked the client so far. `{"form": RESULT}` is what forms are
answered with from then on, those that are open too; `{"form": null}` leaves them open. The end of stdin is the end.
"""

import json
import sys

import anyio
from mcp.shared.exceptions import MCPError

from .journal import PATIENCE_SECONDS
from .session import plain


def say(what):
    print(json.dumps(what), flush=True)


async def obey(session):
    scopes = {}

    async def call(order):
        number, patience = order["call"], order.get("patience_seconds", PATIENCE_SECONDS)
        try:
            with scopes[number]:
                result = await session.call(order, read_timeout_seconds=patience)
                say({"call": number, "result": result, "asked": session.asked})
        except MCPError as refused:
            say({"call": number, "error": plain(refused.error), "asked": session.asked})
        if scopes[number].cancelled_caught:
            say({"call": number, "cancelled": True})

    say({"connected": session.client.protocol_version})
    async with anyio.create_task_group() as tasks:
        async for line in anyio.wrap_file(sys.stdin):
            order = json.loads(line)
            if "call" in order:
                scopes[order["call"]] = anyio.CancelScope()
                tasks.start_soon(call, order)
            elif "list" in order:
                say({"call": order["list"], "result": plain(await session.client.list_tools())})
            elif "form" in order:
                session.fill_in(order["form"])
            else:
                scopes[order["cancel"]].cancel()
        tasks.cancel_scope.cancel()
