"""The librarian within a played day: its requests written down, and answers that were written from them read back.

A request is OUT/DAY/BATCH.json: {system, prompt, schema, turns, memories}; an answer IN/DAY/BATCH.json: {operations}.
Memories are named m1, m2 and so on, by first mention in the day as it is played without any answer. The note of an
answer's operation is named by its batch and place: m203 is the third operation of the second batch. Answers are read
beside the requests that they were written from, so that a name still means the same text; what is not there any more is
stale.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perdure.api.memory import Memory
from perdure.engine.audiences import audience_of
from perdure.hooks.types import TurnContext
from perdure.librarian.apply import Applier
from perdure.librarian.operations import parse, schema
from perdure.librarian.request import Batch, Reader, Request, Turn, system, turn_of

TURNS = 20
"""After so many a conversation that goes on is read."""


@dataclass
class Rest:
    """Collects the turns of a day and, when it rests, makes the request about them."""

    names: dict[str, str] = field(default_factory=dict)  # of memories, each with the text of its memory
    batch: int = 0  # the number of the last one
    requests: dict[str, Request] = field(default_factory=dict)  # by the names of their batches

    def __post_init__(self) -> None:
        """Begin with nothing heard."""
        self._turns: list[Turn] = []
        self._context = TurnContext()

    def heard(self, memory: Memory, messages: Sequence[dict[str, Any]], context: TurnContext) -> None:
        """Take a turn in; after twenty it is time."""
        engine = memory._engine
        turn = turn_of(messages, engine.store.key, context.session_id, engine.clock.now())
        self._context = context
        self._turns += [turn] if turn else []
        if len(self._turns) == TURNS:
            self(memory)

    def __call__(self, memory: Memory) -> None:
        """Make the request about the turns since the last one, and see to it."""
        if not self._turns:
            return
        engine, context = memory._engine, self._context
        home = audience_of(context).home
        turns, self._turns = tuple(self._turns), []
        batch = Batch(context.host or "", context.session_id, (str(home),), turns)
        self.batch += 1
        self.see(memory, Reader(engine.store, engine.leg).request(batch))

    def see(self, memory: Memory, request: Request) -> None:
        """Keep a request, its memories named as first mentioned in the day."""
        for fact in request.memories.values():
            if fact.text not in self.names.values():
                self.names[f"m{len(self.names) + 1}"] = fact.text
        self.requests[f"{self.batch:02}"] = self.named(request)

    def named(self, request: Request) -> Request:
        """Return a request with its memories under the names of the day."""
        own = {fact.text: name for name, fact in request.memories.items()}
        told = [(own[text], name) for name, text in self.names.items() if text in own]
        order = list(request.memories)
        return request.renamed({name: each for each, name in sorted(told, key=lambda pair: order.index(pair[0]))})

    def write(self, folder: Path) -> None:
        """Write the requests down."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, request in self.requests.items():
            told = {"system": system(), "prompt": request.prompt, "schema": schema(), **request.shown()}
            text = json.dumps(told, ensure_ascii=False, indent=1)
            (folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


def written(folder: Path) -> dict[str, str]:
    """Return the names of memories in the requests of a day that were written down, each with the memory's text."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.json")):
        request = json.loads(path.read_text(encoding="utf-8"))
        found |= {memory["id"]: memory["text"] for memory in request["memories"]}
    return found


@dataclass
class Answering(Rest):
    """Lets recorded answers take effect; `names` are those of the requests that they were written from."""

    answers: Path = Path()
    figures: Counter[str] = field(default_factory=Counter)

    def see(self, memory: Memory, request: Request) -> None:
        """Apply the answer to a request. What names a memory that is not near any more is stale."""
        path = self.answers / f"{self.batch:02}.json"
        if not path.is_file():
            self.figures["unanswered"] += 1
            return
        engine = memory._engine
        operations, wrong = parse(json.loads(path.read_text(encoding="utf-8")))
        outcome = Applier(engine.store, lambda: engine.writer, lambda: engine.categories, engine.leg).apply(
            self.named(request), operations
        )
        self.figures["malformed"] += len(wrong)
        self.figures += outcome.done
        self.figures += Counter(f"refused: {each.reason}" for each in outcome.refused)
        for operation, text in outcome.notes:
            self.names[f"m{100 * self.batch + 1 + operations.index(operation)}"] = text
