"""Take secrets out of a text before it is written anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from perdure.recent import Recent
from perdure.secrets.encodings import decoded, joined, ungrouped
from perdure.secrets.keyword_detector import named_secrets
from perdure.secrets.numbers import secret_numbers
from perdure.secrets.phrases import phrases, recovery_codes
from perdure.secrets.places import place_secrets
from perdure.secrets.shapes import private_keys, strong_words, tokens
from perdure.secrets.views import Span, View, plain

VERSION = 5
"""Grows with every change that finds more: what was stored before is then looked through once more."""

_Detector = Callable[[View], Iterable[Span]]


def _words(page: View) -> Iterator[Span]:
    yield from tokens(page.text, page.long)
    yield from phrases(page.text, page.words)
    yield from strong_words(page.text)


_PLAIN: tuple[_Detector, ...] = (
    private_keys, _words, place_secrets, recovery_codes, named_secrets, secret_numbers,
)  # fmt: skip


def _within(views: Iterable[View]) -> Iterator[Span]:
    for view in views:
        if view.edited:
            yield from view.touched(span for detector in _PLAIN for span in detector(view))


def _broken(page: View) -> Iterator[Span]:
    return _within(joined(page.text))


def _packed(page: View) -> Iterator[Span]:
    yield from ungrouped(page)
    yield from _within(decoded(page))


# The surest first: what a detector took out, the later ones no longer see. Values that were broken over lines come
# before the whole ones, which would take the first part alone.
_DETECTORS: tuple[_Detector, ...] = (private_keys, _broken, *_PLAIN[1:], _packed)
# Taking out one secret can uncover another beside it, so rounds go on until one finds nothing.
# The cap keeps the time linear whatever the text.
_ROUNDS = 8

_SHORT = 2_000
_CLEAN = Recent[str, bool](512)
"""Short texts in which nothing was found: each step of a turn asks again of the same ones. No secret is kept here."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text with `[redacted <kind>]` in the place of each secret."""

    text: str
    kinds: tuple[str, ...]  # of what was taken out, each once, in the order in which it was found
    marks: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What was taken out, and what stands there now. Never to be written anywhere."""


def redact(text: str, *, keep_lines: bool = False) -> Redaction:
    """Replace secrets: tokens, keys, passwords, PINs, card, social security and account numbers.

    Takes time linear in the length of the text, and finds nothing more in its own result. With `keep_lines`, as many
    line ends are left as there were, so that line numbers stay true.
    """
    if _CLEAN.get(text):
        return Redaction(text, ())
    marks: dict[str, str] = {}
    kinds: dict[str, None] = {}
    for _ in range(_ROUNDS):
        before, page = text, plain(text)
        for detector in _DETECTORS:
            spans = _apart(map(page.place, detector(page)))
            if spans:
                marks.update((text[start:end], f"[redacted {kind}]") for start, end, kind in spans)
                text = _replace(text, spans, keep_lines)
                page = plain(text)
                kinds.update(dict.fromkeys(span.kind for span in spans))
        if text == before:
            break
    if not kinds and len(text) <= _SHORT:
        _CLEAN.put(text, True)
    return Redaction(text, tuple(kinds), marks)


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
