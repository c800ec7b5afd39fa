"""New, known already, or in the place of something."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from perdure.capture.decide import Action, decide
from perdure.capture.writing import Writer, WritingOptions
from perdure.embed.base import Embedder, GuardedEmbedder
from perdure.embed.deterministic import HashEmbedder
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.transaction import Author
from perdure.store.trust import SUPERSEDES
from tests.capture.conftest import Notebook
from tests.faulty import FailingEmbedder


def actions(notebook: Notebook, *texts: str) -> list[Action]:
    return [captured.decision.action for text in texts for captured in notebook.say(text)]


@pytest.mark.parametrize(
    "again",
    [
        "My dentist is Doctor Wagner.",
        "my dentist is doctor wagner",
        "My  dentist is\tDoctor Wagner!",
        "My dentist is Doctor Wágner.",
    ],
)
def test_the_same_said_again_only_confirms(notebook: Notebook, again: str) -> None:
    [first] = notebook.say("My dentist is Doctor Wagner.")
    [second] = notebook.say(again)

    assert second.decision.action is Action.NOOP
    assert second.decision.target == first.fact.id
    assert notebook.find("dentist Wagner") == ["My dentist is Doctor Wagner."]
    fact = notebook.get(first.fact.id)
    assert fact.reinforced_count == 1
    assert fact.last_confirmed_at == notebook.clock.now()
    assert fact.expires_at is None


def test_a_page_stays_beside_another_version_of_it(notebook: Notebook) -> None:
    page = " ".join(f"The lift in house {number} was checked at {number % 12}:30 by Anna." for number in range(900))
    other = page.replace("Anna", "Rosa")

    writer = Writer(lambda: None, WritingOptions())
    with notebook.store.write(Author(Channel.USER)) as tx:
        actions = [
            writer.write(tx, prepared).decision.action
            for prepared in writer.prepare([Fact(text) for text in (page, other, other)], notebook.clock.now())
        ]

    assert actions == [Action.ADD, Action.ADD, Action.NOOP]


def test_the_same_value_in_other_words_only_confirms(notebook: Notebook) -> None:
    [first] = notebook.say("My name is Robert Jansen.")
    [second] = notebook.say("Just so you know, my name is Robert Jansen.")
    assert second.decision.action is Action.NOOP
    assert second.decision.target == first.fact.id


@pytest.mark.parametrize(
    ("old", "new", "entity", "key", "values"),
    [
        ("My birthday is 3 May.", "My birthday is 4 May.", "user", "birthday", ("4 May", "3 May")),
        ("I live in Graz.", "I moved to Linz.", "user", "location", ("Linz", "Graz")),
        ("My favourite colour is teal.", "My favourite colour is red.", "user", "favourite colour", ("red", "teal")),
        ("My sister's birthday is 3 May.", "My sister's birthday is 5 May.", "sister", "birthday", ("5 May", "3 May")),
        ("My brother is in Rome.", "Actually, my brother is in Oslo.", "user", "brother", ("Oslo", "Rome")),
        ("Our standup starts at 9:30.", "Our standup is now at 10:15.", "user", "standup", ("10:15", "9:30")),
    ],
)  # fmt: skip
def test_a_corrected_value_takes_the_place_of_the_old(
    notebook: Notebook, old: str, new: str, entity: str, key: str, values: tuple[str, str]
) -> None:
    [first] = notebook.say(old)
    [second] = notebook.say(new)

    assert second.decision.action is Action.UPDATE
    assert notebook.slot(entity, key) == [values[0]]
    assert notebook.slot(entity, key, include_superseded=True) == list(values)
    assert notebook.find(f"{old} {new}") == [new]
    assert set(notebook.find(f"{old} {new}", include_superseded=True)) == {old, new}
    former = notebook.get(first.fact.id)
    assert former.superseded_by == second.fact.id
    assert former.superseded_at == notebook.clock.now()
    assert notebook.get(second.fact.id).supersedes_id == first.fact.id


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("My brother is a pilot.", "My brother is married to Eva."),
        ("My dog is a beagle.", "My dog is afraid of thunder."),
        ("I like tea.", "I like dark chocolate."),
        ("I am allergic to peanuts.", "I am allergic to cats."),
        ("My hobby is golf.", "My hobby is chess."),
        ("My brother is Robert.", "My brother is Paul."),
        ("I live in Graz.", "My sister's location is Linz."),
        ("Never deploy on Fridays.", "Always deploy on Tuesdays."),
        ("The flight from Oslo to Rome is on Monday.", "The flight from Rome to Oslo is on Friday."),
        ("The train from 3 to 5 costs 10 euros.", "The train from 5 to 3 costs 12 euros."),
        ("The label of crate 0-1 is 140891.", "The label of crate 1-0 is 885440."),
    ],
)
def test_what_may_be_true_beside_the_old_is_added(notebook: Notebook, old: str, new: str) -> None:
    assert actions(notebook, old, new) == [Action.ADD, Action.ADD]
    assert set(notebook.find(f"{old} {new}")) == {old, new}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Our builds run on Jenkins.", "We switched from Jenkins to GitHub Actions."),
        ("My dentist is Dr. Kay.", "My dentist is Dr. Lund instead of Dr. Kay."),
        ("My hobby is golf.", "My hobby is chess now, not golf."),
    ],
)
def test_a_statement_that_names_the_former_value_replaces_it(notebook: Notebook, old: str, new: str) -> None:
    notebook.say("My desk lamp is made of brass.")
    assert actions(notebook, old, new) == [Action.ADD, Action.UPDATE]
    assert old not in notebook.find(old)
    assert old in notebook.find(old, include_superseded=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "I give dad 5 mg of ramipril every morning with his breakfast.",
            "I give mum 5 mg of ramipril every morning with her breakfast.",
        ),
        (
            "The pills in the blue box are for my son, one every morning.",
            "The pills in the blue box are for my daughter, one every morning.",
        ),
        ("I ring my aunt every Sunday evening.", "I ring my uncle every Sunday evening."),
    ],
)
def test_what_is_said_of_another_relative_is_no_repetition(notebook: Notebook, old: str, new: str) -> None:
    assert actions(notebook, old, new) == [Action.ADD, Action.ADD]
    assert set(notebook.find(f"{old} {new}")) == {old, new}


def test_a_value_of_signs_takes_the_place_of_another(notebook: Notebook) -> None:
    assert actions(notebook, "My favourite language is C++.", "My favourite language is C#.")[1] is Action.UPDATE
    assert notebook.slot("user", "favourite language") == ["C#"]


@pytest.mark.parametrize("channel", sorted(set(Channel) - SUPERSEDES))
def test_a_channel_without_that_right_adds_beside_what_the_user_said(notebook: Notebook, channel: Channel) -> None:
    [said] = notebook.say("My birthday is 3 May.")
    claim = replace(said.fact, text="My birthday is 9 June.", value="9 June", channel=channel)
    with notebook.store.database.read() as connection:
        decision = decide(connection, claim, notebook.view())
    assert decision.action is Action.ADD
    assert channel.value in decision.reason


@pytest.mark.parametrize("channel", sorted(SUPERSEDES))
def test_a_channel_with_that_right_replaces(notebook: Notebook, channel: Channel) -> None:
    [said] = notebook.say("My birthday is 3 May.")
    claim = replace(said.fact, text="My birthday is 9 June.", value="9 June", channel=channel)
    with notebook.store.database.read() as connection:
        decision = decide(connection, claim, notebook.view())
    assert (decision.action, decision.target) == (Action.UPDATE, said.fact.id)


def test_the_user_replaces_what_an_agent_noted(notebook: Notebook) -> None:
    note = Fact(
        text="The user's birthday is 1 May.", entity="user", key="birthday", value="1 May",
        channel=Channel.TOOL_UNASKED, scope="user", scope_target="owner",
    )  # fmt: skip
    noted = notebook.put(note)
    [said] = notebook.say("My birthday is 3 May.")
    assert (said.decision.action, said.decision.target) == (Action.UPDATE, noted.id)


def test_another_scope_is_neither_a_duplicate_nor_replaced(notebook: Notebook) -> None:
    notebook.say("My birthday is 3 May.", scope="agent:a")
    assert [captured.decision.action for captured in notebook.say("My birthday is 3 May.", scope="agent:b")] == [
        Action.ADD
    ]
    assert [captured.decision.action for captured in notebook.say("My birthday is 4 May.")] == [Action.ADD]


def test_two_values_in_one_turn_leave_the_later(notebook: Notebook) -> None:
    notebook.say("My birthday is 3 May. My birthday is 4 May.", "My birthday is 5 May.")
    assert notebook.slot("user", "birthday") == ["5 May"]


def test_an_entry_is_dealt_with_once(notebook: Notebook) -> None:
    [captured] = notebook.say("I live in Graz.", entry="file:7")
    assert notebook.say("I live in Graz.", entry="file:7") == []
    assert notebook.get(captured.fact.id).reinforced_count == 0


def test_a_rule_that_fails_costs_neither_its_sentence_nor_the_rest(notebook: Notebook) -> None:
    def rule(sentence: str) -> str | None:
        raise ValueError(sentence)

    notebook.rules = (rule,)
    said = notebook.say("I live in Graz.", "boom goes the rule", "My cat is called Mimi.", entry="file:8")
    assert [captured.fact.text for captured in said] == ["I live in Graz.", "My cat is called Mimi."]
    assert notebook.say("I live in Graz.", entry="file:8") == []


def test_what_is_captured_carries_where_it_came_from(notebook: Notebook) -> None:
    [captured] = notebook.say("We chose tea because it calms everybody.", scope="agent:ann")
    fact = captured.fact
    assert (fact.channel, fact.scope, fact.scope_target) == (Channel.USER, "agent", "ann")
    assert (fact.provenance_session, fact.source_turn) == ("s", "t")
    assert fact.why == "it calms everybody"
    assert fact.extraction_method == "rule:decision"


@pytest.mark.parametrize(
    ("embedder", "vectors"),
    [(None, 0), (HashEmbedder(), 6), (FailingEmbedder(), 0), (GuardedEmbedder(FailingEmbedder()), 0)],
)
def test_facts_are_kept_with_or_without_a_vector(notebook: Notebook, embedder: Embedder | None, vectors: int) -> None:
    identity = HashEmbedder().identity
    notebook.store.adopt_space(VectorSpace(identity.id, identity.dims, {}))
    notebook.embedder = embedder
    kept = notebook.say(*(f"My {ordinal} cat is called Tom {ordinal}." for ordinal in "abcdef"))
    assert len(kept) == 6
    with notebook.store.database.read() as connection:
        assert run(connection, "SELECT count(*) FROM vectors") == [(vectors,)]


def test_several_at_once_are_each_captured_once(notebook: Notebook) -> None:
    results: list[int] = []

    def say() -> None:
        results.append(len(notebook.say("I live in Graz.", entry="file:9")))

    threads = [threading.Thread(target=say) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert notebook.find("Graz") == ["I live in Graz."]
