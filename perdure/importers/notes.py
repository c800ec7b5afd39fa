"""Notes in Markdown: of basic-memory, of Obsidian, and OpenClaw's MEMORY.md with its days (memory-core).

Each item of a list and each paragraph is a memory. Front matter gives tags and the day; `[category]` and `#tag` mark an
observation, `relation [[Title]]` leads from one note to another; a file `2026-01-15.md` is of that day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perdure.files.notes import BEGIN, END
from perdure.importers.archive import Member, members
from perdure.importers.conversation_import import HOME
from perdure.importers.records import fact_of, seconds
from perdure.maintenance.importing import Incoming, Load
from perdure.maintenance.markdown import front_matter, paragraphs, shown
from perdure.regex import lazy
from perdure.store.fact import CATEGORIES

OPENCLAW, BASIC, OBSIDIAN = "openclaw", "basic-memory", "obsidian"
_LOOKED_AT = 200
"""Notes that must tell what a folder is."""
_OURS = lazy(rf"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
_FENCED = lazy(r"^(```|~~~).*?^\1|<!--.*?-->", re.DOTALL | re.MULTILINE)
_LINK = lazy(r"!?\[\[([^\]\[|\n]+)(?:\|([^\]\[\n]*))?\]\]")
_RELATION = lazy(r"([^\[\]]*)\[\[([^\]\[\n]+)\]\]\s*(?:\([^()]*\))?")
_OBSERVATION = lazy(r"\[([^\[\]\n]{2,40})\]\s+(?=\S)")
_TASK = lazy(r"\[[ xX-]\]\s+")
_BOLD = lazy(r"\*\*[^*\n]+\*\*:?")
"""How a heading is written where headings are not at hand."""
_TAG = lazy(r"(?<!\S)#([\w/-]*[^\W\d][\w/-]*)")
_DAY = lazy(r"\d{4}-\d{2}-\d{2}")
_DATES = ("date", "created", "created_at", "updated", "modified")


@dataclass(frozen=True, slots=True)
class _Note:
    kind: str
    member: Member
    title: str
    at: float
    tags: tuple[str, ...]


def is_openclaw(path: Path) -> bool:
    """Return whether this is a MEMORY.md, or a workspace of OpenClaw with one or with the notes of days."""
    if path.is_file():
        return path.name.lower() == "memory.md"
    days = (path / "memory").glob("*.md") if path.is_dir() else ()
    return (path / "MEMORY.md").is_file() or any(_DAY.match(day.name) for day in days)


def is_basic_memory(path: Path) -> bool:
    """Return whether notes of basic-memory are in this folder: they say their permalink."""
    return any("permalink" in front_matter(member.text()) for member in members(path, ".md")[:_LOOKED_AT])


def is_obsidian(path: Path) -> bool:
    """Return whether this is a vault of Obsidian, or notes in its manner."""
    if (path / ".obsidian").is_dir():
        return True
    pages = (member.text() for member in members(path, ".md")[:_LOOKED_AT])
    return any(front_matter(page) or _LINK.search(page) for page in pages)


def load_notes(path: Path, kind: str) -> Load:
    """Return what stands in notes.

    `path`: a note, or a folder of notes; of a workspace of OpenClaw only MEMORY.md and the folder `memory`.
    """
    files = members(path, ".md")
    if kind == OPENCLAW and path.is_dir():
        files = [each for each in files if each.name in ("MEMORY.md", "memory.md") or each.path.parts[0] == "memory"]

    def facts() -> Iterator[Incoming]:
        return (incoming for member in files for incoming in _facts(kind, member))

    return Load(kind, sum(1 for _ in facts()), facts, lambda: ())


def pieces(page: str) -> Iterator[str]:
    """Yield the items of lists and the paragraphs of a page, without code, comments and what perdure wrote there."""
    for item in paragraphs(_FENCED.sub("", _OURS.sub("", page))):
        words = shown("\n".join(item))
        if any(map(str.isalnum, words)) and not words.startswith("|") and not _BOLD.fullmatch(words):
            yield words


def _facts(kind: str, member: Member) -> Iterator[Incoming]:
    page = member.text()
    matter = front_matter(page)
    named = _DAY.match(member.path.stem)
    dates = (
        seconds(each) for each in ((named[0] if named else ""), *(matter.get(name, "") for name in _DATES)) if each
    )
    at = next((date for date in dates if date is not None), member.at)
    note = _Note(kind, member, matter.get("title") or member.path.stem, at, _tags(page, matter.get("tags", "")))
    for piece in pieces(page):
        yield _incoming(note, piece)


def _incoming(note: _Note, piece: str) -> Incoming:
    relation = _RELATION.fullmatch(piece) if note.kind == BASIC else None
    observation = _OBSERVATION.match(piece)
    category, tags, text = "other", list(note.tags), piece
    if relation is not None:
        text = f"{note.title} {relation[1].strip() or 'relates to'} {relation[2].strip()}"
    elif observation is not None and not _TASK.match(piece):
        named = observation[1].strip().lower()
        category = named if named in CATEGORIES else "other"
        tags += [] if named in CATEGORIES else [named]
        text = piece[observation.end() :]
    tags += [tag.lower() for tag in _TAG.findall(text)]
    text = _TASK.sub("", _LINK.sub(lambda link: link[2] or link[1], text), count=1)
    # A tag in the middle of a sentence is a word of it.
    text = re.sub(r"(?:\s+#[\w/-]+)+\s*$", "", text).strip() or piece
    return Incoming(fact_of({
        "id": f"{note.kind} {note.member.name} {piece}",
        "text": text,
        "category": category,
        "tags": list(dict.fromkeys(tags)),
        "entity": note.title if note.kind == BASIC else None,
        "source": note.kind,
        "source_date": note.at or None,
        "scope": HOME.kind,
        "scope_target": HOME.target,
        "metadata": {"file": note.member.name},
    }))  # fmt: skip


def _tags(page: str, line: str) -> tuple[str, ...]:
    """Return the tags of a front matter: a list in brackets, words with commas, or a list of lines."""
    if not line:
        below = re.search(r"\A---\n(?:.*\n)*?tags:\s*\n((?:\s*- .*\n)+)", page[:5000])
        line = ",".join(each.strip(" -") for each in below[1].splitlines()) if below else ""
    return tuple(tag.strip(" \"'#").lower() for tag in line.strip("[]").split(",") if tag.strip(" \"'#"))
