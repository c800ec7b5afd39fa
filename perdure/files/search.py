"""Searching files and conversations. Every answer says in which way it was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from heapq import nsmallest
from itertools import islice
from typing import Any

from perdure.clock import Clock
from perdure.embed.base import Embedder, Vector
from perdure.errors import InputError, ModelError, StoreCorruptError, StoreError
from perdure.files.index import FileIndex, Generation
from perdure.files.options import MEMORY, SESSIONS, SOURCES, source_of
from perdure.files.retrievers import Chunk, ChunkVectors, Reader, Words, by_words, chunks_of, neighbours, passages
from perdure.files.roots import Root, scan
from perdure.ranking.calibration import Scale
from perdure.ranking.passages import mmr, score, temporal_decay
from perdure.store.forgotten import Hush
from perdure.store.scope import Audience
from perdure.text.normalise import fold, match_terms
from perdure.text.timestamps import day_of
from perdure.text.when import periods

HYBRID, KEYWORDS, SUBSTRING, DISABLED = "hybrid", "keyword", "substring", "disabled"
"""The rungs of the ladder, best first."""
MAX_RESULTS = 6
MIN_SCORE = 0.35
MOST_RESULTS = 100
MAX_QUERY = 2_000
SNIPPET = 700
DAMAGED = "the index is damaged; while it is being rebuilt, the files are searched directly"
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Result:
    """A passage of a file or a turn of a conversation."""

    path: str  # the file, as `read_memory` takes it; that of a conversation begins with "sessions/" and only names it
    # `start_line`, `end_line`: where in it, from 1.
    start_line: int
    end_line: int
    score: float  # 0 to 1, on one scale for all queries; a dated file's falls with its age
    snippet: str  # its text, cut to 700 characters
    source: str  # "memory" or "sessions"
    section: str = ""  # the headings above it
    citation: str | None = None  # `path#L1-L5`; None where citations are not shown
    # `session`, `speaker`, `role`, `at`: of a turn; `at` in epoch seconds.
    session: str | None = None
    speaker: str | None = None
    role: str | None = None
    at: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values, under the names that OpenClaw's tool has."""
        named = {"start_line": "startLine", "end_line": "endLine"}
        return {named.get(key, key): value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a search, and how it was obtained."""

    results: tuple[Result, ...]  # best first
    backend: str  # "hybrid", "keyword", "substring" or "disabled"
    provider: str = "none"  # the embedding model; "none" without one
    reason: str | None = None  # why the search was degraded or the index stale; None if neither
    dirty: int = 0  # changed files not in the index yet

    @property
    def disabled(self) -> bool:
        """Whether nothing could be searched."""
        return self.backend == DISABLED

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        found = {"results": [result.to_dict() for result in self.results]}
        state = {"backend": self.backend, "provider": self.provider, "dirty": self.dirty}
        why = {} if self.reason is None else {"reason": self.reason}
        return {**found, **state, **why, **({"disabled": True} if self.disabled else {})}


@dataclass(frozen=True, slots=True)
class Ask:
    """What is searched for."""

    query: str  # in words
    max_results: int = MAX_RESULTS  # 1 to 100
    min_score: float = MIN_SCORE  # 0 to 1; what is less certain is left out
    sources: tuple[str, ...] = SOURCES  # "memory", "sessions" or both
    chat: str = "direct"  # "direct", "group" or "channel": where the answer is shown
    skip_session: str | None = None  # a conversation that is left out, as the one that is going on

    def __post_init__(self) -> None:
        if not 1 <= self.max_results <= MOST_RESULTS:
            raise InputError(f"max_results is {self.max_results}; it must be 1 to {MOST_RESULTS}")
        if not 0 <= self.min_score <= 1:
            raise InputError(f"min_score is {self.min_score}; it must be 0 to 1")
        if unknown := set(self.sources) - set(SOURCES):
            raise InputError(f"source {min(unknown)!r} is unknown; use {' or '.join(SOURCES)}")


@dataclass(frozen=True, slots=True)
class Draft:
    """A search of which the half that needs no vector is done."""

    reader: Reader  # who searches where
    query: str  # in words
    words: Words  # what they brought
    best: Mapping[int, Chunk]  # the best chunks by them
    beside: Mapping[int, Chunk]  # what stands right before and after these


@dataclass(eq=False)
class FileSearch:
    """Searches the live generation of an index. Usable from any thread."""

    index: FileIndex
    embedder: Callable[[], Embedder | None]  # None while there is none: words are searched then
    clock: Clock
    scale: Callable[[], Scale] = Scale  # what brings the embedder's cosines onto the scale of the default model's
    hush: Callable[[Audience], Hush | None] = lambda audience: None  # what takes out of turns what one must not be told
    on_damage: Callable[[int], None] = lambda number: None  # told the number of a generation that is damaged
    _vectors: ChunkVectors = field(default_factory=ChunkVectors, init=False)

    def search(
        self, ask: Ask, audience: Audience, roots: Callable[[], Sequence[Root]], fresh: Callable[[], int] = lambda: 0
    ) -> Answer:
        """Answer in the best way that works now.

        `roots`: returns where the files are; asked for only if these must be read instead of the index.
        """
        options = self.index.options
        sources = [source for source in ask.sources if source in options.sources]
        if not sources:
            return Answer((), DISABLED, reason="no source is enabled; see the setting `sources`")
        dirty, stale = 0, None
        try:
            dirty = fresh()
        except StoreError as error:
            # An index that cannot be written, as on a full disk, still answers better than none.
            stale = f"the index cannot be updated: {error}"
        try:
            answer = self._with_index(ask, sources, audience, dirty)
        except StoreError as error:
            why = DAMAGED if _is_damage(error) else f"the index cannot be used: {error}"
            return self._without_index(ask, sources, audience, roots, why)
        if answer is None:
            why = stale or "the index is not built yet, or missing"
            return self._without_index(ask, sources, audience, roots, why)
        return replace(answer, reason=answer.reason or stale)

    def close(self) -> None:
        """Drop what is in memory."""
        self._vectors.close()

    def _with_index(self, ask: Ask, sources: Collection[str], audience: Audience, dirty: int) -> Answer | None:
        embedder = self.embedder()
        vector, reason = _embedded(embedder, ask.query)
        provider = embedder.identity.model if embedder and vector else "none"
        while (generation := self.index.generations.live()) is not None:
            try:
                draft = self._drafted(Reader(generation, audience, sources), ask.query, ask.max_results)
                ranked = self.finish(draft, vector, ask)
            except StoreError:
                # A rebuild takes the former file away, perhaps in the middle of a search.
                if self.index.generations.live() is generation:
                    raise
            else:
                return Answer(self._results(ask, ranked), HYBRID if vector else KEYWORDS, provider, reason, dirty)
        return None

    def draft(self, query: str, audience: Audience, sources: Collection[str], most: int) -> Draft | None:
        """Do the half of a search that needs no vector; None without an index."""
        generation = self.index.generations.live()
        wanted = [source for source in sources if source in self.index.options.sources]
        if generation is None or not wanted:
            return None
        return self._drafted(Reader(generation, audience, wanted), query, most)

    def _drafted(self, reader: Reader, query: str, most: int) -> Draft:
        with self._noticing(reader.generation):
            words = by_words(reader, query[:MAX_QUERY])
            count = self.index.options.candidates * most
            order = nsmallest(count, ((-value, chunk) for chunk, value in words.bm25.items()))
            best = chunks_of(reader, [chunk for _, chunk in order])
            return Draft(reader, query[:MAX_QUERY], words, best, neighbours(reader, best.values()))

    def finish(self, draft: Draft, vector: tuple[Vector, str] | None, ask: Ask) -> list[tuple[Chunk, float]]:
        """Do the other half: return passages with their scores, best first.

        `vector`: of the query, with the name of its space; None: words alone.
        """
        with self._noticing(draft.reader.generation):
            scored = self._scored(draft, vector, ask)
        return self._chosen(ask, scored, draft.reader.audience)

    def _scored(self, draft: Draft, vector: tuple[Vector, str] | None, ask: Ask) -> list[tuple[Chunk, float]]:
        options = self.index.options
        reader, words = draft.reader, draft.words
        wanted = options.candidates * ask.max_results
        near: Mapping[int, float] = {}
        if vector is not None:
            near = self._vectors.nearest(
                reader.generation, vector[1], vector[0], reader.audience, reader.sources, wanted
            )
        chunks = {**draft.best, **draft.beside}
        more = chunks_of(reader, [chunk for chunk in near if chunk not in chunks])
        more |= {chunk: draft.beside[chunk] for chunk in near if chunk in draft.beside}
        chunks |= more
        chunks |= neighbours(reader, more.values(), chunks.values())
        today = day_of(self.clock.now(), options.zone)
        times = [period.seconds(options.zone) for period in periods(draft.query, today)]
        known = passages(reader, chunks, words, draft.query, vector, near, self.scale(), times)
        scores: dict[int, float] = {}
        for source, weights in ((SESSIONS, options.turns), (MEMORY, options.files)):
            scores |= score({key: one for key, one in known.items() if chunks[key].source == source}, weights)
        return [(chunk, scores[key]) for key, chunk in chunks.items()]

    @contextmanager
    def _noticing(self, generation: Generation) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            if _is_damage(error):
                self.on_damage(generation.number)
            raise

    def _chosen(self, ask: Ask, scored: Iterable[tuple[Chunk, float]], audience: Audience) -> list[tuple[Chunk, float]]:
        now = self.clock.now()
        half_life = self.index.options.half_life_days
        # What is certain enough is decided before age: an old note that answers is better than none.
        kept = [
            (chunk, value * (1.0 if chunk.day is None else temporal_decay((now - chunk.day) / DAY, half_life)))
            for chunk, value in scored
            if value >= ask.min_score and (ask.skip_session is None or chunk.session != ask.skip_session)
        ]
        kept.sort(key=lambda item: (-item[1], -item[0].id))
        kept = list(islice(_hushed(kept, self.hush(audience)), 4 * ask.max_results))
        pool = [(value, frozenset(match_terms(chunk.text))) for chunk, value in kept]
        chosen = [kept[at] for at in mmr(pool, ask.max_results, self.index.options.mmr)]
        return [(chunk, min(1.0, value)) for chunk, value in chosen]

    def _without_index(
        self, ask: Ask, sources: Collection[str], audience: Audience, roots: Callable[[], Sequence[Root]], reason: str
    ) -> Answer:
        readable = [root for root in roots() if audience.may_read(root.scope)]
        found = by_substring(ask.query[:MAX_QUERY], readable, sources, self.index, time.monotonic() + 5.0)
        if found is None:
            return Answer((), DISABLED, reason=f"{reason}; there are no files to search instead")
        chosen = self._chosen(ask, found, audience)
        return Answer(self._results(ask, chosen), SUBSTRING, reason=reason)

    def _results(self, ask: Ask, ranked: Iterable[tuple[Chunk, float]]) -> tuple[Result, ...]:
        mode = self.index.options.citations
        cites = mode == "on" or (mode == "auto" and ask.chat == "direct")
        return tuple(_result(chunk, value, cites) for chunk, value in ranked)


def _hushed(found: Iterable[tuple[Chunk, float]], hush: Hush | None) -> Iterator[tuple[Chunk, float]]:
    """Yield passages without what must not be told of conversations; what is in a person's own file stays theirs."""
    for chunk, value in found:
        said = hush is not None and chunk.source == SESSIONS
        # What an assistant says after the person, later or not, makes nothing heard again.
        at = chunk.at if chunk.at is not None and chunk.role == "user" else float("-inf")
        text = hush(chunk.text, at) if hush is not None and said else chunk.text
        if text:
            yield (chunk if text == chunk.text else replace(chunk, text=text)), value


def _is_damage(error: StoreError) -> bool:
    # A table that is gone is an error without a kind of its own.
    return isinstance(error, StoreCorruptError) or type(error) is StoreError


def citation(path: str, start_line: int, end_line: int) -> str:
    """Return where a passage stands: `path#L1-L5`."""
    return f"{path}#L{start_line}-L{end_line}"


def _embedded(embedder: Embedder | None, query: str) -> tuple[tuple[Vector, str] | None, str | None]:
    if embedder is None:
        return None, "there is no embedding model, or it is still loading"
    try:
        return (embedder.embed([query[:MAX_QUERY]], query=True)[0], embedder.identity.id), None
    except ModelError as error:
        return None, f"the embedding model failed: {error}"


def _result(chunk: Chunk, value: float, cites: bool) -> Result:
    text = chunk.text if len(chunk.text) <= SNIPPET else f"{chunk.text[: SNIPPET - 1].rstrip()}…"
    where = citation(chunk.path, chunk.start_line, chunk.end_line) if cites else None
    return Result(
        chunk.path, chunk.start_line, chunk.end_line, round(value, 4), text, chunk.source, chunk.section, where,
        chunk.session, chunk.speaker, chunk.role, chunk.at,
    )  # fmt: skip


def by_substring(
    query: str, roots: Sequence[Root], sources: Collection[str], index: FileIndex, deadline: float
) -> list[tuple[Chunk, float]] | None:
    """Return the passages that hold words of a query, with the share of the words.

    `deadline`: `time.monotonic()` after which the rest of the files is left out.
    """
    terms = [term.replace(" ", "") for term in match_terms(query)]
    files = [
        (root, found)
        for root in roots
        if source_of(root) in sources
        for found in scan(root, index.max_bytes(root)).values()
        if found.skipped is None
    ]
    if not files:
        return None
    hits: list[tuple[Chunk, float]] = []
    # What was written last is the most likely to be asked for.
    for root, found in sorted(files, key=lambda file: -file[1].mtime_ns):
        if time.monotonic() > deadline:
            break
        content = index.content(root, found)
        for place, entry in enumerate(content.entries):
            text = fold(f"{entry.section} {entry.text}")
            share = sum(term in text for term in terms) / len(terms) if terms else 0.0
            if share:
                # Numbered downwards: where nothing else tells two apart, the newer row has the greater number.
                chunk = Chunk(
                    -len(hits), 0, place, entry.start_line, entry.end_line, entry.section, entry.speaker, entry.role,
                    entry.at, entry.text, source_of(root), root.scope.kind, root.scope.target,
                    root.label(found.relative), content.session, content.day,
                )  # fmt: skip
                hits.append((chunk, share))
    return hits
