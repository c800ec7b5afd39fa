"""Commands for the state of the store: status, counts, scopes and background jobs."""

from __future__ import annotations

from collections.abc import Iterable
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
from perdure.store.listing import Filter
from perdure.store.scope import EVERYONE, Scope
from perdure.text.pluralize import counted

MORE = "More: perdure stats (counts), perdure jobs (background), perdure doctor (setup), perdure verify (damage)"
NONE = "No memories yet. Store one: perdure store TEXT"
LABELS = {
    "home": "data folder", "truth": "database", "facts": "memories", "llm": "language model",
    "inbox": "turns to capture", "inbox_problem": "capture problem", "damaged": "damaged turns",
    "unembedded": "memories without a vector", "outbox": "memories to index", "parked": "set aside after failures",
    "review": "pending review", "left_out": "secrets left out", "exported": "last daily export",
    "timers": "jobs run by", "failing": "failing jobs", "parked_expiry": "expiry paused",
    "auto_recall": "automatic recall", "auto_capture": "automatic capture",
}  # fmt: skip
"""What `perdure status` calls a value, where that is not its name."""


@operation()
def status(folder: Path, output: Output) -> int:
    """Show the state of the store and its problems.

    Exit code 1: facts.db is missing, rolled back, damaged or from another store, or the database in `store_url`
    is unavailable.

    Example: perdure status
    """
    state = lost_status(folder) or _asked(folder)
    values = state.to_dict()
    output.json(values)
    told = [
        (LABELS.get(name, name.replace("_", " ")), value) for name, value in values.items() if value not in (None, ())
    ]
    output.table(("", ""), told)
    output.line(MORE)
    return OK if isinstance(state, Status) else FOUND_NOTHING


@operation(reads=True)
@click.option("--all", "everyone", is_flag=True, help="Count all scopes, including those of other users.")
def stats(memory: Memory, output: Output, everyone: bool, scope: str | None) -> None:
    """Count memories by scope and category.

    Example: perdure stats --scope project:heron
    """
    if everyone:
        if scope is not None:
            raise click.UsageError("--all and --scope cannot be combined")
        scopes = dict(memory.admin.scopes())
        output.both(
            {"total": sum(scopes.values()), "by_scope": scopes}, ("scope", "memories"), scopes.items(), none=NONE
        )
        return
    counts = memory.admin.stats(Filter(scope=Scope.parse(scope) if scope else None))
    categories = {**dict.fromkeys([*CATEGORIES, *Settings.load().categories], 0), **counts.by_category}
    output.both(counts, ("", "memories"), [("all", counts.total), *counts.by_scope.items(), *categories.items()])


@operation()
@click.argument("source", metavar="SCOPE")
@click.option("--to", "whose", help='New owner: "user:ID"; for a session also "agent:ID user:ID".')
@click.option("--all-users", is_flag=True, help="Assign to all users of the agent.")
@click.option("--session", "sessions", multiple=True, help="Only memories from this session. Repeatable.")
def assign(
    memory: Memory, output: Output, source: str, whose: str | None, all_users: bool, sessions: tuple[str, ...],
    dry_run: bool,
) -> int:  # fmt: skip
    """Assign memories kept without a user to one user or all users.

    Until then, named users cannot see them. Agent and session scopes can be assigned; "user:owner" is the default user.
    Exit code 1: nothing to assign.

    Example: perdure assign agent:main --to user:alice --dry-run
    """
    if (whose is None) != all_users:
        raise click.UsageError("specify the new owner with either --to user:ID or --all-users")
    done = memory.admin.assign(source, whose or f"user:{EVERYONE}", sessions=sessions, dry_run=dry_run)
    output.json(done, dry_run=dry_run)
    what = f"{counted(done.memories, 'memory')} and {counted(done.conversations, 'conversation')}"
    output.line(f"{'Would assign' if dry_run else 'Assigned'} {what} from {done.source} to {done.target}")
    if done.left:
        output.line(
            f"Not assigned: {counted(done.left, 'conversation')}; {done.target} already has conversations "
            "with the same ids"
        )
    if done.batch and Scope.parse(done.target).kind == "agent":
        options = naming(Scope.parse(done.target))
        output.line(f"Undo: perdure undo --batch {done.batch} {options}")
    return OK if done.memories or done.conversations else FOUND_NOTHING


@click.group(invoke_without_command=True)
@store_options
@click.pass_context
def jobs(context: click.Context, home: Path | None, agent: str | None, user: str | None, as_json: bool) -> None:
    """Show background jobs: last run, next run and result.

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
        if state else (name, "", "", "", "not run yet")
        for name, state in found.items()
    )  # fmt: skip
    output.both({"timers": timers, "jobs": found}, ("job", "last run", "next run", "failures", "result"), rows)
    output.line(
        {"none": "Nothing is running them now; they run while a connected host is open."}.get(
            timers, f"Run by {timers}."
        )
    )


@operation(jobs, "run", model=True)
def run_job(memory: Memory, output: Output, name: str) -> int:
    """Run a background job now. Exit code 1: the job failed.

    Example: perdure jobs run backup
    """
    with steps(name, quiet=output.as_json):
        result = memory.admin.run_job(name)
    output.say({"job": name, "result": result}, result)
    state = memory.admin.jobs()[name]
    return int(state is not None and state.failures > 0)


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
