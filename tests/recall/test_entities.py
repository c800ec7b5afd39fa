"""Whom and what a prompt names, and what of it comes up though it is too weak by itself."""

from __future__ import annotations

from perdure.embed.base import Embedder
from perdure.recall.entities import MOST, of_named
from perdure.store.fact import Fact
from tests.kit import for_each
from tests.recall.conftest import Desk, OpenDesk


def named(prompt: str, entity: str) -> bool:
    return bool(of_named(prompt, [Fact("It is red.", entity=entity, key="colour")]))


@for_each(
    ("prompt", "entity"),
    [
        ("Dinner with Leah tonight?", "Leah"),
        ("what does leah eat?", "Leah"),
        ("Is Leah's flat far?", "Leah"),
        ("Restart project heron, please.", "Project Heron"),
        ("Where is my boat?", "boat"),
        ("Restart the staging database.", "staging database"),
        ("Can you restart staging database?", "staging database"),
        ("Has IT called?", "IT"),
        ("Is k3s up?", "k3s"),
    ],
)
def test_a_prompt_that_names_it(prompt: str, entity: str) -> None:
    assert named(prompt, entity)


@for_each(
    ("prompt", "entity"),
    [
        ("Leah: what a day", "Leah"),
        ("Mark this as done, and then mark that.", "mark"),
        ("I will mark it.", "Mark"),
        ("Draw a boat.", "boat"),
        ("Who owns boats?", "boat"),
        ("Is it late?", "IT"),
        ("Restart heron-2.", "heron"),
        ("The user is at the door.", "user"),
        ("By convention, yes.", "convention"),
        ("Who is it?", ""),
    ],
)
def test_a_prompt_that_does_not(prompt: str, entity: str) -> None:
    assert not named(prompt, entity)


def test_so_many_of_each_come(wordy: Desk) -> None:
    facts = [Fact(f"{number}", entity=entity, key="is") for entity in ("Leah", "Otto") for number in range(5)]
    found = of_named("Leah meets Otto.", facts)
    assert [fact.entity for fact in found] == ["Leah"] * MOST + ["Otto"] * MOST


def test_without_a_model_what_is_known_comes_and_of_nobody_else(wordy: Desk) -> None:
    wordy.put("No peanuts are eaten there.", entity="Leah", key="allergy")
    wordy.put("No peanuts are sold there.", entity="Otto", key="shop")
    assert wordy.texts("I'm meeting Leah for lunch.") == ["No peanuts are eaten there."]
    recall, _ = wordy.ask("I'm meeting Leah for lunch.")
    assert recall is not None
    assert [item.leg for item in recall.items] == ["lookup"]
    assert wordy.texts("I'm meeting Leah for lunch.", model=True) == [], "until the model is there that is to judge"


def test_a_model_asks_less_of_it_and_not_nothing(open_desk: OpenDesk, encoder: Embedder) -> None:
    desk = open_desk(encoder)
    desk.put("Leah is allergic to peanuts.", entity="Leah", key="allergy")
    desk.put("Leah keeps the receipts of 2019 in the blue box.", entity="Leah", key="receipts")
    desk.put("Otto is allergic to peanuts.", entity="Otto", key="allergy")
    assert desk.texts("Leah is coming on Saturday.") == ["Leah is allergic to peanuts."]
