"""What a language model is asked for. Each question names its purpose, so this is all that is ever asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

Tier = Literal["nano", "default"]
"""How large a model a task wants."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """A kind of question."""

    name: str  # as in docs/providers.md, which says what such a question carries
    tier: Tier
    answer_tokens: int = 500  # at most


WORDINGS: Final = Purpose("wordings", "nano", 300)
OWN: Final = " (own model "
"""Begins the mark of a program's own model behind the name of its host: no other model reads what is said there."""
LIBRARIAN: Final = Purpose("librarian", "default", 4_000)
PURPOSES: Final = (WORDINGS, LIBRARIAN)


class Asker(Protocol):
    """A language model, as `perdure.models.llm.Llm` is one. It takes the secrets out of what it is asked."""

    def ask_json(self, prompt: str, *, purpose: Purpose, system: str = "", timeout: float | None = None) -> Any | None:
        """Return the JSON of the answer, or None if there is none; ModelError if it did not answer as it should."""
        ...


class Answers(Protocol):
    """A host's own model, as the host lets it be asked: once, without tools."""

    def __call__(self, prompt: str, system: str, *, tokens: int, timeout: float) -> tuple[str, int | None]:
        """Return the answer, and how many tokens it took if that is known; ModelError if there is none.

        `tokens`: of the answer, at the most. `timeout`: seconds.
        """
        ...


Lent = Callable[[str], Answers]
"""The model that a host lends: of the agent with this id."""


class LanguageModel(Protocol):
    """A language model that a program has: any function of this form. Chat models of LangChain serve as they are."""

    def __call__(self, system: str, prompt: str, schema: Mapping[str, Any], /) -> str:
        """Return the answer to a prompt: JSON as the schema wants it, whatever stands around it.

        It is called in another thread, and ends by itself if the model takes too long; what it raises is a failure.
        """
        ...
