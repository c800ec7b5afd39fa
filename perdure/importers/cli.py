"""`perdure import`: memories in, and what people said to other agents."""

from __future__ import annotations

import uuid
from contextlib import closing
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import click

from perdure.capture.describe import CategoryPatterns, compile_categories
from perdure.cli.operation import operation
from perdure.cli.output import Output, agree, day, is_asked, notice, progress
from perdure.engine.engine import Engine
from perdure.engine.opening import open_store
from perdure.engine.repository import project_of
from perdure.engine.settings import Settings
from perdure.errors import InputError
from perdure.importers.conversation_import import Heard, Talks, hear
from perdure.importers.sources import KINDS, open_source
from perdure.index.missing import BATCH, embed_missing, unembedded
from perdure.maintenance.importing import Imported, bring_in
from perdure.store.store import Store
from perdure.text.pluralize import counted

_SHOWN = 10
_PATIENCE = 60.0
"""Seconds in which the model is loaded."""
_QUESTION = "Are you the person in these conversations, and may what you said in them come up unasked?"


@operation(name="import")
@click.option("--from", "kind", type=click.Choice(KINDS), help="What it is; without it told by what is in it.")
@click.option("--trust", is_flag=True, help="Vouch for what is in it: it is recalled as if you had said it.")
@click.option("--mine", is_flag=True, help="In conversations: what the person said is what you said.")
def import_(folder: Path, output: Output, path: Path, kind: str | None, trust: bool, mine: bool, dry_run: bool) -> int:
    """Take in an export, Markdown pages, memories of another system, or conversations with other agents.

    What was edited in a page, or is new there, waits for `perdure review`; what is missing there is not forgotten. Of
    conversations only what the person said is kept; on a terminal you are asked whether it is yours.

    Exit code 1: something in it conflicts with what is here, or could not be taken in, or nothing was read.

    Example: perdure import ~/Downloads/chatgpt-export.zip --dry-run
    """
    with closing(open_store(folder, absent="empty" if dry_run else "create")) as store:
        source = open_source(path, store.key, kind, trust=trust)
        if isinstance(source, Talks):
            if trust and not mine and source.notes is None:
                raise InputError("--trust is for memories; say with --mine that what the person said is yours")
            code = _hear(store, source, mine, trust, dry_run, output)
        else:
            if mine and not trust:
                raise InputError(
                    f"--mine is for conversations, and {path} holds memories; vouch for these with --trust"
                )
            with progress("importing", source.total, quiet=output.as_json) as advance:
                report = bring_in(store, source, trust=trust, dry_run=dry_run, advance=advance)
            output.json(report)
            _show(report, output)
            code = _code(report)
    if not dry_run:
        _embed(folder, output)
    return code


def _hear(store: Store, talks: Talks, mine: bool, trust: bool, dry_run: bool, output: Output) -> int:
    categories = compile_categories(Settings.load().categories)
    if not (mine or dry_run or output.as_json) and is_asked():
        _show_heard(_heard(store, talks, True, categories, output, mine=False), output)
        mine = agree(_QUESTION)
    batch = uuid.uuid4().hex
    report = _heard(store, talks, dry_run, categories, output, mine=mine, batch=batch)
    notes = None if talks.notes is None else bring_in(store, talks.notes, trust=trust, dry_run=dry_run, batch=batch)
    if output.as_json:
        # Its counters are no dictionaries to `asdict`.
        told = {each.name: getattr(report, each.name) for each in fields(report)}
        output.json({**told, "batch": report.batch or batch, "notes": notes and asdict(notes)})
    else:
        if report.conversations or report.unreadable or notes is None:
            _show_heard(report, output)
        if notes is not None:
            _show(notes, output)
        elif report.batch:
            output.line(f"Take it back with: perdure undo --batch {report.batch}")
    failed = report.unreadable or (not (report.read or report.known) if notes is None else _code(notes))
    return 1 if failed else 0


def _embed(folder: Path, output: Output) -> None:
    """Give vectors to what came in: until it has them, its words alone are found."""
    with closing(Engine(folder, Settings.load(), guest=True)) as engine:
        waiting = unembedded(engine.store)
        if waiting and engine.model.wait(_PATIENCE):
            with progress("making vectors", waiting, quiet=output.as_json) as advance:
                while embed_missing(engine.store, engine.model.embedder):
                    advance(BATCH)
        if left := unembedded(engine.store):
            notice([f"{counted(left, 'memory')} are found by their words alone so far: {engine.model.state}"])


def _heard(
    store: Store, talks: Talks, dry_run: bool, categories: CategoryPatterns, output: Output, *,
    mine: bool, batch: str = "",
) -> Heard:  # fmt: skip
    with progress("reading" if dry_run else "importing", talks.size, quiet=output.as_json) as advance:
        return hear(
            store, talks, mine=mine, dry_run=dry_run, batch=batch, categories=categories, project=project_of,
            advance=advance,
        )  # fmt: skip


def _code(report: Imported) -> int:
    wrong = report.conflicts or report.refused or report.missing or report.unreadable or not report.total
    return 1 if wrong else 0


def _tell(report: Heard | Imported, what: str, read: int, kept: int, counts: dict[str, Any], output: Output) -> None:
    """Print what both reports have; `what` could be read, `kept` of it is worth keeping."""
    done = "Would import" if report.dry_run else "Imported"
    output.title(f"{done} from {report.kind}" if read else f"Nothing was read: no {what} was found in it")
    passed = {f"passed over: {name}": count for name, count in report.passed.items()}
    rows = {**counts, **passed, "unreadable": report.unreadable}
    output.table(("", ""), [(name, count) for name, count in rows.items() if count])
    unread = [f"not read: {name}: {why}" for name, why in report.unread.items()]
    for lines, every in ((unread[:_SHOWN], len(unread)), (report.sample, kept)):
        for line in lines:
            output.line(line)
        if lines and every > len(lines):
            output.line(f"and {every - len(lines):,} more")


def _show_heard(report: Heard, output: Output) -> None:
    counts = {
        "conversations": report.conversations,
        "known from the hooks already": report.known,
        "messages of the person": report.messages,
        "worth keeping": report.statements,
        "added": report.added,
        "secrets left out": report.secrets.total(),
        "from": None if report.first is None else day(report.first),
        "to": None if report.last is None else day(report.last),
    }
    _tell(report, "message of a person", report.read + report.known, report.statements, counts, output)
    if report.statements and not report.mine:
        output.line("They come up only when they are searched for. If the person is you: --mine")


def _show(report: Imported, output: Output) -> None:
    counts = {
        "facts": report.total,
        "added": report.added,
        "over already": report.ended,
        "there already": report.skipped,
        "superseded": report.superseded,
        "trusted from now on": report.vouched,
        "waiting for review": report.waiting,
        "in conflict": len(report.conflicts),
        "purged before": report.purged,
        "refused": len(report.refused),
        "links": report.links,
        "vectors": report.vectors,
        "missing in the file": report.missing,
    }
    _tell(report, "memory", report.total, report.added, counts, output)
    for fact_id in report.conflicts[:_SHOWN]:
        output.line(f"in conflict: {fact_id} says something else here, and was left as it is")
    for fact_id, reason in list(report.refused.items())[:_SHOWN]:
        output.line(f"refused: {fact_id}: {reason}")
    if report.waiting and not report.dry_run:
        output.line("See what waits, and decide: perdure review")
    if report.added and report.batch:
        output.line(f"Take it back with: perdure undo --batch {report.batch}")
    if report.total and not report.trusted and report.kind != "markdown":
        output.line("They come up only when they are searched for. To have them recalled unasked: --trust")
