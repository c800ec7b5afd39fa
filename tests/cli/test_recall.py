"""Commands that recall, explain and measure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.api.tools import call_tool
from perdure.engine.repository import project_of
from perdure.errors import InputError, NotFoundError
from perdure.hooks.types import TurnContext
from tests.cli.calling import call, call_json
from tests.loopback import chat, loopback

TEXT = "The staging database is called heron."
CAT = "The cat sleeps on the sofa."
QUESTION = "What is the staging database called?"


@pytest.fixture
def ids(home: Path) -> list[str]:
    """Store two memories, and return their ids."""
    with Memory.open(home) as memory:
        memory.ready()
        return [memory.store(text).id for text in (TEXT, CAT)]


def turn(home: Path, prompt: str = QUESTION) -> str:
    """Play a host's turn and return the id of its receipt."""
    with Memory.open(home) as memory:
        memory.ready()
        recall = memory.turns.before(prompt, TurnContext(session_id="s"))
        memory.settle()
        return recall.receipt_id if recall else memory.why().turn


def test_recall_prints_what_a_prompt_brings_up(ids: list[str]) -> None:
    printed = call("recall", QUESTION).output
    assert TEXT in printed
    assert CAT not in printed
    answer = call_json("recall", QUESTION)
    assert [item["id"] for item in answer["items"]] == [ids[0]]
    assert answer["silence"] is None
    assert "explained" not in answer


def test_why_explains_what_recall_has_just_shown_until_the_next_turn(home: Path, ids: list[str]) -> None:
    first = turn(home)
    call("recall", "Where does the cat sleep?")
    assert call_json("why")["query"] == "Where does the cat sleep?"
    assert "it did come up" in call("why-not", ids[1]).output
    with Memory.open(home) as memory:
        assert [each.id for each in memory.turns.past()] == [first], "a look is no turn"
        assert memory.get(ids[1]).recall_count == 0
        assert call_tool(memory, "memory_why", {}, TurnContext(session_id="s")).details["turn"] == first
    second = turn(home)
    assert call_json("why")["turn"] == second


def test_opening_shows_what_a_host_would_be_given(home: Path, ids: list[str]) -> None:
    with Memory.open(home) as memory:
        rule = memory.store("I always write tests first.", category="preference").text
    assert CAT in call("opening").output
    assert CAT in call("opening", "--host", "openclaw").output
    assert [item["text"] for item in call_json("opening", "--host", "claude-code")["items"]] == [rule]


def test_opening_of_a_coding_host_is_that_of_the_current_folder(
    home: Path, ids: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / name for name in ("here", "elsewhere")]
    for port, folder in enumerate(folders, 8443):
        (folder / ".git").mkdir(parents=True)
        project = str(project_of(folder))
        with Memory.open(home, scopes=(project,)) as memory:
            memory.store(f"The server of this repository listens on port {port}.", scope=project)
    monkeypatch.chdir(folders[0])
    shown = [item["text"] for item in call_json("opening", "--host", "claude-code")["items"]]
    assert shown == ["The server of this repository listens on port 8443."]
    (folders[0] / "CLAUDE.md").write_text("The server of this repository listens on port 8443.\n")
    assert call_json("opening", "--host", "claude-code")["items"] == []


def test_recall_explains_what_came_up_and_what_did_not(ids: list[str]) -> None:
    printed = call("recall", QUESTION, "--explain").output
    came, left = printed.split("--- rejected ---")
    assert "injected" in came
    assert ids[1][:8] in left
    assert "no evidence" in left
    assert all(f"{leg} ok (" in left for leg in ("sqlite", "lance"))
    explained = call_json("recall", QUESTION, "--explain")["explained"]
    assert {each["id"]: each["verdict"] for each in explained["considered"]} == {
        ids[0]: "injected",
        ids[1]: "no evidence",
    }


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [("hello there", "nothing was searched for (small talk)"), ("Xylophora", "none with evidence; the closest: word")],
)
def test_silence_is_said_with_its_reason(ids: list[str], prompt: str, reason: str) -> None:
    assert "Nothing recalled: " in call("recall", prompt).output
    assert reason in call("recall", prompt).output
    assert reason in call_json("recall", prompt)["silence"]


def test_recall_follows_time_and_tag(ids: list[str]) -> None:
    call("store", "The production database is called ibis.", "--tags", "infra")
    assert "ibis" in call("recall", "Which database is called so?", "--tag", "infra").output
    assert "heron" not in call("recall", "Which database is called so?", "--tag", "infra").output
    assert TEXT not in call("recall", QUESTION, "--as-of", "2020-01-01").output
    with pytest.raises(InputError, match="2020-13-01"):
        call("recall", QUESTION, "--as-of", "2020-13-01")


def test_recall_says_why_a_memory_does_not_come_up(ids: list[str]) -> None:
    told = call("recall", QUESTION, "--why-not", ids[1][:8]).output
    assert f"{ids[1][:8]} {CAT}\nNot recalled: no evidence: " in told
    assert "did come up" in call_json("recall", QUESTION, "--why-not", ids[0])["why_not"]


def test_why_explains_the_last_turn_and_not_what_searches_and_measures(ids: list[str], home: Path) -> None:
    with pytest.raises(NotFoundError, match="no turn has been recorded for this caller"):
        call("why")
    last = turn(home)
    call("search", "Where does the cat sleep?")
    call("opening")
    call("eval", "--size", "1")
    explained = call_json("why")
    assert (explained["turn"], explained["query"], explained["sentence"]) == (last, QUESTION, None)
    printed = call("why").output
    assert f"Turn {last[:8]}, " in printed
    assert f"Prompt: {QUESTION}" in printed
    assert printed.index(TEXT) < printed.index("--- rejected") < printed.index(CAT)


def test_why_names_a_turn_and_says_its_silence(ids: list[str], home: Path) -> None:
    first = turn(home)
    turn(home, "hello there")
    assert "Nothing recalled: nothing was searched for (small talk)." in call("why").output
    assert TEXT in call("why", first[:8]).output


def test_why_shows_ten_that_did_not_come_up_unless_all_are_asked_for(home: Path) -> None:
    with Memory.open(home) as memory:
        memory.ready()
        memory.store(TEXT)
        for number in range(13):
            memory.store(f"Lamp {number} in hall {number * 7} is green.")
    turn(home)
    assert call("why").output.count("no evidence") == 10
    assert "3 more; show them with --all" in call("why").output
    assert call("why", "--all").output.count("no evidence") == 13
    assert len(call_json("why")["considered"]) == 14


def test_why_not_says_it_in_a_sentence(ids: list[str], home: Path) -> None:
    first = turn(home)
    assert "\nNot recalled: no evidence: word coverage of the prompt" in call("why-not", ids[1][:8]).output
    turn(home, "hello there")
    assert call("why-not", ids[0][:8]).output.endswith("\nNot recalled: nothing was searched for (small talk).\n")
    assert "did come up" in call_json("why-not", ids[0], first[:8])["why_not"]
    with pytest.raises(NotFoundError, match="deadbeef"):
        call("why-not", "deadbeef")


def test_after_a_purge_nothing_of_the_text_is_printed(ids: list[str], home: Path) -> None:
    turn(home)
    with Memory.open(home) as memory:
        memory.admin.purge(ids[0])
    printed = call("why").output
    assert "(purged or not visible)" in printed
    assert "heron" not in printed
    assert "its text is purged" in call("why-not", ids[0][:8]).output


def test_each_agent_has_its_own_last_turn(ids: list[str], home: Path) -> None:
    turn(home)
    with pytest.raises(NotFoundError, match="no turn has been recorded for this caller"):
        call("why", "--agent", "ann")


def test_eval_prints_numbers_and_compares_them(ids: list[str], tmp_path: Path) -> None:
    first = call("eval", "--json").output
    result = json.loads(first)
    assert (result["facts"], result["leaks"], result["kinds"]["exact"]["at_1"]) == (2, 0, 1.0)
    file = tmp_path / "before.json"
    file.write_text(first)
    printed = call("eval", "--compare", str(file)).output
    assert "2 of 2 memories; model: hash" in printed
    assert "Leaks from other users: 0." in printed
    assert "No differences." in printed
    call("store", "Ferdinand repairs bicycles in Trondheim.")
    assert "The samples differ" in call("eval", "--compare", str(file)).output
    assert call_json("eval", "--compare", str(file))["differences"]["facts"] == [2, 3]


@pytest.mark.parametrize("text", [None, "no JSON", "[]", "{}"])
def test_what_is_no_earlier_result_is_refused_by_name(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "before.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError, match=r"before\.json|not a result of"):
        call("eval", "--compare", str(file))


def test_expand_says_what_was_asked_beside_the_prompt(ids: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Rewordings: none [off: llm_endpoint is not set]" in call("recall", QUESTION, "--expand").output
    assert "Rewordings" not in call("recall", QUESTION).output
    with loopback(lambda request: chat('{"wordings": ["the heron database"]}', 9)) as server:
        monkeypatch.setenv("PERDURE_LLM_ENDPOINT", server.url)
        monkeypatch.setenv("PERDURE_LLM_MODEL", "m")
        assert "Rewordings: the heron database [ok]" in call("recall", QUESTION, "--expand").output
        assert call_json("recall", QUESTION, "--expand")["expansion"]["state"] == "known"
        assert len(server.requests) == 1
        call("recall", "Where is the heron?")
        assert len(server.requests) == 1
        assert "9 of 100000 tokens used today" in call("status").output


def test_questions_about_memory_are_answered_from_it(ids: list[str]) -> None:
    call("store", "My name is Teo.")
    assert "[about/" in call("recall", "what's my name?").output
    assert "stands on these days" in call_json("recall", "What do I have in June?")["silence"]


def test_what_was_rejected_stands_best_first(ids: list[str]) -> None:
    for number in range(6):
        call("store", f"The database of stage {number} is an egret.")
    left = [
        each for each in call_json("recall", QUESTION, "--explain")["explained"]["considered"] if each["score"] == 0
    ]
    assert len(left) > 2
    seen = [(each["probability"] or 0.0, each["cosine"] or 0.0, each["coverage"]) for each in left]
    assert seen == sorted(seen, reverse=True)
