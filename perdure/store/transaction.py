"""Changes to facts: each writes the fact, its search row, its journal row and its outbox row together."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from perdure.errors import InputError, NotFoundError
from perdure.failpoints import fail_point
from perdure.hooks.types import Channel
from perdure.ranking.decay import expiry
from perdure.store import forgotten, outbox, triggers
from perdure.store.fact import COLUMNS, USUAL, Fact, Summaries, folded_slot, read_facts, to_column, to_row
from perdure.store.safe import safe, safe_fact, safe_values
from perdure.store.seals import is_purged, seal_fact, store_key
from perdure.store.sql import Connection, dialect, put, run
from perdure.text.normalise import fingerprint, fts_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

MAX_TEXT = 100_000
_CHANGEABLE = """
    category importance tags preserve_tags decay_class expires_at decay_freeze_until last_confirmed_at confidence
    recall_count access_count injected_count reinforced_count last_accessed valid_from valid_until superseded_at
    superseded_by supersedes_id forgotten_at tier pinned review_state scope_target channel
"""
CHANGEABLE = frozenset(_CHANGEABLE.split())
"""Columns that hold no text, so that the journal may keep their former values."""
_NAMED = ("category", "tags")
"""Of these the columns that hold words of a caller's choice."""
_ENDS = frozenset({"superseded_at", "valid_until", "forgotten_at", "review_state"})
"""Columns of which each may say that a fact is over."""
REFLECTED = "reflected"
"""How a fact was made that quotes others: a pattern."""
REWRITABLE = ("text", "why", "entity", "key", "value", "tags", "metadata", "summary", "normalized_hash")
_INSERT = (
    f"INSERT INTO facts ({', '.join(COLUMNS)}, entity_folded, key_folded)"
    f" VALUES ({', '.join('?' * (len(COLUMNS) + 2))})"
)


@dataclass(frozen=True, slots=True)
class Author:
    """Who makes a change: stands in the journal."""

    channel: Channel
    host: str = "python"
    session: str | None = None
    batch: str | None = None  # of what this is a part of, so that one undo takes all of it back; None: of nothing


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A vector with the identity of its space: little-endian float32 bytes."""

    embedding_id: str
    blob: bytes

    @classmethod
    def rows(cls, vectors: Vectors, embedding_id: str) -> list[StoredVector]:
        """Return the rows of vectors, float32 of shape (rows, dims), as they are stored."""
        return [cls(embedding_id, row.astype("<f4").tobytes()) for row in vectors]


def _is_undone(connection: Connection, batch: str) -> bool:
    sql = "SELECT 1 FROM journal WHERE action = 'undo' AND json_extract(detail, '$.undoes') = ? LIMIT 1"
    return bool(run(connection, sql, (batch,)))


@dataclass(eq=False, slots=True)
class Transaction:
    """The changes that one transaction makes, all of one batch. Obtained from `Store.write`."""

    connection: Connection
    now: float
    author: Author
    summaries: Summaries = USUAL
    batch: str = ""

    def __post_init__(self) -> None:
        named = self.author.batch
        # What is done once the rest of it was taken back is another change.
        self.batch = named if named and not _is_undone(self.connection, named) else uuid.uuid4().hex

    def add(self, fact: Fact, vector: StoredVector | None = None, reason: str = "") -> Fact:
        """Store a new fact; secrets in it are redacted first.

        Return it with id, times and hash filled in. The `reason` is why it is a new one, in a few words that are no
        memory.
        """
        fact = self._completed(fact)
        if self.is_purged(fact.text):
            raise InputError("this text was purged and cannot be stored again; rephrase it")
        model = fact.embedding_model if vector is None else vector.embedding_id
        fact = replace(fact, change_seq=self.journal("add", fact.id, detail=_why(reason)), embedding_model=model)
        fail_point("fact.journaled")
        run(self.connection, _INSERT, (*to_row(fact), folded_slot(fact.entity), folded_slot(fact.key)))
        fail_point("fact.inserted")
        self._index(self.connection.last_insert_rowid(), fact)
        fail_point("fact.searchable")
        if vector is not None:
            self._put_vector(fact.id, vector)
        self.queue(fact.id)
        fail_point("fact.added")
        return fact

    def is_purged(self, text: str) -> bool:
        """Return whether a text was purged, which keeps it out for good."""
        return is_purged(self.connection, store_key(self.connection), safe(text).strip())

    def supersede(self, old_id: str, new_id: str, reason: str = "") -> None:
        """Let a newer fact take the place of an older one, which stays for `as_of` and undo."""
        if old_id == new_id:
            raise InputError(f"memory {old_id} cannot supersede itself")
        new = self.fact(new_id)
        old = self.fact(old_id)
        if old.superseded_at is not None:
            raise NotFoundError(f"memory {old_id} is already superseded; give the one that replaced it")
        since = new.valid_from
        if since is None:
            # What stood there before has not become news by what is older coming in late.
            since = new.created_at if new.created_at < old.created_at else self.now
        gone = {"superseded_at": self.now, "superseded_by": new_id, "valid_until": since}
        self.change(old_id, "supersede", gone, other_id=new_id, reason=reason)
        fail_point("fact.superseded")
        self.change(new_id, "succeed", {"supersedes_id": old_id, "valid_from": since}, other_id=old_id)
        self._triggered(new_id, triggers.carry(self.connection, old_id, new_id), [])

    def put_triggers(
        self, fact_id: str, texts: Sequence[str], origin: str, vectors: Mapping[str, StoredVector] = {}
    ) -> None:
        """Let these be all triggers of a fact from an origin, one of `triggers.ORIGINS`; none takes them away.

        A text that there is on a stronger word stays as it is; on a weaker one, it is this origin's from now on.
        `vectors` by text; those that are missing are made later.

        Raises:
            InputError: a trigger is empty or too long, or there would be too many.
        """
        self._put_triggers("triggers", fact_id, texts, origin, vectors)

    def learn_triggers(self, fact_id: str, texts: Sequence[str], vectors: Mapping[str, StoredVector] = {}) -> None:
        """Let these be all triggers that a fact has from use: a change that nobody made, see `put_triggers`."""
        self._put_triggers("learn", fact_id, texts, triggers.USE, vectors)

    def _put_triggers(
        self, action: str, fact_id: str, texts: Sequence[str], origin: str, vectors: Mapping[str, StoredVector]
    ) -> None:
        self.fact(fact_id)
        added, removed = triggers.put(self.connection, fact_id, triggers.checked(texts), origin, self.now)
        for name, text in added.items():
            if (vector := vectors.get(text)) is not None:
                triggers.keep_vector(self.connection, name, vector.embedding_id, vector.blob)
        self._triggered(fact_id, list(added), removed, action)

    def swap_triggers(self, fact_id: str, back: Sequence[str], away: Sequence[str]) -> None:
        """Bring triggers of a fact back that were removed, and remove others, all by their ids."""
        triggers.swap(self.connection, back, away, self.now)
        self._triggered(fact_id, back, away)

    def _triggered(self, fact_id: str, added: Sequence[str], removed: Sequence[str], action: str = "triggers") -> None:
        if added or removed:
            self.journal(action, fact_id, detail={"added": list(added), "removed": list(removed)})

    def fact(self, fact_id: str) -> Fact:
        """Return a fact as it is now."""
        for found in read_facts(self.connection, "facts WHERE id = ?", (fact_id,)):
            return found
        raise NotFoundError(f"there is no memory {fact_id}")

    def is_forgotten(self, fact: Fact, said_at: float) -> bool:
        """Return whether what a fact says was forgotten in its scope after it was said, at a time in epoch seconds."""
        return forgotten.is_forgotten(self.connection, store_key(self.connection), fact, said_at)

    def _is_over(self, fact: Fact) -> bool:
        ended = fact.valid_until is not None and fact.valid_until <= self.now
        return (
            ended or fact.superseded_at is not None or fact.forgotten_at is not None or fact.review_state == "rejected"
        )

    def _outdate(self, fact_id: str, *, unsaid: bool) -> None:
        """Retract the patterns that quote a fact which is over; the next reflection tells what is left of them.

        `unsaid`: no answer about the past may quote it either.
        """
        sql = (
            "SELECT facts.id, facts.superseded_at FROM memory_links l JOIN facts ON facts.id = l.source_fact_id"
            " WHERE l.target_fact_id = ? AND l.link_type = 'DERIVED_FROM' AND facts.extraction_method = ?"
            " AND facts.forgotten_at IS NULL"
        )
        for pattern, over in run(self.connection, sql, (fact_id, REFLECTED)):
            gone = {} if over else {"superseded_at": self.now, "valid_until": self.now}
            gone |= {"forgotten_at": self.now} if unsaid else {}
            if gone:
                self.change(pattern, "outdate", gone, other_id=fact_id, reason="it quotes an outdated memory")

    def leaning(self, fact_id: str) -> list[str]:
        """Return the ids of what says little without a fact, which it quotes."""
        return forgotten.leaning(self.connection, store_key(self.connection), self.fact(fact_id))

    def _mark(self, fact: Fact, action: str) -> None:
        if fact.forgotten_at is None:
            forgotten.lift(self.connection, fact.id)
        elif fact.extraction_method != REFLECTED and (action != "undo" or fact.channel is not Channel.IMPORT):
            # An import that was undone may be done again; what a pattern quotes is not forgotten with it.
            forgotten.note(self.connection, store_key(self.connection), fact, fact.forgotten_at)

    def reinforce(self, fact_id: str, reason: str = "") -> Fact:
        """Note that a fact was said again: it is confirmed, and its lifetime starts anew.

        The `reason` is why it is taken for the same, in a few words that are no memory.
        """
        fact = self.fact(fact_id)
        values: dict[str, Any] = {"reinforced_count": fact.reinforced_count + 1, "last_confirmed_at": self.now}
        if fact.expires_at is not None:
            values["expires_at"] = expiry(fact.decay_class, self.now, fact.decay_freeze_until)
        return self.change(fact_id, "reinforce", values, reason=reason)

    def change(
        self, fact_id: str, action: str, values: Mapping[str, Any], *, other_id: str | None = None, reason: str = ""
    ) -> Fact:
        """Change columns of a fact in place; the journal keeps what stood there before, so that it can be undone.

        Columns that hold text are not among the values: a new text is a new version. The `reason` is a few words that
        are no memory.
        """
        foreign = values.keys() - CHANGEABLE
        if foreign:
            raise InputError(f"{', '.join(sorted(foreign))} cannot be changed in place; store a new version")
        fact = self.fact(fact_id)
        values = {name: safe_values(value) if name in _NAMED else value for name, value in values.items()}
        after = {name: to_column(name, value) for name, value in values.items()}
        before = {name: to_column(name, getattr(fact, name)) for name in values}
        detail = {"before": before, "after": after} | _why(reason)
        seq = self.journal(action, fact_id, other_id, detail)
        columns = ", ".join(f"{name} = ?" for name in after)
        sql = f"UPDATE facts SET {columns}{', ' if columns else ''}change_seq = ? WHERE id = ? RETURNING seq"
        [(row,)] = run(self.connection, sql, (*after.values(), seq, fact_id))
        fail_point("fact.changed")
        changed = self.fact(fact_id)
        if "forgotten_at" in values:
            self._mark(changed, action)
        moved = changed.scope_target != fact.scope_target
        if moved or (not _ENDS.isdisjoint(values) and self._is_over(changed)):
            self._outdate(fact_id, unsaid=moved or changed.forgotten_at is not None)
        if "category" in values:
            run(self.connection, "DELETE FROM facts_fts WHERE rowid = ?", (row,))
            fail_point("fact.unsearchable")
            self._index(row, changed)
        self.queue(fact_id)
        return changed

    def rewrite(self, fact: Fact, detail: Mapping[str, Any], action: str = "scrub") -> None:
        """Write the texts of a fact anew in place, where nothing may be kept of the old ones; its vectors go too.

        The `detail` says why, for the journal: JSON values, no text.
        """
        fact = self._completed(fact)
        seq = self.journal(action, fact.id, detail=detail)
        values = {name: to_column(name, getattr(fact, name)) for name in REWRITABLE}
        values |= {"entity_folded": folded_slot(fact.entity), "key_folded": folded_slot(fact.key), "change_seq": seq}
        columns = ", ".join(f"{name} = ?" for name in values)
        sql = f"UPDATE facts SET {columns}, embedding_model = NULL WHERE id = ? RETURNING seq"
        [(row,)] = run(self.connection, sql, (*values.values(), fact.id))
        run(self.connection, "DELETE FROM facts_fts WHERE rowid = ?", (row,))
        self._index(row, fact)
        run(self.connection, "DELETE FROM vectors WHERE fact_id = ?", (fact.id,))
        self.queue(fact.id)

    def remove(self, fact_id: str, action: str, detail: Mapping[str, Any] | None = None) -> None:
        """Take a fact out for good, with its words, vectors and links; the journal keeps its id.

        The `detail` says why, for the journal: JSON values, no text.
        """
        linked = run(self.connection, "SELECT source_fact_id FROM memory_links WHERE target_fact_id = ?", (fact_id,))
        run(self.connection, "DELETE FROM facts_fts WHERE rowid = (SELECT seq FROM facts WHERE id = ?)", (fact_id,))
        run(self.connection, "DELETE FROM facts WHERE id = ?", (fact_id,))
        self.journal(action, fact_id, detail=detail)
        self.queue(fact_id)
        for (source,) in linked:
            seal_fact(self.connection, source)

    def put_vector(self, fact_id: str, vector: StoredVector) -> None:
        """Give an existing fact its vector."""
        self.journal("embed", fact_id)
        self._put_vector(fact_id, vector)
        fail_point("vector.put")
        self.queue(fact_id)

    def is_finished(self, entry_id: str) -> bool:
        """Return whether an inbox entry has been dealt with; under this lock nobody else does."""
        return bool(run(self.connection, "SELECT 1 FROM inbox_done WHERE entry_id = ?", (entry_id,)))

    def finish_entry(self, entry_id: str) -> None:
        """Note that an inbox entry has been dealt with, so that it is never dealt with twice."""
        run(self.connection, "INSERT INTO inbox_done VALUES (?, ?) ON CONFLICT DO NOTHING", (entry_id, self.now))
        fail_point("entry.finished")

    def move_cursor(self, session: str, tail: str) -> None:
        """Remember up to which message a session has been read."""
        put(self.connection, "cursors", session=session, tail=tail, at=self.now)

    def _completed(self, fact: Fact) -> Fact:
        fact = safe_fact(fact).fact
        text = fact.text.strip()
        if not text:
            raise InputError("a memory needs text; this one is empty")
        if len(text) > MAX_TEXT:
            raise InputError(f"a memory has {len(text)} characters; the limit is {MAX_TEXT}; store a summary")
        created = fact.created_at or self.now
        confirmed = fact.last_confirmed_at or created
        ends = fact.expires_at
        if ends is None:
            ends = expiry(fact.decay_class, confirmed, fact.decay_freeze_until)
        return replace(
            fact,
            id=fact.id or str(uuid.uuid4()),
            text=text,
            summary=fact.summary or self.summaries.of(text),
            created_at=created,
            last_confirmed_at=confirmed,
            expires_at=ends,
            normalized_hash=fingerprint(text),
        )

    def _index(self, row: int, fact: Fact) -> None:
        texts = (fact.text, fact.entity, fact.key, fact.value, fact.category)
        dialect(self.connection).keep_words(self.connection, [(row, *(fts_text(text or "") for text in texts))])

    def _put_vector(self, fact_id: str, vector: StoredVector) -> None:
        dialect(self.connection).keep_vector(self.connection, fact_id, vector.embedding_id, vector.blob)
        run(self.connection, "UPDATE facts SET embedding_model = ? WHERE id = ?", (vector.embedding_id, fact_id))

    def queue(self, fact_id: str) -> None:
        """Note that the derived table, if there is one, has an old state of a fact."""
        outbox.queue(self.connection, fact_id, self.now)
        fail_point("outbox.queued")

    def journal(
        self, action: str, fact_id: str, other_id: str | None = None, detail: Mapping[str, Any] | None = None
    ) -> int:
        """Write a journal row; return its number.

        The `detail` is JSON values, never the text of a memory.
        """
        by = (self.author.channel.value, self.author.host, self.author.session, self.batch)
        columns = "at, action, fact_id, other_id, channel, host, session, batch, detail"
        sql = f"INSERT INTO journal ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        run(self.connection, sql, (self.now, action, fact_id, other_id, *by, json.dumps(detail or {})))
        return self.connection.last_insert_rowid()


def _why(reason: str) -> dict[str, str]:
    return {"reason": reason} if reason else {}
