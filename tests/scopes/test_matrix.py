"""Agents, users and sessions in every combination: by every public way each caller hears of its own and no other.

What the ways are stands in `test_canaries.py`; there a new public method fails until it is among them.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from itertools import product
from typing import Any, cast

import pytest

from perdure.api.async_memory import AsyncMemory, Twin
from perdure.api.memory import Memory
from perdure.api.tools import TOOLS, call_tool
from perdure.api.view import MemoryView
from perdure.compat import mem0
from perdure.engine.audiences import OwnersContext
from perdure.errors import NotFoundError
from perdure.hooks.types import TurnContext
from perdure.hosts.carrier import Carrier
from perdure.hosts.mcp.client import McpClient
from perdure.hosts.mcp.desk import FACTS, Desk
from perdure.store.scope import Scope
from tests.kit import for_each
from tests.scopes.conftest import Callers, Canary, House
from tests.scopes.test_canaries import READS, WRITES, heard, kept

AGENTS, USERS, SESSIONS = (None, "ann", "bob", "cyd"), (None, "eva", "max", "zoe"), ("s1", "s2")
ASKED = 3
"""Hidden canaries that a caller asks for by each way: others by the next way, the likest ones first."""


def readable(agent: str | None, user: str | None, session: str) -> tuple[str, ...]:
    """Return the scopes that a caller may read, as the documents have it."""
    whose = f" user:{user}" if user else ""
    place = f" agent:{agent}" if agent else ""
    own = (f"agent:{agent}{whose}", f"agent:{agent} user:*") if agent else ()
    return ("global", f"user:{user or 'owner'}", *own, f"session:{session}{place}{whose}")


CALLERS: Callers = {
    f"{agent or 'no agent'} for {user or 'nobody named'} in {session}": (
        TurnContext(agent_id=agent, user_id=user, session_id=session),
        readable(agent, user, session),
    )
    for agent, user, session in product(AGENTS, USERS, SESSIONS)
}
NOBODYS = tuple(dict.fromkeys(text for _, own in CALLERS.values() for text in own if not Scope.parse(text).user))
OWNED = ("user:owner", *NOBODYS, *(f"agent:{agent} user:*" for agent in AGENTS if agent))
CALLERS = {**CALLERS, "the owner's own tools": (OwnersContext(), OWNED)}
SCOPES = tuple(Scope.parse(text) for text in dict.fromkeys(text for _, own in CALLERS.values() for text in own))
ROOM = 8
SLOW = {
    "Admin.evaluate", "Admin.purge", "Admin.classify", "Admin.audit, fix", "Upkeep.distill", "Upkeep.consolidate",
}  # fmt: skip
BY_VECTOR = ("Memory.recall", "Memory.why", "Turns.before", "Admin.search", "Files.search")
NAMED = [name for name, (context, _) in CALLERS.items() if context.agent_id == "ann" and context.session_id == "s1"]
"""Some callers who differ by their user alone, for what takes long."""


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """By words alone: then everything that a caller may read comes up unasked, since all canaries sing."""
    town = House(tmp_path_factory.mktemp("town") / "home", scopes=SCOPES, callers=CALLERS)
    yield town
    town.close()


@pytest.fixture(scope="module")
def embedded_town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    town = House(tmp_path_factory.mktemp("embedded") / "home", scopes=SCOPES, callers=CALLERS, embedder="hash")
    yield town
    town.close()


@pytest.fixture
def village(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One to be changed."""
    village = House(tmp_path_factory.mktemp("village") / "home", scopes=SCOPES, callers=CALLERS)
    yield village
    village.close()


def likest(town: House, caller: str) -> list[Canary]:
    """Return what is hidden from a caller, first what differs from its own scopes in one part alone."""
    own = [set(text.replace(":", ": ").split()) for text in CALLERS[caller][1]]

    def unlike(canary: Canary) -> int:
        parts = set(str(canary.scope).replace(":", ": ").split())
        return min(len(parts ^ each) for each in own)

    return sorted(town.hidden_from(caller), key=unlike)


def asked(town: House, caller: str, turn: int) -> list[Canary]:
    """Return what a caller asks for in one of its turns: one of its own, and some of the likest that are hidden."""
    hidden = likest(town, caller)[: 4 * ASKED]
    own = next(canary for canary in town.canaries if str(canary.scope) == CALLERS[caller][1][-1 - turn % 2])
    return [own, *(hidden[(turn + step) % len(hidden)] for step in range(ASKED))]


def given_away(answer: str, hidden: list[Canary]) -> list[str]:
    return [str(canary.scope) for canary in hidden if any(secret in answer for secret in canary.secrets)]


def leaks(town: House, name: str) -> list[tuple[str, str, str]]:
    """Have every caller go one way; return who asked for what and heard of whom."""
    found, way = [], list(READS).index(name)
    for number, caller in enumerate(NAMED if name in SLOW else CALLERS):
        memory, context, hidden = town.caller(caller), CALLERS[caller][0], town.hidden_from(caller)
        for canary in asked(town, caller, number + way):
            answer = heard(READS[name], memory, canary, context)
            found += [(caller, str(canary.scope), leak) for leak in given_away(answer, hidden)]
    return found


@pytest.mark.parametrize("name", READS)
def test_no_caller_reads_what_is_another_callers(town: House, name: str) -> None:
    assert leaks(town, name) == []


@pytest.mark.parametrize("name", [name for name in READS if name.startswith(BY_VECTOR)])
def test_nor_is_another_callers_found_by_its_meaning(embedded_town: House, name: str) -> None:
    assert leaks(embedded_town, name) == []


@for_each("caller", CALLERS)
def test_each_caller_finds_its_own_and_nothing_else(town: House, caller: str) -> None:
    memory, own = town.caller(caller), set(CALLERS[caller][1])
    assert {str(Scope(fact.scope, fact.scope_target)) for fact in memory.admin.list(limit=1000)} == own
    assert dict(memory.admin.stats().by_scope) == dict.fromkeys(sorted(own), 1)
    words = {canary.word for canary in town.canaries if str(canary.scope) in own}
    found = memory.files.search("Who sat on the old bridge?", sources=["sessions"], max_results=100, min_score=0.0)
    assert {word for canary in town.canaries if (word := canary.word) in repr(found)} == words
    recall = memory.recall("Who sings in the harbour at night?")
    assert recall is not None
    heard = {canary.word for canary in town.canaries if canary.word in recall.block}
    # A block has room for what one agent may read, and not for all that is the owner's.
    assert heard <= words if len(words) > ROOM else heard == words


@pytest.mark.parametrize("agent", AGENTS)
def test_no_caller_changes_what_is_another_callers(village: House, agent: str | None) -> None:
    """All of them write by every way, one after the other; what one may not read is after it as it was before."""
    for number, caller in enumerate(name for name in CALLERS if CALLERS[name][0].agent_id == agent):
        memory, context, hidden = village.caller(caller), CALLERS[caller][0], village.hidden_from(caller)
        before = kept(village, hidden)
        for way, (name, entry) in enumerate(WRITES.items()):
            if name in SLOW and caller not in NAMED:
                continue
            for canary in asked(village, caller, number + way)[:2]:
                leaks = given_away(heard(entry, memory, canary, context), hidden)
                assert leaks == [], (caller, name, str(canary.scope))
        assert kept(village, hidden) == before, caller


def test_the_view_of_a_user_gives_away_and_changes_nothing_of_others(village: House) -> None:
    members = {f"Memory.{name}" for name in vars(MemoryView) if not name.startswith("_")}
    # What a caller has stored comes up for it later: all of them read before any writes.
    ways = {name: way for name, way in {**READS, **WRITES}.items() if name.partition(",")[0] in members}
    assert {name.partition(",")[0] for name in ways} == members
    owner = Memory(village.engine, TurnContext())
    callers = [name for name, (context, _) in CALLERS.items() if context.user_id and context.agent_id in (None, "ann")]
    for number, ((name, way), caller) in enumerate(product(ways.items(), callers)):
        context, hidden = CALLERS[caller][0], village.hidden_from(caller)
        view = owner.for_user(str(context.user_id), agent=context.agent_id, session=context.session_id)
        # What the caller before was shown is counted behind it.
        assert owner.settle()
        before = kept(village, hidden)
        for canary in asked(village, caller, number)[:2]:
            answer = heard(way, cast(Memory, view), canary, context)
            assert given_away(answer, hidden) == [], (caller, name, str(canary.scope))
        assert kept(village, hidden) == before, (caller, name)


@pytest.mark.parametrize("user", ["eva", "max", "zoe"])
def test_a_program_of_mem0_hears_of_one_user_alone(town: House, user: str) -> None:
    door = mem0.Memory.__new__(mem0.Memory)
    door._store = Memory(town.engine, TurnContext())
    own = {canary.word for canary in town.canaries if str(canary.scope) == f"user:{user}"}
    asked: list[dict[str, Any]] = [{"user_id": user, **more} for more in ({}, {"agent_id": "ann"}, {"run_id": "s1"})]
    for ids in asked:
        listed, found = door.get_all(**ids, limit=1000), door.search("Who sings in the harbour?", **ids, limit=1000)
        heard = {canary.word for canary in town.canaries if canary.word in f"{listed}{found}"}
        # No canary was told to an agent or in a run of mem0's.
        assert heard == (own if len(ids) == 1 else set()), ids


TOOL_CALLS: dict[str, Any] = {
    "memory_recall": lambda canary: {"query": f"Where does the {canary.word} sing?"},
    "memory_store": lambda canary: {"text": f"The {canary.word} sings in the harbour at night."},
    "memory_update": lambda canary: {"memory": canary.facts[1], "importance": 0.9},
    "memory_forget": lambda canary: {"query": f"Where does the {canary.word} sing?"},
    "lookup": lambda canary: {"entity": canary.entity},
    "memory_lookup": lambda canary: {"entity": canary.entity, "key": "alias"},
    "memory_link": lambda canary: {"source": canary.facts[0], "target": canary.facts[1]},
    "memory_search": lambda canary: {"query": "Who sat on the old bridge?", "maxResults": 20, "minScore": 0.0},
    "memory_get": lambda canary: {"path": "MEMORY.md"},
    "memory_why": lambda canary: {},
    "memory_checkpoint": lambda canary: {"intent": f"Find {canary.word}.", "state": "Looking."},
    "memory_prune": lambda canary: {},
    "memory_reflect": lambda canary: {"days": 365},
}


def test_no_tool_shows_what_is_another_callers(village: House) -> None:
    assert TOOL_CALLS.keys() == {tool.name for tool in TOOLS}, "give a call for it"
    canaries = {fact_id for canary in village.canaries for fact_id in canary.facts}
    for number, caller in enumerate(CALLERS):
        memory, context, hidden = village.caller(caller), CALLERS[caller][0], village.hidden_from(caller)
        before = kept(village, hidden)
        for way, (name, call) in enumerate(TOOL_CALLS.items()):
            for canary in asked(village, caller, number + way)[:2]:
                answer = heard(
                    lambda memory, canary, context, name=name, call=call: call_tool(  # type: ignore[misc]
                        memory, name, call(canary), context, "Remember, correct and forget it!"
                    ),
                    memory, canary, context,
                )  # fmt: skip
                assert given_away(answer, hidden) == [], (caller, name, str(canary.scope))
                # What a caller has stored itself may come up for it.
                for stored in memory.admin.live_ids() - canaries:
                    memory.forget(stored)
        assert kept(village, hidden) == before, caller


class Waiting:
    """The async twin, each call of it waited for: so that the same ways can be gone."""

    def __init__(self, twin: Twin[Any]) -> None:
        self._twin = twin

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._twin, name, None)
        if isinstance(found, Twin):
            return Waiting(found)
        if not inspect.iscoroutinefunction(found):
            return getattr(self._twin.inner, name)
        return lambda *args, **kwargs: asyncio.run(found(*args, **kwargs))


@pytest.mark.parametrize("caller", NAMED)
def test_the_async_twin_reads_nothing_of_others(town: House, caller: str) -> None:
    hidden = town.hidden_from(caller)
    memory = cast(Memory, Waiting(AsyncMemory(town.caller(caller))))
    for way, (name, entry) in enumerate(READS.items()):
        for canary in asked(town, caller, way)[:2]:
            answer = heard(entry, memory, canary, CALLERS[caller][0])
            assert given_away(answer, hidden) == [], (name, str(canary.scope))
            assert "not awaited" not in answer


@pytest.mark.parametrize("caller", NAMED)
def test_a_client_of_mcp_reads_nothing_of_others(town: House, caller: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_EMBEDDER", "none")
    context, hidden = CALLERS[caller][0], town.hidden_from(caller)
    desk = Desk(town.engine.store.folder, McpClient(agent=context.agent_id, user=context.user_id))
    try:
        own = next(canary for canary in town.canaries if str(canary.scope) == CALLERS[caller][1][2])
        answers: list[Any] = [desk.read(FACTS), desk.files(), desk.read(f"{FACTS}/{own.facts[1]}")]
        answers += [desk.read(f"perdure://files/{path}") for path in desk.files()]
        assert own.word in repr(answers)
        for canary in likest(town, caller)[:8]:
            question = "Who sings in the harbour at night, and who sat on the old bridge?"
            answers += [desk.recalled(question), desk.call("memory_search", {"query": question, "in": "all"})]
            with pytest.raises(NotFoundError):
                desk.read(f"{FACTS}/{canary.facts[1]}")
        assert given_away(repr(answers).lower(), hidden) == []
    finally:
        desk.close()


@pytest.mark.parametrize("user", USERS)
def test_an_adapter_keeps_what_its_user_says_from_the_others(village: House, user: str | None) -> None:
    memory = Memory(village.engine, TurnContext())
    said, asks = "My bicycle is called Rocinante.", "What is my bicycle called?"
    carriers = {each: Carrier("test", memory, agent="ann", user=each, settings={}) for each in USERS}
    carriers[user].after([{"role": "user", "content": said}], "s9")
    assert memory.settle()
    hears = {each: carrier.before(asks, "s9") for each, carrier in carriers.items()}
    assert [each for each, recall in hears.items() if recall and "Rocinante" in recall.block] == [user]
    found = {each: carrier.call("memory_recall", {"query": asks}, "", "s9").text for each, carrier in carriers.items()}
    assert [each for each, text in found.items() if "Rocinante" in text] == [user]
