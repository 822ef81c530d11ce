"""Who meets whom in which case."""

from holds.stage import Cast

from .asked import asked, deserted, overtaken, unanswered
from .hinted import hinted
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
    (hinted, Cast("py", "filesystem", "legacy", "stdio", "stdio")),
    (hinted, Cast("ts1", "filesystem", "legacy", "http", "stdio")),
    (hinted, Cast("ts2", "filesystem", "legacy", "sse", "stdio")),
    # Whoever uses the client is asked, by the way that each transport and era has for it.
    (asked, Cast("py", "github", "legacy", "stdio", "stdio")),
    (asked, Cast("ts1", "github", "legacy", "stdio", "stdio")),
    (asked, Cast("ts2", "github", "modern", "stdio", "stdio")),
    (asked, Cast("py", "github", "modern", "stdio", "http")),
    (asked, Cast("ts1", "github", "legacy", "stdio", "sse")),
    (asked, Cast("ts1", "github", "legacy", "http", "http")),
    (asked, Cast("py", "github", "legacy", "http", "http")),
    (asked, Cast("ts2", "github", "modern", "http", "http")),
    (asked, Cast("py", "github", "modern", "http", "stdio")),
    (asked, Cast("ts2", "github", "legacy", "http", "stdio")),
    (asked, Cast("py", "github", "legacy", "http", "sse")),
    (asked, Cast("py", "github", "legacy", "sse", "sse")),
    (asked, Cast("ts1", "github", "legacy", "sse", "stdio")),
    (asked, Cast("ts2", "github", "legacy", "sse", "http")),
    (overtaken, Cast("py", "github", "legacy", "stdio", "stdio")),
    (overtaken, Cast("ts1", "github", "legacy", "http", "http")),
    (overtaken, Cast("ts2", "github", "legacy", "sse", "sse")),
    (overtaken, Cast("ts2", "github", "modern", "stdio", "stdio")),
    (overtaken, Cast("py", "github", "modern", "http", "http")),
    (unanswered, Cast("ts1", "github", "legacy", "stdio", "stdio")),
    (unanswered, Cast("py", "github", "legacy", "http", "http")),
    (unanswered, Cast("ts2", "github", "legacy", "http", "stdio")),
    (unanswered, Cast("py", "github", "legacy", "sse", "sse")),
    (deserted, Cast("py", "github", "legacy", "stdio", "stdio")),
    (deserted, Cast("ts1", "github", "legacy", "sse", "stdio")),
    (deserted, Cast("py", "github", "legacy", "stdio", "http")),
]
