"""A server on the Python SDK with repositories to list and to lose.

    python github_server.py [stdio|http|sse]      the latter two print READY and their URL on stderr

Every call that reaches it is written to `~/reached`.
"""

import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

from py_server import serve

server = MCPServer("github", version="1.0.0", log_level="ERROR")
repos = ["test-repo", "notes"]


def reached(name: str):
    with Path.home().joinpath("reached").open("a") as journal:
        journal.write(f"{name}\n")


@server.tool(structured_output=False)
def github_list_repos() -> str:
    """Lists the repositories."""
    reached("github_list_repos")
    return ", ".join(repos)


@server.tool(structured_output=False)
def github_delete_repo(name: str) -> str:
    """Deletes a repository for good."""
    reached("github_delete_repo")
    repos.remove(name)
    return f"deleted {name}"


# Some servers take names in any case; this one has both.
server.add_tool(github_delete_repo, name="GitHub_Delete_Repo", structured_output=False)

if __name__ == "__main__":
    match sys.argv[1:]:
        case [] | ["stdio"]:
            server.run("stdio")
        case ["http"]:
            serve(server.streamable_http_app(), "/mcp")
        case ["sse"]:
            serve(server.sse_app(), "/sse")
        case other:
            sys.exit(f"github_server.py: what transport is {other}?")
