"""What tests of many parts say and look at: memories on one folder, one clock, and somebody who talks to them."""

from __future__ import annotations

import functools
import inspect
import logging
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.hooks.fake_host import FakeHost
from perdure.hooks.types import Channel, TurnContext
from perdure.store.fact import Fact
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author

OpenMemory = Callable[..., Memory]
"""Takes a folder, if not `home`, and settings."""
OpenHost = Callable[..., tuple[FakeHost, Memory]]
START = 1_800_000_000.0
"""The manual clock's first moment: 15 January 2027, 08:00 UTC."""
DAY = 86_400.0
AUTHOR = Author(Channel.LIBRARY, "test")
Test = Callable[..., None]
LONG = 200
"""Characters of a value beyond which a failure shows its beginning alone."""


def for_each(names: str | Sequence[str], cases: Iterable[Any], *, by: str | None = None) -> Callable[[Test], Test]:
    """Have a test go through all cases as one item, and fail with a list of those that do not hold.

    It is written like `pytest.mark.parametrize`, and is for cases that need nothing of their own: they share the
    fixtures. With `by`, one of the names, all cases that have the same of it are an item.
    """
    named = (names,) if isinstance(names, str) else tuple(names)
    items: dict[Any, list[dict[str, Any]]] = {}
    for case in cases:
        values = dict(zip(named, (case,) if isinstance(names, str) else case, strict=True))
        items.setdefault(values[by] if by else None, []).append(values)
    assert items, "there are no cases"

    def over_cases(test: Test) -> Test:
        @functools.wraps(test)
        def one_item(*args: Any, **given: Any) -> None:
            chosen = items[given.get(by) if by else None]
            failed = [(case, error) for case in chosen if (error := _failure(test, args, given | case))]
            if failed:
                told = "\n".join(_told(case, error) for case, error in failed)
                raise AssertionError(f"{len(failed)} of {len(chosen)} cases failed:\n{told}") from failed[0][1]

        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in named or name == by]
        one_item.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return pytest.mark.parametrize(by, items)(one_item) if by else one_item

    return over_cases


def _failure(test: Test, args: tuple[Any, ...], values: dict[str, Any]) -> BaseException | None:
    try:
        test(*args, **values)
    except (Exception, pytest.fail.Exception) as error:
        # Out of time ends the item, not just the case.
        if "from pytest-timeout" in str(error):
            error.add_note(f"in the case {_shown(values)}")
            raise
        return error
    return None


def _told(case: dict[str, Any], error: BaseException) -> str:
    # The first frame is the one above, the second the test's, if it could be called.
    line = traceback.extract_tb(error.__traceback__)[:2][-1].lineno
    return f"- {_shown(case)}, line {line}:\n{indent(f'{type(error).__name__}: {error}', '    ')}"


def _shown(values: dict[str, Any]) -> str:
    shown = {name: repr(value) for name, value in values.items()}
    return ", ".join(f"{name}={text[:LONG]}{'…' * (len(text) > LONG)}" for name, text in shown.items())


@contextmanager
def machine_in(zone: str) -> Iterator[None]:
    """Have the machine's clock show the time of a zone."""
    before = os.environ["TZ"]
    try:
        os.environ["TZ"] = zone
        time.tzset()
        yield
    finally:
        os.environ["TZ"] = before
        time.tzset()


def say(memory: Memory, *texts: str, session: str = "s") -> None:
    """Let a turn with these messages be captured."""
    messages = [{"role": "user", "content": text} for text in texts]
    assert memory.turns.after(messages, True, TurnContext(session_id=session)) == len(texts)
    assert memory.settle()


def nobody(memory: Memory) -> Memory:
    """Return an open memory as a caller whose id fails closed has it."""
    return Memory(memory._engine, TurnContext(agent_id=""))


def recalled(memory: Memory, prompt: str, **asked: Any) -> list[str]:
    """Return the texts that come up for a prompt, best first."""
    recall = memory.recall(prompt, **asked)
    return [item.text for item in recall.items] if recall else []


def put(home: Path, *facts: Fact) -> None:
    """Write the owner's facts just as they are, beside the open memory, as another process would."""
    store = Store(home, clock=ManualClock(START))
    with store.write(Author(Channel.LIBRARY)) as tx:
        for fact in facts:
            tx.add(replace(fact, scope="user", scope_target="owner"))
    store.close()


def kept(home: Path) -> list[str]:
    """Return the texts of all facts in a data folder, in the order they came."""
    store = Store(home)
    try:
        with store.database.read() as connection:
            return [row[0] for row in run(connection, "SELECT text FROM facts ORDER BY seq")]
    finally:
        store.close()


def add(store: Store, *facts: Fact | str) -> list[Fact]:
    """Write facts just as they are; a text is one with nothing else to it."""
    with store.write(AUTHOR) as tx:
        return [tx.add(Fact(fact) if isinstance(fact, str) else fact) for fact in facts]


def all_facts(store: Store) -> dict[str, Fact]:
    """Return all facts by their ids, in the order they came."""
    with store.write(AUTHOR) as tx:
        return {fact_id: tx.fact(fact_id) for fact_id in ids_of(store)}


def by_text(store: Store) -> dict[str, Fact]:
    """Return all facts by their texts."""
    return {fact.text: fact for fact in all_facts(store).values()}


def ids_of(store: Store) -> list[str]:
    """Return the ids of all facts, in the order they came."""
    with store.database.read() as connection:
        return [row[0] for row in run(connection, "SELECT id FROM facts ORDER BY seq")]


def bytes_of(folder: Path) -> bytes:
    """Return what all files of a folder hold."""
    return b"\0".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def deleted(home: Path) -> None:
    """Delete the facts of a data folder, and nothing else of it."""
    for path in home.glob("facts.db*"):
        path.unlink()


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what perdure told the operator."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("perdure") and record.levelno >= logging.WARNING
    ]
