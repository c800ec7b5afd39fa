"""Triggers: short texts that say in which situations a memory matters. They find it, and are never shown to a model."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.errors import InputError, refused
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.safe import safe
from perdure.store.scope import Scope
from perdure.store.sql import Connection, Row, dialect, marks, run
from perdure.store.trust import REVIEWED, SUPERSEDES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TABLES = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
MOST = 8
"""Triggers of a memory."""
LONGEST = 200
"""Characters of a trigger."""
READ = 50_000
"""Triggers that are looked through for words."""
USER, AGENT, MODEL, USE = "user", "agent", "model", "use"
ORIGINS = (USER, USE, AGENT, MODEL)
"""Who wrote a trigger: the user or their program, what was said when the memory was missed, an agent, a language model.
The first have the stronger word."""
_OWN = (USER, USE)
_SAID = SUPERSEDES | {Channel.OWNER_FILE, Channel.TRANSCRIPT_USER}
_BY_CHANNEL = f"f.channel IN {tuple(each.value for each in sorted(_SAID))}"
_COUNTS = f"(t.origin IN {_OWN} OR {_BY_CHANNEL} OR {REVIEWED})"
_RANK = f"CASE t.origin {' '.join(f'WHEN {name!r} THEN {rank}' for rank, name in enumerate(ORIGINS))} END"
_ORDER = f"{_RANK}, t.created_at, t.rowid"


@dataclass(frozen=True, slots=True)
class Trigger:
    """A situation in which a memory matters, in words as somebody would say them then."""

    id: str  # UUID
    fact_id: str
    text: str  # at most 200 characters, without secrets
    origin: str  # "user", "agent", "model" or "use"
    created_at: float  # epoch seconds
    reviewed: bool = False  # whether its memory is another's word, which a person approved in a review


@dataclass(frozen=True, slots=True)
class TriggerVectors:
    """Vectors of triggers, in no order."""

    ids: Sequence[str]
    fact_ids: Sequence[str]  # of each one's memory
    scopes: Sequence[Scope]  # and its scope
    counts: NDArray[np.bool_]  # whether each may bring its memory up unasked, of shape (triggers,); see `counts`
    vectors: NDArray[np.float32]  # of shape (triggers, dims)


def origin_of(channel: Channel) -> str:
    """Return the origin of triggers that come in by a channel."""
    return USER if channel in SUPERSEDES - {Channel.TOOL_ASKED} else AGENT


def checked(texts: object) -> tuple[str, ...]:
    """Return triggers as they may be stored: without secrets, each once.

    Raises:
        InputError: they are no list of texts, too many, or one of them is empty or too long.
    """
    if not isinstance(texts, list | tuple) or not all(isinstance(each, str) for each in texts):
        raise refused(texts, "a list of strings, such as ['what can I take for my sore throat']", "triggers")
    if len(texts) > MOST:
        raise InputError(f"triggers: there are {len(texts)}; a memory has at most {MOST}; keep the most specific ones")
    plain = [" ".join(safe(each).split())[:LONGEST] for each in texts]
    for given, text in zip(texts, plain, strict=True):
        if not text:
            raise InputError(f"triggers: {given[:40]!r} is empty; write a prompt in which the memory would matter")
        if len(given.strip()) > LONGEST:
            raise InputError(
                f"triggers: {text[:40]!r}… has {len(given.strip())} characters; the limit is {LONGEST}; shorten it"
            )
    return tuple({each.casefold(): each for each in reversed(plain)}.values())[::-1]


def counts(fact: Fact, trigger: Trigger) -> bool:
    """Return whether a trigger may bring its memory up unasked.

    What an agent or a language model wrote may not aim at a moment what the user neither said nor approved.
    """
    return trigger.origin in _OWN or fact.channel in _SAID or trigger.reviewed


def of(connection: Connection, fact_ids: Iterable[str]) -> dict[str, list[Trigger]]:
    """Return the triggers of facts, by the fact's id, those of the strongest word first; none: no entry."""
    found: dict[str, list[Trigger]] = {}
    ids = list(fact_ids)
    sql = (
        f"SELECT t.id, t.fact_id, t.text, t.origin, t.created_at, NOT {_BY_CHANNEL} AND {REVIEWED}"
        " FROM triggers t JOIN facts f ON f.id = t.fact_id"
        f" WHERE t.removed_at IS NULL AND t.fact_id IN ({marks(ids)}) ORDER BY {_ORDER}"
    )
    for row in run(connection, sql, ids) if ids else ():
        found.setdefault(row[1], []).append(Trigger(*(*row[:5], bool(row[5]))))
    return found


def vectors_of(connection: Connection, embedding_id: str, dims: int, ids: Sequence[str]) -> dict[str, bytes]:
    """Return the vectors, float32 of so many numbers, of those of these triggers that have one in a space."""
    of_them = f"embedding_id = ? AND length(vector) = ? AND trigger_id IN ({marks(ids)})"
    sql = f"SELECT trigger_id, vector FROM trigger_vectors WHERE {of_them}"
    return dict(run(connection, sql, (embedding_id, 4 * dims, *ids)))


def vectors(
    connection: Connection, embedding_id: str, dims: int, *, each: int = MOST, fact_ids: Sequence[str] | None = None
) -> TriggerVectors:
    """Return the vectors of triggers in a space, at most so many of each memory; those of some facts alone, if named.

    Whether a fact is over does not matter: a view decides about that, by the fact.
    """
    import numpy as np

    among = "" if fact_ids is None else " AND t.fact_id IN (SELECT value FROM json_each(?))"
    named = () if fact_ids is None else (json.dumps(list(fact_ids)),)
    # Ranked before their vectors are read: sorting takes whole rows along.
    sql = (
        "SELECT r.id, r.fact_id, r.scope, r.scope_target, r.counted, v.vector FROM"
        f" (SELECT t.id, t.fact_id, f.scope, f.scope_target, {_COUNTS} AS counted,"
        f" row_number() OVER (PARTITION BY t.fact_id ORDER BY {_ORDER}) AS place"
        f" FROM triggers t JOIN facts f ON f.id = t.fact_id WHERE t.removed_at IS NULL{among}) AS r"
        " JOIN trigger_vectors v ON v.trigger_id = r.id AND v.embedding_id = ? AND length(v.vector) = ?"
        " WHERE r.place <= ?"
    )
    rows = run(connection, sql, (*named, embedding_id, 4 * dims, each))
    blob = b"".join(row[5] for row in rows)
    return TriggerVectors(
        [row[0] for row in rows],
        [row[1] for row in rows],
        [Scope(row[2], row[3]) for row in rows],
        np.array([bool(row[4]) for row in rows], dtype=bool),
        np.frombuffer(blob, dtype="<f4").reshape(-1, dims),
    )


def holding(connection: Connection, beginnings: Collection[str]) -> list[Trigger]:
    """Return the triggers that may bring their memory up and hold one of these beginnings of words, in lower case.

    Read are the newest `READ` alone: there is no index of their words.
    """
    one_of = " OR ".join(["instr(lower(t.text), ?) > 0"] * len(beginnings))
    sql = (
        "SELECT t.id, t.fact_id, t.text, t.origin, t.created_at FROM"
        " (SELECT * FROM triggers WHERE removed_at IS NULL ORDER BY rowid DESC LIMIT ?) AS t"
        f" JOIN facts f ON f.id = t.fact_id WHERE ({one_of}) AND {_COUNTS}"
    )
    return [Trigger(*row) for row in run(connection, sql, (READ, *beginnings))] if beginnings else []


def put(
    connection: Connection, fact_id: str, texts: Sequence[str], origin: str, now: float
) -> tuple[dict[str, str], list[str]]:
    """Let these, as `checked` returns them, be all triggers of a fact from an origin; see `Transaction.put_triggers`.

    Return the texts of those that were added, by their ids, and the ids of those that were removed.
    """
    if origin not in ORIGINS:
        raise InputError(f"origin {origin!r} is unknown; use one of {', '.join(ORIGINS)}")
    there = of(connection, [fact_id]).get(fact_id, [])
    wanted = {text.casefold(): text for text in texts}
    kept = {each.text.casefold() for each in there if not _gives_way(each, origin, wanted)}
    removed = [each.id for each in there if _gives_way(each, origin, wanted)]
    fresh = [text for folded, text in wanted.items() if folded not in kept]
    if (count := len(kept) + len(fresh)) > MOST:
        raise InputError(
            f"triggers: with those set by others, the memory would have {count}; the limit is {MOST}; "
            f"give at most {MOST - len(kept)} more"
        )
    rows = [(str(uuid.uuid4()), fact_id, text, origin, now) for text in fresh]
    connection.executemany("INSERT INTO triggers VALUES (?, ?, ?, ?, ?, NULL)", rows)
    swap(connection, (), removed, now)
    return {row[0]: row[2] for row in rows}, removed


def _gives_way(there: Trigger, origin: str, wanted: dict[str, str]) -> bool:
    """Return whether a trigger goes when others are put: a weaker one if it is named, else one of their own origin."""
    named = there.text.casefold() in wanted
    if there.origin == origin:
        return not named
    return named and ORIGINS.index(origin) < ORIGINS.index(there.origin)


def carry(connection: Connection, old_id: str, new_id: str) -> list[str]:
    """Give a fact the triggers of one whose place it takes, as far as there is room; return the ids of what it got."""
    both = of(connection, [old_id, new_id])
    there = {each.text.casefold() for each in both.get(new_id, ())}
    fresh = [each for each in both.get(old_id, ()) if each.text.casefold() not in there][: MOST - len(there)]
    made = [(str(uuid.uuid4()), each) for each in fresh]
    for name, each in made:
        values = (name, new_id, each.text, each.origin, each.created_at)
        run(connection, "INSERT INTO triggers VALUES (?, ?, ?, ?, ?, NULL)", values)
        sql = "INSERT INTO trigger_vectors SELECT ?, embedding_id, vector FROM trigger_vectors WHERE trigger_id = ?"
        run(connection, sql, (name, each.id))
    return [name for name, _ in made]


def swap(connection: Connection, back: Iterable[str], away: Iterable[str], now: float) -> None:
    """Bring triggers back that were removed, and remove others."""
    changes = [*((None, name) for name in back), *((now, name) for name in away)]
    connection.executemany("UPDATE triggers SET removed_at = ? WHERE id = ?", changes)


def are(connection: Connection, ids: Sequence[str], *, removed: bool) -> bool:
    """Return whether all these triggers are there, and removed or not."""
    sql = f"SELECT count(*) FROM triggers WHERE id IN ({marks(ids)}) AND removed_at IS {'NOT ' * removed}NULL"
    return not ids or bool(run(connection, sql, ids)[0][0] == len(ids))


def without_vector(connection: Connection, space_id: str, limit: int, skip: Sequence[str] = ()) -> list[Row]:
    """Return triggers of facts that are not forgotten and lack a vector in a space: id, fact and text of each."""
    sql = (
        "SELECT t.id, t.fact_id, t.text FROM triggers t JOIN facts f ON f.id = t.fact_id"
        " WHERE t.removed_at IS NULL AND f.forgotten_at IS NULL AND NOT EXISTS"
        " (SELECT 1 FROM trigger_vectors v WHERE v.trigger_id = t.id AND v.embedding_id = ?)"
        " AND t.id NOT IN (SELECT value FROM json_each(?)) LIMIT ?"
    )
    return run(connection, sql, (space_id, json.dumps(list(skip)), limit))


def drop_vectors(connection: Connection, fact_id: str) -> None:
    """Drop the vectors of a fact's triggers; the worker makes them anew."""
    sql = "DELETE FROM trigger_vectors WHERE trigger_id IN (SELECT id FROM triggers WHERE fact_id = ?)"
    run(connection, sql, (fact_id,))


def rewrite(connection: Connection, fact_id: str) -> None:
    """Pass the triggers of a fact through the redactor once more, removed ones too; their vectors go."""
    drop_vectors(connection, fact_id)
    for name, text in run(connection, "SELECT id, text FROM triggers WHERE fact_id = ?", (fact_id,)):
        run(connection, "UPDATE triggers SET text = ? WHERE id = ?", (safe(text), name))


def drop_holding(connection: Connection, text: str) -> list[str]:
    """Remove every trigger that holds a text, for good; return the ids of the facts that had one."""
    held = "instr(text, ?) > 0 OR instr(lower(text), lower(?)) > 0"
    return [row[0] for row in run(connection, f"DELETE FROM triggers WHERE {held} RETURNING fact_id", (text, text))]


def keep_vector(connection: Connection, trigger_id: str, space_id: str, blob: bytes) -> None:
    """Give a trigger its vector of a space, in the place of one that it has. Does nothing if the trigger is gone."""
    sql = (
        "INSERT INTO trigger_vectors (trigger_id, embedding_id, vector) SELECT id, ?, ? FROM triggers WHERE id = ?"
        f" {dialect(connection).on_conflict('trigger_id', 'embedding_id')} DO UPDATE SET vector = excluded.vector"
    )
    run(connection, sql, (space_id, blob, trigger_id))
