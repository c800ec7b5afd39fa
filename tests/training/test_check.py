from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from training.agreement import Agreement
from training.check import DATA, SUMS, load, main, problems, sums, twins

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


def test_short_sentences_may_stand_twice() -> None:
    assert not list(twins([("a", "Thanks, that helps."), ("b", "Thanks, that helps.")]))


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
