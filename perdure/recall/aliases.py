"""The other names of what is asked about.

"Did GHA fail again?" is asked as "Did GHA (GitHub Actions) fail again?", so that words, vectors and slots find what was
said under either name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from perdure.recall.query import Added, Query, respelled
from perdure.regex import lazy
from perdure.store.aliases import WORD, KnownNames, Names, OtherName, Words
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.sql import Backend
from perdure.store.vocabulary import terms
from perdure.text.normalise import acronyms, fold, match_terms

MOST_ADDED = 4
"""Names that a prompt gains at the most: it is to be asked for what it says, not for its glossary."""

NAMES_ALONE = "it only states names"
_ASKING_FOR_NAMES = terms("call called name named nickname alias abbreviation acronym stand mean refer known short")
_ARTICLES = ("a", "an")
_JOINED_BEFORE = lazy(r"\w[-.@]$")
_JOINED_BEHIND = lazy(r"[-.@]\w")
_GENITIVE = lazy(r"['\u2019]s(?!\w)")


def spelled_out(text: str, names: Names) -> tuple[str, Added]:
    """Return a text with the other names of what it names in parentheses, and what was added.

    Names are whole words in any case; one of function words alone, as "IT", counts where it is in capitals. What stands
    in the text already is not added, nothing is added twice, and no more than `MOST_ADDED` names in all.
    """
    if not names.others:
        return text, ()
    whole = _line([fold(word) for word in WORD.findall(text)])
    added: dict[Words, tuple[Words, OtherName]] = {}
    places: list[tuple[int, str]] = []
    for name, (_, end) in names_in(text, names):
        fresh = [other for other in names.others[name] if other.words not in added and _line(other.words) not in whole][
            : MOST_ADDED - len(added)
        ]
        if fresh:
            added |= {other.words: (name, other) for other in fresh}
            places.append((end, f" ({', '.join(other.text for other in fresh)})"))
    for end, insertion in reversed(places):
        text = text[:end] + insertion + text[end:]
    return text, tuple(added.values())


def spelled(query: Query, names: Names) -> Query:
    """Return a query with other names in it."""
    text, added = spelled_out(query.text, names)
    return respelled(query, text, added) if added else query


def tells_names_alone(fact: Fact, asked: frozenset[str], aliases: Added) -> bool:
    """Return whether a memory that tells the names is no answer: it shares nothing else with what was asked.

    Both names stand in it, so it would fit "What port does heron answer on?" better than any answer does. Who asks for
    nothing but the name, or what it means, is told. `asked`: the stems of what was asked.
    """
    if not any(fact.id in other.facts for _, other in aliases):
        return False
    named = terms(" ".join(name for words, other in aliases for name in (*words, *other.words)))
    rest = asked - named
    return bool(rest) and not rest & _ASKING_FOR_NAMES and not rest & (terms(fact.text) - named)


def bridging(texts: Iterable[str], added: Added) -> list[str]:
    """Return the ids of the memories without which nobody could tell that a text answers: it has another name."""
    lines = [_line([fold(word) for word in WORD.findall(text)]) for text in texts]
    needed = [
        other.facts
        for asked, other in added
        if any(_line(other.words) in line and _line(asked) not in line for line in lines)
    ]
    return list(dict.fromkeys(chain.from_iterable(needed)))


class Speller:
    """Spells queries out for whoever asks. Usable from any thread."""

    def __init__(self, database: Backend) -> None:
        """Read names from `database`."""
        self._known = KnownNames(database)

    def spell(self, query: Query, audience: Audience, now: float, deadline: float) -> Query:
        """Return a query with other names in it.

        `now`: epoch seconds; `deadline`: `time.monotonic()` up to which it may wait for the database.
        """
        return spelled(query, self._known.of(audience, now, deadline))


def names_in(text: str, names: Names) -> Iterator[tuple[Words, tuple[int, int]]]:
    """Yield the names in a text in their order, of overlapping ones the longest: each with where it begins and ends.

    A genitive belongs to its name. One of function words alone, as "IT", counts where it is in capitals.
    """
    found = [(fold(match[0]), match.span()) for match in WORD.finditer(text)]
    words, spans = [word for word, _ in found], [span for _, span in found]
    capitals = acronyms(text)
    at = 0
    while at < len(words):
        for size in names.sizes.get(words[at], ()):
            name = tuple(words[at : at + size])
            if len(name) < size or name not in names.others:
                continue
            start, end = spans[at][0], spans[at + size - 1][1]
            written = text[start:end]
            common = at > 0 and words[at - 1] in _ARTICLES and written.islower()
            told = bool(match_terms(" ".join(name))) or (written.isupper() and capitals.issuperset(name))
            if told and not common and _is_whole(text, start, end):
                genitive = _GENITIVE.match(text, end)
                yield name, (start, genitive.end() if genitive else end)
                at += size - 1
                break
        at += 1


def _is_whole(text: str, start: int, end: int) -> bool:
    """Return whether nothing that belongs to the name stands around it: "heron-2" and "heron.org" are no "heron"."""
    return not (_JOINED_BEFORE.search(text[max(0, start - 2) : start]) or _JOINED_BEHIND.match(text, end))


def _line(words: Words | list[str]) -> str:
    return f" {' '.join(words)} "
