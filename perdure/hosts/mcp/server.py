"""The MCP server. It answers the handshake at once; the store is opened with the first request that needs it."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from anyio.abc import ObjectReceiveStream
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from perdure.errors import InputError, NotFoundError, PerdureError
from perdure.hooks.types import Consent
from perdure.hosts.mcp.client import INSTRUCTIONS, McpClient
from perdure.regex import lazy
from perdure.text.clean import clean
from perdure.text.lexicon import table

_BOM = "\ufeff"
_ID = lazy(r'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)')
Item = SessionMessage | Exception


class Mended(ObjectReceiveStream[Item]):
    """The messages of a client. The package drops what it cannot read, and its sender would wait for ever."""

    def __init__(self, read: ReadStream[Item], write: WriteStream[SessionMessage]) -> None:
        """Wrap both streams of a connection."""
        self._read, self._write = read, write

    async def receive(self) -> Item:
        """Return the next message."""
        item = await self._read.receive()
        if not isinstance(item, ValidationError):
            return item
        # What is JSON and no message comes as what it holds.
        sent = item.errors(include_url=False)[-1]["input"]
        line = sent.removeprefix(_BOM) if isinstance(sent, str) else json.dumps(sent)
        try:
            # Half a surrogate pair is written as an escape: it is one sign only once it is read.
            plain = clean(json.dumps(json.loads(line), ensure_ascii=False, allow_nan=False))
            return SessionMessage(types.jsonrpc_message_adapter.validate_json(plain, by_name=False))
        except (ValueError, RecursionError) as error:
            await self._refuse(line, error)
            return item

    async def aclose(self) -> None:
        """Close what is wrapped."""
        await self._read.aclose()

    async def _refuse(self, line: str, error: Exception) -> None:
        found = _ID.search(line)
        code = types.INVALID_REQUEST if isinstance(error, ValidationError) else types.PARSE_ERROR
        if found is None:
            return
        with suppress(ValueError):
            told = types.ErrorData(code=code, message="this message cannot be read; send one JSON-RPC request per line")
            answer = types.JSONRPCError(jsonrpc="2.0", id=json.loads(clean(found[1])), error=told)
            await self._write.send(SessionMessage(answer))


if TYPE_CHECKING:
    from perdure.hosts.mcp.desk import Desk
    from perdure.hosts.mcp.remote import RemoteDesk

DECLINED: str = table("hosts/mcp", "texts")["declined"]
PROMPT = types.Prompt(
    name="recall", title="Ask with memory", description="A question, together with the memories about it.",
    arguments=[types.PromptArgument(name="question", description="What you want to ask.", required=True)],
)  # fmt: skip
FACT = types.ResourceTemplate(
    name="memory", description="One memory, by its id or an id prefix.",
    uri_template="perdure://facts/{id}", mime_type="application/json",
)  # fmt: skip
FILE = types.ResourceTemplate(
    name="memory file", description="MEMORY.md or a file in memory/.",
    uri_template="perdure://files/{+path}", mime_type="text/markdown",
)  # fmt: skip
PATIENCE = 60.0
"""Seconds for an answer. None in time means no."""
OPEN = 20
"""Questions without an answer that are remembered; of more the oldest are forgotten, which means no."""
KEY = "confirm"
Result = TypeVar("Result")
Page = types.PaginatedRequestParams | None


@dataclass(frozen=True, slots=True)
class Question:
    """What the user is asked."""

    tool: str  # what is called if they accept
    confirm: Mapping[str, Any]  # the question, and the arguments of that call; see `Desk.call`
    until: float  # the latest moment for an answer, on the monotonic clock

    def request(self) -> types.ElicitRequest:
        """Return it as the protocol has it: nothing to fill in, only to accept."""
        schema = {"type": "object", "properties": {}}
        params = types.ElicitRequestFormParams(message=self.confirm["question"], requested_schema=schema)
        return types.ElicitRequest(params=params)


class Questions:
    """The questions to one client. Nothing but an acceptance in time means yes."""

    def __init__(self, patience: float = PATIENCE) -> None:
        """Wait so many seconds for each answer."""
        self._patience = patience
        self._open: dict[str, Question] = {}

    def possible(self, session: ServerSession) -> bool:
        """Return whether the client has declared that it can put a question to its user."""
        able = session.client_capabilities.elicitation if session.client_capabilities else None
        # Before there were two kinds, an empty capability meant this one.
        form = able is not None and (able.form is not None or able.url is None)
        return form and (session.can_send_request or _is_modern(session))

    def question(self, tool: str, confirm: Mapping[str, Any]) -> Question:
        """Return a question that begins to wait now."""
        return Question(tool, confirm, time.monotonic() + self._patience)

    async def ask(self, session: ServerSession, question: Question) -> types.InputRequiredResult | bool:
        """Return whether the user accepts; or, for a client that calls again with the answer, what it is to be told."""
        if _is_modern(session):
            return self._told(question)
        try:
            answer = await session.send_request(
                question.request(), types.ElicitResult, request_read_timeout_seconds=self._patience
            )
        except (MCPError, ValueError):
            # No answer in time, an error, or something that is no answer.
            return False
        return answer.action == "accept"

    def accepted(self, state: str, responses: types.InputResponses | None) -> Question | None:
        """Return the question that a client has now brought an acceptance for; None if it has not, or too late.

        `state`: names the question; each is answered once.
        """
        question = self._open.pop(state, None)
        answer = (responses or {}).get(KEY)
        if question is None or time.monotonic() > question.until or not isinstance(answer, types.ElicitResult):
            return None
        return question if answer.action == "accept" else None

    def _told(self, question: Question) -> types.InputRequiredResult:
        while len(self._open) >= OPEN:
            del self._open[next(iter(self._open))]
        state = secrets.token_urlsafe()
        self._open[state] = question
        return types.InputRequiredResult(input_requests={KEY: question.request()}, request_state=state)


def _is_modern(session: ServerSession) -> bool:
    # Since 2026-07-28 a server asks nothing by itself: it answers that it needs something, and is called again.
    return session.protocol_version in MODERN_PROTOCOL_VERSIONS


class MemoryServer:
    """The handlers of the protocol over a desk."""

    def __init__(self, make_desk: Callable[[], Desk | RemoteDesk], *, patience: float = PATIENCE) -> None:
        """Prepare; nothing is opened yet.

        `make_desk` is called in a thread, when a request first needs the desk; `patience`: seconds that the user has
        for an answer.
        """
        self._make = make_desk
        self._questions = Questions(patience)
        self._lock = threading.Lock()
        self._made: Desk | RemoteDesk | None = None
        self._opening: asyncio.Task[None] | None = None

    def server(self) -> Server[Any]:
        """Return the server of the protocol."""
        return Server(
            "perdure", version=version("perdure"), title="Perdure memory", instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools, on_call_tool=self.call_tool,
            on_list_resources=self.list_resources, on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource, on_list_prompts=self.list_prompts, on_get_prompt=self.get_prompt,
        )  # fmt: skip

    async def list_tools(self, context: Any, params: Page) -> types.ListToolsResult:
        """Return the tools, and begin to open the store: the next request will need it."""
        tools = await asyncio.to_thread(_offered)
        self._opening = self._opening or asyncio.create_task(self._warm())
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Call a tool. What goes wrong is told to the model, which can do something about it."""
        try:
            if params.request_state is not None:
                accepted = self._questions.accepted(params.request_state, params.input_responses)
                return await self._done(accepted) if accepted else _declined()
            return await self._called(context.session, params.name, params.arguments or {})
        except PerdureError as error:
            return _result(f"Memory: {error}.", {"error": type(error).__name__}, refused=True)

    async def _called(
        self, session: ServerSession, name: str, values: Mapping[str, Any]
    ) -> types.CallToolResult | types.InputRequiredResult:
        consent = Consent.UNASKED if self._questions.possible(session) else Consent.UNAVAILABLE
        result = await self._ask(lambda desk: desk.call(name, values, consent=consent))
        if "confirm" not in result.details:
            return _result(result.text, result.details, result.refused)
        question = self._questions.question(name, result.details["confirm"])
        answer = await self._questions.ask(session, question)
        if isinstance(answer, types.InputRequiredResult):
            return answer
        return await self._done(question) if answer else _declined()

    async def _done(self, question: Question) -> types.CallToolResult:
        arguments = question.confirm["arguments"]
        result = await self._ask(lambda desk: desk.call(question.tool, arguments, consent=Consent.GIVEN))
        return _result(result.text, result.details, result.refused)

    async def list_resources(self, context: Any, params: Page) -> types.ListResourcesResult:
        """Return the newest memories as one resource, and each memory file."""
        files = await self._asked(lambda desk: desk.files())
        newest = types.Resource(
            name="memories", uri="perdure://facts", description="The newest memories.", mime_type="application/json"
        )
        listed = [types.Resource(name=path, uri=uri, mime_type="text/markdown") for path, uri in files.items()]
        return types.ListResourcesResult(resources=[newest, *listed])

    async def list_templates(self, context: Any, params: Page) -> types.ListResourceTemplatesResult:
        """Return how single memories and files are named."""
        return types.ListResourceTemplatesResult(resource_templates=[FACT, FILE])

    async def read_resource(self, context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Return a resource."""
        mime_type, text = await self._asked(lambda desk: desk.read(params.uri))
        contents = types.TextResourceContents(uri=params.uri, mime_type=mime_type, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(self, context: Any, params: Page) -> types.ListPromptsResult:
        """Return the one prompt."""
        return types.ListPromptsResult(prompts=[PROMPT])

    async def get_prompt(self, context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """Return a question with what memory holds on it."""
        question = (params.arguments or {}).get("question", "")
        if params.name != PROMPT.name or not question:
            raise MCPError(types.INVALID_PARAMS, "the only prompt is `recall`; it requires the argument `question`")
        text = await self._asked(lambda desk: desk.recalled(question))
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(messages=[message])

    async def run(self) -> None:
        """Serve until stdin ends."""
        server = self.server()
        try:
            async with stdio_server() as (read, write):
                await server.run(Mended(read, write), write, server.create_initialization_options())
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the store, if it was opened."""
        if self._opening is not None:
            await self._opening
        if self._made is not None:
            await asyncio.to_thread(self._made.close)

    async def _warm(self) -> None:
        # The request that needs the store says what is wrong with it.
        with suppress(PerdureError):
            await self._ask(lambda desk: desk.memory())

    def _desk(self) -> Desk | RemoteDesk:
        with self._lock:
            self._made = self._made or self._make()
            return self._made

    async def _ask(self, work: Callable[[Desk | RemoteDesk], Result]) -> Result:
        return await asyncio.to_thread(lambda: work(self._desk()))

    async def _asked(self, work: Callable[[Desk | RemoteDesk], Result]) -> Result:
        """Ask the desk, with an error of the protocol for what goes wrong."""
        try:
            return await self._ask(work)
        except (NotFoundError, InputError) as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        except PerdureError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error


def _offered() -> list[types.Tool]:
    # What brings a part of perdure with it is imported by whoever needs it: the handshake need not wait for that.
    from perdure.hosts.mcp.tools import TOOLS

    return [types.Tool.model_validate(each.wire()) for each in TOOLS]


def _result(text: str, details: Mapping[str, Any], refused: bool) -> types.CallToolResult:
    # Some clients show their model the values alone.
    said = {} if details.keys() & {"memories", "results"} else {"text": text}
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content={**details, **said}, is_error=refused
    )


def _declined() -> types.CallToolResult:
    return _result(DECLINED, {"error": "declined"}, refused=True)


def serve(home: Path | None, client: McpClient) -> None:
    """Serve over stdin and stdout until stdin ends; without `home` memories are in the usual data folder."""

    def desk() -> RemoteDesk:
        from perdure.hosts.mcp.remote import RemoteDesk

        return RemoteDesk(home, client)

    asyncio.run(MemoryServer(desk).run())
