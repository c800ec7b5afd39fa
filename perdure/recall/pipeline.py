"""The steps of recall in their order: query, search, judge, what comes up whatever is asked, block, receipt."""

from __future__ import annotations

import logging
import math
import time
import uuid
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from perdure.clock import Clock
from perdure.errors import ExtensionError, StoreError
from perdure.hooks.types import Recall
from perdure.ranking.decay import OF_SESSION
from perdure.ranking.fuse import diverse, fit
from perdure.recall import past_failures
from perdure.recall.aliases import NAMES_ALONE, Speller, tells_names_alone
from perdure.recall.block import (
    Overtaken,
    Stale,
    already_told,
    dress,
    in_order,
    line,
    marks,
    name_shortly,
    newest_first,
    overtaken,
    render,
)
from perdure.recall.entities import spoken_of
from perdure.recall.expand import Expand, Expander
from perdure.recall.judge import IDLE, adjusted, judge_of, merge
from perdure.recall.kinds import anothers, owned
from perdure.recall.lane import Lane
from perdure.recall.options import (
    ABOUT,
    ALIASES,
    DATES,
    DIRECTIVE,
    IDS,
    LINKS,
    LOOKUP,
    NEWEST,
    PASSAGES,
    PROFILE,
    RecallOptions,
)
from perdure.recall.orders import UNCONFIRMED, unconfirmed
from perdure.recall.query import understand
from perdure.recall.receipt import Receipt
from perdure.recall.retrievers import Legs, PassageSource, token_counter
from perdure.recall.topics import idle
from perdure.recall.turn import Beside, Candidate, CountTokens, Find, Judge, Turn, VectorLeg
from perdure.recall.unasked import NO_EVIDENCE, Profile, bridging_names, dated, directed, linked
from perdure.speech.typed import typed
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.store import Store
from perdure.store.trust import AGENTS_NOTE, AUTO_RECALLED
from perdure.store.vocabulary import terms
from perdure.text.fence import strip_fenced
from perdure.text.sameness import said

_INJECTED = "injected"
_OVER_BUDGET = "over the budget"
_MORE = "and {} more, which the memory tools can find"
_ELSEWHERE = "transient, from another conversation"
_ANOTHERS = "about another person"
_LIKE_IT = "resembles the question but does not answer it"
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
    first_turn: bool = False  # whether it is the first prompt of a session that is looked up
    # Tells whether the model no longer sees all that was said in the session; None: there is no session.
    compacted: Callable[[], bool] | None = None
    shown: Collection[str] = ()  # ids of what the model still sees from earlier turns; it is not brought up again
    begun: Collection[str] = ()  # ids of what the session has begun with just before this very prompt
    ids: bool = False  # whether each memory has its short id behind it, for tools that take one
    expand: Expand = "no"  # whether the query is also asked in other words, and whether that may take its time
    beside: Beside | None = None  # what the model sees in any case


@dataclass(eq=False)
class Recaller:
    """Recalls for prompts. Usable from any thread."""

    store: Store
    options: RecallOptions
    vector_leg: Callable[[], VectorLeg | None]  # None while no model is loaded
    clock: Clock
    reranker: Reranker | None = None  # has a second look at what passed
    source: PassageSource | None = None  # brings passages of files and conversations
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
            (past_failures.LEG, past_failures.returned), (LOOKUP, spoken_of),
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
            compacted=asked.compacted,
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
            turn.seconds, (turn.lexical.by, turn.lexical.why), turn.judge, turn.query.aliases, turn.expansion,
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
        self._answer(turn)
        self._bring(turn, [(DIRECTIVE, lambda _: at_once), *self._unasked])
        turn.ranked.sort(key=lambda each: each.leg != PROFILE)
        _say_once(turn)
        self._mark_newest(turn)
        if turn.passages:
            from perdure.recall.passages import weigh

            turn.tried(PASSAGES, weigh)

    def _answer(self, turn: Turn) -> None:
        """Put what answers a question about memory itself in front of what was judged."""
        if turn.query.about is None:
            return
        from perdure.recall.answers import answers, is_all

        judged, turn.ranked = turn.ranked, []
        self._bring(turn, [(ABOUT, answers)])
        turn.states.setdefault(ABOUT, "ok")
        if not is_all(turn.query.about):
            turn.add(judged)
            return
        for each in judged:
            each.verdict = each.verdict or _LIKE_IT

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
            return self._sought(turn)
        # What comes too late to be searched for is of no use.
        soon = _EXPANSION_SHARE * turn.left
        began = time.monotonic()
        wordings = self.expander.begin(turn.query.text, expand, soon)
        waited = time.monotonic() - began
        turn.deadline += waited
        judge = self._sought(turn)
        turn.expansion = wordings(began + waited + soon)
        queries = map(understand, turn.expansion.wordings)
        others = [turn.asking(query) for query in queries if query.trivial is None]
        return merge(turn, judge, [(other, self._sought(other)) for other in others]) if others else judge

    def _sought(self, turn: Turn) -> Judge:
        """Search for what a turn asks, and return what judges it."""
        self._legs.search(turn)
        # Judged while passages are still looked for, which wait for the vector longer than facts do.
        judge = judge_of(turn)
        self._legs.take_passages(turn)
        return judge

    def _bring(self, turn: Turn, retrievers: Sequence[tuple[str, Find]]) -> None:
        """Have come up what these retrievers find, each behind those before it."""
        for name, find in retrievers:
            found = turn.tried(name, find) or ()
            # What the user asks of memory itself, or has set a rule for, is asked for.
            orders = unconfirmed(turn.read, (each.fact for each in found)) if name not in (ABOUT, DIRECTIVE) else ()
            turn.add(each for each in found if each.id not in orders)

    def _judged(self, turn: Turn, judge: Judge, text: str, by_directive: Collection[str]) -> list[Candidate]:
        """Return the facts that have evidence enough, best first, and say of the others what they failed at."""
        adjustments = set(self.options.adjustments)
        stems, owners = terms(text), owned(text)
        orders = unconfirmed(turn.read, (each.fact for each in turn.facts))
        here = {each.id for each in turn.facts if turn.compacted and each.fact.provenance_session == turn.session}
        in_sight = here if here and turn.compacted and not turn.compacted() else ()
        for each in turn.facts:
            each.in_sight = each.id in in_sight
            if anothers(owners, each.fact.text):
                each.verdict = _ANOTHERS
            elif each.id in orders:
                each.verdict = UNCONFIRMED
            elif each.fact.decay_class == OF_SESSION and each.fact.provenance_session not in (None, turn.session):
                each.verdict = _ELSEWHERE
            elif past_failures.is_of(each.fact, turn.session):
                each.verdict = past_failures.SEEN
            elif tells_names_alone(each.fact, stems, turn.query.aliases):
                each.verdict = NAMES_ALONE
            elif not judge.passes(each):
                each.verdict = NO_EVIDENCE
        ranked = judge.ranked(each for each in turn.facts if not each.verdict)
        # What the agent noted by itself makes nothing that others said too far from the best.
        kept = judge.near([each for each in ranked if not _is_note(each)])
        kept += filter(_is_note, judge.near(ranked))
        for each in set(ranked).difference(kept):
            each.verdict = "far below the best"
        unused = turn.tried(IDLE, lambda turn: idle(turn.store, (each.fact for each in kept))) or ()
        worth = {}
        for each in kept:
            names = adjustments if each.id in by_directive else adjustments - {DIRECTIVE}
            names = names | {IDLE} if each.id in unused and "salience" in adjustments else names
            fit_best = each.score
            each.score, each.factors = adjusted(fit_best, each.fact, turn.view.now, names)
            # Two that fit as well as can be still differ in it.
            worth[each.id] = fit_best * math.prod(each.factors.values())
        kept = sorted(kept, key=lambda each: (_is_note(each), -worth[each.id], each.id))
        return kept

    def _rerank(self, turn: Turn) -> None:
        """Put the facts in the order of the reranker; without a good answer in time they stay as they are."""
        reranker, texts = self.reranker, [each.fact.text for each in turn.ranked]
        if reranker is None or len(texts) < 2:
            return
        ticket = self._second_look.start(lambda: _scores(reranker, turn.query.text, texts))
        scores = ticket.result(turn.left) if ticket else None
        if scores is None:
            _log.warning("the reranker failed (%s); the order is unchanged", ticket.error if ticket else "busy")
            return
        turn.ranked = [turn.ranked[index] for index in sorted(range(len(texts)), key=lambda index: -scores[index])]

    def _mark_newest(self, turn: Turn) -> None:
        """Put what is newer in front of what it overtakes, and say so of the latter."""

        def look(turn: Turn) -> list[Overtaken]:
            with turn.read() as reader:
                found = overtaken(reader, (each.fact for each in turn.ranked), turn.view)
            orders = unconfirmed(turn.read, (each.newer for each in found))
            return [each for each in found if each.newer.id not in orders]

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
        known = dict.fromkeys(asked.shown, "already shown")
        if asked.beside is not None:
            known = {**already_told(asked.beside, (*turn.ranked, *turn.passages)), **known}
        for each in (*turn.ranked, *turn.passages):
            dress(each, options.format, options.summaries, now, self.store.zone, count)
        if asked.ids:
            self._name(turn)
        left = options.max_tokens - count(self._fenced((), turn, asked))
        chosen: list[Candidate] = []
        # What is asked of memory itself is told again, but not in the same breath.
        again = {each.id for each in turn.ranked if each.leg == ABOUT and each.id not in asked.begun}
        saying_more = [each for each in turn.passages if not each.verdict]
        # Facts first: they are what was worth keeping. Passages take what is left.
        for group, limit in ((turn.ranked, options.limit), (saying_more, options.passages)):
            fresh = [each for each in group if each.id not in known or each.id in again]
            # The place is not known yet; none has more digits than the last one.
            costs = [count(line(each, options.format, options.limit + options.passages)) + 1 for each in fresh]
            fitting = fit(costs, left, limit)
            left -= sum(costs[index] for index in fitting)
            for each in group:
                each.verdict = _OVER_BUDGET if each.id in again else known.get(each.id, _OVER_BUDGET)
            for index in fitting:
                fresh[index].verdict = _INJECTED
                chosen.append(fresh[index])
        block = self._fenced(chosen, turn, asked)
        # The nonce and what a tokenizer makes of line ends can cost more than was counted for each alone.
        while chosen and count(block) > options.max_tokens:
            chosen.pop().verdict = _OVER_BUDGET
            block = self._fenced(chosen, turn, asked)
        return block, newest_first(chosen)

    def _name(self, turn: Turn) -> None:
        def look(turn: Turn) -> None:
            with turn.read() as reader:
                name_shortly(turn.ranked, reader, turn.view)

        turn.tried(IDS, look)

    def _fenced(self, chosen: Sequence[Candidate], turn: Turn, asked: Asked) -> str:
        """Return the block of these; where all of a kind is asked for, or memory itself, it says how many are left."""
        form = self.options.format
        lines = [line(each, form, number) for number, each in enumerate(newest_first(chosen), 1)]
        of_kind = [each for each in turn.ranked if turn.query.kind is not None or each.leg == ABOUT]
        more = sum(each.verdict == _OVER_BUDGET for each in of_kind)
        lines += [_MORE.format(more)] if more else []
        lines += turn.notes
        return render(lines, self.store.key, turn.session, form, ids=asked.ids)


def _is_note(each: Candidate) -> bool:
    return each.fact.channel in AGENTS_NOTE


Reranker = Callable[[str, Sequence[str]], Sequence[float]]
"""Gets the query and the texts in their order; returns a score for each, more is better."""

_log = logging.getLogger("perdure.recall")


def _scores(reranker: Reranker, query: str, texts: Sequence[str]) -> list[float]:
    try:
        scores = [float(score) for score in reranker(query, texts)]
    except Exception as error:
        raise ExtensionError(f"the reranker raised {type(error).__name__}") from error
    if len(scores) != len(texts) or not all(map(math.isfinite, scores)):
        raise ExtensionError(f"the reranker returned {len(scores)} scores for {len(texts)} texts, or not only numbers")
    return scores


def _say_once(turn: Turn) -> None:
    """Leave out what says the same as a better memory, whatever brought both up: the model reads their words alone."""
    again = diverse((each.id, said(each.fact.text)) for each in turn.ranked)
    for fact_id, verdict in again.items():
        turn.found[fact_id].verdict = verdict
    turn.ranked = [each for each in turn.ranked if each.id not in again]


def _typed_part(prompt: str, key: bytes, session: str | None) -> str:
    """Return what a person asks in a prompt; all of one that no person has typed."""
    text = strip_fenced(prompt, key, session)
    return typed(text) or text
