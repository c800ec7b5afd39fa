"""`perdure index` and `perdure files`: Markdown memory and past conversations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, get_args

import click

from perdure.api.memory import Memory
from perdure.api.tool_arguments import Get, Search
from perdure.cli.operation import operation
from perdure.cli.options import arguments_option, limit_option
from perdure.cli.output import FOUND_NOTHING, OK, Output, steps, tell
from perdure.errors import InputError
from perdure.files.options import SOURCES
from perdure.files.roots import Kind
from perdure.files.search import HYBRID
from perdure.files.turns import Turn, read_turns, session_of
from perdure.text.pluralize import counted

SNIPPET = 200
"""Characters of a result in a table."""
_root = click.argument("root", metavar="FOLDER", type=click.Path(path_type=Path))


@operation(model=True)
@click.option("--force", is_flag=True, help="Rebuild the index from the files.")
def index(memory: Memory, output: Output, force: bool) -> None:
    """Update the index of files and conversations, including vectors.

    Example: perdure index
    """
    with steps("indexing", quiet=output.as_json) as moved:
        synced = memory.files.sync(force=force, progress=moved)
    with steps("embedding", quiet=output.as_json) as moved:
        memory.files.embed(moved)
    left = memory.files.status().without_vector
    output.json(synced, without_vector=left)
    output.line(f"Files: {synced.added} added, {synced.changed} changed, {synced.removed} removed")
    output.line(f"Passages written: {synced.chunks}")
    if left is None:
        output.line("No embedding model: passages are found by keywords only")
    elif left:
        output.line(f"{counted(left, 'passage')} without a vector yet; a background job will add them")
    _skipped(output, synced.skipped)


@click.group()
def files() -> None:
    """Search and read memory files and past conversations.

    Example: perdure files search "what did we decide about the cache"
    """


@operation(files, reads=True)
@click.option("--deep", is_flag=True, help="Read every file, including those that look unchanged.")
def status(memory: Memory, output: Output, deep: bool) -> None:
    """Show what is indexed and which files on disk differ from it.

    Example: perdure files status
    """
    found = memory.files.status(deep=deep)
    output.json(found.to_dict())
    figures = {
        "sources": found.sources or "none",
        "files": found.files,
        "passages": found.chunks,
        "without a vector": "no embedding model" if found.without_vector is None else found.without_vector,
        "generation": found.generation or "not built yet",
        "changed on disk": found.dirty,
    }
    output.table(("", ""), figures.items())
    none = "No folders are searched. Add one: perdure files add FOLDER"
    output.table(("kind", "folder", "scope"), found.roots, none=none)
    differing = (("added", found.added), ("changed", found.changed), ("removed", found.removed))
    rows = [(what, path) for what, paths in differing for path in paths]
    output.table(("difference", "file"), rows)
    _skipped(output, found.skipped)


@operation(files, model=True, reads=True)
@limit_option(None, 100)
@arguments_option("minScore", Search)
@click.option("--source", type=click.Choice(SOURCES), help="Only this source; default: all enabled ones.")
def search(
    memory: Memory, output: Output, query: str, limit: int | None, minScore: float | None, source: str | None
) -> int:
    """Search memory files and past conversations.

    Exit code 1: nothing matched.

    Example: perdure files search "staging database" --limit 3
    """
    sources = None if source is None else [source]
    answer = memory.files.search(query, max_results=limit, min_score=minScore, sources=sources)
    output.json(answer.to_dict())
    rows = [(f"{each.score:.2f}", each.citation or each.path, _cut(each.snippet)) for each in answer.results]
    output.table(("score", "where", "text"), rows, none=None if answer.disabled else "Nothing found.")
    if answer.backend != HYBRID:
        output.line(f"Search mode: {answer.backend}; {answer.reason}")
    if answer.dirty:
        output.line(f"{counted(answer.dirty, 'changed file')} not indexed yet. Update: perdure index")
    return OK if answer.results else FOUND_NOTHING


@operation(files, reads=True)
@arguments_option("start lines", Get)
def read(memory: Memory, output: Output, path: str, start: int | None, lines: int | None) -> int:
    """Print lines of a memory file, by path or citation.

    Give a path or citation as a search shows it. Exit code 1: no such file.

    Example: perdure files read "memory/2026-02-24.md#L12-L28"
    """
    reading = memory.files.read(path, start, lines)
    if output.as_json:
        output.json(reading)
    elif reading.missing:
        tell(f"no such file: {reading.path}")
    else:
        output.text(reading.text)
        if reading.truncated:
            tell(f"truncated; continue with: --from {reading.end + 1}")
    return int(reading.missing)


@operation(files)
@_root
@click.option(
    "--kind", type=click.Choice(get_args(Kind)), default="workspace", show_default=True, help="Kind of folder."
)
@click.option("--pattern", help="Which files of an extra folder to include; default: **/*.md.")
def add(memory: Memory, output: Output, root: Path, kind: str, pattern: str | None) -> None:
    """Make a folder searchable.

    FOLDER is a workspace, an extra folder or .md file, or a folder of JSONL conversations.

    Example: perdure files add ./notes --kind extra --pattern "work/**/*.md"
    """
    if pattern is not None and kind != "extra":
        raise InputError(
            f"--pattern {pattern!r} only applies to --kind extra, not {kind}; omit it or pass --kind extra"
        )
    if not root.exists():
        raise InputError(f"no such folder: {root}; create it or correct the path")
    memory.files.add(root, cast("Kind", kind), pattern=pattern or "**/*.md")
    added = _resolved(root)
    output.say({"added": added, "kind": kind}, f"Added {added}. Index it now: perdure index")


@operation(files)
@_root
def remove(memory: Memory, output: Output, root: Path, dry_run: bool) -> None:
    """Stop searching a folder. Its files are not touched.

    Example: perdure files remove ./notes --dry-run
    """
    wanted = _resolved(root)
    roots = [root for root in memory.files.status().roots if root[1] == str(wanted)]
    if not roots:
        raise InputError(f"{wanted} is not searched; list folders with: perdure files status")
    if not dry_run:
        memory.files.remove(root)
    named = [{"kind": kind, "path": path, "scope": scope} for kind, path, scope in roots]
    output.json({"dry_run": dry_run, "removed": named})
    if dry_run:
        output.table(("would be removed", "folder", "scope"), roots)
    else:
        output.line(f"No longer searching {wanted}; its files were not touched")


@operation(files)
@click.option("--title", default="", help="Title of the note.")
def note(memory: Memory, output: Output, text: str, title: str) -> None:
    """Append to today's note, memory/YYYY-MM-DD.md in your workspace.

    Example: perdure files note "The cache moved to Redis." --title decision
    """
    path = memory.files.append_note(text, title)
    output.say({"path": path}, f"Written to {path}")


@operation(files)
@click.option("--session", help="Session id; default: the one in the file, else the file name.")
def transcript(memory: Memory, output: Output, file: Path, session: str | None) -> None:
    """Make a conversation searchable.

    The file is JSONL or a JSON list of messages with role and content.

    Example: perdure files transcript chat.jsonl --session chat-1
    """
    text = _text(file)
    turns = read_turns(text)
    if not turns:
        raise InputError(
            f"no user or assistant messages in {file}; give JSONL or a JSON list of objects with role and content"
        )
    name = session or session_of(text, file.stem)
    added = memory.files.add_transcript([_message(turn) for turn in turns], name)
    output.json({"session": name, "messages": len(turns), "added": added})
    output.line(f"Added {added} of {counted(len(turns), 'message')} to session {name}")


def _skipped(output: Output, skipped: Mapping[str, str]) -> None:
    output.table(("skipped", "why"), skipped.items())


def _message(turn: Turn) -> dict[str, Any]:
    named = {} if turn.speaker == turn.role.title() else {"name": turn.speaker}
    timed = {} if turn.at is None else {"timestamp": turn.at}
    return {"role": turn.role, "content": turn.text, **named, **timed}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {file} ({type(error).__name__}); give a JSON or JSONL file") from error


def _resolved(folder: Path) -> Path:
    return folder.expanduser().resolve()


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SNIPPET else f"{text[: SNIPPET - 1].rstrip()}…"
