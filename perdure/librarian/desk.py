"""When the librarian reads, and what waits for it: at rest, one at a time of all processes that share the store.

What was said waits in the store until it is read. That it was read, and what is told of that, is part of the change
that came of it. A model that fails keeps its own hosts waiting, no others.
"""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from perdure.errors import InputError, ModelError, PerdureError, StoreError, TokenBudgetError
from perdure.hooks.types import Messages, TurnContext
from perdure.librarian.apply import Applier
from perdure.librarian.operations import Operation, parse
from perdure.librarian.request import Batch, Reader, Request, Turn, repair, system, turn_of
from perdure.llm import LIBRARIAN, Asker
from perdure.store.llm import drop_turns, keep_turn, put_turns, waiting_turns
from perdure.store.sql import Connection, get_meta, put_meta
from perdure.store.store import Store
from perdure.text.pluralize import counted

IDLE: Final = 600.0
"""Seconds without a turn after which a conversation is at rest."""
TURNS: Final = 20
"""After so many turns one that goes on is read."""
FIRST: Final = 300.0
DAY: Final = 86_400.0
"""Seconds until the next try after a model has failed, and at the most; they double with each further failure."""
PATIENCE: Final = 180.0
"""Seconds that an answer may take."""
HELD: Final = 2 * PATIENCE + 60
"""Seconds after which a batch is taken back from a process that has not read it: it was killed."""
KEPT: Final = 20
"""Runs that are told."""
FAILED: Final = (
    ModelError, InputError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError,
)  # fmt: skip
"""What an answer may be to blame for: it would fail each time."""
STATE: Final = "librarian"
WITHOUT: Final = "librarian_without"
WANTED: Final = "librarian_wanted"
MARK: Final = "[background perdure-librarian {nonce}]\n"
"""What a question begins with: `perdure.speech.typed` takes nothing for a person's word that begins so."""
BUSY: Final = "another process is reading"
OFF: Final = "off"
State = dict[str, Any]
"""Of all processes: `runs`, the hosts that are `failing`, who is `reading` until when, and when it was switched off."""


@dataclass
class Desk:
    """The librarian of a store. Usable from any thread."""

    store: Store
    reader: Reader
    applier: Applier
    # the model for what was said in a host and is kept in scopes; None: there is none that may be asked
    model: Callable[[str, Sequence[str]], Asker | None]
    since: float = 0.0  # when this process opened the store: switched off later, it is off here whatever the settings

    def note(self, messages: Messages, context: TurnContext, scopes: Sequence[str], at: float) -> None:
        """Let a turn wait to be read, if its user said anything plainly and its host has a model."""
        host = context.host or ""
        if context.chat != "direct" or not self._has_model(host, scopes):
            return
        turn = turn_of(messages, self.store.key, context.session_id, at)
        if turn is None:
            return
        told = {"host": host, "session": context.session_id, "scopes": list(scopes), **asdict(turn)}
        with self.store.database.write() as connection:
            if not self._is_off(_state(connection)):
                keep_turn(connection, at, _json(told))

    def rest(self, context: TurnContext) -> None:
        """Take note that a conversation is at rest."""
        if context.session_id is None:
            return
        own = (context.host or "", context.session_id)
        with self.store.database.write() as connection:
            told = {name: json.loads(turn) for name, turn in waiting_turns(connection)}
            over = {name: turn for name, turn in told.items() if (turn["host"], turn["session"]) == own}
            put_turns(connection, {name: _json({**turn, "rested": True}) for name, turn in over.items()})

    def run(self, pause: Callable[[], object] = lambda: None, *, now: bool = False) -> str:
        """Read what is at rest, or all that waits `now`; return a line about it."""
        state, by, told, away = self._known(), uuid.uuid4().hex, list[str](), set[str]()
        if self._is_off(state):
            return OFF
        waits = sorted(self.waiting(), key=lambda batch: batch.tries)
        due = [batch for batch in waits if now or self._is_due(batch)]
        try:
            for batch in due:
                model = self.model(batch.host, batch.scopes)
                if model is None and now:
                    # A model that is lent to another process can be asked there alone.
                    self.store.note(WANTED, repr(self.store.clock.now()))
                if model is None or batch.host in away or not (now or self._may_ask(batch, state)):
                    continue
                pause()
                try:
                    for did in self._read(batch, model, by):
                        told.append(did)
                except FAILED as error:
                    # Another batch may do with the tokens that are left.
                    away |= set() if isinstance(error, TokenBudgetError) else {batch.host}
                    told.append(self._failed(batch, error))
        finally:
            self._let_go(by)
        if told:
            return "; ".join(dict.fromkeys(told))
        if not waits:
            return "nothing to read"
        if any(not self._may_ask(batch, state) for batch in due):
            return "waiting: the model failed, or today's tokens are used up"
        turns = counted(sum(len(batch.turns) for batch in waits), "turn")
        if now:
            return f"{turns} waiting for their host, which reads them within a minute while it runs"
        return f"no conversation is idle yet; {turns} waiting"

    def switch(self, *, on: bool) -> int:
        """Drop what waits, and return how many turns that was.

        Switched off, it is off for all who have the store open now, until it is switched on.
        """
        now = self.store.clock.now()
        with self.store.database.write() as connection:
            names = [name for name, _ in waiting_turns(connection)]
            drop_turns(connection, names)
            state = {"runs": _state(connection).get("runs", [])} | ({} if on else {"off_at": now})
            did = f"switched {'on' if on else 'off'}: {counted(len(names), 'turn')} dropped"
            _put(connection, _logged(state, now, len(names), did) if names else state)
        self.store.database.shed(rows=False)
        return len(names)

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
                names, every = zip(*rows[start : start + TURNS], strict=True)
                rested, tries, after = (
                    any(each.pop("rested", False) for each in every),
                    max(each.pop("tries", 0) for each in every),
                    max(each.pop("after", 0.0) for each in every),
                )
                turns = tuple(Turn(**each) for each in every)
                batches.append(Batch(host, session, tuple(scopes), turns, names, rested, tries, after))
        return batches

    def state(self) -> State:
        """Return what is known of earlier `runs`, and of hosts that are `failing`: `failures`, `why` and `again_at`.

        `off`: whether it was switched off, and not on again.
        """
        known = self._known()
        return {**{name: known[name] for name in ("runs", "failing") if name in known}, "off": "off_at" in known}

    def _known(self) -> State:
        return self.store.database.query(_state)

    def _is_off(self, state: State) -> bool:
        return "off_at" in state and self.since <= state["off_at"]

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
        return quiet or wanted or len(batch.turns) >= TURNS or batch.rested

    def _may_ask(self, batch: Batch, state: State) -> bool:
        host_again = state.get("failing", {}).get(batch.host, {}).get("again_at", 0.0)
        wait = max(host_again, batch.after) - self.store.clock.now()
        return not 0 < wait <= DAY  # one that lies further ahead was noted by a clock that has been set back

    def _read(self, batch: Batch, model: Asker, by: str) -> Iterator[str]:
        """Read a batch, in parts if a day's tokens do not do for it, and say in a line what came of each."""
        if not self._claim(by):
            yield BUSY
            return
        if not self._wait(batch):
            return  # another process has read it
        request = self.reader.request(batch)
        try:
            operations = _asked(request, model, lambda: self._wait(batch))
        except TokenBudgetError as error:
            if not error.never:
                raise
            half = len(batch.turns) // 2
            if half:
                for part in (slice(half), slice(half, None)):
                    yield from self._read(replace(batch, turns=batch.turns[part], names=batch.names[part]), model, by)
                return
            did = f"left a turn out: {error}"
            with self.store.database.write() as connection:
                drop_turns(connection, batch.names)
                self._log(connection, batch, did)
            yield did
            return
        outcome = self.applier.apply(
            request, operations, lambda tx, done: self._log(tx.connection, batch, str(done), done.batch)
        )
        yield str(outcome)

    def _wait(self, batch: Batch) -> bool:
        """Return whether all turns of a batch still wait: a no, a purge or another process may have taken them."""
        return {*batch.names} <= {name for name, _ in self.store.database.query(waiting_turns)}

    def _claim(self, by: str) -> bool:
        """Keep others from reading for a while; return False if another one reads."""
        now = self.store.clock.now()
        with self.store.database.write(durable=False) as connection:
            state = _state(connection)
            reading = state.get("reading", {"by": by, "until": now})
            if reading["by"] != by and 0 < reading["until"] - now <= HELD:
                return False
            _put(connection, {**state, "reading": {"by": by, "until": now + HELD}})
        return True

    def _let_go(self, by: str) -> None:
        # What cannot be written ends by itself.
        with suppress(StoreError):
            if self._known().get("reading", {}).get("by") == by:
                with self.store.database.write(durable=False) as connection:
                    _put(connection, {name: each for name, each in _state(connection).items() if name != "reading"})

    def _log(self, connection: Connection, batch: Batch, did: str, change: str = "") -> None:
        state = _logged(_state(connection), self.store.clock.now(), len(batch.turns), did, change)
        failing = {host: each for host, each in state.get("failing", {}).items() if host != batch.host}
        _put(connection, {**state, "failing": failing})

    def _failed(self, batch: Batch, error: Exception) -> str:
        """Let a host's model rest, and its other batches be read before this one; return a line about it."""
        now, spent = self.store.clock.now(), isinstance(error, TokenBudgetError)
        with self.store.database.write() as connection:
            state = _state(connection)
            failing = state.get("failing", {})
            failures = failing.get(batch.host, {}).get("failures", 0) + (not spent)
            # Tokens are there again at midnight, UTC.
            wait = DAY - now % DAY if spent else min(DAY, FIRST * 2.0 ** min(failures - 1, 16))
            # What is no error of ours may quote what was said.
            why = str(error) if isinstance(error, PerdureError) else type(error).__name__
            failing[batch.host] = {"failures": failures, "why": why, "again_at": now + wait}
            _put(connection, {**state, "failing": failing})
            told = {name: turn for name, turn in waiting_turns(connection) if name in batch.names}
            # The host's other batches may go well: this one is then not the first failure again.
            tries, after = batch.tries + 1, now + min(DAY, FIRST * 2.0 ** min(batch.tries, 16))
            tried = {"tries": tries} if spent else {"tries": tries, "after": after}
            put_turns(connection, {name: _json({**json.loads(turn), **tried}) for name, turn in told.items()})
        return f"waits: {error}" if spent else f"failed: {type(error).__name__}"


def _asked(request: Request, model: Asker, still: Callable[[], bool]) -> list[Operation]:
    """Return what a model proposes; what cannot be read it may say once more, if that is `still` wanted."""
    question = MARK.format(nonce=secrets.token_hex(8)) + request.prompt
    if not still():
        return []
    operations, wrong = parse(model.ask_json(question, purpose=LIBRARIAN, system=system(), timeout=PATIENCE))
    if wrong and still():
        try:
            again = model.ask_json(question + repair(wrong), purpose=LIBRARIAN, system=system(), timeout=PATIENCE)
        except ModelError:
            if not operations:
                raise
            return operations
        better, _ = parse(again)
        operations = better or operations
    return operations


def _state(connection: Connection) -> State:
    state: State = json.loads(get_meta(connection, STATE) or "{}")
    return state


def _put(connection: Connection, state: State) -> None:
    put_meta(connection, STATE, _json({name: each for name, each in state.items() if each}))


def _logged(state: State, at: float, turns: int, did: str, batch: str = "") -> State:
    run = {"at": at, "turns": turns, "did": did, "batch": batch}
    return {**state, "runs": [*state.get("runs", ()), run][-KEPT:]}


def _json(told: Mapping[str, Any]) -> str:
    return json.dumps(told, ensure_ascii=False)
