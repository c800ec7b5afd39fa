"""`perdure export`: all memories out."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from perdure.cli.options import existing_store, home_option, json_option
from perdure.cli.output import Output, progress
from perdure.engine.settings import Settings
from perdure.errors import InputError
from perdure.maintenance.exchange import export as export_store
from perdure.maintenance.exchange import fact_count
from perdure.maintenance.exports import daily_export
from perdure.maintenance.markdown_export import Pages, export_pages


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
            path = daily_export(store, Settings.load().keep.copies, again=True)
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
