"""Give memories of the category "other" a better one.

A language model is asked, where one is set; without an answer the words of a memory decide, and then the memories that
are nearest to it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from perdure.capture.describe import CategoryPatterns, describe
from perdure.capture.statements import Statement, cue_of
from perdure.errors import ModelError
from perdure.index.calibrate import scaled
from perdure.index.vector_index import VectorIndex
from perdure.llm import CATEGORIES, Asker
from perdure.secrets.redact import redact
from perdure.store.fact import CATEGORIES as KNOWN
from perdure.store.fact import Fact
from perdure.store.listing import Progress, every, no_progress
from perdure.store.scope import Audience, Scope
from perdure.store.search import View, by_ids
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.text.clean import clip
from perdure.text.lexicon import table

OTHER = "other"
MODEL = "language model"
NEIGHBOURS = 7
CANDIDATES = 40
"""So many of the nearest are looked at to find seven with a category."""
MIN_COSINE = 0.5
MIN_VOTES = 2
MIN_SHARE = 0.6
BATCH = 20
SHOWN = 300
"""Characters of a memory that tell its category."""
_ASKED = "classify_asked:"
_SYSTEM: str = table("consolidation", "prompts")["classify"]


@dataclass(frozen=True, slots=True)
class Classified:
    """A memory that got a category."""

    id: str  # of the memory
    category: str  # its new one
    by: str  # "language model", "rules", or "neighbours" with their agreement


def classify(
    store: Store,
    audience: Audience,
    author: Author,
    *,
    pause: Callable[[], None],
    own: CategoryPatterns = (),
    llm: Asker | None = None,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> Sequence[Classified]:
    """Classify what an audience may write; `undo` takes each batch of 20 back.

    `pause`: called between two batches; lets turns go first. `llm`: is asked first, about each memory once; None, or if
    it fails: the rules alone.
    """
    view = View(audience, store.clock.now())
    # The stored vectors are compared with each other, so no model is needed.
    near = (space.id, scaled(store, space)) if (space := store.space()) else None
    known = dict.fromkeys([*KNOWN, *(name for name, _ in own)])
    model = CategoryModel(store, llm, audience.home, [name for name in known if name != OTHER])
    others = (
        fact
        for fact in every(store, view, progress, f"facts.category = '{OTHER}'")
        if audience.may_write(Scope(fact.scope, fact.scope_target))
    )
    done: list[Classified] = []
    while batch := list(islice(others, BATCH)):
        pause()
        told = model.categories(batch, keep=not dry_run)
        made = [
            Classified(fact.id, told[fact.id], MODEL)
            if fact.id in told
            else _of_rules(fact, own) or _of_neighbours(store, near, fact, view)
            for fact in batch
        ]
        found = [each for each in made if each is not None]
        done += found
        if found and not dry_run:
            _write(store, author, found)
    return done


def _write(store: Store, author: Author, found: Sequence[Classified]) -> None:
    with store.write(author) as tx:
        for each in found:
            # Somebody may have given it a category meanwhile.
            if tx.fact(each.id).category == OTHER:
                tx.change(each.id, "classify", {"category": each.category}, reason=each.by)


def _of_rules(fact: Fact, own: CategoryPatterns) -> Classified | None:
    # Without a cue there is nothing that the words say for sure: "fact" is what describe falls back to.
    cue = cue_of(fact.text)
    category = next((name for name, pattern in own if pattern.search(fact.text)), None)
    category = category or (describe(Statement(fact.text, cue)).category if cue else OTHER)
    return None if category == OTHER else Classified(fact.id, category, "rules")


def _of_neighbours(store: Store, space: tuple[str, VectorIndex] | None, fact: Fact, view: View) -> Classified | None:
    sql = "SELECT vector FROM vectors WHERE fact_id = ? AND embedding_id = ?"
    rows = store.database.query(run, sql, (fact.id, space[0])) if space else []
    if space is None or not rows:
        return None
    import numpy as np

    hits = space[1].search(np.frombuffer(rows[0][0], dtype="<f4"), view, CANDIDATES)
    near = [hit for hit in hits if hit.cosine >= MIN_COSINE and hit.id != fact.id]
    facts = store.database.query(by_ids, [hit.id for hit in near], view)
    labelled = [hit for hit in near if hit.id in facts and facts[hit.id].category != OTHER][:NEIGHBOURS]
    if len(labelled) < MIN_VOTES:
        return None
    votes: dict[str, float] = defaultdict(float)
    for hit in labelled:
        votes[facts[hit.id].category] += hit.cosine
    category = max(votes, key=lambda name: votes[name])
    share = votes[category] / sum(votes.values())
    return Classified(fact.id, category, f"neighbours ({share:.2f})") if share >= MIN_SHARE else None


class CategoryModel:
    """What asks for the categories of one scope's memories. After a failure it asks no more."""

    def __init__(self, store: Store, llm: Asker | None, scope: Scope | None, names: Collection[str]) -> None:
        """Prepare.

        `llm`: the model; None: nothing is ever asked. `scope`: whose memories; None: nobody's.
        """
        self._store = store
        self._llm = llm if scope is not None else None
        self._key = f"{_ASKED}{scope}"
        self._names = frozenset(names)
        self._system = _SYSTEM.format(names=", ".join(names))

    def categories(self, facts: Sequence[Fact], *, keep: bool = True) -> Mapping[str, str]:
        """Return categories by id, of those memories that the model was not asked about before and has one for.

        `keep`: remember that it was asked; False: only try.
        """
        rows = self._fresh(facts) if self._llm is not None else {}
        fresh = [fact for fact in facts if fact.id in rows]
        if self._llm is None or not fresh:
            return {}
        items = [
            # Without secrets before it is cut: half of one may not look like one any more.
            {"item": number, "text": clip(redact(fact.text).text, SHOWN)}
            for number, fact in enumerate(fresh)
        ]
        try:
            answer = self._llm.ask_json(json.dumps(items, ensure_ascii=False), purpose=CATEGORIES, system=self._system)
        except ModelError:
            # The day's tokens are used up, or the server is away: the rules do without.
            self._llm = None
            return {}
        if keep:
            self._store.note(self._key, str(max(rows.values())))
        return self._read(answer, fresh)

    def _fresh(self, facts: Sequence[Fact]) -> dict[str, int]:
        asked = int(self._store.meta(self._key) or 0)
        sql = "SELECT id, seq FROM facts WHERE seq > ? AND id IN (SELECT value FROM json_each(?))"
        return dict(self._store.database.query(run, sql, (asked, json.dumps([fact.id for fact in facts]))))

    def _read(self, answer: object, facts: Sequence[Fact]) -> dict[str, str]:
        found = {}
        for each in answer if isinstance(answer, list) else ():
            number, name = (each.get("item"), each.get("category")) if isinstance(each, Mapping) else (None, None)
            if type(number) is int and 0 <= number < len(facts) and isinstance(name, str) and name in self._names:
                found[facts[number].id] = name
        return found
