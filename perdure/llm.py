"""What a language model is asked for. Each question names its purpose, so this is all that is ever asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

Tier = Literal["nano", "default", "heavy"]
"""How large a model a task wants."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """A kind of question.

    Attributes:
        name: as docs/providers.md has it, with what such a question carries.
        tier: how large a model it wants.
        answer_tokens: of the answer at the most.
    """

    name: str
    tier: Tier
    answer_tokens: int = 500


WORDINGS: Final = Purpose("wordings", "nano", 300)
DECISIONS: Final = Purpose("decisions", "nano")
CATEGORIES: Final = Purpose("categories", "nano")
MERGES: Final = Purpose("merges", "default")
PATTERNS: Final = Purpose("patterns", "heavy")
PURPOSES: Final = (WORDINGS, DECISIONS, CATEGORIES, MERGES, PATTERNS)


class Asker(Protocol):
    """A language model, as `perdure.models.llm.Llm` is one. It takes the secrets out of what it is asked."""

    def ask_json(self, prompt: str, *, purpose: Purpose, system: str = "", timeout: float | None = None) -> Any | None:
        """Return the JSON of the answer, or None if there is none.

        Raises:
            ModelError: it did not answer as it should.
        """
        ...
