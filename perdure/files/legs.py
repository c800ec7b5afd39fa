"""The two ways in which chunks are found: by words and by vectors. Both pass the scope guard."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import apsw

from perdure.files.generation import Generation
from perdure.files.options import SESSIONS
from perdure.files.vectors import cosines
from perdure.ranking.passages import KEYWORD, VECTOR, Passage, keyword_score, vector_score
from perdure.store.database import run
from perdure.store.scope import Audience
from perdure.store.vocabulary import document_frequency, rarest, weight
from perdure.text.normalise import match_query, match_terms

if TYPE_CHECKING:
    from perdure.files.vectors import Vector

POSTINGS = 2_000
"""Rows looked at for all words of a query together, and at most for one word."""
LEAST_WEIGHT = 1e-6
MAX_SATURATION = 2.2
"""Of FTS5's BM25: the least weight of a word, and the most that a row can say of one (k1 + 1)."""
COLUMNS = (
    "c.id, c.file_id, c.place, c.start_line, c.end_line, c.section, c.speaker, c.role, c.at, c.text, c.source,"
    " c.scope, c.scope_target, f.path, f.session, f.day"
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A row of the index."""

    id: int
    file_id: int
    place: int
    start_line: int
    end_line: int
    section: str
    speaker: str | None
    role: str | None
    at: float | None
    text: str
    source: str
    scope: str
    scope_target: str
    path: str
    session: str | None
    day: float | None


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads what of which generation."""

    generation: Generation
    audience: Audience
    sources: Collection[str]

    def sql(self) -> tuple[str, tuple[str, ...]]:
        """Return the condition on the chunks `c` that may be seen, and its values."""
        scope, values = self.audience.sql("c")
        marks = ", ".join("?" * len(self.sources))
        return f"{scope} AND c.source IN ({marks})", (*values, *self.sources)


@dataclass(frozen=True, slots=True)
class Words:
    """What the words of a query brought.

    Attributes:
        scores: chunks by id, 0 to 1.
        weights: of the terms that were searched.
        whole: of these and of those that are nowhere. What was too common to be searched counts in neither.
    """

    scores: Mapping[int, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    whole: float = 0.0


def by_words(reader: Reader, query: str) -> Words:
    """Return the chunks that share words with a query.

    BM25 of each word by itself tells how much a chunk says of it; how much a word counts follows from the chunks
    that the reader may see alone, so that nobody learns from scores what others have.

    Raises:
        StoreError: the index cannot be read.
    """
    condition, values = reader.sql()
    sql = (
        "SELECT c.id, -bm25(chunks_fts) FROM chunks_fts JOIN chunks c ON c.id = chunks_fts.rowid"
        f" WHERE chunks_fts MATCH ? AND {condition} ORDER BY chunks_fts.rank LIMIT {POSTINGS}"
    )
    # One transaction: numbers of two states of the index do not fit together.
    with reader.generation.database.read() as connection, connection:
        total = _count(connection, "chunks")
        counts = {term: document_frequency(connection, term, "chunks_terms") for term in match_terms(query)}
        weights = {term: weight(0, total) for term, count in counts.items() if not count}
        said: dict[str, dict[int, float]] = {}
        for term in rarest({term: count for term, count in counts.items() if count}, POSTINGS):
            found = run(connection, sql, (match_query([term]), *values))
            said[term] = _saturation(found, _hits(connection, "chunks_fts", term), total)
            weights[term] = weight(len(found), total)
    whole = sum(weights.values())
    scores: dict[int, float] = {}
    for term, chunks in said.items():
        for chunk, share in chunks.items():
            scores[chunk] = scores.get(chunk, 0.0) + weights[term] * share
    searched = {term: weights[term] for term in said}
    return Words({chunk: keyword_score(value, whole) for chunk, value in scores.items()}, searched, whole)


def whole_documents(reader: Reader, words: Words, file_ids: Iterable[int]) -> dict[int, float]:
    """Return how much the whole files say of a query, 0 to 1, by file id."""
    wanted = sorted(set(file_ids))
    scores: dict[int, float] = {}
    with reader.generation.database.read() as connection, connection:
        total = _count(connection, "files")
        marks = ", ".join("?" * len(wanted))
        sql = f"SELECT rowid, -bm25(files_fts) FROM files_fts WHERE files_fts MATCH ? AND rowid IN ({marks})"
        for term, share in words.weights.items():
            found = run(connection, sql, (match_query([term]), *wanted))
            for file_id, value in _saturation(found, _hits(connection, "files_fts", term), total).items():
                scores[file_id] = scores.get(file_id, 0.0) + share * value
    return {file_id: keyword_score(value, words.whole) for file_id, value in scores.items()}


def chunks_of(reader: Reader, ids: Iterable[int]) -> dict[int, Chunk]:
    """Return those of the chunks that may be seen, by id."""
    condition, values = reader.sql()
    wanted = list(ids)
    marks = ", ".join("?" * len(wanted))
    sql = f"SELECT {COLUMNS} FROM chunks c JOIN files f ON f.id = c.file_id WHERE c.id IN ({marks}) AND {condition}"
    with reader.generation.database.read() as connection:
        return {row[0]: Chunk(*row) for row in run(connection, sql, (*wanted, *values))}


def neighbours(reader: Reader, chunks: Collection[Chunk]) -> dict[int, Chunk]:
    """Return what stands right before and after turns of conversations."""
    there = {(chunk.file_id, chunk.place) for chunk in chunks}
    beside = {(chunk.file_id, chunk.place + step) for chunk in chunks if chunk.source == SESSIONS for step in (-1, 1)}
    wanted = sorted(beside - there)
    condition, values = reader.sql()
    marks = ", ".join(["(?, ?)"] * len(wanted))
    sql = (
        f"SELECT {COLUMNS} FROM chunks c JOIN files f ON f.id = c.file_id"
        f" WHERE (c.file_id, c.place) IN (VALUES {marks}) AND {condition}"
    )
    if not wanted:
        return {}
    with reader.generation.database.read() as connection:
        rows = run(connection, sql, (*(part for pair in wanted for part in pair), *values))
    return {row[0]: Chunk(*row) for row in rows}


def passages(
    reader: Reader, chunks: Mapping[int, Chunk], words: Words, query: str, vector: tuple[Vector, str] | None
) -> dict[int, Passage]:
    """Return what the ranking needs to know of chunks; `vector` is the query's and the name of its space."""
    near = cosines(reader.generation, vector[1], vector[0], chunks) if vector else {}
    whole = whole_documents(reader, words, (chunk.file_id for chunk in chunks.values()))
    speaker = _speaker_named(query, chunks.values())
    found = {}
    for chunk in chunks.values():
        scores = {KEYWORD: words.scores.get(chunk.id, 0.0)}
        # A chunk that has no vector yet goes by its words.
        if chunk.id in near:
            scores[VECTOR] = vector_score(near[chunk.id])
        found[chunk.id] = Passage(
            chunk.file_id,
            chunk.place,
            scores,
            whole.get(chunk.file_id, 0.0),
            speaker is not None and chunk.speaker == speaker,
            chunk.text.rstrip().endswith(("?", "？")),
            len(chunk.text),
        )
    return found


def _saturation(found: Collection[tuple[int, float]], count: int, rows: int) -> dict[int, float]:
    """Return how much each row says of a term: its BM25 without the term's weight, as FTS5 sets it."""
    inner = max(math.log((rows - count + 0.5) / (count + 0.5)), LEAST_WEIGHT) if rows >= count else LEAST_WEIGHT
    return {row: min(MAX_SATURATION, value / inner) for row, value in found}


def _count(connection: apsw.Connection, table: str) -> int:
    return int(run(connection, f"SELECT count(*) FROM {table}")[0][0])


def _hits(connection: apsw.Connection, table: str, term: str) -> int:
    # Not from the vocabulary: it knows how common words are, but not phrases, and CJK words are phrases.
    sql = f"SELECT count(*) FROM {table} WHERE {table} MATCH ?"
    return int(run(connection, sql, (match_query([term]),))[0][0])


def _speaker_named(query: str, chunks: Iterable[Chunk]) -> str | None:
    terms = set(match_terms(query))
    named = {chunk.speaker for chunk in chunks if chunk.speaker and terms & set(match_terms(chunk.speaker))}
    return named.pop() if len(named) == 1 else None
