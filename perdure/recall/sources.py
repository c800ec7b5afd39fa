"""What recall is handed beside facts: passages of memory files and turns of past conversations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from perdure.store.scope import Audience

if TYPE_CHECKING:
    from perdure.index.vector_index import Vector

FILES = "files"
SESSIONS = "sessions"


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that may be brought up unasked.

    Attributes:
        id: where it stands: "memory/2026-02-24.md#L3-L9".
        leg: "files" or "sessions".
        text: what it says, with who said it.
        about: the day it is of, or the headings above it.
        score: 0 to 1, on one scale for all queries.
    """

    id: str
    leg: str
    text: str
    about: str
    score: float


class Source(Protocol):
    """Finds passages in two halves, so that the first runs beside the embedding of the query."""

    def draft(self, query: str, audience: Audience, session: str | None) -> Any:
        """Do what needs no vector. Whatever is returned goes to `passages`; None: there is nothing to find.

        Args:
            query: what is asked.
            audience: who asks.
            session: the conversation that is going on: what was said in it is known.
        """
        ...

    def passages(self, draft: Any, vector: tuple[Vector, str] | None) -> Sequence[Passage]:
        """Return passages that are sure enough to be brought up unasked, best first.

        Args:
            draft: what the other half returned.
            vector: of the query, with the name of its space; None: there is no model.
        """
        ...
