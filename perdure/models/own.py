"""A host's own model, or a program's, on its user's plan, within the budget of a day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from perdure.errors import ModelError
from perdure.librarian.operations import schema
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


@dataclass(frozen=True, slots=True)
class Program:
    """Asks a `perdure.llm.LanguageModel`, or a chat model of LangChain."""

    model: Any

    def __call__(self, prompt: str, system: str, *, tokens: int, timeout: float) -> tuple[str, int | None]:
        """Return the answer, and nothing of how many tokens it took; ModelError if the model failed.

        How long it may take, and how much it may say, is the program's to decide.
        """
        try:
            if hasattr(self.model, "invoke"):
                return str(self.model.invoke([("system", system), ("human", prompt)]).text), None
            text = self.model(system, prompt, schema())
        except Exception as error:
            raise ModelError(f"the program's language model failed: {type(error).__name__}") from error
        if not isinstance(text, str):
            raise ModelError(f"the program's language model returned {type(text).__name__}, not a string")
        return text, None
