"""Goes through all that a gateway has, natively or through its tool: lists, describes, calls, reads and gets everything.

    python walker.py --era legacy --profile walk --profiles PLAN [--through-tool NAME] -- COMMAND
"""

import json
import sys
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "clients"))

from mcp.shared.exceptions import MCPError
from py_client import transport_of
from pylib.annotated import ThroughTool, as_task
from pylib.document import canonical, load_profile, parse
from pylib.features import innermost
from pylib.journal import Journal
from pylib.session import Session, plain

TOOL = "proxy"


async def outcome(awaitable):
    """What came of it: a result, or the error as it was told."""
    try:
        came = await awaitable
    except MCPError as refused:
        return {"error": plain(refused.error)}
    return came if isinstance(came, dict) else plain(came)


async def lists(client):
    tools = [tool for tool in (await client.list_tools()).tools if tool.name != TOOL]
    resources = (await client.list_resources()).resources
    templates = (await client.list_resource_templates()).resource_templates
    return {"tool": tools, "resource": [*resources, *templates], "prompt": (await client.list_prompts()).prompts}


def path_of(item):
    return getattr(item, "uri", None) or getattr(item, "uri_template", None) or item.name


async def walk(client, plan, info, call_as_task):
    listed = await lists(client)
    seen = {"lists": {kind: [plain(item) for item in items] for kind, items in listed.items()}, "info": {}, "came": []}
    for kind, items in listed.items():
        for path in map(path_of, items):
            seen["info"][f"{kind} {path}"] = plain(await info(kind, path, items))
    called = {call["name"] for call in (*plan["calls"], *plan["tasks"])}
    if missing := {tool.name for tool in listed["tool"]} - called:
        raise RuntimeError(f"nothing calls {sorted(missing)}")
    if missing := {prompt.name for prompt in listed["prompt"]} - {prompt["name"] for prompt in plan["prompts"]}:
        raise RuntimeError(f"nothing gets {sorted(missing)}")
    for call in plan["calls"]:
        seen["came"].append([call, await outcome(client.call_tool(call["name"], call["arguments"]))])
    for call in plan["tasks"]:
        seen["came"].append([call, await outcome(call_as_task(call["name"], call["arguments"]))])
    for uri in [*(item.uri for item in listed["resource"] if hasattr(item, "uri")), *plan["reads"]]:
        seen["came"].append([uri, await outcome(client.read_resource(uri))])
    for prompt in plan["prompts"]:
        seen["came"].append([prompt, await outcome(client.get_prompt(prompt["name"], prompt["arguments"]))])
    return seen


async def main(arguments):
    options = parse(arguments)
    session = Session(Journal(), transport_of(options), options.era)
    async with session.client as client:
        plan = load_profile(options.profile, options)
        if options.through_tool:
            through = ThroughTool(client, options.through_tool)
            seen = await walk(through, plan, lambda kind, path, _: through.info(kind, path), through.call_tool_as_task)
        else:

            async def found(_kind, path, items):
                return next(item for item in items if path_of(item) == path)

            seen = await walk(client, plan, found, lambda name, arguments: as_task(client, name, arguments))
    print(json.dumps(canonical(seen), indent=1, sort_keys=True, ensure_ascii=False))


if __name__ == "__main__":
    try:
        anyio.run(main, sys.argv[1:])
    except Exception as error:
        error = innermost(error)
        print(f"walker: {str(error) or repr(error)}", file=sys.stderr)
        sys.exit(1)
