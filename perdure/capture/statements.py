"""Statements that a person made about themselves and their world, told from talk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from perdure.capture.language import CODES, MAX_SENTENCE, Language, foreign_cue, language, language_of
from perdure.capture.moments import moments
from perdure.capture.naming import find_naming
from perdure.capture.sentences import (
    clauses,
    explained,
    is_fault,
    is_log,
    is_noise,
    is_secret,
    is_tag_question,
    prose,
    resolve,
    sentences,
    without_lead_in,
    without_tag,
)  # fmt: skip
from perdure.regex import lazy
from perdure.speech.forgetting import is_order_to_forget, orders_to_forget, speaks_of_forgetting
from perdure.speech.orders import asked_for, asks_not_to_remember
from perdure.text.lexicon import listed
from perdure.text.normalise import fold
from perdure.text.scripts import dense_script

STRONG = 1.0
WEAK = 0.7
"""Confidence of a statement that is told by a shape of its own, and of one that is only about oneself or a name."""
CHANGE = "change"
"""The cue of what is worth keeping only where it changes what is known."""
LEARNT = "learnt"
"""The cue of what no rule, only a choice has found."""
CaptureRule = Callable[[str], str | None]
"""A further rule: gets a sentence, returns the name of a cue if it is worth keeping, else None."""

MAX_MARK = 20
MAX_NAME_WORDS = 3
MIN_OWN_WORDS = 7
"""Below this, what only speaks of oneself is mostly talk: of LoCoMo's turns in three conversations that kept one such
sentence, those with 5 to 7 words were cited in 30 % of the cases, those with 18 and more in 70 %."""
_QUOTATION = listed("capture", "grammar", "quotation")
_CUES = ("decision", "preference", "factual")
_NAMED = listed("capture", "grammar", "named")
_DEFINITE = listed("capture", "grammar", "definite")
_HABIT = listed("capture", "grammar", "habit")
_JOKE = lazy(r"(?:^|\s)(?:/s|/j|lol|lmao|rofl|haha+|hehe+|jk|just kidding|xd|;-?\)|😂|🤣|😜|🙄|🙃)\W*$", re.IGNORECASE)
_SPECIFIC = lazy(r"\d|(?<=\s)[A-Z][a-z]")
_SHORT = listed("capture", "grammar", "short")
_ASKED = lazy(r"\s?[?？]+$")
_LEAVE = listed("capture", "grammar", "leave")
_LEANS = lazy(r"\b(?:it|that|this|them|him|her|so|too|there)[.!]*$")


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence worth keeping, with what gave it away."""

    text: str  # makes sense without what stood around it
    cue: str  # what marked it
    confidence: float = STRONG  # that it is worth keeping, 0 to 1
    category: str | None = None  # where it is known before the words are read
    after: str = ""  # what the user said before, if the statement says too little without it
    moment: bool = False  # whether it ends with the session


@dataclass(frozen=True, slots=True)
class Heard:
    """A sentence where it stands, as a choice sees it."""

    text: str  # the sentence alone
    code: str  # its language; see `perdure.capture.language`
    stated: tuple[Statement, ...]  # what the rules would keep of it
    number: int  # its place in the message, from 0
    of: int  # number of sentences in the message
    message: str
    moment: bool = False  # whether it ends with the session
    asked: bool = False  # whether it asks for something to be remembered, or something beside it asks for it


Choice = Callable[[Heard], Sequence[Statement] | None]
"""Says what is kept of a sentence; None leaves it to the rules. Not asked about noise and secrets."""


def statements(
    text: str, rules: tuple[CaptureRule, ...] = (), choice: Choice | None = None, before: str = "", asked: str = ""
) -> list[Statement]:
    """Return the statements of a redacted message, in order; a `choice` decides in place of the rules.

    `rules` are asked after the built-in ones. `before` is the user's previous message, `asked` the question
    with which the assistant ended since, both redacted.
    """
    words = language(language_of(text))
    found: list[Statement] = []
    previous = ""
    upset = False
    front = before
    # What stands beside an order to forget is mostly talk about it, and nobody wants that kept.
    forgets = any(orders_to_forget(text))
    for each in heard(text, rules, before):
        sentence = each.text
        if forgets and (order := next(orders_to_forget(sentence), None)):
            if order.last:
                found.clear()
            previous = ""
            continue
        if not each.asked and (forgets or speaks_of_forgetting(sentence) or asks_not_to_remember(sentence)):
            continue
        chosen = choice(each) if choice is not None and not each.asked and _is_speech(sentence) else None
        if previous and (chosen is None or chosen) and _continues(sentence, words):
            named = resolve(sentence, previous)
            if named:
                found.append(replace(found[-1], text=named))
            else:
                # "They are beagles" says nothing without the sentence before it.
                found[-1] = replace(found[-1], text=f"{found[-1].text} {sentence}")
            continue
        if found and len(sentence) <= MAX_MARK and _JOKE.search(sentence):
            found.pop()
        stated = each.stated if chosen is None else chosen
        kept = [replace(one, moment=each.moment and one.cue != "remember") for one in stated]
        # A question in front of it may be all that the message is for.
        after = explained(sentence, front, asked) if not each.number or not front.endswith("?") else ""
        if not each.asked and (after is None or (after and asked and _LEAVE.search(fold(asked)))):
            kept = []  # it says nothing alone, or what it allows is in the assistant's words
        elif after:
            kept = [replace(one, after=after) for one in kept if not (asked and one.cue == "convention")]
        front, asked = sentence if len(sentence.split()) > 1 else front, ""
        if upset and chosen is None:
            # Who is stuck or angry tells what just happened; only what has a shape of its own outlasts that.
            kept = [statement for statement in kept if statement.confidence == STRONG]
        upset = bool(words.passing.search(fold(sentence)))
        previous = sentence if kept and kept[-1].cue != CHANGE else ""
        found += kept
    return found


def heard(text: str, rules: tuple[CaptureRule, ...] = (), before: str = "") -> Iterator[Heard]:
    """Yield the sentences of a redacted message, each with what the built-in rules, then `rules`, would keep of it.

    `before` is the user's previous message, to which an order to remember may point.
    """
    words = language(language_of(text))
    told = sentences(prose(text), words.code)
    before = "" if is_order_to_forget(before) else before
    for number, (sentence, moment, asked) in enumerate(zip(told, moments(told), asked_for(told, before), strict=True)):
        stated = tuple(_of_sentence(sentence, words, rules) if asked is None else _asked_for(asked))
        code = language_of(sentence, words.code)
        yield Heard(sentence, code, stated, number, len(told), text, moment, asked is not None)


def _is_speech(sentence: str) -> bool:
    spoken = not (is_noise(sentence) or is_fault(sentence) or is_tag_question(sentence))
    return len(sentence) <= MAX_SENTENCE and spoken and not is_secret(sentence)


def _continues(sentence: str, words: Language) -> bool:
    folded = fold(sentence)
    return bool(words.continues.match(folded)) and not (
        _is_question(sentence, folded, words) or is_noise(sentence) or is_secret(sentence)
    )


def _of_sentence(sentence: str, words: Language, rules: tuple[CaptureRule, ...]) -> list[Statement]:
    """Return the sentence as one statement, or its clauses where each stands for itself."""
    if not _is_speech(sentence):
        return []
    code = language_of(sentence, words.code)
    if code in CODES:
        cue = foreign_cue(sentence, fold(sentence), code)
        stated = [Statement(capital(sentence), cue)] if cue else []
    else:
        stated = _beside_question(without_tag(sentence), language(code))
    if not stated and (cue := next(filter(None, (rule(sentence) for rule in rules)), None)):
        return [Statement(sentence, cue)]
    return stated


def _asked_for(wanted: str) -> list[Statement]:
    """Return what somebody asks to be remembered, whatever it is, but for a line of a log and a secret."""
    if not wanted or is_log(wanted) or is_secret(wanted) or len(wanted) > MAX_SENTENCE:
        return []
    wanted = _ASKED.sub(".", without_tag(wanted))
    # What is no sentence may be a name or a code, which stays as it is written.
    return [Statement(capital(wanted) if len(wanted.split()) > MAX_NAME_WORDS else wanted, "remember")]


def _beside_question(sentence: str, words: Language) -> list[Statement]:
    told = _without_question(sentence, words)
    # What leads up to a question is mostly its occasion.
    return [found for found in _stated(told, words) if told == sentence or found.confidence == STRONG]


def _stated(sentence: str, words: Language) -> list[Statement]:
    if _is_foreign(sentence, words):
        return []
    sentence = _announced(sentence, words)
    parts = clauses(sentence)
    left = [part for part in parts if not (_is_fleeting(part, words) or _is_asked(part, words))]
    stated = [found for part in left if (found := _judged(part, words))]
    if len(left) < len(parts):
        # What stands beside a request or a passing state lasts only if it has a shape of its own.
        return [found for found in stated if found.confidence == STRONG]
    if len(stated) == len(parts) and not any(map(_LEANS.search, map(fold, parts[1:]))):
        return stated
    whole = _judged(sentence, words)
    return [whole] if whole else stated


def only_asks(text: str) -> bool:
    """Return whether a person only asks for an answer or for work in a text, and tells nothing."""
    words = language(language_of(text))
    said = sentences(text, words.code)
    return bool(said) and all(_asks_alone(each, words) for each in said)


def _asks_alone(sentence: str, words: Language) -> bool:
    if _without_question(sentence, words) != sentence:
        return False
    asked = _is_question(sentence, fold(sentence), words)
    return asked or all(_is_asked(clause, words) for clause in clauses(sentence))


def cue_of(sentence: str) -> str | None:
    """Return what marks a sentence as worth keeping, or None."""
    return next((found.cue for each in heard(sentence) for found in each.stated), None)


def _is_question(sentence: str, folded: str, words: Language) -> bool:
    return sentence.rstrip("\"')]」』 ").endswith(("?", "？")) or bool(words.question.match(folded))


def _without_question(sentence: str, words: Language) -> str:
    """Return the part of a question that was stated before it was asked: "I live in Graz, is it cold there?"."""
    if not sentence.endswith(("?", "？")) or words.question.match(fold(sentence)):
        return sentence
    for comma in re.finditer(r"[,;:–-] ", sentence):
        if _asks(fold(sentence[comma.end() :]), words):
            return sentence[: comma.start()] + "."
    return sentence


def _asks(tail: str, words: Language) -> bool:
    return bool(words.question.match(tail) or tail.startswith("so ") or "please?" in tail)


def _announced(sentence: str, words: Language) -> str:
    """Return the sentence without its lead-in, unless that says something itself."""
    told = without_lead_in(sentence)
    lead = fold(sentence[: len(sentence) - len(told)])
    return sentence if any(getattr(words, cue).search(lead) for cue in _CUES) else told


def _is_foreign(sentence: str, words: Language) -> bool:
    """Return whether a whole sentence says nothing of the user: asked, supposed, quoted or joked."""
    folded = _folded(sentence, words)
    if sentence.rstrip("\"')]」』 ").endswith(("?", "？")) or words.reported.search(folded):
        return True
    if _JOKE.search(sentence) or folded.startswith('""'):
        return True
    return bool(words.unsure.match(folded)) and not words.remember.search(folded)


def _is_asked(clause: str, words: Language) -> bool:
    """Return whether a clause asks for an answer or for work."""
    folded = _folded(clause, words)
    if words.question.match(folded):
        return True
    rule = words.remember.search(folded) or words.convention.search(folded)
    return bool(words.request.match(folded)) and not rule


def _is_fleeting(clause: str, words: Language) -> bool:
    """Return whether a clause is over tomorrow, or not meant."""
    folded = _folded(clause, words)
    if words.remember.search(folded):
        return False
    if words.calendar.search(folded):
        return bool(words.doubt.search(folded))
    return bool(words.passing.search(folded) or words.doubt.search(folded))


def _judged(sentence: str, words: Language) -> Statement | None:
    folded = _folded(sentence, words)
    if len(sentence) < 8 and not any(map(dense_script, sentence)):
        return None
    for cue in ("remember", "convention", "entity", "decision"):
        if getattr(words, cue).search(folded):
            return Statement(capital(sentence), cue)
    if words.code == "en" and find_naming(sentence):
        return Statement(sentence, "entity")
    if words.talk.match(folded):
        return None
    for cue in ("preference", "factual"):
        if getattr(words, cue).search(folded):
            return Statement(capital(sentence), cue)
    if words.calendar.search(folded) and words.own.search(folded):
        return Statement(capital(sentence), "factual")
    if words.chat.search(folded):
        return None
    if (
        _NAMED.match(sentence)
        or _DEFINITE.match(sentence)
        or _HABIT.match(sentence)
        or _is_own(sentence, folded, words)
    ):
        return Statement(capital(sentence), "factual", WEAK)
    return None


def _is_own(sentence: str, folded: str, words: Language) -> bool:
    """Return whether a sentence speaks of oneself at some length; a number or a name stands for three words."""
    length = len(folded.split()) + (3 if _SPECIFIC.search(sentence) else 0)
    dense = any(map(dense_script, sentence))
    return (length >= MIN_OWN_WORDS or dense) and bool(words.own.search(folded))


def _folded(text: str, words: Language) -> str:
    """Return a text as the patterns want it: without what it quotes, short forms with their apostrophe."""
    folded = fold(_QUOTATION.sub('""', text))
    return _SHORT.sub(r"\g<head>\g<n>'\g<tail>", folded) if words.code == "en" else folded


def capital(text: str) -> str:
    """Return a text that begins with a capital."""
    return text[:1].upper() + text[1:]
