"""What an agent knows before the first word: chosen by kind, and by how often such a memory is needed.

Most needs are never put into words: no search finds an allergy for "what shall I cook tonight?". So what is needed
often whatever is asked, as far as its text tells, is put in front of a whole session.
"""

from __future__ import annotations

import json
import math
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from perdure.embed.base import Vector
from perdure.errors import ModelError
from perdure.hooks.types import Channel, Opening, OpeningItem
from perdure.index.vector_index import Surveyor, all_cosines
from perdure.ranking.decay import OF_SESSION
from perdure.recall.block import IN_OPENING, already_told, day, dress, line, name_shortly, render
from perdure.recall.options import MINIMAL, RecallOptions
from perdure.recall.retrievers import token_counter
from perdure.recall.topics import TOPICS, plainly, topics
from perdure.recall.turn import Beside, Candidate, CountTokens, VectorLeg
from perdure.recall.unasked import facts_of, matching, named_days, standing, trusted
from perdure.regex import lazy
from perdure.store.agent_records import KIND, WORK, last_at, of_last_session
from perdure.store.fact import Fact
from perdure.store.receipts import OPENING
from perdure.store.scope import Audience
from perdure.store.search import View, by_ids, by_words, counted, newest, of_projects, seen, told_in
from perdure.store.short_ids import SHORTEST
from perdure.store.sql import Connection
from perdure.store.store import Store
from perdure.store.trust import AGENTS_NOTE, AUTO_RECALLED
from perdure.text.clean import clip
from perdure.text.escape import escape
from perdure.text.lexicon import table
from perdure.text.sameness import said
from perdure.text.timestamps import day_of
from perdure.text.when import said_times

FILE: Final = Path(__file__).with_name("data") / "need.json"
LOOKED_AT: Final = 128
"""Memories that are looked at, those that are needed most often: several times as many as fit into an opening."""
_LEAST, _FREE = 130, 2_000
"""Tokens that an opening may have however much the user's own memory files hold, and tokens of these that cost it
nothing."""
_COMPARED: Final = 64
"""Memories that are compared with these files: more than an opening has room for."""
RULES: Final = 40
"""Standing instructions at the most."""
AHEAD, LOOKED_AHEAD = 21, 120
"""Days, today among them: what stands on one of the first comes up as a date, on a later one it counts more."""
BEFORE_ITS_DAY, IN_ITS_PROJECT, LEAST = 0.8, 1.5, 0.05
"""What is added to the need of a memory whose day is today, and falls to nothing; what one of a project is multiplied
by in it; and the need of what is never needed. No labels tell these."""
PASSED: Final = 24
"""So many memories that do not fit are passed over; then there is no room left."""
_KEPT: Final = 2_048
"""Texts whose days are at hand: openings come back to many of the same memories."""
RECENT: Final = 90 * 86_400.0
"""After so many seconds half of what recency brings is gone."""
_ANY_NAME: Final = "a" * SHORTEST
_FIGURE = lazy(r"[0-9]")
NAMED, TOPIC_CHARS = 5, 24
"""Topics of what is left out that the last line names, and characters of each."""
RULE, PERSON, PROJECT, DATE, SESSION = GROUPS = ("rule", "person", "project", "date", "session")
"""Why a memory is in an opening, in the order in which they stand there."""
OF_PROJECTS: Final = ("project", "tools")


@dataclass(frozen=True, slots=True)
class About:
    """What a memory is about."""

    topic: str  # the likeliest of `TOPICS`; empty: nothing tells it
    private: bool  # whether it goes to no host at work but to that in which it was told
    need: float = 1.0  # how often it is needed; the mean is 1


@dataclass(frozen=True, slots=True)
class Choices:
    """What may stand in an opening."""

    ranked: Sequence[Candidate]  # what matters most first
    about: Mapping[str, About]  # by their ids
    known: int  # how many there are for this host, as far as was looked

    def without(self, ids: Collection[str]) -> Choices:
        """Return the choices without some of them."""
        left = [each for each in self.ranked if each.id not in ids]
        return replace(self, ranked=left, known=self.known - len(ids))


@dataclass(frozen=True, slots=True)
class Opener:
    """Makes the block that a session begins with."""

    store: Store
    options: RecallOptions
    tokens: int  # of the block at most
    vector_leg: Callable[[], VectorLeg | None]
    index: Callable[[], Surveyor | None]  # of the vectors that the shipped encoder has made, be it loaded or not
    # The host that is not told what is private but for what was told in it or pinned; "": others listen, and nothing
    # private is told; None: all is.
    outside: str | None = None
    ids: bool = False  # whether each memory has its short id behind it

    def opening(
        self, audience: Audience, session: str | None, beside: Beside | None = None, *, compacted: bool = False
    ) -> Opening | None:
        """Return what a session should begin with, or None where there is nothing to say `beside` what is there.

        `compacted`: its model no longer sees all that was said in it. Else what was said in it is left out.

        Raises StoreError if the store cannot be read.
        """
        view = self._view(audience)
        count = token_counter(self.vector_leg())
        with self.store.database.reading():
            choices = self._choices(view, session)
        room = self.tokens
        if session is not None and not compacted:
            here = {each.id for each in choices.ranked if each.fact.provenance_session == session}
            choices = choices.without(here)
        if beside is not None:
            told = already_told(beside, choices.ranked[:_COMPARED], IN_OPENING)
            choices = choices.without(told)
            room = min(room, max(_LEAST, room - max(0, beside.tokens - _FREE)))
        chosen, again = self._fitting(choices.ranked, room, view, count)
        choices = choices.without(again)
        self._name(chosen, view)
        # What the last line takes is known only when it is written.
        while chosen:
            more = _more(choices.known - len(chosen), self._topics(choices, {each.id for each in chosen}))
            shown = sorted(chosen, key=lambda each: GROUPS.index(each.leg))
            found = self._opening(shown, session, more, count)
            if found.tokens <= room:
                return found
            chosen.pop()
        return None

    def renewed(
        self, opening: Opening, audience: Audience, session: str | None, beside: Beside | None = None
    ) -> Opening | None:
        """Return an opening as it may be seen now: without what was forgotten, replaced or purged since.

        Raises StoreError if the store cannot be read.
        """
        view = self._view(audience)
        found = self.store.database.query(by_ids, [item.id for item in opening.items], view)
        # What is kept of the session before grows while that goes on elsewhere; the bytes stay, as caches go by them.
        if all(
            item.id in found and (item.why == SESSION or item.text == found[item.id].text) for item in opening.items
        ):
            return opening
        left = [Candidate(found[item.id], item.why) for item in opening.items if item.id in found]
        count = token_counter(self.vector_leg())
        self._name(left, view)
        if beside is not None:
            already_told(beside, left, IN_OPENING)
        for each in left:
            self._dress(each, view, count)
        now = self._opening(left, session, opening.more, count)
        return replace(now, receipt_id=opening.receipt_id) if left else None

    def _view(self, audience: Audience) -> View:
        return View(audience, self.store.clock.now(), channels=AUTO_RECALLED, approved_only=True)

    def _name(self, some: Sequence[Candidate], view: View) -> None:
        if self.ids:
            with self.store.database.read() as connection:
                name_shortly(some, connection, view)

    def _dress(self, each: Candidate, view: View, count: CountTokens) -> None:
        dress(each, MINIMAL, self.options.summaries, view.now, self.store.zone, count)
        if each.leg == SESSION and each.fact.metadata.get(KIND) == WORK:
            each.mark = "; ".join(filter(None, (day(last_at(each.fact), self.store.zone), each.mark)))

    def _fitting(
        self, ranked: Iterable[Candidate], room: int, view: View, count: CountTokens
    ) -> tuple[list[Candidate], set[str]]:
        """Return what fits beside the frame, and the ids of what only says it again.

        A memory that does not fit is passed over: shorter ones may.
        """
        chosen, left, passed = [], room - count(render([], self.store.key, None, ids=self.ids)), 0
        told: set[Sequence[str]] = set()
        again: set[str] = set()
        for each in ranked:
            if passed == PASSED:
                break
            if (words := said(each.fact.text)) in told:
                again.add(each.id)
                continue
            self._dress(each, view, count)
            # Those that are chosen get theirs; to find one takes longer than all the rest.
            each.name = _ANY_NAME if self.ids else ""
            # No word has less than a token, and to count tokens takes longer.
            if len(each.text.split()) <= left and (cost := count(_line(each)) + 1) <= left:
                chosen.append(each)
                told.add(words)
                left -= cost
            else:
                passed += 1
        return chosen, again

    def _opening(self, shown: Sequence[Candidate], session: str | None, more: str, count: CountTokens) -> Opening:
        block = render([*map(_line, shown), *filter(None, (more,))], self.store.key, session, ids=self.ids)
        items = tuple(OpeningItem(each.id, each.fact.text, each.leg) for each in shown)
        return Opening(block, items, count(block), more, str(uuid.uuid4()), self.options.placement)

    def _topics(self, choices: Choices, shown: Collection[str]) -> Counter[str]:
        """Count what does not stand in the block by its tags, or else its topic; a private one is not named outside."""
        rest = [each.fact for each in choices.ranked if each.id not in shown and each.id in choices.about]
        left = [(fact, choices.about[fact.id]) for fact in rest]
        named = [(fact, about) for fact, about in left if self.outside is None or not about.private]
        return Counter(name for fact, about in named for name in (_tags(fact) or (about.topic,)) if name)

    def _choices(self, view: View, session: str | None) -> Choices:
        """Return what may stand in the block, what matters most first: all but directives by the user or reviewed."""
        own, today = trusted(view), day_of(view.now, self.store.zone)
        with self.store.database.read() as connection:
            ruled = [
                *(fact for each in matching(self.options.directives, frozenset(), "", True)
                  for fact in facts_of(connection, each, view)),
                *(standing(connection, own, RULES) if self.options.profile != "off" else ()),
            ]  # fmt: skip
            needed, known = self._needed(connection, own)
            dated = _soon(connection, own, today) if known > LOOKED_AT else []
            # Agents do their work for one alone, which is nothing for others who listen.
            before = of_last_session(connection, view, session) if self.outside != "" else []
            done = {fact.id: Candidate(fact, SESSION) for fact in before}
        rules = {fact.id: place for place, fact in enumerate(ruled)}
        facts = {fact.id: fact for fact in (*ruled, *needed, *dated) if fact.decay_class != OF_SESSION}
        facts = {name: fact for name, fact in facts.items() if name not in done}
        about = self._about(facts, rules)
        withheld = self._withheld(facts, about)
        places = [((0.5, float(place)), each) for place, each in enumerate(done.values())]
        for fact in facts.values():
            days, told = _ahead(fact, today), about[fact.id]
            if fact.id in rules:
                place, why = (0.0, float(rules[fact.id])), RULE
            elif days is not None and days < AHEAD:
                place, why = (1.0, float(days)), DATE
            else:
                place, why = (2.0, -_worth(fact, told.need, days, view.now)), _why(fact, told.topic)
            if fact.id not in withheld:
                places.append((place, Candidate(fact, why)))
        places.sort(key=lambda each: each[0])
        known = (known if known > LOOKED_AT else len(facts)) + len(done)
        return Choices([each for _, each in places], about, known - len(withheld))

    def _needed(self, connection: Connection, view: View) -> tuple[list[Fact], int]:
        """Return memories and how many there are: those that are needed most often, without vectors the newest."""
        index = self.index()
        # Of a project less is known, and all of it may matter.
        here = of_projects(connection, view, RULES)
        if index is None:
            return [*newest(connection, view, LOOKED_AT), *here], counted(connection, view)
        # Where much is withheld, what is needed most would leave little.
        where = need().direction if self.outside is None else _unit(need().direction + topics().at_work)
        survey = index.survey(where[None], view, LOOKED_AT)
        found = by_ids(connection, survey.ids, view)
        # What has no vector yet is what was said last.
        fresh = newest(connection, view, RULES)
        return [*(found[fact_id] for fact_id in survey.ids if fact_id in found), *fresh, *here], survey.texts

    def _about(self, facts: Mapping[str, Fact], rules: Collection[str]) -> dict[str, About]:
        """Return what each memory is about, as its vector tells; without one, as far as it is plain."""
        import numpy as np

        plain = {name: plainly(fact, standing=name in rules) for name, fact in facts.items()}
        found = {name: About(topic, private=not topic) for name, topic in plain.items()}
        reading, often, space = topics(), need(), self.store.space()
        # The vectors are there also where no model is loaded, as in a hook that finds no helper.
        if not found or space is None or space.description.get("digest") != reading.encoder:
            return found
        queries = np.vstack([often.weights, reading.weights])
        told = all_cosines(self.store.database, queries, found, space.id)
        products = np.array(list(told.values()), dtype=np.float32).reshape(len(told), len(queries))
        chances = reading.chances(products[:, 1:])
        needs = often.base + products[:, 0] + chances @ often.topics
        withheld = reading.withheld(chances, np.array([bool(plain[name]) for name in told], dtype=bool))
        rows = zip(chances.argmax(1).tolist(), withheld.tolist(), needs.tolist(), strict=True)
        return found | {name: About(TOPICS[topic], *rest) for name, (topic, *rest) in zip(told, rows, strict=True)}

    def _withheld(self, facts: Mapping[str, Fact], about: Mapping[str, About]) -> set[str]:
        """Return the ids of what is private and goes nowhere but where it was told."""
        if self.outside is None:
            return set()
        private = {name for name, told in about.items() if told.private and not (self.outside and facts[name].pinned)}
        return private - self.store.database.query(told_in, private, self.outside)


def _line(each: Candidate) -> str:
    """Return a memory as a line of the block: shorter than in a turn, as there are many."""
    kind = each.leg if each.leg in (RULE, SESSION) else ""
    label = ", ".join(filter(None, (kind, "agent's note" * (each.fact.channel in AGENTS_NOTE))))
    written = line(each, MINIMAL)
    return f"[{label}] {written.removeprefix('- ')}" if label else written


def _tags(fact: Fact) -> Sequence[str]:
    """Return the tags that the user gave: those that a model gives may hold what a page says."""
    return fact.tags if fact.channel in (Channel.USER, Channel.CLI, Channel.LIBRARY) else ()


def _why(fact: Fact, topic: str) -> str:
    if topic == RULE:
        return RULE
    return PROJECT if fact.scope == "project" or fact.category == "decision" or topic in OF_PROJECTS else PERSON


def _worth(fact: Fact, often: float, days: int | None, now: float) -> float:
    """Return how much a memory is worth its place: how often it is needed, more before its day and where it is used."""
    soon = BEFORE_ITS_DAY * (1 - days / LOOKED_AHEAD) if days is not None else 0.0
    here = IN_ITS_PROJECT if fact.scope == "project" else 1.0
    used = 1 + 0.1 * math.log1p(max(0, fact.access_count + fact.reinforced_count))
    recent = 0.8 + 0.2 * 2 ** -(max(0.0, now - fact.effective_date) / RECENT)
    return max(often + soon, LEAST) * here * used * recent


def _soon(connection: Connection, view: View, today: date) -> list[Fact]:
    """Return memories that may name a day of the next weeks, the latest first."""
    source, match = by_words(connection, named_days([today + timedelta(days=each) for each in range(AHEAD)]))
    return seen(connection, view, source, match, "ORDER BY facts.seq DESC LIMIT ?", (LOOKED_AT,))


def _ahead(fact: Fact, today: date) -> int | None:
    """Return how many days it is to the first day to come that a memory names, if there is one soon enough.

    A date without a year is that of the coming year, whenever it was said.
    """
    # No date is without a figure, and to look for one takes longer.
    days = _days(fact.text, today) if _FIGURE.search(fact.text) else ()
    return min((each for each in days if 0 <= each < LOOKED_AHEAD), default=None)


@lru_cache(maxsize=_KEPT)
def _days(text: str, today: date) -> tuple[int, ...]:
    """Return how many days it is to each day that a text names."""
    named = [said.period for said in said_times(text, today) if not said.relative]
    return tuple((period.first - today).days for period in named if period.first == period.last)


def _more(count: int, counts: Counter[str]) -> str:
    """Return the line that says how much else is known, and of what; empty: nothing is."""
    if count <= 0:
        return ""
    found = [(escape(clip(" ".join(name.split()), TOPIC_CHARS)), number) for name, number in counts.most_common(NAMED)]
    named = ", ".join(f"{name} {number}" for name, number in found)
    line: str = table("recall", "prompts")["more"].format(count=f"{count} more" + (f": {named}" if named else ""))
    return line


def _unit(vector: Vector) -> Vector:
    import numpy as np

    unit: Vector = vector / np.linalg.norm(vector)
    return unit


@dataclass(frozen=True, slots=True)
class Need:
    """How often a memory is needed, by its vector and its topic; the mean is 1."""

    base: float
    weights: Vector  # of the vector
    topics: Vector  # of the probability of each topic

    @property
    def direction(self) -> Vector:
        """Where the vectors of memories lie that are needed often, of length one."""
        return _unit(self.weights)


@cache
def need() -> Need:
    """Return what training/need.py has fitted on vectors of the shipped encoder; those of another mean nothing to it.

    Raises ModelError if its file cannot be used.
    """
    import numpy as np

    try:
        told = json.loads(FILE.read_text(encoding="utf-8"))
        by_topic = [told["topics"][topic] for topic in TOPICS]
        weights, of_topics = (np.array(each, dtype=np.float32) for each in (told["weights"], by_topic))
        return Need(float(told["base"]), weights, of_topics)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"{FILE} cannot be used ({type(error).__name__}: {error}); reinstall perdure") from error


def receipt_of(opening: Opening, projects: str) -> dict[str, Any]:
    """Return, as JSON values, which memories a session began with in some projects, and why."""
    candidates = [{"id": item.id, "change_seq": None, "verdict": "injected", "score": 1.0, "legs": {item.why: 1.0}}
                  for item in opening.items]  # fmt: skip
    return {
        "query": "(the session begins)",
        OPENING: projects,
        "tokens": opening.tokens,
        "candidates": candidates,
    }
