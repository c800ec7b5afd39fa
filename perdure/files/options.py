"""The settings of the index of files and conversations, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import tzinfo

from perdure.files.chunking import Chunking
from perdure.files.roots import Root
from perdure.files.turns import Threshold
from perdure.ranking.passages import HALF_LIFE_DAYS, LAMBDA, Weights

MEMORY = "memory"
SESSIONS = "sessions"
SOURCES = (MEMORY, SESSIONS)
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class FilesOptions:
    """How files and conversations are indexed and searched."""

    sources: tuple[str, ...] = SOURCES  # "memory" (Markdown files), "sessions" (conversations)
    chunking: Chunking = field(default_factory=Chunking)  # how Markdown is cut
    threshold: Threshold = field(default_factory=Threshold)  # when a conversation that goes on is indexed again
    max_bytes: int = 10 * MEGABYTE  # larger Markdown files are passed over; conversations may be ten times as large
    cache_entries: int = 50_000  # vectors kept of texts that are in no file any more
    candidates: int = 4  # of each leg, as a multiple of the results asked for
    # `files`, `turns`: weights of each kind.
    files: Weights = Weights(keyword=0.5, vector=0.5, alone=0.8)  # noqa: RUF009 - frozen
    turns: Weights = Weights(  # noqa: RUF009 - frozen
        keyword=0.5, vector=0.5, alone=0.6, neighbour=0.2, document=0.2, answer=0.2,
        first=0.06, period=0.06, speaker=0.06, question=0.08, short=0.15,
    )  # fmt: skip
    half_life_days: float = HALF_LIFE_DAYS  # of dated files
    mmr: float = LAMBDA  # weight of the score against the likeness to better results; 1 switches it off
    citations: str = "auto"  # "auto", "on" or "off"
    zone: tzinfo | None = None  # in which a query's days are counted; None: the machine's


def source_of(root: Root) -> str:
    """Return which of `SOURCES` the files of a root are."""
    return SESSIONS if root.kind == "sessions" else MEMORY
