"""Embedders that ask a server, whatever form it understands, and another server of the same model when it fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from perdure.embed.base import Embedder, EmbedderIdentity, Vectors, clean_text, model_input, unit_rows
from perdure.errors import ModelError, SettingsError
from perdure.models.endpoint import Endpoint
from perdure.recall.lane import Breaker
from perdure.secrets.redact import redact
from perdure.text.tokens import estimate_tokens

_PUBLISHED: Final = "published"
"""Stands for the digest of weights that only their publisher has: the name says which they are."""
_MARGIN: Final = 64
"""Tokens behind the last one that a model reads, which are looked at for the rest of a secret: 4,096 characters."""
_NOTHING: Final = "."
"""Is sent for a text without any character to be seen: most servers refuse an empty one."""

FAILURES: Final = 3
REST_SECONDS: Final = 300.0
"""After so many failures in a row an embedder is passed over for so long."""


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model by its published name."""

    name: str
    dims: int  # 0: the server is asked
    max_tokens: int  # longer texts are cut
    query_prefix: str = ""
    document_prefix: str = ""
    shortened: bool = False  # whether the server is to be asked for vectors of `dims`, less than the model has


@dataclass(frozen=True, slots=True)
class Wire:
    """One form of asking for vectors."""

    request: Callable[[RemoteModel, Sequence[str], bool], tuple[str, Mapping[str, Any]]]
    """Returns the path and the body for texts, which are queries or documents."""
    rows: Callable[[Any], Sequence[Sequence[float]]]
    """Returns the vectors of an answer, in the order of the texts; LookupError, TypeError, ValueError: another form."""
    batch: int  # texts in a request at the most
    batch_bytes: int = 100_000  # UTF-8 bytes of all texts in a request at the most; a token has at least one byte
    cuts: bool = True  # whether the server itself cuts what is longer than its model reads
    tasks: tuple[str, str] = ("", "")  # what tells the server that texts are queries, and that they are documents


class RemoteEmbedder:
    """Embeds texts on a server. Safe to use from several threads. Secrets in a text are redacted before it is sent."""

    def __init__(self, model: RemoteModel, wire: Wire, endpoint: Endpoint) -> None:
        """Make an embedder; the server is asked only if the length of the model's vectors is not known."""
        if endpoint.address.key:
            endpoint.address.key.headers()
        self._model = model
        self._wire = wire
        self._endpoint = endpoint
        self._interrupts = 0
        if not model.dims:
            self._model = replace(model, dims=len(self._rows(["dimensions"], query=False)[0]))
        prefixes = wire.tasks[0] + model.query_prefix, wire.tasks[1] + model.document_prefix
        # The same for every server of the same model.
        self.identity = EmbedderIdentity(model.name, _PUBLISHED, self._model.dims, model.max_tokens, "none", *prefixes)

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Embed texts.

        Returns float32 array of shape (len(texts), dims), each row of length one.
        """
        import numpy as np

        before = self._interrupts
        vectors: Vectors = np.empty((len(texts), self.identity.dims), dtype=np.float32)
        done = 0
        for batch in self._batches([self._prepared(text, query=query) for text in texts]):
            if self._interrupts != before:
                raise ModelError(f"model {self._model.name} was interrupted after {done} texts; call it again")
            vectors[done : done + len(batch)] = unit_rows(self._rows(batch, query=query))
            done += len(batch)
        return vectors

    def count_tokens(self, text: str) -> int:
        """Return about how many tokens the text has: the server's tokenizer is out of reach."""
        return estimate_tokens(text)

    def interrupt(self) -> None:
        """Break off running requests; their `embed` raises ModelError at once."""
        self._interrupts += 1
        self._endpoint.interrupt()

    def _prepared(self, text: str, *, query: bool) -> str:
        model = self._model
        # Some servers refuse what is too long. As many bytes as tokens are never too long, in any script.
        # Without secrets before it is cut: half of one may not look like one any more.
        plain = redact(model_input(text, model.max_tokens + _MARGIN)).text
        cut = model_input(plain, model.max_tokens) if self._wire.cuts else _first_bytes(plain, model.max_tokens)
        prefix = model.query_prefix if query else model.document_prefix
        return prefix + (cut.strip() or _NOTHING)

    def _batches(self, texts: Sequence[str]) -> Iterator[Sequence[str]]:
        start = size = 0
        for index, text in enumerate(texts):
            length = len(text.encode())
            if index > start and (index - start == self._wire.batch or size + length > self._wire.batch_bytes):
                yield texts[start:index]
                start, size = index, 0
            size += length
        if texts:
            yield texts[start:]

    def _rows(self, texts: Sequence[str], *, query: bool) -> Sequence[Sequence[float]]:
        path, body = self._wire.request(self._model, texts, query)
        answer = self._endpoint.post(path, body)
        site = self._endpoint.address.site
        try:
            rows = self._wire.rows(answer)
            lengths = {len([float(value) for value in row]) for row in rows}
        except (LookupError, TypeError, ValueError) as error:
            raise ModelError(
                f"{site} answered without vectors ({type(error).__name__}); check that the address is that of the API"
            ) from error
        if len(rows) != len(texts):
            raise ModelError(f"{site} returned {len(rows)} vectors for {len(texts)} texts; use another server")
        if len(lengths) != 1 or self._model.dims not in (0, *lengths) or 0 in lengths:
            raise ModelError(
                f"model {self._model.name} at {site} returned vectors with {sorted(lengths)} dimensions, not "
                f"{self._model.dims or 'all of one length'}; check the model name and embedder_dims"
            )
        return rows


class FailoverEmbedder:
    """Asks embedders of one identity in their order, until one answers."""

    def __init__(self, embedders: Sequence[Embedder], *, now: Callable[[], float] = time.monotonic) -> None:
        """Take the embedders, the preferred one first.

        `embedders`: at least one; `now`: a steady clock, in seconds.
        """
        first = embedders[0].identity
        for other in (embedder.identity for embedder in embedders):
            if other != first:
                raise SettingsError(
                    f"{other.model} ({other.dims} dimensions) cannot replace {first.model} ({first.dims} dimensions): "
                    "their vectors cannot be compared. Name servers of the same model in embedder_fallbacks"
                )
        self.identity = first
        self._embedders = list(embedders)
        self._now = now
        self._breakers = [Breaker(failures=FAILURES, rest=REST_SECONDS) for _ in embedders]
        self._interrupts = 0

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Embed texts; see `Embedder.embed`."""
        before = self._interrupts
        problems: list[ModelError] = []
        for index in self._order():
            try:
                vectors = self._embedders[index].embed(texts, query=query)
            except ModelError as error:
                if self._interrupts != before:
                    raise
                problems.append(error)
                self._breakers[index].note(ok=False, now=self._now())
            else:
                self._breakers[index].note(ok=True, now=self._now())
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
        now = self._now()
        resting = [breaker.open(now) for breaker in self._breakers]
        return [index for index, rests in enumerate(resting) if not rests or all(resting)]


def _first_bytes(text: str, limit: int) -> str:
    return clean_text(text[:limit]).encode()[:limit].decode(errors="ignore")
