"""The fence around a recalled block: it marks the block as ours, and lets us find it again.

The nonce is an HMAC over session and body. A stored text cannot guess it, and the same store, session
and body always give the same bytes.
"""

from __future__ import annotations

import hashlib
import hmac

TAG = "memory-context"
_OPEN = f'<{TAG} nonce="'
_CLOSE = f"\n</{TAG}>"
_NONCE_DIGITS = 16
_MAX_BLOCKS = 64


def fence(body: str, key: bytes, session: str | None) -> str:
    """Return the body in its fence. The body must be escaped already: it may hold no `<`."""
    return f'{_OPEN}{_nonce(body, key, session)}">\n{body}{_CLOSE}'


def strip_fenced(text: str, key: bytes, session: str | None) -> str:
    """Remove the blocks that we put into this session; what only looks like one stays."""
    if _OPEN not in text:
        return text
    kept: list[str] = []
    start = 0
    for _ in range(_MAX_BLOCKS):
        opening = text.find(_OPEN, start)
        if opening < 0:
            break
        body_start = opening + len(_OPEN) + _NONCE_DIGITS + len('">\n')
        closing = text.find(_CLOSE, body_start)
        if closing < 0:
            break
        nonce = text[opening + len(_OPEN) : opening + len(_OPEN) + _NONCE_DIGITS]
        end = closing + len(_CLOSE)
        if nonce.isascii() and hmac.compare_digest(nonce, _nonce(text[body_start:closing], key, session)):
            kept.append(text[start:opening])
            start = end
        else:
            # Not ours, or without its end: a real block may begin right behind it.
            kept.append(text[start : opening + len(_OPEN)])
            start = opening + len(_OPEN)
    kept.append(text[start:])
    return "".join(kept).strip()


def _nonce(body: str, key: bytes, session: str | None) -> str:
    message = f"{session or ''}\0{body}".encode("utf-8", "replace")
    return hmac.new(key, message, hashlib.sha256).hexdigest()[:_NONCE_DIGITS]
