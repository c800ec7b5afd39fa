"""What an order to forget means, among the memories of who gave it, and what becomes of it.

Nothing is forgotten on a guess: what is meant has the order's matter in its slot or words, is of the same person, and
is alone in that, unless all of it is to go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perdure.capture.language import language_of
from perdure.capture.reading import stems
from perdure.speech.forgetting import Order, meanings, relatives, topics
from perdure.store import lifecycle
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View, every, lookup, said_at
from perdure.store.sql import Connection
from perdure.store.transaction import Transaction
from perdure.text.normalise import fold, match_terms
from perdure.text.pluralize import counted
from perdure.text.sameness import others

SHARE = 3
"""A memory is meant that has one of so many words of an order."""
NEAR = 5
"""Letters that two words must begin with alike, to be forms of one word; fewer if they are shorter."""


@dataclass(frozen=True, slots=True)
class Meant:
    """What an order to forget means."""

    order: Order
    clear: tuple[Fact, ...]  # what it means beyond doubt
    several: tuple[Fact, ...] = ()  # one of which it means


def meant(
    connection: Connection,
    order: Order,
    audience: Audience,
    now: float,
    since: float | None = None,
    session: str | None = None,
) -> Meant:
    """Return what an order means among the memories that its speaker has.

    `since`: when what the user said just before was said, epoch seconds; None: that is unknown.
    """
    own = frozenset(scope for scope in audience.scopes if scope.kind not in ("global", "custom"))
    view = View(Audience(own, audience.home), now)
    found = [] if order.last else _meant_by(connection, order, view)
    if not found and (order.last or order.points) and since is not None:
        return Meant(order, tuple(said_at(connection, view, since, session)))
    if len(found) < 2 or order.everything or _is_one_subject(found, order):
        return Meant(order, tuple(found))
    return Meant(order, (), tuple(found))


def forget(tx: Transaction, facts: Iterable[Fact]) -> list[Fact]:
    """Forget facts that are not forgotten yet, and return them."""
    known = [each.id for each in facts if tx.fact(each.id).forgotten_at is None]
    return [lifecycle.forget(tx, fact_id, "asked by the user") for fact_id in known]


def told(done: Sequence[Meant], batch: str) -> str:
    """Return what the agent is to know of orders that were obeyed or not: subjects and ids, and no text."""
    lines = []
    for each in done:
        subject = each.order.subject
        ids = ", ".join(fact.id for fact in each.clear or each.several)
        if each.clear:
            count = counted(len(each.clear), "memory", "memories")
            lines.append(f"Forgotten just now: {count} about {subject}, {ids}; undo: perdure undo {batch}.")
        elif each.several:
            lines.append(
                f"Not forgotten yet: several memories may be meant by {subject}: {ids}. Ask the user which; then "
                '"all", "the first one" or "all but the second" is understood.'
            )
        else:
            lines.append(f"Nothing is remembered about {subject}, so nothing was forgotten.")
    return "\n".join(lines)


def _meant_by(connection: Connection, order: Order, view: View) -> list[Fact]:
    known = every(connection, view)
    return _on_topic(connection, order, view, known) or _worded(order, known)


def _on_topic(connection: Connection, order: Order, view: View, facts: Sequence[Fact]) -> list[Fact]:
    """Return what is known of the user in the matter that an order names, whatever the words."""
    target = fold(order.target)
    whole = fold(order.sentence)
    found: dict[str, Fact] = {}
    for topic in topics():
        if not (topic.asked.search(target) or topic.asked.search(whole)):
            continue
        for key in topic.keys:
            found |= {fact.id: fact for fact in lookup(connection, "user", key, view)}
        told_of = (fact for fact in facts if topic.told.search(fold(fact.text)))
        found |= {fact.id: fact for fact in told_of}
    return [fact for fact in found.values() if _is_of_whom(fact, order)]


def _worded(order: Order, facts: Sequence[Fact]) -> list[Fact]:
    """Return what has the most of an order's words."""
    words, names = list(dict.fromkeys(match_terms(fold(order.target)))), _names(order)
    called = {fold(word) for word in order.target.split() if word[:1].isupper()} if order.everything else names
    ranked: list[tuple[int, set[str], Fact]] = []
    meant = {f"={name}" for name in meanings(order.target)}
    known: set[str] = set()  # words of the order that any memory has
    for fact in facts:
        said = match_terms(fold(f"{fact.text} {fact.key or ''}"))
        shared = {word for word in words if any(_alike(word, each, word in names) for each in said)}
        shared |= meant & {f"={name}" for name in meanings(fact.text)}
        known |= shared
        if shared and (called & shared or _is_of_whom(fact, order)):
            ranked.append((len(shared), shared, fact))
    most = max((score for score, _, _ in ranked), default=0)
    if order.everything:
        return [fact for score, shared, fact in ranked if score == most or (called and called <= shared)]
    best = [(shared, fact) for score, shared, fact in ranked if score == most]
    # A name of which something else is said, that another memory says, does not tell what is meant.
    sure = any(known <= names or (shared - names and SHARE * len(shared) >= len(words)) for shared, _ in best)
    return [fact for _, fact in best if sure]


def _names(order: Order) -> frozenset[str]:
    """Return the names in an order; every noun of German looks like one."""
    if language_of(order.sentence) == "de":
        return frozenset()
    return frozenset(fold(word) for word in order.target.split() if word[:1].isupper())


def _alike(word: str, other: str, exact: bool) -> bool:
    if word == other or exact:
        return word == other
    if stems(word) & stems(other):
        return True
    shorter = min(len(word), len(other))
    alike = next((at for at, (one, two) in enumerate(zip(word, other, strict=False)) if one != two), shorter)
    return shorter > NEAR and alike >= max(NEAR, shorter - 2)


def _is_of_whom(fact: Fact, order: Order) -> bool:
    """Return whether a fact speaks of nobody's matter but the user's, or of somebody whom the order names."""
    named = set(match_terms(fold(order.sentence))) | relatives(order.sentence)
    people = others(fact.text) | relatives(fact.text)
    asked = others(order.sentence) | relatives(order.sentence)
    if asked and not any(_alike(one, word, False) for one in asked for word in match_terms(fold(fact.text))):
        return False
    return not people or any(_alike(other, word, False) for word in named for other in people)


def _is_one_subject(found: Sequence[Fact], order: Order) -> bool:
    slots = {(fold(fact.entity or ""), fold(fact.key or "")) for fact in found}
    named = any(all(name in fold(fact.text) for fact in found) for name in _names(order))
    return named or (len(slots) == 1 and ("", "") not in slots)
