"""The lowest rung of searching: reading the files themselves, where there is no index."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from perdure.files.index import FileIndex
from perdure.files.legs import Chunk
from perdure.files.options import source_of
from perdure.files.roots import Root, scan
from perdure.text.normalise import fold, match_terms


def by_substring(
    query: str, roots: Sequence[Root], sources: Collection[str], index: FileIndex, deadline: float
) -> list[tuple[Chunk, float]] | None:
    """Return the passages that hold words of a query, with the share of the words.

    Args:
        query: in words.
        roots: where to look; each may be read by who asks.
        sources: which kinds of files.
        index: knows how files are read and cut.
        deadline: `time.monotonic()` after which the rest of the files is left out.

    Returns:
        None if there is no file to look into.
    """
    terms = [term.replace(" ", "") for term in match_terms(query)]
    files = [
        (root, found)
        for root in roots
        if source_of(root) in sources
        for found in scan(root, index.max_bytes(root)).values()
        if found.skipped is None
    ]
    if not files:
        return None
    hits: list[tuple[Chunk, float]] = []
    # What was written last is the most likely to be asked for.
    for root, found in sorted(files, key=lambda file: -file[1].mtime_ns):
        if time.monotonic() > deadline:
            break
        content = index.content(root, found)
        for place, entry in enumerate(content.entries):
            text = fold(f"{entry.section} {entry.text}")
            share = sum(term in text for term in terms) / len(terms) if terms else 0.0
            if share:
                # Numbered downwards: where nothing else tells two apart, the newer row has the greater number.
                chunk = Chunk(
                    -len(hits), 0, place, entry.start_line, entry.end_line, entry.section, entry.speaker, entry.role,
                    entry.at, entry.text, source_of(root), root.scope.kind, root.scope.target,
                    root.label(found.relative), content.session, content.day,
                )  # fmt: skip
                hits.append((chunk, share))
    return hits
