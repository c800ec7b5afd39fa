"""Step three: statements that a person made about themselves and their world, told from talk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from perdure.capture import cues
from perdure.capture.sentences import clauses, prose, sentences
from perdure.text.normalise import fold
from perdure.text.redact import redact
from perdure.text.scripts import dense_script

MAX_EMOJI = 3
CaptureRule = Callable[[str], str | None]
"""A further rule: gets a sentence, returns the name of a cue if it is worth keeping, else None."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence worth keeping, with what gave it away."""

    text: str
    cue: str


def statements(text: str, rules: tuple[CaptureRule, ...] = ()) -> list[Statement]:
    """Return the statements of a message, in order.

    Args:
        text: the message, redacted.
        rules: further rules, asked after the built-in ones.
    """
    found: list[Statement] = []
    previous_kept = False
    for sentence in sentences(prose(text)):
        if previous_kept and cues.CONTINUES.match(fold(sentence)) and not _is_question(sentence, fold(sentence)):
            # "He is a beagle" says nothing without the sentence before it.
            found[-1] = Statement(f"{found[-1].text} {sentence}", found[-1].cue)
            continue
        kept = _of_sentence(sentence, rules)
        previous_kept = bool(kept)
        found += kept
    return found


def _of_sentence(sentence: str, rules: tuple[CaptureRule, ...]) -> list[Statement]:
    """Return the sentence as one statement, or its clauses where each stands for itself."""
    if _is_noise(sentence, fold(sentence)):
        return []
    parts = clauses(sentence)
    stated = [Statement(part[:1].upper() + part[1:], cue) for part in parts if (cue := cue_of(part))]
    if len(stated) == len(parts) and not any(map(cues.LEANS.search, map(fold, parts[1:]))):
        return stated
    cue = cue_of(sentence) or next(filter(None, (rule(sentence) for rule in rules)), None)
    return [Statement(sentence, cue)] if cue else stated


def cue_of(sentence: str) -> str | None:
    """Return what marks a sentence as worth keeping, or None."""
    folded = fold(sentence)
    if len(sentence) < 8 and not any(map(dense_script, sentence)):
        return None
    if _is_question(sentence, folded) or _is_noise(sentence, folded):
        return None
    for cue, pattern in cues.EXPLICIT:
        if pattern.search(folded):
            return cue
    if (
        cues.TALK.match(folded)
        or cues.REQUEST.match(folded)
        or cues.PASSING.search(folded)
        or cues.UNSURE.search(folded)
    ):
        return None
    for cue, pattern in cues.CUES:
        if pattern.search(folded):
            return cue
    if cues.NAMED.match(sentence) or cues.FIGURE.match(sentence):
        return "factual"
    return "factual" if _speaks_of_self(folded) else None


def _is_question(sentence: str, folded: str) -> bool:
    return sentence.rstrip("\"')]」』 ").endswith(("?", "？")) or bool(cues.QUESTION.match(folded))


def _is_noise(sentence: str, folded: str) -> bool:
    if redact(sentence).kinds or "[redacted" in sentence or sentence.startswith(("<", "{", "[", "$", "#")):
        return True
    emoji = sum(0x1F300 <= ord(char) <= 0x1FAFF for char in sentence)
    symbols = sum(char in "{}[]();=<>|\\_`$#" for char in sentence)
    return emoji > MAX_EMOJI or symbols > 3 + len(sentence) // 15 or bool(cues.LOG.match(folded))


def _speaks_of_self(folded: str) -> bool:
    words = folded.split()
    if any(map(dense_script, folded)):
        return any(mark in folded for mark in cues.DENSE_SELF)
    return len(words) >= 4 and any(word.strip(",.;:!\"'()").split("'")[0] in cues.SELF for word in words[:8])
