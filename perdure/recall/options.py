"""The settings of recall, with their defaults."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from perdure.hooks.types import Placement
from perdure.recall.adjust import ADJUSTED
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
    """How recall works."""

    limit: int = 10  # facts in a block at most
    passages: int = 8  # passages of files and conversations at most
    max_tokens: int = 800  # tokens of a block at most
    format: str = FULL  # one of `FORMATS`
    placement: Placement = Placement.HEAD  # where the host should put the block
    deadline: float = 0.8  # seconds after which the turn goes on with what there is
    # The probability from which a memory is recalled, or its name in `perdure.recall.gate.POINTS`.
    threshold: float | str = BALANCED
    relative_cut: float = 0.7  # share of the best memory's score that the others must reach where no model judges them
    # Weights of the legs in the blend.
    weights: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType({LEXICAL: 0.5, VECTOR: 0.5, LOOKUP: 0.5})
    )
    candidates: int = 50  # how many each leg brings
    summaries: Summaries = USUAL  # when a summary stands for a fact's text
    # "pinned" (what the user pinned comes up in every turn that recalls), "standing" (also standing preferences and
    # instructions), or "off".
    profile: str = "pinned"
    profile_limit: int = 5  # facts of the profile at most
    link_depth: int = 2  # how many links away facts are followed from those that passed; 0: none
    directives: tuple[Directive, ...] = ()  # rules that bring up facts whatever a search finds
    adjustments: Collection[str] = ADJUSTED  # what counts besides the fit, by the names of `perdure.recall.adjust`
