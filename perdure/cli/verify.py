"""`perdure verify`: whether everything is as it was written."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from perdure.cli.options import dry_run_option, home_option, json_option
from perdure.cli.output import Output, complain, notice, progress, steps
from perdure.engine.opening import open_store
from perdure.engine.paths import data_folder
from perdure.errors import PerdureError
from perdure.maintenance.anchor import unanchored
from perdure.maintenance.checks import lost
from perdure.maintenance.verify import CHECKS, fix
from perdure.maintenance.verify import verify as look
from perdure.store.finding import Finding
from perdure.store.rollback_guard import Truth, judge

SOUND, FINDINGS, NOT_LOOKED = 0, 1, 2


@click.command()
@click.option("--fix", "repair", is_flag=True, help="Repair what can be repaired.")
@click.option("--anchor", metavar="FILE", type=click.Path(path_type=Path), help="Also compare with kept anchors.")
@dry_run_option
@home_option
@json_option
def verify(home: Path | None, repair: bool, anchor: Path | None, dry_run: bool, as_json: bool) -> int:
    """Check every fact, word, vector and file. Exit code: 0 sound, 1 findings are left, 2 could not look.

    Example: perdure verify --fix
    """
    folder = data_folder(home)
    try:
        verdict = judge(folder)
        if verdict.lost and verdict.truth is not Truth.DAMAGED:
            found = list(lost(verdict))
            _show(Output(as_json), as_json, folder, found, found)
            return FINDINGS
        store = open_store(folder, absent="refuse")
    except PerdureError as error:
        return _not_looked(error)
    try:
        notice([store.refusal] if store.refusal else [])
        with progress("checking", len(CHECKS), quiet=as_json) as advance:
            found = look(store, lambda name: advance())
        behind = list(unanchored(store, anchor.read_text("utf-8"))) if anchor is not None else []
        left = found = found + behind
        # Of an older truth nothing is repaired: what is derived knows more than it.
        if repair and not dry_run and not behind and any(finding.fixable for finding in found):
            with steps("repairing, and checking again", quiet=as_json):
                left = fix(store, found)
    finally:
        store.close()
    _show(Output(as_json), as_json, folder, found, left)
    return FINDINGS if left else SOUND


def _show(output: Output, as_json: bool, folder: Path, found: list[Finding], left: list[Finding]) -> None:
    fixed = [finding for finding in found if finding not in left]
    if as_json:
        output.json({
            "home": str(folder),
            "sound": not left,
            "findings": [_as_json(finding) for finding in left],
            "fixed": [_as_json(finding) for finding in fixed],
        })  # fmt: skip
        return
    if fixed:
        output.line(f"{len(fixed)} findings were repaired.")
        output.table(("what", "where"), [(finding.what, finding.where) for finding in fixed])
    if left:
        rows = [(finding.what, finding.where, "yes" if finding.fixable else "no", finding.hint) for finding in left]
        output.table(("what", "where", "--fix", "what to do"), rows)
    output.line(f"{len(left)} findings." if left else "Everything is as it was written.")


def _as_json(finding: Finding) -> dict[str, object]:
    return asdict(finding) | {"fixable": finding.fixable}


def _not_looked(error: PerdureError) -> int:
    complain(type(error).__name__, str(error))
    return NOT_LOOKED
