"""Statements in languages other than English: the same cues, by the grammar that stands in each language's data file.

A pronoun is often left out and a sentence often has no verb ("magnetröntgen fredag 14 november 08.20"), so what is
asked, supposed, quoted, wanted or over tomorrow is told first; of the rest, any signal of a statement is enough.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from perdure.capture.language import Language, language
from perdure.capture.slots import USER, Slot
from perdure.regex import lazy
from perdure.text.normalise import fold

CODES = ("de", "fr", "es", "pt", "sv", "cs", "pl", "tr", "ru", "ar", "hi", "zh", "ja", "ko")
DENSE = frozenset(["zh", "ja", "ko"])
MAX_SENTENCE = 1_000
# Of three words and more, or seven characters without spaces: shorter ones are names and terms.
_QUOTATION = lazy(
    r'"[^"]{1,400}"|[“”„»][^“”«"]{1,400}[“”«"]|«[^»]{1,400}»|「[^」]{1,400}」|『[^』]{1,400}』|\u2018[^\u2019]{1,400}\u2019'
)
_CONTACT = lazy(r"[\w.+-]{1,64}@[\w-]{1,64}\.\w{2,}|\+\d[\d -]{8,20}|\b\d{3}[- ]\d{3,4}(?:[- ]\d{2,4})?\b")
_WHEN = lazy(r"\b\d{1,2}[:h.]\d\d\b|\b\d{1,2}[./]\s?\d{1,2}[./]|\b(?:19|20)\d\d\b")
_JOKE = lazy(r"[🙄😂🤣😜🙃😏😅]|(?:^|\s)(?:/s|xd|lol|;-?\))[^\w]*$")
_CLAUSE = lazy(r"(?:[,;:]|\s[-–—])\s|[\uff0c、\uff1b]")
_END = " .!?。！？؟।…~〜\"'”»"
_PARTS = {
    "value": r"(?P<value>(?:[^,.;:!?؟،।()\"]|\.(?=\w)|(?<=[dm]r)\.){1,60}?)",
    "key": r"(?P<key>\w{1,30}(?:[ -]\w{1,30})?)",
    "entity": r"(?P<entity>\w{1,30})",
}
_DENSE_PARTS = {
    "value": r"(?P<value>[^,.;:!?()\"\s。、！]{1,30}?)",
    "key": r"(?P<key>\w{1,12}?)",
    "entity": r"(?P<entity>\w{1,12}?)",
}
_STOP = r"(?=$|[,;:!?؟،।()\"]|(?<![dm]r)\.(?:\s|$)"
_DENSE_STOP = r"(?=$|[\s,.;:!?()\"。、！])"
_CATEGORIES = {"convention": "decision", "decision": "decision", "preference": "preference", "entity": "entity"}


def cue_of(sentence: str, folded: str, code: str) -> str | None:
    """Return what marks a sentence as worth keeping, or None.

    Args:
        sentence: one sentence, no code and no log.
        folded: the same, folded.
        code: its language, one of `CODES`.
    """
    if len(sentence) > MAX_SENTENCE or _JOKE.search(sentence) or _cut_quotation(sentence):
        return None
    words = language(code)
    told, quoted = _without_quotations(folded, code)
    told = _without_question(told, sentence, words)
    if not told or words.question.match(told) or words.reported.search(told):
        return None
    told = told.rstrip(_END)
    if quoted and not words.entity.search(told):
        return None
    if words.remember.search(told):
        return "remember"
    if words.unsure.match(told) or words.talk.match(told) or words.doubt.search(told):
        return None
    if words.convention.search(told):
        return None if words.passing.search(told) else "convention"
    if words.request.match(told) or words.passing.search(told):
        return None
    return _signal(told, code, words)


def category_of(cue: str, code: str) -> str | None:
    """Return the category of a statement in one of these languages that this cue gave away; None in another."""
    return _CATEGORIES.get(cue, "other" if cue == "remember" else "fact") if code in CODES else None


def slot_of(text: str, code: str) -> Slot | None:
    """Return the slot that a statement fills by one of the templates of its language, or None."""
    text = unicodedata.normalize("NFC", text[:MAX_SENTENCE])
    # Letter by letter, so that the value can be taken from the text as it was written.
    shape = "".join(one if len(one := fold(char)) == 1 else char for char in text)
    for key, pattern in _templates(code):
        if match := pattern.search(shape):
            said = {name: text[slice(*match.span(name))].strip() for name in match.groupdict()}
            if key == "mine":
                return Slot(USER, said["key"].lower(), said["value"])
            return (
                Slot(said["entity"].lower(), "name", said["value"])
                if key == "called"
                else Slot(USER, key, said["value"])
            )
    return None


def _signal(told: str, code: str, words: Language) -> str | None:
    if words.entity.search(told) or _CONTACT.search(told):
        return "entity"
    if code not in DENSE and len(told.split()) < 2:
        return None
    if words.decision.search(told):
        return "decision"
    if words.preference.search(told):
        return "preference"
    return "factual" if words.factual.search(told) or _WHEN.search(told) else None


def _without_quotations(folded: str, code: str) -> tuple[str, bool]:
    """Return the sentence with an x for each quotation that is more than a name, and whether there is one."""

    def shortened(match: re.Match[str]) -> str:
        said = match.group()
        return '"x"' if (len(said) > 8 if code in DENSE else len(said.split()) > 2) else said[1:-1]

    told = _QUOTATION.sub(shortened, folded)
    return told, '"x"' in told


def _cut_quotation(sentence: str) -> bool:
    """Return whether a quotation begins or ends here that goes on in another sentence."""
    low, left, right = map(sentence.count, "„“”")
    # „German“, “Spanish”, ”Swedish”.
    odd = low != left + right if low else left != right and (left > 0 or right % 2 == 1)
    return odd or sentence.count('"') % 2 == 1 or any(sentence.count(a) != sentence.count(b) for a, b in ("«»", "「」"))


def _without_question(told: str, sentence: str, words: Language) -> str:
    """Return what was stated before something was asked; nothing, if all of it is asked."""
    if not sentence.rstrip("\"')]」』» ").endswith(("?", "？", "؟")):
        return told
    if words.question.match(told) or "¿" in sentence[:2]:
        return ""
    for comma in _CLAUSE.finditer(told):
        tail = told[comma.end() :]
        if words.question.match(tail) or tail.startswith("¿") or words.request.match(tail):
            return told[: comma.start()]
    return ""


@cache
def _templates(code: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the templates of a language: which key each fills; "mine" is my X is Y, "called" is my X is called Y."""
    content = tomllib.loads(files("perdure.capture").joinpath(f"data/{code}.toml").read_text(encoding="utf-8"))
    behind = "|".join(content.get("behind", ()))
    edge, parts, stop = (
        ("", _DENSE_PARTS, _DENSE_STOP) if code in DENSE else (r"\b", _PARTS, rf"{_STOP}|\s(?:{behind})\b)")
    )
    return tuple(
        (key, re.compile(edge + _filled(pattern, parts) + (stop if pattern.endswith("{value}") else "")))
        for key, patterns in content["slots"].items()
        for pattern in patterns
    )


def _filled(template: str, parts: Mapping[str, str]) -> str:
    for name, part in parts.items():
        template = template.replace(f"{{{name}}}", part)
    return template
