"""The words of each language that tell statements from talk, from the data files beside this module.

A file (data/LL.toml) holds lists of regular expressions over folded text (`perdure.text.normalise.fold`: lower case,
without accents). Those of `STARTS` are tried at the beginning of a sentence, behind any of the file's `openers`; all
others anywhere. Both at word boundaries, unless the file says `spaces = false`.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from perdure.regex import lazy
from perdure.text.normalise import fold
from perdure.text.scripts import dense_script

_ENGLISH = lazy(r"\b(?:the|is|and|my|i|i'm|our|we|with|of|to)\b")
NOTHING = lazy(r"(?!)")
MAX_READ = 2_000
_BLOCKS = (("cyrillic", "\u0400", "\u04ff"), ("arabic", "\u0600", "\u06ff"), ("devanagari", "\u0900", "\u097f"))
_OF_SCRIPT = {"cyrillic": "ru", "arabic": "ar", "devanagari": "hi"}
"""The language that a script is taken for."""
MIN_SCORE = 1.3
"""What a language must score before a text is taken for it: one for a word or letter that is a sign of it alone."""
# What touches a digit is no word of any language: "k8s" holds neither the Czech "k" nor "s".
_WORD = lazy(r"(?<![^\W_])[^\W\d_]+(?:'[^\W\d_]+)?(?![^\W_])")
STARTS = ("question", "talk", "request", "unsure", "continues")
ANYWHERE = (
    "remember", "convention", "passing", "doubt", "reported",
    "decision", "preference", "entity", "factual", "own", "chat", "calendar",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Language:
    """The patterns of one language, over folded text; one that a file leaves out matches nothing.

    Attributes:
        code: as "en".
        question: how a question begins that lacks its mark.
        talk: greetings, thanks, agreement and other talk that says nothing lasting.
        request: how a request for work begins.
        unsure: how a supposition begins: "if", "suppose".
        continues: how a sentence begins that says nothing without the one before it.
        remember: an explicit wish to remember.
        convention: a standing rule: "always", "never", "from now on".
        passing: a state that is over tomorrow.
        doubt: "maybe", "I might".
        reported: somebody else's words.
        decision, preference, entity, factual: signals of a statement of this kind.
        own: words for oneself.
        chat: what makes talk of a sentence that only `own` speaks for: "you", thanks.
        calendar: a date far enough away that what is said of it is no passing state.
    """

    code: str
    question: re.Pattern[str]
    talk: re.Pattern[str]
    request: re.Pattern[str]
    unsure: re.Pattern[str]
    continues: re.Pattern[str]
    remember: re.Pattern[str]
    convention: re.Pattern[str]
    passing: re.Pattern[str]
    doubt: re.Pattern[str]
    reported: re.Pattern[str]
    decision: re.Pattern[str]
    preference: re.Pattern[str]
    entity: re.Pattern[str]
    factual: re.Pattern[str]
    own: re.Pattern[str]
    chat: re.Pattern[str]
    calendar: re.Pattern[str]


@cache
def language(code: str) -> Language:
    """Return the patterns of a language; `code` is the name of a data file."""
    content = tomllib.loads(files("perdure.capture").joinpath(f"data/{code}.toml").read_text(encoding="utf-8"))
    edge = r"\b" if content.get("spaces", True) else ""
    end = r"(?!\w)" if edge else ""
    openers = "|".join(content.get("openers", ()))
    start = rf"(?:(?:{openers}){end}[\s,.!、\uff0c。]*)*" if openers else ""

    def compiled(name: str) -> re.Pattern[str]:
        alternatives = "|".join(content.get(name, ()))
        if not alternatives:
            return NOTHING
        return re.compile(rf"{start if name in STARTS else edge}(?:{alternatives}){edge}")

    return Language(code, *(compiled(name) for name in (*STARTS, *ANYWHERE)))


def language_of(text: str, otherwise: str | None = None) -> str:
    """Return the code of the file whose words judge a text: told by its script, else by function words and letters.

    Args:
        text: any string.
        otherwise: what a text is taken for that says too little, such as the language of the message around it;
            without it, "other" if it speaks of oneself in none of the languages that have a file, else "en".
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
    content = tomllib.loads(files("perdure.capture").joinpath("data/words.toml").read_text(encoding="utf-8"))
    letters: dict[str, str] = content.pop("letters")
    words: dict[str, list[str]] = defaultdict(list)
    for code, listed in content.items():
        for word in dict.fromkeys(listed.split()):
            words[word].append(code)
    signs: dict[str, list[str]] = defaultdict(list)
    for code, chars in letters.items():
        for char in chars:
            signs[char].append(code)
    return dict(words), dict(signs)
