"""The settings of recall, with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from perdure.hooks.types import Placement

LEXICAL = "sqlite"
VECTOR = "lance"
LOOKUP = "lookup"
"""The legs carry the names that stand in the block: the two stores of the documents this follows, and the
slots that a prompt names."""

FORMATS = ("full", "short", "minimal")


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """How recall works.

    Attributes:
        limit: memories in a block at the most.
        max_tokens: tokens of a block at the most.
        format: "full", "short" or "minimal".
        placement: where the host should put the block.
        deadline: seconds after which the turn goes on with what there is.
        relative_cut: share of the best memory's score that the others must reach.
        weights: of the legs in the blend.
        candidates: how many each leg brings.
        summary_threshold: characters from which a fact's summary stands for it.
    """

    limit: int = 10
    max_tokens: int = 800
    format: str = "full"
    placement: Placement = Placement.HEAD
    deadline: float = 0.8
    relative_cut: float = 0.7
    weights: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType({LEXICAL: 0.5, VECTOR: 0.5, LOOKUP: 0.5})
    )
    candidates: int = 50
    summary_threshold: int = 300
