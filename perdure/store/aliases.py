"""Other names of one thing: facts whose value is what their entity is also called.

"GHA stands for GitHub Actions" is the fact ("GitHub Actions", "alias", "GHA"). There is no table of names: what is said
of a name is scoped, undone, purged and exported like any other memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import inf
from typing import NamedTuple

from perdure.errors import refused
from perdure.recent import Recent
from perdure.regex import lazy
from perdure.store.scope import Audience
from perdure.store.search import View, by_words
from perdure.store.sql import Backend, Connection, dialect, marks, newest, run
from perdure.store.trust import SUPERSEDES
from perdure.text.normalise import fold, fts_text, match_query
from perdure.text.scripts import DENSE_CLASS

ALIAS = "alias"
NAMING = frozenset({"name", "nickname", ALIAS, "aka", "called", "code name", "codename", "abbreviation", "short name"})
"""Keys of slots whose value is another name of their entity."""
MAX_CHARACTERS = 60
MAX_WORDS = 6
"""What is longer than either is a description and no name."""
MOST = 1_000
"""So many are read, the newest."""
MOST_OF_ONE = 16
"""Names of one thing: each leads to all others of it."""
AUDIENCES = 64
"""Callers whose names are kept, those that asked last."""

# As people tell words apart: "C#" is not "C". A script without spaces is read character by character.
WORD = lazy(rf"[{DENSE_CLASS}]|[^\W{DENSE_CLASS}]+[+#]*")
"""A word of a name, or of a text in which names are looked for."""
_USER = "user"
_KEYED = f"key : ({match_query(fts_text(key) for key in sorted(NAMING))})"

Words = tuple[str, ...]


class Alias(NamedTuple):
    """What a memory says of a name."""

    fact: str
    thing: str  # the entity, as it was written
    other: str  # what it is also called, as it was written
    expires_at: float | None = None  # when the memory ends, epoch seconds; None: never


@dataclass(frozen=True, slots=True)
class OtherName:
    """What else a thing is called."""

    text: str  # as it was written
    words: Words  # folded
    facts: tuple[str, ...]  # ids of the memories that say so


@dataclass(frozen=True, slots=True)
class Names:
    """Which names stand for one thing."""

    # By the folded words of a name, what else it may mean, whole things before their other names
    others: Mapping[Words, Sequence[OtherName]]
    sizes: Mapping[str, Sequence[int]]  # by the first word of a name, how many words such names have, longest first

    @classmethod
    def of(cls, aliases: Iterable[Alias]) -> Names:
        """Gather what memories say; all names of one thing stand for each other."""
        things: dict[Words, dict[Words, OtherName]] = {}
        for alias in aliases:
            thing, other = words_of(alias.thing), words_of(alias.other)
            if thing and other and thing != other:
                known = things.setdefault(thing, {thing: OtherName(alias.thing, thing, ())})
                if len(known) < MOST_OF_ONE:
                    known.setdefault(other, OtherName(alias.other, other, (alias.fact,)))
        others: dict[Words, dict[Words, OtherName]] = {}
        for called in things.values():
            for one, two in permutations(called.values(), 2):
                linked = OtherName(two.text, two.words, one.facts + two.facts)
                others.setdefault(one.words, {}).setdefault(two.words, linked)
        return cls._sized({name: tuple(linked.values()) for name, linked in others.items()})

    @classmethod
    def alone(cls, names: Iterable[Words]) -> Names:
        """Gather names that stand for nothing else, to be found in a text."""
        return cls._sized(dict.fromkeys(filter(None, names), ()))

    @classmethod
    def _sized(cls, others: Mapping[Words, Sequence[OtherName]]) -> Names:
        sizes: dict[str, set[int]] = {}
        for name in others:
            sizes.setdefault(name[0], set()).add(len(name))
        return cls(others, {first: sorted(counts, reverse=True) for first, counts in sizes.items()})

    def beside(self, name: str) -> tuple[str, ...]:
        """Return what else something of this name may be called."""
        return tuple(other.text for other in self.others.get(words_of(name), ()))


def words_of(name: str) -> Words:
    """Return the folded words of a name; none if it is too long for one."""
    if not isinstance(name, str):
        raise refused(name, "a text", "name")
    words = tuple(fold(word) for word in WORD.findall(name[: MAX_CHARACTERS + 1]))
    return () if len(name) > MAX_CHARACTERS or len(words) > MAX_WORDS else words


def naming(connection: Connection, audience: Audience, now: float) -> list[Alias]:
    """Return what memories say of the names of things, newest first.

    Those of now count, whatever time is asked about: who asks uses today's names. Only the user's own word counts, as a
    name changes what a prompt is taken to say.
    """
    view = View(audience, now, channels=sorted(SUPERSEDES), approved_only=True)
    condition, values = view.sql(dialect(connection))
    source, match = by_words(connection, _KEYED)
    sql = (
        f"SELECT facts.id, facts.entity, facts.value, facts.expires_at FROM {source}"
        f" AND replace(facts.key_folded, '_', ' ') IN ({marks(NAMING)}) AND facts.entity_folded <> ?"
        f" AND facts.value IS NOT NULL AND {condition} ORDER BY facts.seq DESC LIMIT ?"
    )
    return [Alias(*row) for row in run(connection, sql, (*match, *sorted(NAMING), _USER, *values, MOST))]


@dataclass(frozen=True, slots=True)
class _Kept:
    names: Names
    seq: int
    since: float
    until: float


class KnownNames:
    """Names as they are known now, read anew only when a memory was changed. Usable from any thread."""

    def __init__(self, database: Backend) -> None:
        """Read from `database`."""
        self._database = database
        self._kept: Recent[Audience, _Kept] = Recent(AUDIENCES)

    def of(self, audience: Audience, now: float, deadline: float | None = None) -> Names:
        """Return the names that a caller may know.

        Nobody waits for the database beyond the `deadline` (`time.monotonic()`).
        """
        with self._database.read(deadline=deadline) as connection:
            seq = newest(connection)
            kept = self._kept.get(audience)
            if kept is None or kept.seq != seq or not kept.since <= now < kept.until:
                aliases = naming(connection, audience, now)
                until = min((each.expires_at for each in aliases if each.expires_at is not None), default=inf)
                kept = _Kept(Names.of(aliases), seq, now, until)
                self._kept.put(audience, kept)
            return kept.names
