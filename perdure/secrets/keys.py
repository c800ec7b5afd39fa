"""Private keys in blocks: PEM, OpenSSH, PGP and PuTTY, whether their end is there or not."""

from __future__ import annotations

from collections.abc import Iterator

from perdure.regex import lazy
from perdure.secrets.shapes import Span

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


def private_keys(text: str) -> Iterator[Span]:
    """Yield the private keys of a text."""
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
