"""The kill bench in short, and that it sees what it is there to see."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import lancedb
import pytest

from bench.crash import AUTHOR, bench, check, killed_at, plan
from bench.kills import FORGOTTEN, LIVE, SUPERSEDED, Story, divergence
from perdure.failpoints import FAIL_POINTS
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.sql import run
from perdure.store.store import Store

DAMAGES = {
    "DELETE FROM facts_fts WHERE rowid = (SELECT max(rowid) FROM facts_fts)": "has no words",
    "INSERT INTO facts_fts (rowid, text) VALUES (1000000, 'zephyr')": "words of no fact",
    "UPDATE facts SET text = text || ' zephyr'": "word index",
    "UPDATE vectors SET vector = zeroblob(256)": "is not that of its text",
    "DELETE FROM vectors": "has no vector",
    "DELETE FROM journal WHERE seq = (SELECT min(seq) FROM journal WHERE action = 'add')": "without a journal entry",
    "INSERT INTO outbox (fact_id, queued_at) VALUES ('x', 0)": "outbox entries wait",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """A store that one process has worked on until it was killed, checked once."""
    story = Story(tmp_path_factory.mktemp("told") / "home")
    acknowledged, reached = killed_at(story, 3, "indexer.applied:1")
    assert reached
    assert acknowledged > 10
    assert check(story).problems == []
    return story


@pytest.fixture
def story(told: Story, tmp_path: Path) -> Story:
    """A copy of it, to be damaged."""
    return Story(shutil.copytree(told.home, tmp_path / "home"), dict(told.states))


@pytest.mark.timeout(900)
def test_nothing_acknowledged_is_lost_by_a_kill_at_each_fail_point_and_a_few_at_random() -> None:
    found = bench(len(FAIL_POINTS) + 3, seed=1)
    assert found["fail_points_missed"] == []
    assert found["acknowledged"] > 500
    assert (found["lost"], found["duplicated"], found["diverged"]) == (0, 0, 0), found["problems"]


def test_a_lost_a_changed_and_an_unexplained_fact_are_seen(story: Story) -> None:
    live = next(marker for marker, state in story.states.items() if state == LIVE)
    story.states |= {"mkbadq1": LIVE, live: FORGOTTEN}
    other = next(marker for marker, state in story.states.items() if state == SUPERSEDED)
    del story.states[other]
    verdict = check(story)
    assert len(verdict.lost) == 2
    assert verdict.diverged == [f"{other} came from nowhere"]


def test_half_of_a_change_is_seen(story: Story) -> None:
    live = next(marker for marker, state in story.states.items() if state == LIVE)
    story.pending = {live: FORGOTTEN, "mkbadq1": LIVE}
    assert check(story).problems == []  # neither was done
    del story.states[live]
    story.pending = {live: LIVE, "mkbadq1": LIVE}
    assert check(story).diverged == [f"half of a change was kept: {{'{live}': 'live', 'mkbadq1': 'absent'}}"]


def test_a_fact_that_is_there_twice_is_seen(story: Story) -> None:
    live = next(marker for marker, state in story.states.items() if state == LIVE)
    store = Store(story.home)
    with store.write(AUTHOR) as tx:
        tx.add(Fact(f"Once more: {live}.", channel=Channel.LIBRARY, scope="user", scope_target="owner"))
    store.close()
    assert check(story).duplicated == [live]


def test_parts_of_the_database_that_disagree_are_seen(story: Story, tmp_path: Path) -> None:
    for number, (damage, problem) in enumerate(DAMAGES.items()):
        store = Store(shutil.copytree(story.home, tmp_path / str(number)))
        with store.database.write() as connection:
            run(connection, damage)
        store.close()
        found = divergence(store.folder)
        assert any(problem in line for line in found), (damage, found)


def test_a_table_that_disagrees_with_the_database_is_seen(story: Story) -> None:
    database = lancedb.connect(story.home / "lancedb")
    [name] = database.list_tables().tables
    table = database.open_table(name)
    rows = table.to_arrow()
    first, second = rows["id"].to_pylist()[:2]
    table.delete(f"id = '{first}'")
    table.add(rows.slice(1, 1))
    assert sorted(divergence(story.home)) == sorted([f"LanceDB has 2 rows of {second}", f"LanceDB lacks {first}"])


def test_the_plan_holds_every_fail_point_and_as_many_random_moments() -> None:
    points = plan(2 * len(FAIL_POINTS), random.Random(1))
    assert {point for point in points if point} == FAIL_POINTS
    assert points.count(None) == len(FAIL_POINTS)
