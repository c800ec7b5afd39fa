"""From the text of a file to what the index holds of it: chunks of Markdown, turns of conversations."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise

from perdure.files.chunking import Chunking, chunk_markdown
from perdure.files.roots import memory_day
from perdure.files.turns import Turn, read_turns
from perdure.secrets.redact import redact
from perdure.text.tokens import estimate_tokens

MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)
CONTEXT = 400
"""Characters of the turn before that a turn is also found by."""
PART_TOKENS = 56
MAX_PARTS = 10
"""A text is embedded in up to so many parts of so many tokens, and is as near to a query as its nearest part: one
vector of a whole chunk is near nothing in particular. `python -m bench.notes` prints what that does."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the index.

    Attributes:
        start_line: first line, from 1.
        end_line: last line.
        section: the headings above it, "A > B"; empty for turns.
        text: what is shown.
        body: what it is found by, as words.
        context: what stood before it, also as words.
        speaker: who said it, for turns.
        role: "user" or "assistant", for turns.
        at: when it was said, epoch seconds.
    """

    start_line: int
    end_line: int
    section: str
    text: str
    body: str
    context: str
    speaker: str | None = None
    role: str | None = None
    at: float | None = None

    @property
    def digest(self) -> str:
        """What tells whether the row must be written anew."""
        return _digest(self.section, self.body, self.context, self.text, self.speaker or "", str(self.at))

    @property
    def hash(self) -> str:
        """The key of its vector in the cache."""
        return _digest(embedded(self.section, self.speaker, self.text))


def markdown_entries(text: str, path: str, chunking: Chunking) -> list[Entry]:
    """Return the chunks of a Markdown file, secrets redacted."""
    entries = []
    # Before it is cut: a key of many lines would be in two chunks.
    for chunk in chunk_markdown(redact(text, keep_lines=True).text, chunking):
        body = body_of(path, chunk.section, None, None, chunk.text)
        entries.append(Entry(chunk.start_line, chunk.end_line, chunk.section, chunk.text, body, ""))
    return entries


def turn_entries(data: str, strip: Callable[[str], str], chunking: Chunking) -> list[Entry]:
    """Return the turns of a conversation, long ones in pieces."""
    turns = read_turns(data, strip)
    entries: list[Entry] = []
    for before, turn in pairwise([None, *turns]):
        assert turn is not None  # noqa: S101 - only the first of all is None
        context = before.text[-CONTEXT:] if before else ""
        for piece in pieces(turn.text, chunking.tokens):
            entries.append(_turn_entry(turn, piece, context))
            context = piece[-CONTEXT:]
    return entries


def body_of(path: str, section: str, speaker: str | None, at: float | None, text: str) -> str:
    """Return the words by which a row is found: of a turn if it has a speaker, else of a Markdown file."""
    return f"{_day(at)} {speaker}: {text}" if speaker else f"{_words(path)} {section}\n{text}"


def embedded(section: str, speaker: str | None, text: str) -> str:
    """Return what the vector of a row is made of."""
    above = f"{speaker}: " if speaker else f"{section}\n" if section else ""
    return above + text


def parts(text: str, max_tokens: int = PART_TOKENS) -> list[str]:
    """Return a text in the parts that a model of so many tokens can read; what is beyond the last one is left out."""
    return pieces(text, max_tokens)[:MAX_PARTS]


def pieces(text: str, tokens: int) -> list[str]:
    """Cut a text into pieces of at most so many tokens, between words where there are any."""
    if estimate_tokens(text) <= tokens:
        return [text]
    found: list[str] = []
    rest = text
    while rest:
        size = _fitting(rest, tokens)
        if size < len(rest):
            size = max(rest.rfind(" ", size // 2, size), rest.rfind("\n", size // 2, size)) + 1 or size
        found.append(rest[:size].strip())
        rest = rest[size:]
    return [piece for piece in found if piece]


def _fitting(text: str, tokens: int) -> int:
    size = min(len(text), 4 * tokens)
    while size > 1 and (estimated := estimate_tokens(text[:size])) > tokens:
        size = max(1, min(size - 1, size * tokens // estimated))
    return size


def _turn_entry(turn: Turn, text: str, context: str) -> Entry:
    body = body_of("", "", turn.speaker, turn.at, text)
    return Entry(turn.line_start, turn.line_end, "", text, body, context, turn.speaker, turn.role, turn.at)


def in_words(day: date) -> str:
    """Return a day as people ask for it, in English whatever the process's language is: "7 May 2023"."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def _day(at: float | None) -> str:
    # In words, as people ask for it.
    return "" if at is None else in_words(datetime.fromtimestamp(at, UTC).date())


def _words(path: str) -> str:
    day = memory_day(path)
    name = path.rsplit("/", 1)[-1].removesuffix(".md").replace("-", " ").replace("_", " ")
    return in_words(day) if day else name


def _digest(*values: str) -> str:
    return hashlib.blake2b("\0".join(values).encode("utf-8", "replace"), digest_size=16).hexdigest()
