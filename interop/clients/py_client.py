"""The Python SDK as a client, in either era or finding out which (`auto`)."""

import logging
import sys
import warnings

import anyio
from mcp import StdioServerParameters
from mcp.shared.exceptions import MCPDeprecationWarning
from pylib.document import load_profile, parse, print_document
from pylib.features import innermost, observe
from pylib.journal import Journal
from pylib.session import Session

warnings.simplefilter("ignore", MCPDeprecationWarning)  # the legacy half of the protocol is what we are here for
logging.disable()  # one server sends a line that is not JSON, and the SDK would print a traceback for it


async def main(arguments):
    options, (command, *args) = parse(arguments)
    session = Session(Journal(), StdioServerParameters(command=command, args=args), options.era)
    async with session.client:
        features = await observe(session, load_profile(options.profile, options.era))
    print_document("py", options, features)


if __name__ == "__main__":
    try:
        anyio.run(main, sys.argv[1:])
    except Exception as error:
        print(f"py: {innermost(error)}", file=sys.stderr)
        sys.exit(1)
