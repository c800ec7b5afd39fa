"""What is withdrawn, doubted or replaced: softly, with a reason in the journal, and undone at will."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.capture.decide import Action, compare
from perdure.capture.describe import describe
from perdure.capture.statements import Statement
from perdure.hooks.types import TurnContext
from perdure.store.fact import Fact
from perdure.store.links import links_of
from perdure.store.sql import run
from tests.capture.conftest import Notebook
from tests.kit import for_each


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
        ("I'm intolerant to lactose.", "I am not intolerant to lactose after all."),
        ("I'm a vegetarian.", "I'm not a vegetarian anymore."),
    ],
)
def test_what_is_over_is_withdrawn(old: str, new: str) -> None:
    assert compare(stated(old), stated(new)).action is Action.DELETE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I drink coffee every morning.", "I gave up coffee, I drink tea now."),
        ("We use Jenkins.", "We no longer use Jenkins, we switched to Buildkite."),
        ("My dentist is Dr. Kay.", "My dentist is Dr. Lund now."),
        ("The picnic is on 4 June.", "The picnic was moved to 9 June."),
        ("The limit is 80 pages.", "Correction, the limit is 60 pages."),
        ("I live in Norway.", "I live in Bergen, Norway."),
        ("I live in Bergen.", "We've moved to Stavanger."),
        ("Dana lives in Bergen.", "Dana has moved to Stavanger."),
    ],
)
def test_what_came_in_its_place_replaces_it(old: str, new: str) -> None:
    assert compare(stated(old), stated(new)).action is Action.UPDATE


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
def test_slots_that_callers_have_named_do_not_replace_each_other(old: tuple[str, ...], new: tuple[str, ...]) -> None:
    before, after = (Fact(text=text, entity=entity, key=key, value=value) for text, entity, key, value in (old, new))
    assert compare(before, after).action is Action.ADD


@for_each(
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
        ("Our servers run Linux.", "Our servers run Debian Linux."),
        (
            "I'm not allergic to bees, but one jack jumper ant put me in hospital.",
            "Gave up on plastic frames because the bees draw crooked comb.",
        ),
        ("I live in Ghent.", "We moved to Revit in the end."),
        ("I work as a nurse.", "From now on my job is to test."),
        ("I work at Siemens.", "From now on I work at night."),
        ("I live in Ghent.", "I live in IntelliJ with the vim plugin."),
        ("I was born in Gothenburg.", "My birthday is 3 May."),
        ("Dad's surgery is on May 4th.", "Dad's check-up is on May 20th."),
        ("My name is Robert Jansen.", "Call me Rob."),
        ("My car is a Volvo.", "My car is a Fiat."),
        ("I speak German.", "I speak Polish."),
        ("My doctor is Dr. Kay.", "My doctor is Dr. Lund."),
        ("Team A meets at 9.", "Team B meets at 10."),
        ("Bus 16 stops at the hospital.", "Bus 18 stops at the hospital."),
        ("Our son is nine.", "Our son is 1.42 m."),
        ("I ran the marathon in 2019.", "I ran the marathon in 2022."),
        ("Standup is at 9:30.", "Standup is at 9:15 tomorrow only."),
        ("There's a blue inhaler that I take morning and night.", "Remind me the night before, not in the morning."),
    ],
)
def test_another_person_thing_or_time_replaces_nothing(old: str, new: str) -> None:
    assert compare(stated(old), stated(new)).action is Action.ADD


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I prefer tea.", "I prefer coffee to tea."),
        ("I prefer coffee to tea.", "I prefer tea."),
        ("I prefer tea to coffee.", "I prefer coffee to tea."),
        ("My favourite language is C++.", "My favourite languages are C++ and C#."),
        ("My birthday is 3 May.", "My birthday is 3 May and so is my sister's."),
        ("We pay 60 a month.", "We pay 60 % a month."),
        ("I eat meat on Sundays.", "I eat meat."),
    ],
)
def test_what_differs_in_a_detail_or_in_the_direction_of_a_comparison_is_not_swallowed(old: str, new: str) -> None:
    assert compare(stated(old), stated(new)).action is not Action.NOOP


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Standup is at 9:30.", "standup is 9:15"),
        ("I live in Ghent.", "I moved to Lisbon."),
        ("Bin day is Monday.", "Bin day is now Wednesday."),
        ("We keep backups for 14 days.", "We keep backups for 35 days."),
        ("My favourite language is C++.", "My favourite language is C#."),
        ("My CPAP is set to 9.", "The sleep clinic turned the CPAP up to 11."),
    ],
)
def test_another_value_of_the_same_replaces_it_without_a_word_of_change(old: str, new: str) -> None:
    verdict = compare(stated(old), stated(new))
    assert (verdict.action, verdict.part) == (Action.UPDATE, False)


@pytest.mark.parametrize(
    ("old", "new", "stale"),
    [
        (
            "The hearing is on 3 May, the budget is 4,000 euros, we want the pool, a report is missing.",
            "The hearing is on 12 May.", "3 May",
        ),
        ("I live in Ghent with two cats.", "I moved to Lisbon.", "Ghent"),
        ("DNS is managed in Route 53 by Ole.", "Route 53 has been replaced by Cloudflare for DNS.", "Route 53"),
    ],
)  # fmt: skip
def test_of_a_memory_that_says_more_only_the_value_is_out_of_date(old: str, new: str, stale: str) -> None:
    verdict = compare(stated(old), stated(new))
    assert (verdict.action, verdict.part, verdict.stale) == (Action.UPDATE, True, stale)


def test_what_speaks_of_a_change_marks_what_is_near_and_hides_nothing() -> None:
    old, new = stated("My editor of choice is Vim."), stated("My editor is Helix these days.")
    assert compare(old, new, 0.8).part
    assert compare(old, new, 0.4).action is Action.ADD
    assert compare(old, stated("My sister's editor is Helix these days."), 0.8).action is Action.ADD
    assert compare(old, stated("My editor is Helix in this demo, only until Friday."), 0.8).action is Action.ADD


def test_what_says_more_stays_readable_and_is_linked(notebook: Notebook) -> None:
    [old] = notebook.say("I live in Ghent with two cats.")
    [new] = notebook.say("I moved to Lisbon.")
    assert (new.decision.action, new.decision.corrects) == (Action.ADD, (old.fact.id,))
    assert set(notebook.find("Ghent Lisbon")) == {old.fact.text, new.fact.text}
    with notebook.store.database.read() as connection:
        [made] = links_of(connection, [old.fact.id])
    assert (made.source, made.target, made.type) == (new.fact.id, old.fact.id, "CORRECTS")


@for_each(("old", "said", "left"), [
    ("I play squash on Sundays.", "I gave up squash.", []),
    ("The train leaves at 7:15.", "Sorry, the train leaves at 8:40, not 7:15.",
     ["Sorry, the train leaves at 8:40, not 7:15."]),
    ("The train leaves at 7:15.", "Sorry, the bus leaves at 8:40, not 7:05.", ["The train leaves at 7:15."]),
    ("I play squash on Sundays.", "Could you say that I gave up squash?", ["I play squash on Sundays."]),
    ("I live in Graz.", "Draft an email saying that I moved from Graz to Vienna.", ["I live in Graz."]),
    ("The hourly rate is 62 euros.", "Try a version where the hourly rate is raised to 70 euros.",
     ["The hourly rate is 62 euros."]),
    ("I take sugar in coffee.", "I do not take any more sugar in coffee than Tom.",
     ["I do not take any more sugar in coffee than Tom.", "I take sugar in coffee."]),
    ("We ship on Fridays.", "That is not happening anymore. They moved to Berlin in March.",
     ["They moved to Berlin in March. (after: That is not happening anymore.)", "We ship on Fridays."]),
])  # fmt: skip
def test_what_nobody_would_keep_is_kept_where_it_changes_what_is_known(
    tmp_path: Path, old: str, said: str, left: list[str]
) -> None:
    with Memory.open(tmp_path / old[:9] / said[:30], embedder="none") as memory:
        memory.store(old)
        memory.turns.after([{"role": "user", "content": said}], True, TurnContext(session_id="s"))
        assert memory.settle()
        assert [fact.text for fact in memory.admin.list()] == left


def test_what_ends_something_and_says_more_is_stored(notebook: Notebook) -> None:
    [old] = notebook.say("I play squash on Sundays.")
    [new] = notebook.say("I gave up squash, I row at the harbour club.")
    assert (new.decision.action, new.decision.target) == (Action.UPDATE, old.fact.id)
    assert notebook.find("squash harbour") == [new.fact.text]


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
    assert compare(stated(old), stated(new)).action is Action.NOOP


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


def test_a_denial_in_the_same_words_is_linked_and_both_stay(notebook: Notebook) -> None:
    [one] = notebook.say("I'm allergic to shellfish.")
    [two] = notebook.say("I'm not allergic to shellfish.")
    assert two.decision.action is Action.ADD
    assert two.decision.against == one.fact.id
    with notebook.store.database.read() as connection:
        [made] = links_of(connection, [two.fact.id])
    assert (made.source, made.target, made.type) == (two.fact.id, one.fact.id, "CONTRADICTS")
    assert len(notebook.find("shellfish")) == 2


def test_what_only_sounds_like_a_contradiction_is_not_linked(notebook: Notebook) -> None:
    notebook.say("My caravan has no oven.")
    [two] = notebook.say("My big fireplace has an oven.")
    assert two.decision.against is None


@for_each(
    ("told", "order"),
    [
        ("I want to learn the harp.", "Forget what I said about the harp."),
        ("My therapist is Dr. Lund.", "Please delete everything about my therapist."),
    ],
)
def test_an_order_that_is_stored_is_obeyed_and_no_memory(tmp_path: Path, told: str, order: str) -> None:
    with Memory.open(tmp_path / order, embedder="none") as memory:
        memory.store(told)
        memory.store(order)
        assert memory.admin.list() == []


def test_an_undone_doubt_is_not_undone_a_second_time(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home", embedder="none") as memory:
        memory.store("Berth number 1 is taken.")
        memory.store("Berth number 2 is taken.")
        memory.undo()
        memory.undo()
        assert memory.admin.list() == []
