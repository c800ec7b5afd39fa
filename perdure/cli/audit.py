"""`perdure audit` and `perdure classify`: keep what is remembered in order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import click

from perdure.api.memory import Memory
from perdure.cli.options import dry_run_option, on_memory
from perdure.cli.output import SHORT_ID, Output, progress
from perdure.store.listing import Progress
from perdure.text.pluralize import counted


@click.command()
@click.option("--fix", is_flag=True, help="Forget, supersede and link; `perdure undo` takes it back.")
@dry_run_option
@on_memory(reads=True)
def audit(memory: Memory, output: Output, fix: bool, dry_run: bool) -> int:
    """Find memories that do more harm than good. Exit code 1: there are some that were not mended.

    Example: perdure audit --fix --dry-run
    """
    with _shown("looking", memory, output) as moved:
        found = memory.admin.audit(fix=fix and not dry_run, progress=moved)
    if output.as_json:
        output.json({"counts": found.counts(), **asdict(found)})
    else:
        rows = [(each.id[:SHORT_ID], each.kind, each.remedy, each.evidence, each.text) for each in found.suspects]
        output.table(("id", "kind", "remedy", "evidence", "text"), rows)
        output.line(f"{counted(found.facts, 'memory')} looked at, {len(found.suspects)} suspect, {found.fixed} mended.")
        if found.batch:
            output.line(f"Take it back with: perdure undo --batch {found.batch}")
    return int(found.fixed < len(found.suspects))


@click.command()
@dry_run_option
@on_memory()
def classify(memory: Memory, output: Output, dry_run: bool) -> int:
    """Give memories of the category "other" a better one.

    The language model is asked, if one is set; else their words decide, and then the memories near to them.

    Example: perdure classify --dry-run
    """
    with _shown("classifying", memory, output) as moved:
        done = memory.admin.classify(dry_run=dry_run, progress=moved)
    if output.as_json:
        output.json({"dry_run": dry_run, "classified": [asdict(each) for each in done]})
    else:
        output.table(("id", "category", "by"), [(each.id[:SHORT_ID], each.category, each.by) for each in done])
        output.line(f"{counted(len(done), 'memory')} {'would get' if dry_run else 'got'} a category.")
    return 0


@contextmanager
def _shown(what: str, memory: Memory, output: Output) -> Iterator[Progress]:
    """Show a bar that follows the memories that were looked at."""
    with progress(what, memory.admin.stats().total, quiet=output.as_json) as advance:
        at = 0

        def moved(done: int, total: int) -> None:
            nonlocal at
            for _ in range(done - at):
                advance()
            at = done

        yield moved
