"""How well recall works on somebody's own store: questions made from its facts, asked, counted and thrown away.

No model writes the questions, nothing is kept or sent, and the result holds numbers only.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from perdure.engine.audiences import audience_of
from perdure.engine.engine import Engine
from perdure.errors import InputError
from perdure.hooks.types import TurnContext
from perdure.recall.options import PROFILE
from perdure.recall.receipt import Receipt
from perdure.store import receipts
from perdure.store.fact import Fact
from perdure.store.scope import Audience, Scope
from perdure.store.search import View, by_ids
from perdure.store.sql import Connection, dialect, run
from perdure.store.store import Store
from perdure.store.trust import AUTO_RECALLED
from perdure.text.questions import FOREIGN_QUESTIONS, exact, paraphrase, temporal

KINDS = ("exact", "paraphrase", "temporal")
MAX_SIZE = 1_000
VERSIONS = 100
"""Maximum number of newer versions that are followed from a marked memory."""
_SCOPE = "SELECT scope, scope_target FROM facts WHERE id = ?"
NEWEST = 0.1
"""Share of the time between the oldest and the newest fact that counts as new."""


@dataclass(frozen=True, slots=True)
class Measure:
    """The results of one kind of question. Shares are 0 to 1; None if there was nothing to ask.

    Attributes:
        asked: number of questions.
        at_1, at_3, at_5: share of questions whose memory was among the best 1, 3 or 5.
        in_block: share whose memory was in the block.
        tokens: average tokens of a block; 0 for none.
    """

    asked: int
    at_1: float | None
    at_3: float | None
    at_5: float | None
    in_block: float | None
    tokens: float | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A result. It contains no memory's text.

    Attributes:
        facts: number of memories that can come up unasked for this caller.
        sampled: number of memories asked about.
        seed: random seed of the sample.
        sample: identifies the sample: equal if and only if the same memories were chosen.
        model: name of the vector space searched; None: keyword search only.
        kinds: by "exact", "paraphrase" and "temporal".
        foreign: number of questions unrelated to the store.
        silence: share of these that correctly brought nothing up.
        leaks: number of memories that came up although the caller may not read them. More than 0 is a defect.
        tokens: average tokens of a block, over all questions.
        marks: number of memories marked in a turn as one that should, or should not, have come up.
        marks_right: number of these for which a new recall agrees.
    """

    facts: int
    sampled: int
    seed: int
    sample: str
    model: str | None
    kinds: Mapping[str, Measure]
    foreign: int
    silence: float
    leaks: int
    tokens: float
    marks: int = 0
    marks_right: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Answer:
    ids: tuple[str, ...]
    standing: tuple[str, ...]
    tokens: int


def evaluate(engine: Engine, context: TurnContext, size: int = 50, seed: int = 0) -> Evaluation:
    """Ask about up to `size` memories, and unrelated questions; the store is not changed.

    Raises:
        InputError: `size` is out of range.
    """
    if not 1 <= size <= MAX_SIZE:
        raise InputError(f"size is {size}; it must be from 1 to {MAX_SIZE}")
    audience = audience_of(context)
    view = View(audience, engine.clock.now(), channels=AUTO_RECALLED, approved_only=True)
    dice = random.Random(seed)
    with engine.store.database.read() as connection:
        ids, new = _candidates(connection, view)
        sample, newest = (_drawn(connection, view, some, size, dice) for some in (ids, new))
    asked: dict[str, Sequence[tuple[str, str]]] = {
        "exact": _questions(sample, exact),
        "paraphrase": _questions(sample, lambda fact: paraphrase(fact, dice)),
        "temporal": _questions(newest, temporal),
    }
    quiet = replace(context, session_id=None)
    answers = {
        kind: [(wanted, _ask(engine, quiet, question)) for wanted, question in pairs] for kind, pairs in asked.items()
    }
    foreign = [_ask(engine, quiet, question) for question in FOREIGN_QUESTIONS]
    marked = list(_marked(engine, quiet, view))
    every = [answer for pairs in answers.values() for _, answer in pairs] + foreign + [answer for answer, _ in marked]
    space = engine.store.space() if engine.model.leg() else None
    return Evaluation(
        facts=len(ids),
        sampled=len(sample),
        seed=seed,
        sample=hashlib.sha256(" ".join(fact.id for fact in sample).encode()).hexdigest()[:16],
        model=space.name if space else None,
        kinds={kind: _measure(pairs) for kind, pairs in answers.items()},
        foreign=len(foreign),
        silence=fmean(not answer.ids for answer in foreign),
        leaks=_leaks(engine.store, audience, every),
        tokens=round(fmean(answer.tokens for answer in every), 1),
        marks=sum(len(marks) for _, marks in marked),
        marks_right=sum(
            (fact_id in answer.ids + answer.standing) == wanted
            for answer, marks in marked for fact_id, wanted in marks.items()
        ),
    )  # fmt: skip


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    """Return the figures that differ between two results: name, before, after.

    Args:
        before: as `Evaluation.to_dict` gave it.
        after: the later result.

    Raises:
        InputError: `before` is not such a result.
    """
    one, other = dict(_numbers(before)), dict(_numbers(after))
    if not {"silence", "leaks", "tokens"} <= one.keys():
        raise InputError("this is not a result of `perdure eval --json`; create one first")
    return [(name, one[name], other[name]) for name in other if name in one and one[name] != other[name]]


def _numbers(result: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, float]]:
    for name, value in result.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{above}{name} ")
        elif isinstance(value, int | float) and name != "seed":
            yield f"{above}{name}".removeprefix("kinds ").replace("_", " "), value


def _candidates(connection: Connection, view: View) -> tuple[list[str], list[str]]:
    """Return the ids of all facts that can come up, and of those that are new and fill a slot."""
    condition, values = view.sql(dialect(connection))
    rows = run(
        connection,
        "SELECT facts.id, coalesce(facts.source_date, facts.created_at), facts.entity <> '' AND facts.key <> ''"
        f" FROM facts WHERE {condition} ORDER BY facts.seq",
        values,
    )
    dates = [date for _, date, _ in rows]
    since = max(dates) - NEWEST * (max(dates) - min(dates)) if dates else 0.0
    return [fact_id for fact_id, _, _ in rows], [fact_id for fact_id, date, slot in rows if slot and date >= since]


def _drawn(connection: Connection, view: View, ids: Sequence[str], size: int, dice: random.Random) -> list[Fact]:
    drawn = by_ids(connection, dice.sample(ids, min(size, len(ids))), view)
    # Rows come in no order that holds; what is asked first must not depend on it.
    return sorted(drawn.values(), key=lambda fact: fact.id)


def _questions(facts: Iterable[Fact], ask: Callable[[Fact], str]) -> list[tuple[str, str]]:
    return [(fact.id, question) for fact in facts if (question := ask(fact))]


def _ask(engine: Engine, context: TurnContext, question: str) -> _Answer:
    seen: list[Receipt] = []
    recall = engine.recall(question, context, receipt_to=seen.append)
    items = recall.items if recall else ()
    # What comes up in every turn is no answer to this question, and no noise either.
    return _Answer(
        tuple(item.id for item in items if item.leg != PROFILE),
        tuple(item.id for item in items if item.leg == PROFILE),
        seen[0].tokens,
    )


def _marked(engine: Engine, context: TurnContext, view: View) -> Iterable[tuple[_Answer, Mapping[str, bool]]]:
    """Yield the answers to prompts in which memories were marked, with the marks of those that can still come up."""
    with engine.store.database.read() as connection:
        kept = receipts.listed(connection, view.audience, MAX_SIZE, marked=True)
        named = {fact_id for receipt in kept for fact_id in receipt.body[receipts.MARKS]}
        newest = _newest(connection, view, named)
    for receipt in kept:
        marks = receipt.body[receipts.MARKS]
        marks = {newest[fact_id]: wanted for fact_id, wanted in marks.items() if fact_id in newest}
        # A purge has taken the prompt's words out.
        if marks and receipt.body["query"]:
            yield _ask(engine, context, receipt.body["query"]), marks


def _newest(connection: Connection, view: View, ids: Iterable[str]) -> Mapping[str, str]:
    """Return, by id, the present replacements of facts that can come up."""
    last = {fact_id: fact_id for fact_id in ids}
    whole = replace(view, everything=True, channels=None, approved_only=False)
    for _ in range(VERSIONS):
        facts = by_ids(connection, list(last.values()), whole)
        after = {first: facts[each].superseded_by or each for first, each in last.items() if each in facts}
        if after == last:
            break
        last = after
    there = by_ids(connection, list(last.values()), view)
    return {first: each for first, each in last.items() if each in there}


def _measure(answers: Sequence[tuple[str, _Answer]]) -> Measure:
    if not answers:
        return Measure(0, None, None, None, None, None)

    def within(places: int) -> float:
        return fmean(wanted in answer.ids[:places] for wanted, answer in answers)

    return Measure(
        len(answers),
        within(1),
        within(3),
        within(5),
        fmean(wanted in answer.ids + answer.standing for wanted, answer in answers),
        round(fmean(answer.tokens for _, answer in answers), 1),
    )


def _leaks(store: Store, audience: Audience, answers: Iterable[_Answer]) -> int:
    """Count facts that came up and should not have: by their rows, not by the guard that recall asks."""
    ids = {fact_id for answer in answers for fact_id in answer.ids + answer.standing}
    with store.database.read() as connection:
        rows = [row for fact_id in ids for row in run(connection, _SCOPE, (fact_id,))]
    return sum(not audience.may_read(Scope(kind, target)) for kind, target in rows)
