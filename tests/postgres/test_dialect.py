"""The statements of the store reach the server as they are written, but for the places of their values."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import Filter, Memory, TurnContext
from perdure.postgres.connection import PostgresConnection
from perdure.postgres.dialect import PostgresDialect, placed
from perdure.store.sql import Dialect

MANY = 120


def in_places(sql: str) -> str:
    """Return a statement with the driver's places, letter by letter."""
    quoted, made = False, []
    for letter in sql:
        quoted ^= letter == "'"
        made.append("%s" if letter == "?" and not quoted else "%%" if letter == "%" else letter)
    return "".join(made)


@given(st.text(st.sampled_from("?%'s \"a"), max_size=30))
def test_a_question_mark_is_a_place_unless_it_is_quoted(sql: str) -> None:
    assert placed(sql) == in_places(sql)


def test_what_one_engine_says_the_other_says_too() -> None:
    said = {name for name in vars(Dialect) if not name.startswith("_")}
    assert said == {name for name in vars(PostgresDialect) if not name.startswith("_")}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """Each statement that was run, and what the driver was given for it."""
    seen: list[tuple[str, list[str]]] = []
    under_way = threading.local()

    def outer(run: Callable[..., Any]) -> Callable[..., Any]:
        def asked(self: PostgresConnection, statement: str, *rest: Any) -> Any:
            under_way.given = []
            seen.append((statement, under_way.given))
            try:
                return run(self, statement, *rest)
            finally:
                under_way.given = None

        return asked

    def inner(run: Callable[..., Any]) -> Callable[..., Any]:
        def passed(self: Any, statement: Any, *rest: Any, **named: Any) -> Any:
            if getattr(under_way, "given", None) is not None:
                under_way.given.append(statement)
            return run(self, statement, *rest, **named)

        return passed

    for name in ("execute", "executemany"):
        monkeypatch.setattr(PostgresConnection, name, outer(getattr(PostgresConnection, name)))
        monkeypatch.setattr(psycopg.ClientCursor, name, inner(getattr(psycopg.ClientCursor, name)))
    return seen


@pytest.mark.postgres
def test_the_driver_is_given_each_statement_as_it_is_written(
    opened: Callable[..., Memory], told: list[tuple[str, list[str]]]
) -> None:
    memory = opened(embedder="hash")
    turn = TurnContext(session_id="s1")
    memory.turns.after([{"role": "user", "content": "The staging database is called heron."}], True, turn)
    assert memory.settle()
    stored = [memory.store(f"The port is {at} %.", entity="server", key="port", value=str(at)) for at in (1, 2)]
    memory.store("Always answer in short sentences.")
    for one, other in pairwise(each.id for each in memory.admin.list()):
        memory.link(one, other)
    assert memory.recall("What is the staging database called?")
    assert memory.turns.before("Which port has the server?", turn)
    memory.admin.inventory(Filter(entity="server"))
    memory.forget(stored[-1].id)
    memory.undo()
    memory.admin.prune()
    assert memory.admin.verify() == []
    memory.admin.stats()
    memory.status()
    assert len({statement for statement, _ in told}) > MANY
    assert [(statement, given) for statement, given in told if given != [in_places(statement)]] == []
