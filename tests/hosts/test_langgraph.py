"""perdure as a LangGraph store: what LangGraph's own store in memory does, on disk and for one caller."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypedDict, cast

import pytest

pytest.importorskip("langgraph", reason="the extra `langchain` is not installed")

from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from perdure import Memory
from perdure.clock import ManualClock
from perdure.errors import InputError, ScopeError
from perdure.hooks.types import TurnContext
from perdure.hosts.langgraph import PerdureStore
from tests.kit import OpenMemory, bytes_of, for_each, kept, recalled, say

DRINKS = ("users", "ada", "drinks")
TEA = {"content": "I take my tea without milk.", "cups": 3, "hot": True, "of": {"kind": "green", "from": ["Japan", 5]}}
COFFEE = {"cups": 1.5, "content": "Coffee keeps me awake.", "hot": True, "of": None}
DOG = {"content": "My dog is called Fido.", "cups": "none"}


def letters(texts: list[str]) -> list[list[float]]:
    """Return vectors by which texts of the same letters are near each other."""
    return [[float(text.lower().count(each)) for each in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


@pytest.fixture(params=["LangGraph's own", "perdure's"])
def store(request: pytest.FixtureRequest, open_memory: OpenMemory) -> Iterator[BaseStore]:
    if request.param == "perdure's":
        yield PerdureStore(open_memory(embedder="hash").for_user("ada"))
    else:
        yield InMemoryStore(index=cast(Any, {"dims": 26, "embed": letters}))


@pytest.fixture
def drinks(store: BaseStore) -> BaseStore:
    for key, value in (("tea", TEA), ("coffee", COFFEE)):
        store.put(DRINKS, key, value)
    store.put(("users", "ada", "pets"), "dog", DOG)
    store.put(("users", "bob"), "tea", {"content": "Bob's."}, index=False)
    return store


def keys(store: BaseStore, *prefix: str, **asked: Any) -> list[tuple[str, str]]:
    return sorted((each.namespace[-1], each.key) for each in store.search(prefix, **asked))


def value_of(store: BaseStore, namespace: tuple[str, ...], key: str) -> Any:
    item = store.get(namespace, key)
    return item and item.value


def test_an_item_comes_back_as_it_was_put(drinks: BaseStore) -> None:
    item = drinks.get(DRINKS, "tea")
    assert item is not None
    assert (item.namespace, item.key, item.value) == (DRINKS, "tea", TEA)
    assert json.dumps(item.value) == json.dumps(TEA)
    assert item.created_at.utcoffset() == item.updated_at.utcoffset() is not None
    assert drinks.get(DRINKS, "water") is drinks.get(("users", "ada"), "tea") is drinks.get(("users",), "tea") is None
    assert drinks.get(("users", "bob"), "tea") == drinks.search(("users", "bob"))[0]


def test_the_same_text_under_two_keys_is_two_items(store: BaseStore) -> None:
    for key in ("a", "b", "A", "a"):
        store.put(("n",), key, {"text": "I take my tea without milk."})
    assert keys(store, "n") == [("n", "A"), ("n", "a"), ("n", "b")]
    store.delete(("n",), "a")
    assert keys(store, "n") == [("n", "A"), ("n", "b")]


def test_what_is_put_again_takes_the_place_of_what_was_there(drinks: BaseStore, clock: ManualClock) -> None:
    before = drinks.get(DRINKS, "tea")
    clock.advance(1)
    drinks.put(DRINKS, "tea", {"content": "No more tea."})
    after = drinks.get(DRINKS, "tea")
    assert before is not None
    assert after is not None
    assert after.value == {"content": "No more tea."}
    assert before.updated_at < after.updated_at
    assert keys(drinks, *DRINKS) == [("drinks", "coffee"), ("drinks", "tea")]


def test_what_is_deleted_is_gone_and_can_be_put_anew(drinks: BaseStore) -> None:
    drinks.delete(DRINKS, "tea")
    drinks.put(DRINKS, "coffee", None)  # type: ignore[arg-type]
    drinks.delete(DRINKS, "water")
    assert drinks.get(DRINKS, "tea") is drinks.get(DRINKS, "coffee") is None
    assert keys(drinks, *DRINKS) == drinks.search(DRINKS, query="tea") == []
    drinks.put(DRINKS, "tea", TEA)
    assert value_of(drinks, DRINKS, "tea") == TEA


@for_each(
    ("wanted", "found"),
    [
        ({"cups": 3}, {"tea"}), ({"cups": {"$eq": 3}}, {"tea"}), ({"hot": True}, {"tea", "coffee"}),
        ({"hot": {"$ne": True}}, {"dog"}), ({"of": {"kind": "green"}}, {"tea"}), ({"of": {"kind": "black"}}, set()),
        ({"of": {"from": ["Japan", 5]}}, {"tea"}), ({"of": {"from": ["Japan"]}}, set()),
        ({"hot": True, "cups": {"$gt": 1.5}}, {"tea"}), ({"hot": True, "cups": {"$gte": 1.5}}, {"tea", "coffee"}),
        ({"hot": True, "cups": {"$lt": 3}}, {"coffee"}), ({"hot": True, "cups": {"$lte": 3, "$gt": 2}}, {"tea"}),
        ({"of": {"from": {"$eq": ["Japan", 5]}}}, {"tea"}), ({"size": 1}, set()), ({}, {"tea", "coffee", "dog"}),
    ],
)  # fmt: skip
def test_filters(drinks: BaseStore, wanted: dict[str, Any], found: set[str]) -> None:
    assert {each.key for each in drinks.search(("users", "ada"), filter=wanted)} == found
    # A query ranks what the filter leaves.
    assert {each.key for each in drinks.search(("users", "ada"), filter=wanted, query="tea")} == found


def test_an_operator_that_is_unknown_is_refused(drinks: BaseStore) -> None:
    with pytest.raises(ValueError, match=r"\$near"):
        drinks.search(DRINKS, filter={"cups": {"$near": 3}})


def test_a_prefix_is_of_whole_labels(drinks: BaseStore) -> None:
    drinks.put(("users", "adam"), "tea", TEA)
    drinks.put(("Users", "ada"), "tea", TEA)
    assert keys(drinks, "users", "ada") == [("drinks", "coffee"), ("drinks", "tea"), ("pets", "dog")]
    assert len(keys(drinks, "users")) == 5
    assert len(keys(drinks)) == 6
    assert keys(drinks, "ada") == []


def test_pages(store: BaseStore) -> None:
    for number in range(25):
        store.put(("many",), f"{number:02}", {"number": number})
    pages = [store.search(("many",), limit=10, offset=offset) for offset in (0, 10, 20, 30)]
    assert [len(page) for page in pages] == [10, 10, 5, 0]
    assert [item.key for page in pages for item in page] == [f"{number:02}" for number in range(25)]
    assert len(store.search(("many",))) == 10
    chosen = store.search(("many",), filter={"number": {"$gte": 20}}, limit=3, offset=3)
    assert [item.key for item in chosen] == ["23", "24"]


def test_a_query_puts_the_nearest_first_and_what_is_not_indexed_last(drinks: BaseStore) -> None:
    drinks.put(DRINKS, "secret", {"content": TEA["content"]}, index=False)
    drinks.put(DRINKS, "part", {"content": "xyzzy", "note": "I take my tea without milk"}, index=["note"])
    found = drinks.search(("users", "ada"), query="I take my tea without milk")
    assert found[0].key == "part"
    assert (found[-1].key, found[-1].score) == ("secret", None)
    scores = [each.score for each in found[:-1]]
    assert scores == sorted(scores, key=lambda score: -(score or 0))
    assert all(-1 <= (each or 9) <= 1.001 for each in scores)
    assert [each.key for each in drinks.search(("users", "ada"), query="tea without milk I take", limit=1)] == ["part"]
    assert all(each.score is None for each in drinks.search(("users", "ada")))


def test_namespaces(store: BaseStore) -> None:
    for number, name in enumerate(["a.b.c", "a.b.d.e", "a.b.d.i", "a.b.f", "a.c.f", "b.a.f", "users.123"]):
        store.put(tuple(name.split(".")), f"id{number}", {"n": number})

    def told(**asked: Any) -> list[str]:
        return [".".join(name) for name in store.list_namespaces(**asked)]

    assert told() == ["a.b.c", "a.b.d.e", "a.b.d.i", "a.b.f", "a.c.f", "b.a.f", "users.123"]
    assert told(prefix=("a", "b")) == ["a.b.c", "a.b.d.e", "a.b.d.i", "a.b.f"]
    assert told(prefix=("a", "b"), max_depth=3) == ["a.b.c", "a.b.d", "a.b.f"]
    assert told(suffix=("f",)) == ["a.b.f", "a.c.f", "b.a.f"]
    assert told(prefix=("a", "*", "f")) == ["a.b.f", "a.c.f"]
    assert told(suffix=("*", "f"), limit=1, offset=1) == ["a.c.f"]
    assert told(prefix=("a",), suffix=("c", "f")) == ["a.c.f"]
    assert told(prefix=("a", "b", "c", "d", "e")) == told(prefix=("none",)) == []


def test_a_batch_reads_what_was_there_and_then_puts_the_last_word(store: BaseStore) -> None:
    store.put(("n",), "old", {"n": 0})
    done = store.batch([
        PutOp(("n",), "new", {"n": 1}), GetOp(("n",), "new"), GetOp(("n",), "old"), PutOp(("n",), "new", {"n": 2}),
        PutOp(("n",), "old", None), SearchOp(("n",)),
        ListNamespacesOp((MatchCondition("prefix", ("n",)),)),
    ])  # fmt: skip
    assert done[0] is done[1] is done[3] is done[4] is None
    assert done[2].value == {"n": 0}  # type: ignore[union-attr]
    assert [each.key for each in done[5]] == ["old"]  # type: ignore[union-attr]
    assert done[6] == [("n",)]
    assert value_of(store, ("n",), "new") == {"n": 2}
    assert store.get(("n",), "old") is None


def test_everything_can_be_awaited(store: BaseStore) -> None:
    async def told() -> tuple[Any, ...]:
        await asyncio.gather(*(store.aput(("n",), key, {"key": key}) for key in "abc"))
        await store.adelete(("n",), "b")
        found, gone = await store.aget(("n",), "a"), await store.aget(("n",), "b")
        some = await store.asearch(("n",), filter={"key": "c"})
        return found and found.value, gone, [each.key for each in some], await store.alist_namespaces()

    assert asyncio.run(told()) == ({"key": "a"}, None, ["c"], [("n",)])


@for_each("namespace", [(), ("a.b",), ("a", ""), ("langgraph", "a"), (5,)])
def test_a_namespace_that_does_not_fit_is_refused(store: BaseStore, namespace: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "k", {"n": 1})
    with pytest.raises(InvalidNamespaceError):
        asyncio.run(store.aput(namespace, "k", {"n": 1}))


def test_names_that_look_like_syntax_are_names(store: BaseStore) -> None:
    for key in ('a"b', "a}b", "a]", "%", "*", "", " ", "é", "a, b", '": "'):
        store.put(('x"', "y%"), key, {"of": key})
        assert value_of(store, ('x"', "y%"), key) == {"of": key}
    assert store.get(("x", "y"), "a") is None
    assert len(store.search(('x"',), limit=99)) == 10


# What is perdure's alone.


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    return open_memory(embedder="hash")


def test_callers_have_items_of_their_own(memory: Memory, home: Path) -> None:
    views = [
        memory, memory.for_user("ada"), memory.for_user("bob"), memory.for_user("ada", agent="cook"),
        Memory(memory._engine, TurnContext(agent_id="cook")),
    ]  # fmt: skip
    stores = [PerdureStore(view) for view in views]
    for number, store in enumerate(stores):
        store.put(("n",), "whose", {"whose": number})
        store.put(("n", str(number)), "only", {"whose": number})
    for number, store in enumerate(stores):
        [item, other] = store.search((), query="whose")
        assert item.value == other.value == {"whose": number}
        assert store.list_namespaces() == [("n",), ("n", str(number))]
        store.delete(("n",), "whose")
        assert store.get(("n",), "whose") is None
    assert len(kept(home)) == 2 * len(stores)


def test_one_who_may_write_nothing_has_no_items(memory: Memory) -> None:
    store = PerdureStore(Memory(memory._engine, TurnContext(user_id="")))
    for call in (lambda: store.put(("n",), "k", {}), lambda: store.get(("n",), "k"), lambda: store.search(())):
        with pytest.raises(ScopeError):
            call()


def test_items_are_no_memories_and_nothing_said_changes_them(memory: Memory) -> None:
    store = PerdureStore(memory)
    store.put(("profile",), "home", {"text": "I live in Lisbon."}, index=["text"])
    say(memory, "I moved from Lisbon to Porto.", "I live in Lisbon.", "Forget that I live in Lisbon.")
    memory.upkeep.consolidate()
    assert value_of(store, ("profile",), "home") == {"text": "I live in Lisbon."}
    store.put(("profile",), "pet", {"text": "My dog is called Fido."}, index=["text"])
    assert recalled(memory, "What is my dog called?") == []
    assert not any("Fido" in fact.text for fact in memory.get_all())


def test_items_stay_when_the_store_is_opened_again(open_memory: OpenMemory) -> None:
    memory = open_memory()
    PerdureStore(memory).put(("n",), "k", TEA)
    memory.close()
    assert json.dumps(value_of(PerdureStore(open_memory()), ("n",), "k")) == json.dumps(TEA)


def test_a_store_opens_a_memory_of_its_own_and_closes_it(home: Path) -> None:
    store = PerdureStore(home=home, user="ada", embedder="none")
    store.put(("n",), "k", TEA)
    # Without a model there is no score.
    assert [each.score for each in store.search(("n",), query="tea")] == [None]
    store.close()
    with Memory.open(home, embedder="none") as memory:
        assert PerdureStore(memory.for_user("ada")).list_namespaces() == [("n",)]
        store = PerdureStore(memory)
        store.close()
        assert store.list_namespaces() == []
        for given in ((5,), (memory._engine,)):
            with pytest.raises(InputError):
                PerdureStore(*cast(Any, given))
        with pytest.raises(InputError, match="user"):
            PerdureStore(memory, user="ada")


def test_no_secret_is_stored(memory: Memory, home: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = PerdureStore(memory)
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
    store.put(("n",), "k", {"token": secret, "text": f"My token is {secret}.", "n": 1})
    found = value_of(store, ("n",), "k")
    assert found["n"] == 1
    assert "redacted" in found["token"]
    for namespace, key in ((("n", secret), "k"), (("n",), secret), (("n",), "a\0b")):
        with pytest.raises(InputError, match="key") as refused:
            store.put(namespace, key, {"n": 1})
        assert secret not in str(refused.value)
    memory.close()
    assert secret.encode() not in bytes_of(home)
    assert "not remembered" in caplog.text


@for_each("value", [{"n": object()}, {"n": {1, 2}}, {"n": float("nan")}, [1], "text", 5])
def test_what_is_no_json_is_refused(memory: Memory, value: Any) -> None:
    store = PerdureStore(memory)
    store.put(("n",), "other", {"n": 1})
    with pytest.raises(InputError):
        store.put(("n",), "k", value)
    assert keys(store) == [("n", "other")]


def test_items_live_as_long_as_they_are_told_and_reading_keeps_them(
    open_memory: OpenMemory, clock: ManualClock
) -> None:
    store = PerdureStore(open_memory(), ttl={"default_ttl": 10, "refresh_on_read": False})
    store.put(("n",), "short", {"n": 1})
    store.put(("n",), "read", {"n": 2})
    store.put(("n",), "long", {"n": 3}, ttl=60)
    store.put(("n",), "always", {"n": 4}, ttl=None)
    clock.advance(9 * 60)
    assert store.get(("n",), "short")
    assert store.get(("n",), "read", refresh_ttl=True)
    clock.advance(2 * 60)
    assert store.get(("n",), "short") is None
    assert keys(store) == [("n", "always"), ("n", "long"), ("n", "read")]
    assert len(store.search(("n",), filter={"n": 2}, refresh_ttl=True)) == 1
    clock.advance(9 * 60)
    assert store.get(("n",), "read")
    clock.advance(3_600)
    assert keys(store) == [("n", "always")]
    store.put(("n",), "short", {"n": 5})
    assert keys(store) == [("n", "always"), ("n", "short")]


def test_a_change_can_be_undone(memory: Memory) -> None:
    view = memory.for_user("ada")
    store = PerdureStore(view)
    store.put(("n",), "k", {"n": 1})
    as_session = Memory(memory._engine, TurnContext(user_id="ada", session_id="langgraph"))
    store.put(("n",), "k", {"n": 2})
    as_session.undo()
    assert value_of(store, ("n",), "k") == {"n": 1}


def test_a_put_is_one_transaction(memory: Memory) -> None:
    store, seen = PerdureStore(memory), memory.admin.changes()
    with pytest.raises(InputError):
        store.batch([PutOp(("n",), "a", {"n": 1}), PutOp(("n",), "b", {"n": object()})])
    assert (keys(store), memory.admin.changes()) == ([], seen)
    store.batch([PutOp(("n",), each, {"n": each}) for each in "abc"])
    Memory(memory._engine, TurnContext(session_id="langgraph")).undo()
    assert keys(store) == []


Run = Callable[[Any], dict[str, Any]]


class State(TypedDict, total=False):
    found: list[Any]


@pytest.mark.parametrize("run", [lambda graph: graph.invoke({}), lambda graph: asyncio.run(graph.ainvoke({}))])
def test_a_graph_runs_with_it(memory: Memory, run: Run) -> None:
    def remember(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        assert runtime.store is not None
        runtime.store.put(("memories",), "tea", TEA)
        return {"found": [each.value for each in runtime.store.search(("memories",), query="tea")]}

    builder = StateGraph(State)
    builder.add_node("remember", remember)
    builder.add_edge(START, "remember")
    assert run(builder.compile(store=PerdureStore(memory.for_user("ada")))) == {"found": [TEA]}
    assert PerdureStore(memory.for_user("bob")).search(()) == []
