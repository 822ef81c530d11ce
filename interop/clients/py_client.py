"""The Python SDK as a client, in either era or finding out which (`auto`)."""

import collections
import logging
import sys
import warnings

import anyio
from mcp import StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning
from pylib.annotated import ThroughTool
from pylib.document import load_profile, parse, print_document
from pylib.features import innermost, observe
from pylib.journal import Journal
from pylib.orders import obey
from pylib.session import Session

warnings.simplefilter("ignore", MCPDeprecationWarning)  # the legacy half of the protocol is what we are here for


class Complaints(logging.Handler):
    """What the SDK complains about: told only if the client fails, for one server sends lines that are not JSON."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.last = collections.deque(maxlen=3)

    def emit(self, record):
        self.last.append(self.format(record))


complaints = Complaints()
logging.basicConfig(handlers=[complaints])


def transport_of(options):
    match options.transport:
        case "stdio":
            command, *args = options.command
            return stdio_client(StdioServerParameters(command=command, args=args))
        case "http":
            return streamable_http_client(options.url)
        case "sse":
            return sse_client(options.url)


async def main(arguments):
    options = parse(arguments)
    session = Session(Journal(), transport_of(options), options.era)
    visits, is_observed = {}, False
    try:
        async with session.client:
            await attend(session, options, visits)
            is_observed = True
    except Exception as error:
        # What answers a cancelled call may come while the SDK closes, which it trips over.
        if not (is_observed and isinstance(innermost(error), anyio.ClosedResourceError)):
            raise
    if not options.orders:
        print_document("py", options, visits)


async def attend(session, options, visits):
    if options.through_tool:
        session.client = ThroughTool(session.client, options.through_tool)
    if options.orders:
        return await obey(session)
    if options.together:
        print("CONNECTED", file=sys.stderr, flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)
    profiles = {name: load_profile(name, options) for name in options.profile.split(",")}
    session.unsolicited = sum("unsolicited_then_logged" in p.get("roots", {}) for p in profiles.values())
    for name, profile in profiles.items():
        try:
            visits[name] = await observe(session, profile, options.features)
        except RuntimeError as error:
            raise RuntimeError(f"{name}: {error}") from error


if __name__ == "__main__":
    try:
        anyio.run(main, sys.argv[1:])
    except Exception as error:
        error = innermost(error)
        print(f"py: {str(error) or repr(error)}", *complaints.last, sep="\n", file=sys.stderr)  # some have no words
        sys.exit(1)
