"""Prints what Magg's client sees: of a server itself (`natively`), or of a gateway through its tool (`through-tool`).

    python magg_client.py natively|through-tool PROFILE (URL | -- COMMAND)

Runs in the environment that has Magg. Natively it is the client that Magg's is made of.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from magg.proxy.client import ProxyClient

PATIENCE_SECONDS = 30
OF_THE_PROTOCOL = {"audience", "priority", "lastModified"}


class Asking(ProxyClient):
    """Magg 1.3 takes the result of its own SDK for a list."""

    async def proxy(self, *args, **options):
        return (await super().proxy(*args, **options)).content


def client_of(way, peer):
    where = peer[0]
    if where == "--":
        # The process ends with the connection.
        where = StdioTransport(peer[1], list(peer[2:]), env=dict(os.environ), keep_alive=False)
    if way == "natively":
        return Client(where, init_timeout=PATIENCE_SECONDS)
    return Asking(where, transparent=True, init_timeout=PATIENCE_SECONDS)


def plain(value):
    """As it was read; what the tool says of a result in annotations is left out."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    return without_own(value.model_dump(mode="json", by_alias=True, exclude_none=True))


def without_own(value):
    if isinstance(value, list):
        return [without_own(item) for item in value]
    if not isinstance(value, dict):
        return value
    there = {key: without_own(item) for key, item in value.items()}
    if isinstance(there.get("annotations"), dict):
        there["annotations"] = {key: item for key, item in there["annotations"].items() if key in OF_THE_PROTOCOL}
    return {key: item for key, item in there.items() if key != "annotations" or item}


async def lists(client, way):
    resources = await client.list_resources()
    if way == "natively":
        resources += await client.list_resource_templates()
    return {"tools": await client.list_tools(), "resources": resources, "prompts": await client.list_prompts()}


async def called(client, way, call):
    result = await client.call_tool(call["name"], call["arguments"])
    return result.content if way == "natively" else result


async def main(way, profile, *peer):
    profiles = json.loads(Path(__file__).resolve().parents[1].joinpath("profiles.json").read_text())
    plan = profiles[profile]
    async with client_of(way, peer) as client:
        seen = {kind: plain(items) for kind, items in (await lists(client, way)).items()}
        calls = [{"name": plan["echo"], "arguments": {"message": "hello"}}, *plan["calls"]]
        seen["calls"] = [plain(await called(client, way, call)) for call in calls]
        seen["reads"] = [plain(await client.read_resource(uri)) for uri in plan["reads"]]
        # Magg 1.3 cannot send the arguments of a prompt.
        bare = [prompt["name"] for prompt in plan["prompts"] if not prompt["arguments"]]
        seen["prompts got"] = [plain(await client.get_prompt(name)) for name in bare]
    print(json.dumps(seen, ensure_ascii=False))


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except Exception as error:
        print(f"magg: {error!r}", file=sys.stderr)
        sys.exit(1)
