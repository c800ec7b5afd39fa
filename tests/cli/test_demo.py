"""The demo: what a newcomer sees first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.cli.replay import bytes_of, load_script
from perdure.errors import InputError
from tests.cli.calling import call


def run_demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the demo in a fresh interpreter."""
    command = [sys.executable, "-m", "perdure", "demo", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env=dict(os.environ))


def test_the_demo_remembers_everything_and_nothing_else(tmp_path: Path) -> None:
    result = run_demo("--json", "--keep", str(tmp_path / "kept"))

    assert result.returncode == 0, result.stdout + result.stderr
    summary = json.loads(result.stdout)
    assert set(summary) == {
        "questions", "recalled", "missed", "false_injections", "captured", "secret_bytes", "seconds",
    }  # fmt: skip
    assert summary["questions"] >= 8
    assert summary["recalled"] >= 6
    assert (summary["missed"], summary["false_injections"], summary["secret_bytes"]) == (0, 0, 0)
    secret = load_script().secrets[0]
    assert bytes_of(tmp_path / "kept", secret) == 0
    assert bytes_of(tmp_path / "kept", "dark mode") > 0, "the search must find what is there"


def test_the_packaged_script_is_a_real_test() -> None:
    script = load_script()
    assert len(script.sessions) == 2
    assert all(len(session.turns) >= 8 for session in script.sessions)
    questions = [turn for session in script.sessions for turn in session.turns if turn.expect]
    facts = [turn.user for turn in script.sessions[0].turns] + [script.sessions[1].turns[1].user]
    unlike = sum(
        not _content(question.user) & _content(next(fact for fact in facts if words in fact))
        for question in questions
        for words in question.expect or ()
    )
    assert unlike * 2 >= len(questions), "at least half of the questions share no content word with their answer"
    assert any(turn.expect == () and turn.user.endswith("?") for turn in script.sessions[1].turns)
    assert any(turn.never for turn in script.sessions[1].turns)
    assert any(secret in turn.user for turn in script.sessions[0].turns for secret in script.secrets)


def _content(text: str) -> set[str]:
    from perdure.text.normalise import match_terms

    return set(match_terms(text))


def test_a_script_of_ones_own_shows_what_went_wrong(tmp_path: Path) -> None:
    script = {
        "sessions": [
            {"id": "a", "turns": [{"user": "My favourite tea is genmaicha."}]},
            {"id": "b", "turns": [{"user": "What is my favourite tea?", "expect": ["oolong"]}]},
        ]
    }
    path = tmp_path / "script.json"
    path.write_text(json.dumps(script))

    result = call("demo", "--script", path, code=1)

    assert "missed: oolong" in result.output
    assert "not expected: My favourite tea is genmaicha." in result.output


@pytest.mark.parametrize(
    ("content", "named"),
    [("{}", "sessions"), ("not json", "JSON"), ('{"sessions": [{"id": "a", "turns": []}]}', "turns"),
     ('{"sessions": [{"id": "a", "turns": [{"user": "x", "expekt": []}]}]}', "expekt")],
)  # fmt: skip
def test_a_bad_script_is_refused_by_name(content: str, named: str, tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(content)
    with pytest.raises(InputError, match=named):
        load_script(path)
