"""A prompt in the parts that it is asked in: requests one by one, and pasted material as a part of its own.

Plain Python, so that it can move into the package as it is. A part is what one vector is made of; a memory's score is
that of the part it fits best.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from perdure.regex import lazy

MOST = 6
"""Parts of a prompt at most: each costs an embedding."""
SHORT = 20
"""A prompt of up to so many words is one part."""
LONG = 28
"""A sentence of more words is cut at its clauses: dictation has no full stops."""
PASTED = 400
"""Characters that are kept of pasted material, half from its beginning and half from its end."""

_FENCE = lazy(r"```.*?(?:```|\Z)", re.DOTALL)
_DENSE = lazy(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = lazy(r"[^\W_\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]+(?:['\u2019][^\W_]+)*")
_LOG = lazy(
    r"^\s*(?:\[?\d{4}-\d\d-\d\d|\[?\d\d?:\d\d:\d\d|\$ |>>> |at [\w.$]+\(|File \"|Traceback|[+-]{3} |@@ )"
    r"|^\s*(?:ERROR|WARN|INFO|DEBUG|FATAL|TRACE)\b"
)
_SIGNS = lazy(r"[{}\[\]()<>=;|_/\\$#*:]|\d")
_SENTENCE = lazy(
    r"(?<=[.!?\u2026])[\"'\u201d\u2019)]*\s+|(?<=[\u3002\uff01\uff1f])|\n+|;\s+|(?<=\s)(?=\(?[\da-h][).]\s)"
)
_CLAUSE = lazy(
    r",\s+(?=\S+\s+\S+)|\s+-+\s+|\s+[\u2013\u2014]\s+|\uff0c|\u3001"
    r"|\s+(?=(?:and|then|also|but|so|after that|und|dann|aber|et|puis|mais|y|luego|pero)\s)",
    re.IGNORECASE,
)


def parts(text: str) -> list[str]:
    """Return the parts of a prompt in their order, one to `MOST`; a blank prompt has none."""
    if not text.strip():
        return []
    typed, pasted = _apart(text)
    if not pasted and size(typed) <= SHORT:
        return [" ".join(typed.split())]
    asked = [piece for sentence in _SENTENCE.split(typed) for piece in _clauses(sentence or "") if piece.strip()]
    room = max(1, MOST - len(pasted)) if asked else MOST
    found = _merged(asked, room) + _merged(pasted, MOST - min(len(asked), room))
    return [" ".join(_shortened(part).split()) for part in found]


def size(text: str) -> int:
    """Return how many words a text has; two characters of a script without spaces count as one."""
    return len(_WORD.findall(text)) + (len(_DENSE.findall(text)) + 1) // 2


def _apart(text: str) -> tuple[str, list[str]]:
    """Return what was typed, and each block of code or log that was pasted."""
    pasted = [block.strip("` \n") for block in _FENCE.findall(text)]
    typed: list[str] = []
    block: list[str] = []
    for line in [*_FENCE.sub("\n", text).splitlines(), ""]:
        if _is_pasted(line):
            block.append(line)
            continue
        if len(block) > 1:
            pasted.append("\n".join(block))
        else:
            typed += block
        block = []
        typed.append(line)
    return "\n".join(typed), [block for block in pasted if block.strip()]


def _is_pasted(line: str) -> bool:
    shown = line.strip()
    return bool(_LOG.match(line)) or (len(shown) > 12 and len(_SIGNS.findall(shown)) > len(shown) / 6)


def _clauses(sentence: str) -> Iterator[str]:
    if size(sentence) <= LONG:
        yield sentence
        return
    held = ""
    for clause in _CLAUSE.split(sentence):
        if held and size(held) + size(clause) > LONG // 2:
            yield held
            held = clause
        else:
            held = f"{held}, {clause}" if held else clause
    if held:
        yield held


def _merged(pieces: Iterable[str], most: int) -> list[str]:
    """Return the pieces, neighbours put together, the shortest first, until none is tiny and `most` are left."""
    left = list(pieces)
    sizes = [size(piece) for piece in left]
    while len(left) > 1:
        at = min(range(len(left) - 1), key=lambda index: sizes[index] + sizes[index + 1])
        if len(left) <= most and sizes[at] + sizes[at + 1] > SHORT:
            break
        left[at : at + 2] = [f"{left[at]} {left[at + 1]}"]
        sizes[at : at + 2] = [sizes[at] + sizes[at + 1]]
    return left if most > 0 else []


def _shortened(part: str) -> str:
    if len(part) <= 2 * PASTED:
        return part
    return part[:PASTED] + " ... " + part[-PASTED:]
