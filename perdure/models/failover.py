"""Several servers of the same model: when one fails the next is asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from perdure.embed.base import Embedder, EmbedderIdentity
from perdure.errors import ModelError, SettingsError

if TYPE_CHECKING:
    from perdure.embed.base import Vectors

FAILURES: Final = 3
REST_SECONDS: Final = 300.0
"""After so many failures in a row an embedder is passed over for so long."""


class FailoverEmbedder:
    """Asks embedders of one identity in their order, until one answers."""

    def __init__(self, embedders: Sequence[Embedder], *, now: Callable[[], float] = time.monotonic) -> None:
        """Take the embedders, the preferred one first.

        Args:
            embedders: at least one.
            now: a steady clock, in seconds.

        Raises:
            SettingsError: their vectors cannot be compared, so none may stand in for another.
        """
        first = embedders[0].identity
        for other in (embedder.identity for embedder in embedders):
            if other != first:
                raise SettingsError(
                    f"{other.model} ({other.dims} numbers) cannot stand in for {first.model} ({first.dims} numbers): "
                    "their vectors cannot be compared. Name servers of the same model in embedder_fallbacks"
                )
        self._embedders = list(embedders)
        self._now = now
        self._failures = [0] * len(self._embedders)
        self._until = [0.0] * len(self._embedders)
        self._interrupts = 0

    @property
    def identity(self) -> EmbedderIdentity:
        """The vector space that all of them write to."""
        return self._embedders[0].identity

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Embed texts; see `Embedder.embed`.

        Raises:
            ModelError: none of them could, or the call was interrupted.
        """
        before = self._interrupts
        problems: list[ModelError] = []
        for index in self._order():
            try:
                vectors = self._embedders[index].embed(texts, query=query)
            except ModelError as error:
                if self._interrupts != before:
                    raise
                problems.append(error)
                self._note(index, ok=False)
            else:
                self._note(index, ok=True)
                return vectors
        raise ModelError("; ".join(str(problem) for problem in problems)) from problems[0]

    def count_tokens(self, text: str) -> int:
        """Return how many tokens the preferred one finds in the text."""
        return self._embedders[0].count_tokens(text)

    def interrupt(self) -> None:
        """Make running calls end soon."""
        self._interrupts += 1
        for embedder in self._embedders:
            embedder.interrupt()

    def _order(self) -> list[int]:
        """Return those that do not rest; all of them if all do."""
        everyone = range(len(self._embedders))
        return [index for index in everyone if self._until[index] <= self._now()] or list(everyone)

    def _note(self, index: int, *, ok: bool) -> None:
        self._failures[index] = 0 if ok else self._failures[index] + 1
        if self._failures[index] >= FAILURES:
            self._failures[index] = 0
            self._until[index] = self._now() + REST_SECONDS
