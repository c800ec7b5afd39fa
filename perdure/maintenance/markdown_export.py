"""Memories as a folder of Markdown pages that people read and edit: a page for each entity, and one for each category.

What waits for review stands in review.md. What was replaced, withdrawn or forgotten, or has expired, is left out,
unless it is asked for; then it stands in former.md. Each scope but the user's own and the global one has a folder.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from os.path import relpath
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from perdure.errors import InputError
from perdure.maintenance.exchange import unwritten
from perdure.maintenance.markdown_entry import write_entry
from perdure.regex import lazy
from perdure.store.fact import SELECT, Fact, folded_slot, from_row
from perdure.store.folder import prepare_folder, private_file, sync_folder
from perdure.store.safe import safe_fact
from perdure.store.scope import GLOBAL, OWNER, Scope
from perdure.store.sql import Connection, run
from perdure.store.store import Store

MARK = "perdure"
"""The name in the front matter by which a page is known."""
INDEX = "index"
_FORMER, _REVIEW = "former", "review"
_UNFIT = lazy(r"[^\w]+")
_WORD = lazy(r"\w+")
_LONGEST = 40
_LINKS = (
    "SELECT id, target_fact_id, link_type, strength, created_at FROM memory_links"
    " WHERE source_fact_id = ? ORDER BY rowid"
)
_OWN = (Scope("user", OWNER), GLOBAL)
_MENTION_WORDS = 3


@dataclass(frozen=True, slots=True)
class Pages:
    """What an export to Markdown wrote."""

    path: Path
    pages: int
    facts: int  # memories in them
    left_out: int  # former and forgotten memories that are in none


@dataclass(frozen=True, slots=True)
class _Page:
    scope: Scope
    title: str
    kind: str
    """"entity", "category", "review" or "former"."""


def export_pages(
    store: Store, target: Path, *, former: bool = False, advance: Callable[[], None] = lambda: None
) -> Pages:
    """Write one state of a store as Markdown pages, readable by their owner only. Secrets are redacted once more.

    The folder appears whole or not at all. With `former` it has also what was replaced, withdrawn or forgotten, or
    has expired.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} exists already; name another folder, or move it away")
    prepare_folder(target.parent)
    try:
        with TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as part:
            root = Path(part) / "pages"
            done = _write(store, target, root, former, advance)
            if target.exists():
                target.rmdir()
            root.rename(target)
            sync_folder(target.parent)
    except OSError as error:
        raise unwritten(target, error, "folder") from error
    return done


def _write(store: Store, target: Path, root: Path, former: bool, advance: Callable[[], None]) -> Pages:
    prepare_folder(root)
    with store.database.read() as connection, connection:
        # The transaction holds one state of the store for all that is read below.
        pages, left_out = _pages(connection, store.clock.now(), former)
        places = _places(pages)
        writer = _Writer(connection, store.key, root, places, pages, advance)
        for page in pages:
            writer.write(page)
    day = datetime.fromtimestamp(store.clock.now(), UTC).date()
    _save(root, PurePosixPath(f"{INDEX}.md"), _index(places, pages, str(day)))
    return Pages(target, len(pages) + 1, sum(map(len, pages.values())), left_out)


def _pages(connection: Connection, now: float, former: bool) -> tuple[dict[_Page, list[str]], int]:
    """Return the ids of the memories of each page, oldest first, and how many are on none."""
    ids: dict[tuple[str, ...], list[str]] = defaultdict(list)
    pages: dict[tuple[str, ...], _Page] = {}
    left_out = 0
    for row in connection.execute(f"SELECT {SELECT} FROM facts ORDER BY facts.seq"):
        page = _page(safe_fact(from_row(row)).fact, now)
        if page.kind == _FORMER and not former:
            left_out += 1
            continue
        # Entities and categories are the same in any case.
        key = (str(page.scope), page.kind, folded_slot(page.title) or "")
        pages.setdefault(key, page)
        ids[key].append(row[1])
    return {pages[key]: ids[key] for key in sorted(pages)}, left_out


def _page(fact: Fact, now: float) -> _Page:
    scope = Scope(fact.scope, fact.scope_target)
    expired = fact.expires_at is not None and fact.expires_at <= now
    if expired or fact.superseded_at is not None or fact.forgotten_at is not None:
        return _Page(scope, "Former memories", _FORMER)
    if fact.review_state != "approved":
        return _Page(scope, "Waiting for review, or rejected", _REVIEW)
    if fact.entity and fact.entity.strip():
        return _Page(scope, " ".join(fact.entity.split()), "entity")
    return _Page(scope, " ".join(fact.category.split()) or "other", "category")


def _places(pages: Iterable[_Page]) -> dict[_Page, PurePosixPath]:
    """Return where each page stands below the folder."""
    taken = {PurePosixPath(f"{INDEX}.md")}
    folders = dict.fromkeys(_OWN, PurePosixPath())
    places = {}
    for page in pages:
        if page.scope not in folders:
            folders[page.scope] = _free(PurePosixPath(_slug(str(page.scope))), "", set(folders.values()))
        name = page.kind if page.kind in (_FORMER, _REVIEW) else _slug(page.title)
        places[page] = _free(folders[page.scope] / name, ".md", taken)
        taken.add(places[page])
    return places


def _free(path: PurePosixPath, suffix: str, taken: set[PurePosixPath]) -> PurePosixPath:
    for number in count(1):
        place = path.with_name(f"{path.name}{f'-{number}' if number > 1 else ''}{suffix}")
        if place not in taken:
            return place
    raise AssertionError


def _slug(title: str) -> str:
    return _UNFIT.sub("-", title.casefold()).strip("-_")[:_LONGEST].strip("-_") or "page"


@dataclass
class _Writer:
    _connection: Connection
    _key: bytes
    _root: Path
    _places: Mapping[_Page, PurePosixPath]
    _ids: Mapping[_Page, Sequence[str]]
    _advance: Callable[[], None]

    def __post_init__(self) -> None:
        self._home = {fact_id: page for page, ids in self._ids.items() for fact_id in ids}
        entities = (page for page in self._ids if page.kind == "entity" and page.title.casefold() != "user")
        self._named = {(page.scope, tuple(_words(page.title))): page for page in entities}

    def write(self, page: _Page) -> None:
        items, linked = [], set()
        for fact_id in self._ids[page]:
            [row] = run(self._connection, f"SELECT {SELECT} FROM facts WHERE id = ?", (fact_id,))
            fact = from_row(row)
            links = run(self._connection, _LINKS, (fact_id,))
            linked |= {self._home[link[1]] for link in links if link[1] in self._home}
            linked |= self._mentioned(page.scope, safe_fact(fact).fact.text)
            items.append(write_entry(fact, links, self._key))
            self._advance()
        place = self._places[page]
        body = "\n".join(items)
        others = sorted(linked - {page}, key=lambda each: self._places[each])
        if others:
            body += "\n## See also\n\n" + "".join(_link(each, self._places[each], place.parent) for each in others)
        _save(self._root, place, _headed(page.title, page.kind, body, scope=str(page.scope)))

    def _mentioned(self, scope: Scope, text: str) -> set[_Page]:
        words = _words(text)
        runs = (tuple(words[at : at + size]) for size in range(1, _MENTION_WORDS + 1) for at in range(len(words)))
        return {self._named[scope, each] for each in runs if (scope, each) in self._named}


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _index(places: Mapping[_Page, PurePosixPath], pages: Mapping[_Page, Sequence[str]], day: str) -> str:
    body = ""
    for scope in dict.fromkeys(page.scope for page in pages):
        body += f"## {scope}\n\n"
        body += "".join(_link(page, places[page], PurePosixPath()) for page in pages if page.scope == scope)
        body += "\n"
    return _headed("Memories", INDEX, body, exported=day)


def _link(page: _Page, place: PurePosixPath, folder: PurePosixPath) -> str:
    title = page.title.translate({ord("["): "(", ord("]"): ")"})
    return f"- [{title}]({PurePosixPath(relpath(place, folder)).as_posix()})\n"


def _headed(title: str, kind: str, body: str, **more: str) -> str:
    values: dict[str, Any] = {MARK: kind, "title": title, **more}
    lines = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items())
    return f"---\n{lines}---\n\n# {title}\n\n{body}"


def _save(root: Path, place: PurePosixPath, text: str) -> None:
    path = root / place
    prepare_folder(path.parent)
    private_file(path).write_text(text, encoding="utf-8", newline="\n")
