"""The words of each language that tell statements from talk, and what gives one away, from the data files beside.

A file (data/LL.toml) holds lists of regular expressions over folded text (`perdure.text.normalise.fold`: lower case,
without accents). Those of `STARTS` are tried at the beginning of a sentence, behind any of the file's `openers`; all
others anywhere. Both at word boundaries, unless the file says `spaces = false`.

In languages other than English (`CODES`) a pronoun is often left out and a sentence often has no verb ("magnetröntgen
fredag 14 november 08.20"), so what is asked, supposed, quoted, wanted or over tomorrow is told first; of the rest, any
signal of a statement is enough.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache, lru_cache

from perdure.capture.slots import USER, Slot
from perdure.regex import lazy
from perdure.text.lexicon import PARTS, filled, listed, table
from perdure.text.normalise import fold, fold_letters
from perdure.text.scripts import dense_script

_ENGLISH = lazy(r"\b(?:the|is|and|my|i|i'm|our|we|with|of|to)\b")
NOTHING = lazy(r"(?!)")
MAX_READ = 2_000
_BLOCKS = (("cyrillic", "\u0400", "\u04ff"), ("arabic", "\u0600", "\u06ff"), ("devanagari", "\u0900", "\u097f"))
_OF_SCRIPT = {"cyrillic": "ru", "arabic": "ar", "devanagari": "hi"}
"""The language that a script is taken for."""
MIN_SCORE = 1.3
"""What a language must score before a text is taken for it: one for a word or letter that is a sign of it alone."""
# What touches a digit is no word of any language: "k8s" holds neither the Czech "k" nor "s". Nor is the e of "e-mail".
_WORD = lazy(r"(?<![^\W_])(?![^\W\d_]-\w)[^\W\d_]+(?:'[^\W\d_]+)?(?![^\W_])")
CODES = ("de", "fr", "es", "pt", "sv", "cs", "pl", "tr", "ru", "ar", "hi", "zh", "ja", "ko")
DENSE = frozenset(["zh", "ja", "ko"])
MAX_SENTENCE = 1_000
"""Characters: what is longer is pasted, and no statement."""
_QUOTATION = listed("capture", "grammar", "any_quotation")
_CONTACT = lazy(r"[\w.+-]{1,64}@[\w-]{1,64}\.\w{2,}|\+\d[\d -]{8,20}|\b\d{3}[- ]\d{3,4}(?:[- ]\d{2,4})?\b")
_WHEN = lazy(r"\b\d{1,2}[:h.]\d\d\b|\b\d{1,2}[./]\s?\d{1,2}[./]|\b(?:19|20)\d\d\b")
_JOKE = lazy(r"[🙄😂🤣😜🙃😏😅]|(?:^|\s)(?:/s|xd|lol|;-?\))[^\w]*$")
_CLAUSE = lazy(r"(?:[,;:]|\s[-–—])\s|[\uff0c、\uff1b]")
_END = " .!?。！？؟।…~〜\"'”»"
_CATEGORIES = {
    "convention": "decision", "decision": "decision", "preference": "preference", "entity": "entity",
    "remember": "other",
}  # fmt: skip
STARTS = ("question", "talk", "request", "unsure", "continues")
ANYWHERE = (
    "remember", "convention", "passing", "doubt", "reported",
    "decision", "preference", "entity", "factual", "own", "oneself", "personal", "chat", "calendar",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Language:
    """The patterns of one language, over folded text; one that a file leaves out matches nothing."""

    code: str  # as "en"
    question: re.Pattern[str]  # how a question begins that lacks its mark
    talk: re.Pattern[str]  # greetings, thanks, agreement and other talk that says nothing lasting
    request: re.Pattern[str]  # how a request for work begins
    unsure: re.Pattern[str]  # how a supposition begins: "if", "suppose"
    continues: re.Pattern[str]  # how a sentence begins that says nothing without the one before it
    remember: re.Pattern[str]  # an explicit wish to remember
    convention: re.Pattern[str]  # a standing rule: "always", "never", "from now on"
    passing: re.Pattern[str]  # a state that is over tomorrow
    doubt: re.Pattern[str]  # "maybe", "I might"
    reported: re.Pattern[str]  # somebody else's words
    decision: re.Pattern[str]  # signals of a statement of this kind, as those that follow
    preference: re.Pattern[str]
    entity: re.Pattern[str]
    factual: re.Pattern[str]
    own: re.Pattern[str]  # words for oneself
    oneself: re.Pattern[str]  # words for the speaker alone: "we" may be the team of a project
    personal: re.Pattern[str]  # what is the speaker's own also in a repository
    chat: re.Pattern[str]  # what makes talk of a sentence that only `own` speaks for: "you", thanks
    calendar: re.Pattern[str]  # a date far enough away that what is said of it is no passing state


@cache
def language(code: str) -> Language:
    """Return the patterns of a language; `code` is the name of a data file."""
    content = table("capture", code)
    edge = r"\b" if content.get("spaces", True) else ""
    end = r"(?!\w)" if edge else ""
    openers = "|".join(content.get("openers", ()))
    start = rf"(?:(?:{openers}){end}[\s,.!、\uff0c。]*)*" if openers else ""

    def compiled(name: str) -> re.Pattern[str]:
        alternatives = filled("|".join(content.get(name, ())), PARTS)
        if not alternatives:
            return NOTHING
        return re.compile(rf"{start if name in STARTS else edge}(?:{alternatives}){edge}")

    return Language(code, *(compiled(name) for name in (*STARTS, *ANYWHERE)))


@lru_cache(maxsize=256)
def language_of(text: str, otherwise: str | None = None) -> str:
    """Return the code of the file whose words judge a text: told by its script, else by function words and letters.

    A text that says too little is taken for `otherwise`, such as the language of the message around it; without it,
    for "other" if it speaks of oneself in none of the languages that have a file, else for "en".
    """
    text = text[:MAX_READ]
    scripts = Counter(filter(None, map(_script, text)))
    letters = scripts.total()
    if scripts["hangul"] * 4 >= letters > 0:
        return "ko"
    if (east := scripts["han"] + scripts["kana"]) * 5 >= letters > 0:
        # A heading in Japanese can be in Han alone.
        return "ja" if scripts["kana"] * 12 >= east or otherwise == "ja" else "zh"
    for script, code in _OF_SCRIPT.items():
        if scripts[script] * 2 >= letters > 0:
            return code
    return _by_words(text, otherwise)


def _script(char: str) -> str | None:
    if char.isascii():
        return "latin" if char.isalpha() else None
    block = next((name for name, first, last in _BLOCKS if first <= char <= last), None)
    return dense_script(char) or block or ("latin" if char.isalpha() else None)


def _by_words(text: str, otherwise: str | None) -> str:
    words, letters = _signs()
    scores: dict[str, float] = defaultdict(float)
    folded = fold(text)
    for word in _WORD.findall(folded):
        codes = words.get(word, ())
        for code in codes:
            scores[code] += 1 / len(codes)
    for char in set(text.lower()):
        codes = letters.get(char, ())
        for code in codes:
            scores[code] += 1 / len(codes)
    best = max(scores, key=lambda code: (scores[code], code == otherwise), default="en")
    # One word is no evidence: "die", "on", "me" are words of English as well.
    if scores and (best == "en" or (scores[best] >= MIN_SCORE and scores[best] > scores["en"])):
        return best
    return otherwise or _unknown(folded)


def _unknown(folded: str) -> str:
    return "other" if language("other").own.search(folded) and not _ENGLISH.search(folded) else "en"


@cache
def _signs() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return which languages a word, and a letter, is a sign of."""
    content = dict(table("capture", "words"))
    letters: dict[str, str] = content.pop("letters")
    words: dict[str, list[str]] = defaultdict(list)
    for code, frequent in content.items():
        for word in dict.fromkeys(frequent.split()):
            words[word].append(code)
    signs: dict[str, list[str]] = defaultdict(list)
    for code, chars in letters.items():
        for char in chars:
            signs[char].append(code)
    return dict(words), dict(signs)


def foreign_cue(sentence: str, folded: str, code: str) -> str | None:
    """Return what marks a sentence, no code and no log, in one of `CODES` as worth keeping, or None."""
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


def foreign_category(cue: str, code: str) -> str | None:
    """Return the category of a statement in one of these languages that this cue gave away; None in another."""
    return _CATEGORIES.get(cue, "fact") if code in CODES else None


def foreign_slot(text: str, code: str) -> Slot | None:
    """Return the slot that a statement fills by one of the templates of its language, or None."""
    text = unicodedata.normalize("NFC", text[:MAX_SENTENCE])
    shape = fold_letters(text)
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
    content = table("capture", code)
    behind = "|".join(content.get("behind", ()))
    parts = table("capture", "grammar")["dense_slots" if code in DENSE else "slots"]
    edge, stop = ("", parts["stop"]) if code in DENSE else (r"\b", rf"{parts['stop']}|\s(?:{behind})\b)")
    return tuple(
        (key, re.compile(edge + filled(pattern, parts) + (stop if pattern.endswith("{value}") else "")))
        for key, patterns in content["slots"].items()
        for pattern in patterns
    )
