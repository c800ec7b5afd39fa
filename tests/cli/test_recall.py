"""Commands that recall, explain and measure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from perdure.api.memory import Memory
from perdure.cli.main import cli
from perdure.errors import InputError, NotFoundError
from perdure.hooks.types import TurnContext
from tests.loopback import chat, loopback

TEXT = "The staging database is called heron."
CAT = "The cat sleeps on the sofa."
QUESTION = "What is the staging database called?"

Call = Callable[..., str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PERDURE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PERDURE_EMBEDDER", "hash")
    return tmp_path / "home"


@pytest.fixture
def call(home: Path) -> Call:
    """Return a function that runs a command, on a wide terminal, and returns what it printed."""

    def run(*words: str, code: int = 0) -> str:
        result = CliRunner(env={"COLUMNS": "300"}).invoke(cli, words, standalone_mode=False)
        if result.exception:
            raise result.exception
        assert result.return_value == code
        return result.output

    return run


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


def test_recall_prints_what_a_prompt_brings_up(call: Call, ids: list[str]) -> None:
    printed = call("recall", QUESTION)
    assert TEXT in printed
    assert CAT not in printed
    answer = json.loads(call("recall", QUESTION, "--json"))
    assert [item["id"] for item in answer["items"]] == [ids[0]]
    assert answer["silence"] is None
    assert "explained" not in answer


def test_recall_explains_what_came_up_and_what_did_not(call: Call, ids: list[str]) -> None:
    printed = call("recall", QUESTION, "--explain")
    came, left = printed.split("--- did not come up ---")
    assert "injected" in came
    assert ids[1][:8] in left
    assert "no evidence" in left
    assert all(f"{leg} ok (" in left for leg in ("sqlite", "lance"))
    explained = json.loads(call("recall", QUESTION, "--explain", "--json"))["explained"]
    assert {each["id"]: each["verdict"] for each in explained["considered"]} == {
        ids[0]: "injected",
        ids[1]: "no evidence",
    }


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [("hello there", "nothing was looked for: small talk"), ("Xylophora", "none with evidence; the nearest: share")],
)
def test_silence_is_said_with_its_reason(call: Call, ids: list[str], prompt: str, reason: str) -> None:
    assert "Silence: " in call("recall", prompt)
    assert reason in call("recall", prompt)
    assert reason in json.loads(call("recall", prompt, "--json"))["silence"]


def test_recall_follows_time_and_tag(call: Call, ids: list[str]) -> None:
    call("store", "The production database is called ibis.", "--tags", "infra")
    assert "ibis" in call("recall", "Which database is called so?", "--tag", "infra")
    assert "heron" not in call("recall", "Which database is called so?", "--tag", "infra")
    assert TEXT not in call("recall", QUESTION, "--as-of", "2020-01-01")
    with pytest.raises(InputError, match="2020-13-01"):
        call("recall", QUESTION, "--as-of", "2020-13-01")


def test_recall_says_why_a_memory_does_not_come_up(call: Call, ids: list[str]) -> None:
    assert f"{ids[1][:8]}: no evidence" in call("recall", QUESTION, "--why-not", ids[1][:8])
    assert "did come up" in json.loads(call("recall", QUESTION, "--why-not", ids[0], "--json"))["why_not"]


def test_why_explains_the_last_turn_and_not_the_commands_that_look(call: Call, ids: list[str], home: Path) -> None:
    with pytest.raises(NotFoundError, match="no turn of this caller"):
        call("why")
    last = turn(home)
    call("recall", "Where does the cat sleep?", "--explain")
    call("eval", "--size", "1")
    explained = json.loads(call("why", "--json"))
    assert (explained["turn"], explained["query"], explained["sentence"]) == (last, QUESTION, None)
    printed = call("why")
    assert f"Turn {last[:8]}, " in printed
    assert f"Asked: {QUESTION}" in printed
    assert printed.index(TEXT) < printed.index("did not come up") < printed.index(CAT)


def test_why_names_a_turn_and_says_its_silence(call: Call, ids: list[str], home: Path) -> None:
    first = turn(home)
    turn(home, "hello there")
    assert "Silence: nothing was looked for: small talk." in call("why")
    assert TEXT in call("why", first[:8])


def test_why_shows_ten_that_did_not_come_up_unless_all_are_asked_for(call: Call, home: Path) -> None:
    with Memory.open(home) as memory:
        memory.ready()
        memory.store(TEXT)
        for number in range(13):
            memory.store(f"Lamp {number} in hall {number * 7} is green.")
    turn(home)
    assert call("why").count("no evidence") == 10
    assert "3 more; --all shows them" in call("why")
    assert call("why", "--all").count("no evidence") == 13
    assert len(json.loads(call("why", "--json"))["considered"]) == 14


def test_why_not_says_it_in_a_sentence(call: Call, ids: list[str], home: Path) -> None:
    first = turn(home)
    assert call("why-not", ids[1][:8]).startswith("no evidence: share of the prompt's words")
    turn(home, "hello there")
    assert call("why-not", ids[0][:8]) == "nothing was looked for: small talk\n"
    assert "did come up" in json.loads(call("why-not", ids[0], first[:8], "--json"))["why_not"]
    with pytest.raises(NotFoundError, match="deadbeef"):
        call("why-not", "deadbeef")


def test_after_a_purge_nothing_of_the_text_is_printed(call: Call, ids: list[str], home: Path) -> None:
    turn(home)
    with Memory.open(home) as memory:
        memory.admin.purge(ids[0])
    printed = call("why")
    assert "(purged, or out of sight)" in printed
    assert "heron" not in printed
    assert "its text is gone" in call("why-not", ids[0][:8])


def test_each_agent_has_its_own_last_turn(call: Call, ids: list[str], home: Path) -> None:
    turn(home)
    with pytest.raises(NotFoundError, match="no turn of this caller"):
        call("why", "--agent", "ann")


def test_eval_prints_numbers_and_compares_them(call: Call, ids: list[str], tmp_path: Path) -> None:
    first = call("eval", "--json")
    result = json.loads(first)
    assert (result["facts"], result["leaks"], result["kinds"]["exact"]["at_1"]) == (2, 0, 1.0)
    file = tmp_path / "before.json"
    file.write_text(first)
    printed = call("eval", "--compare", str(file))
    assert "2 of 2 memories; model: hash" in printed
    assert "0 memories came up that are not yours" in printed
    assert "All numbers are the same." in printed
    call("store", "Ferdinand repairs bicycles in Trondheim.")
    assert "Other memories were asked about than before" in call("eval", "--compare", str(file))
    assert json.loads(call("eval", "--compare", str(file), "--json"))["differences"]["facts"] == [2, 3]


@pytest.mark.parametrize("text", [None, "no JSON", "[]", "{}"])
def test_what_is_no_earlier_result_is_refused_by_name(call: Call, tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "before.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError, match=r"before\.json|no result of"):
        call("eval", "--compare", str(file))


def test_expand_says_what_was_asked_beside_the_prompt(
    ids: list[str], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Also asked: (nothing) [off: no llm_endpoint is set]" in call("recall", QUESTION, "--expand")
    assert "Also asked" not in call("recall", QUESTION)
    with loopback(lambda request: chat('{"wordings": ["the heron database"]}', 9)) as server:
        monkeypatch.setenv("PERDURE_LLM_ENDPOINT", server.url)
        monkeypatch.setenv("PERDURE_LLM_MODEL", "m")
        assert "Also asked: the heron database [ok]" in call("recall", QUESTION, "--expand")
        assert json.loads(call("recall", QUESTION, "--expand", "--json"))["expansion"]["state"] == "known"
        assert len(server.requests) == 1
        call("recall", "Where is the heron?")
        assert len(server.requests) == 1
        assert "9 of 100000 tokens used today" in call("status")
