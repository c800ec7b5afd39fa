"""What the scripts draw for the first pages."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from scripts.pictures import FOLDER, MEASURES, SCRIPT, bars, terminal
from tests.e2e.ui import PAGES


def texts(drawn: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff")))
)
def test_a_terminal_shows_each_line(lines: list[str]) -> None:
    assert texts(terminal(lines)) == ["$ perdure demo", *lines]


def test_bars_show_each_figure() -> None:
    shown = texts(bars({"perdure": dict.fromkeys(MEASURES, 0.654), "<other>": dict.fromkeys(MEASURES, 0.0)}, "a & b"))
    assert shown.count("0.65") == shown.count("0.00") == shown.count("<other>") == len(MEASURES)
    assert shown[0] == "a & b"


def test_the_pictures_are_there_and_the_agent_remembers_in_them() -> None:
    shown = texts((FOLDER / "terminal.svg").read_text(encoding="utf-8"))
    answers = [turn["agent"] for session in SCRIPT["sessions"] for turn in session["turns"]]  # type: ignore[index]
    assert all(any(line.endswith(answer) for line in shown) for answer in answers)
    assert sum("recalled" in line for line in shown) == 2
    for page in (*PAGES, "memory", "turn"):
        assert {f"ui-{page}-{scheme}.png" for scheme in ("light", "dark")} <= {each.name for each in FOLDER.iterdir()}
