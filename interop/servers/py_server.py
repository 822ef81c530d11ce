"""A server on the Python SDK with one tool per thing a proxy could get wrong.

    python py_server.py [stdio|http|sse]      the latter two print READY and their URL on stderr

The SDK lets the client's first message pick the era, so the same process serves `initialize` clients and
2026-07-28 clients. `ts_server.mjs` offers the same names, so that one profile describes both.
"""

import socket
import sys
import warnings

import anyio
import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

NOTE = "interop://note"
NAMES = ["Ada", "Alan", "Grace"]

warnings.simplefilter("ignore", MCPDeprecationWarning)  # half of this is here because it is deprecated

server = MCPServer("interop-py", version="1.0.0", instructions="One tool per feature.", log_level="ERROR")


def is_modern(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


# -- calls ---------------------------------------------------------------------------------------------


@server.tool(structured_output=False)
def echo(message: str) -> str:
    """Repeats the message."""
    return f"echo: {message}"


@server.tool()
def add(a: int, b: int) -> dict[str, int]:
    """Adds, with structured content."""
    return {"sum": a + b}


@server.tool(structured_output=False)
def fail() -> str:
    """Ends in a tool error."""
    raise ToolError("failing as asked")


# -- progress and cancellation -------------------------------------------------------------------------

steps_released = anyio.Event()
hang_cancelled = anyio.Event()


@server.tool(structured_output=False)
async def steps(count: int, ctx: Context) -> str:
    """Reports each step, then waits for `release`.

    Clients may drop a progress notification that arrives together with the response, and whether it does
    is a matter of buffering. Waiting for the client's word keeps the two apart without a clock.
    """
    for step in range(1, count + 1):
        await ctx.report_progress(step, count, f"step {step}")
    await steps_released.wait()
    return f"{count} steps"


@server.tool(structured_output=False)
def release() -> str:
    """Lets `steps` finish."""
    steps_released.set()
    return "released"


@server.tool(structured_output=False)
async def hang(ctx: Context) -> str:
    """Says that it runs, then runs until it is cancelled."""
    await ctx.report_progress(0, message="running")
    try:
        await anyio.sleep_forever()
    finally:
        hang_cancelled.set()


@server.tool(structured_output=False)
async def cancelled() -> str:
    """Answers once `hang` has been cancelled, and not before."""
    await hang_cancelled.wait()
    return "hang was cancelled"


# -- logging -------------------------------------------------------------------------------------------

SEVERITY = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
session_level = "debug"


async def set_level(_ctx, params: types.SetLevelRequestParams) -> types.EmptyResult:
    global session_level
    session_level = params.level
    return types.EmptyResult()


@server.tool(structured_output=False)
async def log(ctx: Context) -> str:
    """Logs once at debug, info and error."""
    for level in ("debug", "info", "error"):
        # In the modern era the SDK applies the level of the request; a session's level is ours to apply.
        if is_modern(ctx) or SEVERITY.index(level) >= SEVERITY.index(session_level):
            await ctx.log(level, {"at": level}, logger_name="interop")
    return "logged"


# -- questions to the client ---------------------------------------------------------------------------

RESULT_OF = {
    "sampling/createMessage": types.CreateMessageResult,
    "elicitation/create": types.ElicitResult,
    "roots/list": types.ListRootsResult,
}


async def ask(ctx: Context, question):
    """The client's answer, or the result that makes a modern client come back with it."""
    if not is_modern(ctx):
        return await ctx.session.send_request(question, RESULT_OF[question.method])
    answer = (ctx.input_responses or {}).get("answer")
    return answer or types.InputRequiredResult(input_requests={"answer": question}, request_state="asked")


def form(message: str, field: str) -> types.ElicitRequest:
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


@server.tool(structured_output=False)
async def sample(prompt: str, ctx: Context):
    """Has the client's model answer."""
    text = types.TextContent(type="text", text=prompt)
    messages = [types.SamplingMessage(role="user", content=text)]
    params = types.CreateMessageRequestParams(messages=messages, max_tokens=50, temperature=0.5)
    answer = await ask(ctx, types.CreateMessageRequest(params=params))
    if isinstance(answer, types.InputRequiredResult):
        return answer
    return f"{answer.model} said: {answer.content.text}"


@server.tool(structured_output=False)
async def elicit(question: str, ctx: Context):
    """Asks the user one question."""
    answer = await ask(ctx, form(question, "reply"))
    if isinstance(answer, types.InputRequiredResult):
        return answer
    return f"{answer.action}: {(answer.content or {}).get('reply')}"


@server.tool(structured_output=False)
async def roots(ctx: Context):
    """Lists the client's roots."""
    answer = await ask(ctx, types.ListRootsRequest())
    if isinstance(answer, types.InputRequiredResult):
        return answer
    return ", ".join(f"{root.name}={root.uri}" for root in answer.roots)


@server.tool(structured_output=False)
async def survey(ctx: Context):
    """Asks two questions, the second only after the first was answered."""
    name, colour = form("Your name?", "name"), form("Your colour?", "colour")
    if not is_modern(ctx):
        first = await ask(ctx, name)
        second = await ask(ctx, colour)
        return f"{first.content['name']} likes {second.content['colour']}"
    answers = ctx.input_responses or {}
    if "colour" in answers:
        return f"{ctx.request_state} likes {answers['colour'].content['colour']}"
    if "name" in answers:
        state = answers["name"].content["name"]  # answers are those of the last round only
        return types.InputRequiredResult(input_requests={"colour": colour}, request_state=state)
    return types.InputRequiredResult(input_requests={"name": name})


# -- resources and changes -----------------------------------------------------------------------------

subscribed: set[str] = set()


async def subscribe(_ctx, params: types.SubscribeRequestParams) -> types.EmptyResult:
    subscribed.add(params.uri)
    return types.EmptyResult()


async def unsubscribe(_ctx, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    subscribed.discard(params.uri)
    return types.EmptyResult()


@server.resource(NOTE, name="note", mime_type="text/plain")
def note() -> str:
    """A note that `touch` pretends to change."""
    return "a note with ünïcode and a \"quote\""


@server.resource("interop://bytes", name="bytes", mime_type="application/octet-stream")
def raw_bytes() -> bytes:
    """Every byte value once."""
    return bytes(range(256))


@server.resource("interop://item/{id}", name="item", mime_type="application/json")
def item(id: str) -> dict[str, str]:
    """One of many."""
    return {"id": id}


@server.tool(structured_output=False)
async def touch(uri: str, ctx: Context) -> str:
    """Announces a change of a resource to those who asked for it."""
    if is_modern(ctx):
        await ctx.notify_resource_updated(uri)
    elif uri in subscribed:
        await ctx.session.send_resource_updated(uri)
    return f"touched {uri}"


@server.tool(structured_output=False)
async def grow(ctx: Context) -> str:
    """Adds a tool and announces it."""
    server.add_tool(lambda: "late", name="late", description="Came late.", structured_output=False)
    await (ctx.notify_tools_changed() if is_modern(ctx) else ctx.session.send_tool_list_changed())
    return "grown"


# -- prompts and completion ----------------------------------------------------------------------------


@server.prompt()
def greet(name: str) -> str:
    """Greets someone."""
    return f"Greet {name} warmly."


@server.completion()
async def complete(ref, argument: types.CompletionArgument, context) -> types.Completion:
    pool = NAMES if isinstance(ref, types.PromptReference) else ["1", "12", "2"]
    values = [value for value in pool if value.startswith(argument.value)]
    return types.Completion(values=values, total=len(values), has_more=False)


# The high-level class has no hooks for what 2026-07-28 removed, so these go to the server beneath it.
legacy_only = server._lowlevel_server.add_request_handler
legacy_only("resources/subscribe", types.SubscribeRequestParams, subscribe)
legacy_only("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)
legacy_only("logging/setLevel", types.SetLevelRequestParams, set_level)


def serve(app, path):
    """On a port of the system's choice. The SDK's own way to serve would not say which one it got."""
    import uvicorn  # here, because over stdio it would only slow the start

    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        print(f"READY http://127.0.0.1:{listener.getsockname()[1]}{path}", file=sys.stderr, flush=True)
        config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    match sys.argv[1:]:
        case [] | ["stdio"]:
            server.run("stdio")
        case ["http"]:
            serve(server.streamable_http_app(), "/mcp")
        case ["sse"]:
            serve(server.sse_app(), "/sse")
        case other:
            sys.exit(f"py_server.py: what transport is {other}?")
