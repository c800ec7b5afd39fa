"""`perdure search`: everything that the caller may read, found by words and meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from perdure.api.fact_search import Hit
from perdure.api.memory import Memory
from perdure.cli.facts import day
from perdure.cli.options import limit_option, moment, on_memory, scope_option
from perdure.cli.output import FOUND_NOTHING, OK, SHORT_ID, Output
from perdure.store.listing import Filter
from perdure.store.scope import Scope


@click.command()
@click.argument("query")
@click.option("--category", help="Of this category.")
@click.option("--entity", help="About this entity.")
@scope_option
@click.option("--tag", help="With this tag.")
@click.option("--as-of", help="What was true at this time.")
@click.option("--superseded", is_flag=True, help="Also former versions.")
@limit_option(10)
@on_memory(model=True, reads=True)
def search(
    memory: Memory,
    output: Output,
    query: str,
    category: str | None,
    entity: str | None,
    scope: str | None,
    tag: str | None,
    as_of: str | None,
    superseded: bool,
    limit: int,
) -> int:
    """Search memories by words and meaning, also those that never come up unasked; they are marked.

    Exit code 1: nothing fits.

    Example: perdure search "staging database" --category entity --limit 5
    """
    chosen = Filter(category, entity, Scope.parse(scope) if scope else None)
    hits = memory.admin.search(query, chosen, limit=limit, tag=tag, as_of=moment(as_of), include_superseded=superseded)
    if output.as_json:
        output.json({"results": [asdict(hit) for hit in hits]})
    elif hits:
        output.table(("id", "score", "by", "day", "category", "marks", "text"), _rows(hits))
    else:
        output.line("Nothing fits.")
    return OK if hits else FOUND_NOTHING


def _rows(hits: Sequence[Hit]) -> list[tuple[str, ...]]:
    return [
        (
            hit.fact.id[:SHORT_ID],
            f"{hit.score:.2f}",
            hit.leg,
            day(hit.fact.effective_date),
            hit.fact.category,
            ", ".join(hit.marks),
            hit.fact.text,
        )
        for hit in hits
    ]
