"""Why a memory came up in a turn, or did not, read from the receipt of its recall; and when it ends, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from perdure.capture.lifetimes import lifetime
from perdure.errors import NotFoundError
from perdure.ranking.decay import OLD_AGE, REFRESHED_BY_USE, expiry
from perdure.recall.options import ABOUT, VECTOR, RecallOptions
from perdure.recall.receipt import Receipt
from perdure.recall.retrievers import NOT_LOADED
from perdure.store import receipts, search, triggers
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.short_ids import MIN_PREFIX, is_named
from perdure.store.sql import Connection
from perdure.store.store import Store
from perdure.store.trust import AUTO_RECALLED
from perdure.text.pluralize import counted
from perdure.text.timestamps import day_of

INJECTED = "injected"
RECALLED = "it did come up"
"""How the answer to why a memory did not come up begins where it did."""
NO_EVIDENCE = "no evidence"


@dataclass(frozen=True, slots=True)
class Considered:
    """A memory or passage that a turn considered.

    Attributes:
        id: the memory's id, or the location of the passage.
        text: the memory's text at that time, if still visible; "" for a passage and for what is gone.
        verdict: "injected", or why not.
        score: fused and adjusted for memories, absolute for passages.
        cosine: similarity of prompt and memory; None without a vector.
        coverage: share of the prompt's weighted words that the memory contains.
        legs: raw score by retriever.
        factors: the adjustments that the score was multiplied by.
        gone: whether it is a memory that was purged since, or is no longer visible to the caller.
        probability: estimated relevance; None where no model judged it.
        reasons: the features that moved its log-odds most, and by how much (docs/model.md).
        trigger: the trigger that was nearer to the prompt than the memory itself; "": none was, or it is gone.
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
    trigger: str = ""


@dataclass(frozen=True, slots=True)
class Why:
    """A turn's recall, explained.

    Attributes:
        turn: the receipt's id.
        at: epoch seconds.
        query: the prompt, redacted.
        silence: why nothing was searched, or None.
        floor: minimum cosine of a hit; None without a model, and where a model judged them.
        threshold: minimum probability of a memory that comes up; None where no model judged them.
        legs: by retriever, its state and seconds; for keywords also the index used ("index"), and why ("why").
        expansion: rewordings of the query ("wordings"), or why there are none ("state"); empty without a model.
        considered: best first.
        aliases: texts of the memories that gave aliases to search for, where still visible.
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
    """When a memory expires, in epoch seconds and in a few words; None: never.

    Its confidence is halved after `fades_at`. `words` are the words of its text that say so; None: its end was set.
    """

    at: float | None
    fades_at: float | None
    words: str | None
    told: str


def why(store: Store, view: View, turn: str | Receipt | None = None, *, looks: bool = False) -> Why:
    """Return a turn's recall, explained.

    Args:
        store: the store.
        view: what the caller may read.
        turn: the receipt's id or its first eight characters; a receipt that was never written; None: the last turn.
        looks: whether a preview counts as a turn, such as one by `perdure recall`.

    Raises:
        NotFoundError: there is no such turn.
    """
    with store.database.read() as connection:
        if isinstance(turn, Receipt):
            # What the body says of the options is of no interest here.
            receipt_id, at, body = turn.id, turn.at, turn.body(RecallOptions())
        else:
            receipt_id, at, body = _receipt(connection, view.audience, turn, looks)
        candidates = body.get("candidates", [])
        ids = [candidate["id"] for candidate in candidates]
        told = body.get("aliases", [])
        facts = search.by_ids(connection, [*ids, *told], replace(view, everything=True))
        aimed = [each["id"] for each in candidates if "trigger" in each and each["id"] in facts]
        texts = {each.id: each.text for some in triggers.of(connection, aimed).values() for each in some}
    considered = tuple(_considered(each, facts, texts.get(each.get("trigger"), "")) for each in candidates)
    gate = body.get("gate", {})
    return Why(
        receipt_id, at, body["query"], body.get("silence"), gate.get("floor"), body.get("legs", {}), considered,
        body.get("tokens", 0), body.get("seconds", 0.0), body.get("expansion", {}), gate.get("threshold"),
        tuple(facts[fact_id].text for fact_id in told if fact_id in facts),
    )  # fmt: skip


def why_not(store: Store, view: View, fact_id: str, turn: str | Receipt | None = None, *, looks: bool = False) -> str:
    """Return in a sentence why a memory did not come up in a turn, or that it did; `looks` as for `why`.

    Raises:
        NotFoundError, AmbiguousIdError: the turn or the memory is not there.
    """
    explained = why(store, view, turn, looks=looks)
    gone = [each for each in explained.considered if is_named(each.id, fact_id) and each.gone]
    if len(gone) == 1:
        return f"its text is purged or not visible to the caller; its verdict in that turn was: {gone[0].verdict}"
    fact = store.database.query(search.by_prefix, fact_id, replace(view, everything=True))
    known = next((each for each in explained.considered if each.id == fact.id), None)
    if known is not None and known.verdict == INJECTED:
        return f"{RECALLED}, with a score of {known.score:.2f}"
    hidden = _hidden(fact, explained.at)
    if hidden:
        return hidden
    if explained.silence:
        return f"nothing was searched for ({explained.silence})"
    if known is None:
        near = "it was not a candidate: neither its words nor its meaning are close to the prompt"
        return near + _blind(explained)
    return _verdict(known, explained)


def silence(explained: Why) -> str | None:
    """Return in a sentence why a recall brought nothing up; None if it brought something."""
    if explained.silence:
        return f"nothing was searched for ({explained.silence})"
    if any(each.verdict == INJECTED for each in explained.considered):
        return None
    asked = explained.legs.get(ABOUT, {}).get("state", "ok")
    if asked != "ok":
        return str(asked)
    if not explained.considered:
        return "no memory shares a word with the prompt or is close to its meaning" + _blind(explained)
    reasons = dict.fromkeys(each.verdict for each in explained.considered if each.verdict != NO_EVIDENCE)
    if reasons:
        return f"matching memories were rejected: {'; '.join(reasons)}"
    nearest = max(explained.considered, key=lambda each: (each.probability or 0.0, each.cosine or 0.0, each.coverage))
    return f"{counted(len(explained.considered), 'memory')} considered, none with evidence; the closest: " + _measures(
        nearest, explained
    )


def ending(fact: Fact, now: float) -> Ending:
    """Return when a memory ends, and why, such as "until 2026-12-01, because it says 'until December'"."""
    if fact.expires_at is None:
        return Ending(None, None, None, "permanently")
    confirmed = fact.last_confirmed_at or fact.created_at
    fades = confirmed + OLD_AGE * (fact.expires_at - confirmed)
    own = lifetime(fact.text, fact.effective_date, fact.key, fact.zone)
    if own.words is not None and own.decay_class == fact.decay_class:
        words, why = own.words, f"because it says '{own.words}'"
    elif expiry(fact.decay_class, confirmed, fact.decay_freeze_until) is None:
        words, why = None, "as set"
    else:
        words, why = None, f"because of its decay class '{fact.decay_class}'"
    if fact.decay_class in REFRESHED_BY_USE and fact.expires_at > now:
        why += "; each use extends it"
    fading = f"; fading since {day_of(fades, fact.zone)}" if fades < now < fact.expires_at else ""
    return Ending(fact.expires_at, fades, words, f"until {day_of(fact.expires_at, fact.zone)}, {why}{fading}")


def _verdict(known: Considered, explained: Why) -> str:
    match known.verdict:
        case "no evidence":
            return f"{NO_EVIDENCE}: {_measures(known, explained)}"
        case "far below the best":
            best = max(each.score for each in explained.considered)
            return f"far below the best: its score is {known.score:.2f}, the best has {best:.2f}"
        case "over the budget":
            return f"over the budget: better memories used up the {explained.tokens} tokens or the memory limit"
        case "already shown":
            return "already shown in this conversation, where the model still sees it"
    return known.verdict


def _measures(known: Considered, explained: Why) -> str:
    words = f"word coverage of the prompt {known.coverage:.2f}"
    if known.cosine is None:
        return words + _blind(explained)
    if known.probability is not None and explained.threshold is not None:
        told = f"probability {known.probability:.2f}, threshold {explained.threshold:.2f}"
        return f"{words}; cosine {known.cosine:.2f}; {told}"
    needed = "" if explained.floor is None else f", threshold {explained.floor:.2f}"
    return f"{words}; cosine {known.cosine:.2f}{needed}"


def _blind(explained: Why) -> str:
    """Return a note that the model was missing in a turn; empty if it was not."""
    state = explained.legs.get(VECTOR, {}).get("state")
    return f"; {NOT_LOADED}, so only near-certain matches came up" if state == NOT_LOADED else ""


def _receipt(
    connection: Connection, audience: Audience, turn: str | None, looks: bool
) -> tuple[str, float, Mapping[str, Any]]:
    if turn is None:
        wanted = receipts.latest(connection, audience, looks=looks)
    else:
        wanted = receipts.by_prefix(connection, turn, audience)
    kept = receipts.whole(connection, wanted, audience) if wanted else None
    if kept is None:
        if turn is None:
            raise NotFoundError(
                "no turn has been recorded for this caller yet; the first prompt in a connected host records one"
            )
        raise NotFoundError(f"this caller has no turn {turn[:40]!r}; omit it to get the last one")
    return kept.id, kept.at, kept.body


def _considered(candidate: Mapping[str, Any], facts: Mapping[str, Fact], trigger: str) -> Considered:
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
        trigger=trigger,
    )


def _hidden(fact: Fact, at: float) -> str | None:
    if fact.since > at:
        return "it was stored after that turn"
    if fact.forgotten_at is not None and fact.forgotten_at <= at:
        return "it is forgotten; restore it: perdure unforget " + fact.id[:MIN_PREFIX]
    if fact.superseded_at is not None and fact.superseded_at <= at:
        return f"it was superseded by {fact.superseded_by}" if fact.superseded_by else "it was withdrawn"
    if fact.expires_at is not None and fact.expires_at <= at:
        return "it had expired"
    if fact.review_state != "approved":
        return "it was rejected in review" if fact.review_state == "rejected" else f"it is {fact.review_state} review"
    if fact.channel not in AUTO_RECALLED:
        return f"its source is not trusted ({fact.channel.words}): only an explicit search finds it"
    return None
