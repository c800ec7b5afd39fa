"""What is done in the background, and what leaves the store and comes back, keeps the users of an agent apart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.engine.engine import Engine
from perdure.engine.settings import Settings
from perdure.hooks.types import Channel, TurnContext
from perdure.store.fact import Fact
from perdure.store.scope import Scope
from perdure.store.transaction import Author
from tests.scopes.conftest import House
from tests.scopes.test_matrix import CALLERS, SCOPES

DAY = 86_400.0
ALICE, BOB = Scope.parse("agent:main user:alice"), Scope.parse("agent:main user:bob")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    given = {"embedder": "hash", "watch": False, "timers": False}
    engine = Engine(tmp_path / "home", Settings.load(given), clock=ManualClock())
    engine.model.wait(30)
    yield engine
    engine.close()


def as_(engine: Engine, user: str | None) -> Memory:
    return Memory(engine, TurnContext(agent_id="main", user_id=user))


def told(engine: Engine, scope: Scope, text: str, days: float = 0.0, category: str = "fact") -> str:
    """Have a user have said something so many days ago; return its id."""
    now = engine.clock.now()
    said = Fact(text, category=category, scope=scope.kind, scope_target=scope.target, source_date=now - days * DAY,
                channel=Channel.USER)  # fmt: skip
    [prepared] = engine.writer.prepare([said], now)
    with engine.store.write(Author(Channel.USER)) as tx:
        return tx.add(prepared.fact, prepared.vector).id


def test_a_pattern_is_of_one_user(engine: Engine) -> None:
    for days in (1, 3):
        told(engine, ALICE if days == 1 else BOB, "Ruth is allergic to nuts.", days)
    for user in ("alice", "bob", None):
        assert as_(engine, user).upkeep.reflect(days=30, observations=2).patterns == ()
    told(engine, ALICE, "Ben is vegan.", 5)
    found = as_(engine, "alice").upkeep.reflect(days=30, observations=2).patterns
    assert found
    assert [fact.scope_target for fact in as_(engine, "alice").admin.list() if fact.category == "pattern"] == [
        "main user:alice"
    ]
    assert not [fact for fact in as_(engine, "bob").admin.list() if fact.category == "pattern"]


def test_what_two_users_say_alike_is_not_merged(engine: Engine) -> None:
    for scope in (ALICE, BOB):
        told(engine, scope, "The sailing boat needs a new mast.")
    for user in ("alice", "bob", None):
        assert as_(engine, user).upkeep.consolidate(cosine=0.5).merges == ()
    told(engine, ALICE, "The sailing boat needs a new mast!", 1)
    assert len(as_(engine, "alice").upkeep.consolidate(cosine=0.5).merges) == 1
    assert len(as_(engine, "bob").admin.list()) == 1


def test_a_category_is_not_learned_from_another_user(engine: Engine) -> None:
    for number in range(8):
        told(engine, BOB, f"The sailing boat at berth {number} is moored in the old harbour.", category="decision")
    alices, bobs = (
        told(engine, scope, "The sailing boat at berth 9 is moored in the old harbour.", category="other")
        for scope in (ALICE, BOB)
    )
    for user in ("alice", "bob"):
        as_(engine, user).admin.classify()
    assert as_(engine, "bob").get(bobs).category == "decision"
    assert as_(engine, "alice").get(alices).category != "decision"


def test_an_export_brings_each_memory_back_to_whom_it_belongs(tmp_path: Path) -> None:
    town = House(tmp_path / "home", scopes=SCOPES, callers=CALLERS)
    path = tmp_path / "all.jsonl"
    owner = Memory(town.engine, TurnContext())
    owner.admin.export(path)
    before = owner.admin.scopes()
    town.close()
    given = Settings.load({"embedder": "none", "watch": False, "timers": False})
    other = Engine(tmp_path / "other", given, clock=town.clock)
    try:
        Memory(other, TurnContext()).admin.import_from(path, trust=True)
        assert Memory(other, TurnContext()).admin.scopes() == before
        for context, own in CALLERS.values():
            facts = Memory(other, context).admin.list(limit=1000, include_superseded=True)
            assert {str(Scope(fact.scope, fact.scope_target)) for fact in facts} == set(own)
    finally:
        other.close()


def test_an_export_of_before_is_read_as_it_was(tmp_path: Path) -> None:
    facts = [{"agent": "main"}, {"session": "s1"}, {"user": "eva"}]
    lines = [{"type": "header", "format": 1, "schema": 1, "space": None, "counts": {"facts": len(facts)}}]
    for number, (scope, target) in enumerate(item for each in facts for item in each.items()):
        lines.append({"type": "fact", "id": f"0000000{number}-0000-4000-8000-000000000000", "text": f"Bird {number}.",
                      "scope": scope, "scope_target": target})  # fmt: skip
    path = tmp_path / "old.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Memory.open(tmp_path / "home", embedder="none") as memory:
        memory.admin.import_from(path)
        assert dict(memory.admin.scopes()) == {"agent:main": 1, "session:s1": 1, "user:eva": 1}
