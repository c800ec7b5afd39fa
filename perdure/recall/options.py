"""The settings of recall, with their defaults."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from perdure.errors import InputError
from perdure.hooks.types import Placement
from perdure.recall.gate import BALANCED
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


ADJUSTED = ("salience", "confidence", DIRECTIVE)
"""The adjustments that are made by default."""


@dataclass(frozen=True, slots=True)
class Directive:
    """One rule. Each of the first four that is set can set it off.

    It brings up the facts with its tag; without a tag those of its entity; else those with its keyword or with
    words of its task.
    """

    entity: str | None = None  # the prompt names this entity
    keyword: str | None = None  # the prompt holds this word or phrase
    task: str | None = None  # the prompt holds the name of this kind of task, or one of its words
    session_start: bool = False  # the prompt is the first of a session
    tag: str | None = None  # what to bring up
    task_words: tuple[str, ...] = ()  # words of the task, such as "release" and "rollout" of "deploy"

    def __post_init__(self) -> None:
        """Raise InputError if it can never be set off, or brings nothing up."""
        named = (self.entity, self.keyword, self.task, self.tag, *self.task_words)
        if any(text is not None and not text.strip() for text in named):
            raise InputError("a directive has an empty entity, keyword, task or tag; name it, or leave it out")
        if not (self.entity or self.keyword or self.task or self.session_start):
            raise InputError("a directive is never set off; give an entity, a keyword, a task or session_start")
        if not (self.tag or self.entity or self.keyword or self.task):
            raise InputError("a directive brings nothing up; give session_start a tag, an entity or a keyword")


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
    adjustments: Collection[str] = ADJUSTED  # what counts besides the fit, by the names of the setting `adjust`
