"""Memories as a folder of Markdown pages that people read and edit: a page for each entity, and one for each category.

What waits for review stands in review.md. What was replaced, withdrawn or forgotten, or has expired, is left out,
unless it is asked for; then it stands in former.md. Each scope but the user's own and the global one has a folder.

A memory is an item of a list: its words for people, and behind them a comment with all else and a seal.

    - I like tea.
      <!-- perdure 3f9c... {"id": "1f0c...", "channel": "user", ...} -->

The seal (HMAC-SHA256 by the store's key) covers the words and the comment. Who has the key knows by it that nobody has
changed either. What editors do to white space at the ends of lines changes nothing.

Pages are taken back, edited or not. What the seal of this store vouches for comes back as it was. Anything else waits
for review, since agents write files, too. What is missing says nothing: pages may be moved, and a memory is forgotten
by `perdure forget`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from os.path import relpath
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from perdure.errors import InputError, ScopeError
from perdure.maintenance.exchange import (
    fact_line,
    read_fact,
    read_link,
    read_trigger,
    refuse_constant,
    unwritten,
)
from perdure.maintenance.importing import Incoming, Load, fact_id
from perdure.regex import lazy
from perdure.store.fact import SELECT, Fact, folded_slot, from_row, read_facts
from perdure.store.folder import prepare_folder, private_file, sync_folder
from perdure.store.links import Link
from perdure.store.safe import safe, safe_fact
from perdure.store.scope import GLOBAL, OWNER, Scope
from perdure.store.sql import Connection, run
from perdure.store.store import Store
from perdure.store.triggers import Trigger, of
from perdure.text.clean import clean
from perdure.text.normalise import fingerprint

_COMMENT = lazy(r"<!-- perdure ([0-9a-f]{64}) (\{.*\}) -->")
_ITEM = lazy(r"[-*+][ \t](.*)")
_LINK = lazy(r"\[[^\]\n]*\]\([^)\n]*\.md\)")
_HEADING = lazy(r"#{1,6}(?:\s|\Z)")
_INDENT = "  "
_USUAL = Fact("")
_MARK = "perdure"
"""The name in the front matter by which a page is known."""
_INDEX = "index"
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
_BEGINNING = 1000
"""Characters in which the front matter of a page must end to be looked at."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands in one item."""

    words: str  # as they are shown
    # what the comment holds; empty if there is none that can be read
    values: Mapping[str, Any] = field(default_factory=dict)
    sealed: bool = False  # whether the seal is that of the store, over these words and values

    @property
    def text(self) -> str:
        """The memory itself, to the letter if the comment says how it differs from what is shown."""
        exact = self.values.get("text")
        return exact if isinstance(exact, str) and shown(exact) == self.words else self.words


def write_entry(fact: Fact, links: Sequence[Sequence[Any]], key: bytes, aims: Iterable[Trigger] = ()) -> str:
    """Return a fact as an item with its triggers, secrets redacted once more.

    Links from it are id, target, type, strength, time.
    """
    line = fact_line(fact)
    words = shown(line["text"])
    # What a fact has anyhow need not be said.
    values = {
        name: value
        for name, value in line.items()
        if name != "type" and (name == "id" or _plain(value) != _plain(getattr(_USUAL, name)))
    }
    if words == line["text"]:
        del values["text"]
    if links:
        values["links"] = [list(each) for each in links]
    if told := [[safe(each.text), each.origin, each.created_at] for each in aims]:
        values["triggers"] = told
    # Two hyphens may end a comment; within JSON they stand in texts alone.
    hidden = json.dumps(values).replace("--", "-\\u002d")
    comment = f"<!-- perdure {_seal(words, hidden, key)} {hidden} -->"
    first, *rest = [*words.split("\n"), comment]
    return "\n".join([f"- {first}", *(f"{_INDENT}{each}" if each else "" for each in rest)]) + "\n"


def read_entries(page: str, key: bytes) -> Iterator[Entry]:
    """Yield every item and every other paragraph of a page, but no heading, front matter or mere link to a page."""
    for words in paragraphs(page):
        entry = _entry(words, key)
        if entry.values or (any(map(str.isalnum, entry.words)) and not _LINK.fullmatch(entry.words)):
            yield entry


def front_matter(page: str) -> dict[str, str]:
    """Return the lines `name: value` that a page begins with; {} without front matter."""
    return dict(_pair(line) for line in front_lines(page) if ":" in line)


def front_lines(page: str) -> list[str]:
    """Return the lines of the front matter, without those around it."""
    lines = page.splitlines()
    return lines[1 : max(1, _body(lines) - 1)]


def shown(text: str) -> str:
    """Return a text as people read it in a list: no white space at the ends of its lines."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip()


def paragraphs(page: str) -> Iterator[list[str]]:
    """Yield the lines of every item of a list and of every other paragraph of a page, and between them empty ones."""
    lines = page.splitlines()
    item: list[str] = []
    for line in lines[_body(lines) :]:
        start = _ITEM.match(line)
        if start:
            yield item
            item = [start[1]]
        elif _HEADING.match(line):
            yield item
            item = []
        elif not line.strip() or line[0] in " \t" or _COMMENT.fullmatch(line.strip()):
            item.append(line.removeprefix(_INDENT) if line.startswith(_INDENT) else line.removeprefix("\t"))
        elif item and not item[-1].strip():
            # A paragraph of its own.
            yield item
            item = [line]
        else:
            item.append(line)
    yield item


def _entry(lines: Sequence[str], key: bytes) -> Entry:
    words = shown("\n".join(lines))
    head, _, last = words.rpartition("\n")
    found = _COMMENT.fullmatch(last.strip())
    if found is None:
        return Entry(words)
    words = shown(head)
    try:
        values = json.loads(found[2], parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return Entry(words)
    return Entry(words, values, hmac.compare_digest(found[1], _seal(words, found[2], key)))


def _seal(words: str, hidden: str, key: bytes) -> str:
    return hmac.new(key, json.dumps(["perdure markdown", words, hidden]).encode(), hashlib.sha256).hexdigest()


def _body(lines: Sequence[str]) -> int:
    """Return the number of the first line behind the front matter."""
    if lines and lines[0].strip() == "---":
        for number, line in enumerate(lines[1:], 1):
            if line.strip() == "---":
                return number + 1
    return 0


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    try:
        plain = json.loads(value)
    except ValueError:
        plain = value.strip().strip("'")
    return name.strip(), str(plain)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


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
        raise InputError(f"{target} already exists; name another folder, or move it elsewhere")
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
    _save(root, PurePosixPath(f"{_INDEX}.md"), _index(places, pages, str(day)))
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
        return _Page(scope, "Pending review, or rejected", _REVIEW)
    if fact.entity and fact.entity.strip():
        return _Page(scope, " ".join(fact.entity.split()), "entity")
    return _Page(scope, " ".join(fact.category.split()) or "other", "category")


def _places(pages: Iterable[_Page]) -> dict[_Page, PurePosixPath]:
    """Return where each page stands below the folder."""
    taken = {PurePosixPath(f"{_INDEX}.md")}
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
        for held in self._ids[page]:
            [fact] = read_facts(self._connection, "facts WHERE id = ?", (held,))
            links = run(self._connection, _LINKS, (held,))
            aims = of(self._connection, [held]).get(held, ())
            linked |= {self._home[link[1]] for link in links if link[1] in self._home}
            linked |= self._mentioned(page.scope, safe_fact(fact).fact.text)
            items.append(write_entry(fact, links, self._key, aims))
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
    return _headed("Memories", _INDEX, body, exported=day)


def _link(page: _Page, place: PurePosixPath, folder: PurePosixPath) -> str:
    title = page.title.translate({ord("["): "(", ord("]"): ")"})
    return f"- [{title}]({PurePosixPath(relpath(place, folder)).as_posix()})\n"


def _headed(title: str, kind: str, body: str, **more: str) -> str:
    values: dict[str, Any] = {_MARK: kind, "title": title, **more}
    lines = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items())
    return f"---\n{lines}---\n\n# {title}\n\n{body}"


def _save(root: Path, place: PurePosixPath, text: str) -> None:
    path = root / place
    prepare_folder(path.parent)
    private_file(path).write_text(text, encoding="utf-8", newline="\n")


def is_pages(path: Path) -> bool:
    """Return whether this is a folder with a page of an export to Markdown."""
    return path.is_dir() and any(_MARK in front_matter(_text(page)[:_BEGINNING]) for page in _files(path))


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

    def aims() -> Iterator[Trigger]:
        for _, entry in _entries(path, key):
            found = entry.values.get("triggers")
            for values in found if isinstance(found, list) and _whole(entry, trust) else ():
                yield read_trigger(["", entry.values["id"], *values])

    total = sum(1 for _ in _entries(path, key))
    return Load("markdown", total, facts, links, triggers=aims, vouched=True)


def _for_review(matter: dict[str, str], entry: Entry) -> Incoming:
    edits = entry.values.get("id")
    scope = _scope(matter.get("scope", ""))
    kind, title = matter.get(_MARK), matter.get("title", "")
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
    values = {name: value for name, value in entry.values.items() if name not in ("links", "triggers")}
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
        raise InputError(f"{file} cannot be read ({error.strerror}); check its permissions") from error
