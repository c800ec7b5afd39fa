"""A small real host: it plays a conversation and fires every hook that a turn has."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

from perdure.hooks.host import HookRunner
from perdure.hooks.types import Message, Messages, Placement, Recall, TurnContext


@dataclass(frozen=True, slots=True)
class Turn:
    """What happened in one turn."""

    user: str
    reply: str
    prompt_seen: str  # what the model saw: the recalled blocks and the user's text, blank lines between
    recalls: tuple[Recall, ...]  # what the plugins returned
    recall_seconds: float  # duration of `before_agent_start`
    capture_seconds: float  # duration of `agent_end`


@dataclass(eq=False)
class FakeHost:
    """A host with a scripted model, for demos, replays and tests.

    Its history holds the messages as they were said, as OpenClaw's does, or, with `keeps_block`, the user's message
    with the recalled block. A block for the system prompt never enters the history.
    """

    runner: HookRunner
    _: KW_ONLY
    agent_id: str | None = None  # who answers; None for a host without agents
    session_id: str = "session-1"  # of the current conversation
    keeps_block: bool = False
    takes_opening: bool = False
    now: Callable[[], float] | None = None  # epoch seconds; None: the machine's time, and plugins use their own
    _history: list[Message] = field(default_factory=list, init=False)
    _turns: int = field(default=0, init=False)

    @property
    def messages(self) -> Messages:
        """The history of the current conversation."""
        return tuple(self._history)

    def start(self) -> None:
        """Start the host and its first conversation."""
        self.runner.host_started(self._context())
        self.runner.session_start(self._context())

    def new_session(self, session_id: str) -> None:
        """End the conversation and begin another, with an empty history."""
        self.runner.session_end(self._context())
        self._history.clear()
        self.session_id = session_id
        self.runner.session_start(self._context())

    def stop(self) -> None:
        """End the conversation and stop the host."""
        self.runner.session_end(self._context())
        self.runner.host_stopping(self._context())

    def turn(self, user_text: str, reply: str | Callable[[str], str] = "OK.") -> Turn:
        """Play one turn; a `reply` that is a function gets the text that the model sees."""
        self._turns += 1
        context = self._context(turn_id=f"turn-{self._turns}")
        began = time.perf_counter()
        recalls = self.runner.before_agent_start(user_text, self.messages, context)
        recall_seconds = time.perf_counter() - began

        with_block = _placed(user_text, recalls)
        prompt_seen = _joined([*(recall.for_system for recall in recalls if recall.for_system), with_block])
        answer = reply if isinstance(reply, str) else reply(prompt_seen)
        self._append("user", with_block if self.keeps_block else user_text)
        self._append("assistant", answer)

        began = time.perf_counter()
        self.runner.agent_end(self.messages, True, context)
        capture_seconds = time.perf_counter() - began
        return Turn(user_text, answer, prompt_seen, recalls, recall_seconds, capture_seconds)

    def _append(self, role: str, text: str) -> None:
        now = time.time() if self.now is None else self.now()
        self._history.append({"role": role, "content": text, "timestamp": round(now * 1000)})

    def _context(self, turn_id: str | None = None) -> TurnContext:
        now = None if self.now is None else self.now()
        return TurnContext(
            self.session_id, self.agent_id, turn_id=turn_id, host="fake", keeps_block=self.keeps_block,
            takes_opening=self.takes_opening, now=now,
        )  # fmt: skip


def _placed(user_text: str, recalls: tuple[Recall, ...]) -> str:
    head, tail = _blocks(recalls, Placement.HEAD), _blocks(recalls, Placement.TAIL)
    return _joined([*head, user_text, *tail])


def _blocks(recalls: tuple[Recall, ...], placement: Placement) -> list[str]:
    return [recall.block for recall in recalls if recall.placement is placement and recall.block]


def _joined(parts: list[str]) -> str:
    return "\n\n".join(parts)
