"""The steps of recall in their order: query, search, judge, what comes up whatever is asked, block, receipt."""

from __future__ import annotations

import logging
import math
import time
import uuid
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from perdure.clock import Clock
from perdure.errors import ExtensionError, StoreError
from perdure.hooks.types import Recall
from perdure.ranking.decay import OF_SESSION
from perdure.ranking.fuse import diverse, fit, jaccard
from perdure.recall.aliases import NAMES_ALONE, Speller, tells_names_alone
from perdure.recall.block import Overtaken, Stale, dress, in_order, line, marks, newest_first, overtaken, render
from perdure.recall.expand import Expand, Expander
from perdure.recall.judge import adjusted, merge
from perdure.recall.kinds import anothers, owned
from perdure.recall.lane import Lane
from perdure.recall.options import ALIASES, DATES, DIRECTIVE, LINKS, NEWEST, PROFILE, RecallOptions
from perdure.recall.query import understand
from perdure.recall.receipt import Receipt
from perdure.recall.retrievers import Legs, Source, token_counter
from perdure.recall.turn import Candidate, CountTokens, Find, Judge, Turn, VectorLeg
from perdure.recall.unasked import NO_EVIDENCE, Profile, bridging_names, dated, directed, linked
from perdure.speech.typed import typed
from perdure.store.fact import Fact, folded_slot
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.store import Store
from perdure.store.trust import AUTO_RECALLED
from perdure.store.vocabulary import terms
from perdure.text.fence import strip_fenced
from perdure.text.normalise import match_terms
from perdure.text.sameness import said, says_no_more

_SAME = 0.6
"""A passage that shares so much of its words (Jaccard) with a fact, and has no detail more, says the same."""
_INJECTED = "injected"
_OVER_BUDGET = "over the budget"
_MORE = "and {} more, which the memory tools find"
_ELSEWHERE = "of the moment in another conversation"
_ANOTHERS = "about another person"
_LOADING_SHARE = 0.75
"""Of a turn's time, for which the first recall waits for the model."""
_EXPANSION_SHARE = 0.6
"""Of a turn's time, in which other wordings must be there."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a caller may ask beside the prompt."""

    as_of: float | None = None  # what was true at that time, epoch seconds
    include_superseded: bool = False  # also former versions
    tag: str | Sequence[str] | None = None  # only facts with this tag, or with all of these
    first_turn: bool = False  # whether it is the first prompt of a session
    shown: Collection[str] = ()  # ids of what the model still sees from earlier turns; it is not brought up again
    expand: Expand = "no"  # whether the query is also asked in other words, and whether that may take its time


@dataclass(eq=False)
class Recaller:
    """Recalls for prompts. Usable from any thread."""

    store: Store
    options: RecallOptions
    vector_leg: Callable[[], VectorLeg | None]  # None while no model is loaded
    clock: Clock
    reranker: Reranker | None = None  # has a second look at what passed
    source: Source | None = None  # brings passages of files and conversations
    expander: Expander | None = None  # words a query in other ways
    stale: Stale = lambda older, newer: ""  # tells what of a memory a newer one makes out of date
    # Waits so many seconds for a model that is being loaded. The first recall does, most of its time: it would have
    # only words to go by. No other one waits.
    loaded: Callable[[float], object] | None = None

    def __post_init__(self) -> None:
        self._speller = Speller(self.store.database)
        self._legs = Legs(self.source)
        self._second_look = Lane("reranker")
        self._profile = Profile()
        # In this order: those before it are what one starts from, and stay as they are.
        self._unasked: Sequence[tuple[str, Find]] = (
            (DATES, dated), (LINKS, linked), (ALIASES, bridging_names), (PROFILE, self._profile.kept),
        )  # fmt: skip

    def recall(
        self, prompt: str, audience: Audience, *, session: str | None = None, asked: Asked = Asked()
    ) -> tuple[Recall | None, Receipt]:
        """Return what the model should see for a prompt, or None for silence, and the receipt."""
        began = time.monotonic()
        now = self.clock.now()
        query = understand(_typed_part(prompt, self.store.key, session))
        view = View(
            audience, now, as_of=asked.as_of, include_superseded=asked.include_superseded, tag=asked.tag,
            channels=AUTO_RECALLED, approved_only=True,
        )  # fmt: skip
        turn = Turn(
            self.store,
            self.options,
            query,
            view,
            None,
            began + self.options.deadline,
            session,
            first=asked.first_turn,
        )
        with ExitStack() as stack:
            # Where the store cannot be read, each step says so of itself.
            with suppress(StoreError):
                stack.enter_context(self.store.database.reading(deadline=turn.deadline))
            if query.trivial is None:
                # Who asks for a tag has said what it is about: words are enough, and nothing is embedded.
                turn.leg = None if asked.tag is not None else self._leg()
                self._recalled(turn, asked.expand)
            count = token_counter(turn.leg)
            block, shown = self._block(turn, asked, count) if turn.found else ("", [])
        receipt = Receipt(
            str(uuid.uuid4()), session, now, query.text, query.trivial, tuple(turn.found.values()), turn.states,
            turn.seconds, turn.judge, turn.query.aliases, turn.expansion,
            tokens=count(block) if shown else 0, size=len(block.encode()) if shown else 0,
            seconds=time.monotonic() - began,
        )  # fmt: skip
        items = tuple(each.item for each in shown)
        return Recall(block, items, receipt.id, self.options.placement) if shown else None, receipt

    def _recalled(self, turn: Turn, expand: Expand) -> None:
        """Have all come up that is to, best first."""
        query, known = turn.query, self._speller
        turn.query = (
            turn.tried(ALIASES, lambda turn: known.spell(query, turn.view.audience, turn.view.now, turn.deadline))
            or query
        )
        turn.judge = judge = self._search(turn, expand)
        at_once = turn.tried(DIRECTIVE, directed) or []
        turn.ranked = self._judged(turn, judge, query.text, {each.id for each in at_once})
        self._rerank(turn)
        self._bring(turn, [(DIRECTIVE, lambda _: at_once), *self._unasked])
        turn.ranked.sort(key=lambda each: each.leg != PROFILE)
        self._mark_newest(turn)

    def foresee(self, prompt: str, audience: Audience, session: str | None = None) -> None:
        """Do what the prompt alone decides, before the recall: embed it. Leaves nothing behind that could be seen."""
        query = understand(_typed_part(prompt, self.store.key, session))
        leg = self.vector_leg()
        if leg is not None and query.trivial is None:
            deadline = time.monotonic() + self.options.deadline
            with suppress(StoreError):
                query = self._speller.spell(query, audience, self.clock.now(), deadline)
            self._legs.foresee(query, leg, deadline)

    def renew(self, conversation: str) -> None:
        """Choose the profile of a conversation, its scope and session with a NUL between, anew at its next turn."""
        self._profile.renew(conversation)

    def close(self) -> None:
        """End the threads of the legs."""
        if self.expander is not None:
            self.expander.close()
        self._legs.close()
        self._second_look.close()

    def _leg(self) -> VectorLeg | None:
        leg, loaded = self.vector_leg(), self.loaded
        self.loaded = None
        if leg is None and loaded is not None:
            loaded(_LOADING_SHARE * self.options.deadline)
            leg = self.vector_leg()
        return leg

    def _search(self, turn: Turn, expand: Expand) -> Judge:
        """Search for the query and its other wordings; what had to be waited for these puts the deadline off."""
        if self.expander is None or expand == "no" or turn.view.tag is not None:
            return self._legs.search(turn)
        # What comes too late to be searched for is of no use.
        soon = _EXPANSION_SHARE * turn.left
        began = time.monotonic()
        wordings = self.expander.begin(turn.query.text, expand, soon)
        waited = time.monotonic() - began
        turn.deadline += waited
        judge = self._legs.search(turn)
        turn.expansion = wordings(began + waited + soon)
        queries = map(understand, turn.expansion.wordings)
        others = [turn.asking(query) for query in queries if query.trivial is None]
        return merge(turn, judge, [(other, self._legs.search(other)) for other in others]) if others else judge

    def _bring(self, turn: Turn, retrievers: Sequence[tuple[str, Find]]) -> None:
        """Have come up what these retrievers find, each behind those before it."""
        for name, find in retrievers:
            turn.add(turn.tried(name, find) or ())

    def _judged(self, turn: Turn, judge: Judge, text: str, by_directive: Collection[str]) -> list[Candidate]:
        """Return the facts that have evidence enough, best first, and say of the others what they failed at."""
        adjustments = set(self.options.adjustments)
        stems, owners = terms(text), owned(text)
        for each in turn.facts:
            if anothers(owners, each.fact.text):
                each.verdict = _ANOTHERS
            elif each.fact.decay_class == OF_SESSION and each.fact.provenance_session not in (None, turn.session):
                each.verdict = _ELSEWHERE
            elif tells_names_alone(each.fact, stems, turn.query.aliases):
                each.verdict = NAMES_ALONE
            elif not judge.passes(each):
                each.verdict = NO_EVIDENCE
        ranked = judge.ranked(each for each in turn.facts if not each.verdict)
        kept = judge.near(ranked)
        for each in set(ranked).difference(kept):
            each.verdict = "far below the best"
        worth = {}
        for each in kept:
            names = adjustments if each.id in by_directive else adjustments - {DIRECTIVE}
            fit_best = each.score
            each.score, each.factors = adjusted(fit_best, each.fact, turn.view.now, names)
            # Two that fit as well as can be still differ in it.
            worth[each.id] = fit_best * math.prod(each.factors.values())
        kept = sorted(kept, key=lambda each: (-worth[each.id], each.id))
        for fact_id, verdict in diverse((each.id, _says(each.fact)) for each in kept).items():
            turn.found[fact_id].verdict = verdict
        return [each for each in kept if not each.verdict]

    def _rerank(self, turn: Turn) -> None:
        """Put the facts in the order of the reranker; without a good answer in time they stay as they are."""
        reranker, texts = self.reranker, [each.fact.text for each in turn.ranked]
        if reranker is None or len(texts) < 2:
            return
        ticket = self._second_look.start(lambda: _scores(reranker, turn.query.text, texts))
        scores = ticket.result(turn.left) if ticket else None
        if scores is None:
            _log.warning("the reranker gave no answer (%s); the order stays", ticket.error if ticket else "busy")
            return
        turn.ranked = [turn.ranked[index] for index in sorted(range(len(texts)), key=lambda index: -scores[index])]

    def _mark_newest(self, turn: Turn) -> None:
        """Put what is newer in front of what it overtakes, and say so of the latter."""

        def look(turn: Turn) -> list[Overtaken]:
            with turn.read() as reader:
                return overtaken(reader, (each.fact for each in turn.ranked), turn.view)

        found = turn.tried(NEWEST, look)
        if not found:
            return
        order = in_order([each.id for each in turn.ranked], found)
        # What corrects a memory comes up with it, whatever was asked.
        turn.add(Candidate(each.newer, LINKS, turn.found[each.older].score) for each in found)
        facts = {each.id: each.fact for each in turn.ranked}
        for fact_id, mark in marks(facts, found, self.stale, self.store.zone).items():
            turn.found[fact_id].mark = mark
        turn.ranked = [turn.found[fact_id] for fact_id in order]

    def _block(self, turn: Turn, asked: Asked, count: CountTokens) -> tuple[str, list[Candidate]]:
        """Return the block of what came up, as far as it has room, and what stands in it."""
        options, now = self.options, turn.view.now if asked.as_of is None else asked.as_of
        for each in (*turn.ranked, *turn.passages):
            dress(each, options.format, options.summaries, now, self.store.zone, count)
        left = options.max_tokens - count(self._fenced((), turn))
        chosen: list[Candidate] = []
        # Facts first: they are what was worth keeping. Passages take what is left.
        for group, limit in ((turn.ranked, options.limit), (_saying_more(turn), options.passages)):
            fresh = [each for each in group if each.id not in asked.shown]
            # The place is not known yet; none has more digits than the last one.
            costs = [count(line(each, options.format, options.limit + options.passages)) + 1 for each in fresh]
            fitting = fit(costs, left, limit)
            left -= sum(costs[index] for index in fitting)
            for each in group:
                each.verdict = "already shown" if each.id in asked.shown else _OVER_BUDGET
            for index in fitting:
                fresh[index].verdict = _INJECTED
                chosen.append(fresh[index])
        block = self._fenced(chosen, turn)
        # The nonce and what a tokenizer makes of line ends can cost more than was counted for each alone.
        while chosen and count(block) > options.max_tokens:
            chosen.pop().verdict = _OVER_BUDGET
            block = self._fenced(chosen, turn)
        return block, newest_first(chosen)

    def _fenced(self, chosen: Sequence[Candidate], turn: Turn) -> str:
        """Return the block of these; where all of a kind is asked for, it says how many more there are."""
        form = self.options.format
        lines = [line(each, form, number) for number, each in enumerate(newest_first(chosen), 1)]
        more = sum(each.verdict == _OVER_BUDGET for each in turn.ranked) if turn.query.kind is not None else 0
        lines += [_MORE.format(more)] if more else []
        return render(lines, self.store.key, turn.session, form)


def _saying_more(turn: Turn) -> list[Candidate]:
    """Return the passages that say what no fact says already, and say so of the others."""
    found = turn.passages
    texts = [turn.options.summaries.shown(each.fact) for each in turn.ranked] if found else []
    known = [(text, frozenset(match_terms(text))) for text in texts]
    for each in found:
        text = each.memory.text
        words = frozenset(match_terms(text))
        if any(jaccard(words, other) >= _SAME and says_no_more(text, fact) for fact, other in known):
            each.verdict = "a fact says the same"
    return [each for each in found if not each.verdict]


Reranker = Callable[[str, Sequence[str]], Sequence[float]]
"""Gets the query and the texts in their order; returns a score for each, more is better."""

_log = logging.getLogger("perdure.recall")


def _scores(reranker: Reranker, query: str, texts: Sequence[str]) -> list[float]:
    try:
        scores = [float(score) for score in reranker(query, texts)]
    except Exception as error:
        raise ExtensionError(f"the reranker raised {type(error).__name__}") from error
    if len(scores) != len(texts) or not all(map(math.isfinite, scores)):
        raise ExtensionError(f"the reranker gave {len(scores)} scores for {len(texts)} texts, or some are no numbers")
    return scores


def _says(fact: Fact) -> Hashable:
    """Return what two memories that say the same have in common."""
    return said(fact.text), *map(folded_slot, (fact.entity, fact.key, fact.value))


def _typed_part(prompt: str, key: bytes, session: str | None) -> str:
    """Return what a person asks in a prompt; all of one that no person has typed."""
    text = strip_fenced(prompt, key, session)
    return typed(text) or text
