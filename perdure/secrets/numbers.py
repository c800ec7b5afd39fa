"""Numbers that are secrets: payment cards, bank accounts, and those by which a state knows a person.

A number counts only when its check digits are right, so order numbers, hashes and dates pass; python-stdnum knows them.
To add a country, add its form to `data/numbers.toml`, and the module that checks it. A number that is only digits
counts behind its name alone: one in ten or eleven order numbers has the right check digit by chance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module

from perdure.regex import lazy
from perdure.secrets.views import Span, View
from perdure.text.lexicon import listed, table

_FORMS = table("secrets", "numbers")
# Each of these numbers has a run of digits and separators like this; only its surroundings are looked at.
_RUN = lazy(r"[0-9](?:[0-9 ./\r\n\u00a0-]{5,}[0-9A-Z]|[0-9][A-Z][0-9]{2}[A-Z][0-9]{3}[A-Z])")
_MARGIN = 48
_GAP = r"(?:[ \u00a0-]|[ -]?\r?\n[ >]{0,8})"
_CARD = lazy(
    r"(?<![\w.-])(?:"
    rf"[2-6][0-9]{{3}}{_GAP}[0-9]{{4}}{_GAP}[0-9]{{4}}{_GAP}[0-9]{{1,4}}(?:{_GAP}[0-9]{{3}})?"
    rf"|3[0-9]{{3}}{_GAP}[0-9]{{6}}{_GAP}[0-9]{{4,5}}"
    r"|[2-6][0-9]{12,18}"
    r")(?![\w-])(?!\.[0-9])"
)
_ISSUER = listed("secrets", "numbers", "issuers")
_SEPARATORS = str.maketrans("", "", " \u00a0->\r\n")
_IBAN = lazy(r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?:(?:[ -]|[ ]?\r?\n[ >]{0,8})?[A-Z0-9]{2,4}){3,8}", re.IGNORECASE)


def secret_numbers(page: View) -> Iterator[Span]:
    """Yield card, account and national numbers, by kind, each kind in order."""
    text = page.text
    windows = list(_windows(text))
    for start, end in windows:
        yield from _cards(text, start, end)
        yield from _ibans(text, start, end)
        yield from _unmistakable_numbers(text, start, end)
    if windows:
        yield from _named_numbers(text, page.lower)


def _windows(text: str) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text that may hold a number, in order and apart from each other."""
    start = end = 0
    for match in _RUN.finditer(text):
        if match.start() - _MARGIN > end:
            if end:
                yield start, end
            start = match.start() - _MARGIN
        end = match.end() + _MARGIN
    if end:
        yield max(start, 0), end


def _cards(text: str, start: int, end: int) -> Iterator[Span]:
    match = _CARD.search(text, start, end)
    while match is not None:
        found = _is_card(match[0].translate(_SEPARATORS))
        if found:
            yield Span(*match.span(), "card")
        # "2026 4111 ...": a year in front of a card looks like its first group, so go on one digit later.
        match = _CARD.search(text, match.end() if found else match.start() + 1, end)


def _is_card(digits: str) -> bool:
    from stdnum import luhn

    return _ISSUER.match(digits) is not None and luhn.is_valid(digits)


def _ibans(text: str, start: int, end: int) -> Iterator[Span]:
    for match in _IBAN.finditer(text, start, end):
        places = [at for at, char in enumerate(match[0], match.start()) if char.isalnum()]
        length = _iban_length(match[0][:2].upper())
        if not 0 < length <= len(places):
            continue
        # The pattern may have run on into the next words; the country says where the number ends.
        stop = places[length - 1] + 1
        number = "".join(text[at] for at in places[:length])
        if (stop == len(text) or not text[stop].isalnum()) and _is_iban(number):
            yield Span(match.start(), stop, "iban")


@cache
def _iban_length(country: str) -> int:
    """Return how many characters the IBANs of a country have; 0: it has none."""
    from stdnum import numdb

    [(_, told)] = numdb.get("iban").info(country)
    return 4 + sum(map(int, re.findall(r"\d+", told["bban"]))) if told else 0


def _is_iban(number: str) -> bool:
    from stdnum import iban

    # Not the checks of each bank within: those of some countries do not hold for all of theirs.
    return iban.is_valid(number, check_country=False)


def is_national(name: str, number: str) -> bool:
    """Return whether a number has the check digits of the kind that the data file calls so, if these have any."""
    if name in _OWN:
        return _OWN[name](number)
    plain, checks = number.translate(_WRITTEN), _checks(name)
    return not checks or any(is_valid(plain) for is_valid in checks)


_WRITTEN = str.maketrans("", "", " ./|-")


@cache
def _checks(name: str) -> tuple[Callable[[str], bool], ...]:
    return tuple(import_module(f"stdnum.{module}").is_valid for module in _FORMS["checks"].get(name, "").split())


def _personnummer(number: str) -> bool:
    # Sweden: not only those of its registered; a coordination number has 60 added to its day.
    from stdnum import luhn

    short = "".join(filter(str.isdigit, number))[-10:]
    return 1 <= int(short[2:4]) <= 12 and 1 <= int(short[4:6]) % 60 <= 31 and luhn.is_valid(short)


def _hetu(number: str) -> bool:
    # Finland: those that are given until there is another are secrets as well.
    from stdnum.fi import hetu

    return hetu.is_valid(number, allow_temporary=True)


def _rentenversicherung(number: str) -> bool:
    # Germany: the letter counts as its place in the alphabet; the digits of the products, by 10.
    number = number.translate(_WRITTEN)
    plain = f"{number[:8]}{ord(number[8]) - 64:02}{number[9:11]}"
    products = (int(digit) * weight for digit, weight in zip(plain, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=True))
    return sum(divmod(product, 10)[0] + product % 10 for product in products) % 10 == int(number[11])


_OWN: Mapping[str, Callable[[str], bool]] = {
    "personnummer": _personnummer, "hetu": _hetu, "rentenversicherung": _rentenversicherung,
}  # fmt: skip

_REACH = 40
"""Characters that may stand between a name and its number."""

_ALTERNATIVES = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _FORMS["unmistakable"].items())
_ANY = lazy(rf"(?<![\w.-])(?:{_ALTERNATIVES})(?![\w-])(?!\.[0-9])")
_BEHIND = {
    name: lazy(rf"[^0-9\n]{{0,{_REACH}}}(?<![\w.-])(?P<number>{pattern})(?![\w-])(?!\.[0-9])")
    for name, (_, pattern) in _FORMS["named"].items()
}


def _unmistakable_numbers(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the national numbers in a part of a text whose form and check are enough."""
    for match in _ANY.finditer(text, start, end):
        name = match.lastgroup or ""
        if is_national(name, match[0]):
            yield Span(*match.span(), _kind(name))


def _named_numbers(text: str, lower: str) -> Iterator[Span]:
    """Yield the national numbers that stand behind their name."""
    for name, (stems, _) in _FORMS["named"].items():
        for stem in stems:
            at = lower.find(stem)
            while at >= 0:
                found = _BEHIND[name].match(text, at + len(stem)) if not text[at - 1 : at].isalpha() else None
                if found is not None and is_national(name, found["number"]):
                    yield Span(*found.span("number"), _kind(name))
                at = lower.find(stem, at + len(stem))


def _kind(name: str) -> str:
    return "ssn" if name == "ssn" else "national-id"
