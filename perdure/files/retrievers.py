"""The two ways in which chunks are found: by words and by vectors. Both pass the scope guard."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from perdure.embed.base import Vector
from perdure.files.index import Generation
from perdure.files.options import SESSIONS
from perdure.heap import give_back
from perdure.index.vector_index import SPARE, RoundedMatrix, dots, highest
from perdure.ranking.calibration import Scale
from perdure.ranking.passages import KEYWORD, VECTOR, Scored, keyword_score, vector_score
from perdure.store.scope import Audience, Scope
from perdure.store.sql import Connection, Row, marks, run
from perdure.store.vocabulary import frequencies, rarest, weight
from perdure.text.normalise import match_query, match_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


CHUNK = 1024
"""Vectors that are read at a time."""
_COLUMNS = "c.id, c.scope, c.scope_target, c.source, e.vectors"
_NEW_CHUNKS = (
    f"SELECT {_COLUMNS} FROM chunks c CROSS JOIN embedding_cache e ON e.hash = c.hash AND e.space = ?"
    " WHERE c.id > ? AND c.id <= ? AND e.seq <= ?"
)
_NEW_VECTORS = (
    f"SELECT {_COLUMNS} FROM embedding_cache e CROSS JOIN chunks c ON c.hash = e.hash AND e.space = ?"
    " WHERE c.id <= ? AND e.seq > ? AND e.seq <= ?"
)
"""Of texts that were indexed before they were embedded."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """Up to where a generation has been read: of which space, which chunk, which vector."""

    generation: int = 0
    space: str = ""
    chunk: int = 0
    vector: int = 0


class ChunkVectors:
    """The rounded vectors of all chunks of the live generation. Usable from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen = _Seen()
        self._loaded = False

    def nearest(
        self, generation: Generation, space: str, query: Vector,
        audience: Audience, sources: Collection[str], limit: int,
    ) -> dict[int, float]:  # fmt: skip
        """Return the cosines of up to `limit` chunks that the audience may read, nearest first.

        `query`: float32 of shape (dims,), length one; `limit`: at least 1.
        """
        with self._lock:
            self._refresh(generation, space, query.size)
            while True:
                ids = self._candidates(query, audience, sources, limit + SPARE)
                found = cosines(generation, space, query, ids)
                if len(found) == len(ids):
                    break
                # What has left the file is noticed only here. It must not take the place of what is there.
                self._forget(generation, [chunk for chunk in ids if chunk not in found])
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))[:limit])

    def close(self) -> None:
        """Drop what is in memory; a later search would read it again."""
        with self._lock:
            # A process that never compared vectors has not imported numpy, and need not.
            if self._loaded:
                self._reset(0)

    def _reset(self, dims: int) -> None:
        import numpy as np

        self._loaded = True
        self._seen = _Seen()
        self._codes: dict[tuple[Scope, str], int] = {}
        self._ids = self._starts = np.zeros(0, dtype=np.int64)
        self._code = np.zeros(0, dtype=np.int32)
        self._matrix = RoundedMatrix(dims)

    def _refresh(self, generation: Generation, space: str, dims: int) -> None:
        if (self._seen.generation, self._seen.space) != (generation.number, space):
            self._reset(dims)
            self._seen = _Seen(generation.number, space)
        newest = "SELECT (SELECT coalesce(max(id), 0) FROM chunks), (SELECT coalesce(max(seq), 0) FROM embedding_cache)"
        first = not len(self._ids)
        with generation.database.read() as connection:
            [(chunk, vector)] = run(connection, newest)
            if (chunk, vector) == (self._seen.chunk, self._seen.vector):
                return
            # Whatever fails on the way, the next call begins anew.
            seen, self._seen = self._seen, _Seen()
            if first:
                # One of the right size: every larger one that takes its place would leave a hole in memory.
                [(count,)] = run(connection, "SELECT count(*) FROM chunks")
                self._matrix = RoundedMatrix(dims, count)
            for sql, values in (
                (_NEW_CHUNKS, (seen.chunk, chunk, vector)),
                (_NEW_VECTORS, (seen.chunk, seen.vector, vector)),
            ):
                found = connection.execute(sql, (space, *values))
                while some := list(islice(found, CHUNK)):
                    self._append(some, dims)
        self._starts = starts_of(self._ids)
        if first:
            give_back()
        self._seen = _Seen(generation.number, space, chunk, vector)

    def _append(self, rows: list[Row], dims: int) -> None:
        import numpy as np

        ids: list[int] = []
        codes: list[int] = []
        parts: list[NDArray[np.float32]] = []
        for chunk, kind, target, source, blob in rows:
            vectors = np.frombuffer(blob, dtype="<f4")
            if vectors.size % dims:
                continue
            vectors = vectors.reshape(-1, dims)
            code = self._codes.setdefault((Scope(kind, target), source), len(self._codes))
            ids += [chunk] * len(vectors)
            codes += [code] * len(vectors)
            parts.append(vectors)
        if ids:
            self._ids = np.concatenate([self._ids, np.array(ids, dtype=np.int64)])
            self._code = np.concatenate([self._code, np.array(codes, dtype=np.int32)])
            self._matrix.append(np.concatenate(parts))

    def _forget(self, generation: Generation, chunks: list[int]) -> None:
        """Forget these chunks, and whatever else has left the file: looking for it costs as much as a search."""
        import numpy as np

        there = [row[0] for row in generation.database.query(run, "SELECT id FROM chunks")]
        kept = np.isin(self._ids, there) & ~np.isin(self._ids, chunks)
        self._ids, self._code = self._ids[kept], self._code[kept]
        self._starts = starts_of(self._ids)
        self._matrix.keep(kept)

    def _candidates(self, query: Vector, audience: Audience, sources: Collection[str], count: int) -> list[int]:
        import numpy as np

        allowed = np.array(
            [audience.may_read(scope) and source in sources for scope, source in self._codes], dtype=bool
        )
        rows = None if allowed.all() else np.flatnonzero(allowed[self._code])
        # A text of many parts has a row for each, one behind the other: as many texts are wanted, not rows.
        ids, starts = self._ids, self._starts
        if rows is not None:
            ids = ids[rows]
            starts = starts_of(ids)
        if len(starts) > count:
            best = self._matrix.products(query, rows)
            if len(starts) < len(ids):
                best = np.maximum.reduceat(best, starts)
            starts = starts[highest(best, count)]
        return list(dict.fromkeys(ids[starts].tolist()))


def starts_of(ids: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return where each run of equal ids begins."""
    import numpy as np

    return np.flatnonzero(np.diff(ids, prepend=-1))


def cosines(generation: Generation, space: str, query: Vector, ids: Iterable[int]) -> dict[int, float]:
    """Return the cosine of the query and each of these chunks that is there and has a vector; of parts the best."""
    import numpy as np

    sql = (
        "SELECT c.id, e.vectors FROM chunks c CROSS JOIN embedding_cache e ON e.hash = c.hash AND e.space = ?"
        " WHERE c.id IN (SELECT value FROM json_each(?))"
    )
    rows = generation.database.query(run, sql, (space, json.dumps(list(ids))))
    size = query.nbytes
    rows = [(chunk, blob) for chunk, blob in rows if blob and not len(blob) % size]
    if not rows:
        return {}
    vectors = np.frombuffer(b"".join(blob for _, blob in rows), dtype="<f4").reshape(-1, query.size)
    starts = np.cumsum([0, *(len(blob) // size for _, blob in rows[:-1])])
    best = np.maximum.reduceat(dots(vectors, query), starts).tolist()
    # A damaged vector may hold what is not a number, and is near nothing.
    return {row[0]: cosine for row, cosine in zip(rows, best, strict=True) if math.isfinite(cosine)}


POSTINGS = 2_000
"""Rows looked at for all words of a query together, and at most for one word."""
MAX_FREQUENCIES = 50_000
"""Terms whose frequency is kept for a state of the index: 5 MB."""
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
        scope, values = self.audience.sql(self.generation.database.dialect.in_scopes, "c")
        return f"{scope} AND c.source IN ({marks(self.sources)})", (*values, *self.sources)


@dataclass(frozen=True, slots=True)
class Words:
    """What the words of a query brought."""

    # How much each chunk says of the query, by the chunk's id; `keyword_score` makes a share of it.
    bm25: Mapping[int, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)  # of the terms that were searched
    whole: float = 0.0  # of these and of those that are nowhere. What was too common to be searched counts in neither


def by_words(reader: Reader, query: str) -> Words:
    """Return the chunks that share words with a query.

    BM25 of each word by itself tells how much a chunk says of it; how much a word counts follows from the chunks
    that the reader may see alone, so that nobody learns from scores what others have.
    """
    # One transaction: numbers of two states of the index do not fit together.
    with reader.generation.database.read() as connection, connection:
        state = _state(connection)
        counts = _frequencies(connection, state, match_terms(query))
        weights = {term: weight(0, state.chunks) for term, count in counts.items() if not count}
        searched: dict[str, float] = {}
        bm25: dict[int, float] = {}
        for term in rarest({term: count for term, count in counts.items() if count}, POSTINGS):
            found, hits = _postings(connection, reader, state, term, counts[term])
            searched[term] = weight(len(found), state.chunks)
            share, inner = searched[term], _inner(hits, state.chunks)
            for chunk, value in found:
                bm25[chunk] = bm25.get(chunk, 0.0) + share * min(MAX_SATURATION, value / inner)
    return Words(bm25, searched, sum(weights.values()) + sum(searched.values()))


def whole_documents(reader: Reader, words: Words, file_ids: Iterable[int]) -> dict[int, float]:
    """Return how much the whole files say of a query, 0 to 1, by file id."""
    wanted = json.dumps(sorted(set(file_ids)))
    scores: dict[int, float] = {}
    # The plus makes one pass over the word's files; without it FTS5 begins anew for each of the wanted ones.
    sql = (
        "SELECT count(*), json_group_array(json_array(rowid, -files_fts.rank))"
        " FILTER (WHERE +rowid IN (SELECT value FROM json_each(?2))) FROM files_fts WHERE files_fts MATCH ?1"
    )
    with reader.generation.database.read() as connection, connection:
        total = _state(connection).files
        for term, share in words.weights.items():
            [(hits, found)] = run(connection, sql, (match_query([term]), wanted))
            inner = _inner(hits, total)
            for file_id, value in json.loads(found):
                scores[file_id] = scores.get(file_id, 0.0) + share * min(MAX_SATURATION, value / inner)
    return {file_id: keyword_score(value, words.whole) for file_id, value in scores.items()}


def chunks_of(reader: Reader, ids: Iterable[int]) -> dict[int, Chunk]:
    """Return those of the chunks that may be seen, by id."""
    return _chunks(reader, "(SELECT value AS id FROM json_each(?)) CROSS JOIN chunks c USING (id)", list(ids))


def neighbours(reader: Reader, chunks: Collection[Chunk], known: Collection[Chunk] = ()) -> dict[int, Chunk]:
    """Return what stands right before and after turns of conversations and is neither of these nor known."""
    there = {(chunk.file_id, chunk.place) for chunk in (*chunks, *known)}
    beside = {(chunk.file_id, chunk.place + step) for chunk in chunks if chunk.source == SESSIONS for step in (-1, 1)}
    pairs = "(SELECT value ->> 0 AS file_id, value ->> 1 AS place FROM json_each(?))"
    return _chunks(reader, f"{pairs} CROSS JOIN chunks c USING (file_id, place)", sorted(beside - there))


def _chunks(reader: Reader, joined: str, wanted: Sequence[object]) -> dict[int, Chunk]:
    """Return wanted chunks that may be seen, by id. Joined from the wanted ones, each is one look into the index."""
    if not wanted:
        return {}
    condition, values = reader.sql()
    sql = f"SELECT {COLUMNS} FROM {joined} JOIN files f ON f.id = c.file_id WHERE {condition}"
    return {row[0]: Chunk(*row) for row in reader.generation.database.query(run, sql, (json.dumps(wanted), *values))}


def passages(
    reader: Reader, chunks: Mapping[int, Chunk], words: Words, query: str, vector: tuple[Vector, str] | None,
    known: Mapping[int, float], scale: Scale, times: Sequence[tuple[float, float]],
) -> dict[int, Scored]:  # fmt: skip
    """Return what the ranking needs to know of chunks.

    `times`: those that the query asks about, begin and end, in epoch seconds.
    """
    near = dict(known)
    if vector:
        near |= cosines(reader.generation, vector[1], vector[0], [chunk for chunk in chunks if chunk not in near])
    whole = whole_documents(reader, words, (chunk.file_id for chunk in chunks.values()))
    speaker = _speaker_named(query, chunks.values())
    found = {}
    for chunk in chunks.values():
        scores = {KEYWORD: keyword_score(words.bm25.get(chunk.id, 0.0), words.whole)}
        # A chunk that has no vector yet goes by its words.
        if chunk.id in near:
            scores[VECTOR] = vector_score(scale.common(near[chunk.id]))
        dated = chunk.at is not None and any(begin <= chunk.at < end for begin, end in times)
        spoke = speaker is not None and chunk.speaker == speaker
        asks = chunk.text.rstrip().endswith(("?", "\uff1f"))
        document = whole.get(chunk.file_id, 0.0)
        found[chunk.id] = Scored(chunk.file_id, chunk.place, scores, document, dated, spoke, asks, len(chunk.text))
    return found


def _inner(count: int, rows: int) -> float:
    """Return the weight that FTS5's BM25 gives a term of so many rows: without it is left how much a row says of it."""
    return max(math.log((rows - count + 0.5) / (count + 0.5)), LEAST_WEIGHT) if rows >= count else LEAST_WEIGHT


@dataclass(frozen=True, slots=True)
class _State:
    """What is counted once for a state of the index: `version` is SQLite's number of it on one connection."""

    version: int
    # `chunks`, `files`: how many there are.
    chunks: int
    files: int
    kinds: frozenset[tuple[Scope, str]]  # whose they are, and of which source
    frequencies: dict[str, int] = field(default_factory=dict)  # rows that hold a term, of the terms asked for so far


_states: WeakKeyDictionary[Connection, _State] = WeakKeyDictionary()


def _state(connection: Connection) -> _State:
    version = int(run(connection, "PRAGMA data_version")[0][0])
    state = _states.get(connection)
    if state is None or state.version != version:
        [(chunks, files)] = run(connection, "SELECT (SELECT count(*) FROM chunks), (SELECT count(*) FROM files)")
        kinds = run(connection, "SELECT DISTINCT scope, scope_target, source FROM files")
        state = _State(version, chunks, files, frozenset((Scope(*scope), source) for *scope, source in kinds))
        _states[connection] = state
    return state


def _frequencies(connection: Connection, state: _State, terms: Sequence[str]) -> dict[str, int]:
    known = state.frequencies
    if len(known) >= MAX_FREQUENCIES:
        known.clear()
    if unknown := [term for term in terms if term not in known]:
        known |= frequencies(connection, unknown, "chunks_terms")
    return {term: known[term] for term in terms}


def _postings(
    connection: Connection, reader: Reader, state: _State, term: str, count: int
) -> tuple[list[tuple[int, float]], int]:
    """Return the rows of a term that the reader may see, each with its BM25, and how many rows there are for all.

    `count` is the vocabulary's: at least as many as there are.
    """
    table, condition = "chunks_fts", "true"
    values: tuple[str, ...] = ()
    everything = all(reader.audience.may_read(scope) and source in reader.sources for scope, source in state.kinds)
    if not everything:
        condition, values = reader.sql()
        table = "chunks_fts JOIN chunks c ON c.id = chunks_fts.rowid"
    best = f"ORDER BY chunks_fts.rank LIMIT {POSTINGS}" if count > POSTINGS else ""
    # One row of JSON: fetching row by row, SQLite and Python would hand each other the interpreter's lock each time.
    sql = (
        "SELECT json_group_array(json_array(id, said)) FROM (SELECT chunks_fts.rowid AS id, -chunks_fts.rank AS said"
        f" FROM {table} WHERE chunks_fts MATCH ? AND {condition} {best})"
    )
    [(rows,)] = run(connection, sql, (match_query([term]), *values))
    found: list[tuple[int, float]] = json.loads(rows)
    if everything and not best:
        return found, len(found)
    # Not from the vocabulary: it knows how common words are, but not phrases, and CJK words are phrases.
    [(hits,)] = run(connection, "SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH ?", (match_query([term]),))
    return found, hits


def _speaker_named(query: str, chunks: Iterable[Chunk]) -> str | None:
    terms = set(match_terms(query))
    speakers = {chunk.speaker for chunk in chunks if chunk.speaker}
    named = {speaker for speaker in speakers if not terms.isdisjoint(match_terms(speaker))}
    return named.pop() if len(named) == 1 else None
