"""Commands that check an installation: verify, anchor and doctor."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from perdure.cli.operation import operation
from perdure.cli.output import Output, complain, notice, progress, steps
from perdure.engine.store_opening import open_store
from perdure.errors import PerdureError
from perdure.maintenance.checks import lost
from perdure.maintenance.verify import CHECKS, fix, unanchored
from perdure.maintenance.verify import anchor as anchor_of
from perdure.maintenance.verify import verify as look
from perdure.parts import part
from perdure.store.finding import Finding
from perdure.store.rollback_guard import Truth, judge
from perdure.text.pluralize import counted

SOUND, FINDINGS, NOT_LOOKED = 0, 1, 2


@operation()
@click.option("--fix", "repair", is_flag=True, help="Repair what can be repaired.")
@click.option("--anchor", metavar="FILE", type=click.Path(path_type=Path), help="Also compare with these anchors.")
def verify(folder: Path, output: Output, repair: bool, anchor: Path | None, dry_run: bool) -> int:
    """Check every row, index, vector and file for damage.

    Exit code: 0 sound, 1 problems found, 2 could not check.

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
        # Never repair from a rolled-back store: the derived data knows more.
        if repair and not dry_run and not behind and any(finding.fixable for finding in found):
            with steps("repairing, and checking again", quiet=output.as_json):
                left = fix(store, found)
    return _show(output, folder, found, left)


@operation()
def anchor(folder: Path, output: Output) -> None:
    """Print an anchor line for a later `perdure verify`.

    Keep it outside the data folder: it lets you prove later that the store was not rolled back.

    Example: perdure anchor --json
    """
    with closing(open_store(folder)) as store:
        line = anchor_of(store)
    output.say({"anchor": line}, line)


def _show(output: Output, folder: Path, found: list[Finding], left: list[Finding]) -> int:
    fixed = [finding for finding in found if finding not in left]
    told = {"findings": [_values(each) for each in left], "fixed": [_values(each) for each in fixed]}
    output.json({"home": folder, "sound": not left, **told})
    if fixed:
        output.line(f"Repaired {counted(len(fixed), 'problem')}:")
    output.table(("what", "where"), [(finding.what, finding.where) for finding in fixed])
    rows = [(finding.what, finding.where, finding.fixable, finding.hint) for finding in left]
    output.table(("what", "where", "--fix", "remedy"), rows)
    output.line(f"{counted(len(left), 'problem')}." if left else "No damage found.")
    return FINDINGS if left else SOUND


def _values(finding: Finding) -> dict[str, Any]:
    return asdict(finding) | {"fixable": finding.fixable}


@operation()
@click.option(
    "--foreign",
    type=click.Path(path_type=Path),
    help="Instead, check the memories at this path for secrets, injections, duplicates, contradictions and "
    "stale entries.",
)
def doctor(output: Output, foreign: Path | None, home: Path | None) -> int:
    """Diagnose the setup and suggest fixes.

    Exit code: 0 healthy, 1 problems found.

    Example: perdure doctor --foreign ~/notes
    """
    if foreign is not None:
        with progress("checking", None, quiet=output.as_json) as advance:
            audit = part("importers.audit").audit_source(foreign, time.time(), advance=advance)
        return _show_foreign(audit, output)
    # The whole interface, which verify must do without: it is for damaged stores.
    from perdure.api.doctor import examine

    found = [*examine(home), *part("hosts.openclaw.install").checkups(), *part("hosts.connect.survey").checkups()]
    wrong = [each for each in found if each.wrong]
    rows = [("PROBLEM" if each.wrong else "ok", each.name, each.state) for each in found]
    told = {"healthy": not wrong, "checks": [each.to_dict() for each in found]}
    output.both(told, ("", "check", "state"), rows)
    if wrong:
        output.line("")
        output.title("To fix")
    for each in wrong:
        output.line(f"{each.name}: {each.fix}")
    return int(bool(wrong))


def _show_foreign(audit: Any, output: Output) -> int:
    output.json(audit.to_dict())
    rows = [(each.kind, each.where, each.text, each.evidence) for each in audit.findings]
    output.table(("what", "where", "text", "why"), rows)
    counts = [
        counted(count, {"stale": "stale entry"}.get(kind, kind))
        for kind, count in audit.to_dict()["counts"].items()
        if count
    ]
    counts += [f"{audit.unreadable} unreadable"] if audit.unreadable else []
    output.line(f"Checked {counted(audit.texts, 'text')} of {audit.kind}: {', '.join(counts) or 'no problems'}.")
    return 1 if audit.findings or audit.unreadable else 0
