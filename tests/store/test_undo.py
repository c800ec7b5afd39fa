"""Taking changes back: the last one, a batch, a session; what was changed since; who may."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import NotFoundError, PerdureError
from perdure.hooks.types import Channel
from perdure.store import undo as undoing
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.store import Store
from perdure.store.transaction import Author
from tests.kit import DAY, START, OpenMemory, nobody, say

TEXT = "The staging database is called heron."


def state(memory: Memory) -> dict[str, Fact]:
    """Return all live facts, but for the number of their last change."""
    return {fact.id: replace(fact, change_seq=0) for fact in memory.admin.list()}


def batches(home: Path, host: str | None = None) -> list[str]:
    """Return the owner's changes, newest first."""
    store = Store(home)
    with store.database.read() as connection:
        found = list(undoing.batches(connection, Audience.of(), host=host))
    store.close()
    return found


def import_batch(home: Path, *texts: str) -> str:
    """Bring facts in from elsewhere, in one transaction; return its name."""
    store = Store(home, clock=ManualClock(START))
    with store.write(Author(Channel.IMPORT, host="import")) as tx:
        for text in texts:
            tx.add(Fact(text, channel=Channel.IMPORT, scope="user", scope_target="owner"))
        batch = tx.batch
    store.close()
    return batch


def two_linked(memory: Memory) -> tuple[str, str]:
    one, other = memory.store("The build failed."), memory.store("The tool was new.")
    memory.link(one.id, other.id, strength=0.5)
    return one.id, other.id


CHANGES: dict[str, Callable[[Memory, Fact], object]] = {
    "store": lambda memory, fact: memory.store("Another one."),
    "store again": lambda memory, fact: memory.store(TEXT),
    "store instead": lambda memory, fact: memory.store("Another one.", supersedes=fact.id),
    "update a field": lambda memory, fact: memory.update(fact.id, importance=0.9, category="decision"),
    "update tags": lambda memory, fact: memory.update(fact.id, tags=["a", "b"]),
    "update the class": lambda memory, fact: memory.update(fact.id, decay_class="short"),
    "update the text": lambda memory, fact: memory.update(fact.id, text="Another wording."),
    "forget": lambda memory, fact: memory.forget(fact.id),
    "pin": lambda memory, fact: memory.pin(fact.id),
    "supersede by capture": lambda memory, fact: say(memory, "My birthday is 4 May."),
    "confirm by capture": lambda memory, fact: say(memory, "My birthday is 3 May.", session="t"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_last_change_is_taken_back(
    memory: Memory, clock: ManualClock, change: Callable[[Memory, Fact], object]
) -> None:
    fact = memory.store(TEXT)
    say(memory, "My birthday is 3 May.")
    before = state(memory)
    clock.advance(60.0)
    change(memory, fact)
    assert state(memory) != before
    clock.advance(60.0)
    undone = memory.undo()
    assert undone.conflicts == ()
    assert undone.facts
    assert state(memory) == before


def test_bringing_back_and_unpinning_are_taken_back(memory: Memory) -> None:
    fact = memory.store(TEXT)
    memory.pin(fact.id)
    memory.pin(fact.id, False)
    memory.undo()
    assert memory.get(fact.id).pinned
    memory.forget(fact.id)
    memory.unforget(fact.id)
    memory.undo()
    assert memory.admin.live_ids() == set()


def test_links_are_taken_back(memory: Memory) -> None:
    one, other = two_linked(memory)

    def strengths() -> list[float]:
        return [found.link.strength for found in memory.related(one)]

    memory.link(one, other, strength=0.9)
    memory.undo()
    assert strengths() == [0.5]
    memory.unlink(one, other)
    memory.undo()
    assert strengths() == [0.5]
    memory.undo()
    assert strengths() == []


def test_undoing_again_takes_back_the_change_before(memory: Memory) -> None:
    first = memory.store(TEXT)
    memory.update(first.id, text="The staging database is called ibis.")
    memory.pin(next(iter(memory.admin.live_ids())))
    for wanted in ([("The staging database is called ibis.", False)], [(TEXT, False)], []):
        memory.undo()
        assert [(fact.text, fact.pinned) for fact in memory.admin.list()] == wanted
    with pytest.raises(NotFoundError, match="nothing left to undo"):
        memory.undo()


def test_a_new_store_has_nothing_to_undo(memory: Memory) -> None:
    with pytest.raises(NotFoundError, match="nothing left to undo"):
        memory.undo()
    with pytest.raises(NotFoundError, match="'none such'"):
        memory.undo(session="none such")


def test_one_change_is_undone_once(memory: Memory, home: Path) -> None:
    memory.store(TEXT)
    [batch] = batches(home)
    assert memory.undo(batch).batch == batch
    with pytest.raises(NotFoundError, match="undone already"):
        memory.undo(batch)
    with pytest.raises(NotFoundError, match="no change"):
        memory.undo("f" * 32)


def test_an_undo_is_in_the_journal_and_loses_nothing(memory: Memory) -> None:
    fact = memory.store(TEXT)
    memory.undo()
    assert [change.action for change in memory.admin.changes()] == ["add", "undo", "undo"]
    assert {change.fact.text for change in memory.admin.changes()} == {TEXT}
    assert memory.unforget(fact.id).text == TEXT


def test_a_whole_session_is_taken_back(memory: Memory) -> None:
    say(memory, "My birthday is 3 May.", session="first")
    before = state(memory)
    say(memory, "My dog is called Fido.", session="second")
    say(memory, "My birthday is 4 May.", session="second")
    say(memory, "My cat is called Minka.", session="third")
    undone = memory.undo(session="second")
    assert undone.conflicts == ()
    [cat] = memory.lookup("cat", "name")
    assert state(memory).keys() == before.keys() | {cat.id}
    assert [fact.value for fact in memory.lookup("user", "birthday")] == ["3 May"]
    with pytest.raises(NotFoundError, match="'second'"):
        memory.undo(session="second")


def test_a_whole_import_is_taken_back(memory: Memory, home: Path) -> None:
    memory.store(TEXT)
    before = state(memory)
    batch = import_batch(home, "Imported one.", "Imported two.", "Imported three.")
    memory.store("Stored after it.")
    assert batches(home, host="import") == [batch]
    assert len(memory.undo(batch).facts) == 3
    assert [fact.text for fact in memory.admin.list()] == ["Stored after it.", TEXT]
    assert before.items() <= state(memory).items()
    assert batches(home, host="import") == []


def test_what_was_changed_since_is_left_alone_and_named(memory: Memory, home: Path) -> None:
    one, other = (memory.store(text).id for text in ("The build failed.", "The tool was new."))
    store = Store(home)
    with store.write(Author(Channel.LIBRARY)) as tx:
        for fact_id in (one, other):
            tx.change(fact_id, "update", {"importance": 0.9})
        batch = tx.batch
    store.close()
    memory.update(one, importance=0.7)
    undone = memory.undo(batch)
    assert (undone.facts, undone.conflicts) == ((other,), (one,))
    assert [memory.get(fact_id).importance for fact_id in (one, other)] == [0.7, 0.5]


def test_a_version_that_has_a_successor_is_not_pulled_from_under_it(memory: Memory, home: Path) -> None:
    first = memory.store("Release 1 is out.")
    second = memory.update(first.id, text="Release 2 is out.")
    batch = batches(home)[0]
    third = memory.update(second.id, text="Release 3 is out.")
    undone = memory.undo(batch)
    assert set(undone.conflicts) >= {second.id}
    assert memory.admin.live_ids() == {third.id}


def test_a_link_that_is_gone_since_is_no_obstacle(memory: Memory, home: Path) -> None:
    one, other = two_linked(memory)
    batch = batches(home)[0]
    memory.unlink(one, other)
    undone = memory.undo(batch)
    assert undone.facts + undone.conflicts == (one,)
    assert memory.related(one) == []


def test_a_strength_that_was_set_since_is_left_alone_and_named(memory: Memory, home: Path) -> None:
    one, other = two_linked(memory)
    memory.link(one, other, strength=0.9)
    batch = batches(home)[0]
    memory.link(one, other, strength=0.1)
    assert memory.undo(batch).conflicts == (one,)
    assert [found.link.strength for found in memory.related(one)] == [0.1]


def test_another_audience_cannot_undo_it(memory: Memory, open_memory: OpenMemory, home: Path) -> None:
    memory.store(TEXT)
    before = state(memory)
    [batch] = batches(home)
    for other in (open_memory(user="eva"), open_memory(user="eva", agent="ann"), nobody(memory)):
        with pytest.raises(PerdureError):
            other.undo()
        with pytest.raises(PerdureError):
            other.undo(batch)
    assert state(memory) == before
    memory.undo()
    assert state(memory) == {}


def test_who_may_write_nothing_can_undo_nothing(memory: Memory, home: Path) -> None:
    memory.store(TEXT, scope="global")
    [batch] = batches(home)
    with pytest.raises(PerdureError):
        nobody(memory).undo()
    with pytest.raises(PerdureError):
        nobody(memory).undo(batch)
    assert [fact.text for fact in memory.admin.list()] == [TEXT]


def test_undoing_a_mixed_change_touches_ones_own_part_only(
    memory: Memory, open_memory: OpenMemory, home: Path, clock: ManualClock
) -> None:
    store = Store(home, clock=clock)
    with store.write(Author(Channel.IMPORT, host="import")) as tx:
        for user in ("owner", "eva"):
            tx.add(Fact(f"Of {user}.", scope="user", scope_target=user))
        batch = tx.batch
    store.close()
    eva = open_memory(user="eva")
    eva.undo(batch)
    assert eva.admin.list() == []
    assert [fact.text for fact in memory.admin.list()] == ["Of owner."]
    clock.advance(DAY)
    memory.undo(batch)
    assert memory.admin.list() == []
