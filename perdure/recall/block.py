"""The text that the model sees: of one thing the newest first, and what it has overtaken says so."""

from __future__ import annotations

import datetime as dt
import re
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from perdure.recall import options
from perdure.recall.turn import Beside, Candidate, CountTokens
from perdure.recall.unasked import instructs
from perdure.regex import lazy
from perdure.store.fact import Fact, Summaries, folded_slot, is_single_valued
from perdure.store.links import links_of
from perdure.store.search import View, by_ids, named_shortly
from perdure.store.sql import Connection
from perdure.store.trust import AGENTS_NOTE, strength
from perdure.text.clean import clip
from perdure.text.escape import escape
from perdure.text.fence import fence
from perdure.text.lexicon import table
from perdure.text.timestamps import day_of

HEADER: str = table("recall", "prompts")["header"]
IDS: str = table("recall", "prompts")["ids"]
OPENING: str = table("recall", "prompts")["opening"]
SHORT_TOKENS = 12
"""Up to so many tokens a memory stands in an index in full: its first words would cost as much."""
FIRST_WORDS = 8
FIRST_CHARS = 60
"""How much of a longer one stands there at the most; the characters are for scripts without spaces."""

# In the formats that put nothing of ours in front, a text could begin its line as a turn, a heading or a line of ours.
_MARKER = lazy(
    r"\s*(?:[#\[]|[\W_]*(?:system|developer|user|human|assistant|model|tool|instructions?)[\W_]*[:\uff1a])",
    re.IGNORECASE,
)


def age(said: float, now: float, zone: dt.tzinfo | None = None) -> str:
    """Return how long ago something was said, with the day: "3 weeks ago, 2026-10-31".

    Days are those of the reader's zone, as for passages of conversations, so that the words change once a day, at the
    same moment for all memories and in all processes.

    `said`: epoch seconds, any number; `now`: epoch seconds.
    """
    try:
        then, today = day_of(said, zone), day_of(now, zone)
    except (ValueError, OverflowError, OSError):
        return ""
    days = (today - then).days
    months = (today.year - then.year) * 12 + today.month - then.month - (today.day < then.day)
    if days <= 0:
        return ""
    if days == 1:
        ago = "yesterday"
    elif days < 14:
        ago = f"{days} days ago"
    elif months < 2:
        ago = f"{days // 7} weeks ago"
    elif months < 24:
        ago = f"{months} months ago"
    else:
        ago = f"{months // 12} years ago"
    return f"{ago}, {then.isoformat()}"


def day(said: float, zone: dt.tzinfo | None = None) -> str:
    """Return the day of a time, epoch seconds: "2026-10-31"; empty for a time that no calendar has."""
    try:
        return day_of(said, zone).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def dress(
    each: Candidate, form: str, summaries: Summaries, now: float, zone: dt.tzinfo | None, count: CountTokens
) -> None:
    """Write how a memory stands in the block: its text, or a part of it, its category, and how old it is."""
    memory, pinned = each.memory, False
    if isinstance(memory, Fact):
        each.text, pinned = summaries.shown(memory), memory.pinned
        each.category = f"{memory.category}, agent's note" if memory.channel in AGENTS_NOTE else memory.category
        each.note = "" if form == options.MINIMAL else age(_told_at(memory), now, zone)
    else:
        each.text, each.category = memory.text, memory.about  # its day stands in front of it
    if form == options.PROGRESSIVE and not pinned:
        each.text, each.note = indexed(memory.text, count) or (each.text, each.note)


def indexed(text: str, count: CountTokens) -> tuple[str, str] | None:
    """Return the first words of a text and how long it is; None: it is so short that it stands there in full."""
    whole = " ".join(text.split())
    start = clip(" ".join(whole.split()[:FIRST_WORDS]), FIRST_CHARS)
    tokens = 0 if start == whole else count(text)
    return (f"{start} …", f"{tokens} tokens") if tokens > SHORT_TOKENS else None


def line(each: Candidate, form: str, number: int = 1) -> str:
    """Return a memory as a line of the block: escaped, on one line.

    `number`: its place in the block, from 1 on.
    """
    written = _written(each, form, number)
    # Behind all else, so that every format begins as its readers know it; and last, so that no text can name another.
    return f"{written} #{each.name}" if each.name else written


def _written(each: Candidate, form: str, number: int) -> str:
    text, mark, category = map(escape, (each.text, each.mark, each.category))
    # What is earlier is told by its day: its age would say the same again.
    noted = "; ".join(filter(None, ["" if mark.startswith("earlier") else each.note, mark]))
    marked = f"{text} ({mark})" if mark else text
    noted = f"{text} ({noted})" if noted else text
    match form:
        case options.MINIMAL:
            return _behind_dash(marked)
        case options.SHORT:
            return _behind_dash(f"{category}: {noted}")
        case options.PROGRESSIVE:
            return f"{number}. [{category}] {noted}"
        case _:
            return f"[{each.leg}/{category}] {noted}"


def render(lines: Sequence[str], key: bytes, session: str | None, form: str = "full", *, ids: bool = False) -> str:
    """Return the fenced block of these lines; `ids`: whether memories have theirs behind them."""
    header = " ".join([HEADER, *[OPENING] * (form == options.PROGRESSIVE), *[IDS] * ids])
    return fence("\n".join([header, *lines]), key, session)


def _behind_dash(written: str) -> str:
    return f"- {written}" if _MARKER.match(written) else written


Stale = Callable[[Fact, Fact], str]
"""Returns the words of an older fact that a newer one makes out of date; empty: it cannot be told which."""
MAX_STALE = 80
"""Characters that are quoted of what is out of date."""


@dataclass(frozen=True, slots=True)
class Overtaken:
    """A fact that may come up, and what is newer than it."""

    older: str  # its id
    newer: Fact  # says otherwise of the same, or of a part of it
    part: bool  # whether the rest of the older one still holds


def overtaken(connection: Connection, facts: Iterable[Fact], view: View) -> list[Overtaken]:
    """Return which of these facts newer ones correct in part, or contradict. Only what the view shows counts."""
    there = {fact.id: fact for fact in facts}
    links = [each for each in links_of(connection, there) if each.type in ("CORRECTS", "CONTRADICTS")]
    seen = {**by_ids(connection, {each.source for each in links}, view), **there}
    found = []
    for each in links:
        if each.target in there and each.source in seen:
            older, newer = there[each.target], seen[each.source]
            if _told_at(older) <= _told_at(newer) and strength(older.channel) <= strength(newer.channel):
                found.append(Overtaken(older.id, newer, each.type == "CORRECTS"))
    return found + _by_slot(there.values())


def _by_slot(facts: Iterable[Fact]) -> list[Overtaken]:
    slots: dict[Hashable, list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.entity and fact.key and fact.value and is_single_valued(fact.key):
            slots[folded_slot(fact.entity), folded_slot(fact.key)].append(fact)
    found = []
    for group in slots.values():
        newest = max(group, key=lambda fact: (strength(fact.channel), _told_at(fact), fact.change_seq))
        found += [
            Overtaken(fact.id, newest, part=False)
            for fact in group
            if _told_at(fact) <= _told_at(newest) and folded_slot(fact.value) != folded_slot(newest.value)
        ]
    return found


def _told_at(fact: Fact) -> float:
    """Return when a fact came to say what it says: what was changed by hand keeps its dates, and is news."""
    return fact.since if fact.since > fact.created_at else fact.effective_date


def in_order(ids: Sequence[str], found: Iterable[Overtaken]) -> list[str]:
    """Return ids in their order, but each that was overtaken behind what is newer; what is not among them joins.

    `ids`: best first.
    """
    newer: dict[str, list[Fact]] = defaultdict(list)
    for each in found:
        newer[each.older].append(each.newer)
    order: dict[str, None] = {}

    def put(fact_id: str, above: frozenset[str]) -> None:
        for each in sorted(newer[fact_id], key=lambda fact: -_told_at(fact)):
            if each.id not in above and each.id not in order:
                put(each.id, above | {fact_id})
        order[fact_id] = None

    for fact_id in ids:
        if fact_id not in order:
            put(fact_id, frozenset())
    return list(order)


def marks(
    facts: Mapping[str, Fact], found: Iterable[Overtaken], stale: Stale, zone: dt.tzinfo | None
) -> dict[str, str]:
    """Return what is said of each overtaken fact in the block: that it is earlier, or what of it is out of date."""
    said: dict[str, str] = {}
    for each in sorted(found, key=lambda one: (one.part, _told_at(one.newer))):
        older = facts[each.older]
        words = stale(older, each.newer)[:MAX_STALE] if each.part else ""
        earlier = f"earlier, {day(_told_at(older), zone)}".rstrip(", ")
        mark = f'out of date: "{words}"' if words else "may be out of date" if each.part else earlier
        before = said.get(each.older)
        said[each.older] = mark if before in (None, mark) else before if before == earlier else f"{before}; {mark}"
    return said


def name_shortly(some: Iterable[Candidate], connection: Connection, view: View) -> None:
    """Give facts the short ids by which their reader's tools find them."""
    facts = {each.id: each for each in some if isinstance(each.memory, Fact)}
    for fact_id, name in named_shortly(connection, facts, view).items():
        facts[fact_id].name = name


IN_TURN, IN_OPENING = 0.02, 0.04
"""Seconds of the processor that comparing memories with the host's own files may take."""


def already_told(beside: Beside, some: Iterable[Candidate], within: float = IN_TURN) -> dict[str, str]:
    """Return which memories the model sees in any case, with the verdict on each; mark those that say otherwise.

    `within`: seconds; after them nothing more is compared, and what is left is shown as it is.
    """
    # By the thread's own time: how busy the machine is changes nothing of what is shown.
    told, until = {}, time.thread_time() + within
    for each in some:
        if time.thread_time() >= until:
            break
        remark = beside.otherwise(each.fact, until) if isinstance(each.memory, Fact) else ""
        if remark:
            each.mark = "; ".join(filter(None, (each.mark, remark)))
        elif name := (beside.own if instructs(each.memory) else beside).says(each.memory.text, until):
            told[each.id] = f"{name} already says it"
    return told


def newest_first(some: Sequence[Candidate]) -> list[Candidate]:
    """Return memories as they are written: the profile and answers first, then the newest facts.

    What the agent noted by itself stands below what others have said.

    How well they fit decides which facts come; of two that say otherwise of one thing, the newer has the first word,
    also where nothing shows that they do.
    """
    said = [isinstance(each.memory, Fact) and each.leg not in (options.PROFILE, options.ABOUT) for each in some]
    facts = [each for each, is_said in zip(some, said, strict=True) if is_said]
    newest = iter(sorted(facts, key=lambda each: (each.fact.channel in AGENTS_NOTE, -_told_at(each.fact))))
    return [next(newest) if is_said else each for each, is_said in zip(some, said, strict=True)]
