"""The dataclass and the table are one thing."""

from __future__ import annotations

import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.hooks.types import Channel
from perdure.store.fact import CATEGORIES, COLUMNS, SELECT, Fact, from_row, join_tags, split_tags, to_row
from perdure.store.sql import run
from perdure.store.store import Store

PROMISED = """
id text why category importance entity key value source created_at source_date decay_class expires_at
last_confirmed_at confidence summary tags normalized_hash recall_count access_count last_accessed
last_accessed_at valid_from valid_until superseded_at superseded_by supersedes_id tier scope scope_target
decay_freeze_until reinforced_count embedding_model provenance_session source_turn extraction_method
extraction_confidence preserve_tags metadata pinned review_state change_seq
"""
GENERATED = 2
"""What `PRAGMA table_xinfo` says of a virtual generated column."""

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
words = texts.filter(bool)
times = st.floats(0, 1e11, allow_nan=False)
shares = st.floats(0, 1)
counts = st.integers(0, 2**62)
tags = st.lists(texts, max_size=4).map(join_tags).map(split_tags)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
facts = st.builds(
    Fact,
    text=words,
    id=st.uuids().map(str),
    why=st.none() | texts,
    category=st.sampled_from(CATEGORIES),
    importance=shares,
    entity=st.none() | texts,
    key=st.none() | texts,
    value=st.none() | texts,
    source=texts,
    channel=st.sampled_from(Channel),
    created_at=times,
    source_date=st.none() | times,
    expires_at=st.none() | times,
    decay_freeze_until=st.none() | times,
    last_confirmed_at=st.none() | times,
    confidence=shares,
    summary=st.none() | texts,
    tags=tags,
    preserve_tags=st.booleans(),
    normalized_hash=st.text(string.hexdigits, max_size=64),
    recall_count=counts,
    access_count=counts,
    reinforced_count=counts,
    last_accessed=st.none() | times,
    valid_from=st.none() | times,
    valid_until=st.none() | times,
    superseded_at=st.none() | times,
    superseded_by=st.none() | texts,
    supersedes_id=st.none() | texts,
    forgotten_at=st.none() | times,
    scope_target=texts,
    provenance_session=st.none() | texts,
    extraction_confidence=shares,
    pinned=st.booleans(),
    metadata=st.dictionaries(texts, json_values, max_size=3),
    change_seq=counts,
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = Store(Path(tmp_path_factory.mktemp("store")))
    yield store
    store.close()


def table(store: Store) -> dict[str, int]:
    """Return the columns of the facts table, each with its kind."""
    with store.database.read() as connection:
        return {row[1]: row[6] for row in run(connection, "PRAGMA table_xinfo(facts)")}


def test_the_dataclass_has_the_columns_of_the_table(store: Store) -> None:
    stored = {name for name, kind in table(store).items() if kind != GENERATED}
    assert stored - {"seq", "entity_folded", "key_folded"} == set(COLUMNS)


def test_every_promised_column_is_there(store: Store) -> None:
    assert set(PROMISED.split()) <= set(table(store))


def test_the_readable_access_time_is_derived(store: Store) -> None:
    assert table(store)["last_accessed_at"] == GENERATED
    values = to_row(Fact("a", id="1", last_accessed=1_800_000_000.25))
    with store.database.write() as connection:
        marks = ", ".join("?" * len(COLUMNS))
        run(connection, f"INSERT INTO facts ({', '.join(COLUMNS)}) VALUES ({marks})", values)
        [row] = run(connection, "SELECT last_accessed_at FROM facts")
    assert row == ("2027-01-15T08:00:00.250Z",)


@settings(max_examples=100, deadline=None)
@given(facts)
def test_a_fact_comes_back_from_the_database_as_it_went_in(shared: Store, fact: Fact) -> None:
    marks = ", ".join("?" * len(COLUMNS))
    with shared.database.write(durable=False) as connection:
        run(connection, "DELETE FROM facts")
        run(connection, f"INSERT INTO facts ({', '.join(COLUMNS)}) VALUES ({marks})", to_row(fact))
        [row] = run(connection, f"SELECT {SELECT} FROM facts")
    assert from_row(row) == fact


@pytest.mark.parametrize(
    ("given_tags", "kept"),
    [
        (("API", "api", " Deploy "), ("api", "deploy")),
        (("a,b",), ("a b",)),
        (("", "  ", ","), ()),
        ((), ()),
    ],
)
def test_tags_are_trimmed_and_each_once(given_tags: tuple[str, ...], kept: tuple[str, ...]) -> None:
    assert split_tags(join_tags(given_tags)) == kept


@given(st.lists(texts, max_size=6))
def test_joining_tags_again_changes_nothing(given_tags: list[str]) -> None:
    once = join_tags(given_tags)
    assert join_tags(split_tags(once)) == once


def test_what_was_said_earlier_than_stored_counts_from_then() -> None:
    assert Fact("a", created_at=9.0).effective_date == 9.0
    assert Fact("a", created_at=9.0, source_date=0.0).effective_date == 0.0
