"""What an agent noted by itself and that orders something comes up only where it is asked for.

A page may have told the model to store it. Once the user says the same, or approves it, it is like any other memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, suppress
from typing import Final

from perdure.errors import StoreError
from perdure.store.agent_records import METHOD
from perdure.store.fact import Fact
from perdure.store.sql import Connection
from perdure.store.transaction import REFLECTED
from perdure.store.trust import AGENTS_NOTE, reviewed
from perdure.text.lexicon import listed
from perdure.text.normalise import fold

UNCONFIRMED: Final = "an unconfirmed instruction of an agent"
"""The verdict on them."""
_OWN: Final = frozenset({METHOD, REFLECTED})
"""What perdure itself derived, and no tool can claim."""
_ORDERS = listed("recall", "words", "orders")


def unconfirmed(read: Callable[[], AbstractContextManager[Connection]], facts: Iterable[Fact]) -> Collection[str]:
    """Return the ids of those facts that an agent noted, that order something, and that nobody has approved.

    `read` opens a read of the store, and is called where there is something to be looked up.
    """
    found = [fact.id for fact in facts if _is_order(fact)]
    if found:
        with suppress(StoreError), read() as connection:
            return set(found) - reviewed(connection, found)
    return found


def _is_order(fact: Fact) -> bool:
    return fact.channel in AGENTS_NOTE and fact.extraction_method not in _OWN and bool(_ORDERS.search(fold(fact.text)))
