"""Nobody reads what belongs to others, by no way of reading."""

from __future__ import annotations

import contextlib
import tempfile
import unicodedata
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.embed.deterministic import HashEmbedder
from perdure.errors import AmbiguousIdError, NotFoundError, ScopeError
from perdure.hooks.types import Channel
from perdure.index.vector_index import ExactIndex
from perdure.lance.indexer import Indexer
from perdure.lance.table import LanceIndex
from perdure.store.fact import Fact
from perdure.store.scope import BOUND, EVERYONE, GLOBAL, KINDS, OWNERS, Audience, Scope, bound, checked_id
from perdure.store.search import View, by_hash, by_ids, by_prefix, enumerated, lexical, lookup
from perdure.store.spaces import VectorSpace
from perdure.store.sql import dialect, run
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.text.normalise import fingerprint
from tests.kit import for_each

OWNER = Scope("user", "owner")
MALFORMED = ["", " ", "\t", " a", "a ", "a\n", "a\0b", "\u200b", "a\u202eb", "\ud800", "\ue000", "x" * 257]
TEXT = "the heron nests in spring"
EMBEDDER = HashEmbedder(8)
Caller = tuple[str | None, str | None, str | None]
"""User, agent and session."""

# Few ids, and such as look alike or like operators, so that random callers meet random owners.
ids = st.sampled_from(["main", "Main", "owner", "a", "a:b", "o'neil", "x' OR 'x'='x", "%", "Ж", "null", "user:a"])


def named(kind: str) -> st.SearchStrategy[str]:
    """Return ids of a kind: any that may be given, and often such as look like more than one id."""
    pieces = st.sampled_from(["main", "a", " ", "agent:", "user:", "*", "owner", "session:", "\u0301", "\u2028"])
    texts = ids | st.lists(pieces, max_size=6).map("".join) | st.text(max_size=20)
    return texts.map(lambda text: unicodedata.normalize("NFC", text)).filter(lambda text: is_id(text, kind))


def is_id(text: str, kind: str) -> bool:
    with contextlib.suppress(ScopeError):
        return bool(checked_id(text, kind))
    return False


def scopes_of(name: Callable[[str], st.SearchStrategy[str]]) -> st.SearchStrategy[Scope]:
    """Return scopes of every form, of ids that `name` gives for a kind."""
    agent, user = st.none() | name("agent"), st.none() | name("user")
    return (
        st.just(GLOBAL)
        | st.one_of(*(name(kind).map(partial(Scope, kind)) for kind in KINDS if kind not in ("global", *BOUND)))
        | st.builds(lambda name, user: bound("agent", name, user=user), name("agent"), user | st.just(EVERYONE))
        | st.builds(partial(bound, "session"), name("session"), agent, user)
    )


scopes = scopes_of(lambda kind: ids)
maybe = st.none() | ids | st.sampled_from(["*", *MALFORMED])
audiences = st.builds(
    lambda user, agent, session, others: Audience.of(user=user, agent=agent, session=session, others=others),
    maybe,
    maybe,
    maybe,
    st.lists(ids.map("project:{}".format), max_size=2),
)


def filled(folder: Path, owners: list[Scope]) -> tuple[Store, dict[str, Scope]]:
    """Return a store with the same fact for every owner, and whose each id is."""
    store = Store(folder, clock=ManualClock())
    identity = EMBEDDER.identity
    store.adopt_space(VectorSpace(identity.id, identity.dims, asdict(identity)))
    whose = {}
    with store.write(Author(Channel.LIBRARY)) as tx:
        for number, owner in enumerate(owners):
            fact = tx.add(
                Fact(TEXT, id=f"abcdef01-{number:04}", entity="heron", key="season",
                     scope=owner.kind, scope_target=owner.target)
            )  # fmt: skip
            whose[fact.id] = owner
    indexer = Indexer(store, lambda: EMBEDDER, 50)
    while indexer.step():
        pass
    indexer.close()
    return store, whose


def by_sql(store: Store, view: View, known: list[str]) -> list[set[str]]:
    """Return what each way of reading through SQL brings."""
    with store.database.read() as connection:
        prefixed = set()
        for fact_id in [*known, "abcdef01"]:
            with contextlib.suppress(NotFoundError, AmbiguousIdError):
                prefixed.add(by_prefix(connection, fact_id, view).id)
        return [
            set(by_ids(connection, known, view)),
            prefixed,
            {fact.id for fact in lookup(connection, "heron", "season", view)},
            {fact.id for fact in lookup(connection, "heron", None, view)},
            {fact.id for fact in by_hash(connection, fingerprint(TEXT), view)},
            {hit.fact.id for hit in lexical(connection, "heron spring", view, 50).hits},
        ]


@settings(max_examples=20, deadline=None)
@given(st.lists(scopes, min_size=1, max_size=8), st.lists(audiences, min_size=5, max_size=5), st.booleans())
def test_no_way_of_reading_crosses_a_scope(owners: list[Scope], callers: list[Audience], former: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, whose = filled(Path(folder), owners)
        space = EMBEDDER.identity
        exact = ExactIndex(store.database, space.id, space.dims)
        lance = LanceIndex(store.lance_folder, space.id, space.dims)
        query = EMBEDDER.embed([TEXT], query=True)[0]
        for audience in callers:
            view = View(audience, store.clock.now(), include_superseded=former)
            allowed = {fact_id for fact_id, owner in whose.items() if audience.may_read(owner)}
            for index in (exact, lance):
                assert {hit.id for hit in index.search(query, view, 50)} == allowed
            for found in by_sql(store, view, list(whose)):
                assert found == allowed
        lance.close()
        store.close()


@for_each(("field", "bad"), product(["user", "agent", "session"], MALFORMED))
def test_a_malformed_id_reads_only_what_is_everybodys_and_writes_nothing(field: str, bad: str) -> None:
    audience = Audience.of(**{field: bad})
    assert audience.scopes == {GLOBAL}
    for scope in (None, GLOBAL, OWNER):
        with pytest.raises(ScopeError):
            audience.writable(scope)


def test_a_malformed_project_closes_the_whole_audience() -> None:
    assert Audience.of(agent="a", others=["project:good", "project:"]) == Audience(frozenset({GLOBAL}), None)


@pytest.mark.parametrize("agent", ["main", "Main", "default", "owner", "global", "a"])
def test_main_is_an_agent_like_any_other(agent: str) -> None:
    audience = Audience.of(agent=agent)
    assert audience.scopes == {GLOBAL, OWNER, Scope("agent", agent), Scope("agent", f"{agent} user:*")}
    assert audience.home == Scope("agent", agent)


def test_without_an_agent_no_agents_memory_is_seen() -> None:
    audience = Audience.of()
    assert audience.scopes == {GLOBAL, OWNER}
    assert not audience.may_read(Scope("agent", "main"))
    assert audience.writable() == OWNER


def test_only_readable_scopes_are_writable() -> None:
    audience = Audience.of(agent="a", session="s", others=["project:p"])
    for scope in audience.scopes:
        assert audience.writable(scope) == scope
    for scope in (Scope("agent", "b"), Scope("session", "t"), Scope("custom", "c")):
        with pytest.raises(ScopeError, match="agent:a"):
            audience.writable(scope)


@given(scopes_of(named))
def test_a_scope_is_read_back_from_its_text(scope: Scope) -> None:
    assert Scope.parse(str(scope)) == scope


@given(named("session"), st.none() | named("agent"), st.none() | named("user"))
def test_a_scope_names_what_it_was_made_of(name: str, agent: str | None, user: str | None) -> None:
    scope = bound("session", name, agent, user)
    assert (scope.name, scope.agent, scope.user) == (name, agent, None if user == "owner" else user)
    if agent is not None:
        scope = bound("agent", agent, user=user)
        assert (scope.name, scope.agent, scope.user) == (agent, agent, None if user == "owner" else user)


callers = st.tuples(st.none() | named("user"), st.none() | named("agent"), st.none() | named("session"))


@given(callers, callers)
def test_callers_who_differ_share_only_what_is_for_all(one: Caller, other: Caller) -> None:
    first, second = (
        Audience.of(user=user, agent=agent, session=session, others=["project:heron"])
        for user, agent, session in (one, other)
    )
    common = first.scopes & second.scopes
    user = one[0] or "owner"
    if user != (other[0] or "owner"):
        assert common <= {GLOBAL, Scope("project", "heron"), bound("agent", one[1] or "none", user="*")}
        assert first.home not in second.scopes
        assert second.home not in first.scopes
    elif one[1] != other[1]:
        assert common == {GLOBAL, Scope("project", "heron"), Scope("user", user)}
    elif one[2] != other[2]:
        assert not any(scope.kind == "session" for scope in common)
        assert first.home == second.home
    else:
        assert first == second


@given(callers, st.sampled_from(BOUND), named("session") | named("agent"))
def test_a_short_name_means_something_of_the_caller(caller: Caller, kind: str, name: str) -> None:
    user, agent, session = caller
    audience = Audience.of(user=user, agent=agent, session=session)
    for known in (name, agent, session):
        if known is None or not is_id(known, kind):
            continue
        short = Scope(kind, known)
        meant = audience.meant(short)
        assert meant == short or (meant in audience.scopes and meant.name == known)
        assert audience.meant(meant) == meant
        assert meant != audience.home or short == audience.home


@pytest.mark.parametrize("text", ["", "main", "agent", "agent:", "agent: a", "global:x", "Agent:a", "user:\n", "user:*",
                                  "agent:a user:", "agent: user:a", "agent:a agent:b", "agent:a user:owner",
                                  "session:s user:*", "session:s agent:", "session:s agent:a user: b"])  # fmt: skip
def test_what_is_no_scope_is_refused(text: str) -> None:
    with pytest.raises(ScopeError):
        Scope.parse(text)


def test_ids_are_compared_in_one_unicode_form() -> None:
    assert checked_id("e\u0301va", "agent") == "\u00e9va"
    assert Audience.of(agent="e\u0301va") == Audience.of(agent="\u00e9va")
    assert checked_id("x" * 256, "agent") == "x" * 256


def test_agents_of_one_folder_do_not_meet(tmp_path: Path) -> None:
    def opened(agent: str | None, action: Callable[[Memory], object]) -> object:
        with Memory.open(tmp_path, agent=agent, embedder="none") as memory:
            return action(memory)

    opened("main", lambda memory: memory.store("heron is main's", entity="heron"))
    opened(None, lambda memory: memory.store("heron is the user's", entity="heron"))
    for agent, texts in {
        "main": {"heron is main's", "heron is the user's"},
        "Main": {"heron is the user's"},
        None: {"heron is the user's"},
    }.items():
        assert opened(agent, lambda memory: {fact.text for fact in memory.lookup("heron")}) == texts
    for agent in ("", " main"):
        with pytest.raises(ScopeError):
            opened(agent, Memory.settle)
    for agent in ("", " main", "\ud800"):
        with pytest.raises(ScopeError):
            opened(agent, lambda memory: memory.store("heron is nobody's"))
    with pytest.raises(ScopeError):
        opened("main", lambda memory: memory.store("heron is another's", scope="agent:other"))


@pytest.mark.parametrize("other", ["agent:b", "user:eve", "session:s2", "global:x", "nothing:x", "project"])
def test_only_shared_scopes_can_be_added_and_anything_else_closes_all(other: str) -> None:
    assert Audience.of(agent="a", others=[other]) == Audience(frozenset({GLOBAL}), None)


def test_custom_scopes_are_read_and_written_by_name(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="none", scopes=["custom:team"]) as memory:
        memory.store("The team lunch is on Thursdays.", scope="custom:team")
        assert memory.recall("When is the team lunch?") is not None
    with Memory.open(tmp_path, embedder="none") as memory:
        assert memory.recall("When is the team lunch?") is None


def test_the_owner_s_own_tools_read_what_names_no_other_user(tmp_path: Path) -> None:
    owners = (
        "global",
        "user:owner",
        "agent:a",
        "agent:a user:*",
        "session:s agent:a",
        "project:x user:y",
        "custom:team",
    )
    others = ("user:eva", "agent:a user:eva", "session:s user:eva", "agent:a user:eva x")
    store = Store(tmp_path)
    with store.write(Author(Channel.LIBRARY)) as tx:
        for scope in map(Scope.parse, (*owners, *others)):
            tx.add(Fact(f"It is of {scope}.", scope=scope.kind, scope_target=scope.target))
        condition, values = OWNERS.sql(dialect(tx.connection).in_scopes)
        rows = run(tx.connection, f"SELECT scope, scope_target FROM facts WHERE {condition}", values)
        assert {str(Scope(*row)) for row in rows} == set(owners)
        assert {str(each) for each in enumerated(tx.connection, OWNERS).scopes} == set(owners)
        assert enumerated(tx.connection, Audience.of()) == Audience.of()
    store.close()
    everything = [Scope.parse(text) for text in (*owners, *others)]
    assert [str(scope) for scope in OWNERS.among(everything)] == list(owners)
    assert not OWNERS.may_write(Scope.parse("user:eva"))
    assert OWNERS.writable() == Scope("user", "owner")
