"""What is brought up whatever is asked, and stays the same for a session."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import apsw
import pytest

from perdure.hooks.types import Channel
from perdure.recall.unasked import Profile, reread, standing
from perdure.store import lifecycle
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.sql import run
from perdure.store.transaction import Author
from tests.recall.conftest import Desk
from tests.sqlite import as_sqlite

AUTHOR = Author(Channel.USER)


def view(desk: Desk, **asked: Any) -> View:
    return View(Audience.of(), desk.clock.now(), **asked)


def prefer(desk: Desk, text: str, channel: Channel = Channel.USER, **fields: Any) -> Fact:
    return desk.put(text, channel, **{"category": "preference", **fields})


def chosen(desk: Desk, limit: int = 10, seen: View | None = None) -> list[str]:
    with desk.store.database.read() as connection:
        return [fact.text for fact in standing(connection, seen or view(desk), limit)]


def forget(desk: Desk, fact: Fact) -> None:
    with desk.store.write(AUTHOR) as tx:
        lifecycle.forget(tx, fact.id)


class TestStanding:
    @pytest.mark.parametrize(
        ("text", "fields"),
        [
            ("Always answer in French.", {"category": "decision"}),
            ("Never push to main on a Friday.", {"category": "decision"}),
            ("From now on call me Max.", {"category": "preference"}),
            ("I prefer tabs over spaces.", {"category": "preference"}),
            ("The user preferred short answers.", {"category": "preference"}),
            ("Immer auf Deutsch antworten.", {"category": "preference"}),
            ("总是用中文回答。", {"category": "preference"}),
            ("常に日本語で答えて。", {"category": "preference"}),
            ("항상 한국어로 답해 주세요.", {"category": "preference"}),
            ("British spelling.", {"category": "decision", "entity": "Convention", "key": "spelling"}),
            ("Always use uv.", {"category": "decision", "decay_class": "permanent"}),
            ("The kettle stands in the kitchen.", {"category": "fact", "pinned": True}),
            ("The kettle is red.", {"category": "of my own", "pinned": True, "decay_class": "short"}),
        ],
    )
    def test_what_always_holds_needs_no_question(self, wordy: Desk, text: str, fields: dict[str, Any]) -> None:
        wordy.put(text, **fields)
        assert chosen(wordy) == [text]

    @pytest.mark.parametrize(
        ("text", "fields"),
        [
            ("I like tea.", {}),
            ("I always forget my keys.", {"category": "fact"}),
            ("Always wear a hat.", {"decay_class": "session"}),
            ("Always wear a hat.", {"channel": Channel.TOOL_UNASKED}),
            ("Always wear a hat.", {"channel": Channel.FILE, "pinned": True}),
            ("Always wear a hat.", {"channel": Channel.ASSISTANT, "entity": "convention"}),
            ("Always wear a hat.", {"review_state": "pending"}),
            ("Always wear a hat.", {"review_state": "pending", "pinned": True}),
            ("Always wear a hat.", {"scope_target": "somebody else"}),
            ("Always wear a hat.", {"scope": "agent", "scope_target": "other", "pinned": True}),
            ("Always wear a hat.", {"expires_at": 1.0}),
            ("Always wear a hat.", {"forgotten_at": 1.0, "pinned": True}),
        ],
    )
    def test_what_does_not_is_left_out(self, wordy: Desk, text: str, fields: dict[str, Any]) -> None:
        prefer(wordy, text, **fields)
        assert chosen(wordy) == []

    @pytest.mark.parametrize("channel", [Channel.USER, Channel.LIBRARY, Channel.CLI, Channel.TOOL_ASKED])
    def test_only_what_the_user_stands_behind(self, wordy: Desk, channel: Channel) -> None:
        prefer(wordy, "Always wear a hat.", channel)
        assert chosen(wordy) == ["Always wear a hat."]
        assert chosen(wordy, seen=view(wordy, channels=[channel, Channel.FILE])) == ["Always wear a hat."]
        assert chosen(wordy, seen=view(wordy, channels=[Channel.FILE])) == []

    def test_pinned_then_used_then_certain_then_important_then_new(self, wordy: Desk) -> None:
        order: tuple[dict[str, Any], ...] = (
            {"pinned": True},
            {"access_count": 2, "reinforced_count": 2, "confidence": 0.5},
            {"access_count": 3, "confidence": 0.6},
            {"confidence": 0.9, "importance": 0.1},
            {"confidence": 0.8, "importance": 0.9},
            {"confidence": 0.8, "importance": 0.2, "source_date": 2e9},
            {"confidence": 0.8, "importance": 0.2, "source_date": 1e9, "injected_count": 99, "recall_count": 99},
        )
        for place, fields in reversed(list(enumerate(order))):
            prefer(wordy, f"I prefer number {place}.", **fields)
        assert chosen(wordy) == [f"I prefer number {place}." for place in range(len(order))]
        assert chosen(wordy, 2) == ["I prefer number 0.", "I prefer number 1."]
        assert chosen(wordy, 0) == []

    def test_one_for_a_slot_that_holds_one_value(self, wordy: Desk) -> None:
        prefer(wordy, "Never use tabs.", entity="convention", key="use tabs", category="decision")
        prefer(wordy, "Always use tabs.", entity="Convention", key="Use Tabs", category="decision")
        prefer(wordy, "I prefer to be called Max.", entity="user", key="name")
        prefer(wordy, "I prefer to be called Maxim.", entity="user", key="name", access_count=1)
        assert chosen(wordy) == ["I prefer to be called Maxim.", "Always use tabs."]

    def test_several_preferences_stand_beside_each_other(self, wordy: Desk) -> None:
        for what in ("tea", "tabs", "trains"):
            prefer(wordy, f"I prefer {what}.", entity="user", key="prefer", value=what)
        assert chosen(wordy) == ["I prefer trains.", "I prefer tabs.", "I prefer tea."]

    def test_a_fact_that_is_found_in_several_ways_comes_once(self, wordy: Desk) -> None:
        prefer(wordy, "Always use tabs, never spaces.", entity="convention", key="use tabs", pinned=True)
        assert chosen(wordy) == ["Always use tabs, never spaces."]

    def test_the_past_can_be_asked_for(self, wordy: Desk) -> None:
        old = prefer(wordy, "I prefer tea.")
        then = wordy.clock.now() + 1
        new = prefer(wordy, "I prefer coffee.")
        with wordy.store.write(AUTHOR) as tx:
            tx.supersede(old.id, new.id)
        assert chosen(wordy) == ["I prefer coffee."]
        assert chosen(wordy, seen=view(wordy, as_of=then)) == ["I prefer tea."]

    def test_what_others_store_pushes_nothing_out(self, wordy: Desk) -> None:
        mine = prefer(wordy, "I prefer tea.")
        stranger = replace(mine, id="", scope_target="somebody else", access_count=9)
        with wordy.store.write(AUTHOR) as tx:
            for number in range(1_100):
                tx.add(replace(stranger, text=f"I always prefer coffee number {number}."))
        assert chosen(wordy, 1) == ["I prefer tea."]


class TestPlan:
    @pytest.mark.sqlite
    def test_no_statement_reads_all_facts(self, wordy: Desk) -> None:
        prefer(wordy, "Always use tabs.", entity="convention", key="use tabs")
        with wordy.store.database.read() as lent:
            connection = as_sqlite(lent)
            with traced(connection) as statements:
                standing(connection, view(wordy), 10)
            plans = [line for sql, values in statements for line in plan(connection, sql, values)]
            control = plan(connection, "SELECT * FROM facts WHERE importance = 1", ())
        assert is_scan(*control)
        assert len(plans) > 5
        assert not [line for line in plans if is_scan(line)]
        assert any("facts_entity (entity_folded=?)" in line for line in plans)
        assert any(line.endswith("facts_pinned") for line in plans)


@contextmanager
def traced(connection: apsw.Connection) -> Iterator[list[tuple[str, Any]]]:
    """Record the statements that are run on a connection, with their values."""
    statements: list[tuple[str, Any]] = []

    def note(cursor: Any, sql: str, values: Any) -> bool:
        statements.append((sql, values))
        return True

    connection.exec_trace = note
    yield statements
    connection.exec_trace = None


def plan(connection: apsw.Connection, sql: str, values: Any) -> list[str]:
    return [str(row[3]) for row in run(connection, f"EXPLAIN QUERY PLAN {sql}", values)]


def is_scan(line: str) -> bool:
    # What is pinned stands in an index of its own.
    return (line == "SCAN facts" or line.startswith("SCAN facts ")) and not line.endswith(" facts_pinned")


class TestSession:
    def ask(self, desk: Desk, profile: Profile, session: str | None = "s") -> list[str]:
        """Return the profile as a prompt would show it now."""
        with desk.store.database.read() as connection:
            ids = profile.for_session(session, lambda: standing(connection, view(desk), 10))
            return [fact.text for fact in reread(connection, ids, view(desk))]

    def test_stays_as_it_was_for_a_session(self, wordy: Desk) -> None:
        profile = Profile()
        prefer(wordy, "I prefer tea.")
        assert self.ask(wordy, profile) == ["I prefer tea."]
        prefer(wordy, "Always use tabs.", pinned=True)
        assert self.ask(wordy, profile) == ["I prefer tea."]
        assert self.ask(wordy, profile, "other") == ["Always use tabs.", "I prefer tea."]
        assert self.ask(wordy, profile, None) == ["Always use tabs.", "I prefer tea."]
        assert self.ask(wordy, profile) == ["I prefer tea."]

    def test_keeps_its_order_when_ranks_change(self, wordy: Desk) -> None:
        profile = Profile()
        late = prefer(wordy, "I prefer tea.")
        prefer(wordy, "I prefer tabs.")
        assert self.ask(wordy, profile) == ["I prefer tabs.", "I prefer tea."]
        with wordy.store.write(AUTHOR) as tx:
            lifecycle.use(tx, late.id)
        assert self.ask(wordy, profile) == ["I prefer tabs.", "I prefer tea."]
        assert self.ask(wordy, profile, "other") == ["I prefer tea.", "I prefer tabs."]

    def test_an_empty_profile_stays_empty(self, wordy: Desk) -> None:
        profile = Profile()
        assert self.ask(wordy, profile) == []
        prefer(wordy, "I prefer tea.")
        assert self.ask(wordy, profile) == []

    def test_what_is_gone_vanishes_at_once(self, wordy: Desk) -> None:
        profile = Profile()
        forgotten, old, rejected, purged, kept = (prefer(wordy, f"I prefer {what}.") for what in "abcde")
        assert len(self.ask(wordy, profile)) == 5
        forget(wordy, forgotten)
        assert len(self.ask(wordy, profile)) == 4
        new = prefer(wordy, "I prefer z.")
        with wordy.store.write(AUTHOR) as tx:
            tx.supersede(old.id, new.id)
        assert len(self.ask(wordy, profile)) == 3
        with wordy.store.write(AUTHOR) as tx:
            tx.change(rejected.id, "review", {"review_state": "rejected"})
        assert len(self.ask(wordy, profile)) == 2
        with wordy.store.database.write() as connection:
            run(connection, "DELETE FROM facts WHERE id = ?", (purged.id,))
        assert self.ask(wordy, profile) == [kept.text]

    def test_nobody_sees_the_profile_of_another(self, wordy: Desk) -> None:
        profile = Profile()
        prefer(wordy, "I prefer tea.")
        assert self.ask(wordy, profile) == ["I prefer tea."]
        stranger = View(Audience.of(user="somebody else"), wordy.clock.now())
        with wordy.store.database.read() as connection:
            assert reread(connection, profile.for_session("s", list), stranger) == []

    def test_is_chosen_anew_when_asked_to(self, wordy: Desk) -> None:
        profile = Profile()
        prefer(wordy, "I prefer tea.")
        self.ask(wordy, profile)
        prefer(wordy, "I prefer tabs.")
        profile.renew("s")
        profile.renew("never seen")
        assert self.ask(wordy, profile) == ["I prefer tabs.", "I prefer tea."]


class TestMemory:
    """Which sessions are kept, told from who is asked to choose again."""

    def test_the_session_that_was_not_asked_for_longest_goes(self) -> None:
        profile = Profile(sessions=2)
        for session in ("a", "b", "a", "c"):
            profile.for_session(session, lambda: [Fact("", id="first")])
        again = {session: profile.for_session(session, lambda: [Fact("", id="again")]) for session in ("a", "c", "b")}
        assert again == {"a": ("first",), "c": ("first",), "b": ("again",)}

    def test_a_choice_that_fails_keeps_nothing(self) -> None:
        profile = Profile()

        def fail() -> list[Fact]:
            raise LookupError

        with pytest.raises(LookupError):
            profile.for_session("s", fail)
        assert profile.for_session("s", lambda: [Fact("", id="a")]) == ("a",)

    def test_threads_that_ask_at_once_get_the_same(self) -> None:
        profile = Profile()
        both = threading.Barrier(4)
        got: list[tuple[str, ...]] = []

        def ask(name: str) -> None:
            def choose() -> list[Fact]:
                both.wait(30)
                return [Fact("", id=name)]

            got.append(profile.for_session("s", choose))

        threads = [threading.Thread(target=ask, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(got) == 4
        assert len(set(got)) == 1
