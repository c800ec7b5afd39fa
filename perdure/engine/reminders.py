"""What the agent log knows of a failure, told before a tool would meet it again.

Strict and seldom: the very command, a file that was changed before it passed, or the error that the session has just
met, in the same project, and only if something mended it. For none of these twice in a session.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from perdure.capture.acts import aimed_at, error_of, failing
from perdure.hooks.types import Recall
from perdure.recall.block import dress, line, name_shortly, render
from perdure.recall.options import FULL, RecallOptions
from perdure.recall.past_failures import LEG, MOST, Act, files_of, is_of
from perdure.recall.session_state import SESSIONS, Ledger, from_receipts
from perdure.recall.turn import Candidate
from perdure.recent import Recent
from perdure.store import agent_records, receipts
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.store import Store
from perdure.store.trust import AUTO_RECALLED
from perdure.text.tokens import estimate_tokens

PATIENCE: Final = 0.25
"""Seconds that a read of the store may take: the tool waits."""


@dataclass(eq=False, repr=False)
class Reminders:
    """Reminds of what failed before. Usable from any thread."""

    store: Store
    ledger: Ledger
    options: RecallOptions

    def __post_init__(self) -> None:
        self._before = from_receipts(self.store, receipts.reminded)
        # Of each conversation, what was told.
        self._told: Recent[str, frozenset[str]] = Recent(SESSIONS)
        # Tools may run side by side.
        self._lock = threading.Lock()

    def of(
        self, act: Act, audience: Audience, conversation: str, session: str, *, ids: bool
    ) -> tuple[Recall, receipts.Body] | None:
        """Return what the model should see before a tool runs, with its receipt; None: nothing like it was met.

        `conversation`: the session's name among those of all callers; `ids`: whether memories have theirs behind them.

        Raises StoreError if the store cannot be read in time.
        """
        files, command = aimed_at(act.given, act.folder, act.began)
        if not (files or command):
            return None
        view = View(audience, self.store.clock.now(), channels=AUTO_RECALLED, approved_only=True)
        with self.store.database.reading(deadline=time.monotonic() + PATIENCE), self._lock:
            met = self._met({*files, command} - {""}, act, view, conversation, session)
            if not met:
                return None
            told = frozenset[str]().union(*(about for _, about in met))
            self._told.put(conversation, self._told_of(conversation) | told)
            chosen = [Candidate(fact, LEG, 1.0, "injected") for fact, _ in met]
            recall = self._recall(chosen, view, session, ids=ids)
            self.ledger.add(conversation, recall.items)
        return recall, _receipt(chosen, sorted(told), recall)

    def _met(
        self, about: set[str], act: Act, view: View, conversation: str, session: str
    ) -> Sequence[tuple[Fact, set[str]]]:
        """Return what was mended and the conversation has not seen, with the file, command or error that is met again.

        The latest come first.
        """
        with self.store.database.read() as connection:
            kept = agent_records.kept(connection, view, (agent_records.FAILED,))
        mended = [fact for fact in kept if fact.metadata.get(agent_records.MENDED) is True and not is_of(fact, session)]
        if not mended:
            return ()
        told, shown = self._told_of(conversation), self.ledger.ids(conversation)
        left = [fact for fact in mended if fact.id not in shown]
        met = [(fact, (about - told).intersection((*files_of(fact), _of(fact, "command")))) for fact in left]
        if not any(here for _, here in met) and left and (error := failing(act.lately())) not in told:
            met = [(fact, {error} - {""}) for fact in left if error_of(_of(fact, "error")) == error]
        return [each for each in met if each[1]][:MOST]

    def _told_of(self, conversation: str) -> frozenset[str]:
        told = self._told.get(conversation)
        return self._told.first(conversation, self._before(conversation)) if told is None else told

    def _recall(self, chosen: Sequence[Candidate], view: View, session: str, *, ids: bool) -> Recall:
        for each in chosen:
            dress(each, FULL, self.options.summaries, view.now, self.store.zone, estimate_tokens)
        if ids:
            with self.store.database.read() as connection:
                name_shortly(chosen, connection, view)
        block = render([line(each, FULL) for each in chosen], self.store.key, session, ids=ids)
        return Recall(block, tuple(each.item for each in chosen), str(uuid.uuid4()))


def _of(fact: Fact, name: str) -> str:
    told = fact.metadata.get(name)
    return told if isinstance(told, str) else ""


def _receipt(chosen: Sequence[Candidate], told: Sequence[str], recall: Recall) -> receipts.Body:
    """Return, as JSON values, what was told, and of which file, command or error."""
    candidates = [{"id": each.id, "change_seq": each.fact.change_seq, "verdict": each.verdict, "score": each.score,
                   "legs": {LEG: each.score}} for each in chosen]  # fmt: skip
    return {
        "query": "\n".join(told), receipts.REMINDER: True, "tokens": estimate_tokens(recall.block),
        "candidates": candidates,
    }  # fmt: skip
