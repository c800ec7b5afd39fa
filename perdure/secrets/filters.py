"""Is what follows "password is" or `token =` a secret, or a remark, a type, code, a placeholder?

Each judgement is about a candidate: a short text without white space, or with it if it was quoted.
"""

from __future__ import annotations

import re

from perdure.regex import lazy
from perdure.secrets.shapes import has_chance_letters, is_documented
from perdure.secrets.shapes import is_made as is_made
from perdure.text.lexicon import listed, stop_words, table, word_set

_REMARKS, _ABOUT = (word_set(table("secrets", "remarks")[name]) for name in ("remarks", "about"))
_PARTICIPLE = lazy(r"[a-z-]*(?:ed|ing|ly|able|ible|ired|(?:ak|idd|itt|iv|ok|ol|os|ott|ow)e?n)$")
_HOLDER_WORDS = word_set("changeme dummy example here insert placeholder redacted replace sample todo your")
_HOLDER = listed("secrets", "remarks", "holder")
_LETTERS = lazy(r"[a-z]+")
_NAMED = lazy(r"pass|pwd|token|secret|key|credential|user|login", re.IGNORECASE)
_ITSELF = listed("secrets", "remarks", "itself")
"""What only repeats the name of a secret."""
_NAMES = lazy(r"\b(?:pass|pwd|token|secret|key|credential|user|login)", re.IGNORECASE)
_CALL = lazy(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::)[\w$]+)*[(\[]")
_IDENTIFIER = lazy(r"[A-Za-z_$][\w$.-]*$")
_VARIABLES = lazy(r"(?:process\.env|import\.meta|os\.environ|env|secrets|vars|config|settings|self|this)\.")
_DOTTED = lazy(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$")
_VARIABLE = lazy(r"[a-z]+(?:_[a-z]+)+$|[a-z]+[A-Z][A-Za-z]*$")
_PATH = lazy(r"https?://|\.{0,2}/[a-z]|~/|[A-Z]:\\")
_WORD = lazy(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*$")
_TURN = lazy(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])|[^\W_](?=[!#$%^&*+=@~]\w)")
_MARK = lazy(r"[0-9!#$%^&*+=@~]")
_TURNS = 4
SURE = 8
"""Characters of a password that counts in the middle of a sentence."""
_UNITS = lazy(
    r"[ \t-]{1,3}(?:char|digit|letter|symbol|word|line|page|bit|byte|sec|min|hour|day|time|attempt)", re.IGNORECASE
)
_STOP = lazy(r"\s{0,3}(?:$|[.,;:!?)\]\"'}|\r\n\u3000-\u9fff\uac00-\ud7af]|(?:and|but|on|for|since|please|und|et)\b)")
_CODE_STOP = lazy(r"\s{0,3}[;),}]")
_ALGORITHM = lazy(
    r"(?:sha|md\d|argon|b?crypt|pbkdf|oauth|base|utf|v\d|1pass|aes|rsa|ed25|python|web|http)[\w.:/-]*\Z", re.IGNORECASE
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


def told(text: str, end: int, secret: str, *, english: bool) -> bool:
    """Judge a password that prose tells ("my password is ..."); it ends at `end` of `text`.

    In other languages a word in small letters is what is said about the password: "das Passwort ist falsch".
    """
    if counts_something(text, end):
        return False
    if _digits(secret) or not _WORD.match(secret):
        return True
    if not english and (secret.islower() or not secret.isascii()):
        return False
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
    return is_mixed(secret) and (stops(text, end) or (len(secret) >= SURE and is_generated(secret)))


def is_mixed(secret: str) -> bool:
    """Return whether a candidate has letters and digits, as words have not and names of algorithms have."""
    mixed = _digits(secret) > 0 and any(map(str.isalpha, secret)) and not _CALL.match(secret)
    return mixed and len(secret) >= 6 and not _ALGORITHM.match(secret)


def is_marked(secret: str) -> bool:
    """Return whether a candidate has a digit or a sign, as an ordinary word has not."""
    return _MARK.search(secret) is not None and not _ALGORITHM.match(secret)


def is_generated(secret: str) -> bool:
    """Return whether letters and digits change so often that no name has them so, or letters were drawn by chance."""
    return is_made(secret) and (len(_TURN.findall(secret)) >= _TURNS or has_chance_letters(secret))


def is_passphrase(phrase: str, *, told: bool, english: bool) -> bool:
    """Judge words up to the end of a sentence: a sentence about a password has little words in it, a passphrase none.

    They are `told` behind "is", and not a colon; outside of English one of them must hold a digit or a sign.
    """
    words = [word.strip(".,;!?'\"") for word in phrase.split()]
    if len(words) < (3 if told else 4) or _NAMES.search(phrase) or any(char in "()=<>{}/|" for char in phrase):
        return False
    if any(map(is_ordinary, words)):
        return False
    remarks = sum(map(is_remark, words))
    plain = (english or any(map(is_marked, words))) and remarks <= len(words) // 4
    return plain or any(map(is_mixed, words))


def is_ordinary(word: str) -> bool:
    """Return whether a word says how a sentence is built, or something about passwords."""
    word = word.lower()
    return word in stop_words() or word in _ABOUT or _NAMES.match(word) is not None


def quoted(secret: str) -> bool:
    """Judge a password in quotes."""
    words = secret.lower().split()
    if len(words) > 1:
        return len(words) <= 12 and not _NAMES.search(secret) and not is_sentence(secret)
    return len(secret) >= 4 and not is_remark(secret) and not _ITSELF.match(secret)
