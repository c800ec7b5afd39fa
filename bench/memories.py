"""Memories as several benches open, fill and ask them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import apsw

from perdure.api.memory import Memory
from perdure.hooks.fake_host import FakeHost
from perdure.hooks.host import HookRunner
from perdure.hooks.types import RecallItem, TurnContext
from perdure.plugin.plugin import hookimpls_for
from perdure.store.fact import Fact
from perdure.store.listing import MAX_LIMIT, Filter
from perdure.store.scope import Scope
from perdure.text.normalise import fts_text, match_query, match_terms


@contextmanager
def opened(home: Path | str | None = None, /, **settings: Any) -> Iterator[Memory]:
    """Open a memory, ready to embed; without a folder, in one that goes with it."""
    with tempfile.TemporaryDirectory() as folder, Memory.open(home or folder, **settings) as memory:
        memory.ready()
        yield memory


def live(memory: Memory, scope: str | None = None) -> Iterator[Fact]:
    """Yield every live memory, or those of a scope."""
    chosen = Filter(scope=Scope.parse(scope) if scope else None)
    for offset in count(0, MAX_LIMIT):
        page = memory.admin.list(chosen, limit=MAX_LIMIT, offset=offset)
        yield from page
        if len(page) < MAX_LIMIT:
            return


def changed(memory: Memory, scope: str, known: Sequence[str], new: str) -> tuple[list[str], set[str], set[str]]:
    """Store what was known and then a new statement; return the ids of the known ones, of those gone, of those come."""
    ids = [memory.store(text, scope=scope).id for text in known]
    before = {fact.id for fact in live(memory, scope)}
    memory.store(new, scope=scope)
    after = {fact.id for fact in live(memory, scope)}
    return ids, before - after, after - before


def brought(memory: Memory, prompt: str, session: str, **context: Any) -> Sequence[RecallItem]:
    """Return what comes up for a prompt in a host's turn."""
    recall = memory.turns.before(prompt, TurnContext(session_id=session, host="bench", **context))
    return recall.items if recall else ()


def say(memory: Memory, text: str, session: str) -> int:
    """End a turn in which the user said this; return how many messages were taken in."""
    return memory.turns.after([{"role": "user", "content": text}], True, TurnContext(session_id=session, host="bench"))


class Words:
    """Keyword search as anybody would build it: FTS5 with Porter's stemmer, stop words left out, any word."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._connection = apsw.Connection(":memory:")
        self._connection.execute("CREATE VIRTUAL TABLE said USING fts5 (text, tokenize='porter unicode61')")
        self._connection.executemany("INSERT INTO said VALUES (?)", ((fts_text(text),) for text in texts))

    def best(self, question: str, limit: int) -> list[int]:
        """Return the places of the texts with the most telling words in common, best first."""
        query = match_query(match_terms(question))
        sql = "SELECT rowid - 1 FROM said WHERE said MATCH ? ORDER BY rank LIMIT ?"
        return [place for (place,) in self._connection.execute(sql, (query, limit))] if query else []


def host_of(memory: Memory, **options: Any) -> FakeHost:
    """Return a host with this memory, started."""
    host = FakeHost(runner_of(memory), **options)
    host.start()
    return host


def runner_of(memory: Memory) -> HookRunner:
    """Return the hooks of a host with this memory."""
    runner = HookRunner()
    runner.register(hookimpls_for(memory=memory))
    return runner
