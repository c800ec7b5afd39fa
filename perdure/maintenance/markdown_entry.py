"""One memory as an item of a Markdown list: its words for people, and behind them a comment with all else and a seal.

    - I like tea.
      <!-- perdure 3f9c... {"id": "1f0c...", "channel": "user", ...} -->

The seal (HMAC-SHA256 by the store's key) covers the words and the comment. Who has the key knows by it that nobody has
changed either. What editors do to white space at the ends of lines changes nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perdure.maintenance.exchange import fact_line
from perdure.regex import lazy
from perdure.store.fact import Fact

_COMMENT = lazy(r"<!-- perdure ([0-9a-f]{64}) (\{.*\}) -->")
_ITEM = lazy(r"[-*+][ \t](.*)")
_LINK = lazy(r"\[[^\]\n]*\]\([^)\n]*\.md\)")
_HEADING = lazy(r"#{1,6}(?:\s|\Z)")
_INDENT = "  "
_USUAL = Fact("")


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands in one item."""

    words: str  # as they are shown
    # what the comment holds; empty if there is none that can be read
    values: Mapping[str, Any] = field(default_factory=dict)
    sealed: bool = False  # whether the seal is that of the store, over these words and values

    @property
    def text(self) -> str:
        """The memory itself, to the letter if the comment says how it differs from what is shown."""
        exact = self.values.get("text")
        return exact if isinstance(exact, str) and shown(exact) == self.words else self.words


def write_entry(fact: Fact, links: Sequence[Sequence[Any]], key: bytes) -> str:
    """Return a fact as an item, secrets redacted once more; links from it are id, target, type, strength, time."""
    line = fact_line(fact)
    words = shown(line["text"])
    # What a fact has anyhow need not be said.
    values = {
        name: value
        for name, value in line.items()
        if name != "type" and (name == "id" or _plain(value) != _plain(getattr(_USUAL, name)))
    }
    if words == line["text"]:
        del values["text"]
    if links:
        values["links"] = [list(each) for each in links]
    # Two hyphens may end a comment; within JSON they stand in texts alone.
    hidden = json.dumps(values).replace("--", "-\\u002d")
    comment = f"<!-- perdure {_seal(words, hidden, key)} {hidden} -->"
    first, *rest = [*words.split("\n"), comment]
    return "\n".join([f"- {first}", *(f"{_INDENT}{each}" if each else "" for each in rest)]) + "\n"


def read_entries(page: str, key: bytes) -> Iterator[Entry]:
    """Yield every item and every other paragraph of a page, but no heading, front matter or mere link to a page."""
    for words in paragraphs(page):
        entry = _entry(words, key)
        if entry.values or (any(map(str.isalnum, entry.words)) and not _LINK.fullmatch(entry.words)):
            yield entry


def front_matter(page: str) -> dict[str, str]:
    """Return the lines `name: value` that a page begins with; {} without front matter."""
    lines = page.splitlines()
    return dict(_pair(line) for line in lines[1 : max(1, _body(lines) - 1)] if ":" in line)


def shown(text: str) -> str:
    """Return a text as people read it in a list: no white space at the ends of its lines."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip()


def paragraphs(page: str) -> Iterator[list[str]]:
    """Yield the lines of every item of a list and of every other paragraph of a page, and between them empty ones."""
    lines = page.splitlines()
    item: list[str] = []
    for line in lines[_body(lines) :]:
        start = _ITEM.match(line)
        if start:
            yield item
            item = [start[1]]
        elif _HEADING.match(line):
            yield item
            item = []
        elif not line.strip() or line[0] in " \t" or _COMMENT.fullmatch(line.strip()):
            item.append(line.removeprefix(_INDENT) if line.startswith(_INDENT) else line.removeprefix("\t"))
        elif item and not item[-1].strip():
            # A paragraph of its own.
            yield item
            item = [line]
        else:
            item.append(line)
    yield item


def _entry(lines: Sequence[str], key: bytes) -> Entry:
    words = shown("\n".join(lines))
    head, _, last = words.rpartition("\n")
    found = _COMMENT.fullmatch(last.strip())
    if found is None:
        return Entry(words)
    words = shown(head)
    try:
        values = json.loads(found[2], parse_constant=_refuse)
    except (ValueError, RecursionError):
        return Entry(words)
    return Entry(words, values, hmac.compare_digest(found[1], _seal(words, found[2], key)))


def _seal(words: str, hidden: str, key: bytes) -> str:
    body = json.dumps(["perdure markdown", words, hidden]).encode()
    return hmac.new(key, body, hashlib.sha256).hexdigest()


def _body(lines: Sequence[str]) -> int:
    """Return the number of the first line behind the front matter."""
    if lines and lines[0].strip() == "---":
        for number, line in enumerate(lines[1:], 1):
            if line.strip() == "---":
                return number + 1
    return 0


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    try:
        plain = json.loads(value)
    except ValueError:
        plain = value.strip().strip("'")
    return name.strip(), str(plain)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _refuse(constant: str) -> None:
    raise ValueError(constant)
