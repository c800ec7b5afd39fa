"""What is to be kept in mind whatever is asked: pinned memories, preferences, conventions, instructions.

No search finds "always answer in French" for a question about the weather, so these are brought up without one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from perdure.recent import Recent
from perdure.store.fact import Fact, folded_slot, is_single_valued
from perdure.store.search import View, by_ids
from perdure.store.sql import Connection, run
from perdure.store.trust import SUPERSEDES
from perdure.text.normalise import fts_text, match_query

SESSIONS = 256
"""Sessions whose profile is kept, those used last."""
POOL = 1_000
"""Conventions, and instructions by their words, are ranked among so many of the newest."""
SPARE = 8
"""So many times the limit is ranked, because of several in one slot only the first is taken."""
USER = "user"
CONVENTION = "convention"
_INSTRUCTING = ("preference", "decision")
_LASTING = ("permanent", "durable", "stable")
_CUES = """
    always, never, prefer, avoid, from now on, by default, going forward
    immer, niemals, nie, bevorzuge, ab jetzt, ab sofort
    toujours, jamais, préfère, désormais
    siempre, nunca, prefiero, a partir de ahora
    sempre, prefiro, a partir de agora
    vždy, nikdy, preferuji, od teď
    alltid, aldrig, föredrar
    всегда, никогда, предпочитаю
    总是, 始终, 从不, 今后, 總是, 始終, 從不, 今後
    常に, 必ず, いつも, 絶対に
    항상, 절대, 앞으로
    เสมอ, ห้าม
"""
"""What a standing instruction is worded with; the index stems them: "prefers", "preferred"."""


def _any_of(phrases: Sequence[str]) -> str:
    return match_query(fts_text(phrase).strip() for phrase in phrases)


_WORDED = f"category : ({_any_of(_INSTRUCTING)}) AND text : ({_any_of(_CUES.replace(chr(10), ',').split(','))})"
_RANK = (
    "facts.pinned DESC, facts.access_count + facts.reinforced_count DESC, facts.confidence DESC,"
    " facts.importance DESC, coalesce(facts.source_date, facts.created_at) DESC, facts.seq DESC"
)


def standing(connection: Connection, view: View, limit: int) -> list[Fact]:
    """Return the standing profile: what was pinned, then standing instructions, what is used most first.

    A standing instruction is a preference or decision that is worded as one ("always", "never", "prefer"),
    or whose entity is "convention", and that lasts. What may not speak for the user is left out, pinned or not.

    Args:
        connection: a reader.
        view: what may be seen.
        limit: facts at the most; one for each slot that holds one value.
    """
    condition, values = _trusted(view).sql()
    lasting = (
        f"{condition} AND facts.category IN ({_marks(_INSTRUCTING)}) AND facts.decay_class IN ({_marks(_LASTING)})"
    )
    lasting_values = (*values, *_INSTRUCTING, *_LASTING)
    # The indexes are named because without statistics SQLite goes by the one that tells least: what is superseded.
    sql = (
        "SELECT facts.id, facts.entity, facts.key FROM facts WHERE facts.seq IN ("
        f"SELECT facts.seq FROM facts INDEXED BY facts_scope WHERE facts.pinned = 1 AND {condition}"
        " UNION ALL SELECT * FROM (SELECT facts.seq FROM facts INDEXED BY facts_entity"
        f" WHERE facts.entity_folded = ? AND {lasting} ORDER BY facts.seq DESC LIMIT ?) AS kept"
        " UNION ALL SELECT * FROM (SELECT facts.seq FROM facts_fts JOIN facts ON facts.seq = facts_fts.rowid"
        f" WHERE facts_fts MATCH ? AND {lasting} ORDER BY facts_fts.rowid DESC LIMIT ?) AS worded"
        f") ORDER BY {_RANK} LIMIT ?"
    )
    conventions, worded = (CONVENTION, *lasting_values, POOL), (_WORDED, *lasting_values, POOL)
    rows = run(connection, sql, (*values, *conventions, *worded, SPARE * max(0, limit)))
    slots = {fact_id: _slot(fact_id, entity, key) for fact_id, entity, key in rows}
    first: dict[object, str] = {}
    for fact_id, slot in slots.items():
        first.setdefault(slot, fact_id)
    return reread(connection, list(first.values())[: max(0, limit)], view)


def reread(connection: Connection, ids: Sequence[str], view: View) -> list[Fact]:
    """Return those of a profile's facts that may still be seen, in the profile's order."""
    found = by_ids(connection, ids, _trusted(view))
    return [found[fact_id] for fact_id in ids if fact_id in found]


class Profile:
    """Keeps the profile of a session as it was chosen first, so that prompts go on beginning alike.

    Ids are kept, no texts: `reread` leaves out at once what was superseded, forgotten or purged. Usable from any
    thread.
    """

    def __init__(self, sessions: int = SESSIONS) -> None:
        """Keep the profiles of so many sessions, those used last."""
        self._kept: Recent[str, tuple[str, ...]] = Recent(sessions)

    def for_session(self, session: str | None, choose: Callable[[], list[Fact]]) -> tuple[str, ...]:
        """Return the ids of the profile of a session, to be read with `reread`.

        Args:
            session: names the conversation and who takes part in it; None: nothing is kept.
            choose: chooses the profile if there is none yet; see `standing`.
        """
        known = None if session is None else self._kept.get(session)
        if known is not None:
            return known
        # The store is read without a lock: a slow reader holds up no other session.
        chosen = tuple(fact.id for fact in choose())
        return chosen if session is None else self._kept.first(session, chosen)

    def renew(self, session: str) -> None:
        """Have the profile of a session chosen anew: after a compaction, prompts begin differently anyway."""
        self._kept.drop(session)


def _trusted(view: View) -> View:
    channels = SUPERSEDES if view.channels is None else SUPERSEDES & frozenset(view.channels)
    return replace(view, channels=sorted(channels), approved_only=True)


def _slot(fact_id: str, entity: str | None, key: str | None) -> object:
    """Return what two facts cannot both fill; most that is said of a user can stand beside other things."""
    if not entity or not key or (folded_slot(entity) == USER and not is_single_valued(key)):
        return fact_id
    return folded_slot(entity), folded_slot(key)


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))
