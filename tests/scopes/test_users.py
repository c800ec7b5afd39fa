"""Several users of one agent: what each says stays with them, and what is for all of them was put there on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.api.tools import call_tool
from perdure.engine.engine import Engine
from perdure.engine.settings import Settings
from perdure.errors import NotFoundError, ScopeError
from perdure.hooks.types import TurnContext
from perdure.store.listing import Filter
from perdure.store.scope import Scope

SAID = "My locker in the harbour office has the number 4711."
ASKED = "Which number has the locker in the harbour office?"


class Office:
    """One engine that serves any number of callers, as the agents of one host do."""

    def __init__(self, home: Path, embedder: str = "none") -> None:
        self.engine = Engine(home, Settings.load({"embedder": embedder, "watch": False, "timers": False}))

    def as_(self, user: str | None = None, agent: str | None = "main", session: str | None = None) -> Memory:
        return Memory(self.engine, TurnContext(agent_id=agent, user_id=user, session_id=session))

    def say(self, text: str, user: str | None = None, agent: str | None = "main", session: str = "s1") -> None:
        """Have a user say something in a turn, and wait until it is captured and can be found."""
        memory = self.as_(user, agent, session)
        memory.turns.after([{"role": "user", "content": text}], True, memory._context)
        memory.turns.session_end(memory._context)
        assert memory.settle()

    def hears(self, memory: Memory) -> dict[str, bool]:
        """Return by which ways a caller hears of what was said."""
        recall = memory.recall(ASKED)
        passages = memory.files.search(ASKED, sources=["sessions"]).results
        return {
            "recall": recall is not None and "4711" in recall.block,
            "list": any("4711" in fact.text for fact in memory.admin.list()),
            "conversations": any("4711" in each.snippet for each in passages),
        }


EVERYTHING = {"recall": True, "list": True, "conversations": True}
NOTHING = dict.fromkeys(EVERYTHING, False)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    office = Office(tmp_path / "home")
    yield office
    office.engine.close()


def test_two_users_of_one_agent_do_not_hear_each_other(office: Office) -> None:
    office.say(SAID, "alice")
    assert office.hears(office.as_("alice")) == EVERYTHING
    for other in ("bob", None, "owner"):
        assert office.hears(office.as_(other)) == NOTHING, other
    assert office.hears(office.as_("alice", agent="other")) == NOTHING


@pytest.mark.parametrize("user", [None, "owner"])
def test_without_a_named_user_all_is_as_it_was(office: Office, user: str | None) -> None:
    office.say(SAID)
    [fact] = office.as_().admin.list()
    assert (fact.scope, fact.scope_target) == ("agent", "main")
    assert office.hears(office.as_(user)) == EVERYTHING
    assert office.hears(office.as_("alice")) == NOTHING


def test_the_same_words_of_two_users_are_two_memories(office: Office) -> None:
    office.say(SAID, "alice")
    office.say(SAID, "bob")
    [alices], [bobs] = office.as_("alice").admin.list(), office.as_("bob").admin.list()
    assert alices.id != bobs.id
    assert alices.reinforced_count == bobs.reinforced_count == 0


def test_a_named_user_puts_something_there_for_all_users_of_the_agent(office: Office) -> None:
    office.as_("alice").store(SAID, scope="agent:main")
    for user in ("alice", "bob", None):
        assert "4711" in office.as_(user).admin.list()[0].text, user
        assert len(office.as_(user).admin.list(Filter(scope=Scope.parse("agent:main user:*")))) == 1
    # In the words of a named user "agent:main" is what the agent holds for all of them.
    assert len(office.as_("bob").admin.list(Filter(scope=Scope.parse("agent:main")))) == 1
    assert office.as_("bob", agent="other").admin.list() == []
    assert office.as_("bob", agent=None).admin.list() == []


def test_who_names_no_user_puts_something_there_for_all_by_its_full_name(office: Office) -> None:
    office.as_().store("The kettle is broken.", scope="agent:main")
    office.as_().store("The printer is on the left.", scope="agent:main user:*")
    assert [fact.text for fact in office.as_("bob").admin.list()] == ["The printer is on the left."]
    assert len(office.as_().admin.list()) == 2


@pytest.mark.parametrize("scope", ["agent:main user:bob", "agent:main user:owner", "user:bob", "agent:other user:*"])
def test_nobody_writes_to_another_user(office: Office, scope: str) -> None:
    with pytest.raises(ScopeError):
        office.as_("alice").store(SAID, scope=scope)


def test_what_the_user_has_with_every_agent_stays(office: Office) -> None:
    office.as_("alice", agent=None).store(SAID)
    for agent in ("main", "other", None):
        assert len(office.as_("alice", agent=agent).admin.list(Filter(scope=Scope("user", "alice")))) == 1
    assert office.as_("bob").admin.list() == []


def test_a_session_id_alone_opens_no_session(office: Office) -> None:
    alice = office.as_("alice", session="s1")
    fact = alice.store(SAID, scope="session:s1")
    assert (fact.scope, fact.scope_target) == ("session", "s1 agent:main user:alice")
    assert alice.admin.list() == [fact]
    assert alice.admin.list(Filter(scope=Scope.parse("session:s1"))) == [fact]
    for user, agent in (("bob", "main"), (None, "main"), ("alice", "other"), ("alice", None), (None, None)):
        for session in ("s1", "s2"):
            other = office.as_(user, agent, session)
            assert other.admin.list() == []
            with pytest.raises(NotFoundError):
                other.get(fact.id)


def test_who_names_neither_agent_nor_user_reads_sessions_of_the_old_form(office: Office) -> None:
    fact = office.as_(agent=None, session="s1").store(SAID, scope="session:s1")
    assert (fact.scope, fact.scope_target) == ("session", "s1")
    assert office.as_(agent=None, session="s1").admin.list() == [fact]
    for user, agent in ((None, "main"), ("alice", None), ("alice", "main")):
        assert office.as_(user, agent, "s1").admin.list() == []


@pytest.mark.parametrize("user", ["*", "", " alice", "alice\x1fbob"])
def test_a_user_that_is_none_reads_and_writes_nothing(office: Office, user: str) -> None:
    office.say(SAID)
    office.as_("alice").store("The kettle is broken.", scope="agent:main")
    for agent in ("main", None):
        assert office.as_(user, agent).admin.list() == []
        with pytest.raises(ScopeError):
            office.as_(user, agent).store(SAID)


@pytest.mark.parametrize("agent", ["main user:alice", "main user:*", "x agent:main"])
def test_an_agent_cannot_be_named_like_an_agent_with_a_user(office: Office, agent: str) -> None:
    office.say(SAID, "alice")
    office.as_("alice").store("The kettle is broken.", scope="agent:main")
    assert office.as_(agent=agent).admin.list() == []
    with pytest.raises(ScopeError):
        office.as_(agent=agent).store(SAID)


@pytest.mark.parametrize("scope", ["agent:main user:*", "global"])
def test_a_tool_call_for_one_user_changes_nothing_that_all_have(office: Office, scope: str) -> None:
    shared = office.as_().store("The printer is on the left.", scope=scope)
    calls: dict[str, dict[str, object]] = {
        "memory_update": {"memory": shared.id, "text": "The printer is with Alice's sister."},
        "memory_forget": {"memory": shared.id},
        "memory_store": {"text": "The printer is with Alice's sister.", "supersedes": shared.id},
    }
    for name, values in calls.items():
        done = call_tool(office.as_(), name, values, TurnContext(agent_id="main", user_id="alice"), "Remember, forget!")
        assert done.refused, name
        assert "all users" in done.text
    assert [fact.text for fact in office.as_("bob").admin.list()] == ["The printer is on the left."]
    for user, name in (("alice", "memory_link"), (None, "memory_update")):
        note = office.as_(user).store("The printer is out of ink.")
        values = {"source": note.id, "target": shared.id} if name == "memory_link" else calls[name]
        asked = "No, the printer is with Alice's sister."
        done = call_tool(office.as_(), name, values, TurnContext(agent_id="main", user_id=user), asked)
        assert not done.refused, done.text


def test_pruning_for_one_user_tells_no_counts_of_others(office: Office) -> None:
    said = [
        call_tool(office.as_(), "memory_prune", {}, TurnContext(agent_id="main", user_id=user), "Prune what expired.")
        for user in ("alice", None)
    ]
    assert not any(char.isdigit() for char in said[0].text)
    assert said[0].details == {}
    assert said[1].details == {"expired": 0, "removed": 0}


def test_what_one_user_pinned_is_in_the_profile_of_no_other(office: Office) -> None:
    office.as_("alice").pin(office.as_("alice").store(SAID).id)
    blocks = {user: office.as_(user, session="s1").recall("What shall we cook?") for user in ("alice", "bob", None)}
    assert [user for user, recall in blocks.items() if recall and "4711" in recall.block] == ["alice"]


def test_what_a_dead_process_left_behind_comes_to_whom_it_belongs(office: Office, tmp_path: Path) -> None:
    office.engine.store.inbox.append({
        "at": 1.0, "session": "s1", "cursor": "agent:main user:alice\0s1", "tail": "", "host": "python",
        "scope": "agent:main user:alice", "turn": None, "messages": [{"role": "user", "text": SAID}],
    })  # fmt: skip
    office.engine.close()
    again = Office(tmp_path / "home")
    try:
        assert again.engine.settle(30)
        assert [fact.text for fact in again.as_("alice").admin.list()] == [SAID]
        assert again.as_("bob").admin.list() == again.as_().admin.list() == []
    finally:
        again.engine.close()
