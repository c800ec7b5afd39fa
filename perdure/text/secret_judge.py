"""Is what follows "password is" or `token =` a secret, or a remark, a type, code, a placeholder?

Each judgement is about a candidate: a short text without white space, or with it if it was quoted.
"""

from __future__ import annotations

import re

from perdure.text.secret_shapes import is_documented

# After "password is" or "password:" these begin a remark about it, or name a type.
_REMARK_WORDS = """
a about again all almost already also always an and any array as async at auto await bad be bearer because
been being blank bool boolean both by bytes case case-sensitive char common compromised const correct dead
default dein different difficult easy eine either else empty enough equal even ever falsch false faux field
fine first for free from gone good great hard he here hers hidden his how i if important in incorrect
incorrecte input insecure integer into invalid is it just known lambda later less long longer lost mandatory
maybe me mein mine missing more most must my necessary needed never nicht no noch none not nothing null
number object of okay on only open optional or other ours outdated over plain plaintext please private
public quite random really required return returns richtig right safe same secret secure sehr self she short
should simple so someone something somewhere still string strong such text than that the their theirs then
there these they this those to today too trop true unclear undefined under unique unknown unsafe unset until
up us useless valid value varchar very visible void we weak what when where which whose with without wrong
you your yours
"""
_REMARKS = frozenset(_REMARK_WORDS.split())
_PARTICIPLE = re.compile(r"[a-z-]*(?:ed|ing|ly|able|ible|ired)$")
_HOLDER_LIST = "changeme dummy example here insert placeholder redacted replace sample todo your"
_HOLDER_WORDS = frozenset(_HOLDER_LIST.split())
_HOLDER = re.compile(
    r"\$\{?[A-Za-z_]+\}?$|%[A-Za-z_(].*|[{<\[(].*|(?P<same>[x*.\u2022#_-])(?P=same){2,}.*|\w{0,12}[-_]x{4,}",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[a-z]+")
_NAMED = re.compile(r"pass|pwd|token|secret|key|credential|user|login", re.IGNORECASE)
_CALL = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::)[\w$]+)*[(\[]")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$.-]*$")
_VARIABLES = re.compile(r"(?:process\.env|import\.meta|os\.environ|env|secrets|vars|config|settings|self|this)\.")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$")
_VARIABLE = re.compile(r"[a-z]+(?:_[a-z]+)+$|[a-z]+[A-Z][A-Za-z]*$")
_PATH = re.compile(r"https?://|\.{0,2}/[a-z]|~/|[A-Z]:\\")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*$")
_UNITS = re.compile(
    r"[ \t-]{1,3}(?:char|digit|letter|symbol|word|bit|byte|sec|min|hour|day|time|attempt)", re.IGNORECASE
)
_STOP = re.compile(r"\s{0,3}(?:$|[.,;:!?)\]\"'}|\r\n]|(?:and|but|on|for|since|please|und|et)\b)")
_CODE_STOP = re.compile(r"\s{0,3}[;),}]")
_ALGORITHM = re.compile(
    r"sha|md\d|argon|b?crypt|pbkdf|oauth|base|utf|v\d|1pass|aes|rsa|ed25|python|web|http", re.IGNORECASE
)


def is_placeholder(secret: str) -> bool:
    """Return whether a candidate only marks the place of a secret: `${TOKEN}`, YOUR_API_KEY, xxxx."""
    first = secret[0]
    if (not first.isalnum() or first in "xX" or "xxxx" in secret.lower()) and _HOLDER.match(secret):
        return True
    if _digits(secret) < 2 and not _HOLDER_WORDS.isdisjoint(_LETTERS.findall(secret.lower())):
        return True
    return is_documented(secret)


def is_code(secret: str) -> bool:
    """Return whether a candidate is an expression: a call, an attribute, a variable named so."""
    if _CALL.match(secret) or _PATH.match(secret) or _VARIABLES.match(secret):
        return True
    digits = _digits(secret)
    if digits <= 1 and _IDENTIFIER.match(secret) and _NAMED.search(secret):
        return True
    return digits == 0 and _DOTTED.match(secret) is not None


def stops(text: str, end: int) -> bool:
    """Return whether a sentence or a clause ends at `end`, as it does behind a password that it tells."""
    return _STOP.match(text, end) is not None


def is_remark(secret: str) -> bool:
    """Return whether a candidate is a word that speaks about a secret: "required", "wrong", `str`."""
    word = secret.lower()
    return word in _REMARKS or _PARTICIPLE.match(word) is not None


def is_sentence(secret: str) -> bool:
    """Return whether a candidate of several words speaks about a secret: "too long to remember"."""
    words = secret.split()
    return "passphrase" in words or sum(map(is_remark, words)) >= min(2, len(words))


def counts_something(text: str, end: int) -> bool:
    """Return whether a unit follows at `end`: "12 characters", "30 minutes"."""
    return _UNITS.match(text, end) is not None


def _digits(secret: str) -> int:
    return sum(map(str.isdigit, secret))


def told(text: str, end: int, secret: str) -> bool:
    """Judge a password that prose tells ("my password is ..."); it ends at `end` of `text`."""
    if counts_something(text, end):
        return False
    if _digits(secret) or not _WORD.match(secret):
        return True
    return stops(text, end) and not is_remark(secret)


def assigned(text: str, end: int, secret: str) -> bool:
    """Judge a password behind a colon or an equals sign; it ends at `end` of `text`."""
    if counts_something(text, end) or is_code(secret) or _VARIABLE.match(secret):
        return False
    if _digits(secret) or not _WORD.match(secret):
        return True
    return not is_remark(secret) and stops(text, end) and not _CODE_STOP.match(text, end)


def adjoined(text: str, end: int, secret: str) -> bool:
    """Judge a password right behind the word ("wifi password hunter2"); it ends at `end` of `text`."""
    mixed = _digits(secret) > 0 and any(map(str.isalpha, secret)) and not _CALL.match(secret)
    return mixed and len(secret) >= 6 and not _ALGORITHM.match(secret) and stops(text, end)


def quoted(secret: str) -> bool:
    """Judge a password in quotes."""
    words = secret.lower().split()
    if len(words) > 1:
        return len(words) <= 12 and not _NAMED.search(secret) and not is_sentence(secret)
    return len(secret) >= 4 and not is_remark(secret) and not (_NAMED.search(secret) and not _digits(secret))
