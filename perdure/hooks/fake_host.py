"""A small real host: it plays a conversation and fires every hook that a turn has."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from perdure.hooks.host import HookRunner
from perdure.hooks.types import Message, Messages, Placement, Recall, TurnContext


@dataclass(frozen=True, slots=True)
class Turn:
    """What happened in one turn.

    Attributes:
        user: what the user said.
        reply: what the agent answered.
        prompt_seen: what the model saw: the recalled blocks and the user's text, blank lines between.
        recalls: what the plugins returned.
        recall_seconds: how long `before_agent_start` took.
        capture_seconds: how long `agent_end` took.
    """

    user: str
    reply: str
    prompt_seen: str
    recalls: tuple[Recall, ...]
    recall_seconds: float
    capture_seconds: float


class FakeHost:
    """A host with a scripted model, for demos, replays and tests.

    Its history holds the messages as they were said, as OpenClaw's does, or, with `keeps_block`, the user's
    message with the recalled block. A block for the system prompt never enters the history.
    """

    def __init__(
        self,
        runner: HookRunner,
        *,
        agent_id: str | None = None,
        session_id: str = "session-1",
        keeps_block: bool = False,
        now: Callable[[], float] | None = None,
    ) -> None:
        """Make a host that has not started.

        Args:
            runner: fires the hooks.
            agent_id: who answers; None for a host without agents.
            session_id: the first conversation.
            keeps_block: whether the recalled block stays in the history.
            now: the time in epoch seconds; None for the machine's, and the plugins use their own clock.
        """
        self._runner = runner
        self._agent_id = agent_id
        self._session_id = session_id
        self._keeps_block = keeps_block
        self._now = now
        self._history: list[Message] = []
        self._turns = 0

    @property
    def messages(self) -> Messages:
        """The history of the current conversation."""
        return tuple(self._history)

    def start(self) -> None:
        """Start the host and its first conversation."""
        self._runner.host_started(self._context())
        self._runner.session_start(self._context())

    def new_session(self, session_id: str) -> None:
        """End the conversation and begin another, with an empty history."""
        self._runner.session_end(self._context())
        self._history.clear()
        self._session_id = session_id
        self._runner.session_start(self._context())

    def stop(self) -> None:
        """End the conversation and stop the host."""
        self._runner.session_end(self._context())
        self._runner.host_stopping(self._context())

    def turn(self, user_text: str, reply: str | Callable[[str], str] = "OK.") -> Turn:
        """Play one turn.

        Args:
            user_text: what the user says.
            reply: what the agent answers, or a function from the text that the model sees to the answer.

        Returns:
            What happened.
        """
        self._turns += 1
        context = self._context(turn_id=f"turn-{self._turns}")
        began = time.perf_counter()
        recalls = self._runner.before_agent_start(user_text, self.messages, context)
        recall_seconds = time.perf_counter() - began

        with_block = _placed(user_text, recalls)
        prompt_seen = _joined([*_blocks(recalls, Placement.SYSTEM), with_block])
        answer = reply if isinstance(reply, str) else reply(prompt_seen)
        self._append("user", with_block if self._keeps_block else user_text)
        self._append("assistant", answer)

        began = time.perf_counter()
        self._runner.agent_end(self.messages, True, context)
        capture_seconds = time.perf_counter() - began
        return Turn(user_text, answer, prompt_seen, recalls, recall_seconds, capture_seconds)

    def _append(self, role: str, text: str) -> None:
        now = time.time() if self._now is None else self._now()
        self._history.append({"role": role, "content": text, "timestamp": round(now * 1000)})

    def _context(self, turn_id: str | None = None) -> TurnContext:
        return TurnContext(
            session_id=self._session_id,
            agent_id=self._agent_id,
            turn_id=turn_id,
            host="fake",
            keeps_block=self._keeps_block,
            now=None if self._now is None else self._now(),
        )


def _placed(user_text: str, recalls: tuple[Recall, ...]) -> str:
    head, tail = _blocks(recalls, Placement.HEAD), _blocks(recalls, Placement.TAIL)
    return _joined([*head, user_text, *tail])


def _blocks(recalls: tuple[Recall, ...], placement: Placement) -> list[str]:
    return [recall.block for recall in recalls if recall.placement is placement and recall.block]


def _joined(parts: list[str]) -> str:
    return "\n\n".join(parts)
