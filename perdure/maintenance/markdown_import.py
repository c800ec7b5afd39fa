"""Taking back Markdown pages that `perdure.maintenance.markdown_export` wrote, and that anybody may have edited.

What the seal of this store vouches for comes back as it was. Anything else waits for review, since agents write files,
too. What is missing says nothing: pages may be moved, and a memory is forgotten by `perdure forget`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from perdure.errors import InputError, ScopeError
from perdure.maintenance.exchange import read_fact, read_link
from perdure.maintenance.importing import Incoming, Load, fact_id
from perdure.maintenance.markdown_entry import Entry, front_matter, read_entries
from perdure.maintenance.markdown_export import MARK
from perdure.store.fact import Fact
from perdure.store.links import Link
from perdure.store.scope import OWNER, Scope
from perdure.text.clean import clean
from perdure.text.normalise import fingerprint

_BEGINNING = 1000
"""Characters in which the front matter of a page must end to be looked at."""


def is_pages(path: Path) -> bool:
    """Return whether this is a folder with a page of an export to Markdown."""
    return path.is_dir() and any(MARK in front_matter(_text(page)[:_BEGINNING]) for page in _files(path))


def load_pages(path: Path, key: bytes, *, trust: bool = False) -> Load:
    """Return what the pages of a folder hold; `trust` vouches for another store's words where they are unchanged."""

    def facts() -> Iterator[Incoming]:
        for matter, entry in _entries(path, key):
            whole = _whole(entry, trust)
            yield _for_review(matter, entry) if whole is None else Incoming(whole, sealed=True)

    def links() -> Iterator[Link]:
        for _, entry in _entries(path, key):
            found = entry.values.get("links")
            for values in found if isinstance(found, list) and _whole(entry, trust) else ():
                yield read_link([values[0], entry.values["id"], *values[1:]])

    return Load("markdown", sum(1 for _ in _entries(path, key)), facts, links)


def _for_review(matter: dict[str, str], entry: Entry) -> Incoming:
    edits = entry.values.get("id")
    scope = _scope(matter.get("scope", ""))
    kind, title = matter.get(MARK), matter.get("title", "")
    fact = Fact(
        entry.words,
        # The same edit is the same memory when it comes again.
        id=fact_id(f"markdown {scope} {edits} {entry.words}"),
        scope=scope.kind,
        scope_target=scope.target,
        entity=title if kind == "entity" and title else None,
        category=title if kind == "category" and title else "other",
        metadata={"review": "edited in a file" if edits else "new in a file"},
    )
    return Incoming(fact, review=True, edits=edits if isinstance(edits, str) else None)


def _whole(entry: Entry, trust: bool) -> Fact | None:
    """Return the fact that an entry holds with all that is known of it; None if nobody vouches for that."""
    if not (entry.sealed or trust):
        return None
    values = {name: value for name, value in entry.values.items() if name != "links"}
    try:
        fact = read_fact({**values, "text": entry.text})
    except InputError:
        return None
    return fact if entry.sealed or fingerprint(fact.text) == fact.normalized_hash else None


def _scope(text: str) -> Scope:
    try:
        return Scope.parse(text)
    except ScopeError:
        return Scope("user", OWNER)


def _entries(path: Path, key: bytes) -> Iterator[tuple[dict[str, str], Entry]]:
    for file in _files(path):
        page = _text(file)
        matter = front_matter(page)
        for entry in read_entries(page, key):
            yield matter, entry


def _files(path: Path) -> list[Path]:
    """Return the pages of a folder; those of hidden folders belong to an editor."""
    found = sorted(path.rglob("*.md"))
    return [file for file in found if not any(part.startswith(".") for part in file.relative_to(path).parts)]


def _text(file: Path) -> str:
    try:
        return clean(file.read_text(encoding="utf-8-sig", errors="replace"))
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); check its mode") from error
