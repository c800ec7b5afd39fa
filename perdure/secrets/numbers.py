"""Numbers that are secrets: payment cards, bank accounts, and those by which a state knows a person.

A number counts only when its check digits are right, so order numbers, hashes and dates pass. To add a country, add a
row to `_UNMISTAKABLE` or `_NAMED` and the check of its authority. A number that is only digits counts behind its name
alone: one in ten or eleven order numbers has the right check digit by chance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

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
_IBAN_LENGTHS = {code[:2]: int(code[2:]) for code in _FORMS["ibans"].split()}


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


_REACH = 40
"""Characters that may stand between a name and its number."""
_DOUBLED = str.maketrans("0123456789", "0246813579")  # sum of the digits of the double


def luhn(digits: str) -> bool:
    """Check a number whose last digit is by Luhn's formula (ISO/IEC 7812-1, annex B)."""
    # Of bytes, since this is asked of every run of digits: 48 is the code of 0.
    return (sum((digits[-1::-2] + digits[-2::-2].translate(_DOUBLED)).encode()) - 48 * len(digits)) % 10 == 0


def _weighted(digits: str, weights: Sequence[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def _dated(month: str, day: str) -> bool:
    return 1 <= int(month) <= 12 and 1 <= int(day) <= 31


def _formal(_: str) -> bool:
    # Its form is all that it has.
    return True


def _dni(number: str) -> bool:
    # Spain: the letter is the remainder by 23; X, Y and Z of a foreigner stand for 0, 1 and 2.
    whole = number[:-1].translate(str.maketrans("XYZ", "012"))
    return number[-1] == "TRWAGMYFPDXBNJZSQVHLCKE"[int(whole) % 23]


def _nir(number: str) -> bool:
    # France: 97 less the remainder of the first thirteen; Corsica's 2A and 2B count as 19 and 18.
    body = number[:13].replace("2A", "19").replace("2B", "18")
    return body.isdigit() and number[13:].isdigit() and 97 - int(body) % 97 == int(number[13:])


def _steuer_id(number: str) -> bool:
    # Germany: ISO 7064, MOD 11,10.
    product = 10
    for digit in number[:10]:
        product = 2 * ((int(digit) + product) % 10 or 10) % 11
    return number[0] != "0" and (11 - product) % 10 == int(number[10])


def _personnummer(number: str) -> bool:
    # Sweden: Luhn over the last ten; a coordination number has 60 added to its day.
    short = number[-10:]
    return _dated(short[2:4], str(int(short[4:6]) % 60)) and luhn(short)


def _bsn(number: str) -> bool:
    # Netherlands: the eleven test.
    return len(set(number)) > 1 and _weighted(number, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def _cpf(number: str) -> bool:
    # Brazil: two digits by 11.
    first = _weighted(number, range(10, 1, -1)) * 10 % 11 % 10
    second = _weighted(number, range(11, 1, -1)) * 10 % 11 % 10
    return len(set(number)) > 1 and number[9:] == f"{first}{second}"


def _pesel(number: str) -> bool:
    # Poland: weights 1, 3, 7, 9; the century is added to the month in twenties.
    right = _weighted(number, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0
    return right and _dated(str(int(number[2:4]) % 20), number[4:6])


def _hetu(number: str) -> bool:
    # Finland: the remainder of the nine digits by 31.
    return number[-1] == "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(number[:6] + number[-4:-1]) % 31]


def _fodselsnummer(number: str) -> bool:
    # Norway: two digits by 11.
    first = _weighted(number, (3, 7, 6, 1, 8, 9, 4, 5, 2, 1)) % 11 == 0
    return first and _weighted(number, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0


def _belgian(number: str) -> bool:
    # Belgium: 97 less the remainder; who was born since 2000 has a 2 in front.
    check = int(number[9:])
    return check in (97 - int(number[:9]) % 97, 97 - int("2" + number[:9]) % 97)


def _rentenversicherung(number: str) -> bool:
    # Germany: the letter counts as its place in the alphabet; the digits of the products, by 10.
    plain = f"{number[:8]}{ord(number[8]) - 64:02}{number[9:11]}"
    products = (int(digit) * weight for digit, weight in zip(plain, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=True))
    return sum(divmod(product, 10)[0] + product % 10 for product in products) % 10 == int(number[11])


def _nif(number: str) -> bool:
    # Portugal: by 11; what is over nine counts as 0.
    return (11 - _weighted(number[:8], range(9, 1, -1)) % 11) % 11 % 10 == int(number[8])


_ODD = dict(zip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
                (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12,
                 14, 16, 10, 22, 25, 24, 23), strict=True))  # fmt: skip


def _codice_fiscale(number: str) -> bool:
    # Italy: a table for the odd places, the alphabet for the even ones.
    odd = sum(_ODD[char] for char in number[0:15:2])
    even = sum(int(char) if char.isdigit() else ord(char) - 65 for char in number[1:15:2])
    return chr((odd + even) % 26 + 65) == number[15]


_TIMES = ("0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
          "5987604321", "6598710432", "7659821043", "8765932104", "9876543210")  # fmt: skip
_TURNS = ("0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415",
          "7046913258")  # fmt: skip


def _verhoeff(number: str) -> bool:
    # India: Verhoeff's scheme over a dihedral group.
    check = 0
    for place, digit in enumerate(reversed(number)):
        check = int(_TIMES[check][int(_TURNS[place % 8][int(digit)])])
    return check == 0


def _tfn(number: str) -> bool:
    # Australia: weights by 11.
    return _weighted(number, (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0


def _ahv(number: str) -> bool:
    # Switzerland: an EAN-13 in the country's own range.
    return number.startswith("756") and _weighted(number, (1, 3) * 6 + (1,)) % 10 == 0


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "ssn": _formal, "nino": _formal, "dni": _dni, "nir": _nir, "personnummer": _personnummer, "cpf": _cpf,
    "hetu": _hetu, "belgian": _belgian, "codice_fiscale": _codice_fiscale, "rentenversicherung": _rentenversicherung,
    "ahv": _ahv, "steuer_id": _steuer_id, "bsn": _bsn, "pesel": _pesel, "fodselsnummer": _fodselsnummer, "sin": luhn,
    "aadhaar": _verhoeff, "nif": _nif, "tfn": _tfn,
}  # fmt: skip
"""How a national number shows that it is one; its form stands in the data file."""

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
        if _CHECKS[name](_plain(match[0])):
            yield Span(*match.span(), _kind(name))


def _named_numbers(text: str, lower: str) -> Iterator[Span]:
    """Yield the national numbers that stand behind their name."""
    for name, (stems, _) in _FORMS["named"].items():
        for stem in stems:
            at = lower.find(stem)
            while at >= 0:
                found = _BEHIND[name].match(text, at + len(stem)) if not text[at - 1 : at].isalpha() else None
                if found is not None and _CHECKS[name](_plain(found["number"])):
                    yield Span(*found.span("number"), _kind(name))
                at = lower.find(stem, at + len(stem))


def _kind(name: str) -> str:
    return "ssn" if name == "ssn" else "national-id"


def _plain(number: str) -> str:
    return "".join(filter(str.isalnum, number))
