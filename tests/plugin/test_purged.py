"""What was purged through the library is gone, and stays away."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.cli.replay import bytes_of
from perdure.errors import InputError, NotFoundError
from perdure.hooks.types import TurnContext

SAID = "My safe is behind the painting of the heron."


def test_a_purged_memory_is_in_no_file_and_does_not_come_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    context = TurnContext(session_id="s")
    with Memory.open(home, embedder="hash", vector_index="lance") as memory:
        memory.ready()
        memory.turns.after([{"role": "user", "content": SAID}], True, context)
        memory.settle()
        [fact] = memory.admin.list()
        assert memory.admin.sync_index()

        done = memory.admin.purge(fact.id)

        assert (done.state, done.facts, done.waiting) == ("certified", (fact.id,), None)
        with pytest.raises(NotFoundError):
            memory.get(fact.id)
        with pytest.raises(InputError, match="purged"):
            memory.store(SAID)
        memory.turns.after([{"role": "user", "content": f"Hello. {SAID} I also own a parrot."}], True, context)
        memory.settle()
        assert [fact.text for fact in memory.admin.list()] == ["I also own a parrot."]
    with Memory.open(home, embedder="hash", vector_index="lance") as memory:
        memory.admin.purge(memory.admin.list()[0].id)
        assert memory.admin.stats().total == 0
    assert bytes_of(home, "painting of the heron") == 0


def test_verify_finds_nothing_wrong_after_a_life(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="hash", vector_index="lance") as memory:
        memory.ready()
        old = memory.store("My birthday is on May 3rd.")
        new = memory.store("Actually, my birthday is on May 4th.")
        memory.link(new.id, memory.store("The cake is ordered at Demel.").id, "DEPENDS_ON")
        memory.undo()
        memory.update(new.id, importance=0.9)
        memory.forget(new.id)
        memory.unforget(new.id)
        assert memory.get(old.id).superseded_by == new.id
        assert memory.admin.sync_index()
        assert memory.admin.verify() == []
