"""What an order to forget means, among the memories of who gave it, and what becomes of it.

Nothing is forgotten on a guess: what is meant has the order's matter in its slot or words, is of the same person, and
is alone in that, unless all of it is to go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from perdure.capture.language import language_of
from perdure.capture.reading import stems
from perdure.regex import lazy
from perdure.speech.forgetting import Order, meanings
from perdure.store import lifecycle
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View, every, said_at
from perdure.store.sql import Connection
from perdure.store.transaction import REFLECTED, Transaction
from perdure.text.lexicon import listed, stop_words
from perdure.text.normalise import fold
from perdure.text.pluralize import counted
from perdure.text.sameness import others

_WORD = lazy(r"[^\W_]+(?:'s\b)?")
_NAME = lazy(r"\b[A-ZÀ-Þ]\w+")
_GERMAN_NAME = lazy(r"(?:\b(?:[Hh]ei(?:ß|ss)e?t?|namens|Herrn?|Frau|Dr\.|(?i:mein|unser)e? [A-Z]\w+) |^)([A-ZÀ-Þ]\w+)")
_COMPOUND = lazy(r"\b(?:my|our) [\w-]+(?:'s)? ([\w-]+)(?:,? (?:please|pls|thanks|ok))*\W*$")
_THING = listed("capture", "grammar", "own_thing")
_SPEAKER = lazy(r"(?:i|ich|je|j|yo|eu|io)\b")
LISTED = 10
"""Memories whose ids the agent is told of one order."""
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
    # A pattern quotes what is meant, and goes with it.
    known = [] if order.last else [fact for fact in every(connection, view) if fact.extraction_method != REFLECTED]
    # Who wants all of it gone is asked first.
    found = among(order, known) if order.target else Meant(order, (), tuple(known))
    if not (found.clear or found.several) and order.sure and (order.last or order.points) and since is not None:
        return Meant(order, tuple(said_at(connection, view, since, session)))
    return found


def among(order: Order, facts: Sequence[Fact]) -> Meant:
    """Return what an order means among facts."""
    found = _worded(order, order.target, facts)
    if (len(found) > 1 or order.points) and not order.everything:
        # What stands around an order tells which.
        found = _worded(order, f"{order.target} {order.beside}", found or facts) or found
    vague = not (order.points or order.sure)
    if vague and not (meanings(order.target) or any(others(fact.text) for fact in found)):
        found = []
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
        named = each.clear or each.several
        ids = ", ".join(fact.id for fact in named[:LISTED]) + f" and {len(named) - LISTED} more" * (len(named) > LISTED)
        if each.clear:
            count = counted(len(each.clear), "memory", "memories")
            lines.append(f"Forgotten just now: {count} about {subject}, {ids}; undo: perdure undo {batch}.")
        elif each.several:
            lines.append(
                f"Not forgotten yet: {subject} could mean several memories: {ids}. Ask the user which; they can answer "
                '"all", "the first one" or "all but the second".'
            )
        else:
            lines.append(f"Nothing is remembered about {subject}, so nothing was forgotten.")
    return "\n".join(lines)


def _worded(order: Order, target: str, facts: Sequence[Fact]) -> list[Fact]:
    """Return what has the most of an order's words, or words for the same."""
    words, meant = {word: meanings(word) for word in _words(target)}, meanings(target)
    phrases = meant.difference(*words.values())
    # Who begins words with great letters begins names with one.
    written = set(map(fold, _NAME.findall(target))) if order.sentence != order.sentence.lower() else set(words)
    names = {name for fact in facts for name in _names(fact)} & set(words) & written
    ranked: list[tuple[int, set[str], Fact]] = []
    known: set[str] = set()  # words of the order that any memory has
    for fact in facts:
        said = _words(f"{fact.text} {fact.key or ''}")
        told = meanings(f"{fact.text} {fact.key or ''}", told=True)
        shared = {
            word for word, named in words.items()
            if named & told or any(_alike(word, each, word in names) for each in said)
        } | phrases & told  # fmt: skip
        known |= shared
        if shared and (names.intersection(said) or _is_of_whom(fact, order)):
            ranked.append((len(shared), shared, fact))
    if (named := _COMPOUND.search(fold(order.sentence))) and named[1] in words and named[1] not in known:
        return []  # "my car insurance" is not my car
    most = max((score for score, _, _ in ranked), default=0)
    if order.everything:
        return [fact for score, shared, fact in ranked if score == most or (names and names <= shared)]
    best = [(shared, fact) for score, shared, fact in ranked if score == most]
    # "My weight" is not that of "my suitcase".
    best = [each for each in best if each[0] & names or not _is_of_thing(each[1], words, meant)] or best
    # A name of which something else is said, that another memory says, does not tell what is meant.
    # One word of three is enough, or one of two if the order may be about work; a memory that is told has most.
    least = len(words) // 2 + 1 if order.tells else -(-len(words) // (2 + order.sure))
    sure = any(
        (not order.tells and any(map(words.get, shared))) or known == set(words)
        or ((shared - names or order.points) and len(shared) >= least) for shared, _ in best
    )  # fmt: skip
    return [fact for _, fact in best if sure]


def _words(text: str) -> list[str]:
    return [word.removesuffix("'s") for word in _WORD.findall(fold(text))]


def _names(fact: Fact) -> set[str]:
    """Return the words of a fact, folded, that are names; every noun of German looks like one."""
    found = _GERMAN_NAME if language_of(fact.text) == "de" else _NAME
    return {fold(name) for name in found.findall(fact.text)} - stop_words()


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
    told = f"{order.sentence} {order.target}"
    people, asked = others(fact.text), others(told) - stop_words()
    if _SPEAKER.match(fold(fact.text)):
        people = frozenset(one for one in people if f"{one}'s" in fold(fact.text))
    if asked and not any(_alike(one, word, False) for one in asked for word in _words(fact.text)):
        return False
    return not people or any(_alike(other, word, False) for word in _words(told) for other in people)


def _is_of_thing(fact: Fact, words: Collection[str], meant: Collection[str]) -> bool:
    """Return whether a fact speaks of something that an order does not name."""
    thing = _THING.match(fold(fact.text))
    return (
        thing is not None
        and meanings(thing[1]).isdisjoint(meant)
        and not any(_alike(word, thing[1], False) for word in words)
    )


def _is_one_subject(found: Sequence[Fact], order: Order) -> bool:
    slots = {(fold(fact.entity or ""), fold(fact.key or "")) for fact in found}
    words = set(_words(order.target))
    named = bool(words - others(order.target)) and words <= set.intersection(*map(_names, found))
    return named or (len(slots) == 1 and ("", "") not in slots)
