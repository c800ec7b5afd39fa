"""Commands that count: how the store is, what it holds of whom, and how its jobs went; and memories given to others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from perdure.api.memory import Memory
from perdure.api.status import LostStatus, Status, lost_status
from perdure.cli.operation import operation
from perdure.cli.options import naming, store_options
from perdure.cli.output import FOUND_NOTHING, OK, Output, minute, steps
from perdure.engine.settings import Settings
from perdure.errors import StoreBusyError, StorePurgedError, StoreUnavailableError
from perdure.store.fact import CATEGORIES
from perdure.store.inbox import waiting_in
from perdure.store.listing import Filter, Stats
from perdure.store.scope import EVERYONE, Scope
from perdure.text.pluralize import counted


@operation()
def status(folder: Path, output: Output) -> int:
    """Show how the store is, and what is wrong with it.

    Exit code 1: facts.db is lost, older, foreign or damaged, or the database of `store_url` cannot be used.

    Example: perdure status
    """
    state = lost_status(folder) or _asked(folder)
    values = state.to_dict()
    output.json(values)
    told = [(name.replace("_", " "), value) for name, value in values.items() if value not in (None, ())]
    output.table(("", ""), told)
    return OK if isinstance(state, Status) else FOUND_NOTHING


@operation(reads=True)
def stats(memory: Memory, output: Output, scope: str | None) -> None:
    """Count memories by scope and category.

    Example: perdure stats
    """
    counts = _stats(memory, scope)
    rows = [("all", counts.total), *counts.by_scope.items(), *counts.by_category.items()]
    output.both(counts, ("", "memories"), rows)


@operation(reads=True)
def categories(memory: Memory, output: Output, scope: str | None) -> None:
    """Count the memories of each category, your own categories included.

    Example: perdure categories
    """
    known = dict.fromkeys([*CATEGORIES, *Settings.load().categories], 0)
    counts = {**known, **_stats(memory, scope).by_category}
    output.both({"categories": counts}, ("category", "memories"), counts.items())


@click.group()
def scope() -> None:
    """Show to whom memories belong, and give them to others.

    Example: perdure scope list
    """


@operation(scope, "list", reads=True)
@click.option("--all", "everyone", is_flag=True, help="Every scope of the data folder, whoever may read it.")
def list_scopes(memory: Memory, output: Output, everyone: bool) -> None:
    """Count the memories of each scope that you may read.

    Example: perdure scope list --all
    """
    counts = dict(memory.admin.scopes() if everyone else memory.admin.stats().by_scope)
    output.both({"scopes": counts}, ("scope", "memories"), counts.items())


@operation(scope, "show", reads=True)
@click.argument("scope", metavar="SCOPE")
def show_scope(memory: Memory, output: Output, scope: str) -> None:
    """Count the memories of one scope by category: "global", "user:ID", "agent:ID", "project:ID"...

    Example: perdure scope show project:heron
    """
    wanted, counts = str(Scope.parse(scope)), _stats(memory, scope)
    rows = [("all", counts.total), *counts.by_category.items()]
    output.both({"scope": wanted, **asdict(counts)}, (wanted, "memories"), rows)


@operation(scope)
@click.argument("source", metavar="SCOPE")
@click.option("--to", "whose", help='To whom: "user:ID"; of a session also "agent:ID user:ID".')
@click.option("--all-users", is_flag=True, help="To all users of the agent, instead of one.")
@click.option("--session", "sessions", multiple=True, help="Only what this conversation has left; may be repeated.")
def assign(
    memory: Memory, output: Output, source: str, whose: str | None, all_users: bool, sessions: tuple[str, ...],
    dry_run: bool,
) -> int:  # fmt: skip
    """Give what an agent took in without a named user to one of its users, or to all of them.

    Named users see nothing of it before. Any scope of an agent or a session can be given on; "user:owner" is who
    names no user. Exit code 1: there is nothing to give.

    Example: perdure scope assign agent:main --to user:alice --dry-run
    """
    if (whose is None) != all_users:
        raise click.UsageError("say to whom: either --to user:ID or --all-users")
    done = memory.admin.assign(source, whose or f"user:{EVERYONE}", sessions=sessions, dry_run=dry_run)
    output.json(done, dry_run=dry_run)
    what = f"{counted(done.memories, 'memory')} and {counted(done.conversations, 'conversation')}"
    output.line(f"From {done.source} {'would go' if dry_run else 'went'} to {done.target}: {what}")
    if done.left:
        output.line(f"{done.left} conversations stay: {done.target} has some of the same ids")
    if done.batch and Scope.parse(done.target).kind == "agent":
        options = naming(Scope.parse(done.target))
        output.line(f"Take the memories back with: perdure undo --batch {done.batch} {options}")
    return OK if done.memories or done.conversations else FOUND_NOTHING


@click.group(invoke_without_command=True)
@store_options
@click.pass_context
def jobs(context: click.Context, home: Path | None, agent: str | None, user: str | None, as_json: bool) -> None:
    """Show the background jobs: how they went, and when they are due.

    Example: perdure jobs
    """
    if context.invoked_subcommand is not None:
        return
    with Memory.open(home, agent=agent, user=user, embedder="none", timers=False, guest=True) as memory:
        found, timers = memory.admin.jobs(), memory.status().timers
    output = Output(as_json)
    rows: Iterable[tuple[Any, ...]] = (
        (name, *("" if at is None else minute(at) for at in (state.last_run, state.next_run)), state.failures or "",
         state.result or state.state)
        if state else (name, "", "", "", "not yet due")
        for name, state in found.items()
    )  # fmt: skip
    output.both({"timers": timers, "jobs": found}, ("job", "last run", "next run", "failures", "result"), rows)
    output.line({"none": "No host looks after this store now."}.get(timers, f"Looked after by {timers}."))


@operation(jobs, "run", model=True)
def run_job(memory: Memory, output: Output, name: str) -> int:
    """Run a background job now. Exit code 1: it failed.

    Example: perdure jobs run backup
    """
    with steps(name, quiet=output.as_json):
        result = memory.admin.run_job(name)
    output.json({"job": name, "result": result})
    output.line(result)
    state = memory.admin.jobs()[name]
    return int(state is not None and state.failures > 0)


def _stats(memory: Memory, scope: str | None) -> Stats:
    return memory.admin.stats(Filter(scope=Scope.parse(scope) if scope else None))


def _asked(folder: Path) -> Status | LostStatus:
    try:
        with Memory.open(folder, timers=False, guest=True, whole=True) as memory:
            memory.ready()
            return memory.status()
    except StorePurgedError:
        raise
    except (StoreBusyError, StoreUnavailableError) as error:
        if Settings.load().store_url is None:
            raise
        return LostStatus(str(folder), "unavailable", str(error), waiting_in(folder / "inbox"))
