"""From which cosine on a vector hit is evidence."""

from __future__ import annotations

PRIORS = {
    "all-MiniLM-L6-v2 (int8)": 0.3,
    "hash": 0.25,
}
"""Per model: above nearly all pairs of an unrelated question and fact, below most related ones."""

FALLBACK = 0.35


def prior_floor(model: str) -> float:
    """Return the floor for a store that is too small to be calibrated by its own facts."""
    return PRIORS.get(model, FALLBACK)
