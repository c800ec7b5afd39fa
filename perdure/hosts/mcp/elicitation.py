"""Asking the user by way of their client, before something that they said is replaced or forgotten."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

PATIENCE = 60.0
"""Seconds for an answer. None in time means no."""
OPEN = 20
"""Questions without an answer that are remembered; of more the oldest are forgotten, which means no."""
KEY = "confirm"


@dataclass(frozen=True, slots=True)
class Question:
    """What the user is asked.

    Attributes:
        tool: what is called if they accept.
        confirm: the question, and the arguments of that call; see `Desk.call`.
        until: the latest moment for an answer, on the monotonic clock.
    """

    tool: str
    confirm: Mapping[str, Any]
    until: float

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

        Args:
            state: names the question; each is answered once.
            responses: what the client brings.
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
