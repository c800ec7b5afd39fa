"""A language model behind an OpenAI-compatible chat endpoint, with a budget of tokens for each day.

Source of the form: https://platform.openai.com/docs/api-reference/chat/create.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from perdure.errors import EndpointError, ModelError
from perdure.llm import Purpose, Tier
from perdure.models.endpoint import Address, Endpoint, Key
from perdure.regex import lazy
from perdure.secrets.redact import redact
from perdure.store.llm import TokenMeter
from perdure.text.tokens import estimate_tokens

_MESSAGE_TOKENS: Final = 8
"""What each message costs beside its text, rounded up."""
_OPENAI: Final = "api.openai.com"
_THOUGHTS: Final = lazy(r"<think>.*?</think>", re.DOTALL)
_TRIES: Final = 20
"""Brackets at which JSON may begin: an answer of nothing but brackets must not take quadratic time."""
_DECODER: Final = json.JSONDecoder()


def endpoint(url: str, key_variable: str | None, timeout: float) -> Endpoint:
    """Return the server at an address; its key stands in an environment variable. `timeout` is in seconds.

    Raises SettingsError if the address cannot be used.
    """
    return Endpoint(Address(url, Key(key_variable) if key_variable else None), timeout)


@dataclass(eq=False)
class Llm:
    """Asks a language model. Usable from any thread. Secrets are redacted before anything is sent."""

    endpoint: Endpoint
    models: Mapping[Tier, str]  # the model's name for each tier
    meter: TokenMeter  # counts what is used

    def ask(self, prompt: str, *, purpose: Purpose, system: str = "", timeout: float | None = None) -> str:
        """Return what the model answers.

        `timeout`: seconds; None: that of the endpoint.
        """
        roles = {"system": redact(system).text, "user": redact(prompt).text}
        messages = [{"role": role, "content": text} for role, text in roles.items() if text]
        asked = sum(estimate_tokens(each["content"]) + _MESSAGE_TOKENS for each in messages)
        tier, reserved = purpose.tier, asked + purpose.answer_tokens
        day = self.meter.reserve(tier, reserved)
        used = asked
        try:
            answer = self.endpoint.post("/chat/completions", self._body(purpose, messages), timeout=timeout)
        except ModelError as error:
            # Only who may have worked on it may charge for it.
            used = asked if isinstance(error, EndpointError) and error.sent else 0
            raise
        else:
            text = _content(answer)
            used = _usage(answer) or asked + estimate_tokens(text)
        finally:
            self.meter.settle(day, tier, reserved, used)
        return text

    def ask_json(self, prompt: str, *, purpose: Purpose, system: str = "", timeout: float | None = None) -> Any | None:
        """Return the first JSON object or array in the answer, or None if there is none; else as `ask`."""
        return find_json(self.ask(prompt, purpose=purpose, system=system, timeout=timeout))

    def interrupt(self) -> None:
        """Break off every question that runs now: it raises ModelError at once."""
        self.endpoint.interrupt()

    def _body(self, purpose: Purpose, messages: list[dict[str, str]]) -> dict[str, Any]:
        # OpenAI's newer models refuse the older name, most other servers know no other.
        newer = self.endpoint.address.parts.hostname == _OPENAI
        limit = "max_completion_tokens" if newer else "max_tokens"
        return {"model": self.models[purpose.tier], "messages": messages, limit: purpose.answer_tokens}


def find_json(text: str) -> Any | None:
    """Return the first JSON object or array in a text, whatever stands around it; None if there is none."""
    text = _THOUGHTS.sub("", text)
    for match in itertools.islice(re.finditer(r"[{\[]", text), _TRIES):
        try:
            return _DECODER.raw_decode(text, match.start())[0]
        except (ValueError, RecursionError):
            continue
    return None


def _content(answer: Any) -> str:
    try:
        content = answer["choices"][0]["message"]["content"]
    except (LookupError, TypeError) as error:
        raise ModelError("the language model's server answered without a message; check llm_endpoint") from error
    return content if isinstance(content, str) else ""


def _usage(answer: Any) -> int:
    usage = answer.get("usage")
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return total if isinstance(total, int) and total > 0 else 0
