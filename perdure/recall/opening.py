"""What an agent knows before the first word: chosen by kind, and by how often such a memory is needed.

Most needs are never put into words: no search finds an allergy for "what shall I cook tonight?". So what is needed
often whatever is asked, as far as its text tells, is put in front of a whole session.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from perdure.embed.base import Vector
from perdure.errors import ModelError
from perdure.hooks.types import Opening, OpeningItem
from perdure.ranking.decay import OF_SESSION
from perdure.ranking.fuse import fit
from perdure.recall.block import dress, line, render
from perdure.recall.options import MINIMAL, RecallOptions
from perdure.recall.retrievers import token_counter
from perdure.recall.turn import Candidate, VectorLeg
from perdure.recall.unasked import facts_of, matching, standing, trusted, written
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View, by_ids, by_phrases, counted, newest
from perdure.store.store import Store
from perdure.store.trust import AGENTS_NOTE, AUTO_RECALLED
from perdure.text.clean import clip
from perdure.text.escape import escape
from perdure.text.lexicon import table
from perdure.text.timestamps import day_of
from perdure.text.when import said_times

FILE: Final = Path(__file__).with_name("data") / "need.json"
LOOKED_AT: Final = 256
"""Memories that are looked at, those that are needed most often; more fit into no opening."""
RULES: Final = 40
"""Standing instructions at the most."""
AHEAD: Final = 21
"""Days, today among them: what stands on one of them comes up as a date."""
TOPICS, TOPIC_CHARS = 5, 24
"""Topics of what is left out that the last line names, and characters of each."""
RULE, PERSON, PROJECT, DATE = GROUPS = ("rule", "person", "project", "date")
"""Why a memory is in an opening, in the order in which they stand there."""


@dataclass(frozen=True, slots=True)
class Opener:
    """Makes the block that a session begins with."""

    store: Store
    options: RecallOptions
    tokens: int  # of the block at most; 0: standing instructions alone, within the options' own limit
    vector_leg: Callable[[], VectorLeg | None]

    def opening(self, audience: Audience, session: str | None) -> Opening | None:
        """Return what a session should begin with, or None where there is nothing to say.

        Raises StoreError if the store cannot be read.
        """
        view = View(audience, self.store.clock.now(), channels=AUTO_RECALLED, approved_only=True)
        count = token_counter(self.vector_leg())
        with self.store.database.reading():
            choices = self._choices(view)
            known = self.store.database.query(counted, trusted(view))
        for each in choices:
            dress(each, MINIMAL, self.options.summaries, view.now, self.store.zone, count)
        tokens = self.tokens or self.options.max_tokens
        places = fit([count(_line(each)) + 1 for each in choices], tokens, len(choices))
        chosen = [choices[place] for place in places]
        # What the frame takes is known only when it is written, with the line of what is left out.
        while chosen:
            there = {each.id for each in chosen}
            more = _more(known - len(chosen), [each.fact for each in choices if each.id not in there])
            shown = sorted(chosen, key=lambda each: GROUPS.index(each.leg))
            block = self._block(shown, session, more)
            if (size := count(block)) <= tokens:
                items = tuple(OpeningItem(each.id, each.fact.text, each.leg) for each in shown)
                return Opening(block, items, size, more, str(uuid.uuid4()), self.options.placement)
            chosen.pop()
        return None

    def _choices(self, view: View) -> list[Candidate]:
        """Return what may stand in the block, what matters most first: all but directives by the user or reviewed."""
        said = trusted(view)
        with self.store.database.read() as connection:
            ruled = [
                *(fact for each in matching(self.options.directives, frozenset(), "", True)
                  for fact in facts_of(connection, each, view)),
                *(standing(connection, said, RULES if self.tokens else self.options.profile_limit)
                  if self.options.profile != "off" else ()),
            ]  # fmt: skip
        found = {fact.id: Candidate(fact, RULE) for fact in ruled}
        if self.tokens:
            soon = self._soon(said)
            found |= {fact.id: Candidate(fact, DATE) for fact in soon if fact.id not in found}
            found |= {fact.id: Candidate(fact, _why(fact)) for fact in self._needed(said) if fact.id not in found}
        return [each for each in found.values() if each.fact.decay_class != OF_SESSION]

    def _soon(self, view: View) -> list[Fact]:
        """Return what stands on a day of the next weeks, the soonest first."""
        today = day_of(view.now, self.store.zone)
        with self.store.database.read() as connection:
            days = [today + timedelta(days=each) for each in range(AHEAD)]
            facts = by_phrases(connection, [form for day in days for form in written(day)], view, LOOKED_AT)
        dated_ones = [(day, fact) for fact in facts if (day := _ahead(fact, today)) is not None]
        return [fact for _, fact in sorted(dated_ones, key=lambda each: each[0])]

    def _needed(self, view: View) -> list[Fact]:
        """Return memories, those that are needed most often first; without vectors the newest."""
        leg = self.vector_leg()
        with self.store.database.read() as connection:
            if leg is None or leg.gate is None:
                return newest(connection, view, LOOKED_AT)
            ids = leg.index.survey(need()[None], view, LOOKED_AT).ids
            found = by_ids(connection, ids, view)
            # What has no vector yet is what was said last.
            fresh = [fact for fact in newest(connection, view, RULES) if fact.id not in found]
        return [*(found[fact_id] for fact_id in ids if fact_id in found), *fresh]

    def _block(self, shown: Sequence[Candidate], session: str | None, more: str = "") -> str:
        return render([*map(_line, shown), *filter(None, (more,))], self.store.key, session)


def _line(each: Candidate) -> str:
    """Return a memory as a line of the block, shorter than that of a turn: there are many of them."""
    noted = ", agent's note" if each.fact.channel in AGENTS_NOTE else ""
    return f"[{each.leg}{noted}] {line(each, MINIMAL).removeprefix('- ')}"


def _why(fact: Fact) -> str:
    return PROJECT if fact.scope == "project" or fact.category == "decision" else PERSON


def _ahead(fact: Fact, today: date) -> date | None:
    """Return the first day of the next weeks on which a memory stands, if there is one.

    A date without a year is that of the coming year, whenever it was said.
    """
    named = [said.period for said in said_times(fact.text, today) if not said.relative]
    days = [period.first for period in named if period.first == period.last]
    return min((day for day in days if 0 <= (day - today).days < AHEAD), default=None)


def _more(count: int, left: Sequence[Fact]) -> str:
    """Return the line that says what else is known; empty: nothing is."""
    if count <= 0:
        return ""
    topics = Counter(tag for fact in left for tag in fact.tags)
    found = [
        (escape(clip(" ".join(topic.split()), TOPIC_CHARS)), number) for topic, number in topics.most_common(TOPICS)
    ]
    named = ", ".join(f"{topic} {number}" for topic, number in found)
    line: str = table("recall", "prompts")["more"].format(count=f"{count} more" + (f": {named}" if named else ""))
    return line


@cache
def need() -> Vector:
    """Return the direction, of length one, in which the vectors of memories lie that are needed often.

    Fitted by training/need.py on the vectors of the shipped encoder; those of another mean nothing to it.
    """
    import numpy as np

    try:
        return np.array(json.loads(FILE.read_text(encoding="utf-8"))["weights"], dtype=np.float32)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"{FILE} cannot be used ({type(error).__name__}: {error}); reinstall perdure") from error


def receipt_of(opening: Opening, project: str | None) -> dict[str, Any]:
    """Return, as JSON values, which memories a session began with, and why."""
    candidates = [{"id": item.id, "change_seq": None, "verdict": "injected", "score": 1.0, "legs": {item.why: 1.0}}
                  for item in opening.items]  # fmt: skip
    return {
        "query": "(the session begins)",
        "opening": project or "",
        "tokens": opening.tokens,
        "candidates": candidates,
    }
