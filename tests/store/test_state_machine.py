"""Any order of changes against a model in plain Python: versions, times, undo, and all indexes in step."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import NotFoundError
from perdure.hooks.types import Channel
from perdure.index.vector_index import ExactIndex
from perdure.maintenance.purge import purge
from perdure.store import triggers
from perdure.store.scope import Audience
from perdure.store.search import View, lexical
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author
from tests.kit import START

ALL = 10_000
QUAYS = tuple(f"what lies at quay {name}" for name in "abcdef")
"""Triggers, so few that a memory has room for all of them."""


@dataclass(frozen=True)
class Known:
    """What the model knows about a fact."""

    text: str
    slot: str | None
    value: str | None
    since: float
    until: float | None = None
    former: str | None = None
    successor: str | None = None
    forgotten: bool = False
    at: float = 0.0  # when it was forgotten
    pinned: bool = False
    triggers: frozenset[str] = frozenset()

    @property
    def live(self) -> bool:
        return not self.forgotten and self.successor is None

    def true_at(self, moment: float) -> bool:
        return not self.forgotten and self.since <= moment and (self.until is None or self.until > moment)


Model = dict[str, Known]


class LifeOfFacts(RuleBasedStateMachine):
    """Plays changes on a real store. All facts are permanent, so that time alone changes no answer."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="perdure-life-"))
        self.clock = ManualClock(START)
        self.memory = Memory.open(self.home, embedder="hash", clock=self.clock, compare={"vector": 0})
        assert self.memory.ready()
        self.store = Store(self.home, clock=self.clock)
        self.model: Model = {}
        self.before: list[Model] = []
        self.order: list[str] = []
        self.count = 0

    def teardown(self) -> None:
        self.store.close()
        self.memory.close()
        shutil.rmtree(self.home)

    @initialize()
    def begin(self) -> None:
        self.put(None, None)

    @rule(seconds=st.sampled_from([0.0, 0.5, 60.0, 86_400.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(slot=st.sampled_from([None, None, "ann", "bob"]), value=st.sampled_from(["3 May", "4 May", "5 May"]))
    def put(self, slot: str | None, value: str | None) -> None:
        """Store a new text; in a slot that holds one value it replaces another one, and stands beside the same."""
        said: dict[str, Any] = {"entity": slot, "key": "birthday", "value": value} if slot else {}
        holders = [fact_id for fact_id in self.chosen("live") if slot and self.model[fact_id].slot == slot]
        there = holders[-1] if holders else None  # the newest; undo and unforget may have left more than one
        self.remember()
        fact = self.memory.store(self.new_text(), decay_class="permanent", **said)
        self.add(fact.id, Known(fact.text, slot, value if slot else None, self.clock.now()))
        if there is not None and self.model[there].value != value:
            self.succeed(there, fact.id)

    @precondition(lambda self: self.chosen("live"))
    @rule(data=st.data())
    def rewrite(self, data: st.DataObject) -> None:
        old = data.draw(st.sampled_from(self.chosen("live")))
        text = self.new_text()
        self.remember()
        new = self.memory.update(old[: data.draw(st.integers(13, 36))], text=text)
        known = self.model[old]
        self.add(new.id, Known(text, known.slot, known.value, self.clock.now(), pinned=known.pinned))
        self.succeed(old, new.id)

    @precondition(lambda self: self.chosen("kept"))
    @rule(data=st.data(), texts=st.sets(st.sampled_from(QUAYS)))
    def aim(self, data: st.DataObject, texts: set[str]) -> None:
        fact_id = data.draw(st.sampled_from(self.chosen("kept")))
        self.remember()
        self.memory.update(fact_id, triggers=sorted(texts))
        self.model[fact_id] = replace(self.model[fact_id], triggers=frozenset(texts))

    @precondition(lambda self: self.chosen("live"))
    @rule(data=st.data())
    def replace_by_hand(self, data: st.DataObject) -> None:
        old = data.draw(st.sampled_from(self.chosen("live")))
        text = self.new_text()
        self.remember()
        new = self.memory.store(text, decay_class="permanent", supersedes=old)
        self.add(new.id, Known(text, None, None, self.clock.now()))
        self.succeed(old, new.id)

    @precondition(lambda self: self.chosen("kept"))
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        fact_id = data.draw(st.sampled_from(self.chosen("kept")))
        self.remember()
        self.memory.forget(fact_id)
        for each in self.versions(fact_id):
            if not self.model[each].forgotten:
                self.model[each] = replace(self.model[each], forgotten=True, at=self.clock.now())

    @precondition(lambda self: self.chosen("forgotten"))
    @rule(data=st.data())
    def unforget(self, data: st.DataObject) -> None:
        fact_id = data.draw(st.sampled_from(self.chosen("forgotten")))
        self.remember()
        self.memory.unforget(fact_id)
        at = self.model[fact_id].at
        for each in self.versions(fact_id):
            if self.model[each].forgotten and self.model[each].at == at:
                self.model[each] = replace(self.model[each], forgotten=False)

    @precondition(lambda self: self.order)
    @rule(data=st.data(), pinned=st.booleans())
    def pin(self, data: st.DataObject, pinned: bool) -> None:
        fact_id = data.draw(st.sampled_from(self.order))
        self.remember()
        self.memory.pin(fact_id, pinned)
        self.model[fact_id] = replace(self.model[fact_id], pinned=pinned)

    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        moments = [START - 1, self.clock.now(), *(self.model[fact_id].since for fact_id in self.order)]
        moment = data.draw(st.sampled_from(moments)) + data.draw(st.sampled_from([-0.25, 0.0, 0.25]))
        answered = {fact.id for fact in self.memory.admin.list(limit=ALL, as_of=moment)}
        assert answered == {fact_id for fact_id, known in self.model.items() if known.true_at(moment)}

    @invariant()
    def what_is_live_is_what_the_model_says(self) -> None:
        live = {fact_id for fact_id, known in self.model.items() if known.live}
        assert self.memory.admin.live_ids() == live
        assert {fact.id for fact in self.memory.admin.list(limit=ALL)} == live
        assert self.memory.admin.stats().total == len(live)

    @invariant()
    def nothing_is_ever_lost(self) -> None:
        facts = {change.fact.id: change.fact for change in self.memory.admin.changes(limit=ALL)}
        assert facts.keys() == self.model.keys()
        for fact_id, known in self.model.items():
            fact = facts[fact_id]
            assert (fact.text, fact.superseded_by, fact.supersedes_id, fact.valid_until, fact.pinned) == (
                known.text, known.successor, known.former, known.until, known.pinned,
            )  # fmt: skip

    @invariant()
    def triggers_are_those_that_were_given_or_taken_over(self) -> None:
        with self.store.database.read() as connection:
            found = triggers.of(connection, self.model)
        told = {fact_id: {each.text for each in held} for fact_id, held in found.items()}
        assert told == {fact_id: known.triggers for fact_id, known in self.model.items() if known.triggers}

    @invariant()
    def versions_of_a_chain_never_overlap(self) -> None:
        facts = {change.fact.id: change.fact for change in self.memory.admin.changes(limit=ALL)}
        for chain in chains({fact_id: fact.superseded_by for fact_id, fact in facts.items()}):
            versions = [facts[fact_id] for fact_id in chain]
            # The last one is the current one, unless it was superseded by one that is gone for good.
            assert [fact.superseded_at is None for fact in versions[:-1]] == [False] * (len(versions) - 1)
            assert (versions[-1].superseded_at is None) == (versions[-1].superseded_by is None)
            for old, new in pairwise(versions):
                assert old.valid_until == old.superseded_at == new.valid_from
                assert (old.valid_from or old.created_at) <= (old.valid_until or 0.0)

    @invariant()
    def words_and_vectors_agree_with_the_facts(self) -> None:
        live = {fact_id for fact_id, known in self.model.items() if known.live}
        view = View(Audience.of(), self.clock.now())
        space = self.store.space()
        assert space is not None
        with self.store.database.read() as connection:
            assert {hit.fact.id for hit in lexical(connection, "berth", view, ALL).hits} == live
            assert run(connection, "SELECT rowid FROM facts_fts ORDER BY rowid") == run(
                connection, "SELECT seq FROM facts ORDER BY seq"
            )
            assert run(connection, "SELECT fact_id FROM vectors ORDER BY fact_id") == run(
                connection, "SELECT id FROM facts ORDER BY id"
            )
        import numpy as np

        index = ExactIndex(self.store.database, space.id, space.dims)
        query = np.full(space.dims, space.dims**-0.5, dtype=np.float32)
        assert {hit.id for hit in index.search(query, view, ALL)} == live

    def chosen(self, kind: str) -> list[str]:
        """Return the ids of the facts of a kind, oldest first: "live", "kept" (not forgotten) or "forgotten"."""
        known = self.model
        return [
            fact_id
            for fact_id in self.order
            if (known[fact_id].live if kind == "live" else known[fact_id].forgotten == (kind == "forgotten"))
        ]

    def versions(self, fact_id: str) -> list[str]:
        """Return a fact with those whose place it has taken, and whose place these had taken."""
        found = [fact_id]
        for newer in found:
            found += [each for each, known in self.model.items() if known.successor == newer and each not in found]
        return found

    def add(self, fact_id: str, known: Known) -> None:
        assert fact_id not in self.model
        self.model[fact_id] = known
        self.order.append(fact_id)

    def new_text(self) -> str:
        self.count += 1
        return f"Berth number {self.count} is taken."

    def remember(self) -> None:
        self.before.append(dict(self.model))

    def succeed(self, old: str, new: str) -> None:
        self.model[old] = replace(self.model[old], successor=new, until=self.clock.now())
        taken = self.model[new].triggers | self.model[old].triggers
        self.model[new] = replace(self.model[new], former=old, triggers=taken)


class LifeWithUndo(LifeOfFacts):
    """The same, and any change may be taken back."""

    @rule()
    def undo(self) -> None:
        """Take the last change back: what it added stays as a forgotten fact without a place in a chain."""
        if not self.before:
            with pytest.raises(NotFoundError):
                self.memory.undo()
            return
        assert self.memory.undo().conflicts == ()
        former = self.before.pop()
        loose = {
            fact_id: replace(known, forgotten=True, at=self.clock.now(), former=None, successor=None, until=None)
            for fact_id, known in self.model.items()
            if fact_id not in former
        }
        self.model = former | loose
        # Every older state, too, is one in which these exist and are forgotten.
        self.before = [loose | state for state in self.before]


class LifeWithPurge(LifeOfFacts):
    """The same, and any fact may be removed for good: of it alone nothing is left."""

    @precondition(lambda self: self.order)
    @rule(data=st.data())
    def purge(self, data: st.DataObject) -> None:
        fact_id = data.draw(st.sampled_from(self.order))
        assert purge(self.store, [fact_id], Author(Channel.LIBRARY)).facts == (fact_id,)
        self.order.remove(fact_id)
        del self.model[fact_id]
        assert not self.memory.admin.has(fact_id)


def chains(successors: dict[str, str | None]) -> list[list[str]]:
    """Return the chains of versions, each from its oldest to its newest."""
    begun = successors.keys() - {new for new in successors.values() if new}
    found = []
    for start in sorted(begun):
        chain = [start]
        while (following := successors[chain[-1]]) in successors:
            assert following is not None
            chain.append(following)
        found.append(chain)
    assert sum(map(len, found)) == len(successors)
    return found


TestLifeWithPurge = LifeWithPurge.TestCase
TestLifeWithPurge.settings = settings(
    max_examples=10, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)

TestLifeWithUndo = LifeWithUndo.TestCase
TestLifeWithUndo.settings = settings(
    max_examples=30, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
