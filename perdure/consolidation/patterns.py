"""Patterns found by counting: what memories of different days come back to, what is liked, what is done regularly.

Counting knows words, not what is meant: who likes short answers does not like answers. So what somebody wishes or does
is told in a sentence of theirs, or not at all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from perdure.store.fact import Fact
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
_WEEKDAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern before it is stored.

    Attributes:
        kind: "topic", "preference", "aversion", "habit" or, of a language model, "insight".
        subject: what it is about, the same whenever it is found again; empty for an insight.
        text: in a sentence, without the evidence.
        evidence: the facts it was found in, oldest first.
    """

    kind: str
    subject: str
    text: str
    evidence: tuple[Fact, ...]


Vectors = Mapping[str, "NDArray[np.float32]"]
"""Vectors of length one by id of fact."""
_Seen = tuple[Fact, Topic]
_KINDS = {LIKES: "preference", DISLIKES: "aversion"}


def find(facts: Sequence[Fact], vectors: Vectors, minimum: int = 2, limit: int = LIMIT) -> list[Found]:
    """Return what comes back in facts of at least two days, strongest first.

    Args:
        facts: of one window and one scope.
        vectors: of those facts that have one.
        minimum: observations that make a pattern.
        limit: so many at the most.
    """
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
    weekdays = {datetime.fromtimestamp(fact.effective_date, UTC).weekday() for fact, _ in seen}
    by_fact = {fact.id: topic for key in keys for fact, topic in kept[key] if topic.way != SPEAKS}
    wishes = list(by_fact.values())
    ways = {topic.way for topic in wishes}
    if len(regular) > 1:
        kind, text = "habit", f'Regularly: "{min(regular, key=len)}"'
    elif len(weekdays) == 1 and len(_days(seen)) >= WEEKS:
        kind, text = "habit", f"Comes up on {_WEEKDAYS[weekdays.pop()]}: {subject}"
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
    return int(fact.effective_date // 86_400)
