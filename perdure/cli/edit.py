"""`perdure edit`: a memory in the editor of whoever it belongs to."""

from __future__ import annotations

from contextlib import suppress

import click

from perdure.api.memory import Memory
from perdure.cli.facts import day, print_facts, print_stored
from perdure.cli.options import on_memory
from perdure.cli.output import FOUND_NOTHING, OK, SHORT_ID, Output, choose, edited
from perdure.errors import AmbiguousIdError, InputError, NotFoundError
from perdure.store.fact import Fact
from perdure.store.listing import State

CHOICES = 10
"""Memories to choose from."""


@click.command()
@click.argument("which", metavar="[ID|QUERY]", required=False)
@on_memory(model=True)
def edit(memory: Memory, output: Output, which: str | None) -> int:
    """Change the words of a memory in your editor; the former version stays, as with `perdure update`.

    The editor is that of VISUAL or EDITOR, or the usual one of the system. Of several memories that a query finds you
    are asked which you mean; without ID or QUERY, which of the newest. Nothing is changed if the editor fails, or if
    the text comes back as it was or empty.

    Exit code 1: nothing fits; or several do and nobody is there to be asked, so that they are listed.

    Example: perdure edit "staging database"
    """
    found = _found(memory, which)
    fact = found[0] if len(found) == 1 else _chosen(output, found)
    if fact is None:
        print_facts(output, found)
        return FOUND_NOTHING
    text = edited(fact.text)
    if text is None:
        print_facts(output, [fact], outcome="unchanged")
        output.line("Nothing was changed.")
    else:
        print_stored(output, memory.update(fact.id, text=text))
    return OK


def _found(memory: Memory, which: str | None) -> list[Fact]:
    if which is None:
        return [each.fact for each in memory.admin.inventory(states=[State.PRESENT], limit=CHOICES).facts]
    with suppress(InputError, NotFoundError, AmbiguousIdError):
        return [memory.get(which)]
    return [hit.fact for hit in memory.admin.search(which, limit=CHOICES)]


def _chosen(output: Output, found: list[Fact]) -> Fact | None:
    if output.as_json or not found:
        return None
    rows = [
        (number, fact.id[:SHORT_ID], day(fact.effective_date), fact.text) for number, fact in enumerate(found, 1)
    ]  # fmt: skip
    output.table(("", "id", "day", "text"), rows)
    number = choose("Which one", len(found))
    return None if number is None else found[number]
