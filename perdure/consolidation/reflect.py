"""Reflection: what the memories of some days have in common becomes a memory of its own, linked to its evidence.

Found by counting; a language model, if there is one, adds what counting cannot see. A pattern that is found again is
not stored again: with the same evidence it stays as it is, with more it gets a new version.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING

from perdure.capture.writing import Prepared, Writer
from perdure.errors import InputError, ModelError
from perdure.hooks.types import Channel
from perdure.llm import PATTERNS, Asker
from perdure.ranking.decay import DAY
from perdure.store.fact import Fact, read_facts
from perdure.store.links import link, links_of
from perdure.store.scope import Audience, Scope
from perdure.store.search import View, by_ids, lookup
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, Transaction
from perdure.store.trust import SUPERSEDES
from perdure.text.lexicon import WEEKDAYS, table
from perdure.text.timestamps import day_of
from perdure.text.topics import DISLIKES, LIKES, SPEAKS, Topic, frequent, topics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
LIMIT = 10
"""Patterns of a reflection at the most, the strongest ones."""
RELATED = 0.25
"""Cosine from which on two texts that share a word use it for the same, if there are more that do."""
RELATED_PAIR = 0.35
"""The same, if there are only these two. Both were chosen on LoCoMo's three conversations to tune on: below them,
"balance" is money and leisure, and "family" one's own and that of a stranger."""
ALONE = 3
"""Without vectors a single word needs so many memories: two may use it for different things."""
WEEKS = 3
"""What was spoken of on so many days, all of one weekday, belongs to that weekday."""
QUOTED = 200
"""Characters of a sentence that is told as it was said, at the most."""
Vectors = Mapping[str, "NDArray[np.float32]"]
"""Vectors of length one by id of fact."""
_Seen = tuple[Fact, Topic]
_KINDS = {LIKES: "preference", DISLIKES: "aversion"}
CATEGORY = "pattern"
ENTITY = "pattern"
INSIGHT = "insight"
"""The kind of what a language model has worded."""
IMPORTANCE = 0.9
DAYS, OBSERVATIONS = 14.0, 2
SHORTEST, LONGEST = 20, 500
"""Characters of a pattern that a language model words."""
SAME = 0.85
"""Cosine from which on two patterns of a language model are one."""
MAX_ASKED = 200
"""Facts that a language model is shown at the most, the newest."""
TRUSTED = SUPERSEDES | {Channel.TRANSCRIPT_USER}
"""What came in by these channels may be evidence of what the user does and wants."""
_SYSTEM: str = table("consolidation", "prompts")["reflect"]


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern before it is stored."""

    kind: str  # "topic", "preference", "aversion", "habit" or, of a language model, "insight"
    subject: str  # what it is about, the same whenever it is found again; empty for an insight
    text: str  # in a sentence, without the evidence
    evidence: tuple[Fact, ...]  # the facts it was found in, oldest first


def find(facts: Sequence[Fact], vectors: Vectors, minimum: int = 2, limit: int = LIMIT) -> list[Found]:
    """Return what comes back in facts of at least two days, strongest first."""
    seen: dict[str, list[_Seen]] = defaultdict(list)
    for fact in sorted(facts, key=lambda fact: fact.effective_date):
        for topic in topics(fact.text):
            seen[topic.key].append((fact, topic))
    kept = {key: close for key, all_seen in seen.items() if (close := _coherent(key, all_seen, vectors, minimum))}
    ranked = sorted(_grouped(kept), key=lambda group: (-len(_days(group[1])), -len(group[1]), group[0]))
    told = (_told(keys, seen, kept) for keys, seen in ranked)
    return list(islice((found for found in told if found is not None), limit))


def _coherent(key: str, seen: Sequence[_Seen], vectors: Vectors, minimum: int) -> list[_Seen]:
    """Return the facts that speak of a topic in the same sense; none if they are too few, or of one day."""
    if len(seen) < minimum or all(topic.name for _, topic in seen):
        return []
    if " " not in key:
        known = [item for item in seen if item[0].id in vectors]
        least = RELATED_PAIR if len(known) < ALONE else RELATED
        near = [item for item in known if any(_near(vectors, item[0], other[0], least) for other in known)]
        seen = near if known else (seen if len(seen) >= ALONE else [])
    return list(seen) if len(seen) >= minimum and len(_days(seen)) > 1 else []


def _near(vectors: Vectors, one: Fact, other: Fact, least: float) -> bool:
    # Of another day: what was said in one breath is always near.
    return _day(one) != _day(other) and float(vectors[one.id] @ vectors[other.id]) >= least


def _grouped(kept: Mapping[str, Sequence[_Seen]]) -> list[tuple[list[str], list[_Seen]]]:
    """Return topics of the same facts together. A word that mostly comes in a pair is taken for the pair."""
    evidence = {key: {fact.id: (fact, topic) for fact, topic in seen} for key, seen in kept.items()}
    for key in [key for key in kept if " " not in key]:
        homes = [pair for pair in evidence if " " in pair and key in pair.split()]
        home = max(homes, key=lambda pair: len(evidence[pair].keys() & evidence[key].keys()), default=None)
        if home is not None and 2 * len(evidence[home].keys() & evidence[key].keys()) >= len(evidence[key]):
            evidence[home] = evidence.pop(key) | evidence[home]
    groups: dict[frozenset[str], list[str]] = defaultdict(list)
    for key in sorted(evidence, key=lambda key: (" " not in key, -len(key), key)):
        groups[frozenset(evidence[key])].append(key)
    return [(keys, _in_order(evidence[keys[0]].values())) for keys in groups.values()]


def _in_order(seen: Iterable[_Seen]) -> list[_Seen]:
    return sorted(seen, key=lambda item: (item[0].effective_date, item[0].id))


def _told(keys: Sequence[str], seen: Sequence[_Seen], kept: Mapping[str, Sequence[_Seen]]) -> Found | None:
    """Return what the facts of a topic come to; None if it could only be told without its point."""
    subject = ", ".join(Counter(topic.form for _, topic in kept[key]).most_common(1)[0][0] for key in keys[:3])
    regular = [topic.said for _, topic in seen if frequent(topic.said) and len(topic.said) <= QUOTED]
    weekdays = {date.fromordinal(day).weekday() for day in _days(seen)}
    by_fact = {fact.id: topic for key in keys for fact, topic in kept[key] if topic.way != SPEAKS}
    wishes = list(by_fact.values())
    ways = {topic.way for topic in wishes}
    if len(regular) > 1:
        kind, text = "habit", f'Regularly: "{min(regular, key=len)}"'
    elif len(weekdays) == 1 and len(_days(seen)) >= WEEKS:
        kind, text = "habit", f"Comes up on {WEEKDAYS[weekdays.pop()].title()}s: {subject}"
    elif len(wishes) > 1 and len(ways) == 1 and (said := _common_wish(wishes)):
        kind, text = _KINDS[ways.pop()], f'Says again and again: "{said}"'
    elif len(wishes) > 1 and len(ways) == 1 and 2 * len(wishes) > len(seen):
        return None
    else:
        kind, text = "topic", f"Keeps coming back to {subject}"
    return Found(kind, keys[0], text, tuple(fact for fact, _ in seen))


def _common_wish(wishes: Sequence[Topic]) -> str | None:
    """Return the sentence that says no more than another one says as well: the shortest of those most agree with."""
    support = {
        topic.said: sum(other.wish[: len(topic.wish)] == topic.wish for other in wishes)
        for topic in wishes
        if len(topic.said) <= QUOTED
    }
    best = min(support, key=lambda said: (-support[said], len(said), said), default=None)
    return best if best is not None and support[best] > 1 else None


def _days(seen: Sequence[_Seen]) -> set[int]:
    return {_day(fact) for fact, _ in seen}


def _day(fact: Fact) -> int:
    return day_of(fact.effective_date, fact.zone).toordinal()


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that a reflection found."""

    id: str  # of its fact; empty in a dry run
    kind: str  # "topic", "preference", "aversion", "habit" or "insight"
    text: str  # what the fact says
    evidence: tuple[str, ...]  # ids of the facts it was found in, oldest first
    action: str  # "new", "updated" (there is more evidence) or "known"


@dataclass(frozen=True, slots=True)
class Reflected:
    """What a reflection did: how many facts it looked at, what it found, and what `undo` takes back at once."""

    examined: int
    patterns: tuple[Pattern, ...]
    batch: str


@dataclass(frozen=True, slots=True)
class Window:
    """Which facts are looked at."""

    days: float = DAYS  # said within so many days before now
    minimum: int = OBSERVATIONS  # observations that make a pattern
    limit: int = LIMIT  # patterns at the most

    def __post_init__(self) -> None:
        """Check the values."""
        if not 0 < self.days <= 36_500:
            raise InputError(f"the window is {self.days} days; give more than 0 and at most 36500")
        if self.minimum < 2:
            raise InputError(f"observations is {self.minimum}; a pattern needs at least 2")
        if self.limit < 1:
            raise InputError(f"limit is {self.limit}; give at least 1")


def reflect(
    store: Store,
    home: Scope,
    author: Author,
    writer: Writer,
    window: Window = Window(),
    *,
    llm: Asker | None = None,
    dry_run: bool = False,
    pause: Callable[[], None] = lambda: None,
) -> Reflected:
    """Find the patterns of a scope and keep them there.

    `home`: the scope; facts of other scopes are no evidence, or a pattern would tell of them. `llm`: also looks for
    patterns; None, or if it fails: counting alone.
    """
    now = store.clock.now()
    view = View(Audience(frozenset({home}), home), now, channels=[each.value for each in TRUSTED], approved_only=True)
    facts, blobs = _read(store, view, now - window.days * DAY)
    pause()
    found = find(facts, _vectors(blobs), window.minimum, window.limit)
    if llm is not None and len(facts) >= window.minimum:
        found += _asked(llm, facts[-MAX_ASKED:], window)
    batch = uuid.uuid4().hex
    patterns = []
    for each in found:
        pause()
        [prepared] = writer.prepare([_fact(each, home, author)], now)
        patterns.append(_keep(store, replace(view, channels=None), author, batch, each, prepared, dry_run))
    changed = any(pattern.action != "known" for pattern in patterns)
    return Reflected(len(facts), tuple(patterns), batch if changed and not dry_run else "")


def _read(store: Store, view: View, since: float) -> tuple[list[Fact], dict[str, bytes]]:
    condition, values = view.sql(store.database.dialect)
    space = store.space()
    said = f"{condition} AND facts.category NOT IN ('pattern', 'checkpoint')"
    said += " AND coalesce(facts.source_date, facts.created_at) BETWEEN ? AND ?"
    bound = (*values, since, view.now)
    with store.database.read() as connection:
        order = "ORDER BY coalesce(facts.source_date, facts.created_at), facts.seq"
        facts = read_facts(connection, f"facts WHERE {said} {order}", bound)
        sql = f"SELECT facts.id, v.vector FROM facts JOIN vectors v ON v.fact_id = facts.id WHERE {said}"
        rows = run(connection, f"{sql} AND v.embedding_id = ?", (*bound, space.id)) if space else []
    return facts, dict(rows)


def _vectors(blobs: Mapping[str, bytes]) -> Vectors:
    import numpy as np

    return {fact_id: np.frombuffer(blob, dtype="<f4") for fact_id, blob in blobs.items()}


def _asked(llm: Asker, facts: Sequence[Fact], window: Window) -> list[Found]:
    """Return the patterns that a language model sees; what it does not show evidence for is dropped."""
    notes = "\n".join(f"{number}. {fact.text}" for number, fact in enumerate(facts, 1))
    try:
        answer = llm.ask_json(notes, purpose=PATTERNS, system=_SYSTEM.format(minimum=window.minimum))
    except ModelError:
        return []
    found = []
    for each in answer if isinstance(answer, list) else ():
        text = each.get("pattern") if isinstance(each, dict) else None
        numbers = each.get("evidence") if isinstance(each, dict) else None
        if not isinstance(text, str) or not isinstance(numbers, list) or not SHORTEST <= len(text.strip()) <= LONGEST:
            continue
        cited = {number for number in numbers if isinstance(number, int) and 0 < number <= len(facts)}
        if len(cited) >= window.minimum:
            found.append(Found(INSIGHT, "", text.strip(), tuple(facts[number - 1] for number in sorted(cited))))
    return found[: window.limit]


def _fact(found: Found, home: Scope, author: Author) -> Fact:
    # What a language model has worded is no word of the user's: it is marked as the agent's note.
    worded = found.kind == INSIGHT
    return Fact(
        text=_sentence(found.text, found.evidence),
        category=CATEGORY,
        importance=IMPORTANCE,
        entity=ENTITY,
        key=f"{found.kind} {found.subject}".strip(),
        source="reflection",
        channel=Channel.TOOL_UNASKED if worded else author.channel,
        decay_class="durable",
        tags=("reflection", "pattern"),
        preserve_tags=True,
        scope=home.kind,
        scope_target=home.target,
        extraction_method="reflected",
        metadata={"kind": found.kind, "subject": found.subject},
    )


def _sentence(text: str, evidence: Sequence[Fact]) -> str:
    days = sorted({str(date.fromordinal(_day(fact))) for fact in evidence})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"{text.rstrip('.')} ({len(evidence)} memories, {when})."


def _keep(
    store: Store, view: View, author: Author, batch: str, found: Found, prepared: Prepared, dry_run: bool
) -> Pattern:
    """Store a pattern, give the one that is there more evidence, or leave it; in one transaction."""
    with store.write(author) as tx:
        tx.batch = batch
        known = _known(tx, view, found, prepared)
        before = _evidence(tx, known, view) if known else {}
        evidence = before | {fact.id: fact for fact in found.evidence}
        ordered = sorted(evidence.values(), key=lambda fact: (fact.effective_date, fact.id))
        ids = tuple(fact.id for fact in ordered)
        if known is not None and evidence.keys() == before.keys():
            return Pattern(known.id, found.kind, known.text, ids, "known")
        text, action = _sentence(found.text, ordered), "updated" if known else "new"
        if dry_run:
            return Pattern("", found.kind, text, ids, action)
        # The vector is that of the same words with other numbers behind them.
        added = tx.add(replace(prepared.fact, text=text), prepared.vector)
        if known is not None:
            tx.supersede(known.id, added.id, "more evidence")
        for fact_id in ids:
            link(tx, added.id, fact_id, "DERIVED_FROM")
        return Pattern(added.id, found.kind, added.text, ids, action)


def _known(tx: Transaction, view: View, found: Found, prepared: Prepared) -> Fact | None:
    """Return the pattern that says this already: of the same subject, or with the same evidence, or worded alike.

    Also one that was forgotten: whoever forgot it need not do so again after each reflection.
    """
    wanted = {fact.id for fact in found.evidence}
    for fact in lookup(tx.connection, ENTITY, None, replace(view, everything=True, approved_only=False), limit=10_000):
        # What was counted and what a language model has worded may rest on the same facts and say different things.
        worded = (fact.metadata.get("kind") == INSIGHT) == (found.kind == INSIGHT)
        if fact.category != CATEGORY or fact.superseded_at is not None or not worded:
            continue
        evidence = _evidence(tx, fact, view).keys()
        alike = bool(found.subject) and fact.metadata.get("subject") == found.subject
        if wanted == evidence or (alike and (fact.forgotten_at is None or wanted <= evidence)):
            return fact
    close = [hit.id for hit in prepared.near if hit.cosine >= SAME] if not found.subject else []
    near = by_ids(tx.connection, close, view).values() if close else ()
    return next((fact for fact in near if fact.category == CATEGORY), None)


def _evidence(tx: Transaction, pattern: Fact, view: View) -> dict[str, Fact]:
    ids = [each.target for each in links_of(tx.connection, [pattern.id]) if each.source == pattern.id]
    return by_ids(tx.connection, ids, replace(view, everything=True)) if ids else {}
