"""The settings of recall, with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from perdure.hooks.types import Placement
from perdure.ranking.adjust import Adjustments
from perdure.recall.gate import BALANCED
from perdure.recall.unasked import Directive
from perdure.store.fact import USUAL, Summaries

LEXICAL = "sqlite"
VECTOR = "lance"
LOOKUP = "lookup"
PROFILE = "profile"
LINKS = "links"
DIRECTIVE = "directive"
PASSAGES = "passages"
NEWEST = "newest"
ALIASES = "aliases"
DATES = "dates"
"""The legs carry the names that stand in the block: the two stores of the documents this follows, and the
slots that a prompt names."""

FULL = "full"
SHORT = "short"
MINIMAL = "minimal"
PROGRESSIVE = "progressive"
FORMATS = (FULL, SHORT, MINIMAL, PROGRESSIVE)
"""How a memory is written in the block; see `perdure.recall.block.line`."""


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """How recall works.

    Attributes:
        limit: facts in a block at the most.
        passages: passages of files and conversations at the most.
        max_tokens: tokens of a block at the most.
        format: one of `FORMATS`.
        placement: where the host should put the block.
        deadline: seconds after which the turn goes on with what there is.
        threshold: the probability from which a memory comes up, or the name of one, as of
            `perdure.recall.gate.POINTS`.
        relative_cut: share of the best memory's score that the others must reach, where no model judges them.
        weights: of the legs in the blend.
        candidates: how many each leg brings.
        summaries: when a summary stands for a fact's text.
        profile: "pinned" (what the user pinned comes up in every turn that recalls), "standing" (also standing
            preferences and instructions), or "off".
        profile_limit: facts of the profile at the most.
        link_depth: how many links far facts are followed from those that passed; 0: not at all.
        directives: rules that bring up facts whatever a search finds.
        adjustments: what else counts than how well a fact fits.
    """

    limit: int = 10
    passages: int = 8
    max_tokens: int = 800
    format: str = FULL
    placement: Placement = Placement.HEAD
    deadline: float = 0.8
    threshold: float | str = BALANCED
    relative_cut: float = 0.7
    weights: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType({LEXICAL: 0.5, VECTOR: 0.5, LOOKUP: 0.5})
    )
    candidates: int = 50
    summaries: Summaries = USUAL
    profile: str = "pinned"
    profile_limit: int = 5
    link_depth: int = 2
    directives: tuple[Directive, ...] = ()
    adjustments: Adjustments = field(default_factory=Adjustments)
