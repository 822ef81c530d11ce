"""A client of one tool, through which it reaches everything: what comes back it reads by the annotations alone.

It stands where the SDK's own client does, so what is observed of a server natively can be observed through the tool.
"""

import json
from typing import Any

import mcp_types as types
from pydantic import TypeAdapter

# The SDK's own types leave out annotations that they do not know.
RAW = TypeAdapter(dict[str, Any])
OWN = ("proxyAction", "proxyType", "proxyPath")


class ThroughTool:
    """What the SDK's client can do, by way of the tool; anything else is the client's own."""

    def __init__(self, client, tool):
        self._client, self._tool = client, tool

    def __getattr__(self, name):
        return getattr(self._client, name)

    async def list_tools(self, **_):
        return types.ListToolsResult(tools=await self._list("tool"))

    async def list_resources(self, **_):
        return types.ListResourcesResult(resources=await self._list("resource", types.Resource))

    async def list_resource_templates(self, **_):
        return types.ListResourceTemplatesResult(resourceTemplates=await self._list("resource", types.ResourceTemplate))

    async def list_prompts(self, **_):
        return types.ListPromptsResult(prompts=await self._list("prompt"))

    async def info(self, kind, path):
        (item,) = (await self._use("info", kind, path))["content"]
        return objects(item, "info", kind, path)

    async def call_tool(self, name, arguments=None, read_timeout_seconds=None, progress_callback=None, meta=None):
        wanted = {"request_read_timeout_seconds": read_timeout_seconds, "progress_callback": progress_callback}
        result = await self._use("call", "tool", name, arguments, meta, **wanted)
        return types.CallToolResult.model_validate(native_tool_result(result, name))

    async def call_tool_as_task(self, name, arguments):
        result = await as_task(self._client, self._tool, words("call", "tool", name, arguments))
        return native_tool_result(result, name)

    async def read_resource(self, uri):
        result = await self._use("call", "resource", uri)
        contents = [native_contents(item, uri) for item in result["content"]]
        return types.ReadResourceResult.model_validate({"contents": contents} | beside(result))

    async def get_prompt(self, name, arguments=None):
        (item,) = (await self._use("call", "prompt", name, arguments))["content"]
        return objects(item, "call", "prompt", name)

    async def _list(self, kind, wanted=None):
        (item,) = (await self._use("list", kind))["content"]
        return [one for one in objects(item, "list", kind) if wanted in (None, type(one))]

    async def _use(self, action, kind, path=None, args=None, meta=None, **options):
        params = types.CallToolRequestParams(name=self._tool, arguments=words(action, kind, path, args), _meta=meta)
        return await self._client.session.send_request(types.CallToolRequest(params=params), RAW, **options)


def words(action, kind, path=None, args=None):
    given = {"action": action, "type": kind, "path": path, "args": args}
    return {name: value for name, value in given.items() if value is not None}


async def as_task(client, name, arguments):
    """A call that the server works on by itself, and the result that it has in the end."""
    ask = client.session._dispatcher.send_raw_request  # in answer to a call, the SDK itself takes no task
    begun = await ask("tools/call", {"name": name, "arguments": arguments, "task": {"ttl": 60_000}}, {})
    return await ask("tasks/result", {"taskId": begun["task"]["taskId"]}, {})


def said_of(item, action, kind, path=None):
    """The annotations of an item, which have to say what it is the answer to."""
    annotations = item["annotations"]
    if tuple(annotations.get(name) for name in OWN) != (action, kind, path):
        raise RuntimeError(f"annotated as {annotations}, which is not {action} {kind} {path}")
    return annotations


def objects(item, action, kind, path=None):
    """What an embedded resource holds, as objects of the types that its annotations name."""
    annotations, resource = said_of(item, action, kind, path), item["resource"]
    if resource["mimeType"] != "application/json":
        raise RuntimeError(f"no JSON: {resource}")
    names, data = annotations["pythonType"].split("|"), json.loads(resource["text"])
    made = [fitting(names, one) for one in (data if annotations.get("many") else [data])]
    return made if annotations.get("many") else made[0]


def fitting(names, data):
    """The first of the types that takes the data."""
    for kind in (getattr(types, name) for name in names):
        try:
            return kind.model_validate(data)
        except ValueError:
            continue
    raise RuntimeError(f"no {' or '.join(names)}: {data}")


def native_tool_result(result, name):
    return result | {"content": [bare(item, "tool", name) for item in result["content"]]}


def bare(item, kind, path):
    """An item without the annotations that are the tool's."""
    rest = {key: value for key, value in said_of(item, "call", kind, path).items() if key not in OWN}
    item = {key: value for key, value in item.items() if key != "annotations"}
    return item | ({"annotations": rest} if rest else {})


def native_contents(item, uri):
    """What was read, under the type that it had before it was written as JSON."""
    resource = dict(bare(item, "resource", uri)["resource"])
    if "contentType" in resource:
        json.loads(resource["text"])
        resource["mimeType"] = resource.pop("contentType")
    return resource


def beside(result):
    return {key: value for key, value in result.items() if key not in ("content", "isError", "structuredContent")}
