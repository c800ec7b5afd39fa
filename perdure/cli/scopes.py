"""`perdure scope` and `perdure categories`: what there is, by scope and category."""

from __future__ import annotations

from dataclasses import asdict

import click

from perdure.api.memory import Memory
from perdure.cli.options import dry_run_option, naming, on_memory, scope_option
from perdure.cli.output import FOUND_NOTHING, OK, Output
from perdure.engine.settings import Settings
from perdure.store.fact import CATEGORIES
from perdure.store.listing import Filter
from perdure.store.scope import EVERYONE, Scope
from perdure.text.pluralize import counted


@click.group()
def scope() -> None:
    """Show to whom memories belong, and give them to others.

    Example: perdure scope list
    """


@scope.command(name="list")
@click.option("--all", "everyone", is_flag=True, help="Every scope of the data folder, whoever may read it.")
@on_memory(reads=True)
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
@on_memory(reads=True)
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


@scope.command()
@click.argument("source", metavar="SCOPE")
@click.option("--to", "whose", help='To whom: "user:ID"; of a session also "agent:ID user:ID".')
@click.option("--all-users", is_flag=True, help="To all users of the agent, instead of one.")
@click.option("--session", "sessions", multiple=True, help="Only what this conversation has left; may be repeated.")
@dry_run_option
@on_memory()
def assign(
    memory: Memory,
    output: Output,
    source: str,
    whose: str | None,
    all_users: bool,
    sessions: tuple[str, ...],
    dry_run: bool,
) -> int:
    """Give what an agent took in without a named user to one of its users, or to all of them.

    Named users see nothing of it before. Any scope of an agent or a session can be given on; "user:owner" is who
    names no user. Exit code 1: there is nothing to give.

    Example: perdure scope assign agent:main --to user:alice --dry-run
    """
    if (whose is None) != all_users:
        raise click.UsageError("say to whom: either --to user:ID or --all-users")
    done = memory.admin.assign(source, whose or f"user:{EVERYONE}", sessions=sessions, dry_run=dry_run)
    if output.as_json:
        output.json({**asdict(done), "dry_run": dry_run})
    else:
        what = f"{counted(done.memories, 'memory')} and {counted(done.conversations, 'conversation')}"
        output.line(f"From {done.source} {'would go' if dry_run else 'went'} to {done.target}: {what}")
        if done.left:
            output.line(f"{done.left} conversations stay: {done.target} has some of the same ids")
        if done.batch and Scope.parse(done.target).kind == "agent":
            options = naming(Scope.parse(done.target))
            output.line(f"Take the memories back with: perdure undo --batch {done.batch} {options}")
    return OK if done.memories or done.conversations else FOUND_NOTHING


@click.command()
@scope_option
@on_memory(reads=True)
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
