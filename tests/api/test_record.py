"""The record of a conversation is as safe as the acknowledgement of its turns, and holds each message once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.hooks.types import TurnContext

posix = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
HOST = """
import sys
from pathlib import Path
from perdure.background import keeper
from perdure.hooks.types import TurnContext
from perdure.api.memory import Memory

keeper.TICK = 3600  # no moment is quiet enough to sync the record and empty the inbox
memory = Memory.open(Path(sys.argv[1]), embedder="none")
memory.settle()
if sys.argv[2] == "before it is recorded":
    memory._engine.keeper.close()  # nothing is done behind the turns any more
history = []
for number in range(int(sys.argv[3])):
    history += [
        {"role": "user", "content": f"My colleague number {number} sits in room {number}."},
        {"role": "assistant", "content": f"Noted, room {number}. The key is [number {number}]."},
        {"role": "user", "content": f"ok {number}"},
        {"role": "assistant", "content": f"Done {number}."},
    ]
    assert memory.turns.after(history, True, TurnContext(session_id="s")) == 1
    if sys.argv[2] == "after each was recorded":
        assert memory.settle()
print("acknowledged", flush=True)
sys.stdin.read()
"""


def killed(home: Path, moment: str, turns: int) -> list[tuple[str, str]]:
    """Let a host be killed after some turns; return what was said in them."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOST, str(home), moment, str(turns)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "acknowledged\n"
        process.send_signal(signal.SIGKILL)
    return [
        pair
        for number in range(turns)
        for pair in (
            ("user", f"My colleague number {number} sits in room {number}."),
            ("assistant", f"Noted, room {number}. The key is [number {number}]."),
            ("user", f"ok {number}"),
            ("assistant", f"Done {number}."),
        )
    ]


def recorded(home: Path) -> list[tuple[str, str]]:
    lines = [
        json.loads(line)
        for path in sorted((home / "transcripts").rglob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return [(line["role"], line["content"]) for line in lines if "role" in line]


def at_once(home: Path) -> None:
    return


def lost(home: Path) -> None:
    """Lose what was not synced, as in a power cut."""
    for path in (home / "transcripts").rglob("*.jsonl"):
        path.unlink()


def half(home: Path) -> None:
    """Lose the end of what was not synced."""
    for path in (home / "transcripts").rglob("*.jsonl"):
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])


@posix
@pytest.mark.parametrize("moment", ["before it is recorded", "after each was recorded"])
@pytest.mark.parametrize("then", [at_once, lost, half])
def test_what_was_acknowledged_is_recorded_once_after_a_kill(
    tmp_path: Path, moment: str, then: Callable[[Path], None]
) -> None:
    said = killed(tmp_path, moment, 7)
    then(tmp_path)
    with Memory.open(tmp_path, embedder="none") as memory:
        assert memory.settle()
        assert recorded(tmp_path) == said
        # A host that resends its history adds only what is new.
        history = [{"role": role, "content": text} for role, text in said]
        news = [{"role": "user", "content": "My cat is called Tom."}, {"role": "assistant", "content": "A good name."}]
        memory.turns.after([*history, *news], True, TurnContext(session_id="s"))
        assert memory.settle()
    assert recorded(tmp_path) == [*said, ("user", "My cat is called Tom."), ("assistant", "A good name.")]
    assert list((tmp_path / "inbox").iterdir()) == []


def test_no_secret_of_a_reply_waits_in_the_inbox(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="none") as memory:
        memory._engine.keeper.close()
        said = [
            {"role": "user", "content": "My router stands in the hall."},
            {"role": "assistant", "content": "Its password is 'Xk7-aardvark-99'."},
        ]
        assert memory.turns.after(said, True, TurnContext(session_id="s")) == 1
        [path] = (tmp_path / "inbox").glob("*.jsonl")
        assert b"Its [redacted" in path.read_bytes() or b"password" in path.read_bytes()
        assert b"aardvark" not in path.read_bytes()


def test_a_host_that_keeps_its_conversations_pays_nothing_for_it(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    with Memory.open(tmp_path / "home", embedder="none") as memory:
        memory._engine.keeper.close()
        said = [
            {"role": "user", "content": "My router stands in the hall."},
            {"role": "assistant", "content": "Good to know."},
        ]
        context = TurnContext(session_id="s", sessions_folder=str(sessions))
        assert memory.turns.after(said, True, context) == 1
        [path] = (tmp_path / "home" / "inbox").glob("*.jsonl")
        assert b"Good to know" not in path.read_bytes()


def test_a_conversation_that_cannot_be_recorded_now_is_recorded_later(tmp_path: Path) -> None:
    in_the_way = tmp_path / "transcripts"
    with Memory.open(tmp_path, embedder="none") as memory:
        assert memory.settle()
        in_the_way.write_text("no folder")
        said = [{"role": "user", "content": "My cat is called Tom."}, {"role": "assistant", "content": "A good name."}]
        assert memory.turns.after(said, True, TurnContext(session_id="s")) == 1
        assert not memory.settle(1)
        assert "transcripts" in (memory.status().inbox_problem or "")
        assert memory._engine.store.inbox.waiting == 1
        in_the_way.unlink()
    with Memory.open(tmp_path, embedder="none") as memory:
        assert memory.settle()
        assert memory.status().inbox_problem is None
    assert recorded(tmp_path) == [("user", "My cat is called Tom."), ("assistant", "A good name.")]
