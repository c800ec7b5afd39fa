"""A store in which everything that has a name or a text holds what a terminal obeys; and a runner of many commands.

As a program it runs command lines, each in a child of its own, with stdout and stderr as they were given to it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

CONTROLS = "\x1b[35;7mE\x1b]0;T\x07V\x08I\x9b2JL\x7f\x85\u202edlrow\u2066\u200b\ufeff\u2028\U000e0041"
"""ESC, an OSC title, a bell, a backspace, C1, DEL, NEL, a bidi override and isolate, nothing wide, a line, a tag."""
FAKE = "FAKE-ROW"
EVIL = f"heron {CONTROLS}\r\n{FAKE}\tcell"
PASSPHRASE = "a horse beneath the willow"
MARK = "\n=====CALL=====\n"


def build(home: Path) -> Mapping[str, str]:
    """Fill a folder; return the ids by which commands are told what to show."""
    from perdure.api.memory import Memory
    from perdure.hooks.types import Channel, TurnContext
    from perdure.store.fact import Fact
    from perdure.store.transaction import Author

    with Memory.open(
        home,
        embedder="none",
        timers=False,
        watch=False,
        capture_assistant=True,
        compare={"classify": False},
        categories={f"kind {EVIL[:20]}": "haunted"},
    ) as memory:
        given: dict[str, Any] = {
            "entity": f"ent {EVIL}",
            "key": f"key {EVIL}",
            "value": f"value {EVIL}",
            "why": f"why {EVIL}",
        }
        one = memory.store(f"The staging database is called {EVIL}", tags=[f"tag {EVIL}"], category=f"kind {EVIL[:20]}",
                           metadata={f"name {EVIL}": [EVIL]}, **given)  # fmt: skip
        two = memory.store(f"The kettle of {EVIL} stands in the kitchen.")
        memory.link(one.id, two.id, "CAUSED_BY")
        former, two = two.id, memory.update(two.id, text=f"The kettle of {EVIL} stands in the hall.")
        gone = memory.forget(memory.store(f"The pot of {EVIL} is gone.").id)
        engine = memory._engine
        with engine.store.write(Author(Channel.USER, f"host {EVIL}", f"session {EVIL}")) as tx:
            owner: dict[str, Any] = {"scope": "user", "scope_target": "owner"}
            waits = tx.add(Fact(f"What waits is {EVIL}", review_state="pending", metadata={"review": EVIL}, **owner))
            tx.add(Fact(f"An import says {EVIL}", channel=Channel.IMPORT, provenance_session=EVIL, **owner))
            tx.add(Fact(f"Elsewhere {EVIL}", channel=Channel.USER, scope="project", scope_target=f"p {EVIL}"))
            twin = Fact(f"The cup of {EVIL} is blue.", channel=Channel.USER, **owner)
            tx.add(twin)
            tx.add(replace(twin, text=f"{twin.text}!"))
        memory.upkeep.checkpoint(f"intent {EVIL}", f"state {EVIL}", f"expected {EVIL}")
        context = TurnContext(session_id="talk")
        memory.turns.before(f"Which staging database is called {EVIL}?", context)
        memory.turns.after([{"role": "user", "content": f"My aunt is called {EVIL}."}], True, context)
        memory.settle()
        notes = home / "workspace"
        (notes / "memory").mkdir(parents=True)
        (notes / "MEMORY.md").write_text(f"# Title {EVIL}\n\nThe gate of {EVIL} opens at noon.\n")
        (notes / "memory" / f"2026-01-01-{CONTROLS.replace('/', '')}\n{FAKE}.md").write_text(f"A heron {EVIL} flies.\n")
        (notes / "memory" / "2026-01-02-\udcff.md").write_text("A heron of no letters.\n")
        memory.files.add(notes, "workspace")
        memory.files.add_transcript([{"role": "user", "content": f"The gate is {EVIL}"}], f"s {EVIL}")
        memory.files.sync()
        (notes / "memory" / f"new {CONTROLS}.md").write_text("Not indexed yet.\n")
        with memory.admin.vault(PASSPHRASE) as vault:
            record = vault.store("heron", f"secret {EVIL}")
    files = home.parent / f"files {CONTROLS}"
    files.mkdir()
    (files / "broken.jsonl").write_text('{"type": "header"\n')
    lines: list[dict[str, object]] = [
        {"type": "header", "format": 1, "schema": 1, "space": None, "counts": {"facts": 2}},
        {"type": "fact", "id": f"refused {EVIL}", "text": "", "channel": "user"},
        {"type": "fact", "id": one.id, "text": f"Something else {EVIL}", "channel": "user"},
    ]
    (files / "import.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    script = {"title": f"Title {EVIL}", "sessions": [{"id": f"id {EVIL}", "turns": [
        {"user": f"My aunt is called {EVIL}.", "agent": f"OK {EVIL}"},
        {"user": "What is my aunt called?", "expect": [f"missed {EVIL}"]}]}]}  # fmt: skip
    (files / "script.json").write_text(json.dumps(script))
    talk = [{"role": "user", "content": f"My aunt is called {EVIL}."}, {"role": "assistant", "content": EVIL}]
    (files / "talk.jsonl").write_text("".join(json.dumps(line) + "\n" for line in talk))
    return {
        "one": one.id, "two": two.id, "gone": gone.id, "waits": waits.id, "former": former, "record": record.id,
        "files": str(files), "scope": f"project:p {EVIL}",
    }  # fmt: skip


def run(calls: Sequence[Sequence[str]]) -> None:
    """Run each command line in a child, with a mark in front of what it prints."""
    from perdure.cli.main import COMMANDS, main

    # Once, for all children.
    for module in {*COMMANDS.values(), "numpy", "rich.console", "rich.progress", "rich.table", "rich.text"}:
        import_module(module)
    for call in calls:
        for stream in (1, 2):
            os.write(stream, MARK.encode())
        child = os.fork()
        if not child:
            code = 70
            try:
                sys.argv = ["perdure", *call]
                main()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 70
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        os.waitpid(child, 0)


if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
