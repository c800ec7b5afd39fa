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
    """What speaks for a candidate."""

    cosine: float | None = None  # between its vector and the query's; None: no vector leg
    coverage: float = 0.0  # share of the query's weighted words that it holds, 0 to 1
    rare: bool = False  # whether one of these words is rare in the store
    named: bool = False  # whether the prompt names the slot that it fills, entity and key
    probability: float | None = None  # that it helps, 0 to 1; None: no model can tell


@dataclass(frozen=True, slots=True)
class Gate:
    """The absolute thresholds."""

    floor: float  # cosine that suffices by itself
    threshold: float = 0.5  # probability that suffices by itself
    coverage: float = 0.75  # share of the query's words that suffices by itself if one of them is rare
    supported_coverage: float = 0.45  # share that suffices when the cosine is near the floor
    support: float = 0.75  # how near, as a share of the floor
    blind_coverage: float = 0.34  # share that suffices when there is no vector leg

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
