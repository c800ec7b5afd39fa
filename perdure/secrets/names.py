"""The names of secrets, and how each is told: "my password is ...", `API_KEY=...`.

To add a name, add a rule to `data/names.toml`; the words of languages stand in `data/passwords.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.regex import lazy
from perdure.text.lexicon import filled, table

_SHORT = 5
"""Letters of a name that also occurs inside of other words, in the alphabets up to this one."""
_LATIN = "\u0250"
_ANY = r"[^\W\d_]{1,20}"


@dataclass(frozen=True, slots=True)
class _Wording:
    """How a language tells a password."""

    stems: tuple[str, ...]  # literals in lower case; every match of `names` begins with one of them
    names: str  # pattern of what it is called
    verbs: str  # comma list of words for "is"
    joints: str  # comma list of words for "for"


def _words(listed: str) -> list[str]:
    """Return what a comma list holds, longer ones first."""
    return sorted({word.strip() for word in listed.split(",")} - {""}, key=lambda word: (-len(word), word))


def _either(listed: str) -> str:
    """Return a pattern for the words of a comma list."""
    return "|".join(re.escape(word).replace("'", "['\u2019]").replace(r"\*", _ANY) for word in _words(listed))


def _named(name: str) -> str:
    stem = name.removesuffix("*")
    whole = len(stem) <= _SHORT and stem < _LATIN
    return (r"(?<![^\W_])" if whole else "") + re.escape(stem) + (r"[^\W\d_]{0,6}" if name.endswith("*") else "")


_TOLD = table("secrets", "passwords")
_, _SHARED_VERBS, _SHARED_JOINTS = _TOLD["languages"][0]
_WORDINGS = tuple(
    _Wording(
        tuple(name.removesuffix("*") for name in _words(names)),
        "|".join(map(_named, _words(names))),
        f"{verbs}, {_SHARED_VERBS}",
        f"{joints}, {_SHARED_JOINTS}",
    )
    for names, verbs, joints in _TOLD["languages"]
)
"""English first."""

_OPENED = "\"'`\u201c\u201e\u00ab\u300c\u300e\u3010"
QUOTE = rf"\\{{0,3}}[{_OPENED}]"
QUOTE_STARTS = f"bBrRuUfF\\{_OPENED}"
CLOSED = "\u201d\u00bb\u300d\u300f\u3011"
# "Password (router):", "**Password:**", "password? ...".
_SIGN = (
    r"\]?(?:\s{1,2}\([^()\n]{1,40}\))?[*_]{0,3}(?:\s{0,3}:\s{0,3}(?:str|string)\b)?\s{0,8}(?::=|={1,3}>?|:|->|\u2192|\uff1a|\|)[*_]{0,3}"
    r"(?:[ \t]{0,3}(?:[(\\]|[>|][+-]?)(?=\s{0,3}\n))?\s{0,8}"
)
_NOW = (
    r"(?:\s{1,3}(?:now|still|set to|jetzt|nun|maintenant|ahora|adesso|ora|agora|nu|teraz|el|la|le|il))?"
    r"(?:\s{0,3}:)?\s{1,4}"
)
# A value that no sentence has: a digit, a letter and a sign within.
_STRONG = r"(?=\S{0,40}\d)(?=\S{0,40}[A-Za-z])(?=\S{0,40}[!#$%^&*+=]\S)"
_VERBS = ", ".join(told.verbs for told in _WORDINGS)
_ANY_VERB = _either(_VERBS)
_AS = "as, als, comme, como, come, som, jako, как"
_GLUED = rf"\s?(?:{_either(_TOLD['glued_verbs'])})\s?"


LATER = lazy(
    r"[^.!?\n\u3002]{0,60}[.!?\n\u3002]\s{0,3}(?:[^\W\d_]{1,8}(?:\s{1,3}|(?=['\u2019])))?"
    rf"(?:['\u2019]s|{_ANY_VERB}){_NOW}",
    re.IGNORECASE,
)
"""From a name over the end of its sentence to the secret: "I set a new password. It is ..."."""
IN_SENTENCE = lazy(rf"[^.!?\n\u3002]{{0,80}}?[\s{_OPENED}]{_STRONG}", re.IGNORECASE)
"""From a name to a word of its sentence that looks like nothing else."""
BEFORE = lazy(
    rf"(?:^|\s)[{_OPENED}]?(?P<value>[^\s{_OPENED}]{{6,60}})[{_OPENED}{CLOSED}]?,?\s{{1,3}}(?:{_ANY_VERB}|{_either(_AS)})\s{{1,3}}"
    r"(?:[^\W\d_]{1,12}[\s-]{1,3}){0,4}\Z",
    re.IGNORECASE,
)
"""From a secret to its name: "... is my new password", "use ... as the password"."""
VERBS = frozenset(_words(f"{_VERBS}, {_AS}"))


@dataclass(frozen=True, slots=True)
class Name:
    """A name of secrets."""

    kind: str  # what stands in the place of the secret
    stems: tuple[str, ...]  # lower-case literals; every match of `pattern` begins with one of them
    pattern: re.Pattern[str]  # the whole name
    value: re.Pattern[str]  # as much of what stands behind the name as can be the secret
    link: re.Pattern[str]  # between the two; the name of its group says how the secret is to be judged
    passing: re.Pattern[str]  # an ordinary word behind the name, as most have: there is no secret then
    chosen: bool  # people choose it, so it may look like a word
    english: bool  # its words are those of English, of which it is known what is said about a password


def _link(verbs: str, joints: str, near: str) -> str:
    # "for the router at home": up to eight words between the name and "is".
    about = rf"\s{{1,3}}(?:{joints})(?:\s{{1,3}}[\w'\u2019./-]{{1,30}}){{0,7}}?"
    return (
        rf"(?:{QUOTE})?(?P<sign>{_SIGN})"
        rf"|(?P<told>\s{{1,3}}(?:(?:is|was|been|got)\s)?(?:(?:set|changed|reset)\s)?to\s{{1,3}}(?=\S{{0,40}}\d)|['\u2019]s\s{{1,3}}|{_GLUED})"
        rf"|(?:{about})?(?:(?P<is>,?\s{{1,3}}(?:{verbs}){_NOW})|(?P<about>\s{{0,3}}(?:[:=]|->|\u2192)\s{{0,3}})"
        rf"|(?P<dash>\s{{1,3}}[\u2013\u2014-]\s{{1,3}})|(?P<near>\s{{1,3}}{near}))"
        r"|(?P<label>(?:\s{1,3}[\w'\u2019./-]{1,30}){1,2}\s{0,3}[:=]\s{1,3})"
        r"|(?P<asked>\?\s{1,3})"
        r"|(?P<tag>>)"
        r"|(?P<space>\s{1,3})"
    )


_NAMED = table("secrets", "names")
_PARTS = {
    "ended": r"[\"'`*_]{0,3}[ \t]{0,3}(?:[:=|;,\t\r\n]|\Z)",
    "owned": "|".join(f"(?<={owner}[ _-])|(?<={owner})" for owner in _words(_NAMED["owners"])),
    "coded": "|".join(f"(?<={lock}[ -])|(?<={lock})" for lock in map(re.escape, _words(_TOLD["locks"]))),
    # "the code for the front door", "le code de l'alarme", "la combinazione della cassaforte".
    "of_lock": rf"(?:\s{{1,2}}[^\W\d_]{{1,12}}){{1,3}}?(?:\s{{1,2}}|['\u2019])(?:{_either(_TOLD['locks'])})(?!\w)",
    "any_code": _either(_TOLD["codes"]),
    "glued": _either(_TOLD["glued_names"]),
    "codes": _TOLD["codes"],
    "glued_names": _TOLD["glued_names"],
}


def _names(rule: Mapping[str, Any]) -> Iterator[Name]:
    """Yield what a rule of the data file names, in each language if it leaves that to them."""
    if "pattern" in rule:
        yield _name(rule, _words(filled(rule["stems"], _PARTS)), filled(rule["pattern"], _PARTS), _WORDINGS[0])
    else:
        yield from (_name(rule, _words(", ".join(told.stems)), told.names, told) for told in _WORDINGS)


def _name(rule: Mapping[str, Any], stems: Sequence[str], pattern: str, told: _Wording) -> Name:
    verbs, joints = _either(told.verbs), _either(told.joints)
    passing = rf"\s(?!(?:set|{verbs}|{joints})\b)[^\W\d_]{{1,40}}+(?=[\s.,])(?!\s?[:=])"
    return Name(
        rule["kind"],
        tuple(stems),
        lazy(pattern, re.IGNORECASE),
        lazy(rule["value"]),
        lazy(_link(verbs, joints, rule.get("near", _STRONG)), re.IGNORECASE),
        lazy(passing, re.IGNORECASE),
        rule.get("chosen", False),
        told is _WORDINGS[0],
    )


NAMES = tuple(name for rule in _NAMED["rules"] for name in _names(rule))
