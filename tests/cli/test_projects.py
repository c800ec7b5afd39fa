"""The owner sees what is theirs in every repository, agent and session, and can do everything to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure import Memory
from perdure.errors import AmbiguousIdError, NotFoundError, PerdureError
from perdure.hooks.types import TurnContext
from perdure.hosts.command.hooks import CommandHooks
from tests.cli.calling import call, call_json
from tests.hosts.machine import git

PORT = "The staging database of this repository is called heron."


@pytest.fixture
def repository(tmp_path: Path, home: Path) -> Path:
    """A repository in which Claude Code was told something, and has asked for it in a later session."""
    folder = tmp_path / "website"
    git(tmp_path, "init", "-q", str(folder))
    hooks = CommandHooks(home, embedder="none", timers=False, watch=False, opening_tokens=0)
    for session, prompt in (("s1", PORT), ("s2", "What is the staging database called?")):
        payload = {"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": prompt, "cwd": str(folder)}
        hooks.handle("prompt", "claude-code", payload, None)
        assert hooks.store().settle()
    hooks.close()
    return folder


def test_an_id_from_the_list_works_everywhere(repository: Path) -> None:
    [fact] = call_json("list")["facts"]
    assert fact["scope"] == "project"
    short = fact["id"][:8]
    other = call_json("store", "The staging database has a replica.")["facts"][0]["id"][:8]
    assert f"project:{fact['scope_target']}" in call("list").stdout
    assert f"project:{fact['scope_target']}" in call("show", short).stdout
    assert fact["id"] in [hit["fact"]["id"] for hit in call_json("search", "staging heron")["results"]]
    assert "did come up" in call("why-not", short).stdout
    assert PORT in call("why").stdout
    assert PORT in call("history", short).stdout
    for words in (
        ("pin", short), ("unpin", short), ("link", short, other), ("graph", short),
        ("unlink", short, other), ("forget", short), ("unforget", short), ("update", short, "--importance", "0.9"),
    ):  # fmt: skip
        call(*words)
    assert PORT in call("undo", "--dry-run").stdout
    assert PORT in call("purge", short, "--dry-run").stdout
    turn = call_json("why")["turn"]
    with Memory.open(whole=True, embedder="none") as memory:
        assert [text for each in memory.turns.past() for text in each.texts] == [PORT]
        assert memory.turns.mark(turn, short, True).marks == {fact["id"]: True}
        assert PORT in [each.text for each in memory.turns.replay(turn).considered if each.verdict == "injected"]


def test_a_project_is_a_filter_by_its_name_or_here(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("store", "My cat is called Tom.")
    call("store", "The staging database of the other one is called egret.", "--scope", "project:other")
    scope = next(fact for fact in call_json("list")["facts"] if fact["text"] == PORT)["scope_target"]
    monkeypatch.chdir(repository)
    for name in ("website", "here", scope, f"project:{scope}"):
        assert [fact["text"] for fact in call_json("list", "--project", name)["facts"]] == [PORT]
        found = call_json("search", "staging database", "--project", name)["results"]
        assert [hit["fact"]["text"] for hit in found] == [PORT]
        recalled = call_json("recall", "What is the staging database called?", "--project", name)["items"]
        assert [item["text"] for item in recalled] == [PORT]
    assert call_json("store", "We deploy on Fridays.", "--project", "here")["facts"][0]["scope_target"] == scope
    assert call_json("forget", "--project", "website", "--dry-run")["chosen"] == 2
    with pytest.raises(NotFoundError, match="perdure stats --all"):
        call("list", "--project", "nothing")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PerdureError, match="home folder"):
        call("list", "--project", "here")
    for name in ("twin-0123456789ab", "twin-ba9876543210"):
        call("store", "The build is slow.", "--scope", f"project:{name}")
    with pytest.raises(AmbiguousIdError, match="twin-ba"):
        call("list", "--project", "twin")


def test_what_an_agent_has_is_the_owner_s_too_and_what_a_named_user_has_is_not() -> None:
    own = call_json("store", "The harbour is closed.", "--agent", "main")["facts"][0]["id"]
    shared = call_json("store", "The quay is wet.", "--agent", "main", "--scope", "agent:main user:*")["facts"][0]["id"]
    evas = [
        call_json("store", "The pier is long.", "--user", "eva", *agent)["facts"][0]["id"]
        for agent in ((), ("--agent", "main"))
    ]
    assert {fact["id"] for fact in call_json("list")["facts"]} == {own, shared}
    assert call_json("list")["elsewhere"] == len(evas)
    call("forget", own)
    for each in evas:
        for words in (("show",), ("forget",), ("pin",), ("history",), ("update", "--why", "x")):
            with pytest.raises(NotFoundError):
                call(*words, each)
    assert "pier" not in call("search", "pier", code=None).stdout
    assert call_json("show", evas[0], "--user", "eva")["id"] == evas[0]


def test_the_turns_of_the_owners_agents_are_told_and_asked_again_as_they_were(home: Path) -> None:
    with Memory.open(home, agent="main", embedder="none") as memory:
        memory.store("The harbour is called Ostend.")
        memory.turns.before("What is the harbour called?", TurnContext(agent_id="main", session_id="s"))
        memory.turns.before("And the harbour of Eva?", TurnContext(agent_id="main", user_id="eva", session_id="s"))
        memory.settle()
    with Memory.open(home, whole=True, embedder="none") as memory:
        [turn] = memory.turns.past()
        assert turn.texts == ("The harbour is called Ostend.",)
        assert "Ostend" in memory.turns.replay(turn.id).considered[0].text
    with Memory.open(home, embedder="none") as memory:
        assert memory.turns.past() == []


def test_nothing_to_do_is_said_in_a_sentence() -> None:
    assert call("review").stdout.startswith("Nothing pending. ")
    assert call("review", "--replaced").stdout.endswith("Nothing was replaced or withdrawn.\n")
