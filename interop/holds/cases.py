"""Who meets whom in which case."""

from .again import again
from .edited import edited, renamed
from .endings import cancelled, refused, unwanted
from .questions import answered, questioned, rounds
from .stage import Cast
from .whole import connecting, switched

CASES = [
    (edited, Cast("py", "everything", "legacy", "stdio", "stdio")),
    (edited, Cast("ts1", "everything", "legacy", "stdio", "stdio")),
    (edited, Cast("ts1", "everything", "legacy", "http", "http")),
    (edited, Cast("py", "everything", "legacy", "sse", "sse")),
    (edited, Cast("py", "everything", "legacy", "stdio", "http")),
    (edited, Cast("ts2", "everything", "legacy", "http", "stdio")),
    (edited, Cast("ts1", "everything", "legacy", "stdio", "sse")),
    (edited, Cast("py", "everything", "legacy", "sse", "stdio")),
    (edited, Cast("py", "ts", "modern", "stdio", "stdio")),
    (edited, Cast("ts2", "py", "modern", "stdio", "http")),
    (edited, Cast("py", "ts", "modern", "http", "stdio")),
    (edited, Cast("py", "py", "modern", "http", "http")),
    (renamed, Cast("ts2", "ts", "modern", "http", "http")),
    (renamed, Cast("py", "py", "modern", "http", "http")),
    (renamed, Cast("py", "ts", "modern", "stdio", "http")),
    (questioned, Cast("py", "everything", "legacy", "stdio", "stdio")),
    (questioned, Cast("ts1", "everything", "legacy", "http", "http")),
    (questioned, Cast("ts2", "everything", "legacy", "sse", "sse")),
    (questioned, Cast("py", "everything", "legacy", "http", "stdio")),
    (questioned, Cast("ts1", "everything", "legacy", "stdio", "http")),
    (answered, Cast("ts1", "everything", "legacy", "stdio", "stdio")),
    (answered, Cast("py", "everything", "legacy", "http", "http")),
    (answered, Cast("ts2", "everything", "legacy", "sse", "stdio")),
    (rounds, Cast("py", "py", "modern", "stdio", "stdio")),
    (rounds, Cast("ts2", "ts", "modern", "http", "http")),
    (rounds, Cast("py", "ts", "modern", "stdio", "http")),
    (rounds, Cast("ts2", "py", "modern", "http", "stdio")),
    (refused, Cast("py", "everything", "legacy", "stdio", "stdio")),
    (refused, Cast("ts1", "everything", "legacy", "sse", "sse")),
    (refused, Cast("ts2", "ts", "modern", "http", "http")),
    (cancelled, Cast("ts1", "everything", "legacy", "stdio", "stdio")),
    (cancelled, Cast("py", "everything", "legacy", "http", "http")),
    (cancelled, Cast("py", "everything", "legacy", "sse", "stdio")),
    (cancelled, Cast("ts2", "py", "modern", "http", "http")),
    (cancelled, Cast("py", "ts", "modern", "stdio", "http")),
    (unwanted, Cast("py", "everything", "legacy", "stdio", "stdio")),
    (unwanted, Cast("ts1", "everything", "legacy", "http", "http")),
    (unwanted, Cast("ts2", "everything", "legacy", "sse", "sse")),
    (connecting, Cast("py", "everything", "legacy", "http", "stdio")),
    (connecting, Cast("ts1", "everything", "legacy", "sse", "sse")),
    (connecting, Cast("ts2", "ts", "modern", "http", "http")),
    (switched, Cast("ts1", "everything", "legacy", "stdio", "stdio")),
    (again, Cast("py", "everything", "legacy", "stdio", "stdio")),
    (again, Cast("ts1", "everything", "legacy", "http", "http")),
    (again, Cast("py", "everything", "legacy", "sse", "sse")),
    (again, Cast("ts2", "py", "modern", "http", "http")),
]
