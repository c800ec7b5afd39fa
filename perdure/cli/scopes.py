"""`perdure scope` and `perdure categories`: what there is, by scope and category."""

from __future__ import annotations

from dataclasses import asdict

import click

from perdure.cli.options import on_memory, scope_option
from perdure.cli.output import OK, Output
from perdure.plugin.memory import Memory
from perdure.plugin.settings import Settings
from perdure.store.fact import CATEGORIES
from perdure.store.listing import Filter
from perdure.store.scope import Scope


@click.group()
def scope() -> None:
    """Show to whom memories belong.

    Example: perdure scope list
    """


@scope.command(name="list")
@click.option("--all", "everyone", is_flag=True, help="Every scope of the data folder, whoever may read it.")
@on_memory()
def list_(memory: Memory, output: Output, everyone: bool) -> int:
    """Count the memories of each scope that you may read.

    Example: perdure scope list --all
    """
    counts = memory.admin.scopes() if everyone else memory.admin.stats().by_scope
    if output.as_json:
        output.json({"scopes": dict(counts)})
    else:
        output.table(("scope", "memories"), counts.items())
    return OK


@scope.command()
@click.argument("scope", metavar="SCOPE")
@on_memory()
def show(memory: Memory, output: Output, scope: str) -> int:
    """Count the memories of one scope by category: "global", "user:ID", "agent:ID", "project:ID"...

    Example: perdure scope show project:heron
    """
    wanted = Scope.parse(scope)
    counted = memory.admin.stats(Filter(scope=wanted))
    if output.as_json:
        output.json({"scope": str(wanted), **asdict(counted)})
    else:
        output.table((str(wanted), "memories"), [("all", counted.total), *counted.by_category.items()])
    return OK


@click.command()
@scope_option
@on_memory()
def categories(memory: Memory, output: Output, scope: str | None) -> int:
    """Count the memories of each category, your own categories included.

    Example: perdure categories
    """
    counted = memory.admin.stats(Filter(scope=Scope.parse(scope) if scope else None)).by_category
    counts = {**dict.fromkeys([*CATEGORIES, *Settings.load().categories], 0), **counted}
    if output.as_json:
        output.json({"categories": counts})
    else:
        output.table(("category", "memories"), counts.items())
    return OK
