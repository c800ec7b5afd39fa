"""Lists and undo look at what they show, not at all that is kept."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from perdure.hooks.types import Channel
from perdure.store import undo
from perdure.store.fact import Fact
from perdure.store.listing import Filter, inventory, list_facts
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author
from tests.sqlite import as_sqlite

MANY = 3_000
AUTHOR = Author(Channel.LIBRARY)
STEPS = 20_000
"""Of SQLite's machine: a walk through all memories of the store takes several times as many."""


def test_the_newest_memories_and_the_last_change_are_found_without_a_walk_through_all(tmp_path: Path) -> None:
    audience = Audience.of()
    with closing(Store(tmp_path / "home")) as store:
        with store.write(AUTHOR) as tx:
            for number in range(MANY):
                tx.add(Fact(f"Locker {number} has the code {number}.", scope="user", scope_target="owner"))
        with store.write(AUTHOR) as tx:
            last = tx.add(Fact("The last one.", scope="user", scope_target="owner"))
        with store.database.read() as connection:
            view = View(audience, store.clock.now())
            taken = {"steps": 0}

            def counted() -> bool:
                taken["steps"] += 1_000
                return False

            as_sqlite(connection).set_progress_handler(counted, 1_000)
            [newest] = list_facts(connection, view, Filter(), 1)
            batch = undo.last_batch(connection, audience)
            assert taken["steps"] < STEPS
            as_sqlite(connection).set_progress_handler(None)
            assert newest.id == last.id
            assert batch == run(connection, "SELECT batch FROM journal ORDER BY seq DESC LIMIT 1")[0][0]
            page = inventory(connection, view, limit=1)
            assert (page.total, page.facts[0].fact.id) == (MANY + 1, last.id)
