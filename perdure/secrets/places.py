"""Secrets that are known by the place where they stand: in a URL, a header, a command, a file of logins.

Each rule of `data/places.toml` is tried only on texts that hold one of its hints, and looks a bounded way ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from perdure.regex import lazy
from perdure.secrets.filters import is_code, is_mixed, is_placeholder, is_sentence
from perdure.secrets.shapes import Rule, is_documented, is_made, rules
from perdure.secrets.views import Span, View

_NEXT_FIELD = lazy(r"[a-z_]{2,20}=[^=]")


def place_secrets(page: View) -> Iterator[Span]:
    """Yield the secrets of all rules."""
    for rule in _places():
        if rule.hinted(page.text):
            yield from rule.spans(page.text)


@cache
def _places() -> tuple[Rule, ...]:
    return tuple(rules("places", _JUDGEMENTS))


def _telling(secret: str) -> bool:
    return not (is_placeholder(secret) or is_code(secret))


def _generated(secret: str) -> bool:
    return is_made(secret) and _telling(secret)


def _answer(secret: str) -> bool:
    named = any(word[0].isupper() or word[0].isdigit() for word in secret.split())
    return _telling(secret) and (named or not is_sentence(secret))


_JUDGEMENTS: Mapping[str, Callable[[str], bool]] = {
    "any": lambda secret: not is_documented(secret),
    "shown": lambda secret: not is_placeholder(secret),
    "shown or hash": lambda secret: not is_placeholder(secret) or secret.startswith("#"),
    "telling pair": lambda secret: _telling(secret) and ":" not in secret,
    "mixed": lambda secret: is_mixed(secret) and _telling(secret),
    "generated": _generated,
    "answer": _answer,
    # `token_type=bearer expires_in=3600`
    "bearer": lambda secret: _generated(secret) and _NEXT_FIELD.match(secret) is None,
}
