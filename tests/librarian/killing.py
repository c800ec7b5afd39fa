"""Kills a process at each point of a batch of the librarian: python -m tests.librarian.killing FOLDER

Prints, for each kill, where it was, what the store held then, and what it held once the next process had read.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perdure import failpoints
from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.hooks.types import TurnContext
from perdure.librarian.desk import HELD
from perdure.llm import Purpose
from perdure.store.listing import Filter
from tests.kit import START
from tests.on_postgres import part_by_folder

POINTS = sorted(
    name for name in failpoints.FAIL_POINTS if name.split(".")[0] in ("transaction", "commit", "fact", "outbox")
)
SAID = "My dentist is Dr Holm now, Dr Kade has retired. We sold the boat, so it is over. Never deploy on Fridays."


class Model:
    """Answers each question with operations on the memories that it is shown."""

    def ask_json(self, prompt: str, *, purpose: Purpose, system: str = "", timeout: float | None = None) -> Any | None:
        memories = json.loads(prompt[prompt.index("{") :])["memories"]
        names = {word: each["id"] for each in memories for word in each["text"].lower().strip(".").split()}
        return {"operations": [
            {"op": "remember", "quote": "Never deploy on Fridays", "note": "Never deploy on Fridays.",
             "triggers": ["can you ship this tonight"]},
            {"op": "withdraw", "target": names["turku"], "why": "over", "quote": "We sold the boat"},
            {"op": "replace", "target": names["kade"], "quote": "My dentist is Dr Holm now",
             "note": "My dentist is Dr Holm now."},
        ]}  # fmt: skip


def opened(folder: Path, clock: ManualClock) -> Memory:
    memory = Memory.open(
        folder, clock=clock, embedder="none", watch=False, timers=False, librarian=True, auto_capture=False
    )
    memory._engine.librarian.model = lambda host, scopes: Model()
    assert memory.settle()
    return memory


def held(memory: Memory) -> dict[str, Any]:
    """Return what a batch changes, as JSON holds it."""
    facts = sorted(memory.admin.list(Filter(), include_superseded=True), key=lambda fact: fact.text)
    found = memory.admin.librarian()
    return {
        "facts": [(fact.text, fact.superseded_at is None) for fact in facts],
        "triggers": [trigger.text for fact in facts for trigger in memory.admin.triggers(fact.id)],
        "waiting": found["waiting"], "runs": [each["did"] for each in found.get("runs", ())],
    }  # fmt: skip


def dying(folder: Path, point: str, count: int) -> None:
    with opened(folder, ManualClock(START)) as memory:
        for text in ("My dentist is Dr Kade.", "We have a boat in Turku."):
            memory.store(text)
        context = TurnContext(session_id="s", host="bench")
        memory._engine.librarian.note([{"role": "user", "content": SAID}], context, ["user:owner"], START)
        failpoints._armed, failpoints._fatal, failpoints._reached = point, count, itertools.count(1)
        memory.admin.librarian(run=True)
        failpoints._armed = ""


def looking(folder: Path, told: Path) -> None:
    clock = ManualClock(START)
    with opened(folder, clock) as memory:
        before = held(memory)
        clock.advance(HELD)
        memory.admin.librarian(run=True)
        memory.admin.librarian(run=True)
        after, [done] = held(memory), memory.admin.librarian()["runs"]
        memory.undo(done["batch"])
        told.write_text(json.dumps({"before": before, "after": after, "undone": held(memory)}))


def in_a_child(work: Callable[[], None]) -> int:
    """Return with which code a child that does this has ended."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: Path) -> None:
    part_by_folder()
    for point in POINTS:
        for count in itertools.count(1):
            here, told = folder / f"{point}-{count}", folder / f"{point}-{count}.json"
            code = in_a_child(lambda here=here, point=point, count=count: dying(here, point, count))  # type: ignore[misc]
            assert code in (0, failpoints.EXIT_CODE), (point, count, code)
            if code == 0:
                break
            assert in_a_child(lambda here=here, told=told: looking(here, told)) == 0, (point, count)  # type: ignore[misc]
            sys.stdout.write(json.dumps({"point": point, **json.loads(told.read_text())}) + "\n")
            sys.stdout.flush()  # or a child would write it, too


if __name__ == "__main__":
    main(Path(sys.argv[1]))
