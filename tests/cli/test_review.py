"""The commands that keep what is remembered in order."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from perdure.api.memory import Memory
from perdure.api.tools import call_tool
from perdure.errors import NotFoundError
from perdure.hooks.types import Channel, Consent, TurnContext
from perdure.store.fact import Fact
from perdure.store.transaction import Author
from tests.cli.calling import call, call_json

FLOOD = "My sister lives in Bergen. My brother lives in Porto. My aunt lives in Riga."


@pytest.fixture(autouse=True)
def flood(home: Path) -> None:
    """Two facts that wait for a person, behind one that does not."""
    with Memory.open(capture_limits={"turn": 1}) as memory:
        memory.turns.after([{"role": "user", "content": FLOOD}], True, TurnContext(session_id="s"))
        memory.settle()


def test_what_waits_is_listed_approved_and_rejected() -> None:
    listed = call_json("review")
    assert listed == call_json("review", "list")
    first, second = (fact["id"][:8] for fact in listed["facts"])
    assert call_json("review", "approve", first, "--dry-run")["facts"][0]["review_state"] == "pending"
    assert call_json("review", "approve", first)["facts"][0]["review_state"] == "approved"
    assert call_json("review", "reject", second)["facts"][0]["review_state"] == "rejected"
    assert call_json("review") == {"facts": [], "proposals": [], "turns": []}
    call_json("undo")
    assert [fact["id"][:8] for fact in call_json("review")["facts"]] == [second]
    assert call_json("status")["review"] == 1


def test_what_an_agent_asks_for_stands_beside_the_memory_it_is_about() -> None:
    with Memory.open() as memory:
        boat = memory.store("The boat is called Albatross.")
        for name, values in {"memory_update": {"text": "The boat is called Heron."}, "memory_forget": {}}.items():
            call_tool(memory, name, {"memory": boat.id, **values}, TurnContext(), consent=Consent.UNAVAILABLE)
    forget, update = call_json("review")["facts"][:2]
    assert [each["relation"] for each in (forget, update)] == ["would forget", "would replace"]
    assert forget["beside"]["text"] == update["beside"]["text"] == boat.text
    assert f"would replace {boat.id[:8]}: {boat.text}" in " ".join(call("review").output.split())
    call("review", "approve", update["id"][:8])
    present = call_json("list", "--state", "present")["facts"]
    assert present[0]["text"] == "The boat is called Heron."
    with pytest.raises(NotFoundError, match="review reject"):
        call("review", "approve", forget["id"][:8])


def put_twins() -> None:
    with Memory.open() as memory, memory._engine.store.write(Author(Channel.USER)) as tx:
        for text in ("I like strong tea in the morning.", "I like strong tea in the morning!"):
            tx.add(Fact(text, channel=Channel.USER, scope="user", scope_target="owner"))


def test_an_audit_tells_before_it_forgets() -> None:
    call("review", "audit")
    call("review", "audit", "--fix")
    put_twins()
    told = call_json("review", "audit", "--fix", "--dry-run", code=1)
    assert (told["counts"], told["fixed"]) == ({"duplicate": 1}, 0)
    nobody = call("review", "audit", "--fix", code=2)
    assert "says the same thing and stays" in nobody.stdout
    assert "--yes" in nobody.stderr
    mended = call_json("review", "audit", "--fix", "--yes")
    assert mended["fixed"] == 1
    call_json("undo", "--batch", mended["batch"])
    call("review", "audit", code=1)


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("all", 0), ("n", 1), ("", 1)])
def test_on_a_terminal_an_audit_asks_of_each(monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    put_twins()
    monkeypatch.setattr("perdure.cli.review.is_asked", lambda: True)
    asked = call("review", "audit", "--fix", stdin=f"{answer}\n", code=code)
    assert "I like strong tea in the morning!" in asked.stdout
    assert "Forget it?" in asked.stderr
    assert ("perdure undo --batch" in asked.stdout) == (code == 0)


def test_what_has_no_category_gets_one() -> None:
    call_json("store", "I love strong green tea.", "--category", "other")
    assert [each["category"] for each in call_json("classify", "--dry-run")["classified"]] == ["preference"]
    assert call_json("classify")["dry_run"] is False
    assert call_json("classify")["classified"] == []


@pytest.mark.parametrize("command", ["review", "review audit", "classify"])
def test_each_prints_for_people_too(command: str) -> None:
    assert call(*command.split(), code=None).stdout


def test_what_was_replaced_is_listed_and_taken_back() -> None:
    [old] = call_json("store", "I live in Ghent.")["facts"]
    [new] = call_json("store", "I moved to Bruges.")["facts"]
    [listed] = call_json("review", "--replaced")["replaced"]
    assert (listed["old"]["id"], listed["new"]["id"]) == (old["id"], new["id"])
    assert call_json("review", "--replaced", "--since", "9999-01-01") == {"replaced": []}
    assert call_json("review", "take-back", old["id"][:8], "--dry-run")["facts"][0]["superseded_at"] is None
    assert call_json("review", "--replaced")["replaced"] == [listed]
    assert call_json("review", "take-back", old["id"][:8])["facts"][0]["superseded_at"] is None
    assert call_json("review", "--replaced") == {"replaced": []}


@pytest.mark.parametrize("words", [("--since", "2026-01-01"), ("--replaced", "list")])
def test_options_of_replaced_that_do_not_fit_are_told(words: tuple[str, ...]) -> None:
    with pytest.raises(click.UsageError, match="--replaced"):
        call_json("review", *words)
