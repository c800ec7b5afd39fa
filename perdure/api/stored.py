"""The result of storing a memory, for callers that report it at once."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from perdure.capture.decide import Action, Decision
from perdure.capture.pipeline import confirmed
from perdure.capture.writing import Prepared, Writer, Written
from perdure.errors import InputError, StoreError
from perdure.hooks.types import Channel
from perdure.store import lifecycle, notices
from perdure.store.fact import COLUMNS, Fact
from perdure.store.store import Store
from perdure.store.transaction import Transaction
from perdure.text.clean import clip

VAULT = "perdure vault store SERVICE"
"""The command that keeps a secret."""
SHORT_ID = 8
QUOTED = 120
"""Characters of a memory that a sentence quotes."""


class Outcome(StrEnum):
    """The outcome of storing a statement."""

    STORED = "stored"
    CONFIRMED = "confirmed"
    """It was known; nothing was added."""
    REPLACED = "replaced"
    """It replaced other memories."""
    WITHDREW = "withdrew"
    """It withdrew other memories."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stored(Fact):
    """A memory after it was stored or changed, with the outcome. It compares equal to the `Fact`.

    Attributes:
        outcome: what was done.
        gone: the memories it replaced or withdrew.
        redacted: the kinds of the secrets that were left out of it, such as "password".
        batch: names the change for `Memory.undo`.
    """

    outcome: Outcome = Outcome.STORED
    gone: tuple[Fact, ...] = ()
    redacted: tuple[str, ...] = ()
    batch: str = ""

    def __eq__(self, other: object) -> bool:
        """Return whether the other is the same fact."""
        return isinstance(other, Fact) and all(getattr(self, name) == getattr(other, name) for name in COLUMNS)

    def __hash__(self) -> int:
        """Return the hash of its id."""
        return hash(self.id)

    @property
    def fact(self) -> Fact:
        """The memory alone."""
        return Fact(**{name: getattr(self, name) for name in COLUMNS})

    def told(self, *, quoted: bool = True) -> str:
        """Return the outcome in words.

        Args:
            quoted: whether the words of other memories may be shown.
        """
        gone = ", ".join(_named(fact, quoted) for fact in self.gone)
        undo = f"(undo: perdure undo --batch {self.batch[:SHORT_ID]})"
        waits = "; it is pending review: perdure review" if self.review_state == "pending" else ""
        match self.outcome:
            case Outcome.CONFIRMED:
                return f"Already known; confirmed {_named(self, quoted)}{waits}"
            case Outcome.REPLACED:
                return f"Stored as {self.id[:SHORT_ID]}. Replaced {gone} {undo}{waits}"
            case Outcome.WITHDREW if self.id in {fact.id for fact in self.gone}:
                return f"Nothing new was stored. Withdrew {gone} {undo}"
            case Outcome.WITHDREW:
                return f"Stored as {self.id[:SHORT_ID]}. Withdrew {gone} {undo}{waits}"
        return f"Stored as {self.id[:SHORT_ID]}{waits}."

    @property
    def advice(self) -> str:
        """What was left out, and how to keep it, in words; empty if nothing was."""
        if not self.redacted:
            return ""
        kinds = ", ".join(self.redacted)
        return f"Left out, because memories must not hold secrets: {kinds}. To keep one encrypted in the vault: {VAULT}"


def written(tx: Transaction, writer: Writer, prepared: Prepared, channel: Channel, replaced: str | None) -> Stored:
    """Write a memory that somebody stored on purpose.

    Args:
        tx: the transaction.
        writer: compares it with what is there.
        prepared: the memory.
        channel: where it came from.
        replaced: id of the memory it replaces, without comparing it with others.

    Raises:
        InputError: it was purged.
        StoreError: it could not be written.
    """
    if replaced is not None:
        fact = lifecycle.succeed(tx, replaced, prepared.fact, prepared.vector, "by hand")
        done = Written(fact, Decision(Action.UPDATE, replaced, "by hand"))
    else:
        done = confirmed(tx, writer.write(tx, prepared), channel)
    if not done.fact.id:
        raise InputError("this text was purged and will not be stored again; reword it to store it anyway")
    decision = done.decision
    gone = () if decision.action is Action.NOOP else (decision.target, *decision.twins)
    return stored(done.fact, _OUTCOMES[decision.action], [tx.fact(each) for each in gone if each], tx.batch)


def stored(fact: Fact, outcome: Outcome, gone: Iterable[Fact], batch: str) -> Stored:
    """Return a memory together with the outcome; the arguments are those of `Stored`."""
    values = {name: getattr(fact, name) for name in COLUMNS}
    return Stored(**values, outcome=outcome, gone=tuple(gone), batch=batch)


def redacted(store: Store, done: Stored, kinds: Iterable[str], channel: Channel) -> Stored:
    """Count the secrets left out of a memory; return the memory with them.

    Args:
        store: where it was stored.
        done: what became of it.
        kinds: the kinds of what was left out.
        channel: where it came from. A program may ignore the result, so the log says so as well.
    """
    kinds = tuple(kinds)
    if kinds:
        # The memory is stored, whether it can be counted or not.
        with suppress(StoreError):
            (notices.tell_left_out if channel is Channel.LIBRARY else notices.count_left_out)(store, kinds)
    return replace(done, redacted=kinds)


def _named(fact: Fact, quoted: bool) -> str:
    return f"{fact.id[:SHORT_ID]} '{clip(fact.text, QUOTED)}'" if quoted else fact.id[:SHORT_ID]


_OUTCOMES = {
    Action.ADD: Outcome.STORED,
    Action.NOOP: Outcome.CONFIRMED,
    Action.UPDATE: Outcome.REPLACED,
    Action.DELETE: Outcome.WITHDREW,
}
