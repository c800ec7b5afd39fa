"""Secrets that are known by their shape: the tokens that providers give out, private keys in blocks, strong passwords.

To add a provider, add a rule to `data/tokens.toml`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from perdure.regex import lazy
from perdure.secrets.views import Span, View
from perdure.text.lexicon import table, word_set

# Providers print such tokens in their manuals: they open nothing.
_DOCUMENTED = lazy(r"EXAMPLE(?:KEY)?$|(?P<same>[xX*])(?P=same){5}|IkpvaG4gRG9lI")

_PIECE = r"(?:[a-z]{1,15}|[A-Z][a-z]{1,15}|[A-Z]{2,10}|[a-z]{1,6}\d{1,3}|\d{1,4}|\d{1,2}[a-z]{1,2})"
_SLUG = lazy(rf"{_PIECE}(?:[-_.]{_PIECE})+\Z")


def is_documented(secret: str) -> bool:
    """Return whether a token only shows what one looks like: AKIA...EXAMPLE, xxxxxx, the token of jwt.io."""
    return _DOCUMENTED.search(secret) is not None


def is_made(secret: str) -> bool:
    """Accept what a machine made: it has a digit, or letters in an order that nobody would choose.

    A placeholder such as sk-your-key-here has neither.
    """
    made = any(map(str.isdigit, secret)) or has_chance_letters(secret.replace("-", ""))
    return made and not is_documented(secret)


def _is_token(secret: str) -> bool:
    """Accept what a machine made and what is no file name such as sk-learn-notes-2024.md."""
    return is_made(secret) and not is_slug(secret)


def is_slug(text: str) -> bool:
    """Return whether a text is words and numbers set apart by hyphens, underscores or dots, as file names are."""
    return _SLUG.match(text) is not None


def _varied(secret: str) -> bool:
    return len(set(secret)) >= 8 and not is_documented(secret)


@dataclass(frozen=True, slots=True)
class Rule:
    """One shape of secret: a row of a data file, where the keys are explained."""

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    accept: Callable[[str], bool]
    prefixed: bool  # every match begins with one of the hints

    def hinted(self, text: str) -> bool:
        """Return whether a text holds one of the hints."""
        # The last character of a prefix is often one that prose has not: `_` costs next to nothing to miss.
        return any(hint[-1] in text and hint in text for hint in self.hints)

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the secrets of this shape."""
        group = "secret" if "secret" in self.pattern.groupindex else 0
        for match in self._starting(text) if self.prefixed else self.pattern.finditer(text):
            if self.accept(match[group]):
                yield Span(*match.span(group), self.kind)

    def _starting(self, text: str) -> Iterator[re.Match[str]]:
        # Quicker than to try the pattern everywhere.
        for hint in self.hints:
            at = text.find(hint)
            while at >= 0:
                match = self.pattern.match(text, at)
                if match is not None:
                    yield match
                at = text.find(hint, at + len(hint) if match is None else match.end())


# In JSON a token may follow an escaped line break, in a URL an escaped sign: their letters are then no part of it.
_LEFT = r"(?:(?<![\w-])|(?<=\\[nrt])|(?<=%[0-9A-F]{2}))"


def rules(name: str, accept: Mapping[str, Callable[[str], bool]]) -> Iterator[Rule]:
    """Yield the rules of a data file, with the judgements that it names."""
    for row in table("secrets", name)["rules"]:
        prefixes = tuple(row.get("prefixes", "").split())
        pattern = "".join(row["pattern"]).replace("{left}", _LEFT)
        if prefixes:
            pattern = f"(?a)(?:{_LEFT}|(?<=[A-Za-z0-9]-))(?:{'|'.join(map(re.escape, prefixes))}){pattern}"
        judgement = accept[row.get("accept", "token" if prefixes else "any")]
        yield Rule(row["kind"], prefixes or tuple(row["hints"]), lazy(pattern), judgement, bool(prefixes))


@cache
def _tokens() -> tuple[Rule, ...]:
    accept = {"any": lambda secret: not is_documented(secret), "token": _is_token, "made": is_made, "varied": _varied}
    return tuple(rules("tokens", accept))


@cache
def seed_words() -> frozenset[str]:
    """Return the words that seed phrases are made of."""
    return word_set(table("secrets", "seed_words")["words"])


_LETTERS = lazy(r"[A-Za-z]{16,400}")
_SINGLE_CASE = 20
"""Letters that a run in one case has at least; a shorter one may be an abbreviation."""
_OF_EACH_CASE = 3
_ALONE = lazy(r"(?<![a-z])[a-z](?![a-z])")
_MANY_ALONE = 3
"""Small letters between capitals, more than names such as `kIsDirOrFile` have."""
_MIXED_SHARE = 0.72
_SINGLE_SHARE = 0.6


def has_chance_letters(text: str) -> bool:
    """Return whether a text has a run of sixteen letters or more that were drawn by chance."""
    return any(map(_drawn, _LETTERS.findall(text)))


def _drawn(letters: str) -> bool:
    if letters.islower() or letters.isupper():
        return len(letters) >= _SINGLE_CASE and _usual_share(letters) < _SINGLE_SHARE
    mixed = min(sum(map(str.isupper, letters)), sum(map(str.islower, letters))) >= _OF_EACH_CASE
    return mixed and (_usual_share(letters) < _MIXED_SHARE or len(_ALONE.findall(letters)) >= _MANY_ALONE)


def _usual_share(letters: str) -> float:
    """Return how many of the pairs of letters occur in words: nearly all of a name, less than half by chance."""
    pairs = _letter_pairs(letters.lower())
    return sum(pair in _usual_letter_pairs() for pair in pairs) / len(pairs)


@cache
def _usual_letter_pairs() -> frozenset[str]:
    counted = Counter(pair for word in seed_words() for pair in _letter_pairs(word))
    return frozenset(pair for pair, count in counted.items() if count > 2)


def _letter_pairs(letters: str) -> list[str]:
    return [letters[at : at + 2] for at in range(len(letters) - 1)]


# Between letters and digits, and not where names of classes have it: Outer$Inner.
_SIGN_INSIDE = lazy(r"[!$^](?<=[A-Za-z0-9].)(?=[a-z0-9]|(?<=!)[A-Z])(?<!\$(?=[0-9]))")
_STRONG = lazy(
    r"(?=[A-Za-z!$^]{0,60}[0-9])(?=[A-Z0-9!$^]{0,60}[a-z])(?=[a-z0-9!$^]{0,60}[A-Z])[A-Za-z0-9!$^]{10,64}+(?=[\s\"'`),;:.?]|\Z)"
)
_BEFORE_WORD = lazy(r"(?:^|[\s\"'`(,;:])(?=[A-Za-z0-9!$^]{0,64}\Z)")


def strong_words(text: str) -> Iterator[Span]:
    """Yield words that only a password looks like: capitals, small letters, digits and a sign between them."""
    done = 0
    for match in _SIGN_INSIDE.finditer(text):
        if match.start() < done:
            continue
        low = max(0, match.start() - 64)
        begins = _BEFORE_WORD.search(text[low : match.start()])
        word = _STRONG.match(text, low + begins.end()) if begins is not None else None
        done = match.end() if word is None else word.end()
        if word is not None:
            yield Span(*word.span(), "password")


def tokens(text: str, long: Sequence[str]) -> Iterator[Span]:
    """Yield the tokens of a text; hints are looked for in its `long` words, of `SHORTEST` characters and more."""
    dense = " ".join(long)
    if dense:
        for rule in _tokens():
            if rule.hinted(dense) and any(rule.spans(dense)):
                yield from rule.spans(text)


_BEGIN = "-----BEGIN "
_END = "-----END "
_KEY_HEADER = lazy(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_FOOTER = lazy(r"-----END [A-Z0-9 ]{0,60}-----")
_BREAK = r"(?:\\[nr]|[\"'+,\s|>]){1,40}+"
# The body of a key whose end is missing: lines of base64, and header lines such as "DEK-Info: ...".
_KEY_BODY = lazy(
    rf"(?:{_BREAK}(?:[A-Za-z0-9+/=]{{16,}}+|(?:Proc-Type|DEK-Info|Version|Comment):[^\n\\]{{1,200}}+))*+"
    rf"(?:(?:\\n|\n)[A-Za-z0-9+/=]{{4,}}+(?=\s|\\|[\"']|$))?"
)
_PUTTY = "Private-Lines:"
_PUTTY_BODY = lazy(r"Private-Lines: {0,2}\d{1,4}\s{1,3}(?P<secret>(?:[A-Za-z0-9+/=]{4,}+\s{0,3}){1,200}+)")


def private_keys(page: View) -> Iterator[Span]:
    """Yield the private keys in blocks, PEM, OpenSSH, PGP and PuTTY, whether their end is there or not."""
    text = page.text
    start = text.find(_BEGIN)
    end = -1
    while start >= 0:
        following = text.find(_BEGIN, start + 1)
        header = _KEY_HEADER.match(text, start)
        if header is not None:
            if 0 <= end < start or end == -1:
                end = text.find(_END, start)
                end = len(text) if end < 0 else end
            footer = _KEY_FOOTER.match(text, end)
            if footer is not None and (following < 0 or end < following):
                yield Span(start, footer.end(), "private-key")
            else:
                body = _KEY_BODY.match(text, header.end())
                if body is not None and body.end() > body.start():
                    yield Span(start, body.end(), "private-key")
        start = following
    if _PUTTY in text:
        for match in _PUTTY_BODY.finditer(text):
            yield Span(*match.span("secret"), "private-key")
