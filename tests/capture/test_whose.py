"""What is said about the user goes where they go; what is said about a project stays in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure import Memory
from perdure.capture.describe import is_own
from perdure.hooks.types import TurnContext

A, B = "project:client-a", "project:client-b"


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("I'm allergic to peanuts.", True),
        ("My name is Sam.", True),
        ("Ich mag keine Tabs.", True),
        ("Je préfère les onglets.", True),
        ("我喜欢喝茶。", True),
        ("Mieszkam w Krakowie i lubię herbatę.", True),
        ("أنا أعيش في القاهرة.", True),
        ("मैं दिल्ली में रहता हूँ।", True),
        ("The staging database is called heron.", False),
        ("We deploy on Fridays.", False),
        ("Wir deployen freitags.", False),
        ("我们周五部署。", False),
        ("The build takes 5 min.", False),
    ],
)
def test_who_a_statement_is_about(text: str, own: bool) -> None:
    assert is_own(text, None) is own


def say(memory: Memory, text: str, project: str | None) -> None:
    context = TurnContext(session_id=f"s-{project}", project=project)
    memory.turns.after([{"role": "user", "content": text}], True, context)
    memory.settle()


def asked(memory: Memory, prompt: str, project: str | None, session: str = "new") -> str:
    recall = memory.turns.before(prompt, TurnContext(session_id=session, project=project))
    return recall.block if recall else ""


def test_a_project_s_memory_stays_silent_in_another(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        assert memory.ready()
        say(memory, "The staging database is called heron.", A)
        assert "heron" in asked(memory, "What is the staging database called?", A)
        assert "heron" not in asked(memory, "What is the staging database called?", B)
        assert "heron" not in asked(memory, "What is the staging database called?", None)


def test_what_is_said_of_the_user_in_a_project_goes_with_them(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        assert memory.ready()
        say(memory, "My favourite editor is Helix.", A)
        assert "Helix" in asked(memory, "Which editor is my favourite?", B)


def test_a_project_s_conversation_stays_silent_in_another(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        say(memory, "Let us look at why the heron cluster drops its connections at night.", A)
        memory.turns.session_end(TurnContext(session_id=f"s-{A}", project=A))
        memory.settle()
    for project, found in ((A, True), (B, False)):
        with Memory.open(tmp_path, scopes=[project]) as memory:
            assert bool(memory.files.search("heron cluster connections").results) is found
