"""What an agent did comes up again when the same error, command or file does.

Only what failed comes up so: for a prompt that repeats the error, names a file that was changed for it, or speaks of
trouble with the command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

from perdure.hooks.types import Messages
from perdure.recall.turn import Candidate, Turn
from perdure.regex import lazy
from perdure.store import agent_records
from perdure.store.fact import Fact
from perdure.text.lexicon import listed, table, word_set
from perdure.text.normalise import cut_ending, fold, match_terms

LEG: Final = "session"
MOST: Final = 2
SEEN: Final = "done in this conversation"
WORDS: Final = 256
REMEMBERED: Final = 512
"""Commands and errors of which the words are at hand: every prompt is held against the same ones."""
_CODE = lazy(r"[A-Za-z_][\w.:-]*[\w]")
_MADE = lazy(r"[a-z][A-Z]|_|\d{2}|\w[.:]\w")
"""What is in a name that somebody made up for a program, as MarkFirst, freeze_for or E0425."""
SHARE: Final = 0.34
"""So much of an error must be in a prompt, two words at least, for it to be the same."""


@dataclass(frozen=True, slots=True)
class Act:
    """What an agent is about to do."""

    given: Mapping[str, Any]  # to the tool
    folder: str = ""  # where the agent is
    began: str = ""  # where its session began
    lately: Callable[[], Messages] = tuple  # returns the newest messages of the session: by them an error is known


def returned(turn: Turn) -> list[Candidate]:
    """Find what failed before, where it is met again."""
    if turn.narrowed:
        return []
    with turn.read() as reader:
        kept = agent_records.kept(reader, turn.view, (agent_records.FAILED,))
    known = [fact for fact in kept if not is_of(fact, turn.session)]
    prompt = turn.query.text
    trouble = bool(listed("recall", "past_failures", "trouble").search(prompt))
    stems, names = _stems(prompt), _names(prompt)
    found = [(weight, fact) for fact in known if (weight := _weight(fact, stems, names, trouble))]
    best = max((weight for weight, _ in found), default=0.0)
    chosen = sorted((each for each in found if 2 * each[0] >= best), key=lambda each: -each[0])
    return [Candidate(fact, LEG, 1.0) for _, fact in chosen[:MOST]]


def is_of(fact: Fact, session: str | None) -> bool:
    """Return whether a fact is kept of this very session, whose model has done it itself."""
    return fact.extraction_method == agent_records.METHOD and fact.provenance_session == session


def _weight(fact: Fact, stems: frozenset[str], names: frozenset[str], trouble: bool) -> float:
    """Return how much in a prompt is of what failed before; 0: it is something else."""
    error, command = (str(fact.metadata.get(name, "")) for name in ("error", "command"))
    of_error, of_command = _stems(error), _stems(command)
    shared = of_error & stems
    weight = 2.0 * len(_names(error) & names)
    if len(shared) > 1 and len(shared) >= SHARE * len(of_error):
        weight += len(shared)
    weight += len({fold(path.rpartition("/")[2]) for path in files_of(fact)} & names)
    ran = of_command & stems
    if trouble or weight:
        weight += len(ran) if len(ran) > 1 or any(len(word) > 4 for word in ran) else 0
    # Of several that are met again, the one whose error is nearest.
    return weight and weight + 0.5 * len(shared)


def files_of(fact: Fact) -> list[str]:
    """Return the files that were changed before what failed passed, as they stand in the project."""
    found = fact.metadata.get("files")
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


@lru_cache(REMEMBERED)
def _stems(text: str) -> frozenset[str]:
    words = (word for word in match_terms(text, WORDS) if len(word) > 2 and not word.isdecimal())
    return frozenset(map(cut_ending, words)) - _common()


@cache
def _common() -> frozenset[str]:
    return frozenset(map(cut_ending, word_set(table("recall", "past_failures")["common"])))


@lru_cache(REMEMBERED)
def _names(text: str) -> frozenset[str]:
    """Return the names in a text that are of no human language, folded."""
    return frozenset(_folded(word for word in _CODE.findall(text) if _MADE.search(word)))


def _folded(words: Iterable[str]) -> Iterable[str]:
    return (fold(word).strip(".:-") for word in words)
