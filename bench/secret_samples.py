"""Secrets, plain and wrapped, and what only looks like one, made by chance from the patterns of `data/secrets.toml`."""

from __future__ import annotations

import base64
import random
import re
import string
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from stdnum import iban, luhn

from perdure.secrets.numbers import is_national
from perdure.secrets.shapes import seed_words
from perdure.text.normalise import fold

DATA: Mapping[str, Any] = tomllib.loads((Path(__file__).parent / "data" / "secrets.toml").read_text(encoding="utf-8"))
KINDS: Mapping[str, Sequence[str]] = DATA["wrapped"]
"""Kinds of secrets that are wrapped: a text around each, and its pattern."""
CLASSES = {
    "d": string.digits,
    "h": "0123456789abcdef",
    "a": string.ascii_lowercase + string.digits,
    "A": string.ascii_uppercase + "234567",
    "L": string.ascii_uppercase,
    "l": string.ascii_letters,
    "w": string.ascii_letters + string.digits,
    "s": string.ascii_letters + string.digits + "_-",
    "b": string.ascii_letters + string.digits + "+/",
}
_PART = re.compile(r"<(\d+)([a-zA-Z])>")
_MARK = re.compile(r"\[redacted [\w-]+\]")
_TRACE = 6
"""So many characters of a value in a row are a trace of it."""
_LOOKS = str.maketrans("aceopxyABCEHKMOPTX", "асеорхуАВСЕНКМОРТХ")
_WIDE = str.maketrans(string.digits, "０１２３４５６７８９")


@dataclass(frozen=True, slots=True)
class Sample:
    """A text with a secret of a kind in it; `place` is "prose", "code", "json", "url", "split" or a wrapping.

    None of `parts` may be found in it any more.
    """

    kind: str
    place: str
    text: str
    parts: tuple[str, ...]


def fill(rng: random.Random, pattern: str) -> str:
    """Return a text of a pattern; of its long parts each has a digit, a capital and a small letter if it may."""

    def made(match: re.Match[str]) -> str:
        count, chars = int(match[1]), CLASSES[match[2]]
        wanted = [rng.choice(sorted(set(chars) & set(kind))) for kind in (string.digits, string.ascii_uppercase,
                  string.ascii_lowercase) if set(chars) & set(kind)]  # fmt: skip
        body = [rng.choice(chars.rstrip("_-+/")), *wanted, *rng.choices(chars, k=max(0, count - len(wanted) - 1))]
        return "".join(body[:count])[: count - 1] + rng.choice(chars.rstrip("_-+/"))

    return _PART.sub(made, pattern.replace("<pw>", DATA["password"]))


def checked(rng: random.Random, pattern: str, valid: Callable[[str], bool]) -> str:
    """Return a text of a pattern that passes a check."""
    while True:
        value = fill(rng, pattern)
        if valid(value):
            return value


def _token_samples(rng: random.Random) -> Iterator[Sample]:
    for kind, pattern in DATA["tokens"].items():
        for place, around in DATA["around"].items():
            value = fill(rng, pattern)
            if place != "url" or "://" not in value:
                yield Sample(kind, place, rng.choice(around).format(value), (value,))
        value = fill(rng, pattern)
        cut = max(len(pattern.split("<")[0]) + 20, len(value) // 2)
        if cut + 8 <= len(value):
            halves = value[:cut], value[cut:]
            yield Sample(kind, "split", "use\n" + rng.choice(DATA["splits"]).format(*halves) + "\nfor it", halves)


def _named_samples(rng: random.Random) -> Iterator[Sample]:
    for kind, place, around, pattern in DATA["named"]:
        value = fill(rng, pattern)
        yield Sample(kind, place, around.format(value), (value,))


def _key_samples(rng: random.Random) -> Iterator[Sample]:
    for kind in ("RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED "):
        lines = [fill(rng, "<64b>") for _ in range(4)]
        head, foot = f"-----BEGIN {kind}PRIVATE KEY-----", f"-----END {kind}PRIVATE KEY-----"
        name = f"pem-{kind.strip().lower() or 'pkcs8'}"
        yield Sample(name, "split", "\n".join(["my key", head, *lines, foot, "bye"]), tuple(lines))
        yield Sample(name, "json", '{"private_key": "' + "\\n".join([head, *lines, foot]) + '\\n"}', tuple(lines))
        yield Sample("pem-truncated", "split", "\n".join([head, *lines]), tuple(lines))
    lines = [fill(rng, "<64b>") for _ in range(3)]
    head, foot = (f"-----{end} PGP PRIVATE KEY BLOCK-----" for end in ("BEGIN", "END"))
    yield Sample("pgp-key", "split", "\n".join([head, "Version: 2", "", *lines, "=<a1b2", foot]), tuple(lines))
    putty = "\n".join(["PuTTY-User-Key-File-3: x", "Private-Lines: 3", *lines])
    yield Sample("putty-key", "split", putty, tuple(lines))


def _number_samples(rng: random.Random) -> Iterator[Sample]:
    cards = ("4<3d> <4d> <4d> <4d>", "4<15d>", "51<2d>-<4d>-<4d>-<4d>", "37<2d> <6d> <5d>")
    for place, around in (("prose", "my card is {} exp 12/27"), ("json", '{{"number": "{}"}}'), ("code", "pay('{}')")):
        value = checked(rng, rng.choice(cards), _card)
        yield Sample("card", place, around.format(value), (value,))
    value = checked(rng, cards[0], _card)
    yield Sample("card", "split", f"my card: {value[:9]}\n{value[10:]}", (value[:9], value[10:]))
    for pattern in ("DE<2d> <4d> <4d> <4d> <4d> <2d>", "FR<2d><10d><11d><2d>", "NL<2d> ABNA <4d> <4d> <2d>"):
        value = checked(rng, pattern, _iban)
        yield Sample("iban", "prose", f"transfer it to {value} please", (value,))
        yield Sample("iban", "json", f'{{"account": "{value}"}}', (value,))
    for kind, around, pattern, valid in (
        ("us-ssn", "my ssn is {}", "<1d>1<1d>-4<1d>-5<3d>", lambda n: n[0] != "9" and n[:3] not in ("000", "666")),
        ("uk-nino", "NI number {}", "AB <2d> <2d> <2d> C", _any),
        ("spanish-dni", "mi DNI es {}", "<8d><1L>", partial(is_national, "dni")),
        ("french-nir", "num\u00e9ro de s\u00e9cu {}", "1 85 05 78 <3d> <3d> <2d>", partial(is_national, "nir")),
        ("german-tax-id", "meine Steuer-ID ist {}", "<2d> <3d> <3d> <3d>", partial(is_national, "steuer_id")),
        ("swedish-personnummer", "personnummer {}", "81122<1d>-<4d>", partial(is_national, "personnummer")),
        ("dutch-bsn", "mijn BSN is {}", "<9d>", partial(is_national, "bsn")),
        ("brazilian-cpf", "CPF {}", "<3d>.<3d>.<3d>-<2d>", partial(is_national, "cpf")),
        ("polish-pesel", "PESEL: {}", "44051<1d><5d>", partial(is_national, "pesel")),
        ("finnish-hetu", "hetu {}", "131052-<3d><1L>", partial(is_national, "hetu")),
        ("norwegian-fnr", "f\u00f8dselsnummer {}", "13105<1d><5d>", partial(is_national, "fodselsnummer")),
        ("belgian-number", "rijksregister {}", "85.07.30-<3d>.<2d>", partial(is_national, "belgian")),
        ("italian-code", "codice fiscale {}", "RSSMRA85T10A562<1L>", partial(is_national, "codice_fiscale")),
        ("canadian-sin", "my SIN is {}", "<3d> <3d> <3d>", partial(is_national, "sin")),
        ("indian-aadhaar", "Aadhaar {}", "3<3d> <4d> <4d>", partial(is_national, "aadhaar")),
        ("australian-tfn", "TFN: {}", "<3d> <3d> <3d>", partial(is_national, "tfn")),
    ):  # fmt: skip
        value = checked(rng, pattern, valid)
        yield Sample(kind, "prose", around.format(value), (value,))


def _card(number: str) -> bool:
    return luhn.is_valid(re.sub(r"\D", "", number))


def _iban(number: str) -> bool:
    return iban.is_valid(number, check_country=False)


def _any(number: str) -> bool:
    return True


def _phrase_samples(rng: random.Random) -> Iterator[Sample]:
    for count in (12, 24):
        words = rng.sample(sorted(seed_words()), count)
        plain, numbered = " ".join(words), "\n".join(f"{n}. {word}" for n, word in enumerate(words, 1))
        for place, text in (("prose", f"my seed phrase is {plain}"), ("prose", f"hm, {plain}."), ("split", numbered),
                            ("json", f'{{"mnemonic": "{plain}"}}'), ("split", plain.replace(" ", "\n"))):  # fmt: skip
            # Of single words nothing must be said: most of them are left, not so two that follow each other.
            yield Sample(f"seed-{count}", place, text, (f"{words[0]} {words[1]}", *words[4:]))


def secret_samples(seed: int) -> list[Sample]:
    """Return texts with one secret each, of every kind in every place that fits it."""
    rng = random.Random(seed)
    makers = (_token_samples, _named_samples, _key_samples, _number_samples, _phrase_samples)
    return [sample for make in makers for sample in make(rng)]


def look_alikes(seed: int) -> list[tuple[str, str]]:
    """Return texts that must pass as they are, each with its kind."""
    rng = random.Random(seed)
    return [(kind, fill(rng, pattern)) for kind, patterns in DATA["look_alikes"].items() for pattern in patterns]


def _halves(between: str, value: str) -> str:
    middle = (len(value) + 1) // 2
    return value[:middle] + between + value[middle:]


WRAPS: Mapping[str, Callable[[str], str]] = {
    "plain": str,
    "two lines": partial(_halves, "\n"),
    "hyphen at the line end": partial(_halves, "-\n"),
    "hyphens between groups": lambda value: "-".join(value[at : at + 8] for at in range(0, len(value), 8)),
    "zero-width": "\u200b".join,
    "look-alike letters": lambda value: value.translate(_LOOKS),
    "full-width digits": lambda value: value.translate(_WIDE),
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
}
"""What is done to a value, by name."""


def wrapped_samples(seed: int) -> dict[str, list[Sample]]:
    """Return a text of every kind for each wrapping; `parts` are what was wrapped and how it looks then."""
    rng = random.Random(seed)
    values = {kind: _value(rng, kind) for kind in KINDS}
    return {name: [_wrapped(kind, name, value) for kind, value in values.items()] for name in WRAPS}


def _value(rng: random.Random, kind: str) -> str:
    if kind == "seed-phrase":
        return " ".join(rng.sample(sorted(seed_words()), 12))
    return checked(rng, KINDS[kind][1], {"card": _card, "iban": _iban}.get(kind, _any))


def _wrapped(kind: str, wrap: str, value: str) -> Sample:
    hidden = WRAPS[wrap](value)
    return Sample(kind, wrap, KINDS[kind][0].format(hidden), (value, hidden))


def worded_samples(seed: int) -> dict[str, list[Sample]]:
    """Return texts that tell a password, by language or form."""
    rng = random.Random(seed)
    return {
        name: [Sample(name, "prose", told.format(value), (value,)) for told in ways for value in [fill(rng, "<pw>")]]
        for name, ways in DATA["wordings"].items()
    }


def _worded(rng: random.Random, name: str, told: str) -> Sample:
    value = fill(rng, "<pw>")
    return Sample(name, "prose", told.format(value), (value,))


def traces(sample: Sample, text: str) -> list[str]:
    """Return what became of a sample still shows of its values: so many characters in a row, however set apart."""
    left, around = _squeezed(_MARK.sub(" ", text)), _squeezed(sample.text.replace(sample.parts[-1], " "))
    found: list[str] = []
    for part in map(_squeezed, sample.parts):
        size = min(_TRACE, len(part))
        windows = [part[at : at + size] for at in range(len(part) - size + 1)]
        found += [window for window in windows if window in left and window not in around]
    return found


def _squeezed(text: str) -> str:
    return "".join(filter(str.isalnum, fold(text)))
