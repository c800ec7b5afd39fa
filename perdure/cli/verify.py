"""Commands that tell whether all is well: verify, anchors to compare with, and doctor."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from perdure.cli.operation import operation
from perdure.cli.output import Output, complain, notice, progress, steps
from perdure.engine.opening import open_store
from perdure.errors import PerdureError
from perdure.maintenance.checks import lost
from perdure.maintenance.verify import CHECKS, fix, unanchored
from perdure.maintenance.verify import anchor as anchor_of
from perdure.maintenance.verify import verify as look
from perdure.parts import part
from perdure.store.finding import Finding
from perdure.store.rollback_guard import Truth, judge

SOUND, FINDINGS, NOT_LOOKED = 0, 1, 2


@operation()
@click.option("--fix", "repair", is_flag=True, help="Repair what can be repaired.")
@click.option("--anchor", metavar="FILE", type=click.Path(path_type=Path), help="Also compare with kept anchors.")
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


@operation()
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
    output.table(("what", "where"), [(finding.what, finding.where) for finding in fixed], none="")
    rows = [(finding.what, finding.where, finding.fixable, finding.hint) for finding in left]
    output.table(("what", "where", "--fix", "what to do"), rows, none="")
    output.line(f"{len(left)} findings." if left else "Everything is as it was written.")
    return FINDINGS if left else SOUND


def _values(finding: Finding) -> dict[str, Any]:
    return asdict(finding) | {"fixable": finding.fixable}


@operation()
@click.option(
    "--foreign",
    type=click.Path(path_type=Path),
    help="Look through what could be imported from here instead: secrets, injections, stale, double and contradicting.",
)
def doctor(output: Output, foreign: Path | None, home: Path | None) -> int:
    """Find out what is wrong, and say what to do about each. Exit code: 0 all is well, 1 something is wrong.

    Example: perdure doctor --foreign ~/notes
    """
    if foreign is not None:
        with progress("looking", None, quiet=output.as_json) as advance:
            audit = part("importers.audit").audit_source(foreign, time.time(), advance=advance)
        return _show_foreign(audit, output)
    # All of the interface, which verify must do without: it is for stores of which something is damaged.
    from perdure.api.doctor import examine

    found = [*examine(home), *part("hosts.openclaw.install").checkups(), *part("hosts.connect.survey").checkups()]
    wrong = [each for each in found if each.wrong]
    rows = [("WRONG" if each.wrong else "ok", each.name, each.state) for each in found]
    told = {"healthy": not wrong, "checks": [each.to_dict() for each in found]}
    output.both(told, ("", "what", "how it is"), rows)
    if wrong:
        output.line("")
        output.title("What to do")
    for each in wrong:
        output.line(f"{each.name}: {each.fix}")
    return int(bool(wrong))


def _show_foreign(audit: Any, output: Output) -> int:
    output.json(audit.to_dict())
    rows = [(each.kind, each.where, each.text, each.evidence) for each in audit.findings]
    output.table(("what", "where", "text", "why"), rows, none="")
    counts = [f"{count} {kind}" for kind, count in audit.to_dict()["counts"].items() if count]
    counts += [f"{audit.unreadable} unreadable"] if audit.unreadable else []
    output.line(f"{audit.texts} texts of {audit.kind} looked at: {', '.join(counts) or 'nothing is wrong'}.")
    return 1 if audit.findings or audit.unreadable else 0
