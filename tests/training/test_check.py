from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from training.agreement import Agreement, of_day
from training.check import DATA, SUMS, counts, load, main, problems, sums, twins
from training.forms import Day, Session

LONG = "The night ferry to Visby leaves from the small pier on Tuesdays."


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of data with one file in each of two splits."""
    for split, name, text in (
        ("train", "y-01", LONG),
        ("untouched", "z-01", "Aunt Ilse keeps the bees behind the mill."),
    ):
        store = {
            "store": name, "who": "somebody", "memories": [{"id": "m1", "text": text}],
            "prompts": [{"text": "When?", "kind": "direct", "needs": ["m1"]}],
        }  # fmt: skip
        put(tmp_path / split / "stores" / f"{name}.json", store)
    seal(tmp_path)
    return tmp_path


def put(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def seal(data: Path) -> None:
    (data / "untouched" / SUMS).write_text(sums(data / "untouched"))


def wrong(data: Path) -> list[str]:
    return problems(data, load(data))


def test_what_is_in_the_repo_has_its_form_its_splits_and_its_hashes() -> None:
    assert wrong(DATA) == []


def test_sound_data_passes(data: Path) -> None:
    assert wrong(data) == []


def test_a_changed_untouched_file_is_told(data: Path) -> None:
    path = data / "untouched" / "stores" / "z-01.json"
    path.write_text(path.read_text().replace("Ilse", "Else"))
    assert wrong(data) == [f"untouched/{SUMS} does not hold the hashes of what is there"]


def test_a_writer_in_two_splits_is_told(data: Path) -> None:
    store = json.loads((data / "train" / "stores" / "y-01.json").read_text())
    store |= {"store": "y-02", "memories": [{"id": "m1", "text": "Something else altogether."}]}
    put(data / "untouched" / "stores" / "y-02.json", store)
    seal(data)
    assert wrong(data) == ["writer y is in train, untouched"]


def test_a_sentence_that_stands_twice_is_told(data: Path) -> None:
    shutil.copy(data / "train" / "stores" / "y-01.json", data / "train" / "stores" / "y-02.json")
    assert [line.split(":")[0] for line in wrong(data)] == [
        "train/stores/y-02.json",  # which names itself y-01
        "train/stores/y-02.json and train/stores/y-01.json",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "chat"}, "is chat and needs"),
        ({"needs": []}, "is direct and needs []"),
        ({"needs": ["m9"]}, "names m9, which is not there"),
        ({"kind": "idle"}, "prompts.0.kind"),
    ],
)
def test_a_slip_of_form_is_told(data: Path, change: dict[str, Any], said: str) -> None:
    path = data / "train" / "stores" / "y-01.json"
    store = json.loads(path.read_text())
    store["prompts"][0] |= change
    put(path, store)
    [line] = wrong(data)
    assert line.startswith("train/stores/y-01.json")
    assert said in line


LABELS: dict[str, dict[str, Any]] = {
    "triggers": {"m1": ["when does the boat go", "can I take the bike on board"]},
    "topics": {"m1": "plans"},
}
EXTRA: dict[str, Any] = {"triggers": ["is it rough out today", "who has the timetable"], "topics": "home"}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize(
    ("split", "change", "said"),
    [
        ("train", {}, None),
        ("train", {"store": "y-09"}, "y-09 is no store of its split"),
        ("development", {}, "y-01 is no store of its split"),
        ("train", {"extra": "m2"}, "y-01 has no memory m2"),
        ("train", {"items": {}}, "says nothing of m1"),
        ("train", {"lang": "sv"}, "is in sv, its store in en"),
    ],
)
def test_labels_of_a_store_fit_its_memories(
    data: Path, kind: str, split: str, change: dict[str, Any], said: str | None
) -> None:
    labels: dict[str, Any] = {kind: "x-01", "store": "y-01", "items": LABELS[kind]} | change
    if extra := labels.pop("extra", None):
        labels["items"] = {**LABELS[kind], extra: EXTRA[kind]}
    put(data / split / kind / "x-01.json", labels)
    assert wrong(data) == ([f"{split}/{kind}/x-01.json: {said}"] if said else [])


def test_only_who_gave_topics_may_have_worked_in_two_splits(data: Path) -> None:
    for split, store in (("train", "y-01"), ("untouched", "z-01")):
        put(
            data / split / "topics" / f"x-{store}.json",
            {"topics": f"x-{store}", "store": store, "items": {"m1": "home"}},
        )
    seal(data)
    assert wrong(data) == []


def family(pairs: int) -> dict[str, Any]:
    links = [
        {"id": f"p{number}", "family": "salt and supper", "memory": "a", "prompt": "b", "near": ["c", "d"]}
        for number in range(pairs)
    ]
    return {"families": "x-01", "items": links}


def session(**change: Any) -> dict[str, Any]:
    run: dict[str, Any] = {"tool": "Bash", "input": {"command": "make"}, "output": "no rule for target"}
    talk = [{"user": "make it build"}] * 18
    events: list[dict[str, Any]] = [*talk, run | {"exit": 2}, run | {"exit": 0}]
    return {
        "coding": "x-01", "project": "/src/mill", "branch": "main", "who": "a miller",
        "other": [], "events": events,
        "where": {"branch": "main", "files": [], "failed": ["make"], "passed": ["make"], "open": ""},
        "never": ["no rule"], "again": [{"prompt": "red again", "fix": ["TARGET", "tabs"], "why": "a tab"}],
    } | change  # fmt: skip


def day(**kept: Any) -> dict[str, Any]:
    keep = [{"id": "k1", "text": "I shoe horses", "category": "fact", "lasting": True} | kept]
    turns: list[dict[str, Any]] = [{"id": f"t{number}", "user": "hello", "assistant": "hello"} for number in range(40)]
    turns[0] |= {"user": "I shoe horses, it rains", "keep": keep, "never": ["rains"]}
    sessions = [{"session": f"s{number}", "date": "2026-03-09", "turns": turns} for number in range(3)]
    return {"day": "x-01", "style": "plain", "who": "a smith", "sessions": sessions}


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("families", family(10), None),
        ("families", family(9) | {"items": family(10)["items"][:9] * 2}, "'p0' stands twice"),
        ("families", family(11), "'salt and supper' has 11 pairs, not 10"),
        ("triggers", {"triggers": "x-01", "store": "y-01", "items": {"m1": ["one"]}}, "m1 has 1 triggers, not 2 to 8"),
        (
            "triggers",
            {"triggers": "x-01", "store": "y-01", "items": {"m1": ["one", "One"]}},
            "'one' stands twice in m1",
        ),
        ("topics", {"topics": "x-01", "store": "y-01", "items": {"m1": "boats"}}, "items.m1"),
        ("days", day(), None),
        ("days", day(text="I shoe oxen"), "k1 is not the user's words"),
        ("days", day(text="it rains"), "k1 is not the user's words, or"),
        ("coding", session(), None),
        ("coding", session(never=["segfault"]), "'never' names segfault, which is not there"),
        ("coding", session(where=session()["where"] | {"failed": ["ninja"]}), "'failed' names ninja"),
        ("coding", session(events=session()["events"][::-1]), "'passed' names make"),
        ("coding", session(again=[{"prompt": "red again", "fix": ["spaces"], "why": "x"}]), "was fixed by nothing"),
        ("coding", session(events=[{"user": "a", "assistant": "b"}] * 20), "the user's, the agent's or a tool's"),
        ("coding", session(events=[{"tool": "Read", "input": {}}] * 20), "an input and an output"),
        ("coding", session(events=[{"user": "a", "exit": 0}] * 20), "an exit code"),
    ],
)
def test_each_form_of_labels_holds_what_it_says(data: Path, kind: str, content: Any, said: str | None) -> None:
    put(data / "train" / kind / "x-01.json", content)
    lines = wrong(data)
    if said is None:
        assert lines == []
    else:
        assert len(lines) == 1
        assert said in lines[0]


def test_counts_tell_languages_apart(data: Path) -> None:
    put(data / "train" / "topics" / "x-01.json", {"topics": "x-01", "store": "y-01", "items": {"m1": "plans"}})
    numbers = counts(load(data).files)
    assert numbers["train"]["topics"] == {"files": 1, "files in en": 1, "memories": 1, "plans": 1}


@given(st.sampled_from(["Tuesdays", "Fridays"]), st.sampled_from(["", "Well, "]), st.booleans())
def test_nearly_the_same_words_are_twins_and_others_are_not(day: str, opening: str, other: bool) -> None:
    text = opening + LONG.replace("Tuesdays", day)
    found = list(twins([("a", LONG), ("b", "My cousin repairs old radios in a shed near Kiruna." if other else text)]))
    assert bool(found) is not other


def test_sentences_without_spaces_are_compared_too() -> None:
    assert list(
        twins(
            [("a", "我每个星期三晚上都去河边的那个合唱团排练。"), ("b", "我每个星期三晚上都去河边的那个合唱团练习。")]
        )
    )


@pytest.mark.parametrize("text", ["Thanks, that helps.", "うまいこと言うな。"])
def test_short_sentences_may_stand_twice(text: str) -> None:
    assert not list(twins([("a", text), ("b", text)]))


def test_the_command_counts_and_fails_where_something_is_wrong(data: Path) -> None:
    done = CliRunner().invoke(main, [str(data), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["counts"]["train"]["stores"]["memories"] == 1
    (data / "untouched" / SUMS).unlink()
    assert CliRunner().invoke(main, [str(data)]).exit_code == 1


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_agreement_with_oneself_is_full_and_never_more(answers: list[tuple[bool, bool]]) -> None:
    assert Agreement.of(answers).kappa <= 1.0
    assert Agreement.of([(one, one) for one, _ in answers]) == Agreement(len(answers), 1.0, 1.0, 1.0)


def test_agreement_by_chance_counts_for_nothing() -> None:
    assert Agreement.of([(True, True), (True, False), (False, True), (False, False)]) == Agreement(4, 0.0, 0.5, 0.5)


def test_a_day_is_compared_turn_by_turn_and_only_with_itself() -> None:
    kept = {"id": "k1", "text": "Owns a boat.", "category": "fact", "lasting": True}
    turns = [{"id": f"t{number}", "user": "I own a boat.", "assistant": "Noted.", "keep": [] if number else [kept]}
             for number in range(3)]  # fmt: skip
    session = Session.model_validate({"session": "s", "date": "2026-03-02", "turns": turns})
    day = Day.model_construct(day="d", sessions=(session,))
    second = [{"id": f"t{number}", "keep": number == 1, "needs": False} for number in range(3)]
    told = of_day(day, {"turns": second})
    assert [keep for keep, _ in told] == [(True, False), (False, True), (False, False)]
    with pytest.raises(ValueError, match="t0 stands where t2"):
        list(of_day(day, {"turns": second[::-1]}))
