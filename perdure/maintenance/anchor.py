"""Anchors: a line that says where a store was, for its owner to keep elsewhere.

Whoever puts a whole data folder back as it was puts back what it remembers, too. Only what lies outside tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from perdure.errors import InputError
from perdure.maintenance.checks import RECOVER
from perdure.regex import lazy
from perdure.store.finding import Finding
from perdure.store.rollback_guard import Place
from perdure.store.store import Store

_LINE = lazy(r"perdure-anchor 1 ([0-9a-f]{16}) (\d+) ([0-9A-F]{32}|-) (\S+)")


def anchor(store: Store) -> str:
    """Return the anchor of a store as it is now: a line of its name, the change it is at, that change's seal, the time.

    Nobody can tell from it what is stored, and it need not be kept secret.
    """
    with store.database.read() as connection:
        place = Place.of(connection)
    at = datetime.fromtimestamp(store.clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"perdure-anchor 1 {place.store} {place.seq} {place.seal or '-'} {at}"


def unanchored(store: Store, text: str) -> Iterator[Finding]:
    """Yield every anchor in a text, one a line, that the store does not come through; InputError if there is none."""
    found = _LINE.findall(text)
    if not found:
        raise InputError("there is no anchor in it; `perdure anchor` prints one")
    with store.database.read() as connection:
        own = Place.of(connection).store
        for name, seq, seal, at in found:
            where = f"anchor of {at}, change {seq}"
            if name != own:
                yield Finding("anchor is of another store", where, "look whether this is the folder that you mean")
            elif not Place(name, int(seq), seal.strip("-")).is_in(connection):
                shared = store.database.shared
                todo = "restore a later backup of the server" if shared else RECOVER
                hint = f"{todo}; if you went back on purpose, keep a new anchor"
                yield Finding(f"{'the database' if shared else 'facts.db'} is older than an anchor", where, hint)
