"""Names of things are read once, and anew when a memory was changed or has ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from perdure.clock import ManualClock
from perdure.hooks.types import Channel
from perdure.store import lifecycle
from perdure.store.aliases import MAX_CHARACTERS, MAX_WORDS, KnownNames, words_of
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.store import Store
from perdure.store.transaction import Author

ALIAS = Fact(
    "GHA stands for GitHub Actions.", channel=Channel.USER, scope="user", scope_target="owner",
    entity="GitHub Actions", key="alias", value="GHA",
)  # fmt: skip
USER = Author(Channel.USER)


@pytest.fixture
def beside(store: Store, clock: ManualClock) -> Callable[..., tuple[str, ...]]:
    """What else something is called, for the owner or somebody else."""
    known = KnownNames(store.database)
    return lambda name, audience=Audience.of(): known.of(audience, clock.now()).beside(name)  # noqa: B008 - frozen


def put(store: Store, **values: object) -> Fact:
    with store.write(USER) as tx:
        return tx.add(replace(ALIAS, **values))  # type: ignore[arg-type]


def test_both_names_lead_to_each_other_until_it_is_forgotten(store: Store, beside: Callable[..., object]) -> None:
    assert beside("GHA") == ()
    fact = put(store)
    assert beside("gha") == ("GitHub Actions",)
    assert beside("github  ACTIONS") == ("GHA",)
    with store.write(USER) as tx:
        lifecycle.forget(tx, fact.id)
    assert beside("GHA") == ()


def test_what_is_removed_for_good_is_known_no_longer(store: Store, beside: Callable[..., object]) -> None:
    fact = put(store)
    assert beside("GHA")
    with store.write(USER) as tx:
        tx.remove(fact.id, "prune", {})
    assert beside("GHA") == ()


def test_an_end_counts_without_a_change(store: Store, clock: ManualClock, beside: Callable[..., object]) -> None:
    put(store, expires_at=clock.now() + 60.0)
    assert beside("GHA")
    clock.advance(61.0)
    assert beside("GHA") == ()


def test_names_stay_with_those_who_may_read_them(store: Store, beside: Callable[..., object]) -> None:
    put(store, scope="project", scope_target="heron")
    assert beside("GHA") == ()
    assert beside("GHA", Audience.of(others=["project:heron"])) == ("GitHub Actions",)
    assert beside("GHA", Audience.of(user="alice", others=["project:lake"])) == ()


@pytest.mark.parametrize(
    "values",
    [
        {"channel": Channel.TOOL_UNASKED},
        {"channel": Channel.IMPORT},
        {"review_state": "pending"},
        {"key": "name", "entity": "user"},
        {"key": "first name"},
        {"value": None},
        {"value": "+++"},
        {"value": "github actions"},
        {"value": "x" * (MAX_CHARACTERS + 1)},
        {"value": "a " * (MAX_WORDS + 1)},
    ],
)
def test_what_is_no_name_of_a_thing_or_not_the_users_word_is_left_out(
    store: Store, beside: Callable[..., object], values: dict[str, object]
) -> None:
    put(store, **values)
    assert beside("GHA") == beside("GitHub Actions") == beside("user") == ()


def test_all_names_of_a_thing_stand_for_each_other(store: Store, beside: Callable[..., object]) -> None:
    put(store)
    put(store, key="code_name", value="the robots")
    assert beside("GHA") == ("GitHub Actions", "the robots")


def test_words_of_a_name() -> None:
    assert words_of("Café-Zoë's C++") == ("cafe", "zoe", "s", "c++")
    assert words_of("苍鹭") == ("苍", "鹭")
    assert words_of("") == words_of("...") == ()
