"""Who meets whom in which case."""

from holds.stage import Cast

from .walk import changed, walked

CASES = [
    # The proxy is what the client starts: `mcp-governance-proxy --target CMD --rules FILE`.
    (walked, Cast("py", "github", "legacy", "stdio", "stdio")),
    (walked, Cast("ts1", "github", "legacy", "stdio", "stdio")),
    (walked, Cast("ts2", "github", "modern", "stdio", "stdio")),
    # The same over HTTP and SSE, relayed and crossed.
    (walked, Cast("ts1", "github", "legacy", "http", "http")),
    (walked, Cast("py", "github", "modern", "http", "http")),
    (walked, Cast("py", "github", "legacy", "sse", "sse")),
    (walked, Cast("ts2", "github", "legacy", "http", "stdio")),
    (walked, Cast("py", "github", "legacy", "sse", "stdio")),
    (walked, Cast("ts1", "github", "legacy", "stdio", "http")),
    (walked, Cast("py", "github", "modern", "stdio", "http")),
    (walked, Cast("ts1", "github", "legacy", "stdio", "sse")),
    (changed, Cast("py", "github", "legacy", "stdio", "stdio")),
    (changed, Cast("ts2", "github", "modern", "http", "http")),
    (changed, Cast("ts1", "github", "legacy", "sse", "sse")),
]
