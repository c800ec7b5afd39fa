"""What memories of several days have in common becomes a pattern, once, in their words and with its evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.api.memory import Memory
from perdure.capture.writing import Writer, WritingOptions
from perdure.clock import ManualClock
from perdure.consolidation.patterns import TOLD, find
from perdure.consolidation.reflect import Reflected, Window, reflect
from perdure.errors import InputError
from perdure.hooks.types import Channel, TurnContext
from perdure.maintenance.purge import purge
from perdure.store import lifecycle, links
from perdure.store.fact import Fact
from perdure.store.history import replacements
from perdure.store.scope import Audience, Scope
from perdure.store.store import Store
from perdure.store.transaction import Author, Transaction
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


def guests(diary: Diary) -> list[Fact]:
    return [
        diary.said(9, "Ruth is vegetarian and doesn't eat eggs."),
        diary.said(5, "Piotr has an allergy to celery, the real kind."),
        diary.said(1, "I can't have grapefruit because of my tablets."),
    ]


def test_what_several_days_have_in_common_is_told_in_their_words_with_its_evidence(diary: Diary) -> None:
    facts = guests(diary)
    (found,) = diary.reflect().patterns
    stored = diary.fact(found.id)
    assert (found.kind, found.action) == ("restriction", "new")
    assert stored.text == (
        'Dietary restrictions: "Ruth is vegetarian and doesn\'t eat eggs"; "Piotr has an allergy to'
        ' celery, the real kind"; "I can\'t have grapefruit because of my tablets"'
        " (3 memories, 2027-01-06 to 2027-01-14)."
    )
    assert (stored.category, stored.importance, stored.scope_target) == ("pattern", 0.9, "owner")
    with diary.store.database.read() as connection:
        linked = links.links_of(connection, [found.id])
    assert {(link.type, link.target) for link in linked} == {("DERIVED_FROM", fact.id) for fact in facts}


def told(*texts: str, now: float = START + 20 * DAY) -> list[str]:
    """Return what is told of texts, each said on a day of its own."""
    facts = [Fact(text, id=f"{day:02}", source_date=START + day * DAY) for day, text in enumerate(texts)]
    return [f"{each.kind}: {each.text}" for each in find(facts, now)]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["Left knee was replaced in March, no kneeling.", "I'm red-green colour-blind."],
         'own_limit: Health limitations: "Left knee was replaced in March, no kneeling"; "I\'m red-green'
         ' colour-blind"'),
        (["The water pill I take in the morning.", "Warfarin 5 mg at eight in the evening."],
         'medicine: Medication: "The water pill I take in the morning"; "Warfarin 5 mg at eight'
         ' in the evening"'),
        (["The MOT runs out on 9 February.", "Home insurance with NFU, renewal 12 November."],
         'end: Things that expire or need renewal: "The MOT runs out on 9 February"; "Home insurance with NFU,'
         ' renewal 12 November"'),
        (["Pete's birthday is 23 February.", "Gran turns 80 on 19 December."],
         'birthday: Birthdays: "Pete\'s birthday is 23 February"; "Gran turns 80 on 19'
         ' December"'),
        (["Please keep answers to three lines.", "Never give me one-letter variable names."],
         'wish: How answers should be written: "Please keep answers to three lines";'
         ' "Never give me one-letter variable names"'),
        (["Choir is Thursdays at half seven.", "Physio is every Tuesday at 10:15.", "I work Mon/Wed/Fri 9 to 3."],
         'week: Fixed times in the week: "Choir is Thursdays at half seven"; "Physio is every Tuesday at 10:15";'
         ' "I work Mon/Wed/Fri 9 to 3"'),
        (["Choir is Thursdays at half seven.", "Physio is every Thursday at 10:15."],
         'weekday: Fixed appointments on Thursdays: "Choir is Thursdays at half seven"; "Physio is every'
         ' Thursday at 10:15"'),
        (["I like short answers.", "I prefer short answers.", "Please: I like short answers!"],
         'preference: Said more than once: "I like short answers"'),
        (["I like answers that are short.", "I prefer answers that are short."],
         'preference: Said more than once: "I like answers that are short"'),
        (["I like soup, but only cold.", "I really like soup, but only cold."],
         'preference: Said more than once: "I like soup, but only cold"'),
        (["I love my garden.", "It rained. I love my garden, even then."],
         'preference: Said more than once: "I love my garden"'),
        (["I can't stand long sermons.", "I hate long sermons."],
         'aversion: Said more than once: "I hate long sermons"'),
        (["I never swim on Fridays.", "I never swim on Fridays, not even in June."],
         'habit: Said more than once: "I never swim on Fridays"'),
        (["My knee hurts after running.", "My knee is swollen again."],
         'trouble: Recurring problem: "My knee is swollen again"'),
    ],
    ids=lambda value: value.partition(":")[0] if isinstance(value, str) else "",
)  # fmt: skip
def test_what_each_memory_says_by_itself_is_what_they_have_in_common(texts: list[str], expected: str) -> None:
    assert told(*texts) == [expected]


@pytest.mark.parametrize(
    "texts",
    [
        # A topic.
        ["I signed up for a pottery class.", "My pottery bowl came out of the kiln.", "I sold some pottery."],
        ["My knee is on the list for a scan.", "The knee man is called Dr Feldman."],
        # Wishes of which only a word is the same.
        ["I hate new phones.", "I hate old phones.", "I can't stand phones at dinner."],
        ["I love cold soup.", "I love hot soup.", "I enjoy soup with bread."],
        ["I like tea over coffee.", "I like coffee over tea."],
        ["I love it.", "I really love it.", "You love it."],
        # Other troubles, other habits.
        ["My back is killing me.", "My head hurts."],
        ["We had meat. I run every morning.", "Meat again. I swim every evening."],
        # Of nobody, and of somebody else.
        ["I'm not allergic to bees.", "No allergies in the family.", "The allergy list hangs on the door."],
        ["Callum's dad has asthma.", "Callum is lactose intolerant."],
        ["Coeliac-safe places are on the map.", "We don't eat in restaurants."],
        # Whom or what one keeps away from, at no meal.
        ["Noel is allergic to horse hair.", "Penicillin brings me out in hives."],
        # Two things about one person, and money of two purses.
        ["Piers gets seasick.", "Piers is afraid of dogs."],
        ["Rent is £795, due on the 1st.", "Naomi's phone is £12 a month."],
        # No hour, no day that is told.
        ["Bins go out on Tuesdays.", "The van comes on Tuesdays."],
        ["Choir is Thursdays at half seven.", "Physio is every Tuesday at 10:15."],
        ["The domain expired in May.", "The token expires after two hours."],
    ],
)
def test_a_topic_is_no_pattern(texts: list[str]) -> None:
    assert told(*texts) == []


def test_of_a_full_week_each_day_is_told_by_itself() -> None:
    days = ["Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays"]
    hours = [f"Course {number} is on {day} at {number + 10}:00." for number, day in enumerate(days)]
    assert [each.partition(":")[0] for each in told(*hours)] == ["week"]
    assert told(*hours, "Aikido is on Mondays at 19:30.") == [
        'weekday: Fixed appointments on Mondays: "Course 0 is on Mondays at 10:00"; "Aikido is on Mondays at 19:30"'
    ]


def test_what_has_run_out_is_not_told() -> None:
    texts = "My passport runs out on 9 May 2027.", "Home insurance with NFU, renewal 12 November."
    assert len(told(*texts)) == 1
    assert told(*texts, now=START + 150 * DAY) == []


def test_of_many_memories_some_are_quoted_and_the_rest_counted() -> None:
    [pattern] = told(*(f"Guest {number} is allergic to nuts." for number in range(TOLD + 2)))
    assert pattern.endswith(f'"Guest {TOLD - 1} is allergic to nuts"; and 2 more')


def test_of_a_long_text_only_the_sentence_is_quoted() -> None:
    long = f"{'We talked about the garden and the weather for a long time. ' * 6}Ana is allergic to nuts."
    assert told(long, "Ben is vegan.") == [
        'restriction: Dietary restrictions: "Ana is allergic to nuts"; "Ben is vegan"'
    ]


@given(st.lists(st.sampled_from([
    "Ana is allergic to nuts.", "I like tea.", "I really like tea, hot.", "Choir is Mondays at 7 pm.", "I owe Ben £5.",
    "Rent is £700 a month.", "Ana hates lifts.", "It rained.", "My passport expires in May.", "I swim on Sundays at 9.",
]), max_size=12))  # fmt: skip
def test_nothing_is_told_that_was_not_said(texts: list[str]) -> None:
    facts = [Fact(text, id=f"{day:02}", source_date=START + day * DAY) for day, text in enumerate(texts)]
    for found in find(facts, START + 20 * DAY):
        quoted = found.text.split('"')[1::2]
        assert quoted
        assert all(any(quote in fact.text for fact in found.evidence) for quote in quoted)
        assert len(found.evidence) > 1


def test_one_of_its_memories_has_to_be_of_these_days(diary: Diary) -> None:
    diary.said(400, "Ruth is vegetarian.")
    diary.said(300, "Piotr is allergic to celery.")
    assert diary.reflect().patterns == ()
    diary.said(3, "Ben is vegan.")
    (found,) = diary.reflect().patterns
    assert len(found.evidence) == 3


@pytest.mark.parametrize(
    "other",
    [
        {"channel": Channel.ASSISTANT},
        {"channel": Channel.FILE},
        {"review_state": "pending"},
        {"scope": "global", "scope_target": ""},
        {"source_date": START + 1 * DAY},
        {"source_date": START - 1 * DAY},
        {"forgotten_at": START - 10},
    ],
)
def test_what_is_not_the_users_or_not_of_another_day_is_no_evidence(diary: Diary, other: dict[str, Any]) -> None:
    diary.said(1, "Ruth is vegetarian.")
    fact = Fact("Ben is vegan.", **{"scope": "user", "scope_target": "owner", "channel": Channel.USER,
                "source_date": START - 3 * DAY, **other})  # fmt: skip
    with diary.store.write(AUTHOR) as tx:
        tx.add(fact)
    assert diary.reflect().patterns == ()


def test_no_pattern_is_kept_twice(diary: Diary) -> None:
    guests(diary)
    (first,) = diary.reflect().patterns
    (again,) = diary.reflect().patterns
    assert (again.id, again.action) == (first.id, "known")


def test_more_evidence_makes_a_new_version(diary: Diary) -> None:
    facts = guests(diary)
    (first,) = diary.reflect().patterns
    more = diary.said(0, "Ben is vegan.")
    (second,) = diary.reflect().patterns
    assert second.action == "updated"
    assert diary.fact(first.id).superseded_by == second.id
    assert second.evidence == (*(fact.id for fact in facts), more.id)
    assert "4 memories" in second.text


def test_a_pattern_that_was_forgotten_stays_away(diary: Diary) -> None:
    guests(diary)
    (first,) = diary.reflect().patterns
    with diary.store.write(AUTHOR) as tx:
        lifecycle.forget(tx, first.id)
    (again,) = diary.reflect().patterns
    assert (again.action, diary.fact(first.id).forgotten_at) == ("known", START)


def test_one_undo_takes_a_reflection_back(diary: Diary) -> None:
    guests(diary)
    done = diary.reflect()
    with diary.store.write(AUTHOR) as tx:
        undo(tx, done.batch, Audience.of())
    assert diary.fact(done.patterns[0].id).forgotten_at is not None


OVER: dict[str, Callable[[Transaction, str], object]] = {
    "withdrawn": lambda tx, fact_id: lifecycle.retract(tx, fact_id),
    "forgotten": lambda tx, fact_id: lifecycle.forget(tx, fact_id),
    "undone": lambda tx, fact_id: tx.change(fact_id, "undo", {"forgotten_at": tx.now}),
    "another's": lambda tx, fact_id: tx.change(fact_id, "assign", {"scope_target": "ann"}),
    "rejected": lambda tx, fact_id: tx.change(fact_id, "reject", {"review_state": "rejected"}),
    "ended": lambda tx, fact_id: tx.change(fact_id, "expire", {"valid_until": tx.now}),
}


@pytest.mark.parametrize("over", OVER)
def test_no_pattern_is_left_of_what_is_over_in_any_way(diary: Diary, over: str) -> None:
    first, *_ = guests(diary)
    (before,) = diary.reflect().patterns
    with diary.store.write(AUTHOR) as tx:
        OVER[over](tx, first.id)
    gone = diary.fact(before.id)
    assert gone.superseded_at is not None
    # What is another's now, or was never said, is not told of the past either.
    assert (gone.forgotten_at is not None) is (over in ("forgotten", "undone", "another's"))


@pytest.mark.parametrize("over", ["replaced", "withdrawn", "forgotten"])
def test_a_pattern_quotes_nothing_that_is_over(diary: Diary, over: str) -> None:
    first, *rest = guests(diary)
    (before,) = diary.reflect().patterns
    with diary.store.write(AUTHOR) as tx:
        if over == "replaced":
            tx.supersede(first.id, tx.add(Fact("Ruth eats everything.", scope="user", scope_target="owner")).id)
        elif over == "withdrawn":
            lifecycle.retract(tx, first.id)
        else:
            lifecycle.forget(tx, first.id)
    gone = diary.fact(before.id)
    assert gone.superseded_at is not None
    assert (gone.forgotten_at is not None) is (over == "forgotten")
    with diary.store.database.read() as connection:
        listed = replacements(connection, Audience.of(), None, 10)
    assert [each.old.id for each in listed] == ([] if over == "forgotten" else [first.id])
    (after,) = diary.reflect().patterns
    assert (after.action, after.evidence) == ("new", tuple(fact.id for fact in rest))


def test_what_is_taken_back_brings_the_pattern_back(diary: Diary) -> None:
    first, *_ = guests(diary)
    (found,) = diary.reflect().patterns
    with diary.store.write(AUTHOR) as tx:
        lifecycle.forget(tx, first.id)
        batch = tx.batch
    with diary.store.write(AUTHOR) as tx:
        undo(tx, batch, Audience.of())
    back = diary.fact(found.id)
    assert (back.superseded_at, back.forgotten_at) == (None, None)
    assert [pattern.action for pattern in diary.reflect().patterns] == ["known"]


def test_what_a_forgotten_pattern_quotes_is_not_forgotten(diary: Diary) -> None:
    _, second, _ = guests(diary)
    (found,) = diary.reflect().patterns
    with diary.store.write(AUTHOR) as tx:
        lifecycle.forget(tx, found.id)
        assert not tx.is_forgotten(second, START - 400 * DAY)


def test_who_purges_the_evidence_purges_the_pattern(diary: Diary) -> None:
    facts = guests(diary)
    (found,) = diary.reflect().patterns
    assert found.id in purge(diary.store, [facts[0].id], AUTHOR).facts


def test_a_dry_run_keeps_nothing(diary: Diary) -> None:
    guests(diary)
    dry = diary.reflect(dry_run=True)
    assert ([each.id for each in dry.patterns], dry.batch) == ([""], "")
    assert diary.reflect().patterns[0].action == "new"


def test_a_memory_brings_up_neither_its_pattern_nor_what_that_quotes_beside_it(tmp_path: Path) -> None:
    clock = ManualClock(START)
    with Memory.open(tmp_path / "home", clock=clock, embedder="none", watch=False) as memory:
        for text in ("Choir is Thursdays at half seven.", "Physio is each Thursday at 10:15 with Heather."):
            memory.store(text)
            clock.advance(DAY)
        [pattern] = memory.upkeep.reflect().patterns
        assert pattern.kind == "weekday"
        recall = memory.turns.before("When does Heather have physio?", TurnContext(session_id="s1", host="test"))
    assert recall is not None
    assert [item.text for item in recall.items] == ["Physio is each Thursday at 10:15 with Heather."]


def test_an_order_to_forget_means_the_memory_and_takes_its_pattern_along(tmp_path: Path) -> None:
    clock = ManualClock(START)
    with Memory.open(tmp_path / "home", clock=clock, embedder="none", watch=False) as memory:
        for text in ("I'm allergic to nuts.", "Piotr is allergic to celery."):
            memory.store(text)
            clock.advance(DAY)
        assert memory.upkeep.reflect().patterns
        recall = memory.turns.before("Please forget my nut allergy.", TurnContext(session_id="s1", host="test"))
        assert recall is not None
        assert "Forgotten just now: 1 memory" in recall.block
        assert [fact.text for fact in memory.admin.list()] == ["Piotr is allergic to celery."]


@pytest.mark.parametrize("values", [{"days": 0}, {"minimum": 1}, {"limit": 0}])
def test_a_window_that_cannot_be_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"at least|more than"):
        Window(**values)
