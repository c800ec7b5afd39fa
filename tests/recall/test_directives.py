"""Rules that bring up memories whatever a search finds."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.errors import InputError
from perdure.recall.options import Directive, directives
from perdure.recall.unasked import facts_of, matching
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.text.normalise import match_terms
from tests.recall.conftest import Desk

DEPLOY = Directive(task="deploy", task_words=("release", "roll out"))
START = Directive(session_start=True, tag="onboarding")


def fires(rule: Directive, prompt: str, first_turn: bool = False) -> bool:
    return matching([rule], frozenset(match_terms(prompt)), prompt, first_turn) == [rule]


def brought(desk: Desk, rule: Directive, limit: int = 3, **asked: Any) -> list[str]:
    with desk.store.database.read() as connection:
        facts = facts_of(connection, rule, View(Audience.of(), desk.clock.now(), **asked), limit)
    return [fact.text for fact in facts]


class TestMatching:
    @pytest.mark.parametrize(
        ("rule", "prompt"),
        [
            (Directive(entity="Anna"), "what does anna like?"),
            (Directive(entity="Anna"), "Anna's birthday"),
            (Directive(entity="Project Heron"), "Where does project  heron live?"),
            (Directive(entity="Café Müller"), "is cafe muller open"),
            (Directive(entity="heron_db"), "restart heron_db"),
            (Directive(entity="白鹭"), "数据库白鹭在哪里？"),
            (Directive(entity="서울"), "서울에 있어?"),
            (Directive(keyword="deploy"), "I deployed it"),
            (Directive(keyword="release"), "what releases are there"),
            (Directive(keyword="again"), "do it again"),
            (Directive(keyword="pull request"), "Open a pull request"),
            (DEPLOY, "how do we deploy?"),
            (DEPLOY, "the next release"),
            (DEPLOY, "Roll out the change"),
        ],
    )
    def test_a_prompt_that_names_it(self, rule: Directive, prompt: str) -> None:
        assert fires(rule, prompt)

    @pytest.mark.parametrize(
        ("rule", "prompt"),
        [
            (Directive(entity="Ann"), "planning for Anna"),
            (Directive(entity="Project Heron"), "the heron in our project"),
            (Directive(keyword="port"), "an important report"),
            (Directive(keyword="pull request"), "request a pull"),
            (Directive(keyword="roll out"), "a bread roll"),
            (Directive(keyword="again"), "against"),
            (DEPLOY, "write a haiku"),
            (DEPLOY, ""),
            (START, "hello"),
        ],
    )
    def test_a_prompt_that_does_not(self, rule: Directive, prompt: str) -> None:
        assert not fires(rule, prompt)

    def test_the_first_turn_of_a_session(self) -> None:
        assert fires(START, "hello", first_turn=True)
        assert not fires(Directive(entity="Anna"), "hello", first_turn=True)
        both = Directive(session_start=True, entity="Anna")
        assert fires(both, "hello", first_turn=True)
        assert fires(both, "hello Anna")

    def test_four_at_the_most_in_their_order_and_each_once(self) -> None:
        rules = [Directive(keyword=word) for word in ("one", "zero", "two", "one", "three", "four", "five")]
        prompt = "five four three two one"
        found = matching(rules, frozenset(match_terms(prompt)), prompt, first_turn=False)
        assert [rule.keyword for rule in found] == ["one", "two", "three", "four"]


class TestSettings:
    def test_each_setting_becomes_a_rule(self) -> None:
        rules = directives(
            entities=["Anna"], keywords=["port"], tasks={"deploy": ["release", "roll out"]}, session_tags=["onboarding"]
        )
        assert rules == (START, Directive(entity="Anna"), Directive(keyword="port"), DEPLOY)
        assert directives() == ()

    @pytest.mark.parametrize(
        "fields",
        [
            {},
            {"tag": "a"},
            {"session_start": True},
            {"keyword": " "},
            {"entity": ""},
            {"task": "a", "task_words": ("",)},
        ],
    )
    def test_a_rule_that_can_do_nothing_is_refused(self, fields: dict[str, Any]) -> None:
        with pytest.raises(InputError):
            Directive(**fields)


class TestFacts:
    def test_of_an_entity(self, wordy: Desk) -> None:
        wordy.put("Anna likes tea.", entity="anna", key="like", confidence=0.5)
        wordy.put("Anna lives in Brno.", entity="Anna", key="location")
        wordy.put("Otto knows Anna.", entity="Otto", key="friend")
        assert brought(wordy, Directive(entity="ANNA")) == ["Anna lives in Brno.", "Anna likes tea."]
        assert brought(wordy, Directive(entity="ANNA"), 1) == ["Anna lives in Brno."]

    def test_of_a_keyword(self, wordy: Desk) -> None:
        wordy.put("We deploy from main.")
        wordy.put("The kettle is red.")
        assert brought(wordy, Directive(keyword="deployed")) == ["We deploy from main."]

    def test_of_the_words_of_a_task(self, wordy: Desk) -> None:
        for text in ("We deploy from main.", "A release needs two reviews.", "The kettle is red."):
            wordy.put(text)
        assert set(brought(wordy, DEPLOY)) == {"We deploy from main.", "A release needs two reviews."}

    def test_with_a_tag(self, wordy: Desk) -> None:
        wordy.put("Old and minor.", tags=("onboarding",), preserve_tags=True, importance=0.2)
        wordy.put("Important.", tags=("team", "Onboarding"), preserve_tags=True, importance=0.9)
        wordy.put("New and minor.", tags=("onboarding",), preserve_tags=True, importance=0.2)
        wordy.put("Pinned.", tags=("onboarding",), preserve_tags=True, importance=0.1, pinned=True)
        wordy.put("Of another tag.", tags=("onboarding talks",), preserve_tags=True)
        wordy.put("Of none: onboarding.")
        assert brought(wordy, START, 9) == ["Pinned.", "Important.", "New and minor.", "Old and minor."]
        assert brought(wordy, START, 2) == ["Pinned.", "Important."]
        assert brought(wordy, Directive(keyword="kettle", tag="team")) == ["Important."]

    @pytest.mark.parametrize("rule", [Directive(entity="Anna"), Directive(keyword="anna"), START])
    def test_only_what_may_be_seen(self, wordy: Desk, rule: Directive) -> None:
        fields: dict[str, Any] = {"entity": "Anna", "tags": ("onboarding",), "preserve_tags": True}
        wordy.put("Anna is mine.", **fields)
        wordy.put("Anna is theirs.", **fields, scope_target="somebody else")
        wordy.put("Anna is gone.", **fields, forgotten_at=1.0)
        wordy.put("Anna waits.", **fields, review_state="pending")
        assert brought(wordy, rule, approved_only=True) == ["Anna is mine."]

    @pytest.mark.parametrize("word", ['"', "a OR b", "*", "'; DROP TABLE facts; --", "!?", "🦆"])
    def test_whatever_a_rule_is_called_it_is_no_query_of_its_own(self, wordy: Desk, word: str) -> None:
        wordy.put("The kettle is red.")
        assert brought(wordy, Directive(keyword=word)) == []
        assert brought(wordy, Directive(entity=word)) == []
        assert not fires(Directive(keyword=word), "The kettle is red.")
        assert not fires(Directive(keyword=word), "")
