"""`perdure index` and `perdure files`: Markdown memory and past conversations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, get_args

import click

from perdure.api.memory import Memory
from perdure.cli.operation import operation
from perdure.cli.options import limit_option
from perdure.cli.output import FOUND_NOTHING, OK, Output, steps, tell
from perdure.errors import InputError
from perdure.files.options import SOURCES
from perdure.files.roots import Kind
from perdure.files.search import HYBRID
from perdure.files.turns import Turn, read_turns, session_of
from perdure.text.pluralize import counted

SNIPPET = 200
"""Characters of a result that a table shows."""
_root = click.argument("root", metavar="FOLDER", type=click.Path(path_type=Path))


@operation(model=True)
@click.option("--force", is_flag=True, help="Make a new index from nothing but the files.")
def index(memory: Memory, output: Output, force: bool) -> None:
    """Bring the index of files and conversations up to date, and give every passage its vector.

    Example: perdure index
    """
    with steps("indexing", quiet=output.as_json) as moved:
        synced = memory.files.sync(force=force, progress=moved)
    with steps("embedding", quiet=output.as_json) as moved:
        memory.files.embed(moved)
    left = memory.files.status().without_vector
    output.json(synced, without_vector=left)
    output.line(f"files: {synced.added} added, {synced.changed} changed, {synced.removed} removed")
    output.line(f"passages written: {synced.chunks}")
    if left is None:
        output.line("there is no embedding model: passages are found by their words alone")
    elif left:
        output.line(f"{left} passages have no vector yet; the background goes on")
    _skipped(output, synced.skipped)


@click.group()
def files() -> None:
    """Search and read memory files and past conversations.

    Example: perdure files search "what did we decide about the cache"
    """


@operation(files, reads=True)
@click.option("--deep", is_flag=True, help="Read every file, also those that look as before.")
def status(memory: Memory, output: Output, deep: bool) -> None:
    """Show what is indexed, and how the disk differs from it. Changes nothing.

    Example: perdure files status
    """
    found = memory.files.status(deep=deep)
    output.json(found.to_dict())
    figures = {
        "sources": found.sources or "none",
        "files": found.files,
        "passages": found.chunks,
        "without a vector": "no embedding model yet" if found.without_vector is None else found.without_vector,
        "generation": found.generation or "not built yet",
        "not up to date": found.dirty,
    }
    output.table(("", ""), figures.items())
    output.table(("kind", "folder", "scope"), found.roots)
    differing = (("added", found.added), ("changed", found.changed), ("removed", found.removed))
    rows = [(what, path) for what, paths in differing for path in paths]
    output.table(("not indexed yet", "file"), rows, none="")
    _skipped(output, found.skipped)


@operation(files, model=True, reads=True)
@limit_option(None, 100)
@click.option("--min-score", type=click.FloatRange(0, 1), help="0 to 1; without it as the settings say.")
@click.option("--source", type=click.Choice(SOURCES), help="Only these; without it all that are switched on.")
def search(
    memory: Memory, output: Output, query: str, limit: int | None, min_score: float | None, source: str | None
) -> int:
    """Search memory files and past conversations. Exit code 1: nothing fits.

    Example: perdure files search "staging database" --limit 3
    """
    sources = None if source is None else [source]
    answer = memory.files.search(query, max_results=limit, min_score=min_score, sources=sources)
    output.json(answer.to_dict())
    rows = [(f"{each.score:.2f}", each.citation or each.path, _cut(each.snippet)) for each in answer.results]
    output.table(("score", "where", "text"), rows, none="" if answer.disabled else "nothing found")
    if answer.backend != HYBRID:
        output.line(f"search: {answer.backend}; {answer.reason}")
    if answer.dirty:
        output.line(f"{answer.dirty} changed files are not in the index yet; bring them in with: perdure index")
    return OK if answer.results else FOUND_NOTHING


@operation(files, reads=True)
@click.option("--from", "start", type=int, help="First line, from 1.")
@click.option("--lines", type=int, help="So many lines; without it all the rest.")
def read(memory: Memory, output: Output, path: str, start: int | None, lines: int | None) -> int:
    """Print lines of a memory file, by its path or citation as a search shows it. Exit code 1: there is none.

    Example: perdure files read "memory/2026-02-24.md#L12-L28"
    """
    reading = memory.files.read(path, start, lines)
    if output.as_json:
        output.json(reading)
    elif reading.missing:
        tell(f"there is no file {reading.path}")
    else:
        output.text(reading.text)
        if reading.truncated:
            tell(f"cut off here; go on with: --from {reading.end + 1}")
    return int(reading.missing)


@operation(files)
@_root
@click.option("--kind", type=click.Choice(get_args(Kind)), default="workspace", show_default=True, help="What it is.")
@click.option("--pattern", help="Which .md files of an extra folder count; without it **/*.md.")
def add(memory: Memory, output: Output, root: Path, kind: str, pattern: str | None) -> None:
    """Search a folder from now on: a workspace, an extra folder or .md file, or conversations as JSONL.

    Example: perdure files add ./notes --kind extra --pattern "work/**/*.md"
    """
    if pattern is not None and kind != "extra":
        raise InputError(f"--pattern {pattern!r} has no meaning for kind {kind}; use it with --kind extra")
    if not root.exists():
        raise InputError(f"{root} is not there; make it first, or correct the path")
    memory.files.add(root, cast("Kind", kind), pattern=pattern or "**/*.md")
    added = _resolved(root)
    output.json({"added": added, "kind": kind})
    output.line(f"{added} is searched from now on; index it at once with: perdure index")


@operation(files)
@_root
def remove(memory: Memory, output: Output, root: Path, dry_run: bool) -> None:
    """Search a folder no longer. Its files stay as they are; the index forgets them.

    Example: perdure files remove ./notes --dry-run
    """
    wanted = _resolved(root)
    roots = [root for root in memory.files.status().roots if root[1] == str(wanted)]
    if not roots:
        raise InputError(f"{wanted} is not searched; see what is: perdure files status")
    if not dry_run:
        memory.files.remove(root)
    named = [{"kind": kind, "path": path, "scope": scope} for kind, path, scope in roots]
    output.json({"dry_run": dry_run, "removed": named})
    if dry_run:
        output.table(("would be removed", "folder", "scope"), roots)
    else:
        output.line(f"{wanted} is searched no longer; its files stay as they are")


@operation(files)
@click.option("--title", default="", help="Stands behind the time.")
def note(memory: Memory, output: Output, text: str, title: str) -> None:
    """Append to the note of today in your workspace, memory/YYYY-MM-DD.md.

    Example: perdure files note "The cache moved to Redis." --title decision
    """
    path = memory.files.append_note(text, title)
    output.json({"path": path})
    output.line(f"written to {path}")


@operation(files)
@click.option("--session", help="Its id; without it the one that the file gives, else the file's name.")
def transcript(memory: Memory, output: Output, file: Path, session: str | None) -> None:
    """Take in a conversation, JSONL or a JSON list of messages with role and content, so that it can be searched.

    Example: perdure files transcript chat.jsonl --session chat-1
    """
    text = _text(file)
    turns = read_turns(text)
    if not turns:
        raise InputError(
            f"{file} holds no messages of a user or an assistant; give JSONL or a JSON list of objects with role and"
            " content"
        )
    name = session or session_of(text, file.stem)
    added = memory.files.add_transcript([_message(turn) for turn in turns], name)
    output.json({"session": name, "messages": len(turns), "added": added})
    output.line(f"New in session {name}: {added} of {counted(len(turns), 'message')}")


def _skipped(output: Output, skipped: Mapping[str, str]) -> None:
    output.table(("skipped", "why"), skipped.items(), none="")


def _message(turn: Turn) -> dict[str, Any]:
    named = {} if turn.speaker == turn.role.title() else {"name": turn.speaker}
    timed = {} if turn.at is None else {"timestamp": turn.at}
    return {"role": turn.role, "content": turn.text, **named, **timed}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read ({type(error).__name__}); give a JSON or JSONL file") from error


def _resolved(folder: Path) -> Path:
    return folder.expanduser().resolve()


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SNIPPET else f"{text[: SNIPPET - 1].rstrip()}…"
