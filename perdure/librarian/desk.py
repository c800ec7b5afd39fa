"""When the librarian reads, and what waits for it: at rest, in one process of all that share the store.

What was said waits in the store until it is read; that it was read is part of the change that came of it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from perdure.errors import ModelError, PerdureError
from perdure.hooks.types import Messages, TurnContext
from perdure.librarian.apply import Applier, Outcome
from perdure.librarian.operations import Operation, parse
from perdure.librarian.request import Batch, Reader, Request, Turn, repair, system, turn_of
from perdure.llm import LIBRARIAN, Asker
from perdure.store.llm import drop_turns, keep_turn, waiting_turns
from perdure.store.store import Store
from perdure.text.pluralize import counted

IDLE: Final = 600.0
"""Seconds without a turn after which a conversation is at rest."""
TURNS: Final = 20
"""After so many turns one that goes on is read."""
FIRST: Final = 300.0
LONGEST: Final = 86_400.0
"""Seconds until the next try after a model has failed, and at the most; they double with each further failure."""
PATIENCE: Final = 180.0
"""Seconds that an answer may take."""
KEPT: Final = 20
"""Runs that are told."""
STATE: Final = "librarian"
WITHOUT: Final = "librarian_without"
WANTED: Final = "librarian_wanted"
MARK: Final = "[background perdure-librarian {nonce}]\n"
"""What a question begins with: `perdure.speech.typed` takes nothing for a person's word that begins so."""


@dataclass
class Desk:
    """The librarian of a store. Usable from any thread."""

    store: Store
    reader: Reader
    applier: Applier
    # the model for what was said in a host and is kept in scopes; None: there is none that may be asked
    model: Callable[[str, Sequence[str]], Asker | None]
    rested: set[str] = field(default_factory=set)  # sessions that are over, or whose model sees no more of them

    def note(self, messages: Messages, context: TurnContext, scopes: Sequence[str], at: float) -> None:
        """Let a turn wait to be read, if its user said anything plainly and its host has a model."""
        host = context.host or ""
        if context.chat != "direct" or not self._has_model(host, scopes):
            return
        turn = turn_of(messages, self.store.key, context.session_id, at)
        if turn is not None:
            told = {"host": host, "session": context.session_id, "scopes": list(scopes), **asdict(turn)}
            self.store.database.apply(keep_turn, at, json.dumps(told, ensure_ascii=False))

    def rest(self, session: str | None) -> None:
        """Take note that a conversation is at rest."""
        self.rested |= {session} if session else set()

    def run(self, pause: Callable[[], object] = lambda: None, *, now: bool = False) -> str:
        """Read what is at rest, or all that waits `now`; return a line about it."""
        state, clock = self.state(), self.store.clock
        if not now and clock.now() < state.get("again_at", 0.0):
            return "waits, as the model failed"
        waits = self.waiting()
        done = []
        for batch in waits if now else filter(self._is_due, waits):
            pause()
            model = self.model(batch.host, batch.scopes)
            if model is None:
                # A model that is lent to another process can be asked there alone.
                self.store.note(WANTED, repr(clock.now())) if now else None
                continue
            try:
                done.append((batch, self._read(batch, model)))
            except ModelError as error:
                failures = state.get("failures", 0) + 1
                again = clock.now() + min(LONGEST, FIRST * 2 ** (failures - 1))
                self._put({**self.state(), "failures": failures, "again_at": again, "why": str(error)})
                return f"failed: {type(error).__name__}" if isinstance(error, PerdureError) else "failed"
        self.rested.clear()
        if not done:
            turns = counted(sum(len(batch.turns) for batch in waits), "turn")
            held = f"{turns} wait for their host, which reads them within a minute while it runs"
            return (held if now else f"nothing is at rest yet; {turns} wait") if waits else "nothing to read"
        runs: list[dict[str, Any]] = [
            {"at": clock.now(), "turns": len(batch.turns), "did": str(outcome), "batch": outcome.batch}
            for batch, outcome in done
        ]
        self._put({"runs": [*state.get("runs", ()), *runs][-KEPT:]})
        return "; ".join(run["did"] for run in runs)

    def waiting(self) -> list[Batch]:
        """Return what waits, conversation by conversation, of each at most twenty turns."""
        found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        for name, text in self.store.database.query(waiting_turns):
            told = json.loads(text)
            key = json.dumps([told.pop("host"), told.pop("session"), told.pop("scopes")])
            found.setdefault(key, []).append((name, told))
        batches = []
        for key, rows in found.items():
            host, session, scopes = json.loads(key)
            for start in range(0, len(rows), TURNS):
                names, turns = zip(*rows[start : start + TURNS], strict=True)
                batches.append(Batch(host, session, tuple(scopes), tuple(Turn(**each) for each in turns), names))
        return batches

    def state(self) -> dict[str, Any]:
        """Return what is known of earlier runs: `runs`, `failures`, `why`, and `again_at`, epoch seconds."""
        state: dict[str, Any] = json.loads(self.store.meta(STATE) or "{}")
        return state

    def without(self) -> list[str]:
        """Return the hosts that had no model when something was said in them last."""
        hosts: list[str] = json.loads(self.store.meta(WITHOUT) or "[]")
        return hosts

    def _has_model(self, host: str, scopes: Sequence[str]) -> bool:
        found, without = self.model(host, scopes) is not None, self.without()
        if found is (host in without):
            self.store.note(WITHOUT, json.dumps(sorted({*without} ^ {host})))
        return found

    def _is_due(self, batch: Batch) -> bool:
        quiet = self.store.clock.now() - batch.turns[-1].at >= IDLE
        wanted = float(self.store.meta(WANTED) or 0.0) >= batch.turns[-1].at
        return quiet or wanted or len(batch.turns) >= TURNS or batch.session in self.rested

    def _read(self, batch: Batch, model: Asker) -> Outcome:
        request = self.reader.request(batch)
        operations = _asked(request, model)
        name = f"librarian:{batch.names[0]}"
        return self.applier.apply(request, operations, name, lambda tx: drop_turns(tx.connection, batch.names))

    def _put(self, state: dict[str, Any]) -> None:
        self.store.note(STATE, json.dumps(state))


def _asked(request: Request, model: Asker) -> list[Operation]:
    """Return what a model proposes; what cannot be read it may say once more."""
    question = MARK.format(nonce=secrets.token_hex(8)) + request.prompt
    operations, wrong = parse(model.ask_json(question, purpose=LIBRARIAN, system=system(), timeout=PATIENCE))
    if wrong:
        again = model.ask_json(question + repair(wrong), purpose=LIBRARIAN, system=system(), timeout=PATIENCE)
        better, _ = parse(again)
        operations = better or operations
    return operations
