"""Numbers that are secrets: payment cards, bank accounts, and those by which a state knows a person.

A number counts only when its check digits are right, so order numbers, hashes and dates pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from perdure.regex import lazy
from perdure.secrets.national import luhn, named_numbers, unmistakable_numbers
from perdure.secrets.shapes import Span

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
_ISSUER = lazy(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})$|5[1-5][0-9]{14}$"
    r"|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}$"
    r"|3[47][0-9]{13}$"
    r"|6(?:011|4[4-9][0-9]|5[0-9]{2})[0-9]{12}$"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}$|35[0-9]{14}$|62[0-9]{14,17}$"
    r"|(?:50|5[6-9]|6[0-9])[0-9]{10,17}$"
)
_SEPARATORS = str.maketrans("", "", " \u00a0->\r\n")
_IBAN = lazy(r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?:(?:[ -]|[ ]?\r?\n[ >]{0,8})?[A-Z0-9]{2,4}){3,8}", re.IGNORECASE)
# Length of an IBAN by country (ISO 13616 registry).
_IBAN_REGISTRY = """
AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20
EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30
KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23
PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26
UA29 VA22 VG24 XK20
"""
_IBAN_LENGTHS = {code[:2]: int(code[2:]) for code in _IBAN_REGISTRY.split()}


def secret_numbers(text: str) -> Iterator[Span]:
    """Yield card, account and national numbers, by kind, each kind in order."""
    windows = list(_windows(text))
    for start, end in windows:
        yield from _cards(text, start, end)
        yield from _ibans(text, start, end)
        yield from unmistakable_numbers(text, start, end)
    if windows:
        yield from named_numbers(text)


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
        digits = match[0].translate(_SEPARATORS)
        found = luhn(digits) and _ISSUER.match(digits) is not None
        if found:
            yield Span(*match.span(), "card")
        # "2026 4111 ...": a year in front of a card looks like its first group, so go on one digit later.
        match = _CARD.search(text, match.end() if found else match.start() + 1, end)


def _ibans(text: str, start: int, end: int) -> Iterator[Span]:
    for match in _IBAN.finditer(text, start, end):
        places = [at for at, char in enumerate(match[0], match.start()) if char.isalnum()]
        length = _IBAN_LENGTHS.get(match[0][:2].upper(), 0)
        if not 0 < length <= len(places):
            continue
        # The pattern may have run on into the next words; the country says where the number ends.
        stop = places[length - 1] + 1
        number = "".join(text[at] for at in places[:length])
        if (stop == len(text) or not text[stop].isalnum()) and mod_97(number) == 1:
            yield Span(match.start(), stop, "iban")


def mod_97(number: str) -> int:
    """Return the remainder that is 1 for a valid number (ISO 7064, MOD 97-10)."""
    return int("".join(str(int(char, 36)) for char in number[4:] + number[:4])) % 97
