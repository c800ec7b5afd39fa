"""Archives of conversations as JSON arrays, and the branches of a conversation that was edited."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perdure.importers.archive import Member, elements, members
from perdure.importers.conversation_import import Talk, Talks
from perdure.regex import lazy

_FILE = lazy(r"conversations(?:-\d+)?\.json")


def conversation_files(path: Path) -> list[Member]:
    """Return the files of conversations in an export: the whole, or its shards."""
    return [member for member in members(path, ".json") if _FILE.fullmatch(member.path.name)]


def talks_of(kind: str, files: Sequence[Member], talk_of: Callable[[Mapping[str, Any], int], Talk]) -> Talks:
    """Return the conversations in JSON arrays, one read after the other; what is no conversation is counted."""

    def read() -> Iterator[Talk]:
        for member in files:
            for number, (value, size) in enumerate(elements(member)):
                try:
                    yield talk_of(value, size)
                except (KeyError, TypeError, AttributeError, ValueError):
                    yield Talk(f"{member.name}:{number}", (), size, broken=True)

    return Talks(kind, sum(member.size for member in files), read)


def branch(last: str | None, parents: Mapping[str, str | None]) -> list[str]:
    """Return the ids from the root of a tree to one of its messages."""
    found: dict[str, None] = {}
    while last is not None and last in parents and last not in found:
        found[last] = None
        last = parents[last]
    return list(found)[::-1]
