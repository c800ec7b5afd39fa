"""Commands on the links between memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from perdure.api.memory import Memory
from perdure.cli.options import dry_run_option, moment, on_memory
from perdure.cli.output import OK, SHORT_ID, Output
from perdure.store.links import TYPES, Related

_TYPE = click.option("--type", "link_type", type=click.Choice(TYPES), default="RELATED_TO", show_default=True)


@click.command()
@click.argument("source")
@click.argument("target")
@_TYPE
@click.option("--strength", type=float, default=1.0, show_default=True, help="0 to 1.")
@on_memory()
def link(memory: Memory, output: Output, source: str, target: str, link_type: str, strength: float) -> int:
    """Link two memories.

    Example: perdure link 1f0c9a3e 77ab01cd --type CAUSED_BY
    """
    made = memory.link(source, target, link_type, strength)
    if output.as_json:
        output.json(asdict(made))
    else:
        output.line(f"{made.source[:SHORT_ID]} {made.type} {made.target[:SHORT_ID]} ({made.strength:g})")
    return OK


@click.command()
@click.argument("source")
@click.argument("target")
@_TYPE
@dry_run_option
@on_memory()
def unlink(memory: Memory, output: Output, source: str, target: str, link_type: str, dry_run: bool) -> int:
    """Remove a link between two memories; `perdure undo` brings it back.

    Example: perdure unlink 1f0c9a3e 77ab01cd --type CAUSED_BY
    """
    memory.unlink(source, target, link_type, dry_run=dry_run)
    if output.as_json:
        output.json({"source": source, "target": target, "type": link_type, "dry_run": dry_run})
    else:
        done = "would be gone" if dry_run else "is gone"
        output.line(f"{source[:SHORT_ID]} {link_type} {target[:SHORT_ID]} {done}.")
    return OK


@click.command()
@click.argument("fact_id", metavar="ID")
@click.option("--depth", default=2, show_default=True, help="So many links far, 1 to 10.")
@click.option("--as-of", help="What was true at this time.")
@on_memory(reads=True)
def graph(memory: Memory, output: Output, fact_id: str, depth: int, as_of: str | None) -> int:
    """Show the memories that links lead to from one, as a tree: to the right an arrow, back an arrow to the left.

    Example: perdure graph 1f0c9a3e --depth 3
    """
    root = memory.get(fact_id)
    reached = memory.related(root.id, depth, as_of=moment(as_of))
    if output.as_json:
        output.json({"fact": asdict(root), "related": [asdict(each) for each in reached]})
        return OK
    output.line(f"{root.id[:SHORT_ID]} {root.text}")
    for line in _branches(root.id, 1, reached, ""):
        output.line(line)
    return OK


def _branches(parent: str, depth: int, reached: Sequence[Related], indent: str) -> list[str]:
    """Return the lines under a memory: each of those reached stands under the one that its link comes from."""
    children = [each for each in reached if each.depth == depth and parent in {each.link.source, each.link.target}]
    lines = []
    for each in children:
        last = each is children[-1]
        arrow = f"{each.link.type} ->" if each.link.source == parent else f"<- {each.link.type}"
        lines.append(f"{indent}{'└─' if last else '├─'} {arrow} {each.fact.id[:SHORT_ID]} {each.fact.text}")
        lines += _branches(each.fact.id, depth + 1, reached, indent + ("   " if last else "│  "))
    return lines
