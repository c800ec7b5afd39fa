"""What was taken in before anybody was named is given to a user of the agent, or to all of them on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.errors import NotFoundError, ScopeError
from perdure.maintenance.verify import verify
from perdure.store.sql import run
from tests.scopes.test_users import EVERYTHING, NOTHING, SAID, Office

BIRD = "My parrot is called Coco."


@pytest.fixture(params=["none", "hash"])
def office(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Office]:
    office = Office(tmp_path / "home", embedder=request.param)
    office.engine.model.wait(30)
    yield office
    office.engine.close()


def test_a_named_user_sees_what_was_assigned_to_them_and_nobody_else_does(office: Office) -> None:
    office.say(SAID)
    assert office.hears(office.as_("alice")) == NOTHING
    done = office.as_().admin.assign("agent:main", "user:alice")
    assert (done.source, done.target, done.memories, done.conversations) == (
        "agent:main", "agent:main user:alice", 1, 1,
    )  # fmt: skip
    assert office.hears(office.as_("alice")) == EVERYTHING
    for user in (None, "bob"):
        assert office.hears(office.as_(user)) == NOTHING
    assert verify(office.engine.store) == []


def test_what_is_assigned_to_all_users_is_seen_by_all_of_this_agent(office: Office) -> None:
    office.say(SAID)
    office.as_().admin.assign("agent:main", "user:*")
    for user in ("alice", "bob", None):
        assert office.hears(office.as_(user)) == EVERYTHING
    assert office.hears(office.as_("alice", agent="other")) == NOTHING


def test_a_dry_run_counts_and_changes_nothing(office: Office) -> None:
    office.say(SAID)
    before = office.as_().admin.list()
    done = office.as_().admin.assign("agent:main", "user:alice", dry_run=True)
    assert (done.memories, done.conversations, done.batch) == (1, 1, None)
    assert office.as_().admin.list() == before
    assert office.hears(office.as_()) == EVERYTHING
    assert office.hears(office.as_("alice")) == NOTHING


def test_it_is_in_the_journal_and_undone_by_its_batch_alone(office: Office) -> None:
    office.say(SAID)
    done = office.as_().admin.assign("agent:main", "user:alice")
    alice = office.as_("alice")
    [fact] = alice.admin.list()
    assert [change.action for change in alice.admin.changes()] == ["add", "assign"]
    undone = alice.undo()
    assert undone.batch != done.batch
    assert alice.admin.list() == []
    alice.unforget(fact.id)
    assert done.batch is not None
    assert alice.undo(done.batch).facts == (fact.id,)
    assert alice.admin.list() == []
    assert office.as_().get(fact.id).scope_target == "main"


def test_nobody_undoes_what_was_assigned_to_another(office: Office) -> None:
    office.say(SAID)
    done = office.as_().admin.assign("agent:main", "user:alice")
    for user in ("bob", None):
        with pytest.raises(NotFoundError):
            office.as_(user).undo(done.batch)


def test_single_conversations_go_to_whom_they_were_with(office: Office) -> None:
    office.say(SAID, session="with alice")
    office.say(BIRD, session="with bob")
    done = office.as_().admin.assign("agent:main", "user:alice", sessions=["with alice"])
    assert (done.memories, done.conversations) == (1, 1)
    assert office.hears(office.as_("alice")) == EVERYTHING
    assert office.as_().admin.list()[0].text == BIRD
    assert office.as_().files.search("What is the parrot called?", sources=["sessions"]).results
    assert not office.as_("alice").files.search("What is the parrot called?", sources=["sessions"]).results


def test_all_versions_go_together_and_what_is_forgotten_too(office: Office) -> None:
    owner = office.as_()
    first = owner.store("The printer is on the left.")
    second = owner.update(first.id, text="The printer is on the right.")
    gone = owner.store(BIRD)
    owner.forget(gone.id)
    assert owner.admin.assign("agent:main", "user:alice").memories == 3
    alice = office.as_("alice")
    assert [fact.id for fact in alice.history(second.id).versions] == [first.id, second.id]
    assert alice.unforget(gone.id).text == BIRD


def test_a_conversation_that_goes_on_is_neither_captured_again_nor_overwritten(office: Office) -> None:
    office.say(SAID)
    office.as_().admin.assign("agent:main", "user:alice")
    office.say(SAID, "alice")
    [fact] = office.as_("alice").admin.list()
    assert fact.reinforced_count == 0
    assert office.as_("alice").upkeep.distill().messages == 0
    office.say(BIRD)
    done = office.as_().admin.assign("agent:main", "user:alice")
    assert (done.memories, done.conversations, done.left) == (1, 0, 1)


def test_it_can_be_given_on_and_back_and_repeated(office: Office) -> None:
    office.say(SAID)
    admin = office.as_().admin
    admin.assign("agent:main", "user:alice")
    assert admin.assign("agent:main", "user:alice").memories == 0
    admin.assign("agent:main user:alice", "user:bob")
    assert office.hears(office.as_("bob")) == EVERYTHING
    assert admin.assign("agent:main user:bob", "user:owner").target == "agent:main"
    assert office.hears(office.as_()) == EVERYTHING


def test_a_session_of_before_gets_its_agent_and_user(office: Office) -> None:
    fact = office.as_(agent=None, session="s1").store(SAID, scope="session:s1")
    done = office.as_().admin.assign("session:s1", "agent:main user:alice")
    assert (done.target, done.memories) == ("session:s1 agent:main user:alice", 1)
    assert office.as_("alice", session="s1").get(fact.id).text == SAID
    for user, agent in ((None, None), ("alice", None), ("bob", "main")):
        with pytest.raises(NotFoundError):
            office.as_(user, agent, "s1").get(fact.id)


def test_the_header_of_a_moved_conversation_names_its_scope(office: Office) -> None:
    office.say(SAID)
    office.as_().admin.assign("agent:main", "user:alice")
    [path] = (office.engine.store.folder / "transcripts").glob("*/*.jsonl")
    assert '"scope": "agent:main user:alice"' in path.read_text().splitlines()[0]
    with office.engine.store.database.read() as connection:
        assert run(connection, "SELECT count(*) FROM facts WHERE scope_target = 'main'") == [(0,)]


@pytest.mark.parametrize(
    ("scope", "whose", "says"),
    [
        ("user:owner", "user:alice", "cannot be reassigned"),
        ("global", "user:alice", "cannot be reassigned"),
        ("agent:main", "alice", "user:ID"),
        ("agent:main", "", "user:ID"),
        ("agent:main", "user:", "empty"),
        ("agent:main", "agent:other", "cannot name a second agent"),
        ("agent:main", "user:owner", "already"),
        ("session:s", "user:*", "all users"),
        ("nothing:x", "user:alice", "unknown"),
    ],
)
def test_what_cannot_be_assigned_is_refused_in_words(office: Office, scope: str, whose: str, says: str) -> None:
    with pytest.raises(ScopeError, match=says):
        office.as_().admin.assign(scope, whose)
