"""What comes through stdin: a line that the protocol's package cannot read is mended, or answered under its id."""

from __future__ import annotations

import json
from contextlib import suppress

import mcp_types as types
from anyio.abc import ObjectReceiveStream
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from perdure.regex import lazy
from perdure.text.clean import clean

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
            told = types.ErrorData(code=code, message="this message cannot be read; send one JSON-RPC request a line")
            answer = types.JSONRPCError(jsonrpc="2.0", id=json.loads(clean(found[1])), error=told)
            await self._write.send(SessionMessage(answer))
