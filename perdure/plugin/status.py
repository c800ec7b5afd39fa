"""How a store is: what `perdure status` prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from perdure.plugin.engine import Engine
from perdure.plugin.llm import llm_state
from perdure.store.database import run
from perdure.store.expiry import parked_expiry
from perdure.store.journal import newest
from perdure.store.left_out import counts
from perdure.store.scope import Audience
from perdure.store.search import View


@dataclass(frozen=True, slots=True)
class Status:
    """The state of an open store.

    Attributes:
        home: the data folder.
        facts: facts that the caller may read.
        model: "ready: ...", "loading", or why recall goes by words alone.
        llm: the language model and how many of today's tokens it has used, or "off: ...".
        changes: number of the last change.
        vector_index: which index answers.
        index_problem: why the derived index is behind, if it is in trouble.
        inbox: acknowledged turns that are still to be captured, of this process.
        outbox: facts the derived index has not got yet.
        parked: entries that were put aside because they failed again and again.
        review: facts that the caller may read and that wait for review.
        left_out: secrets that were left out of what was captured, "2 password"; `perdure vault store` keeps them.
        timers: which process looks after the store: "this process", "another process" or "none".
        failing: background jobs whose last run failed, and how.
        parked_expiry: why memories that are over do not expire: `perdure prune --yes` lets them; None: all is well.
        auto_recall, auto_capture: the two switches.
        extensions: installed extensions, name and version.
        problems: what was skipped at the start, and why.
    """

    home: str
    facts: int
    changes: int
    model: str
    llm: str
    vector_index: str
    index_problem: str | None
    inbox: int
    outbox: int
    parked: int
    review: int
    left_out: tuple[str, ...]
    timers: str
    failing: tuple[str, ...]
    parked_expiry: str | None
    auto_recall: bool
    auto_capture: bool
    extensions: tuple[str, ...]
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the values as JSON can hold them."""
        return asdict(self)


def status_of(engine: Engine, audience: Audience) -> Status:
    """Return the state of an open store, as a caller may know it."""
    condition, values = View(audience, engine.clock.now()).sql()
    with engine.store.database.read() as connection:
        facts = run(connection, f"SELECT count(*) FROM facts WHERE {condition}", values)[0][0]
        waiting = f"SELECT count(*) FROM facts WHERE review_state = 'pending' AND {condition}"
        review = run(connection, waiting, values)[0][0]
        changes = newest(connection)
        parked = run(connection, "SELECT count(*) FROM inbox_parked")[0][0]
    outbox = engine.store.outbox_state()
    extensions = engine.extensions
    return Status(
        home=str(engine.store.folder),
        facts=facts,
        changes=changes,
        model=engine.model.state,
        llm=llm_state(engine.settings, engine.store),
        vector_index=engine.settings.vector_index,
        index_problem=outbox.problem,
        inbox=engine.store.inbox.waiting,
        outbox=outbox.waiting,
        parked=parked + outbox.parked,
        review=review,
        left_out=counts(engine.store),
        timers=engine.timers.leader,
        failing=tuple(f"{name}: {state.result}" for name, state in engine.timers.states().items() if state.failures),
        parked_expiry=_parked_expiry(engine),
        auto_recall=engine.settings.auto_recall,
        auto_capture=engine.settings.auto_capture,
        extensions=tuple(f"{name} {version}" for name, version in extensions.distributions),
        problems=tuple(f"{problem.name} ({problem.stage}): {problem.error}" for problem in extensions.problems),
    )


def _parked_expiry(engine: Engine) -> str | None:
    parked = parked_expiry(engine.store)
    if parked is None:
        return None
    return (
        f"{parked.facts} of {parked.total} memories would expire at once: see that the clock is right, then prune --yes"
    )
