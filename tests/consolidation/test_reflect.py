"""What memories of several days have in common becomes a pattern, once, with its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.capture.writing import Writer, WritingOptions
from perdure.clock import ManualClock
from perdure.consolidation.reflect import Reflected, Window, find, reflect
from perdure.errors import InputError, ModelError
from perdure.hooks.types import Channel
from perdure.maintenance.purge import purge
from perdure.store import lifecycle, links
from perdure.store.fact import Fact
from perdure.store.scope import Audience, Scope
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.store.undo import undo

AUTHOR = Author(Channel.LIBRARY)
HOME = Scope("user", "owner")
START = 1_800_000_000.0
DAY = 86_400.0


class Diary:
    """A store without a model, and what somebody said on which day."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder, clock=ManualClock(START))

    def said(self, day: float, text: str, **values: Any) -> Fact:
        kept = {"scope": "user", "scope_target": "owner", "channel": Channel.USER, **values}
        with self.store.write(AUTHOR) as tx:
            return tx.add(Fact(text, source_date=START - day * DAY, **kept))

    def reflect(self, window: Window = Window(), **options: Any) -> Reflected:  # noqa: B008 - frozen
        return reflect(self.store, HOME, AUTHOR, Writer(lambda: None, WritingOptions()), window, **options)

    def fact(self, fact_id: str) -> Fact:
        with self.store.write(AUTHOR) as tx:
            return tx.fact(fact_id)


@pytest.fixture
def diary(tmp_path: Path) -> Iterator[Diary]:
    diary = Diary(tmp_path / "home")
    yield diary
    diary.store.close()


def pottery(diary: Diary) -> list[Fact]:
    return [
        diary.said(9, "I signed up for a pottery class."),
        diary.said(5, "My pottery bowl came out of the kiln."),
        diary.said(1, "I sold some pottery at the fair."),
    ]


def test_what_comes_back_on_several_days_is_a_pattern_with_its_evidence(diary: Diary) -> None:
    facts = pottery(diary)
    (found,) = diary.reflect().patterns
    stored = diary.fact(found.id)
    assert (found.kind, found.action) == ("topic", "new")
    assert stored.text == "Keeps coming back to pottery (3 memories, 2027-01-06 to 2027-01-14)."
    assert (stored.category, stored.importance, stored.scope_target) == ("pattern", 0.9, "owner")
    with diary.store.database.read() as connection:
        linked = links.links_of(connection, [found.id])
    assert {(link.type, link.target) for link in linked} == {("DERIVED_FROM", fact.id) for fact in facts}


@pytest.mark.parametrize(
    ("texts", "kind", "words"),
    [
        (["I love sailing.", "We enjoy sailing on Sundays.", "The sailing club is open."], "preference", "sailing"),
        (["I hate celery.", "I can't stand celery.", "The soup had celery in it."], "aversion", "celery"),
        (["I swim laps every morning.", "Swimming every morning keeps me fit.", "I swim with fins."], "habit", "swim"),
    ],
)
def test_how_somebody_speaks_of_it_is_heard(diary: Diary, texts: list[str], kind: str, words: str) -> None:
    for day, text in enumerate(texts):
        diary.said(day + 1, text)
    found = [pattern for pattern in diary.reflect().patterns if words in pattern.text]
    assert [pattern.kind for pattern in found] == [kind]


@pytest.mark.parametrize(
    ("texts", "kind", "told"),
    [
        (["I like short answers.", "I prefer short answers.", "Please: I like short answers!"], "preference",
         'Says again and again: "I like short answers."'),
        (["I like answers that are short.", "I prefer answers that are short."], "preference",
         'Says again and again: "I like answers that are short."'),
        (["I prefer coffee without sugar.", "I like coffee without sugar in it."], "preference",
         'Says again and again: "I prefer coffee without sugar."'),
        (["I like soup, but only cold.", "I really like soup, but only cold."], "preference",
         'Says again and again: "I like soup, but only cold."'),
        (["I love my garden.", "It rained. I love my garden, even then."], "preference",
         'Says again and again: "I love my garden."'),
        (["I can't stand long sermons.", "I hate long sermons."], "aversion",
         'Says again and again: "I hate long sermons."'),
        (["I never eat meat on Fridays.", "Meat is off the table every Friday."], "habit",
         'Regularly: "I never eat meat on Fridays."'),
        (["We had meat. I run every morning.", "Meat again. I swim every evening."], "topic",
         "Keeps coming back to meat"),
    ],
)  # fmt: skip
def test_a_pattern_keeps_the_point_of_what_was_said(diary: Diary, texts: list[str], kind: str, told: str) -> None:
    for day, text in enumerate([*texts, *texts]):
        diary.said(day + 1, text)
    for pattern in diary.reflect().patterns:
        assert (pattern.kind, pattern.text.partition(" (")[0]) == (kind, told)
    assert diary.reflect().patterns


@pytest.mark.parametrize(
    "texts",
    [
        ["I like short answers.", "I like quick answers.", "I prefer answers without lists."],
        ["I love cold soup.", "I love hot soup.", "I enjoy soup with bread."],
        ["I hate new phones.", "I hate old phones.", "I can't stand phones at dinner."],
        ["I like answers in German.", "I like answers in verse.", "I like answers that rhyme."],
    ],
)
def test_wishes_that_differ_make_no_pattern(diary: Diary, texts: list[str]) -> None:
    """What they share is not what anybody asked for: of "short answers" and "quick answers", "answers"."""
    for day, text in enumerate(texts):
        diary.said(day + 1, text)
    assert diary.reflect().patterns == ()


@given(
    st.sampled_from(["like", "love", "prefer", "enjoy", "hate", "can't stand"]),
    st.lists(st.sampled_from(["long", "cold", "old", "new", "over", "only", "my", "every", "2"]), max_size=4),
    st.sampled_from(["answers", "meetings", "phones", "soup"]),
    st.lists(st.sampled_from(["without", "sugar,", "but", "only", "at", "home", "that", "rhyme", "3"]), max_size=4),
)  # fmt: skip
def test_no_pattern_about_a_wish_says_more_than_was_said(
    verb: str, before: list[str], what: str, after: list[str]
) -> None:
    text = " ".join([f"I {verb}", *before, what, *after]) + "."
    said = [Fact(form, id=str(day), source_date=day * DAY) for day, form in enumerate([text, f"Well, {text}"] * 2)]
    for found in find(said, {}):
        assert found.kind == "topic" or text in found.text


def test_three_of_one_weekday_are_a_habit_of_that_weekday(diary: Diary) -> None:
    for week in range(3):
        diary.said(7 * week + 1, f"Rehearsal number {week} of the orchestra.")
    assert any("on Thursdays" in each.text for each in diary.reflect(Window(days=30)).patterns)


@pytest.mark.parametrize(
    "other",
    [
        {"channel": Channel.ASSISTANT},
        {"channel": Channel.FILE},
        {"review_state": "pending"},
        {"scope": "global", "scope_target": ""},
        {"source_date": START - 15 * DAY},
        {"source_date": START - 1 * DAY},
        {"forgotten_at": START - 10},
    ],
)
def test_what_is_not_the_users_or_not_of_these_days_is_no_evidence(diary: Diary, other: dict[str, Any]) -> None:
    diary.said(1, "I signed up for a pottery class with a kiln.")
    fact = Fact("The pottery class has a kiln.", **{"scope": "user", "scope_target": "owner", "channel": Channel.USER,
                "source_date": START - 3 * DAY, **other})  # fmt: skip
    with diary.store.write(AUTHOR) as tx:
        tx.add(fact)
    assert diary.reflect().patterns == ()


def test_no_pattern_is_kept_twice(diary: Diary) -> None:
    pottery(diary)
    (first,) = diary.reflect().patterns
    (again,) = diary.reflect().patterns
    assert (again.id, again.action) == (first.id, "known")


def test_more_evidence_makes_a_new_version(diary: Diary) -> None:
    facts = pottery(diary)
    (first,) = diary.reflect().patterns
    more = diary.said(0, "The pottery wheel squeaks.")
    (second,) = diary.reflect().patterns
    assert second.action == "updated"
    assert diary.fact(first.id).superseded_by == second.id
    assert second.evidence == (*(fact.id for fact in facts), more.id)
    assert "4 memories" in second.text


def test_a_pattern_that_was_forgotten_stays_away(diary: Diary) -> None:
    pottery(diary)
    (first,) = diary.reflect().patterns
    with diary.store.write(AUTHOR) as tx:
        lifecycle.forget(tx, first.id)
    (again,) = diary.reflect().patterns
    assert (again.action, diary.fact(first.id).forgotten_at) == ("known", START)


def test_one_undo_takes_a_reflection_back(diary: Diary) -> None:
    pottery(diary)
    done = diary.reflect()
    with diary.store.write(AUTHOR) as tx:
        undo(tx, done.batch, Audience.of())
    assert diary.fact(done.patterns[0].id).forgotten_at is not None


def test_who_purges_the_evidence_purges_the_pattern(diary: Diary) -> None:
    facts = pottery(diary)
    (found,) = diary.reflect().patterns
    assert found.id in purge(diary.store, [facts[0].id], AUTHOR).facts


def test_a_dry_run_keeps_nothing(diary: Diary) -> None:
    pottery(diary)
    dry = diary.reflect(dry_run=True)
    assert ([each.id for each in dry.patterns], dry.batch) == ([""], "")
    assert diary.reflect().patterns[0].action == "new"


class Model:
    """A language model that gives one answer, or none."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def ask_json(self, prompt: str, **given: Any) -> Any | None:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


INSIGHT = "They spend more and more of their time on making things by hand."


def test_a_model_adds_what_it_has_evidence_for_and_is_marked(diary: Diary) -> None:
    pottery(diary)
    answers = [
        {"pattern": INSIGHT, "evidence": [1, 3]},
        {"pattern": INSIGHT, "evidence": [1, 99]},
        {"pattern": "short"},
    ]
    found = diary.reflect(llm=Model(answers)).patterns
    assert [pattern.kind for pattern in found] == ["topic", "insight"]
    assert diary.fact(found[1].id).channel is Channel.TOOL_UNASKED
    assert [each.action for each in diary.reflect(llm=Model(answers)).patterns] == ["known", "known"]


@pytest.mark.parametrize(
    "answer", [ModelError("away"), None, "prose", {"pattern": INSIGHT}, [1, None, {"evidence": 3}]]
)
def test_a_model_that_fails_takes_nothing_away(diary: Diary, answer: Any) -> None:
    pottery(diary)
    assert [pattern.kind for pattern in diary.reflect(llm=Model(answer)).patterns] == ["topic"]


@pytest.mark.parametrize("values", [{"days": 0}, {"minimum": 1}, {"limit": 0}])
def test_a_window_that_cannot_be_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"at least|more than"):
        Window(**values)
