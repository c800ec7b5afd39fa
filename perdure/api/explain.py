"""Why a memory came up in a turn, or did not, read from the receipt of its recall; and when it ends, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from perdure.capture.lifetimes import lifetime
from perdure.errors import NotFoundError
from perdure.ranking.decay import OLD_AGE, REFRESHED_BY_USE, expiry
from perdure.recall.options import RecallOptions
from perdure.recall.receipt import Receipt
from perdure.store import receipts, search
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.sql import Connection
from perdure.store.store import Store
from perdure.store.trust import AUTO_RECALLED
from perdure.text.pluralize import counted
from perdure.text.timestamps import day_of

INJECTED = "injected"
NO_EVIDENCE = "no evidence"
MIN_PREFIX = 8


@dataclass(frozen=True, slots=True)
class Considered:
    """A memory or passage that a turn considered.

    Attributes:
        id: of the fact, or where the passage stands.
        text: of the fact as it was then, if it may still be seen; "" for a passage and for what is gone.
        verdict: "injected", or why not.
        score: fused and adjusted for facts, absolute for passages.
        cosine: of the prompt and the fact; None without a vector.
        coverage: share of the prompt's weighted words that the fact holds.
        legs: per leg, its raw score.
        factors: what the adjustments multiplied the score by.
        gone: whether it was a fact that was purged since, or that the caller may see no more.
        probability: that it helps; None where no model judged it.
        reasons: the features that moved the log-odds of that most, with how far (docs/model.md).
    """

    id: str
    text: str
    verdict: str
    score: float
    cosine: float | None = None
    coverage: float = 0.0
    legs: Mapping[str, float] | None = None
    factors: Mapping[str, float] | None = None
    gone: bool = False
    probability: float | None = None
    reasons: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Why:
    """A turn's recall, explained.

    Attributes:
        turn: the receipt's id.
        at: epoch seconds.
        query: what was asked, redacted.
        silence: why nothing was looked for, or None.
        floor: the cosine from which a hit was evidence; None without a model, and where one judged them.
        threshold: the probability from which a memory came up; None where no model judged them.
        legs: per leg, its state and seconds.
        expansion: what was added to the question ("wordings"), or why nothing was ("state"); empty without a model.
        considered: best first.
        aliases: memories by which other names were asked for as well, those that may still be seen: their texts.
        tokens, seconds: of the block, of the recall.
    """

    turn: str
    at: float
    query: str
    silence: str | None
    floor: float | None
    legs: Mapping[str, Any]
    considered: tuple[Considered, ...]
    tokens: int
    seconds: float
    expansion: Mapping[str, Any]
    threshold: float | None = None
    aliases: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Ending:
    """How long a memory lives, in epoch seconds and in a few words; None: it never ends.

    It counts half as certain from `fades_at` on. `words` are those of its text that say so; None: it was given its end.
    """

    at: float | None
    fades_at: float | None
    words: str | None
    told: str


def why(store: Store, view: View, turn: str | Receipt | None = None) -> Why:
    """Return a turn's recall, explained.

    Args:
        store: the truth.
        view: who asks.
        turn: the receipt's id or its first eight characters; a receipt that was never written; None: the last turn.

    Raises:
        NotFoundError: there is no such turn.
    """
    with store.database.read() as connection:
        if isinstance(turn, Receipt):
            # What the body says of the options is of no interest here.
            receipt_id, at, body = turn.id, turn.at, turn.body(RecallOptions())
        else:
            receipt_id, at, body = _receipt(connection, view.audience, turn)
        candidates = body.get("candidates", [])
        ids = [candidate["id"] for candidate in candidates]
        told = body.get("aliases", [])
        facts = search.by_ids(connection, [*ids, *told], replace(view, everything=True))
    considered = tuple(_considered(candidate, facts) for candidate in candidates)
    gate = body.get("gate", {})
    return Why(
        receipt_id, at, body["query"], body.get("silence"), gate.get("floor"), body.get("legs", {}), considered,
        body.get("tokens", 0), body.get("seconds", 0.0), body.get("expansion", {}), gate.get("threshold"),
        tuple(facts[fact_id].text for fact_id in told if fact_id in facts),
    )  # fmt: skip


def why_not(store: Store, view: View, fact_id: str, turn: str | Receipt | None = None) -> str:
    """Return in a sentence why a memory did not come up in a turn, or that it did.

    Raises:
        NotFoundError, AmbiguousIdError: the turn or the memory is not there.
    """
    explained = why(store, view, turn)
    prefix = fact_id.strip().lower()
    gone = [each for each in explained.considered if each.gone and each.id.startswith(prefix)]
    if len(prefix) >= MIN_PREFIX and len(gone) == 1:
        return f"its text is gone, purged since then or out of sight; its verdict in that turn was: {gone[0].verdict}"
    fact = store.database.query(search.by_prefix, fact_id, replace(view, everything=True))
    known = next((each for each in explained.considered if each.id == fact.id), None)
    if known is not None and known.verdict == INJECTED:
        return f"it did come up, with a score of {known.score:.2f}"
    hidden = _hidden(fact, explained.at)
    if hidden:
        return hidden
    if explained.silence:
        return f"nothing was looked for: {explained.silence}"
    if known is None:
        return "neither its words nor its meaning came near the prompt: it was not among the candidates"
    return _verdict(known, explained)


def silence(explained: Why) -> str | None:
    """Return in a sentence why a recall brought nothing at all; None if it brought something."""
    if explained.silence:
        return f"nothing was looked for: {explained.silence}"
    if any(each.verdict == INJECTED for each in explained.considered):
        return None
    if not explained.considered:
        return "no memory shares a word with the prompt or comes near its meaning"
    reasons = dict.fromkeys(each.verdict for each in explained.considered if each.verdict != NO_EVIDENCE)
    if reasons:
        return f"what fits the prompt was left out: {'; '.join(reasons)}"
    nearest = max(explained.considered, key=lambda each: (each.probability or 0.0, each.cosine or 0.0, each.coverage))
    return f"{counted(len(explained.considered), 'memory')} looked at, none with evidence; the nearest: " + _measures(
        nearest, explained
    )


def ending(fact: Fact, now: float) -> Ending:
    """Return when a memory ends, and why, such as "until 2026-12-01, as it says 'until December'"."""
    if fact.expires_at is None:
        return Ending(None, None, None, "for good")
    confirmed = fact.last_confirmed_at or fact.created_at
    fades = confirmed + OLD_AGE * (fact.expires_at - confirmed)
    own = lifetime(fact.text, fact.effective_date, fact.key, fact.zone)
    if own.words is not None and own.decay_class == fact.decay_class:
        words, why = own.words, f"as it says '{own.words}'"
    elif expiry(fact.decay_class, confirmed, fact.decay_freeze_until) is None:
        words, why = None, "an end that it was given"
    else:
        words, why = None, f"as the class '{fact.decay_class}' it was given says"
    if fact.decay_class in REFRESHED_BY_USE and fact.expires_at > now:
        why += "; each use puts it off"
    fading = f"; fades since {day_of(fades, fact.zone)}" if fades < now < fact.expires_at else ""
    return Ending(fact.expires_at, fades, words, f"until {day_of(fact.expires_at, fact.zone)}, {why}{fading}")


def _verdict(known: Considered, explained: Why) -> str:
    match known.verdict:
        case "no evidence":
            return f"{NO_EVIDENCE}: {_measures(known, explained)}"
        case "far below the best":
            best = max(each.score for each in explained.considered)
            return f"far below the best: its score is {known.score:.2f}, that of the best {best:.2f}"
        case "over the budget":
            return f"over the budget: better ones took the room ({explained.tokens} tokens), or are as many as may come"
        case "already shown":
            return "already shown in this conversation, where the model still sees it"
    return known.verdict


def _measures(known: Considered, explained: Why) -> str:
    words = f"share of the prompt's words {known.coverage:.2f}"
    if known.cosine is None:
        return words
    if known.probability is not None and explained.threshold is not None:
        told = f"probability {known.probability:.2f}, {explained.threshold:.2f} was needed"
        return f"{words}; cosine {known.cosine:.2f}; {told}"
    needed = "" if explained.floor is None else f", {explained.floor:.2f} was needed"
    return f"{words}; cosine {known.cosine:.2f}{needed}"


def _receipt(connection: Connection, audience: Audience, turn: str | None) -> tuple[str, float, Mapping[str, Any]]:
    wanted = receipts.latest(connection, audience) if turn is None else receipts.by_prefix(connection, turn, audience)
    kept = receipts.whole(connection, wanted, audience) if wanted else None
    if kept is None:
        if turn is None:
            raise NotFoundError("no turn of this caller was recorded yet; a host's turn with a recall is the first")
        raise NotFoundError(f"this caller has no turn {turn[:40]!r}; name none for the last one")
    return kept.id, kept.at, kept.body


def _considered(candidate: Mapping[str, Any], facts: Mapping[str, Fact]) -> Considered:
    fact = facts.get(candidate["id"])
    return Considered(
        candidate["id"],
        fact.text if fact else "",
        candidate["verdict"],
        candidate["score"],
        candidate.get("cosine"),
        candidate.get("coverage", 0.0),
        candidate.get("legs"),
        candidate.get("factors"),
        # Only what was a fact has a place in the journal.
        gone=fact is None and "change_seq" in candidate,
        probability=candidate.get("probability"),
        reasons=candidate.get("reasons"),
    )


def _hidden(fact: Fact, at: float) -> str | None:
    if fact.created_at > at:
        return "it was stored after that turn"
    if fact.forgotten_at is not None and fact.forgotten_at <= at:
        return "it is forgotten; bring it back: perdure unforget " + fact.id[:MIN_PREFIX]
    if fact.superseded_at is not None and fact.superseded_at <= at:
        return f"it was superseded by {fact.superseded_by}" if fact.superseded_by else "it was withdrawn"
    if fact.expires_at is not None and fact.expires_at <= at:
        return "it had expired"
    if fact.review_state != "approved":
        return f"its review is {fact.review_state}"
    if fact.channel not in AUTO_RECALLED:
        return f"what came in by the channel {fact.channel} comes up when it is asked for, never by itself"
    return None
