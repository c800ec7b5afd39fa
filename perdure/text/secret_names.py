"""Secrets that are known by the name in front of them: "my password is ...", `API_KEY=...`.

Names are found with `str.find`; only there patterns are matched, and they look a bounded way ahead.
To add a name, add it to `_NAMES`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from perdure.text import secret_judge as judge
from perdure.text.secret_shapes import Span, lowered


@dataclass(frozen=True, slots=True)
class _Name:
    """A name of secrets.

    Attributes:
        kind: what stands in the place of the secret.
        stems: lower-case literals; every match of `pattern` begins with one of them.
        pattern: the whole name.
        value: as much of what stands behind the name as can be the secret.
        chosen: whether people choose it, so that it may look like a word.
    """

    kind: str
    stems: tuple[str, ...]
    pattern: re.Pattern[str]
    value: re.Pattern[str]
    chosen: bool


def _name(kind: str, stems: str, pattern: str, value: str, *, chosen: bool = False) -> _Name:
    return _Name(kind, tuple(stems.split()), re.compile(pattern, re.IGNORECASE), re.compile(value), chosen)


_OWNERS = ("api", "access", "private", "encryption", "account", "auth", "signing", "master", "license")
_OWNED = "|".join(f"(?<={owner}[ _-])|(?<={owner})" for owner in _OWNERS)
_LOCKS = "door gate alarm access entry lock safe security unlock garage keypad voicemail locker t\u00fcr"
_CODED = "|".join(f"(?<={lock}[ -])|(?<={lock})" for lock in _LOCKS.split())
_MADE = r"(?=\D{0,200}\d).{8,}"  # by a machine: there are digits in it

_NAMES = (
    _name("passphrase", "passphrase", r"passphrase", r".{4,}", chosen=True),
    _name(
        "seed-phrase",
        "seed recovery mnemonic",
        r"(?:seed|recovery) (?:phrase|words)|mnemonic(?: phrase)?",
        r"[a-z]+(?:[ ,]+[a-z]+){5,}",
        chosen=True,
    ),
    _name(
        "password",
        "passw passcode pwd kennwort schl\u00fcssel mot mdp contrase senha heslo l\u00f6senord has\u0142o "
        "\u043f\u0430\u0440\u043e\u043b\u044c",
        r"passwords?|passwort|passwd|passcode|pwd|kennwort|(?:(?<=wlan[ -])|(?<=wifi[ -]))schl\u00fcssel|mot de passe"
        r"|(?<![^\W_])mdp|contrase[\u00f1n]a"
        r"|(?<![^\W_])(?:senha|heslo)|l\u00f6senord|has\u0142o|\u043f\u0430\u0440\u043e\u043b\u044c",
        r".{4,}",
        chosen=True,
    ),
    _name("password", "pass", r"(?<![A-Za-z])pass(?=[\"']?\s?[:=])", r"(?=\D{0,200}\d)(?=.{0,200}[A-Za-z]).{6,}"),
    _name("password", "clave", r"(?<![^\W_])clave(?= (?:de|del|es|wifi)\b|\s?[:=])", r"(?=\D{0,200}\d).{4,}"),
    _name(
        "password",
        "\u5bc6\u7801 \u5bc6\u78bc \u30d1\u30b9\u30ef\u30fc\u30c9 \ube44\ubc00\ubc88\ud638",
        r"\u5bc6[\u7801\u78bc]|\u30d1\u30b9\u30ef\u30fc\u30c9|\ube44\ubc00\ubc88\ud638",
        r"[!-~]{4,}",
        chosen=True,
    ),
    _name(
        "pin",
        "pin cvv cvc code digicode geheimzahl",
        r"(?<![A-Za-z])(?:pin|cvv2?|cvc2?)(?:[ -]?(?:code|number|nummer))?(?![\w-])|digicode|geheimzahl"
        rf"|(?:{_CODED})code(?:s? secret)?(?!\w)|code secret(?!\w)",
        r"(?<!\d)(?:\d{4,12}|\d{3})$",
    ),
    _name("secret", "secret", r"secret(?:[ _-]?(?:access[ _-]?)?key)?", _MADE),
    _name("token", "token", r"token", _MADE),
    _name("api-key", "key", rf"(?:{_OWNED})key", _MADE),
)

_QUOTE = r"\\{0,3}[\"'`\u201c\u201e\u00ab]"
_VERBS = r"is|was|are|ist|lautet|c['\u2019]est|est|es(?: el)?|era|\u00e9|je|jest|\u00e4r|set to|to"
_IS = rf"(?:{_VERBS})(?:\s{{1,3}}(?:now|still|set to|jetzt))?(?:\s{{0,3}}:)?\s{{1,4}}"
_JOINTS = (
    r"for|to|of|on|at|in|from|that|which|we|i|f\u00fcr|f\u00fcrs|zum|vom|von|de|del|du|da|do|para|pour|k|ke|na|till"
    r"|f\u00f6r"
)
# "for the router at home": up to eight words between the name and "is".
_ABOUT = rf"\s{{1,3}}(?:{_JOINTS})(?:\s{{1,3}}[\w'\u2019./-]{{1,30}}){{0,7}}?"
_SIGN = (
    r"\]?(?:\s{0,3}:\s{0,3}(?:str|string)\b)?\s{0,8}(?::=|={1,3}>?|:|->|\u2192|\uff1a|\|)"
    r"(?:[ \t]{0,3}(?:[(\\]|[>|][+-]?)(?=\s{0,3}\n))?\s{0,8}"
)
_CJK_IS = r"\s?(?:\u662f|\u4e3a|\u70ba|\u306f|\ub294|\uc740)\s?"

# What may stand between a name and its secret. The name of the group says how the secret is to be judged.
_LINK = re.compile(
    rf"(?:{_QUOTE})?(?P<sign>{_SIGN})"
    rf"|(?P<told>\s{{1,3}}(?:set\s)?to\s{{1,3}}(?=\S{{0,40}}\d)|['\u2019]s\s{{1,3}}|(?:{_ABOUT})?,?\s{{1,3}}{_IS}|{_CJK_IS})"
    rf"|(?P<about>{_ABOUT}\s{{0,3}}[:=]\s{{0,3}})"
    r"|(?P<tag>>)"
    r"|(?P<space>\s{1,3})",
    re.IGNORECASE,
)
# An ordinary word behind the name: most names are followed by one, and there is no secret then.
_PLAIN = re.compile(rf"\s(?!(?:set|{_VERBS}|{_JOINTS})\b)[^\W\d_]{{1,40}}+(?=[\s.,])", re.IGNORECASE)
_QUOTE_STARTS = "bBrRuUfF\\\"'`\u201c\u201e\u00ab"
_REACH = 200
_FAR = 700
"""Characters behind a name within which a secret that was made by a machine has its first digit."""
_DIGIT = re.compile(r"[0-9]")
_QUOTED = re.compile(
    rf"[bruf]{{0,2}}(?P<quote>{_QUOTE})"
    rf"(?P<value>(?![\s,;:)\]}}+])(?:(?!(?P=quote)|[\u201d\u00bb])[^\r\n]){{1,{_REACH}}})",
    re.IGNORECASE,
)
# A separator ends a value if white space or another `name=` follows it, else it is part of the value.
_BARE = re.compile(
    rf"[^\s\"'`;<>,][^\s\"'`;&<,]{{0,{_REACH - 1}}}"
    rf"(?:[;&,](?!\s|$|\w{{1,40}}[=:])[^\s\"'`;&<,]{{0,{_REACH}}}){{0,4}}"
)
_PHRASE = re.compile(rf"[^\s.:!?\"\[][^\r\n.:!?\"\[]{{3,{_REACH - 1}}}")
_REST = re.compile(r"[^\s\"'`<]*+")
_TAIL = ".:;?)]},|*_"
_OPTION = re.compile(r"(?<!\S)--[\w-]{0,30}$")


def named_secrets(text: str) -> Iterator[Span]:
    """Yield the secrets that a name announces, name by name; they may lie over each other."""
    lower = lowered(text)
    for name in _NAMES:
        for stem in name.stems:
            at = lower.find(stem)
            digit = -1
            while at >= 0:
                after = at + len(stem)
                if not name.chosen:
                    digit = _next_digit(text, after, digit)
                if name.chosen or digit - after < _FAR:
                    match = name.pattern.match(text, at)
                    secret = _secret(text, match, name) if match is not None else None
                    if secret is not None:
                        start, after = secret
                        yield Span(start, after, name.kind)
                at = lower.find(stem, after)


def _next_digit(text: str, after: int, known: int) -> int:
    """Return where the next digit is, or a place that is far off if there is none near.

    Args:
        text: the text.
        after: from where on.
        known: what was returned for a place before.
    """
    if known - after >= _FAR or (known >= after and text[known : known + 1].isdecimal()):
        return known
    found = _DIGIT.search(text, after, after + 2 * _FAR)
    return found.start() if found is not None else after + 2 * _FAR


def _secret(text: str, found: re.Match[str], name: _Name) -> tuple[int, int] | None:
    """Return where the secret behind a name begins and ends."""
    if name.chosen and _PLAIN.match(text, found.end()) and not _is_option(text, found.start()):
        return None
    link = _LINK.match(text, found.end())
    if link is None:
        return None
    quoted = _QUOTED.match(text, link.end()) if text[link.end() : link.end() + 1] in _QUOTE_STARTS else None
    how = "quoted" if quoted is not None else link.lastgroup or ""
    if quoted is not None:
        start, end = quoted.span("value")
    else:
        pattern = _PHRASE if name.kind.endswith("phrase") and how != "space" else _BARE
        bare = pattern.match(text, link.end())
        if bare is None:
            return None
        start, end = bare.start(), bare.start() + len(bare[0].rstrip(_TAIL).rstrip())
    secret = text[start:end]
    if name.chosen and _is_passing(text, found, how, secret, end):
        return None
    value = name.value.match(secret)
    if value is None or judge.is_placeholder(value[0]):
        return None
    end = start + value.end()
    if not _is_secret(text, found, name, how, (start, end)):
        return None
    if end - start >= _REACH:
        rest = _REST.match(text, end)
        end = rest.end() if rest is not None else end
    return start, end


def _is_passing(text: str, found: re.Match[str], how: str, secret: str, end: int) -> bool:
    """Return whether a candidate is plainly a word of the sentence: what most are, at the least cost."""
    if not secret.isalpha() or how in ("quoted", "tag"):
        return False
    if how == "space":
        return not _is_option(text, found.start())
    if how == "sign" and text.startswith(":", end):
        return True  # the next label of a form that nobody has filled in
    return not judge.stops(text, end)


def _is_option(text: str, start: int) -> bool:
    return "--" in text[max(0, start - 32) : start] and _OPTION.search(text, max(0, start - 32), start) is not None


def _is_secret(text: str, found: re.Match[str], name: _Name, how: str, span: tuple[int, int]) -> bool:
    start, end = span
    secret = text[start:end]
    if how == "tag":
        return text.startswith("</", end) and not judge.is_remark(secret)
    if how == "space" and _is_option(text, found.start()):
        return not secret.startswith("-") and not judge.is_code(secret)
    if name.kind == "pin":
        return not judge.counts_something(text, end)
    if name.kind == "seed-phrase":
        return True
    if name.kind == "passphrase":
        code = how != "quoted" and not {"(", ")", "=", "|"}.isdisjoint(secret)
        return how != "space" and not code and not judge.is_sentence(secret)
    if not name.chosen:
        return how != "space" and not judge.is_code(secret) and not judge.counts_something(text, end)
    match how:
        case "quoted":
            return judge.quoted(secret)
        case "told":
            return judge.told(text, end, secret)
        case "space":
            return judge.adjoined(text, end, secret)
        case _:
            return judge.assigned(text, end, secret)
