"""What memory answers to questions about itself: chosen by what they ask for, whatever a judge would say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Final

from perdure.index.vector_index import all_cosines
from perdure.ranking.decay import OF_SESSION
from perdure.recall.about import OWN, TRIED, About
from perdure.recall.kinds import Kind, speaks_of_the_asker
from perdure.recall.opening import AHEAD, LOOKED_AT, need
from perdure.recall.options import ABOUT
from perdure.recall.past_failures import is_of
from perdure.recall.turn import Candidate, MissingError, Turn
from perdure.recall.unasked import USER
from perdure.regex import lazy
from perdure.store.agent_records import METHOD, of_last_session
from perdure.store.fact import Fact, folded_slot
from perdure.store.scope import OWNERS
from perdure.store.search import View, by_ids, by_phrases, forgotten, lexical, lookup, newest, seen
from perdure.store.sql import Connection, marks
from perdure.store.trust import AGENTS_NOTE
from perdure.text.clean import clip
from perdure.text.lexicon import filled, listed, table, word_set
from perdure.text.normalise import fold, fts_text, match_terms
from perdure.text.pluralize import counted
from perdure.text.timestamps import day_of, midnight
from perdure.text.when import Period, month_names, planned, since, to_come

_LATELY: Final = 7
"""Days that "lately" means."""
_NEWEST: Final = 4
"""Of where the work stopped, so many of the newest come before what is open."""
_HALF: Final = 0.5
"""The share of a topic's words from which on a memory is about it."""
_WHOLE: Final = 0.99
_MOST_WORDS: Final = 4
"""Words of a name at the most."""
_A_YEAR: Final = 366
_BEFORE: Final = 80
"""Characters that are quoted of what a memory took the place of."""
_INTRODUCING = ("name", "job", "employer", "location")
_OF_WORK = ("resume", TRIED)
"""The questions that what an agent did is an answer to."""
_OPEN = listed("recall", "about", "open")
_NAME = lazy(r"[\w'-]+")
_Answer = Callable[[Turn, Connection, About], Iterable[Fact | Candidate]]


def answers(turn: Turn) -> Sequence[Candidate]:
    """Find what answers a question about memory itself, what matters most first.

    Raises MissingError, which says so in the receipt, where nothing does.
    """
    about = turn.query.about
    if about is None or turn.narrowed:
        return []
    asked = turn if about.what in _OF_WORK else replace(turn, view=replace(turn.view, without=METHOD))
    with turn.read() as reader:
        found = [
            each if isinstance(each, Candidate) else Candidate(each)
            for each in _ANSWERS[about.what](asked, reader, about)
        ]
    left_out = (_elsewhere, is_of)
    kept = {each.id: each for each in found if not any(ruled(each.fact, turn.session) for ruled in left_out)}
    if not kept:
        raise MissingError(table("recall", "about")["answers"][about.what])
    for each in kept.values():
        each.leg, each.score = ABOUT, 1.0
    return list(kept.values())


def is_all(about: About) -> bool:
    """Return whether memory alone tells what is asked for, so that what is merely like the question is no answer."""
    return not about.topic and about.what in ("me", "resume", "changed", "dates")


def _elsewhere(fact: Fact, session: str | None) -> bool:
    return fact.decay_class == OF_SESSION and fact.provenance_session not in (None, session)


def _person(turn: Turn, reader: Connection, about: About) -> Iterable[Fact]:
    facts = _needed(turn, reader)
    personal = [fact for fact in facts if _is_personal(fact) and fact.channel not in AGENTS_NOTE] or facts
    # Who somebody is comes before what is needed of them, and that before what is needed of others.
    return sorted(personal, key=_distance)


def _needed(turn: Turn, reader: Connection) -> list[Fact]:
    """Return memories, those that are needed most often first; without the shipped model the newest."""
    fresh = newest(reader, turn.view, LOOKED_AT)
    if turn.leg is None or turn.leg.gate is None:
        return fresh
    ids = turn.leg.index.survey(need().direction[None], turn.view, LOOKED_AT).ids
    found = by_ids(reader, ids, turn.view)
    # What has no vector yet is what was said last.
    return [*(found[fact_id] for fact_id in ids if fact_id in found), *(each for each in fresh if each.id not in found)]


def _is_personal(fact: Fact) -> bool:
    return fact.scope != "project" and fact.category != "decision"


def _distance(fact: Fact) -> int:
    """Return how far a memory is from telling who the user is."""
    introduces = folded_slot(fact.entity) == USER and folded_slot(fact.key) in _INTRODUCING
    return 0 if introduces else 1 if speaks_of_the_asker(fact.text) else 2


def _own(turn: Turn, reader: Connection, about: About) -> Iterable[Fact]:
    own = table("recall", "about")["own"][about.attribute]
    for key in own["keys"].split():
        if facts := lookup(reader, USER, key, turn.view):
            return facts
    mine = Kind((), own=True)
    return [fact for fact in _worded(turn, reader, own["said"]) if mine.may_have(fact.text)]


def _resumed(turn: Turn, reader: Connection, about: About) -> Iterable[Fact]:
    view = turn.view
    facts = newest(reader, view, LOOKED_AT)
    if about.topic:
        return _on_topic(turn, reader, about.topic, facts)
    # Of what agents did, the session before alone.
    facts = newest(reader, replace(view, without=METHOD), LOOKED_AT)
    # Who sees all projects has none at hand.
    here = [fact for fact in facts if fact.scope == "project"] if view.audience != OWNERS else []
    facts = here or facts
    today = day_of(view.now, turn.store.zone)
    last = today + timedelta(days=AHEAD)
    soon = [fact for fact in facts if any(each.first < last for each in planned(fact.text, today))]
    unfinished = [fact for fact in facts if _OPEN.search(fold(fact.text))]
    return [*of_last_session(reader, view, turn.session), *facts[:_NEWEST], *unfinished, *soon, *facts]


def _decided(turn: Turn, reader: Connection, about: About) -> Iterable[Fact]:
    filed = _newest_of(turn.view, reader, "facts.category = 'decision'")
    others = _worded(turn, reader, table("recall", "about")["answers"]["decides"])
    decisions = [*filed, *(fact for fact in others if fact not in filed)]
    if about.topic:
        # What was decided need not say so.
        return _on_topic(turn, reader, about.topic, decisions) or _saying(turn, reader, about.topic)
    here = [fact for fact in decisions if fact.scope == "project"] if turn.view.audience != OWNERS else []
    return here or decisions


def _tried(turn: Turn, reader: Connection, about: About) -> Iterable[Fact]:
    notes = _newest_of(turn.view, reader, f"facts.channel IN ({marks(AGENTS_NOTE)})", *AGENTS_NOTE)
    return _on_topic(turn, reader, about.topic, notes) if about.topic else notes


def _worded(turn: Turn, reader: Connection, phrases: str) -> list[Fact]:
    """Return the memories that hold one of some phrases, with commas between them, the latest first."""
    return by_phrases(reader, [fts_text(phrase).strip() for phrase in phrases.split(",")], turn.view, LOOKED_AT)


def _newest_of(view: View, reader: Connection, condition: str, *values: object) -> list[Fact]:
    """Return the memories of which a condition holds, those that were stored last first."""
    return seen(reader, view, f"facts WHERE {condition}", values, "ORDER BY facts.seq DESC LIMIT ?", (LOOKED_AT,))


def _on_topic(turn: Turn, reader: Connection, topic: str, among: Sequence[Fact]) -> list[Fact]:
    """Return which of some memories are about a topic, by its words or by what is meant: the former first."""
    covered = _covered(turn, reader, topic)
    near = _near(turn, among)
    worded = [fact for fact in among if covered.get(fact.id, 0.0) >= _HALF]
    return [*worded, *(fact for fact in among if fact.id in near and fact not in worded)]


def _saying(turn: Turn, reader: Connection, topic: str) -> list[Fact]:
    """Return the memories that say all words of a topic, the newest first."""
    covered = _covered(turn, reader, topic)
    found = by_ids(reader, [fact_id for fact_id, share in covered.items() if share >= _WHOLE], turn.view)
    return sorted(found.values(), key=lambda fact: -fact.effective_date)


def _covered(turn: Turn, reader: Connection, topic: str) -> Mapping[str, float]:
    return {hit.fact.id: hit.coverage for hit in lexical(reader, topic, turn.view, LOOKED_AT).hits}


def _near(turn: Turn, among: Sequence[Fact]) -> set[str]:
    """Return the ids of those of some memories that the prompt means, by how far they stand out from the others."""
    if turn.leg is None or turn.vector is None:
        return set()
    vector, space = turn.vector
    cosines = all_cosines(turn.store.database, vector[None, :], [fact.id for fact in among], space)
    told = {fact_id: turn.leg.calibration.common(cosine) for fact_id, (cosine,) in cosines.items()}
    floor = turn.leg.calibration.floor(sorted(told.values(), reverse=True))
    return {fact_id for fact_id, cosine in told.items() if cosine >= floor}


def _changed(turn: Turn, reader: Connection, about: About) -> Iterable[Candidate]:
    zone, view = turn.store.zone, turn.view
    today = day_of(view.now, zone)
    day = since(about.when, today) if about.when else None
    begin = midnight(today - timedelta(days=_LATELY) if day is None else day, zone)
    if gone := forgotten(reader, view, begin):
        turn.notes.append(table("recall", "about")["answers"]["forgotten"].format(count=counted(gone, "memory")))
    former = _newest_of(replace(view, include_superseded=True), reader, "facts.superseded_at >= ?", begin)
    replaced = {fact.superseded_by: fact for fact in former if fact.superseded_by}
    stored = _newest_of(view, reader, "(facts.created_at >= ? OR facts.valid_from >= ?)", begin, begin)
    withdrawn = [Candidate(fact, mark="withdrawn") for fact in former if not fact.superseded_by]
    return [*(_with_former(fact, replaced.get(fact.id)) for fact in stored), *withdrawn]


def _with_former(fact: Fact, former: Fact | None) -> Candidate:
    return Candidate(fact, mark=f'before: "{clip(former.text, _BEFORE)}"' if former else "")


def _named(turn: Turn, reader: Connection, about: About) -> list[Fact]:
    """Return what stands under a name."""
    name = _bare(about.topic)
    return lookup(reader, name, None, turn.view, LOOKED_AT) if name else []


def _bare(name: str) -> str:
    """Return a name without what stands in front of one, or nothing if it is too long for one."""
    words = [word for word in name.split() if word not in _listed("articles") | _listed("possessives")]
    return " ".join(words) if len(words) <= _MOST_WORDS else ""


def _listed(name: str) -> frozenset[str]:
    return word_set(table("recall", "about")["answers"][name])


def _who(turn: Turn, reader: Connection, about: About) -> Iterable[Fact]:
    name = _bare(about.topic)
    if not match_terms(name):
        return []
    kept = _named(turn, reader, about)
    whose = about.topic.split()[0] in _listed("possessives")
    facts = by_phrases(reader, [fts_text(about.topic if whose else name).strip()], turn.view, LOOKED_AT)
    introduces = re.compile(filled(table("recall", "about")["answers"]["introduces"], {"name": re.escape(name)}))
    found = {fact.id: fact for fact in (*kept, *(each for each in facts if whose or _is_name(name, each.text)))}
    return sorted(found.values(), key=lambda fact: not introduces.search(fold(fact.text)))


def _is_name(name: str, text: str) -> bool:
    """Return whether a text has something as a name: written large, or in a script that knows no capitals."""
    first = name.split()[0]
    written = [word for word in _NAME.findall(text) if fold(word).removesuffix("'s") == first]
    return any(word[0].isupper() for word in written) or not (
        first[0].isascii() or first[0].lower() != first[0].upper()
    )


def _about_topic(turn: Turn, reader: Connection, about: About) -> Iterable[Fact]:
    return [*_named(turn, reader, about), *(_saying(turn, reader, about.topic) if match_terms(about.topic) else ())]


def _dated(turn: Turn, reader: Connection, about: About) -> Iterable[Fact]:
    today = day_of(turn.view.now, turn.store.zone)
    period = to_come(about.when, today) if about.when else Period(today, today + timedelta(days=AHEAD - 1))
    if period is None:
        return []
    facts = by_phrases(reader, _months(period), turn.view, LOOKED_AT)
    days = {fact.id: [each for each in planned(fact.text, period.first) if each.first <= period.last] for fact in facts}
    found = [fact for fact in facts if any(each.last >= period.first for each in days[fact.id])]
    return sorted(found, key=lambda fact: min(each.first for each in days[fact.id] if each.last >= period.first))


def _months(period: Period) -> list[str]:
    """Return how a memory may write the months of some days, as the full-text index cuts it into words."""
    months = {(day.year, day.month): day for day in _first_days(period)}
    return [
        phrase
        for year, month in months
        for phrase in (*month_names()[month - 1], f"{year} {month:02}", f"{month:02} {year}", f"{month} {year}")
    ]


def _first_days(period: Period) -> list[date]:
    length = min((period.last - period.first).days, _A_YEAR)
    return [period.first + timedelta(days=step) for step in (*range(0, length, 27), length)]


_ANSWERS: Mapping[str, _Answer] = {
    "me": _person, OWN: _own, "resume": _resumed, "decided": _decided, "changed": _changed, "who": _who,
    "named": _named, "topic": _about_topic, "dates": _dated, TRIED: _tried,
}  # fmt: skip
