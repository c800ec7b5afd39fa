"""`perdure export` and `perdure import`: all memories out, and memories in."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from perdure.care.exchange import export as export_store
from perdure.care.exchange import fact_count
from perdure.care.exports import daily_export
from perdure.care.importing import Imported, bring_in
from perdure.care.markdown_export import Pages, export_pages
from perdure.care.sources import KINDS, load_source
from perdure.cli.options import dry_run_option, existing_store, home_option, json_option
from perdure.cli.output import Output, progress
from perdure.engine.paths import data_folder
from perdure.engine.settings import Settings
from perdure.errors import InputError
from perdure.store.store import Store

_SHOWN = 10


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--vectors", is_flag=True, help="Also the vectors, so that nothing need be embedded anew.")
@click.option("--journal", is_flag=True, help="Also the journal of changes, for reading.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "markdown"]),
    default="jsonl",
    show_default=True,
    help="Lines of JSON, or a folder of Markdown pages to read and edit.",
)
@click.option("--former", is_flag=True, help="In Markdown: also what was replaced or forgotten, or has expired.")
@click.option("--daily", is_flag=True, help="Write today's file into exports/, as a timer does, and keep the newest.")
@home_option
@json_option
def export(
    file: Path | None,
    vectors: bool,
    journal: bool,
    form: str,
    former: bool,
    daily: bool,
    home: Path | None,
    as_json: bool,
) -> int:
    """Write all memories with everything that is known of them: as lines of JSON, or as Markdown pages.

    Example: perdure export memories.jsonl
    """
    if (form == "markdown" and (vectors or journal or daily)) or (form != "markdown" and former):
        raise InputError("--former goes with --format markdown; --vectors, --journal and --daily go without it")
    if daily == (file is not None) or (daily and (vectors or journal)):
        raise InputError("give a FILE, or --daily alone")
    output = Output(as_json)
    with existing_store(home) as store:
        if file is None:
            path = daily_export(store, Settings.load().export_keep, again=True)
            output.json({"path": str(path)}) if as_json else output.line(str(path))
            return 0
        with progress("exporting", fact_count(store), quiet=as_json) as advance:
            if form == "markdown":
                return _show_pages(export_pages(store, file.absolute(), former=former, advance=advance), output)
            done = export_store(store, file.absolute(), vectors=vectors, journal=journal, advance=advance)
    if as_json:
        output.json({**asdict(done), "path": str(done.path)})
    else:
        output.line(f"{done.path}: {done.facts} facts, {done.links} links, {done.vectors} vectors")
    return 0


def _show_pages(done: Pages, output: Output) -> int:
    if output.as_json:
        output.json({**asdict(done), "path": str(done.path)})
    else:
        output.line(f"{done.path}: {done.facts} facts in {done.pages} pages")
        if done.left_out:
            output.line(f"{done.left_out} former or forgotten ones are left out; --former writes them, too")
    return 0


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--from", "kind", type=click.Choice(KINDS), help="What it is; without it told by what is in it.")
@click.option("--trust", is_flag=True, help="Vouch for what is in it: it is recalled as if you had said it.")
@dry_run_option
@home_option
@json_option
def import_(path: Path, kind: str | None, trust: bool, dry_run: bool, home: Path | None, as_json: bool) -> int:
    """Take in an export, a folder of Markdown pages, or the memories of another system.

    What was edited in a page, or is new there, waits for `perdure review`; what is missing there is not forgotten.

    Exit code 1: something in it conflicts with what is here, or could not be taken in.

    Example: perdure import ~/.openclaw/memory --dry-run
    """
    output = Output(as_json)
    store = Store(data_folder(home), absent="empty" if dry_run else "create")
    try:
        load = load_source(path, store.key, kind, trust=trust)
        with progress("importing", load.total, quiet=as_json) as advance:
            report = bring_in(store, load, trust=trust, dry_run=dry_run, advance=advance)
    finally:
        store.close()
    if as_json:
        output.json(asdict(report))
    else:
        _show(report, output)
    return 1 if report.conflicts or report.refused or report.missing or report.unreadable else 0


def _show(report: Imported, output: Output) -> None:
    output.title(f"{'Would import' if report.dry_run else 'Imported'} from {report.kind}")
    counts = {
        "facts": report.total,
        "added": report.added,
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
        "unreadable": report.unreadable,
    }
    output.table(("", ""), [(name, count) for name, count in counts.items() if count])
    for fact_id in report.conflicts[:_SHOWN]:
        output.line(f"in conflict: {fact_id} says something else here, and was left as it is")
    for fact_id, reason in list(report.refused.items())[:_SHOWN]:
        output.line(f"refused: {fact_id}: {reason}")
    if report.waiting and not report.dry_run:
        output.line("See what waits, and decide: perdure review")
    if not report.trusted and report.kind != "markdown":
        output.line("They come up only when they are searched for. To have them recalled unasked: --trust")
