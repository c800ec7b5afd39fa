"""The steps of recall in their order: query, legs, sift, fuse, adjust, diverse, budget, block, receipt."""

from __future__ import annotations

import logging
import math
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from math import prod

from perdure.clock import Clock
from perdure.errors import ExtensionError, StoreError
from perdure.hooks.types import Recall, RecallItem
from perdure.ranking.adjust import Standing, adjusted
from perdure.ranking.decay import DAY, OF_SESSION, confidence_at
from perdure.ranking.fuse import Fused, Shown, diverse, fit, jaccard, relative_cut
from perdure.recall.aliases import Speller, set_aside
from perdure.recall.block import Entry, Stale, entry_of, in_order, indexed, line, marks, newest_first, overtaken, render
from perdure.recall.expand import Expand, Expander, merged
from perdure.recall.options import DATES, DIRECTIVE, LINKS, NEWEST, PROFILE, PROGRESSIVE, RecallOptions
from perdure.recall.persons import anothers, owned
from perdure.recall.query import Query, understand
from perdure.recall.receipt import Receipt
from perdure.recall.retrievers import NO_EVIDENCE, CountTokens, Found, Legs, Source, VectorLeg, token_counter
from perdure.recall.slot import Slot
from perdure.recall.unasked import Profile, colliding, facts_of, matching, reread, standing
from perdure.speech.typed import typed
from perdure.store.fact import Fact, folded_slot
from perdure.store.links import related
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.store import Store
from perdure.store.trust import AUTO_RECALLED
from perdure.text.fence import strip_fenced
from perdure.text.normalise import match_terms
from perdure.text.sameness import said, says_no_more

LINKED = 3
LINK_SHARE = 0.5
"""So many facts that links lead to come up, each with this share of the score for every step."""
NOT_FOLLOWED = frozenset({"SUPERSEDES", "CONTRADICTS", "CORRECTS"})
SAME = 0.6
"""A passage that shares so much of its words (Jaccard) with a fact, and has no detail more, says the same."""
OVER_BUDGET = "over the budget"
MORE = "and {} more, which memory_recall finds"
ELSEWHERE = "of the moment in another conversation"
ANOTHERS = "about another person"
LOADING_SHARE = 0.75
"""Of a turn's time, for which the first recall waits for the model."""
EXPANSION_SHARE = 0.6
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
    # Nothing is asked yet; what stands whatever is asked is to come up, standing preferences with it.
    opening: bool = False


@dataclass(frozen=True, slots=True)
class Ranked:
    """A fact that may be brought up: what found it, and how well it fits."""

    fact: Fact
    leg: str
    score: float


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
        self._legs = Legs(self.store, self.options.candidates, self.source)
        self._second_look = Slot("reranker")
        self._profile = Profile()

    def recall(
        self, prompt: str, audience: Audience, *, session: str | None = None, asked: Asked = Asked()
    ) -> tuple[Recall | None, Receipt]:
        """Return what the model should see for a prompt, or None for silence, and the receipt."""
        began = time.monotonic()
        now = self.clock.now()
        query = understand(_asked(prompt, self.store.key, session))
        receipt = Receipt(str(uuid.uuid4()), session, now, query.text, silence=query.trivial)
        deadline = began + self.options.deadline
        view = View(
            audience, now, as_of=asked.as_of, include_superseded=asked.include_superseded, tag=asked.tag,
            channels=AUTO_RECALLED, approved_only=True,
        )  # fmt: skip
        with ExitStack() as stack:
            # Where the store cannot be read, each step says so of itself.
            with suppress(StoreError):
                stack.enter_context(self.store.database.reading(deadline=deadline))
            recall = self._recalled(query, view, session, asked, deadline, receipt)
        receipt.seconds = time.monotonic() - began
        return recall, receipt

    def _recalled(
        self, query: Query, view: View, session: str | None, asked: Asked, deadline: float, receipt: Receipt
    ) -> Recall | None:
        if asked.opening:
            receipt.silence = None
            directed = self._guarded(DIRECTIVE, receipt, lambda: self._directed(query, view, True, deadline))
            standing = self._guarded(PROFILE, receipt, lambda: self._standing(view, session, deadline, opening=True))
            first = _new(directed, [], receipt)
            return self._block([*first, *_new(standing, first, receipt)], {}, receipt, asked, token_counter(None))
        if query.trivial is not None:
            return None
        # Who asks for a tag has said what it is about: words are enough, and nothing is embedded.
        leg = None if asked.tag is not None else self._leg()
        query = self._speller.spell(query, view.audience, view.now, deadline, receipt)
        receipt.found, deadline = self._searched(query, view, leg, deadline, session, asked.expand, receipt)
        directed = self._guarded(DIRECTIVE, receipt, lambda: self._directed(query, view, asked.first_turn, deadline))
        ranked = self._ranked(receipt.found, receipt, view.now, {each.fact.id for each in directed})
        ranked = self._reranked(ranked, query.text, deadline)
        ranked += _new(directed, ranked, receipt)
        ranked += self._guarded(DATES, receipt, lambda: self._colliding(query, ranked, view, receipt, deadline))
        ranked += self._guarded(LINKS, receipt, lambda: self._linked(ranked, view, receipt, deadline))
        bridges = self._speller.bridges((each.fact for each in ranked), view, deadline, receipt)
        ranked += _new([Ranked(fact, LINKS, 0.0) for fact in bridges], ranked, receipt)
        profile = self._guarded(PROFILE, receipt, lambda: self._standing(view, session, deadline))
        ranked, marked = self._newest([*_new(profile, ranked, receipt), *ranked], view, receipt, deadline)
        return self._block(ranked, marked, receipt, asked, token_counter(leg), counted=query.kind is not None)

    def foresee(self, prompt: str, audience: Audience, session: str | None = None) -> None:
        """Do what the prompt alone decides, before the recall: embed it. Leaves nothing behind that could be seen."""
        query = understand(_asked(prompt, self.store.key, session))
        leg = self.vector_leg()
        if leg is not None and query.trivial is None:
            deadline = time.monotonic() + self.options.deadline
            self._legs.foresee(self._speller.spell(query, audience, self.clock.now(), deadline), leg, deadline)

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
            loaded(LOADING_SHARE * self.options.deadline)
            leg = self.vector_leg()
        return leg

    def _searched(
        self, query: Query, view: View, leg: VectorLeg | None, deadline: float, session: str | None, expand: Expand,
        receipt: Receipt,
    ) -> tuple[Found, float]:  # fmt: skip
        """Return what the query and its other wordings find, and the deadline, put off by what had to be waited."""
        if self.expander is None or expand == "no" or view.tag is not None:
            return self._legs.search(query, view, leg, deadline, session), deadline
        # What comes too late to be searched for is of no use.
        soon = EXPANSION_SHARE * (deadline - time.monotonic())
        pending = self.expander.begin(query.text, expand, soon)
        latest = time.monotonic() + soon
        deadline += pending.waited
        found = self._legs.search(query, view, leg, deadline, session)
        receipt.expansion = pending.take(latest)
        others = [understand(wording) for wording in receipt.expansion.wordings]
        more = [self._legs.search(other, view, leg, deadline, session) for other in others if other.trivial is None]
        return (merged(found, more, found.gate_at(self.options.threshold)) if more else found), deadline

    def _guarded(self, leg: str, receipt: Receipt, find: Callable[[], list[Ranked]]) -> list[Ranked]:
        """Return what a leg finds; one that the database keeps waiting is left out."""
        try:
            return find()
        except StoreError as error:
            receipt.states[leg] = type(error).__name__
            return []

    def _ranked(self, found: Found, receipt: Receipt, now: float, directed: Collection[str]) -> list[Ranked]:
        gate = found.gate_at(self.options.threshold)
        receipt.threshold = gate.threshold if found.judged else None
        aside = set_aside(receipt, found.facts)
        aside |= {fact.id: ELSEWHERE for fact in found.facts.values() if _is_elsewhere(fact, receipt.session)}
        owners = owned(receipt.query)
        aside |= {fact.id: ANOTHERS for fact in found.facts.values() if anothers(owners, fact.text)}
        there = found.passing(gate) - aside.keys()
        receipt.verdicts.update({**dict.fromkeys(found.facts.keys() - there, NO_EVIDENCE), **aside})
        ranked = found.ranked(there, self.options.weights)
        # A probability says by itself whether a memory helps, however far another one helps more.
        kept = ranked if found.judged else relative_cut(ranked, self.options.relative_cut)
        near = {item.id for item in kept}
        receipt.verdicts.update({item.id: "far below the best" for item in ranked if item.id not in near})
        receipt.scores.update({item.id: item.score for item in ranked})
        worth = {
            item.id: self._adjusted(item, _standing_of(found.facts[item.id], now, item.id in directed), receipt)
            for item in kept
        }
        kept = sorted(kept, key=lambda item: (-worth[item.id], item.id))
        gone = diverse([_shown_of(found.facts[item.id]) for item in kept])
        receipt.verdicts.update(gone)
        return [Ranked(found.facts[item.id], item.leg, receipt.scores[item.id]) for item in kept if item.id not in gone]

    def _adjusted(self, fused: Fused, standing_of: Standing, receipt: Receipt) -> float:
        """Return what a fact is ordered by; two that fit as well as can be still differ in it."""
        score, factors = adjusted(fused.score, standing_of, self.options.adjustments)
        receipt.scores[fused.id] = score
        receipt.factors[fused.id] = factors
        return fused.score * prod(factors.values())

    def _reranked(self, ranked: list[Ranked], query: str, deadline: float) -> list[Ranked]:
        """Return the facts in the order of the reranker; without a good answer in time they stay as they are."""
        reranker, texts = self.reranker, [each.fact.text for each in ranked]
        if reranker is None or len(texts) < 2:
            return ranked
        ticket = self._second_look.start(lambda: _scores(reranker, query, texts))
        scores = ticket.result(deadline - time.monotonic()) if ticket else None
        if scores is None:
            _log.warning("the reranker gave no answer (%s); the order stays", ticket.error if ticket else "busy")
            return ranked
        return [ranked[index] for index in sorted(range(len(ranked)), key=lambda index: -scores[index])]

    def _linked(self, ranked: list[Ranked], view: View, receipt: Receipt, deadline: float) -> list[Ranked]:
        """Return facts that links lead to from those that passed."""
        if not ranked or not self.options.link_depth or view.tag is not None:
            return []
        seeds = {each.fact.id: each.score for each in ranked}
        with self.store.database.read(deadline=deadline) as connection:
            reached = related(connection, seeds, view, self.options.link_depth)
        best = max(seeds.values())
        linked = [
            Ranked(each.fact, LINKS, best * each.link.strength * LINK_SHARE**each.depth)
            for each in reached
            if each.link.type not in NOT_FOLLOWED and receipt.verdicts.get(each.fact.id) in (None, NO_EVIDENCE)
        ]
        linked = sorted(linked, key=lambda each: (-each.score, each.fact.id))[:LINKED]
        receipt.scores.update({each.fact.id: each.score for each in linked})
        receipt.linked.update({each.fact.id: each.fact for each in linked})
        return linked

    def _directed(self, query: Query, view: View, first_turn: bool, deadline: float) -> list[Ranked]:
        """Return what the prompt's directives bring up, whatever a search finds."""
        wanted = matching(self.options.directives, frozenset(query.terms), query.text, first_turn)
        if not wanted or view.tag is not None:
            return []
        with self.store.database.read(deadline=deadline) as connection:
            facts = [fact for each in wanted for fact in facts_of(connection, each, view)]
        return [Ranked(fact, DIRECTIVE, 1.0) for fact in {fact.id: fact for fact in facts}.values()]

    def _colliding(
        self, query: Query, ranked: list[Ranked], view: View, receipt: Receipt, deadline: float
    ) -> list[Ranked]:
        """Return what stands on a day that the prompt names."""
        if view.tag is not None or view.as_of is not None:
            return []
        with self.store.database.read(deadline=deadline) as connection:
            facts = colliding(connection, query.text, view, self.store.zone)
        return _new([Ranked(fact, DATES, 0.0) for fact in facts], ranked, receipt)

    def _standing(self, view: View, session: str | None, deadline: float, *, opening: bool = False) -> list[Ranked]:
        """Return what is kept in mind whatever is asked."""
        options = self.options
        if options.profile == "off" or view.tag is not None or view.as_of is not None:
            return []
        with self.store.database.read(deadline=deadline) as connection:
            ids = self._profile.for_session(
                f"{view.audience.home}\0{session}" if session else None,
                lambda: [
                    fact
                    for fact in standing(connection, view, options.profile_limit)
                    if fact.pinned or opening or options.profile == "standing"
                ],
            )
            facts = reread(connection, ids, view)
        return [Ranked(fact, PROFILE, 1.0) for fact in facts]

    def _newest(
        self, ranked: list[Ranked], view: View, receipt: Receipt, deadline: float
    ) -> tuple[list[Ranked], dict[str, str]]:
        """Return the facts with what is newer in front of what it overtakes, and what is said of the latter."""
        try:
            with self.store.database.read(deadline=deadline) as connection:
                found = overtaken(connection, (each.fact for each in ranked), view)
        except StoreError as error:
            receipt.states[NEWEST] = type(error).__name__
            return ranked, {}
        there = {each.fact.id: each for each in ranked}
        for each in found:
            # What corrects a memory comes up with it, whatever was asked.
            newer = Ranked(each.newer, LINKS, there[each.older].score)
            for fresh in _new([newer], list(there.values()), receipt):
                there[fresh.fact.id] = fresh
        facts = {fact_id: each.fact for fact_id, each in there.items()}
        order = in_order([each.fact.id for each in ranked], found)
        return [there[fact_id] for fact_id in order], marks(facts, found, self.stale, self.store.zone)

    def _block(
        self, ranked: list[Ranked], marked: Mapping[str, str], receipt: Receipt, asked: Asked, count: CountTokens,
        *, counted: bool = False,
    ) -> Recall | None:  # fmt: skip
        """Return the block of what was ranked, as far as it has room; if `counted`, it says how many more there are."""

        def fenced(entries: Sequence[Entry]) -> str:
            more = sum(receipt.verdicts.get(each.item.id) == OVER_BUDGET for each in facts) if counted else 0
            return self._fenced(entries, receipt, more)

        options, form = self.options, self.options.format
        now = receipt.at if asked.as_of is None else asked.as_of
        facts = [
            replace(
                entry_of(each.fact, each.leg, each.score, self._text(each.fact), form, now, self.store.zone, count),
                mark=marked.get(each.fact.id, ""),
            )
            for each in ranked
        ]
        passages = self._passages(receipt, [each.fact for each in ranked], count)
        left = options.max_tokens - count(self._fenced((), receipt))
        entries: list[Entry] = []
        # Facts first: they are what was worth keeping. Passages take what is left.
        for group, limit in ((facts, options.limit), (passages, options.passages)):
            receipt.verdicts.update({each.item.id: "already shown" for each in group if each.item.id in asked.shown})
            fresh = [each for each in group if each.item.id not in asked.shown]
            # The place is not known yet; none has more digits than the last one.
            costs = [count(line(each, form, options.limit + options.passages)) + 1 for each in fresh]
            chosen = fit(costs, left, limit)
            left -= sum(costs[index] for index in chosen)
            for index, each in enumerate(fresh):
                receipt.verdicts[each.item.id] = "injected" if index in chosen else OVER_BUDGET
            entries += [fresh[index] for index in chosen]
        said = {each.fact.id: each.fact.effective_date for each in ranked if each.leg != PROFILE}
        block = fenced(newest_first(entries, said))
        # The nonce and what a tokenizer makes of line ends can cost more than was counted for each alone.
        while entries and count(block) > options.max_tokens:
            receipt.verdicts[entries.pop().item.id] = OVER_BUDGET
            block = fenced(newest_first(entries, said))
        if not entries:
            return None
        receipt.tokens, receipt.size = count(block), len(block.encode())
        items = tuple(each.item for each in newest_first(entries, said))
        return Recall(block, items, receipt.id, options.placement)

    def _fenced(self, entries: Sequence[Entry], receipt: Receipt, more: int = 0) -> str:
        form = self.options.format
        lines = [line(entry, form, number) for number, entry in enumerate(entries, 1)]
        lines += [MORE.format(more)] if more else []
        return render(lines, self.store.key, receipt.session, form)

    def _passages(self, receipt: Receipt, facts: list[Fact], count: CountTokens) -> list[Entry]:
        """Return the passages that say what no fact says already."""
        found = receipt.found.passages if receipt.found else ()
        known = [(text, frozenset(match_terms(text))) for text in map(self._text, facts)] if found else []
        entries = []
        for passage in found:
            receipt.scores[passage.id] = passage.score
            words = frozenset(match_terms(passage.text))
            if any(jaccard(words, other) >= SAME and says_no_more(passage.text, text) for text, other in known):
                receipt.verdicts[passage.id] = "a fact says the same"
            else:
                item = RecallItem(passage.id, passage.text, passage.about, passage.leg, passage.score)
                brief = indexed(item, count) if self.options.format == PROGRESSIVE else None
                entries.append(brief or Entry(item))  # its day stands in front of it
        return entries

    def _text(self, fact: Fact) -> str:
        return self.options.summaries.shown(fact)


def _new(found: list[Ranked], ranked: list[Ranked], receipt: Receipt) -> list[Ranked]:
    """Return what is not among the ranked already, and note it for the receipt."""
    there = {each.fact.id for each in ranked}
    fresh = [each for each in found if each.fact.id not in there]
    receipt.linked.update({each.fact.id: each.fact for each in fresh})
    receipt.scores.update({each.fact.id: each.score for each in fresh})
    return fresh


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


def _is_elsewhere(fact: Fact, session: str | None) -> bool:
    return fact.decay_class == OF_SESSION and fact.provenance_session not in (None, session)


def _standing_of(fact: Fact, now: float, directive: bool) -> Standing:
    """Return what counts of a memory beside how well it fits."""
    confirmed = fact.last_confirmed_at or fact.created_at
    return Standing(
        fact.importance,
        confidence_at(fact.confidence, confirmed, fact.expires_at, now),
        fact.access_count + fact.reinforced_count,
        max(0.0, now - fact.effective_date) / DAY,
        None if fact.expires_at is None else max(0.0, fact.expires_at - now) / DAY,
        fact.decay_class,
        directive,
    )


def _shown_of(fact: Fact) -> Shown:
    """Return what tells two memories apart that say the same."""
    return Shown(fact.id, (said(fact.text), *map(folded_slot, (fact.entity, fact.key, fact.value))))


def _asked(prompt: str, key: bytes, session: str | None) -> str:
    """Return what a person asks in a prompt; all of one that no person has typed."""
    text = strip_fenced(prompt, key, session)
    return typed(text) or text
