"""What an audit looks for: checks of one memory, and comparisons of many."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perdure.capture.decide import own_view
from perdure.capture.evidence import replaces
from perdure.capture.statements import LEARNT, CaptureRule, statements
from perdure.hooks.types import Channel
from perdure.index.calibrate import scaled
from perdure.index.vector_index import VectorHit, VectorIndex
from perdure.ranking.decay import DAY
from perdure.recall.session_state import earlier
from perdure.regex import lazy
from perdure.secrets.redact import redact
from perdure.store.fact import Fact, folded_slot, is_single_valued
from perdure.store.safe import safe_fact
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.trust import SUPERSEDES, strength
from perdure.text.echo import Trace, echoes, quotes, same, trace

UNUSED_DAYS = 90
SHOWN_CHARACTERS = 120
NEIGHBOURS = 5
NEAR_LIMIT = 20_000
"""In a larger store each memory is compared with the others by its words alone."""
PAGE = 500
_NAME = lazy(r"(?<=\w )[A-Z]\w+")
FORGET, SUPERSEDE, LINK, NONE = "forget", "supersede", "link", "none"


@dataclass(frozen=True, slots=True)
class Suspect:
    """A memory that does more harm than good."""

    id: str  # of the memory
    kind: str  # "secret", "echo", "junk", "stale", "duplicate" or "contradiction"
    text: str  # its beginning, redacted
    evidence: str  # what speaks against it
    remedy: str  # "forget", "supersede" (by the other), "link" (to the other) or "none" (somebody must decide)
    other_id: str | None = None  # the other memory it has to do with


Check = Callable[["Desk", Fact], Suspect | None]
Comparison = Callable[["Desk"], Iterator[Suspect]]


class Desk:
    """What the checks of one audit need to know, and the memories that passed them, by what they share."""

    def __init__(self, store: Store, rules: Sequence[CaptureRule], now: float, same_cosine: float) -> None:
        """Start an audit.

        `now`: the time of the audit, epoch seconds.
        """
        self.store = store
        self.same_cosine = same_cosine
        self.key = store.key
        self.rules = tuple(rules)
        self.now = now
        self.alike: dict[Hashable, list[Fact]] = defaultdict(list)
        self.slots: dict[Hashable, list[Fact]] = defaultdict(list)
        self._earlier = earlier(store)
        self._shown: dict[str, Mapping[str, Sequence[Trace]]] = {}

    def remember(self, fact: Fact) -> None:
        """Keep a memory for the comparisons."""
        said = trace(fact.text, self.key)
        home = (fact.scope, fact.scope_target)
        words: Hashable = (said.words, said.senses) if len(said.words) > 1 else fact.normalized_hash
        self.alike[home, words].append(fact)
        if fact.entity and fact.key and fact.value and is_single_valued(fact.key):
            self.slots[home, folded_slot(fact.entity), folded_slot(fact.key)].append(fact)

    def shown(self, fact: Fact) -> Mapping[str, Sequence[Trace]]:
        """Return what the conversation was shown that a memory comes from."""
        name = f"{fact.scope}:{fact.scope_target}" if fact.scope_target else fact.scope
        conversation = f"{name}\0{fact.provenance_session}"
        if conversation not in self._shown:
            self._shown[conversation] = self._earlier(conversation)
        return self._shown[conversation]


def _secret(desk: Desk, fact: Fact) -> Suspect | None:
    kinds = sorted(safe_fact(fact).redacted)
    advice = f"holds a secret ({', '.join(kinds)}); remove it for good: perdure purge {fact.id[:8]}"
    return _suspect(fact, "secret", advice, FORGET) if kinds else None


def _echo(desk: Desk, fact: Fact) -> Suspect | None:
    if not _captured(fact):
        return None
    if quotes(fact.text):
        return _suspect(fact, "echo", "says of itself that it repeats the agent", FORGET)
    if not fact.provenance_session:
        return None
    said = trace(fact.text, desk.key)
    repeats = echoes if fact.channel is Channel.ASSISTANT else same
    for shown_id, seen in desk.shown(fact).items():
        if shown_id != fact.id and any(repeats(said, each) for each in seen):
            return _suspect(fact, "echo", f"its conversation was shown {shown_id}", FORGET, shown_id)
    return None


def _junk(desk: Desk, fact: Fact) -> Suspect | None:
    # What the heads kept, the rules had not.
    kept = not _captured(fact) or fact.extraction_method == f"rule:{LEARNT}" or statements(fact.text, desk.rules)
    return None if kept else _suspect(fact, "junk", "the present rules would not keep it", FORGET)


def _stale(desk: Desk, fact: Fact) -> Suspect | None:
    past = fact.decay_freeze_until
    before = desk.now - UNUSED_DAYS * DAY
    last = max(fact.last_accessed or 0.0, fact.last_confirmed_at or 0.0, fact.created_at)
    if past is None or past > before or last > before:
        return None
    days = round((desk.now - last) / DAY)
    return _suspect(fact, "stale", f"its date is past, and it was not used for {days} days", FORGET)


def _duplicates(desk: Desk) -> Iterator[Suspect]:
    for facts in desk.alike.values():
        if len(facts) > 1:
            best = max(facts, key=_worth)
            others = [fact for fact in facts if fact.id != best.id]
            yield from (_suspect(fact, "duplicate", "says the same as the other", FORGET, best.id) for fact in others)


def _near_duplicates(desk: Desk) -> Iterator[Suspect]:
    """Find what means the same in other words, by the stored vectors: no model is needed."""
    space = desk.store.space()
    facts = {facts[0].id: facts[0] for facts in desk.alike.values()}
    if space is None or len(facts) > NEAR_LIMIT:
        return
    index = scaled(desk.store, space)
    gone: set[str] = set()
    for fact_id, blob in _vectors(desk.store, space.id, list(facts)):
        fact = facts[fact_id]
        for hit in _nearest(index, blob, fact, desk.now):
            other = facts.get(hit.id)
            if other is None or other is fact or gone & {fact_id, hit.id} or hit.cosine < desk.same_cosine:
                continue
            if _details(fact, desk.key) == _details(other, desk.key):
                lesser, better = sorted((fact, other), key=_worth)
                gone.add(lesser.id)
                evidence = f"means the same as the other (cosine {hit.cosine:.2f})"
                yield _suspect(lesser, "duplicate", evidence, FORGET, better.id)
    index.close()


def _nearest(index: VectorIndex, blob: bytes, fact: Fact, now: float) -> Sequence[VectorHit]:
    import numpy as np

    return index.search(np.frombuffer(blob, dtype="<f4"), own_view(fact, now), NEIGHBOURS)


def _vectors(store: Store, space_id: str, ids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    sql = (
        "SELECT fact_id, vector FROM vectors WHERE embedding_id = ?"
        " AND fact_id IN (SELECT value FROM json_each(?)) ORDER BY fact_id"
    )
    for start in range(0, len(ids), PAGE):
        with store.database.read() as connection:
            rows = run(connection, sql, (space_id, json.dumps(ids[start : start + PAGE])))
        yield from ((fact_id, blob) for fact_id, blob in rows)


def _details(fact: Fact, key: bytes) -> tuple[Hashable, ...]:
    """Return what vectors hardly show: figures, names, a "not", the slot."""
    said = trace(fact.text, key)
    return frozenset(_NAME.findall(fact.text)), said.details, said.senses, fact.entity, fact.key, fact.value


def _contradictions(desk: Desk) -> Iterator[Suspect]:
    for facts in desk.slots.values():
        newest = max(facts, key=lambda fact: (fact.effective_date, fact.change_seq))
        for fact in facts:
            found = replaces(fact, newest)
            if fact is newest or found is None:
                continue
            # What is not the user's own word takes the place of nothing, and nothing that says more is to go for it.
            may = newest.channel in SUPERSEDES and newest.review_state == "approved" and not found.rest
            evidence = f"another value of {fact.entity}/{fact.key} was said later"
            yield _suspect(fact, "contradiction", evidence, SUPERSEDE if may else LINK, newest.id)


def _worth(fact: Fact) -> tuple[int, bool, bool, int, float, int]:
    """Return what decides which of several equals stays: the greatest."""
    approved = fact.review_state == "approved"
    return strength(fact.channel), approved, fact.pinned, fact.access_count, -fact.created_at, -fact.change_seq


def _captured(fact: Fact) -> bool:
    return (fact.extraction_method or "").startswith("rule:")


def _suspect(fact: Fact, kind: str, evidence: str, remedy: str, other: str | None = None) -> Suspect:
    text = redact(fact.text).text[:SHOWN_CHARACTERS]
    soft = remedy if not fact.pinned or remedy == LINK else NONE
    return Suspect(fact.id, kind, text, evidence, soft, other)


SINGLE: tuple[Check, ...] = (_secret, _echo, _junk, _stale)
"""Checks of one memory; the first that finds something counts."""
SHARED: tuple[Comparison, ...] = (_duplicates, _near_duplicates, _contradictions)
"""Comparisons of the memories that passed these."""
