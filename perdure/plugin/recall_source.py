"""Hands files and conversations to recall."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from perdure.files.legs import Chunk
from perdure.files.options import SESSIONS, SOURCES
from perdure.files.search import Ask, Draft, FileSearch, citation
from perdure.recall import sources
from perdure.recall.sources import Passage
from perdure.store.scope import Audience

if TYPE_CHECKING:
    from perdure.store.vector_index import Vector

TEXT = 400
"""Characters of a passage that are brought up; the agent reads the rest where it stands."""


class RecallSource:
    """Passages that are sure enough to be brought up unasked.

    Of conversations only what users said: what an assistant, a tool or a page once said is no memory of the user
    and is found by explicit search alone.
    """

    def __init__(self, search: FileSearch, limit: int, floor: float) -> None:
        """Bring up to `limit` passages of a score from `floor` on."""
        self._search = search
        self._limit = limit
        self._floor = floor

    def draft(self, query: str, audience: Audience, session: str | None) -> tuple[Draft, Ask] | None:
        """Do what needs no vector; None without an index."""
        begun = self._search.draft(query, audience, SOURCES, self._limit)
        if begun is None:
            return None
        return begun, Ask(query, self._limit, self._floor, skip_session=session)

    def passages(self, draft: tuple[Draft, Ask], vector: tuple[Vector, str] | None) -> Sequence[Passage]:
        """Return the passages, best first."""
        begun, ask = draft
        found = self._search.finish(begun, vector, ask)
        return [_passage(chunk, score) for chunk, score in found if chunk.role in (None, "user")]


def _passage(chunk: Chunk, score: float) -> Passage:
    text = " ".join(chunk.text.split())
    text = text if len(text) <= TEXT else f"{text[: TEXT - 1].rstrip()}…"
    where = citation(chunk.path, chunk.start_line, chunk.end_line)
    if chunk.source == SESSIONS:
        day = "" if chunk.at is None else f"{datetime.fromtimestamp(chunk.at, UTC):%Y-%m-%d}"
        return Passage(where, sources.SESSIONS, f"{chunk.speaker}: {text}" if chunk.speaker else text, day, score)
    above = f"{chunk.path} {chunk.section}".strip()
    return Passage(where, sources.FILES, text, above, score)
