"""HTTP/1.1 in as little code and time as two hundred clients in one process need. Loopback, no TLS, no redirects."""

import asyncio
import json
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

HEAD_BYTES_MAX = 64 * 1024
LINE_BYTES_MAX = 1024 * 1024  # of a chunk or an event; nothing here is nearly as large


class Response:
    def __init__(self, status, headers, chunks):
        self.status, self.headers, self._chunks = status, headers, chunks

    async def body(self):
        return b"".join([chunk async for chunk in self._chunks])

    async def events(self):
        """(event, data) of an SSE stream, without those that carry no data."""
        event, data, rest = "message", [], b""
        async for chunk in self._chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                field, _, value = line.decode().rstrip("\r").partition(":")
                if field == "data":
                    data.append(value.removeprefix(" "))
                elif field == "event":
                    event = value.removeprefix(" ")
                elif not field and not value:
                    if any(data):
                        yield event, "\n".join(data)
                    event, data = "message", []


class Pool:
    """Connections to one origin, shared by everyone: a peer that takes a connection for a client is found out."""

    def __init__(self, url):
        self.origin = urlsplit(url)
        self._idle = []

    @asynccontextmanager
    async def request(self, method, target, headers, message=None):
        body = b"" if message is None else json.dumps(message).encode()
        reader, writer = await self._connection()
        is_reusable = False

        def done():
            nonlocal is_reusable
            is_reusable = True

        try:
            lines = [f"{method} {target} HTTP/1.1", f"host: {self.origin.netloc}", *(f"{k}: {v}" for k, v in headers.items())]
            if message is not None:
                lines += ["content-type: application/json", f"content-length: {len(body)}"]
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
            await writer.drain()
            first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            received = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in rest if line)}
            keeps = received.get("connection", "").lower() != "close"
            yield Response(int(first.split()[1]), received, chunks_of(reader, received, done if keeps else lambda: None))
        finally:
            if is_reusable:
                self._idle.append((reader, writer))
            else:
                writer.close()

    async def _connection(self):
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(self.origin.hostname, self.origin.port, limit=LINE_BYTES_MAX)

    def close(self):
        for _, writer in self._idle:
            writer.close()


async def chunks_of(reader, headers, done):
    """The body piece by piece; `done` is called once all of it was read and the connection can serve again."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readline()).split(b";")[0], 16):
            yield await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
        done()
    elif "content-length" in headers:
        yield await reader.readexactly(int(headers["content-length"]))
        done()
    else:
        while chunk := await reader.read(65536):
            yield chunk
