"""A host's own model, on its user's plan, within the budget of a day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from perdure.llm import Answers, Purpose
from perdure.models.llm import find_json
from perdure.secrets.redact import redact
from perdure.store.llm import TokenMeter
from perdure.text.tokens import estimate_tokens

TIMEOUT: Final = 180.0
"""Seconds that an answer may take."""


@dataclass(frozen=True, slots=True)
class OwnModel:
    """Asks a host's model. Secrets are redacted before anything is handed over."""

    answers: Answers
    meter: TokenMeter

    def ask_json(self, prompt: str, *, purpose: Purpose, system: str = "", timeout: float | None = None) -> Any | None:
        """Return the JSON of the answer, or None if there is none; ModelError if it did not answer as it should."""
        prompt, system = redact(prompt).text, redact(system).text
        asked = estimate_tokens(prompt) + estimate_tokens(system)
        reserved = asked + purpose.answer_tokens
        day = self.meter.reserve(purpose.tier, reserved)
        used = asked
        try:
            text, took = self.answers(prompt, system, tokens=purpose.answer_tokens, timeout=timeout or TIMEOUT)
            used = took or asked + estimate_tokens(text)
        finally:
            self.meter.settle(day, purpose.tier, reserved, used)
        return find_json(text)
