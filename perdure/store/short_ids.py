"""Short names of memories, for models: the first characters of an id written in base32, as many as tell it apart.

Ids themselves are UUIDs. What is written in hex digits goes on naming them; a base32 digit says more than a hex digit,
so four of them do where a store is small, and fewer tokens are in every line of every block.
"""

from __future__ import annotations

from base64 import b32encode
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar
from uuid import UUID

from perdure.errors import AmbiguousIdError, InputError, NotFoundError, refused
from perdure.store.sql import Connection, run

DIGITS = "abcdefghijklmnopqrstuvwxyz234567"
"""Of base32, as RFC 4648 has it, in lower case."""
SHORTEST = 4
"""Digits of a short name at the least: fewer may be the number of a line."""
MIN_PREFIX = 8
"""Hex digits of an id at the least."""
_HEX = frozenset("0123456789abcdef-")
_BITS, _OF_UUID = 5, 128
_LONGEST = -(-_OF_UUID // _BITS)
_LAST = "g"
"""What stands behind every id."""
_Found = TypeVar("_Found")


def spans(name: object) -> tuple[tuple[str, str], ...]:
    """Return the ranges of ids that begin as a name says, each with its first id and the one behind its last.

    A name of hex digits that is long enough to be one is read both ways.

    Raises:
        InputError: it is no name of a memory.
    """
    name = getattr(name, "id", name)
    if not isinstance(name, str):
        raise refused(name, "a memory, or its id as a string", "id")
    plain = name.strip().lower().removeprefix("#")
    found = [(plain, plain + _LAST)] if is_id(plain) else []
    if SHORTEST <= len(plain) <= _LONGEST and set(plain) <= set(DIGITS):
        found.append(_span(plain))
    if not found:
        raise InputError(
            f"id {name[:40]!r} must be a short id as shown, of at least {SHORTEST} characters, or at least "
            f"{MIN_PREFIX} hex digits of the id"
        )
    return tuple(found)


def is_id(name: str) -> bool:
    """Return whether a text is long enough and of hex digits alone, as only an id is."""
    plain = name.strip().lower().removeprefix("#")
    return len(plain) >= MIN_PREFIX and set(plain) <= _HEX


def is_named(fact_id: str, name: object) -> bool:
    """Return whether a name is one of this id; it need not be the only one. Raises InputError as `spans` does."""
    return any(low <= fact_id < high for low, high in spans(name))


def condition(spans: Sequence[tuple[str, str]]) -> tuple[str, tuple[str, ...]]:
    """Return the SQL condition on facts for ids within these ranges, and its values."""
    # By its id first: otherwise all that a caller may see is looked through.
    within = " OR ".join("id >= ? AND id < ?" for _ in spans)
    return f"facts.seq IN (SELECT seq FROM facts WHERE {within})", tuple(end for span in spans for end in span)


def the_only(found: Sequence[_Found], name: object) -> _Found:
    """Return what alone was found for a name.

    Raises:
        NotFoundError: nothing was found.
        AmbiguousIdError: more than one was.
    """
    told = str(getattr(name, "id", name)).strip()[:40]
    if not found:
        raise NotFoundError(f"no memory has the id {told}; search and list show ids")
    if len(found) > 1:
        raise AmbiguousIdError(f"several memories have an id that begins with {told}; give more digits")
    return found[0]


def short_ids(connection: Connection, ids: Iterable[str], visible: tuple[str, tuple[object, ...]]) -> dict[str, str]:
    """Return for each of these ids, those that are UUIDs, its shortest name that no other has of what may be seen.

    `visible` is the SQL condition on facts for that, with its values.
    """
    wanted = {each: digits for each in ids if (digits := _digits(each))}
    if not wanted:
        return {}
    near, values = condition(sorted({_span(digits[:SHORTEST]) for digits in wanted.values()}))
    rows = run(connection, f"SELECT facts.id FROM facts WHERE {near} AND {visible[0]}", (*values, *visible[1]))
    alike: dict[str, set[str]] = defaultdict(set)
    for digits in {*(_digits(row[0]) for row in rows), *wanted.values()}:
        alike[digits[:SHORTEST]].add(digits)
    return {each: _shortest(digits, alike[digits[:SHORTEST]]) for each, digits in wanted.items()}


def _shortest(digits: str, alike: Iterable[str]) -> str:
    others = [each for each in alike if each != digits]
    return next(
        digits[:size] for size in range(SHORTEST, _LONGEST + 1)
        if size == _LONGEST or not any(each.startswith(digits[:size]) for each in others)
    )  # fmt: skip


def _digits(fact_id: str) -> str:
    """Return an id in base32; "" if it is no UUID, as only what was put in by hand is."""
    try:
        return b32encode(UUID(fact_id).bytes).decode().rstrip("=").lower()
    except ValueError:
        return ""


def _span(digits: str) -> tuple[str, str]:
    number = 0
    for digit in digits:
        number = number << _BITS | DIGITS.index(digit)
    # The last digit of a whole id has bits that are none of the id's.
    free = max(0, _OF_UUID - len(digits) * _BITS)
    number >>= max(0, len(digits) * _BITS - _OF_UUID)
    end = (number + 1) << free
    return str(UUID(int=number << free)), _LAST if end >> _OF_UUID else str(UUID(int=end))
