"""A server on the Python SDK that has nothing but a `proxy` tool, which answers as the MCP Proxy Extension shows it.

What its results say is what the specification's examples say, and no more: `pythonType` and `many`, no other names for
them, no pages, and `type` and `path` as they were given.
"""

import json

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

NUMBERS = {"a": {"type": "number"}, "b": {"type": "number"}}
LISTS = {
    "tool": [
        {
            "name": "calculator_add",
            "description": "Add two numbers",
            "inputSchema": {"type": "object", "properties": NUMBERS, "required": ["a", "b"]},
        },
        {"name": "fail", "inputSchema": {"type": "object"}},
    ],
    "resource": [
        {"name": "settings", "uri": "demo://settings", "mimeType": "text/plain"},
        {"name": "pixel", "uri": "demo://pixel", "mimeType": "image/png"},
        {"name": "note", "uriTemplate": "demo://note/{id}"},
    ],
    "prompt": [{"name": "greet", "description": "Greets", "arguments": [{"name": "who", "required": True}]}],
}
TYPES = {"tool": "Tool", "resource": "Resource|ResourceTemplate", "prompt": "Prompt"}
TOOL = {
    "name": "proxy",
    "description": "Proxy tool to list, get info about, and call capabilities of the servers behind it.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["list", "info", "call"]},
            "type": {"type": "string", "enum": ["tool", "resource", "prompt"]},
            "path": {"type": "string"},
            "args": {"type": "object"},
        },
        "required": ["action", "type"],
    },
}


class Refused(Exception):
    """What the protocol calls an error."""


def answer(action, kind, path=None, args=None):
    said = {"proxyAction": action, "proxyType": kind} | ({"proxyPath": path} if path else {})
    match action:
        case "list":
            return embedded("proxy:list/" + kind, LISTS[kind], said | {"pythonType": TYPES[kind], "many": True})
        case "info":
            item = next((item for item in LISTS[kind] if path in item.values()), None)
            if item is None:
                raise Refused(-32602, f"Unknown {kind}: {path}")
            name = TYPES[kind].split("|")["uriTemplate" in item]
            return embedded(f"proxy:info/{kind}/{path}", item, said | {"pythonType": name, "many": False})
    return call(kind, path, args or {}, said)


def call(kind, path, args, said):
    match kind, path:
        case "tool", "calculator_add":
            return {"type": "text", "text": str(args["a"] + args["b"]), "annotations": said}
        case "tool", "fail":
            return {"type": "text", "text": "failing as asked", "annotations": said}
        case "resource", "demo://settings":
            contents = {"mimeType": "application/json", "text": '{"key":"value"}', "contentType": "text/plain"}
            return resource(path, contents, said)
        case "resource", "demo://pixel":
            return resource(path, {"mimeType": "image/png", "blob": "aGk="}, said)
        case "resource", "demo://note/1":
            return resource(path, {"mimeType": "text/plain", "text": "the first"}, said)
        case "prompt", "greet":
            message = {"role": "user", "content": {"type": "text", "text": f"Hello {args['who']}"}}
            said = said | {"pythonType": "GetPromptResult"}
            return embedded("proxy:call/prompt/greet", {"description": "Greets", "messages": [message]}, said)
        case "resource", _:
            raise Refused(-32002, "Resource not found")
    raise Refused(-32602, f"Unknown {kind}: {path}")


def resource(uri, contents, said):
    return {"type": "resource", "resource": {"uri": uri} | contents, "annotations": said}


def embedded(uri, data, said):
    return resource(uri, {"mimeType": "application/json", "text": json.dumps(data)}, said)


def answered(request):
    arguments = {("kind" if name == "type" else name): value for name, value in request.params["arguments"].items()}
    try:
        has_failed = (arguments["action"], arguments.get("path")) == ("call", "fail")
        result = {"content": [answer(**arguments)]} | ({"isError": True} if has_failed else {})
        return types.JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)
    except Refused as refused:
        code, message = refused.args
        return types.JSONRPCError(jsonrpc="2.0", id=request.id, error=types.ErrorData(code=code, message=message))


async def list_tools(_context, _params):
    return types.ListToolsResult(tools=[types.Tool.model_validate(TOOL)])


async def main():
    """The SDK's results leave out annotations that it does not know, so calls are answered before they reach it."""
    server = Server("shown", version="1.0.0", on_list_tools=list_tools)
    async with stdio_server() as (reading, writing), anyio.create_task_group() as tasks:
        send, receive = anyio.create_memory_object_stream(0)
        tasks.start_soon(server.run, receive, writing.clone(), server.create_initialization_options())
        async with send, writing:
            async for message in reading:
                if getattr(getattr(message, "message", None), "method", None) == "tools/call":
                    await writing.send(SessionMessage(answered(message.message)))
                else:
                    await send.send(message)


anyio.run(main)
