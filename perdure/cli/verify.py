"""Commands that tell whether everything is as it was written: verify, and anchors to compare with."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from perdure.cli.options import dry_run_option, on_folder
from perdure.cli.output import Output, complain, notice, progress, steps
from perdure.engine.opening import open_store
from perdure.errors import PerdureError
from perdure.maintenance.checks import lost
from perdure.maintenance.verify import CHECKS, fix, unanchored
from perdure.maintenance.verify import anchor as anchor_of
from perdure.maintenance.verify import verify as look
from perdure.store.finding import Finding
from perdure.store.rollback_guard import Truth, judge

SOUND, FINDINGS, NOT_LOOKED = 0, 1, 2


@click.command()
@click.option("--fix", "repair", is_flag=True, help="Repair what can be repaired.")
@click.option("--anchor", metavar="FILE", type=click.Path(path_type=Path), help="Also compare with kept anchors.")
@dry_run_option
@on_folder
def verify(folder: Path, output: Output, repair: bool, anchor: Path | None, dry_run: bool) -> int:
    """Check every fact, word, vector and file. Exit code: 0 sound, 1 findings are left, 2 could not look.

    Example: perdure verify --fix
    """
    try:
        verdict = judge(folder)
        if verdict.lost and verdict.truth is not Truth.DAMAGED:
            found = list(lost(verdict))
            return _show(output, folder, found, found)
        store = open_store(folder, absent="refuse")
    except PerdureError as error:
        complain(type(error).__name__, str(error))
        return NOT_LOOKED
    with closing(store):
        notice([store.refusal] if store.refusal else [])
        with progress("checking", len(CHECKS), quiet=output.as_json) as advance:
            found = look(store, lambda name: advance())
        behind = list(unanchored(store, anchor.read_text("utf-8"))) if anchor is not None else []
        left = found = found + behind
        # Of an older truth nothing is repaired: what is derived knows more than it.
        if repair and not dry_run and not behind and any(finding.fixable for finding in found):
            with steps("repairing, and checking again", quiet=output.as_json):
                left = fix(store, found)
    return _show(output, folder, found, left)


@click.command()
@on_folder
def anchor(folder: Path, output: Output) -> None:
    """Print where the store is, as a line to keep elsewhere; `perdure verify` can compare it with the store later.

    Example: perdure anchor --json
    """
    with closing(open_store(folder)) as store:
        line = anchor_of(store)
    output.json({"anchor": line})
    output.line(line)


def _show(output: Output, folder: Path, found: list[Finding], left: list[Finding]) -> int:
    fixed = [finding for finding in found if finding not in left]
    told = {"findings": [_values(each) for each in left], "fixed": [_values(each) for each in fixed]}
    output.json({"home": folder, "sound": not left, **told})
    if fixed:
        output.line(f"{len(fixed)} findings were repaired.")
        output.table(("what", "where"), [(finding.what, finding.where) for finding in fixed])
    if left:
        rows = [(finding.what, finding.where, finding.fixable, finding.hint) for finding in left]
        output.table(("what", "where", "--fix", "what to do"), rows)
    output.line(f"{len(left)} findings." if left else "Everything is as it was written.")
    return FINDINGS if left else SOUND


def _values(finding: Finding) -> dict[str, Any]:
    return asdict(finding) | {"fixable": finding.fixable}
