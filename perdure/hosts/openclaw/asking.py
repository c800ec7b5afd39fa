"""What is asked of OpenClaw, over the pipe by which it asks: an answer of its own model."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Final

from perdure.errors import ModelError
from perdure.hosts.openclaw.server import Answer, Writer
from perdure.llm import Answers

SLACK: Final = 10.0
"""Seconds by which it is waited longer than the host itself lets its model take."""


class Caller:
    """Asks the host. Usable from any thread."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._numbers = itertools.count(1)
        self._waiting: dict[str, Future[Answer]] = {}
        self._lock = threading.Lock()

    def ask(self, method: str, params: Mapping[str, Any], timeout: float) -> Any:
        """Return what the host answers within `timeout` seconds; ModelError if it does not, or refuses."""
        request_id, future = f"p{next(self._numbers)}", Future[Answer]()
        with self._lock:
            self._waiting[request_id] = future
        try:
            self._writer.request(request_id, method, params)
            answer = future.result(timeout)
        except TimeoutError:
            raise ModelError(f"OpenClaw's model did not answer within {timeout:.0f} s") from None
        except OSError:
            raise ModelError("OpenClaw is gone") from None
        finally:
            with self._lock:
                self._waiting.pop(request_id, None)
        if answer.error:
            raise ModelError(f"OpenClaw's model did not answer: {answer.error}")
        return answer.result

    def answered(self, answer: Answer) -> None:
        """Take an answer; one that nobody waits for any more is dropped."""
        with self._lock:
            future = self._waiting.pop(answer.id, None)
        if future is not None:
            future.set_result(answer)

    def own_model(self, agent: str) -> Answers:
        """Return the model of an agent, which OpenClaw asks without tools and without a session."""

        def answers(prompt: str, system: str, *, tokens: int, timeout: float) -> tuple[str, int | None]:
            limits = {"tokens": tokens, "timeoutMs": round(timeout * 1_000)}
            asked = {"agent": agent, "system": system, "prompt": prompt, **limits}
            found = self.ask("complete", asked, timeout + SLACK)
            text = found.get("text") if isinstance(found, dict) else None
            if not isinstance(text, str):
                raise ModelError("OpenClaw's model returned no text")
            took = found.get("tokens")
            return text, took if isinstance(took, int) and took > 0 else None

        return answers
