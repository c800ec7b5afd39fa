"""Notes in Markdown: of basic-memory, of Obsidian, of coding agents, and OpenClaw's MEMORY.md with its days.

Each item of a list, each paragraph, each row of a table and each field of the front matter is a memory, under the
title of its note. Tags and the day stand in the front matter; `[category]` and `#tag` mark an observation,
`relation [[Title]]` leads from one note to another; a file `2026-01-15.md` is of that day. What is no text of the
person's is passed over: templates, drawings, comments, code, quotes, embedded files.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perdure.files.notes import BEGIN, END
from perdure.importers.archive import UNREADABLE, Member, members
from perdure.importers.conversation_import import HOME
from perdure.importers.records import fact_of, seconds
from perdure.maintenance.importing import Incoming, Load
from perdure.maintenance.markdown import front_lines, front_matter, paragraphs, shown
from perdure.regex import lazy
from perdure.secrets.redact import redact
from perdure.store.fact import CATEGORIES
from perdure.text.lexicon import table

OPENCLAW, BASIC, OBSIDIAN = "openclaw", "basic-memory", "obsidian"
_AGENT_FILE = "agent-file"
_AGENT_FILES = frozenset({"claude.md", "claude.local.md", "agents.md", "gemini.md", "copilot-instructions.md"})
_LOOKED_AT = 200
"""Notes that must tell what a folder is."""
_OURS = lazy(rf"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
_FENCED = lazy(r"^[ \t>]*(```+|~~~+).*?(?:^[ \t>]*\1|\Z)|<!--.*?-->", re.DOTALL | re.MULTILINE)
_HIDDEN = lazy(r"%%.*?%%|^[ \t]*%%.*\Z", re.DOTALL | re.MULTILINE)
_QUOTE = lazy(r"(?:^[ \t]*>.*(?:\n|\Z))+", re.MULTILINE)
_CALLOUT = lazy(r"\[!([\w-]+)[^\]\n]*\][+-]?[ \t]*(.*)\n?")
_NUMBERED = lazy(r"^ {0,3}\d+[.)][ \t]+(?=\S)", re.MULTILINE)
_TABLE = lazy(
    r"^([^\n|]*\|.*)\n[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*(?::?-+:?[ \t]*)?)+(?:\n|\Z)((?:[^\n|]*\|.*(?:\n|\Z))*)",
    re.MULTILINE,
)
_BAR = lazy(r"(?<!\\)\|")
_LINK = lazy(r"\[\[([^\]\[|\n]+?)(?:\\?\|([^\]\[\n]*))?\]\]")
_EMBEDDED = lazy(r"[ \t]*!\[\[[^\]\[\n]*\]\]|[ \t]*!\[[^\]\n]*\]\([^)\n]*\)")
_BLOCK_ID = lazy(r"(?:^|[ \t])\^[A-Za-z0-9-]+[ \t]*$", re.MULTILINE)
_PLACE = lazy(r"\{\{[^{}]*\}\}|<%[^%]*%>")
"""Where a template is to be filled in."""
_CODE = lazy(r"`[^`\n]*`")
_FILLER = lazy(r"\W*lorem ipsum|.*lorem ipsum dolor", re.IGNORECASE | re.DOTALL)
_RELATION = lazy(r"([^\[\]]*)\[\[([^\]\[|\n]+)(?:\|[^\]\[\n]*)?\]\]\s*(?:\([^()]*\))?")
_OBSERVATION = lazy(r"\[([^\[\]\n]{2,40})\]\s+(?=\S)")
_TASK = lazy(r"^((?:[ \t]*[-*+][ \t]+)?)\[([ xX]|[^\w\s\[\]])\][ \t]+(.*)$", re.MULTILINE)
_BAD = "unreadable"
_SECRET = lazy(r"[^.!?]{0,60}\[redacted [\w-]+\]\W*")
"""A text in which nothing stands but a secret, and what it is called."""
_ENDED = {"x": " (done)", "X": " (done)", "-": " (cancelled)"}
_BOLD = lazy(r"\*\*[^*\n]+\*\*:?")
"""How a heading is written where headings are not at hand."""
_TAG = lazy(r"(?<!\S)#([\w/-]*[^\W\d][\w/-]*)")
_DAY = lazy(r"\d{4}-\d{2}-\d{2}")
_DATES = ("date", "created", "created_at", "updated", "modified")
_FIELD = lazy(r"([^\W\d][\w \t/.-]*):(?:[ \t]+(.*))?")
_ABOUT_NOTES = {*_DATES, *re.split(r",\s+", table("importers", "columns")["about_notes"].strip())}
"""Fields of a front matter that tell of a note, not of what it is about."""
_TEMPLATES = frozenset({"template", "templates", "_template", "_templates"})
_UNTITLED = frozenset({"memory", "index", "readme", "untitled", "inbox"})


@dataclass(frozen=True, slots=True)
class _Note:
    kind: str
    member: Member
    title: str  # empty: it has none that says anything
    at: float
    tags: tuple[str, ...]


def is_openclaw(path: Path) -> bool:
    """Return whether this is a MEMORY.md, or a workspace of OpenClaw with one or with the notes of days."""
    if path.is_file():
        return path.name.lower() == "memory.md"
    days = (path / "memory").glob("*.md") if path.is_dir() else ()
    return (path / "MEMORY.md").is_file() or any(_DAY.match(day.name) for day in days)


def is_agent_file(path: Path) -> bool:
    """Return whether this is what a person wrote down for a coding agent."""
    return path.is_file() and path.name.lower() in _AGENT_FILES


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
    drafts = _TEMPLATES | _template_folders(path)
    # A folder is named by its path or by its last name.
    pages = [
        each
        for each in files
        if kind == OPENCLAW or not drafts & {str(up).lower() for up in (*each.path.parents, *each.path.parts[:-1])}
    ]
    passed = Counter({"templates": len(files) - len(pages)})
    unread: dict[str, str] = {}

    def facts() -> Iterator[Incoming]:
        return (incoming for member in pages for incoming in _facts(kind, member, Counter()))

    total = 0
    for member in pages:
        skipped: Counter[str] = Counter()
        total += sum(1 for _ in _facts(kind, member, skipped))
        if bad := skipped.pop(_BAD, 0):
            unread[member.name] = f"{bad} of its parts are not text in UTF-8, UTF-16 or cp1252; save it as UTF-8"
        passed += skipped
    return Load(kind, total, facts, lambda: (), unreadable=len(unread), unread=unread, passed=dict(+passed))


def _template_folders(vault: Path) -> set[str]:
    """Return where a vault of Obsidian has its templates, by its settings and by those of Templater."""
    found = set()
    for name, key in {"templates.json": "folder", "plugins/templater-obsidian/data.json": "templates_folder"}.items():
        with suppress(OSError, ValueError, KeyError, TypeError):
            found.add(json.loads((vault / ".obsidian" / name).read_text("utf-8"))[key].strip("/").lower())
    return found


def pieces(page: str) -> Iterator[str]:
    """Yield the items of lists, the paragraphs and the rows of tables of a page, in plain words.

    Without code, comments, quotes, embedded files, and what perdure wrote there.
    """
    for hidden in (_OURS, _FENCED, _HIDDEN, _EMBEDDED, _BLOCK_ID):
        page = hidden.sub("", page)
    for item in paragraphs(_TABLE.sub(_as_items, _NUMBERED.sub("- ", _QUOTE.sub(_callout, page)))):
        words = shown("\n".join(item))
        says = any(sign.isalnum() or sign == UNREADABLE for sign in words)
        if says and not words.startswith("|") and not _BOLD.fullmatch(words):
            yield words


def _callout(quote: re.Match[str]) -> str:
    """Return what stands in a callout, under its title; nothing of a quote, which is somebody else's."""
    body = re.sub(r"^[ \t]*>[ \t]?", "", quote[0], flags=re.MULTILINE)
    begins = _CALLOUT.match(body)
    if begins is None or begins[1].lower() in ("quote", "cite"):
        return "\n\n"
    rest = _NUMBERED.sub("- ", _QUOTE.sub(_callout, body[begins.end() :])).strip("\n")
    if not rest or not begins[2]:
        return f"\n\n{begins[2]}{rest}\n\n"
    # Over a list it is a heading.
    listed = rest.startswith(("- ", "* ", "+ ", "|"))
    return f"\n\n# {begins[2]}\n{rest}\n\n" if listed else f"\n\n{begins[2]}: {rest}\n\n"


def _as_items(table: re.Match[str]) -> str:
    """Return the rows of a table as items of a list: header and value of each cell."""
    names = _cells(table[1])
    rows = [
        ", ".join(f"{name}: {cell}" if name else cell for name, cell in zip(names, _cells(row), strict=False) if cell)
        for row in table[2].splitlines()
    ]
    return "\n\n" + "".join(f"- {row}\n" for row in rows if row) + "\n"


def _cells(row: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _BAR.split(row.strip().removeprefix("|").removesuffix("|"))]


def _fields(page: str) -> dict[str, str]:
    """Return the fields of a front matter; the items of a list with commas between them."""
    found: dict[str, str] = {}
    name = ""
    for line in front_lines(page):
        if field := _FIELD.fullmatch(line.rstrip()):
            name = field[1].strip().lower()
            found[name] = _value(field[2] or "")
        elif name and (item := re.fullmatch(r"\s*-\s+(.*)", line)):
            found[name] += (", " if found[name] else "") + _value(item[1])
    return found


def _value(text: str) -> str:
    text = text.strip()
    if text.startswith("[") and text.endswith("]") and not text.startswith("[["):
        return ", ".join(part.strip(" \"'") for part in text[1:-1].split(","))
    # A text of several lines begins with a sign alone.
    return "" if set(text) <= set("|>+-") else text.strip("\"'")


def _facts(kind: str, member: Member, passed: Counter[str]) -> Iterator[Incoming]:
    page = member.text()
    fields = _fields(page)
    if "excalidraw-plugin" in fields:
        passed["drawings"] += 1
        return
    named = _DAY.match(member.path.stem)
    dates = (
        seconds(each) for each in ((named[0] if named else ""), *(fields.get(name, "") for name in _DATES)) if each
    )
    at = next((date for date in dates if date is not None), member.at)
    title = fields.get("title") or member.path.stem
    titled = kind not in (OPENCLAW, _AGENT_FILE) and not _DAY.match(title) and title.lower() not in _UNTITLED
    tags = tuple(tag.strip(" #").lower() for tag in fields.get("tags", "").split(",") if tag.strip(" #"))
    note = _Note(kind, member, title if titled else "", at, tags)
    told = {f"{name}: {value}": (name, value) for name, value in fields.items() if value and name not in _ABOUT_NOTES}
    for piece in (*(told if titled else ()), *pieces(page)):
        if why := _unfit(piece):
            passed[why] += 1
        elif incoming := _incoming(note, piece, *told.get(piece, (None, None))):
            yield incoming


def _unfit(piece: str) -> str:
    """Return what a piece is, if it is nothing that a person wrote to be read."""
    if UNREADABLE in piece:
        return _BAD
    if _PLACE.search(_CODE.sub("", piece)):
        return "placeholders"
    if _FILLER.match(piece):
        return "filler text"
    return "secrets" if _SECRET.fullmatch(redact(piece).text) else ""


def _incoming(note: _Note, piece: str, key: str | None, value: str | None) -> Incoming | None:
    relation = _RELATION.fullmatch(piece) if note.kind == BASIC else None
    observation = _OBSERVATION.match(piece)
    category, tags, text = "other", list(note.tags), piece
    if relation is not None:
        text = f"{note.title} {relation[1].strip() or 'relates to'} {relation[2].strip()}"
    elif observation is not None:
        named = observation[1].strip().lower()
        category = named if named in CATEGORIES else "other"
        tags += [] if named in CATEGORIES else [named]
        text = piece[observation.end() :]
    tags += [tag.lower() for tag in _TAG.findall(text)]
    # A tag in the middle of a sentence is a word of it.
    text = re.sub(r"(?:(?:\A|\s+)#[\w/-]+)+\s*$", "", _LINK.sub(_named, text))
    text = _TASK.sub(lambda task: task[1] + task[3].rstrip() + _ENDED.get(task[2], ""), text)
    text = re.sub(r"(?<=\w)::[ \t]", ": ", text).strip()
    if not text:
        return None
    if not re.search(rf"(?<!\w){re.escape(note.title)}(?!\w)", text, re.IGNORECASE):
        text = f"{note.title}: {text}"
    return Incoming(fact_of({
        "id": f"{note.kind} {note.member.name} {piece}",
        "text": text,
        "category": category,
        "tags": list(dict.fromkeys(tags)),
        "entity": note.title if note.title and (key or note.kind == BASIC) else None,
        "key": key,
        "value": value,
        "source": note.kind,
        "source_date": note.at or None,
        "scope": str(HOME),
        "metadata": {"file": note.member.name},
    }))  # fmt: skip


def _named(link: re.Match[str]) -> str:
    """Return what a link shows: its other name, else the note that it leads to, else a heading of this one."""
    note, _, heading = link[1].partition("#")
    return link[2] or note.rpartition("/")[2] or heading.strip("^# ")
