"""A receipt, ranked again: the same order comes out of what was written down, or something is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from perdure.ranking.fuse import fuse, relative_cut
from perdure.ranking.gates import Evidence, Gate
from perdure.recall.options import RecallOptions
from perdure.recall.sift import DOUBTFUL

INJECTED = "injected"


@dataclass(frozen=True, slots=True)
class Replay:
    """What a receipt says when it is ranked again.

    Attributes:
        ranked: ids of the facts that the legs found and that reach the cut, best first.
        injected: those of them that came up, best first, without a reranker; the block has the newest first.
        beside: ids of what came up without being ranked: facts of the profile and of links, passages.
        complete: whether the receipt still holds all of it. A purge takes the question out of every receipt that
            names the purged memory.
    """

    ranked: tuple[str, ...]
    injected: tuple[str, ...]
    beside: frozenset[str]
    complete: bool


def replay(body: Mapping[str, Any], options: RecallOptions) -> Replay:
    """Rank the candidates of a receipt again: gate, fuse, cut and adjust, from its numbers alone.

    What needs the texts (doubts, other names, near-duplicates, tokens) or the conversation (what was shown already) is
    not done again: its verdicts are taken as they stand.

    Args:
        body: `Receipt.body`, or what was stored of it.
        options: what that recall was set to.
    """
    candidates = {each["id"]: each for each in body.get("candidates", ())}
    floor = body["gate"]["floor"]
    gate = Gate(1.0 if floor is None else floor)
    passed = {fact_id: each for fact_id, each in candidates.items() if _passes(each, gate)}
    legs = {
        leg: {fact_id: each["legs"][leg] for fact_id, each in passed.items() if leg in each["legs"]}
        for leg in options.weights
    }
    order = fuse(legs, options.weights)
    near = {each.id for each in relative_cut(order, options.relative_cut)}
    fused = {each.id: each for each in order if each.id in near or passed[each.id].get("renamed", False)}
    worth = {fact_id: each.score * prod(passed[fact_id]["factors"].values()) for fact_id, each in fused.items()}
    ranked = sorted(fused, key=lambda fact_id: (-worth[fact_id], fact_id))
    injected = [fact_id for fact_id, each in candidates.items() if each["verdict"] == INJECTED]
    return Replay(
        tuple(ranked),
        tuple(fact_id for fact_id in ranked if fact_id in injected),
        frozenset(injected) - fused.keys(),
        bool(body["query"]) or not candidates,
    )


def _passes(candidate: Mapping[str, Any], gate: Gate) -> bool:
    if "legs" not in candidate:
        return False  # a passage
    if candidate.get("renamed", False):
        return True
    if candidate["verdict"].startswith(DOUBTFUL):
        return False
    evidence = Evidence(candidate["cosine"], candidate["coverage"], candidate["rare"], candidate["named"])
    return gate.verdict(evidence) is not None
