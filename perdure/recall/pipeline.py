"""The steps of recall in their order: query, legs, gate, fuse, diverse, budget, block, receipt."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from perdure.clock import Clock
from perdure.hooks.types import Recall, RecallItem
from perdure.ranking.budget import fit
from perdure.ranking.diversity import Shown, diverse
from perdure.ranking.fuse import Fused, fuse, relative_cut
from perdure.ranking.gates import Gate
from perdure.recall.block import line, render
from perdure.recall.legs import Found, Legs, VectorLeg
from perdure.recall.options import RecallOptions
from perdure.recall.query import understand
from perdure.recall.receipt import Receipt
from perdure.recall.rerank import Reranker, Reranking
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.slots import is_single_valued
from perdure.store.store import Store
from perdure.store.trust import AGENTS_NOTE, AUTO_RECALLED
from perdure.text.fence import strip_fenced
from perdure.text.tokens import estimate_tokens

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a caller may ask beside the prompt.

    Attributes:
        as_of: what was true at that time, epoch seconds.
        include_superseded: also former versions.
        tag: only facts with this tag.
    """

    as_of: float | None = None
    include_superseded: bool = False
    tag: str | None = None


class Recaller:
    """Recalls for prompts. Usable from any thread."""

    def __init__(
        self,
        store: Store,
        options: RecallOptions,
        vector_leg: Callable[[], VectorLeg | None],
        clock: Clock,
        reranker: Reranker | None = None,
    ) -> None:
        """Recall from `store`.

        Args:
            store: where the facts are.
            options: how to recall.
            vector_leg: returns the vector leg, or None while no model is loaded: recall never waits for one.
            clock: the time of asking.
            reranker: has a second look at what passed.
        """
        self._store = store
        self._options = options
        self._vector_leg = vector_leg
        self._clock = clock
        self._legs = Legs(store, options.candidates)
        self._reranking = Reranking(reranker)

    def recall(
        self, prompt: str, audience: Audience, *, session: str | None = None, asked: Asked = Asked()
    ) -> tuple[Recall | None, Receipt]:
        """Return what the model should see for a prompt, or None for silence, and the receipt."""
        began = time.monotonic()
        now = self._clock.now()
        query = understand(strip_fenced(prompt, self._store.key, session))
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
            receipt.found = self._legs.search(query, view, leg, deadline)
            ranked = self._ranked(receipt.found, receipt)
            order = self._reranking.order(query.text, [fact.text for fact, _ in ranked], deadline)
            ranked = [ranked[index] for index in order]
            recall = self._block(ranked, receipt, leg.embedder.count_tokens if leg else estimate_tokens)
        receipt.seconds = time.monotonic() - began
        return recall, receipt

    def close(self) -> None:
        """End the threads of the legs."""
        self._legs.close()
        self._reranking.close()

    def _ranked(self, found: Found, receipt: Receipt) -> list[tuple[Fact, Fused]]:
        gate = Gate(found.floor if found.floor is not None else 1.0)
        passed = {fact_id for fact_id, evidence in found.evidence.items() if gate.verdict(evidence)}
        receipt.verdicts.update(dict.fromkeys(found.facts.keys() - passed, "no evidence"))
        legs = {
            leg: {fact_id: score for fact_id, score in scores.items() if fact_id in passed}
            for leg, scores in found.scores.items()
        }
        fused = [item for item in fuse(legs, self._options.weights) if item.id in passed]
        receipt.scores.update({item.id: item.score for item in fused})
        kept = relative_cut(fused, self._options.relative_cut)
        receipt.verdicts.update({item.id: "far below the best" for item in fused[len(kept) :]})
        gone = diverse([_shown(found.facts[item.id]) for item in kept])
        receipt.verdicts.update(gone)
        return [(found.facts[item.id], item) for item in kept if item.id not in gone]

    def _block(self, ranked: list[tuple[Fact, Fused]], receipt: Receipt, count: CountTokens) -> Recall | None:
        items = [
            RecallItem(fact.id, self._text(fact), _category(fact), fused.leg, fused.score) for fact, fused in ranked
        ]
        lines = [line(item, self._options.format) for item in items]
        key = self._store.key
        frame = count(render([], key, receipt.session))
        chosen = fit([count(text) + 1 for text in lines], self._options.max_tokens - frame, self._options.limit)
        for index, item in enumerate(items):
            receipt.verdicts[item.id] = "injected" if index in chosen else "over the budget"
        if not chosen:
            return None
        block = render([lines[index] for index in chosen], key, receipt.session)
        receipt.tokens, receipt.size = count(block), len(block.encode())
        shown = tuple(items[index] for index in chosen)
        return Recall(block, shown, receipt.id, self._options.placement)

    def _text(self, fact: Fact) -> str:
        long = len(fact.text) > self._options.summary_threshold
        return fact.summary if long and fact.summary else fact.text


def _shown(fact: Fact) -> Shown:
    slot = (fact.entity.casefold(), fact.key.casefold()) if fact.entity and fact.key else None
    return Shown(fact.id, fact.text, slot, bool(fact.key and is_single_valued(fact.key)), fact.effective_date)


def _category(fact: Fact) -> str:
    return f"{fact.category}, agent's note" if fact.channel in AGENTS_NOTE else fact.category
