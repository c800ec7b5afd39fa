"""What is withdrawn, doubted or replaced: softly, with a reason in the journal, and undone at will."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perdure.capture.compare import ASKED, Action, compare
from perdure.capture.describe import describe
from perdure.capture.statements import Statement
from perdure.plugin.memory import Memory
from perdure.store.database import run
from perdure.store.fact import Fact
from perdure.store.links import links_of
from tests.capture.conftest import Notebook


def stated(text: str) -> Fact:
    found = describe(Statement(text, "stored"))
    slot = found.slot
    return Fact(
        text=text, category=found.category, entity=slot.entity if slot else None, key=slot.key if slot else None,
        value=slot.value if slot else None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I drink coffee every morning.", "I don't drink coffee any more."),
        ("I like cilantro.", "I no longer like cilantro."),
        ("I play squash on Sundays.", "I gave up squash."),
        ("We are going to Oslo in June.", "The trip to Oslo is off."),
        ("The picnic is on 4 June.", "The picnic was cancelled."),
        ("I want to learn the harp.", "Forget what I said about the harp."),
        ("My therapist is Dr. Lund.", "Please delete everything about my therapist."),
        ("I'm intolerant to lactose.", "I am not intolerant to lactose."),
    ],
)
def test_what_is_over_is_withdrawn(old: str, new: str) -> None:
    assert compare(stated(old), stated(new), 0.7).action is Action.DELETE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I drink coffee every morning.", "I gave up coffee, I drink tea now."),
        ("We use Jenkins.", "We no longer use Jenkins, we switched to Buildkite."),
        ("My dentist is Dr. Kay.", "My dentist is Dr. Lund now."),
        ("The picnic is on 4 June.", "The picnic was moved to 9 June."),
        ("The limit is 80 pages.", "Correction, the limit is 60 pages."),
        ("I live in Norway.", "I live in Bergen, Norway."),
        ("Our servers run Linux.", "Our servers run Debian Linux."),
    ],
)
def test_what_came_in_its_place_replaces_it(old: str, new: str) -> None:
    assert compare(stated(old), stated(new), 0.7).action is Action.UPDATE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            ("Larkspur takes payments through Stripe.", "Larkspur", "payments", "Stripe"),
            ("Larkspur stores its data in MariaDB and will not move to Postgres this year.", "Larkspur", "database",
             "MariaDB"),
        ),
        (
            ("The flat is in Lisbon, I moved there in March.", "user", "home_city", "Lisbon"),
            ("I grew up in Porto and lived in Ghent until we left Belgium.", "user", "former_homes", "Porto, Ghent"),
        ),
        (
            ("marlin runs PostgreSQL 14.", "marlin", "version", "PostgreSQL 14"),
            ("marlin is backed up at 02:30 into kelp-archive and the copies are kept for 35 days.", "marlin", "backup",
             "02:30"),
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cosine", [0.4, 0.6, 0.8])
def test_slots_that_callers_have_named_do_not_replace_each_other(
    old: tuple[str, ...], new: tuple[str, ...], cosine: float
) -> None:
    before, after = (Fact(text=text, entity=entity, key=key, value=value) for text, entity, key, value in (old, new))
    assert compare(before, after, cosine).action is Action.ADD


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I'm allergic to shellfish.", "My sister is allergic to shellfish."),
        ("My brother lives in Oulu.", "My sister lives in Oulu."),
        ("My road bike is a Bianchi.", "My mountain bike is a Scott."),
        ("I love strawberry jam.", "I love strawberry cake."),
        ("I like tea.", "I like coffee."),
        ("On Mondays I work from home.", "On Wednesdays I work in the office."),
        ("Our Q1 revenue was 1.2 million.", "Our Q2 revenue was 1.4 million."),
        ("My sister gave up smoking.", "I gave up smoking."),
        ("I have a daughter.", "My daughter's name is Saskia."),
        ("We went to Crete last summer.", "Next summer we're going to Crete."),
        ("Clean the desk.", "Drop the old tables before the import."),
    ],
)
@pytest.mark.parametrize("cosine", [0.4, 0.7, 0.9])
def test_another_person_thing_or_time_replaces_nothing(old: str, new: str, cosine: float) -> None:
    assert compare(stated(old), stated(new), cosine).action is Action.ADD


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I can't stand coriander.", "I hate coriander."),
        ("My husband is vegetarian.", "My hubby's a veggie."),
        ("The shop closes at 6 pm.", "The shop closes at 18:00."),
        ("I prefer window seats.", "As I said, I prefer window seats!"),
    ],
)
def test_the_same_in_other_words_is_known(old: str, new: str) -> None:
    assert compare(stated(old), stated(new), 0.8).action is Action.NOOP


def test_a_withdrawn_fact_is_kept_for_undo_and_nothing_is_stored(notebook: Notebook) -> None:
    [said] = notebook.say("I drink coffee every morning.")
    [done] = notebook.say("I don't drink coffee any more.")

    assert (done.decision.action, done.fact.id) == (Action.DELETE, said.fact.id)
    assert notebook.find("coffee") == []
    assert notebook.find("coffee", include_superseded=True) == [said.fact.text]
    assert done.fact.valid_until == notebook.clock.now()


@pytest.mark.parametrize(
    ("old", "new", "action"),
    [
        ("I live in Graz.", "I moved to Linz.", "supersede"),
        ("I drink coffee every morning.", "I don't drink coffee any more.", "retract"),
        ("I want to learn the harp.", "Forget what I said about the harp.", "forget"),
        ("I prefer window seats.", "As I said, I prefer window seats!", "reinforce"),
        ("I live in Graz.", "My sister owns three hens.", "add"),
    ],
)
def test_every_decision_has_its_reason_in_the_journal_and_is_undone(
    tmp_path: Path, old: str, new: str, action: str
) -> None:
    with Memory.open(tmp_path / "home", embedder="none") as memory:
        check_undone(memory, old, new, action)


def check_undone(memory: Memory, old: str, new: str, action: str) -> None:
    before = memory.store(old)
    memory.store(new)
    with memory._engine.store.database.read() as connection:
        rows = run(connection, "SELECT detail FROM journal WHERE action = ? ORDER BY seq DESC LIMIT 1", (action,))
    assert json.loads(str(rows[0][0]))["reason"]
    memory.undo()
    live = memory.admin.list()
    assert [(fact.id, fact.text, fact.superseded_at, fact.reinforced_count) for fact in live] == [
        (before.id, old, None, 0)
    ]


def test_what_may_contradict_is_linked_and_both_stay(notebook: Notebook) -> None:
    [one] = notebook.say("My spare key is under the blue pot.")
    [two] = notebook.say("My spare key never leaves the kitchen drawer.")
    assert two.decision.action is Action.ADD
    assert two.decision.against == one.fact.id
    with notebook.store.database.read() as connection:
        [made] = links_of(connection, [two.fact.id])
    assert (made.source, made.target, made.type) == (two.fact.id, one.fact.id, "CONTRADICTS")
    assert len(notebook.find("spare key")) == 2


def test_a_request_to_forget_hides_the_fact_from_its_history_too(notebook: Notebook) -> None:
    [said] = notebook.say("I want to learn the harp.")
    assert compare(said.fact, stated("Forget what I said about the harp."), 0.5).reason == ASKED


def test_an_undone_doubt_is_not_undone_a_second_time(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home", embedder="none") as memory:
        memory.store("Berth number 1 is taken.")
        memory.store("Berth number 2 is taken.")
        memory.undo()
        memory.undo()
        assert memory.admin.list() == []
