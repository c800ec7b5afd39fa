"""Memories that come up whatever a search finds: the standing profile, directives, what is on a named day, links."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, tzinfo
from functools import cache
from typing import Final

from perdure.recall.aliases import bridging
from perdure.recall.options import DATES, DIRECTIVE, LINKS, PROFILE, Directive
from perdure.recall.turn import Candidate, Passage, Turn
from perdure.recent import Recent
from perdure.regex import lazy
from perdure.store.fact import SELECT, Fact, folded_slot, from_row, is_single_valued
from perdure.store.links import related
from perdure.store.search import View, by_ids, by_phrases, by_words, lexical, lookup
from perdure.store.sql import Connection, dialect, marks, run
from perdure.store.transaction import REFLECTED
from perdure.store.trust import SUPERSEDES
from perdure.text.lexicon import table
from perdure.text.normalise import fold, fts_text, match_query, match_terms
from perdure.text.timestamps import day_of
from perdure.text.when import Period, days_ahead, month_names, periods

SESSIONS = 256
"""Sessions whose profile is kept, those used last."""
_POOL = 1_000
"""Conventions, and instructions by their words, are ranked among so many of the newest."""
_SPARE = 8
"""So many times the limit is ranked, because of several in one slot only the first is taken."""
USER = "user"
CONVENTION = "convention"
_INSTRUCTING = ("preference", "decision")
_LASTING = ("permanent", "durable", "stable")
_RANK = (
    "facts.pinned DESC, facts.access_count + facts.reinforced_count DESC, facts.confidence DESC,"
    " facts.importance DESC, coalesce(facts.source_date, facts.created_at) DESC, facts.seq DESC"
)


@cache
def _worded() -> str:
    """Return the full-text query for what is worded as a standing instruction."""
    return f"category : ({_any_of(_INSTRUCTING)}) AND text : ({_any_of(_phrases())})"


@cache
def _instruction() -> re.Pattern[str]:
    # By how words begin, for the index compares stems.
    return re.compile(rf"\b(?:{'|'.join(re.escape(fold(phrase)) for phrase in _phrases())})")


def _phrases() -> list[str]:
    """Return what a standing instruction is worded with."""
    found = table("recall", "words")["standing"]["phrases"].replace("\n", ",").split(",")
    return [phrase.strip() for phrase in found if phrase.strip()]


def _any_of(phrases: Sequence[str]) -> str:
    return match_query(fts_text(phrase).strip() for phrase in phrases)


def standing(connection: Connection, view: View, limit: int) -> list[Fact]:
    """Return the standing profile: what was pinned, then standing instructions, what is used most first.

    A standing instruction is a preference or decision that is worded as one ("always", "never", "prefer"),
    or whose entity is "convention", and that lasts. What may not speak for the user is left out, pinned or not.

    `limit`: facts at the most; one for each slot that holds one value.
    """
    words = dialect(connection)
    condition, values = trusted(view).sql(words)
    lasting = f"{condition} AND facts.category IN ({marks(_INSTRUCTING)}) AND facts.decay_class IN ({marks(_LASTING)})"
    source, match = by_words(connection, _worded())
    lasting_values = (*values, *_INSTRUCTING, *_LASTING)
    # The indexes are named because without statistics SQLite goes by the one that tells least: what is superseded.
    sql = (
        "SELECT facts.id, facts.entity, facts.key FROM facts WHERE facts.seq IN ("
        f"SELECT facts.seq FROM facts {words.by_index('facts_pinned')} WHERE facts.pinned = 1 AND {condition}"
        f" UNION ALL SELECT * FROM (SELECT facts.seq FROM facts {words.by_index('facts_entity')}"
        f" WHERE facts.entity_folded = ? AND {lasting} ORDER BY facts.seq DESC LIMIT ?) AS kept"
        f" UNION ALL SELECT * FROM (SELECT facts.seq FROM {source} AND {lasting}"
        " ORDER BY facts_fts.rowid DESC LIMIT ?) AS worded"
        f") ORDER BY {_RANK} LIMIT ?"
    )
    conventions, worded = (CONVENTION, *lasting_values, _POOL), (*match, *lasting_values, _POOL)
    rows = run(connection, sql, (*values, *conventions, *worded, _SPARE * max(0, limit)))
    slots = {fact_id: _slot(fact_id, entity, key) for fact_id, entity, key in rows}
    first: dict[object, str] = {}
    for fact_id, slot in slots.items():
        first.setdefault(slot, fact_id)
    return reread(connection, list(first.values())[: max(0, limit)], view)


def instructs(memory: Fact | Passage) -> bool:
    """Return whether a memory is pinned or worded as a standing instruction; no passage is."""
    if not isinstance(memory, Fact) or memory.pinned:
        return isinstance(memory, Fact)
    lasting = memory.category in _INSTRUCTING and memory.decay_class in _LASTING
    return lasting and (folded_slot(memory.entity) == CONVENTION or bool(_instruction().search(fold(memory.text))))


def reread(connection: Connection, ids: Sequence[str], view: View) -> list[Fact]:
    """Return those of a profile's facts that may still be seen, in the profile's order."""
    found = by_ids(connection, ids, trusted(view))
    return [found[fact_id] for fact_id in ids if fact_id in found]


class Profile:
    """Keeps the profile of a session as it was chosen first, so that prompts go on beginning alike.

    Ids are kept, no texts: `reread` leaves out at once what was superseded, forgotten or purged. Usable from any
    thread.
    """

    def __init__(self, sessions: int = SESSIONS) -> None:
        """Keep the profiles of so many sessions, those used last."""
        self._kept: Recent[str, tuple[str, ...]] = Recent(sessions)

    def for_session(self, session: str | None, choose: Callable[[], list[Fact]]) -> tuple[str, ...]:
        """Return the ids of the profile of a session, to be read with `reread`.

        `session`: names the conversation and who takes part in it; None: nothing is kept.
        """
        known = None if session is None else self._kept.get(session)
        if known is not None:
            return known
        # The store is read without a lock: a slow reader holds up no other session.
        chosen = tuple(fact.id for fact in choose())
        return chosen if session is None else self._kept.first(session, chosen)

    def renew(self, session: str) -> None:
        """Have the profile of a session chosen anew: after a compaction, prompts begin differently anyway."""
        self._kept.drop(session)

    def kept(self, turn: Turn) -> Sequence[Candidate]:
        """Find what is kept in mind whatever is asked."""
        options, view = turn.options, turn.view
        if options.profile == "off" or turn.narrowed:
            return []
        with turn.read() as reader:
            ids = self.for_session(
                f"{view.audience.home}\0{turn.session}" if turn.session else None,
                lambda: [
                    fact
                    for fact in standing(reader, view, options.profile_limit)
                    if fact.pinned or options.profile == "standing"
                ],
            )
            return [Candidate(fact, PROFILE, 1.0) for fact in reread(reader, ids, view)]


def trusted(view: View) -> View:
    """Return what of a view the user said or has reviewed."""
    channels = SUPERSEDES if view.channels is None else SUPERSEDES & frozenset(view.channels)
    return replace(view, channels=sorted(channels), approved_only=True)


def _slot(fact_id: str, entity: str | None, key: str | None) -> object:
    """Return what two facts cannot both fill; most that is said of a user can stand beside other things."""
    if not entity or not key or (folded_slot(entity) == USER and not is_single_valued(key)):
        return fact_id
    return folded_slot(entity), folded_slot(key)


_MOST = 4
"""Directives that one prompt may set off."""
_FACTS = 3
_ENDINGS = ("", "s", "es", "d", "ed", "ing")
_WORD = lazy(r"\w+")


def matching(
    directives: Iterable[Directive], prompt_terms: frozenset[str], text: str, first_turn: bool
) -> list[Directive]:
    """Return the directives that a prompt sets off: the first four of them, in their order."""
    spaced = _spaced(text)
    found = [
        rule
        for rule in dict.fromkeys(directives)
        if (rule.session_start and first_turn)
        or any(_mentioned(phrase, prompt_terms, spaced) for phrase in _triggers(rule))
    ]
    return found[:_MOST]


def facts_of(connection: Connection, directive: Directive, view: View, limit: int = _FACTS) -> list[Fact]:
    """Return what a directive brings up, best first."""
    if directive.tag is not None:
        return _tagged(connection, replace(view, tag=directive.tag), limit)
    if directive.entity is not None:
        return lookup(connection, directive.entity, None, view, limit)
    words = " ".join(filter(None, (directive.keyword, directive.task, *directive.task_words)))
    return [hit.fact for hit in lexical(connection, words, view, limit).hits]


def _triggers(rule: Directive) -> list[str]:
    return [phrase for phrase in (rule.entity, rule.keyword, rule.task, *rule.task_words) if phrase]


def _mentioned(phrase: str, terms: frozenset[str], spaced: str) -> bool:
    words = _spaced(phrase)
    if words.strip() and words in spaced:
        return True
    word = fold(phrase).strip()
    # A single word is also met in its other forms: "deploy" in "deployed".
    return match_terms(phrase) == (word,) and any(word + ending in terms for ending in _ENDINGS)


def _spaced(text: str) -> str:
    """Return the words of a text between spaces, so that no word is found inside of another one."""
    return f" {' '.join(_WORD.findall(fts_text(text)))} "


def _tagged(connection: Connection, view: View, limit: int) -> list[Fact]:
    condition, values = view.sql(dialect(connection))
    sql = (
        f"SELECT {SELECT} FROM facts {dialect(connection).by_index('facts_tags')}"
        f" WHERE facts.tags <> '' AND {condition}"
        " ORDER BY facts.pinned DESC, facts.importance DESC, facts.seq DESC LIMIT ?"
    )
    return [from_row(row) for row in run(connection, sql, (*values, limit))]


_AHEAD: Final = 14
"""Days after today, for which a prompt is held against what stands there."""
_MOST_DATED: Final = 3
_DATED_READ: Final = 20


def colliding(connection: Connection, prompt: str, view: View, zone: tzinfo | None) -> list[Fact]:
    """Return the memories that name a day of the next two weeks which the prompt names too, the latest first.

    A memory must say the date: day and month, with or without a year. A weekday alone would collide every week.
    """
    days = days_ahead(prompt, day_of(view.now, zone), _AHEAD)
    if not days:
        return []
    facts = by_phrases(connection, [form for day in days for form in written(day)], view, _DATED_READ)
    # On the day itself a date without a year is that day; one with another year is not.
    return [fact for fact in facts if any(Period(day, day) in periods(fact.text, day) for day in days)][:_MOST_DATED]


def written(day: date) -> Iterator[str]:
    """Yield how a date is written, as the full-text index cuts it into words."""
    yield f"{day:%Y %m %d}"
    yield f"{day:%d %m %Y}"
    yield f"{day.day} {day.month} {day.year}"
    for number in (str(day.day), f"{day.day}{_ending(day.day)}"):
        for name in _MONTHS[day.month - 1]:
            yield from (f"{number} {name}", f"{number} of {name}", f"{number} de {name}", f"{name} {number}")


def named_days(days: Sequence[date]) -> str:
    """Return the full-text query for what may name one of these days, at a fraction of what all its forms would cost.

    A month stands in it by its name, and the number of a day; or month and year in figures.
    """
    months = list(dict.fromkeys((day.year, day.month) for day in days))
    names = match_query(name for _, month in months for name in _MONTHS[month - 1])
    numbers = match_query(form for day in days for form in (str(day.day), f"{day.day}{_ending(day.day)}"))
    figures = match_query(
        form for year, month in months for number in {f"{month}", f"{month:02}"}
        for form in (f"{year} {number}", f"{number} {year}")
    )  # fmt: skip
    return f"({names}) AND ({numbers}) OR {figures}"


def _ending(number: int) -> str:
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number // 10 != 1 else 0, "th")


_MONTHS: Final = month_names()
"""The names of each month."""


NO_EVIDENCE: Final = "no evidence"
"""The verdict on those that did not pass."""
_LINKED = 3
_LINK_SHARE = 0.5
"""So many facts that links lead to come up, each with this share of the score for every step."""
_NOT_FOLLOWED = frozenset({"SUPERSEDES", "CONTRADICTS", "CORRECTS"})


def directed(turn: Turn) -> list[Candidate]:
    """Find what the prompt's directives bring up, whatever a search finds."""
    wanted = matching(turn.options.directives, frozenset(turn.query.terms), turn.query.text, turn.first)
    if not wanted or turn.view.tag is not None:
        return []
    with turn.read() as reader:
        facts = {fact.id: fact for each in wanted for fact in facts_of(reader, each, turn.view)}
    return [Candidate(fact, DIRECTIVE, 1.0) for fact in facts.values()]


def dated(turn: Turn) -> list[Candidate]:
    """Find what stands on a day that the prompt names."""
    if turn.narrowed:
        return []
    with turn.read() as reader:
        found = colliding(reader, turn.query.text, turn.view, turn.store.zone)
    return [Candidate(fact, DATES) for fact in found]


def linked(turn: Turn) -> list[Candidate]:
    """Find facts that links lead to from those that come up."""
    if not turn.ranked or not turn.options.link_depth or turn.view.tag is not None:
        return []
    seeds = {each.id: each.score for each in turn.ranked}
    with turn.read() as reader:
        reached = related(reader, seeds, turn.view, turn.options.link_depth)
    # A pattern quotes what it is linked with, and is about no one memory of it.
    memories = (*(each.memory for each in turn.ranked), *(each.fact for each in reached))
    patterns = {each.id for each in memories if isinstance(each, Fact) and each.extraction_method == REFLECTED}
    best = max(seeds.values())
    found = [
        Candidate(each.fact, LINKS, best * each.link.strength * _LINK_SHARE**each.depth)
        for each in reached
        if each.link.type not in _NOT_FOLLOWED
        and patterns.isdisjoint((each.link.source, each.link.target))
        and (each.fact.id not in turn.found or turn.found[each.fact.id].verdict == NO_EVIDENCE)
    ]
    return sorted(found, key=lambda each: (-each.score, each.id))[:_LINKED]


def bridging_names(turn: Turn) -> list[Candidate]:
    """Find what links the names in a prompt with those in what answers it, where only these are."""
    ids = bridging((each.memory.text for each in (*turn.ranked, *turn.passages)), turn.query.aliases)
    if not ids:
        return []
    with turn.read() as reader:
        return [Candidate(fact, LINKS) for fact in by_ids(reader, ids, turn.view).values()]
