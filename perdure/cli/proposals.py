"""`perdure proposals`: lines for MEMORY.md that wait for a word."""

from __future__ import annotations

from collections.abc import Sequence

import click

from perdure.api.memory import Memory
from perdure.cli.options import dry_run_option, on_memory
from perdure.cli.output import FOUND_NOTHING, OK, SHORT_ID, Output
from perdure.consolidation.proposals import Proposal


@click.group()
def proposals() -> None:
    """See, accept or refuse what MEMORY.md could say of what you have said again and again.

    Example: perdure proposals list
    """


@proposals.command(name="list")
@click.option("--all", "everything", is_flag=True, help="Also what was answered, or ran out of time.")
@dry_run_option
@on_memory(reads=True)
def list_(memory: Memory, output: Output, everything: bool, dry_run: bool) -> int:
    """Look for new proposals, and show all that wait. Nothing is written into a file.

    Example: perdure proposals list
    """
    new = memory.upkeep.proposals.find(dry_run=dry_run)
    waiting = memory.upkeep.proposals.list(everything=everything)
    return _show(output, [*waiting, *(new if dry_run else ())])


@proposals.command()
@click.argument("proposal_id", metavar="ID")
@dry_run_option
@on_memory()
def accept(memory: Memory, output: Output, proposal_id: str, dry_run: bool) -> int:
    """Write a proposal into MEMORY.md, in perdure's own section of it; eight digits of its id are enough.

    Example: perdure proposals accept 1f0c9a3e
    """
    if dry_run:
        found = [each for each in memory.upkeep.proposals.list() if each.id.startswith(proposal_id)]
        _show(output, found)
        return OK if found else FOUND_NOTHING
    return _show(output, [memory.upkeep.proposals.accept(proposal_id)])


@proposals.command()
@click.argument("proposal_id", metavar="ID")
@on_memory()
def refuse(memory: Memory, output: Output, proposal_id: str) -> int:
    """Refuse a proposal: it is not made again.

    Example: perdure proposals refuse 1f0c9a3e
    """
    return _show(output, [memory.upkeep.proposals.refuse(proposal_id)])


def _show(output: Output, found: Sequence[Proposal]) -> int:
    if output.as_json:
        output.json({"proposals": [each.to_dict() for each in found]})
        return 0
    for each in found:
        output.line(f"{each.id[:SHORT_ID]}  {each.state:8}  {each.text}")
        for text in each.evidence:
            output.line(f"                    because: {text}")
    output.line(f"{len(found)} proposals")
    return 0
