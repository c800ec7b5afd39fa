"""The words of each language that tell statements from talk, from the data files beside this module.

A file (data/LL.toml) holds lists of regular expressions over folded text (`perdure.text.normalise.fold`: lower case,
without accents). Those of `STARTS` are tried at the beginning of a sentence, behind any of the file's `openers`; all
others anywhere. Both at word boundaries, unless the file says `spaces = false`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from perdure.text.normalise import fold

_ENGLISH = re.compile(r"\b(?:the|is|and|my|i|i'm|our|we|with|of|to)\b")
NOTHING = re.compile(r"(?!)")
STARTS = ("question", "talk", "request", "unsure", "continues")
ANYWHERE = (
    "remember", "convention", "passing", "doubt", "reported",
    "decision", "preference", "entity", "factual", "own", "chat",
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


@cache
def language(code: str) -> Language:
    """Return the patterns of a language; `code` is the name of a data file."""
    content = tomllib.loads(files("perdure.capture").joinpath(f"data/{code}.toml").read_text(encoding="utf-8"))
    edge = r"\b" if content.get("spaces", True) else ""
    openers = "|".join(content.get("openers", ()))
    start = rf"(?:(?:{openers})[\s,.!、\uff0c。]*)*" if openers else ""

    def compiled(name: str) -> re.Pattern[str]:
        alternatives = "|".join(content.get(name, ()))
        if not alternatives:
            return NOTHING
        return re.compile(rf"{start if name in STARTS else edge}(?:{alternatives}){edge}")

    return Language(code, *(compiled(name) for name in (*STARTS, *ANYWHERE)))


def language_of(text: str) -> str:
    """Return the code of the file whose words judge a text: "en", or "other"."""
    folded = fold(text)
    return "other" if language("other").own.search(folded) and not _ENGLISH.search(folded) else "en"
