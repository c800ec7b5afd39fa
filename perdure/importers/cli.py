"""`perdure import`: memories and conversations of other tools. `perdure try`: what they would bring up."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import uuid
from contextlib import closing
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import click

from perdure.capture.describe import CategoryPatterns, compile_categories
from perdure.cli.operation import operation
from perdure.cli.output import SHORT_ID, Output, agree, console, day, is_asked, notice, progress, steps
from perdure.engine.engine import Engine
from perdure.engine.repository import project_of
from perdure.engine.settings import Settings
from perdure.engine.store_opening import open_store
from perdure.errors import InputError
from perdure.importers.conversation_import import Heard, Talks, hear
from perdure.importers.sources import KINDS, open_source
from perdure.importers.trial import SOURCES, Trial, found, run_trial
from perdure.importers.trial_page import figures, page, title
from perdure.index.missing import BATCH, embed_missing, unembedded
from perdure.maintenance.importing import Imported, bring_in
from perdure.store.folder import FILE_MODE
from perdure.store.sql import marks, run
from perdure.store.store import Store
from perdure.text.escape import visible
from perdure.text.pluralize import counted

_SHOWN = 10
_PATIENCE = 60.0
"""Seconds to wait for the model."""
_QUESTION = "Are you the user in these conversations, and may agents recall what you said in them?"


class _Format(click.Choice[str]):
    """A format by its name, or by another that people try."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name."""
        return super().convert({"claude": "claude-ai", "MEMORY.md": "openclaw"}.get(value, value), param, ctx)


@operation(name="import")
@click.option("--from", "kind", type=_Format(KINDS), help="Format; default: detected.")
@click.option("--trust", is_flag=True, help="Trust the memories: recall them as if you had said them.")
@click.option("--mine", is_flag=True, help="For conversations: you are the user in them.")
def import_(folder: Path, output: Output, path: Path, kind: str | None, trust: bool, mine: bool, dry_run: bool) -> int:
    """Import memories and conversations from other tools or exports.

    Edited and new entries in Markdown pages wait for `perdure review`; removing an entry forgets nothing. From
    conversations, only the user's statements are imported; on a terminal, you are asked whether that user is you.

    Exit code 1: conflicts, refused or unreadable entries, or nothing to import.

    Example: perdure import ~/Downloads/chatgpt-export.zip --dry-run
    """
    with closing(open_store(folder, absent="empty" if dry_run else "create")) as store:
        source = open_source(path, store.key, kind, trust=trust)
        if isinstance(source, Talks):
            if trust and not mine and source.notes is None:
                raise InputError(
                    "--trust applies to memories; if you are the user in these conversations, use --mine instead"
                )
            code = _hear(store, source, mine, trust, dry_run, output)
        else:
            if mine and not trust:
                raise InputError(f"--mine is for conversations, and {path} holds memories; trust these with --trust")
            with progress("importing", source.total, quiet=output.as_json) as advance:
                report = bring_in(store, source, trust=trust, dry_run=dry_run, advance=advance)
            output.json(report)
            _show(store, report, output)
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
            _show(store, notes, output)
        elif report.batch:
            output.line(f"Undo: perdure undo --batch {report.batch}")
    failed = report.unreadable or (not (report.read or report.known) if notes is None else _code(notes))
    return 1 if failed else 0


def _embed(folder: Path, output: Output) -> None:
    """Embed imported memories: until then only keywords find them."""
    with closing(Engine(folder, Settings.load(), guest=True)) as engine:
        waiting = unembedded(engine.store)
        if waiting and engine.model.wait(_PATIENCE):
            with progress("embedding", waiting, quiet=output.as_json) as advance:
                while embed_missing(engine.store, engine.model.embedder):
                    advance(BATCH)
        if left := unembedded(engine.store):
            notice([f"{counted(left, 'memory')} without a vector, found by keywords only: {engine.model.state}"])


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
    """Print what both reports share; `kept` of the `read` entries are worth keeping."""
    done = "Would import" if report.dry_run else "Imported"
    output.title(f"{done} from {report.kind}" if read else f"Nothing to import: no {what} found")
    passed = {f"skipped: {name}": count for name, count in report.passed.items()}
    rows = {**counts, **passed, "unreadable": report.unreadable}
    output.table(("", ""), [(name, count) for name, count in rows.items() if count])
    unread = [f"unreadable: {name}: {why}" for name, why in report.unread.items()]
    for lines, every in ((unread[:_SHOWN], len(unread)), (report.sample, kept)):
        for line in lines:
            output.line(line)
        if lines and every > len(lines):
            output.line(f"and {every - len(lines):,} more")


def _show_heard(report: Heard, output: Output) -> None:
    counts = {
        "conversations": report.conversations,
        "already recorded by hooks": report.known,
        "user messages": report.messages,
        "worth keeping": report.statements,
        "added": report.added,
        "secrets redacted": report.secrets.total(),
        "first": None if report.first is None else day(report.first),
        "last": None if report.last is None else day(report.last),
    }
    _tell(report, "user message", report.read + report.known, report.statements, counts, output)
    if report.statements and not report.mine:
        output.line(
            "For now, only a search finds them. If you are that user, repeat with --mine to have them recalled."
        )


def _show(store: Store, report: Imported, output: Output) -> None:
    counts = {
        "memories": report.total,
        "added": report.added,
        "expired": report.ended,
        "already stored": report.skipped,
        "superseded": report.superseded,
        "now trusted": report.vouched,
        "waiting for review": report.waiting,
        "conflicts": len(report.conflicts),
        "purged": report.purged,
        "refused": len(report.refused),
        "links": report.links,
        "triggers": report.triggers,
        "vectors": report.vectors,
        "missing from the file": report.missing,
    }
    _tell(report, "memory", report.total, report.added, counts, output)
    ids = report.conflicts[:_SHOWN]
    rows = store.database.query(run, f"SELECT id, text FROM facts WHERE id IN ({marks(ids)})", ids)
    texts: dict[str, str] = dict(rows)
    for fact_id in ids:
        output.line(f"conflict: {fact_id[:SHORT_ID]} keeps its own text here: {texts.get(fact_id, '')}")
    for fact_id, reason in list(report.refused.items())[:_SHOWN]:
        output.line(f"refused: {fact_id}: {reason}")
    if report.waiting and not report.dry_run:
        output.line("Some need review: perdure review")
    if report.added and report.batch:
        output.line(f"Undo: perdure undo --batch {report.batch}")
    if report.added and not report.trusted and report.kind != "markdown":
        output.line("Only a search finds them. To have them recalled, repeat with --trust.")


_CELL = 300
"""Characters of a prompt, and of what a side brings, in a pipe."""
_NUMBERS = 30
"""Columns of a terminal that the numbers beside them take."""


@operation(name="try")
@click.option("--from", "source", type=_Format(list(SOURCES)), required=True, help="The memory tool you use now.")
@click.option(
    "--prompts", "most", type=click.IntRange(1, 10_000), default=200, show_default=True,
    help="Compare this many of your last prompts.",
)  # fmt: skip
@click.option(
    "--prompts-from", "prompts", type=click.Path(path_type=Path),
    help="Read the prompts from this file: one per line, or JSON Lines with prompt and timestamp.",
)  # fmt: skip
@click.option("--page", "written", type=click.Path(path_type=Path), help="Also write an HTML page to this file.")
def try_(output: Output, source: str, path: Path | None, most: int, prompts: Path | None, written: Path | None) -> None:
    """Compare your current memory tool with perdure.

    Shows what each side adds to the context for each prompt, with tokens and milliseconds. Nothing is sent, and only
    the page you ask for is stored. Without PATH, the default location is used, if there is one.

    Example: perdure try --from chatgpt ~/Downloads/chatgpt-export.zip --page compare.html
    """
    if written and not (written.suffix.lower() in (".html", ".htm") and written.absolute().parent.is_dir()):
        raise InputError(f"--page {written} is not an .html file in an existing folder; give one, such as compare.html")
    place = found(source, path)
    with (
        tempfile.TemporaryDirectory(prefix="perdure-", ignore_cleanup_errors=True) as home,
        steps("comparing", quiet=output.as_json) as tell,
    ):
        trial = run_trial(source, place, Path(home), most=most, prompts=prompts, tell=tell)
    if written:
        # It holds what was said.
        handle = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(page(trial))
    output.json(trial, totals=trial.totals())
    _show_trial(trial, output)
    vouch = {"chatgpt": "--mine", "claude-code": "--mine", "claude-ai": "--mine --trust"}.get(source, "--trust")
    output.line(
        f"Nothing was sent or stored. To import it: perdure import {shlex.quote(str(place))} --from {source} {vouch}"
    )


def _show_trial(trial: Trial, output: Output) -> None:
    output.title(title(trial))
    output.line(trial.shown)
    wide = _CELL if not sys.stdout.isatty() else max(16, (console().width - _NUMBERS) // 3)
    rows = []
    for each in trial.answered:
        texts = map(visible, (each.prompt, "; ".join(each.today), "; ".join(each.perdure)))
        prompt, today, perdure = (text if len(text) <= wide else f"{text[: wide - 1]}…" for text in texts)
        rows.append((prompt, today, each.today_tokens, perdure, each.perdure_tokens, f"{each.ms:.1f}"))
    output.table(("prompt", "today", "tokens", "perdure", "tokens", "ms"), rows)
    output.rule("totals")
    output.table(("", "today", "perdure"), figures(trial))
