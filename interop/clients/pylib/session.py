"""The SDK's client together with the answers it gives when the server asks: always the same ones."""

import anyio
import mcp_types as types
from mcp import Client
from mcp.shared.exceptions import MCPError

from .journal import PATIENCE_SECONDS


def plain(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def fitting(schema):
    if schema.get("type") == "array":
        return [fitting(schema["items"])]
    options = schema.get("enum") or [o["const"] for o in schema.get("oneOf") or schema.get("anyOf") or []]
    return options[0] if options else {"boolean": True, "integer": 7, "number": 7}.get(schema.get("type"), "Ada")


class Session:
    """One client with everything that was asked of it or told to it by the server."""

    def __init__(self, journal, transport, era):
        self.journal, self.era = journal, era
        self.asked, self.logged, self.updated = [], [], []
        self.begin = {"asked": 0, "received": 0}  # where what is observed of one server begins
        self.unsolicited = 0  # how many servers behind the peer speak up by themselves
        self._form, self._filled_in = {}, anyio.Event()
        self.client = Client(
            journal.tapped(transport),
            mode="legacy" if era == "legacy" else "auto",
            client_info=types.Implementation(name="interop-py", version="1.0.0"),
            read_timeout_seconds=PATIENCE_SECONDS,
            sampling_callback=self._sample,
            elicitation_callback=self._elicit,
            list_roots_callback=self._roots,
            logging_callback=self._log,
            message_handler=self._notice,
        )

    async def call(self, call, **options):
        return plain(await self.client.call_tool(call["name"], call["arguments"], **options))

    async def refusal(self, awaitable):
        """The server's refusal, as an error or in a result. An error of the SDK's own making, a timeout say, is none."""
        try:
            result = await awaitable
        except MCPError as refused:
            error = plain(refused.error)
            if not any((m.get("error") or {}).get("code") == error["code"] for m in self.journal.received):
                raise
            return {"error": error}
        if not isinstance(result, dict) or not result.get("isError"):
            raise RuntimeError("not refused")
        return {"result": result}

    async def _sample(self, _context, params):
        self.asked.append({"method": "sampling/createMessage", "params": plain(params)})
        text = f"an answer to: {params.messages[-1].content.text}"
        content = types.TextContent(type="text", text=text)
        return types.CreateMessageResult(role="assistant", model="interop-model", stop_reason="endTurn", content=content)

    def fill_in(self, form):
        """What forms are answered with; open ones too. With none they stay open, and with an empty one it is as ever."""
        self._form = form
        self._filled_in.set()
        self._filled_in = anyio.Event()

    async def _elicit(self, _context, params):
        self.asked.append({"method": "elicitation/create", "params": plain(params)})
        while self._form is None:
            await self._filled_in.wait()
        if self._form:
            return types.ElicitResult(**self._form)
        if "decline" in params.message:
            return types.ElicitResult(action="decline")
        schema = params.requested_schema
        wanted = schema.get("required") or list(schema["properties"])
        return types.ElicitResult(action="accept", content={n: fitting(schema["properties"][n]) for n in wanted})

    async def _roots(self, _context):
        self.asked.append({"method": "roots/list"})
        roots = [("file:///interop/project", "project"), ("file:///interop/b%20c", "with space")]
        return types.ListRootsResult(roots=[types.Root(uri=uri, name=name) for uri, name in roots])

    async def _log(self, params):
        self.logged.append(plain(params))
        self.journal.poke()

    async def _notice(self, message):
        if isinstance(message, types.ResourceUpdatedNotification):
            self.updated.append(plain(message.params))
            self.journal.poke()
