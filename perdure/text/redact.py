"""Take secrets out of a text before it is written anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from perdure.text.secret_keys import private_keys
from perdure.text.secret_names import named_secrets
from perdure.text.secret_numbers import secret_numbers
from perdure.text.secret_phrases import phrases, recovery_codes
from perdure.text.secret_places import place_secrets
from perdure.text.secret_shapes import Span, tokens
from perdure.text.secret_wraps import unfolded

VERSION = 2
"""Grows with every change that finds more: what was stored before is then looked through once more."""

_Detector = Callable[[str], Iterable[Span]]


def _words(text: str) -> Iterator[Span]:
    words = text.split()
    yield from tokens(text, words)
    yield from phrases(text, words)


def _named(text: str) -> Iterator[Span]:
    yield from _words(text)
    yield from place_secrets(text)
    yield from named_secrets(text)


def _broken(text: str) -> Iterator[Span]:
    return unfolded(text, _named)


# The surest first: what a detector took out, the later ones no longer see. Values that were broken over lines come
# before the whole ones, which would take the first part alone.
_DETECTORS: tuple[_Detector, ...] = (
    private_keys,
    _broken,
    _words,
    place_secrets,
    recovery_codes,
    named_secrets,
    secret_numbers,
)
# Taking out one secret can uncover another beside it, so rounds go on until one finds nothing.
# The cap keeps the time linear whatever the text.
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text without its secrets.

    Attributes:
        text: the text, with `[redacted <kind>]` in the place of each secret.
        kinds: what was taken out, each kind once, in the order in which it was found.
    """

    text: str
    kinds: tuple[str, ...]


def redact(text: str, *, keep_lines: bool = False) -> Redaction:
    """Replace secrets: tokens, keys, passwords, PINs, card, social security and account numbers.

    Takes time linear in the length of the text, and finds nothing more in its own result.

    Args:
        text: any string.
        keep_lines: leave as many line ends as there were, so that line numbers stay true.

    Returns:
        The redacted text and the kinds of what was taken out; `text` itself if there was nothing.
    """
    kinds: dict[str, None] = {}
    for _ in range(_ROUNDS):
        before = text
        for detector in _DETECTORS:
            spans = _apart(detector(text))
            if spans:
                text = _replace(text, spans, keep_lines)
                kinds.update(dict.fromkeys(span.kind for span in spans))
        if text == before:
            break
    return Redaction(text, tuple(kinds))


def _apart(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in the order of the text, without those that begin inside another."""
    kept: list[Span] = []
    for span in sorted(spans):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


def _replace(text: str, spans: list[Span], keep_lines: bool) -> str:
    parts: list[str] = []
    done = 0
    for start, end, kind in spans:
        ends = "\n" * text.count("\n", start, end) if keep_lines else ""
        parts += (text[done:start], f"[redacted {kind}]", ends)
        done = end
    return "".join((*parts, text[done:]))
