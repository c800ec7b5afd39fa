"""Questions about memory itself: what it knows of somebody, where the work stopped, what was decided, what is new.

What answers them is told by what they ask for, not by likeness, so no judge is asked; see `perdure.recall.answers`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count

from perdure.regex import lazy
from perdure.text.lexicon import PARTS, filled, listed, table
from perdure.text.normalise import fold
from perdure.text.when import names_time

_LEAD, _TAIL, _TASK, _SPOKEN_OF = (listed("recall", "about", name) for name in ("lead", "tail", "task", "spoken_of"))
_SENTENCE = lazy(r"(?<=[.!?\u2026])\s+|(?<=[\u3002?!])(?=[^\W\d_])|\n+")
_CLAUSE = lazy(r"[,;\uff0c\u3001]\s*|\s+[-\u2013\u2014]+\s+")
_GROUP = lazy(r"\(\?P<(\w+)>")
_MOST_CHARACTERS = 240
"""Who asks about memory says little else."""
OWN = "own"
TRIED = "tried"


@dataclass(frozen=True, slots=True)
class About:
    """What of memory is asked for."""

    what: str  # an entry of `asks` in data/about.toml, or `OWN`
    topic: str = ""  # of what or whom, folded; empty: of all
    when: str = ""  # of which days, folded
    attribute: str = ""  # which one of the person's own: an entry of `own` there


def about_asked(prompt: str) -> About | None:
    """Return what a prompt asks of memory itself, or None."""
    folded = fold(prompt).strip()
    if len(folded) > _MOST_CHARACTERS or _SPOKEN_OF.search(folded):
        return None
    sentences = _SENTENCE.split(folded)
    clauses = dict.fromkeys(each for sentence in sentences for each in (sentence, *_CLAUSE.split(sentence)))
    if any(map(_TASK.match, clauses)):
        return None
    # The barest first: in "do you know who Petra is?" Petra is asked about.
    barest = [led for clause in clauses for led in reversed([*_led_in(clause)])]
    asked = dict.fromkeys(each for led in barest for each in (_TAIL.sub("", led), led))
    for what, pattern in _kinds():
        for match in filter(None, map(pattern.match, asked)):
            found = _filled_in(what, match)
            if not found.when or names_time(found.when):
                return found
    return None


def _led_in(clause: str) -> Iterator[str]:
    """Yield a clause, and what is left of it behind each word that leads it in."""
    yield clause
    while clause and (lead := _LEAD.match(clause)):
        clause = clause[lead.end() :]
        yield clause


def _filled_in(what: str, match: re.Match[str]) -> About:
    groups: dict[str, list[str]] = defaultdict(list)
    for name, value in match.groupdict().items():
        if value:
            groups[name.partition("_")[0]].append(value.strip())
    topic, when = (" ".join(groups[name]) for name in ("topic", "when"))
    attribute = next((name for name in table("recall", "about")["own"] if name in groups), "")
    return About(what, topic, when, attribute)


@cache
def _kinds() -> Sequence[tuple[str, re.Pattern[str]]]:
    """Return what may be asked for, in the order in which it is tried, each with the clause that asks for it."""
    read = table("recall", "about")
    nouns, phrases = (
        "|".join(f"(?P<{name}>{own[part]})" for name, own in read["own"].items()) for part in ("noun", "phrase")
    )
    mine = filled(read["mine"]["asked"], {"nouns": f"(?:{nouns})", "phrases": phrases})
    return [(what, _clause(asked)) for what, asked in ((OWN, mine), *_asks(read["asks"]))]


def _asks(read: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    for what, alternatives in read.items():
        yield what, "|".join(alternatives)


def _clause(asked: str) -> re.Pattern[str]:
    parts = table("recall", "about")["parts"]
    whole = filled(parts["whole"], {"asked": asked, **parts, **PARTS})
    # A group may stand in several alternatives; to `re` each has a name of its own.
    number = count()
    return lazy(_GROUP.sub(lambda group: f"(?P<{group[1]}_{next(number)}>", whole))
