"""What an audit can prove against a memory: that another says the same, or that by its own words it is over.

It guesses nothing, and of what must not be lost it proposes nothing, proof or not: see `data/lasting.toml`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from perdure.capture.lifetimes import lifetime
from perdure.secrets.redact import redact
from perdure.store import receipts
from perdure.store.fact import Fact, folded_slot
from perdure.store.search import View, by_ids
from perdure.store.store import Store
from perdure.store.trust import ON_PURPOSE, strength
from perdure.text.lexicon import table
from perdure.text.normalise import fold
from perdure.text.sameness import details, plain_words, said
from perdure.text.when import periods

KINDS = ("duplicate", "echo", "past")
"""What an audit finds, in the order in which it is shown."""
SHOWN_CHARACTERS = 120
RECEIPTS = 64
"""So many receipts of a conversation are looked at, the newest."""
SHORT_ID = 8


@dataclass(frozen=True, slots=True)
class Suspect:
    """A memory that may go."""

    id: str  # of the memory
    kind: str  # one of `KINDS`
    text: str  # its beginning, redacted
    evidence: str  # what proves it
    other_id: str | None = None  # the memory that says the same and stays


class Desk:
    """What the checks of one audit need to know, and the memories that passed them, by what they say."""

    def __init__(self, store: Store, view: View) -> None:
        """Start an audit of what is seen in a view."""
        self.store = store
        self.view = view
        self.alike: dict[Hashable, list[Fact]] = defaultdict(list)
        self._shown: dict[str, Mapping[str, tuple[str, float]]] = {}

    def remember(self, fact: Fact) -> None:
        """Keep a memory for the comparison."""
        slot = folded_slot(fact.entity), folded_slot(fact.key), folded_slot(fact.value)
        self.alike[fact.scope, fact.scope_target, said(fact.text), slot].append(fact)

    def shown(self, session: str) -> Mapping[str, tuple[str, float]]:
        """Return which memories a conversation was shown: by id, the receipt that first tells so, and its time."""
        if session not in self._shown:
            told = self.store.database.query(receipts.of_session, session, str(self.view.audience.home), 0.0, RECEIPTS)
            self._shown[session] = {
                each["id"]: (receipt.id, receipt.at)
                for receipt in told
                for each in receipt.body.get("candidates", ())
                if each["verdict"] == "injected"
            }
        return self._shown[session]


def _echo(desk: Desk, fact: Fact) -> Suspect | None:
    captured = (fact.extraction_method or "").startswith("rule:")
    if not captured or fact.provenance_session is None or _was_asked_for(fact) or _must_stay(fact):
        return None
    before = {
        shown_id: receipt
        for shown_id, (receipt, at) in desk.shown(fact.provenance_session).items()
        if shown_id != fact.id and at < fact.created_at
    }
    known = desk.store.database.query(by_ids, before, desk.view) if before else {}
    for other in known.values():
        if other.created_at < fact.created_at and _stands_for(other, fact) and _says_the_same(other, fact):
            evidence = f"turn {before[other.id][:SHORT_ID]} had shown {other.id[:SHORT_ID]}, which says the same thing"
            return _suspect(fact, "echo", evidence, other.id)
    return None


def _past(desk: Desk, fact: Fact) -> Suspect | None:
    told = lifetime(fact.text, max(fact.effective_date, fact.last_confirmed_at or 0.0), fact.key)
    end = fact.valid_until or (told.freeze_until if told.words else None)
    if end is None or end > desk.view.now or _was_asked_for(fact) or _must_stay(fact, dated=False):
        return None
    day = dt.datetime.fromtimestamp(end, dt.UTC).date()
    return _suspect(fact, "past", f'"{told.words}" has passed' if told.words else f"it was valid until {day}")


def duplicates(desk: Desk) -> Iterator[Suspect]:
    """Yield what says to the letter the same as another, of the same scope and slot, that stays."""
    for facts in desk.alike.values():
        best = max(facts, key=_worth)
        for fact in facts:
            if fact is not best and _stands_for(best, fact) and not _must_stay(fact):
                yield _suspect(fact, "duplicate", f"{best.id[:SHORT_ID]} says the same thing and stays", best.id)


def _stands_for(other: Fact, fact: Fact) -> bool:
    """Return whether a memory comes up wherever another one did, on a word that is as good."""
    return other.review_state == "approved" and strength(other.channel) >= strength(fact.channel)


def _says_the_same(one: Fact, other: Fact) -> bool:
    return details(one.text) == details(other.text) and plain_words(one.text) == plain_words(other.text)


def _was_asked_for(fact: Fact) -> bool:
    return fact.extraction_method in ("explicit", "rule:remember") or fact.channel in ON_PURPOSE


def _must_stay(fact: Fact, *, dated: bool = True) -> bool:
    """Return whether a memory is of a kind that is never proposed; if `dated`, also for a day that it names."""
    text = " ".join(filter(None, (fact.text, fact.entity, fact.key)))
    if fact.pinned or _lasting().search(fold(text)):
        return True
    day = dt.datetime.fromtimestamp(fact.effective_date, dt.UTC).date()
    return dated and (details(fact.text).relative or bool(periods(fact.text, day)))


@cache
def _lasting() -> re.Pattern[str]:
    words = (word for listed in table("consolidation", "lasting").values() for word in listed.split())
    either = "|".join(re.escape(word).replace(r"\*", r"\w*").replace("_", r"\W+") for word in words)
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)")


def _worth(fact: Fact) -> tuple[bool, int, bool, int, float, int]:
    """Return what decides which of several equals stays: the greatest."""
    approved = fact.review_state == "approved"
    return approved, strength(fact.channel), fact.pinned, fact.access_count, -fact.created_at, -fact.change_seq


def _suspect(fact: Fact, kind: str, evidence: str, other: str | None = None) -> Suspect:
    return Suspect(fact.id, kind, redact(fact.text).text[:SHOWN_CHARACTERS], evidence, other)


CHECKS: tuple[Callable[[Desk, Fact], Suspect | None], ...] = (_echo, _past)
"""Checks of one memory; the first that finds something counts."""
