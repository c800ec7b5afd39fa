"""The librarian within a played day: its requests written down, and answers that were written from them read back.

A request is OUT/DAY/BATCH.json: {system, prompt, schema, turns, memories}; an answer IN/DAY/BATCH.json: {operations}.
Memories are named m1, m2 and so on, by first mention in the day as it is played without any answer. The note of an
answer's operation is named by its batch and place: m203 is the third operation of the second batch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perdure.api.memory import Memory
from perdure.engine.audiences import audience_of
from perdure.hooks.types import TurnContext
from perdure.librarian.operations import schema
from perdure.librarian.request import Batch, Reader, Request, Turn, system, turn_of

TURNS = 20
"""After so many a conversation that goes on is read."""


@dataclass
class Rest:
    """Collects the turns of a day and, when it rests, makes the request about them."""

    names: dict[str, str] = field(default_factory=dict)  # of memories, by their texts
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
            self.names.setdefault(fact.text, f"m{len(self.names) + 1}")
        told = {name: self.names[fact.text] for name, fact in request.memories.items()}
        self.requests[f"{self.batch:02}"] = request.renamed(told)

    def write(self, folder: Path) -> None:
        """Write the requests down."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, request in self.requests.items():
            told = {"system": system(), "prompt": request.prompt, "schema": schema(), **request.shown()}
            text = json.dumps(told, ensure_ascii=False, indent=1)
            (folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
