"""The steps of recall in their order: query, legs, gate, fuse, adjust, diverse, budget, block, receipt."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from math import prod

from perdure.clock import Clock
from perdure.hooks.types import Recall, RecallItem
from perdure.ranking.adjust import Standing, adjusted
from perdure.ranking.budget import fit
from perdure.ranking.decay import DAY, confidence_at
from perdure.ranking.diversity import Shown, diverse, jaccard
from perdure.ranking.fuse import Fused, fuse, relative_cut
from perdure.ranking.gates import Gate
from perdure.recall.block import line, render
from perdure.recall.legs import Found, Legs, VectorLeg
from perdure.recall.options import LINKS, PROFILE, RecallOptions
from perdure.recall.profile import Profile, reread, standing
from perdure.recall.query import understand
from perdure.recall.receipt import Receipt
from perdure.recall.rerank import Reranker, Reranking
from perdure.recall.sources import Source
from perdure.store.fact import Fact
from perdure.store.links import related
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.slots import is_single_valued
from perdure.store.store import Store
from perdure.store.trust import AGENTS_NOTE, AUTO_RECALLED
from perdure.text.fence import strip_fenced
from perdure.text.normalise import match_terms
from perdure.text.tokens import estimate_tokens

CountTokens = Callable[[str], int]
LINKED = 3
LINK_SHARE = 0.5
"""So many facts that links lead to come up, each with this share of the score for every step."""
NOT_FOLLOWED = frozenset({"SUPERSEDES", "CONTRADICTS"})
SAME = 0.6
"""A passage that shares so much of its words (Jaccard) with a fact says the same."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a caller may ask beside the prompt.

    Attributes:
        as_of: what was true at that time, epoch seconds.
        include_superseded: also former versions.
        tag: only facts with this tag.
        shown: ids of what the model still sees from earlier turns; it is not brought up again.
    """

    as_of: float | None = None
    include_superseded: bool = False
    tag: str | None = None
    shown: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Ranked:
    """A fact that may be brought up: what found it, and how well it fits."""

    fact: Fact
    leg: str
    score: float


class Recaller:
    """Recalls for prompts. Usable from any thread."""

    def __init__(
        self,
        store: Store,
        options: RecallOptions,
        vector_leg: Callable[[], VectorLeg | None],
        clock: Clock,
        reranker: Reranker | None = None,
        source: Source | None = None,
    ) -> None:
        """Recall from `store`.

        Args:
            store: where the facts are.
            options: how to recall.
            vector_leg: returns the vector leg, or None while no model is loaded: recall never waits for one.
            clock: the time of asking.
            reranker: has a second look at what passed.
            source: brings passages of files and conversations.
        """
        self._store = store
        self._options = options
        self._vector_leg = vector_leg
        self._clock = clock
        self._legs = Legs(store, options.candidates, source)
        self._reranking = Reranking(reranker)
        self._profile = Profile()

    def recall(
        self, prompt: str, audience: Audience, *, session: str | None = None, asked: Asked = Asked()
    ) -> tuple[Recall | None, Receipt]:
        """Return what the model should see for a prompt, or None for silence, and the receipt."""
        began = time.monotonic()
        now = self._clock.now()
        today = datetime.fromtimestamp(now).astimezone().date()
        query = understand(strip_fenced(prompt, self._store.key, session), today)
        receipt = Receipt(str(uuid.uuid4()), session, now, query.text, silence=query.trivial)
        recall = None
        if query.trivial is None:
            view = View(
                audience, now, as_of=asked.as_of, include_superseded=asked.include_superseded, tag=asked.tag,
                channels=AUTO_RECALLED, approved_only=True,
            )  # fmt: skip
            # Who asks for a tag has said what it is about: words are enough, and nothing is embedded.
            leg = None if asked.tag is not None else self._vector_leg()
            deadline = began + self._options.deadline
            receipt.found = self._legs.search(query, view, leg, deadline, session)
            ranked = self._ranked(receipt.found, receipt, now)
            order = self._reranking.order(query.text, [each.fact.text for each in ranked], deadline)
            ranked = [ranked[index] for index in order]
            ranked += self._linked(ranked, view, receipt)
            ranked = [*self._standing(view, session, receipt, ranked), *ranked]
            recall = self._block(ranked, receipt, asked.shown, leg.embedder.count_tokens if leg else estimate_tokens)
        receipt.seconds = time.monotonic() - began
        return recall, receipt

    def close(self) -> None:
        """End the threads of the legs."""
        self._legs.close()
        self._reranking.close()

    def _ranked(self, found: Found, receipt: Receipt, now: float) -> list[Ranked]:
        gate = Gate(found.floor if found.floor is not None else 1.0)
        passed = {fact_id for fact_id, evidence in found.evidence.items() if gate.verdict(evidence)}
        receipt.verdicts.update(dict.fromkeys(found.facts.keys() - passed, "no evidence"))
        legs = {
            leg: {fact_id: score for fact_id, score in scores.items() if fact_id in passed}
            for leg, scores in found.scores.items()
        }
        fused = [item for item in fuse(legs, self._options.weights) if item.id in passed]
        kept = relative_cut(fused, self._options.relative_cut)
        receipt.verdicts.update({item.id: "far below the best" for item in fused[len(kept) :]})
        receipt.scores.update({item.id: item.score for item in fused})
        kept = sorted(kept, key=lambda item: (-self._adjusted(found.facts[item.id], item, receipt, now), item.id))
        gone = diverse([_shown(found.facts[item.id]) for item in kept])
        receipt.verdicts.update(gone)
        return [Ranked(found.facts[item.id], item.leg, receipt.scores[item.id]) for item in kept if item.id not in gone]

    def _adjusted(self, fact: Fact, fused: Fused, receipt: Receipt, now: float) -> float:
        """Return what a fact is ordered by; two that fit as well as can be still differ in it."""
        score, factors = adjusted(fused.score, _standing_of(fact, now), self._options.adjustments)
        receipt.scores[fact.id] = score
        receipt.factors[fact.id] = factors
        return fused.score * prod(factors.values())

    def _linked(self, ranked: list[Ranked], view: View, receipt: Receipt) -> list[Ranked]:
        """Return facts that links lead to from those that passed."""
        if not ranked or not self._options.link_depth or view.tag is not None:
            return []
        seeds = {each.fact.id: each.score for each in ranked}
        with self._store.database.read() as connection:
            reached = related(connection, seeds, view, self._options.link_depth)
        best = max(seeds.values())
        linked = [
            Ranked(each.fact, LINKS, best * each.link.strength * LINK_SHARE**each.depth)
            for each in reached
            if each.link.type not in NOT_FOLLOWED and receipt.verdicts.get(each.fact.id) in (None, "no evidence")
        ]
        linked = sorted(linked, key=lambda each: (-each.score, each.fact.id))[:LINKED]
        receipt.scores.update({each.fact.id: each.score for each in linked})
        receipt.linked.update({each.fact.id: each.fact for each in linked})
        return linked

    def _standing(self, view: View, session: str | None, receipt: Receipt, ranked: list[Ranked]) -> list[Ranked]:
        """Return what is kept in mind whatever is asked, without what is brought up anyway."""
        options = self._options
        if options.profile == "off" or view.tag is not None or view.as_of is not None:
            return []
        with self._store.database.read() as connection:
            ids = self._profile.for_session(
                f"{view.audience.home}\0{session}" if session else None,
                lambda: [
                    fact
                    for fact in standing(connection, view, options.profile_limit)
                    if fact.pinned or options.profile == "standing"
                ],
            )
            facts = reread(connection, ids, view)
        there = {each.fact.id for each in ranked}
        kept = [Ranked(fact, PROFILE, 1.0) for fact in facts if fact.id not in there]
        receipt.linked.update({each.fact.id: each.fact for each in kept})
        return kept

    def _block(
        self, ranked: list[Ranked], receipt: Receipt, shown: Collection[str], count: CountTokens
    ) -> Recall | None:
        options = self._options
        facts = [
            RecallItem(each.fact.id, self._text(each.fact), _category(each.fact), each.leg, each.score)
            for each in ranked
        ]
        key = self._store.key
        left = options.max_tokens - count(render([], key, receipt.session))
        items: list[RecallItem] = []
        # Facts first: they are what was worth keeping. Passages take what is left.
        for group, limit in ((facts, options.limit), (self._passages(receipt, facts), options.passages)):
            receipt.verdicts.update({item.id: "already shown" for item in group if item.id in shown})
            fresh = [item for item in group if item.id not in shown]
            costs = [count(line(item, options.format)) + 1 for item in fresh]
            chosen = fit(costs, left, limit)
            left -= sum(costs[index] for index in chosen)
            for index, item in enumerate(fresh):
                receipt.verdicts[item.id] = "injected" if index in chosen else "over the budget"
            items += [fresh[index] for index in chosen]
        if not items:
            return None
        block = render([line(item, options.format) for item in items], key, receipt.session)
        receipt.tokens, receipt.size = count(block), len(block.encode())
        return Recall(block, tuple(items), receipt.id, options.placement)

    def _passages(self, receipt: Receipt, facts: list[RecallItem]) -> list[RecallItem]:
        """Return the passages that say what no fact says already."""
        found = receipt.found.passages if receipt.found else ()
        said = [frozenset(match_terms(fact.text)) for fact in facts]
        items = []
        for passage in found:
            receipt.scores[passage.id] = passage.score
            words = frozenset(match_terms(passage.text))
            if any(jaccard(words, other) >= SAME for other in said):
                receipt.verdicts[passage.id] = "a fact says the same"
            else:
                items.append(RecallItem(passage.id, passage.text, passage.about, passage.leg, passage.score))
        return items

    def _text(self, fact: Fact) -> str:
        long = len(fact.text) > self._options.summary_threshold
        return fact.summary if long and fact.summary else fact.text


def _standing_of(fact: Fact, now: float) -> Standing:
    confirmed = fact.last_confirmed_at or fact.created_at
    return Standing(
        fact.importance,
        confidence_at(fact.confidence, confirmed, fact.expires_at, now),
        fact.access_count + fact.reinforced_count,
        max(0.0, now - fact.effective_date) / DAY,
        None if fact.expires_at is None else max(0.0, fact.expires_at - now) / DAY,
        fact.decay_class,
    )


def _shown(fact: Fact) -> Shown:
    slot = (fact.entity.casefold(), fact.key.casefold()) if fact.entity and fact.key else None
    return Shown(fact.id, fact.text, slot, bool(fact.key and is_single_valued(fact.key)), fact.effective_date)


def _category(fact: Fact) -> str:
    return f"{fact.category}, agent's note" if fact.channel in AGENTS_NOTE else fact.category
