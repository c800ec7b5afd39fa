"""How common words are: counted once for a state of the facts, and never taken from another one."""

from __future__ import annotations

import pytest

from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.store.vocabulary import fact_frequencies

AUTHOR = Author(Channel.LIBRARY)


def put(store: Store, *texts: str) -> None:
    with store.write(AUTHOR) as tx:
        for text in texts:
            tx.add(Fact(text))


def frequencies(store: Store, *terms: str) -> dict[str, int]:
    with store.database.read() as connection:
        return fact_frequencies(connection, terms)


def test_each_change_of_the_facts_is_counted_at_once(store: Store) -> None:
    put(store, "a heron by the pond")
    assert frequencies(store, "heron", "pond", "otter") == {"heron": 1, "pond": 1, "otter": 0}
    put(store, "two herons", "an otter")
    assert frequencies(store, "heron", "pond", "otter") == {"heron": 2, "pond": 1, "otter": 1}


@pytest.mark.sqlite
def test_while_nothing_changes_a_common_word_is_not_counted_again(store: Store) -> None:
    put(store, "a heron by the pond")
    assert frequencies(store, "heron") == {"heron": 1}
    with store.database.write() as connection:
        # No change of a fact is without an entry in the journal; this one shows what is looked at.
        run(connection, "INSERT INTO facts_fts (facts_fts) VALUES ('delete-all')")
    assert frequencies(store, "heron") == {"heron": 1}
    put(store, "an otter")
    assert frequencies(store, "heron") == {"heron": 0}


class BrokenOffError(Exception):
    """Whatever ends a transaction halfway."""


def begin(store: Store, text: str) -> None:
    with store.write(AUTHOR) as tx:
        tx.add(Fact(text))
        assert fact_frequencies(tx.connection, ["heron"]) == {"heron": 1}
        raise BrokenOffError


def test_what_is_rolled_back_is_not_kept(store: Store) -> None:
    with pytest.raises(BrokenOffError):
        begin(store, "a heron")
    with store.write(AUTHOR) as tx:
        tx.add(Fact("an otter"))
        assert fact_frequencies(tx.connection, ["heron", "otter"]) == {"heron": 0, "otter": 1}
