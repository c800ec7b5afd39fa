"""Is there evidence that a memory has to do with the prompt at all?

Three gates, for what is known of a memory: the probability that it helps, where perdure's own encoder made the vectors;
the cosine, where another embedder did; the words alone, where there is no vector. Each leg is held to an absolute
measure before anything is fused: its best hit is always 1.0 after normalising, so a threshold on fused scores silences
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a candidate.

    Attributes:
        cosine: of its vector and the query's, or None if there was no vector leg.
        coverage: share of the query's weighted words that it holds, 0 to 1.
        rare: whether one of these words is rare in the store.
        named: whether the prompt names the slot that it fills, entity and key.
        probability: that it helps, 0 to 1, or None if no model can tell.
    """

    cosine: float | None = None
    coverage: float = 0.0
    rare: bool = False
    named: bool = False
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """The absolute thresholds.

    Attributes:
        floor: cosine that is evidence by itself.
        threshold: probability that is evidence by itself.
        coverage: share of the query's words that is evidence by itself, if one of them is rare.
        supported_coverage: share that is enough when the cosine comes near the floor.
        support: how near, as a share of the floor.
        blind_coverage: share that is enough when there is no vector leg.
    """

    floor: float
    threshold: float = 0.5
    coverage: float = 0.75
    supported_coverage: float = 0.45
    support: float = 0.75
    blind_coverage: float = 0.34

    def verdict(self, evidence: Evidence) -> str | None:
        """Return why the candidate may pass, in a word, or None if nothing speaks for it."""
        if evidence.named:
            return "slot"
        if evidence.probability is not None:
            return "model" if evidence.probability >= self.threshold else None
        if evidence.cosine is None:
            needed = self.blind_coverage if evidence.rare else self.coverage
            return "words" if evidence.coverage >= needed else None
        if evidence.cosine >= self.floor:
            return "meaning"
        if evidence.rare and evidence.coverage >= self.coverage:
            return "words"
        near = evidence.cosine >= self.support * self.floor
        return "both" if near and evidence.coverage >= self.supported_coverage else None
