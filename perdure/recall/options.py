"""The settings of recall, with their defaults."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from perdure.errors import InputError
from perdure.hooks.types import Placement
from perdure.recall.gate import BALANCED
from perdure.store.fact import USUAL, Summaries

LEXICAL = "sqlite"
VECTOR = "semantic"
LOOKUP = "lookup"
PROFILE = "profile"
LINKS = "links"
DIRECTIVE = "directive"
PASSAGES = "passages"
NEWEST = "newest"
IDS = "ids"
ALIASES = "aliases"
DATES = "dates"
ABOUT = "about"
"""The legs carry the names that stand in the block."""

LexicalIndex = Literal["fts5", "lance"]
"""Which index of words a recall asks."""

FULL = "full"
SHORT = "short"
MINIMAL = "minimal"
PROGRESSIVE = "progressive"
FORMATS = (FULL, SHORT, MINIMAL, PROGRESSIVE)
"""How a memory is written in the block; see `perdure.recall.block.line`."""


ADJUSTED = ("salience", "confidence", DIRECTIVE)
"""The adjustments that are made by default."""


@dataclass(frozen=True, slots=True)
class Directive:
    """One rule. Any of the first four fields that is set triggers it.

    It recalls the facts with its tag; without a tag those of its entity; else those with its keyword or with
    words of its task.
    """

    entity: str | None = None  # the prompt names this entity
    keyword: str | None = None  # the prompt contains this word or phrase
    task: str | None = None  # the prompt contains the name of this kind of task, or one of its words
    session_start: bool = False  # the prompt is the first of a session for which memory is searched
    tag: str | None = None  # what to recall
    task_words: tuple[str, ...] = ()  # words of the task, such as "release" and "rollout" of "deploy"

    def __post_init__(self) -> None:
        """Raise InputError if it can never be set off, or brings nothing up."""
        named = (self.entity, self.keyword, self.task, self.tag, *self.task_words)
        if any(text is not None and not text.strip() for text in named):
            raise InputError("a directive has an empty entity, keyword, task or tag; give a value, or leave it out")
        if not (self.entity or self.keyword or self.task or self.session_start):
            raise InputError("a directive has no trigger; give an entity, a keyword, a task or session_start")
        if not (self.tag or self.entity or self.keyword or self.task):
            raise InputError("a directive recalls nothing; give session_start a tag, an entity or a keyword")


def directives(
    *,
    entities: Iterable[str] = (),
    keywords: Iterable[str] = (),
    tasks: Mapping[str, Collection[str]] | None = None,
    session_tags: Iterable[str] = (),
) -> tuple[Directive, ...]:
    """Return the directives of plain settings, those of session starts first."""
    return (
        *(Directive(session_start=True, tag=tag) for tag in session_tags),
        *(Directive(entity=entity) for entity in entities),
        *(Directive(keyword=keyword) for keyword in keywords),
        *(Directive(task=task, task_words=tuple(words)) for task, words in (tasks or {}).items()),
    )


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """Options of a recall."""

    limit: int = 10  # maximum facts in a block
    passages: int = 8  # maximum passages of files and conversations
    max_tokens: int = 800  # maximum tokens of a block
    format: str = FULL  # one of `FORMATS`
    placement: Placement = Placement.HEAD  # where the host should put the block
    deadline: float = 0.8  # seconds after which the turn continues with what has been found
    # The probability from which a memory is recalled, or its name in `perdure.recall.gate.POINTS`.
    threshold: float | str = BALANCED
    relative_cut: float = 0.7  # share of the best memory's score that the others must reach where no model judges them
    # Weights of the retrievers in the blend.
    weights: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType({LEXICAL: 0.5, VECTOR: 0.5, LOOKUP: 0.5})
    )
    candidates: int = 50  # candidates per retriever
    lexical: LexicalIndex = "fts5"  # which index of words is asked; "lance" wherever that can answer
    summaries: Summaries = USUAL  # when a summary replaces a fact's text
    # "pinned" (what the user pinned comes up in every turn that recalls), "standing" (also standing preferences and
    # instructions), or "off".
    profile: str = "pinned"
    profile_limit: int = 5  # maximum facts of the profile
    link_depth: int = 2  # maximum link distance of facts linked to those that passed; 0: none
    directives: tuple[Directive, ...] = ()  # rules that recall facts whatever a search finds
    adjustments: Collection[str] = ADJUSTED  # score adjustments, by the names of the setting `adjust`
    model: bool = False  # whether a model is meant to judge; without it words then bring what it would bring as well
