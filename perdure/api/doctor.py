"""Checks of an installation, from the settings to the index, each with a remedy.

Unlike `verify`, which reads every row for damage, this looks at what is around them, and takes seconds.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perdure import telemetry
from perdure.api.memory import Memory
from perdure.engine.engine import Engine
from perdure.engine.paths import HOME_VARIABLE, data_folder, recorded_home
from perdure.engine.settings import Settings
from perdure.errors import PerdureError
from perdure.index.feeding import REMEDY
from perdure.maintenance import checks
from perdure.maintenance.exports import newest_export
from perdure.parts import part
from perdure.store import listing, notices
from perdure.store.access import lockless
from perdure.store.finding import Finding
from perdure.store.rollback_guard import Truth, judge
from perdure.store.store import Store
from perdure.text.pluralize import counted

MODEL_SECONDS = 60.0
LAG_SECONDS = 86_400.0
"""A vector waits longer than this for the derived index only if no host has been running, or its worker fails."""
REPORTING_SECONDS = 86_400.0
"""Seconds for which telemetry of a program is reported. Nothing shows when it was fixed."""
WORKS_WITHOUT = ("ready", "disabled by setting", "switching")
"""How the state of a model begins with which nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Checkup:
    """The result of one check.

    Attributes:
        name: what was checked.
        state: what was found.
        fix: what to do about it; empty: nothing is wrong.
    """

    name: str
    state: str
    fix: str = ""

    @property
    def wrong(self) -> bool:
        """Whether there is something to do."""
        return bool(self.fix)

    def to_dict(self) -> dict[str, Any]:
        """Return the values as JSON can hold them."""
        return {**asdict(self), "ok": not self.wrong}


def examine(home: str | Path | None = None, environ: Mapping[str, str] = os.environ) -> list[Checkup]:
    """Run all checks; nothing is repaired, and no store is created.

    Args:
        home: the data folder; None: the default one.
        environ: the environment that determines the default folder.
    """
    found = [*_settings(), *_host(home, environ)]
    try:
        folder = data_folder(home, environ)
    except PerdureError:
        return found  # said by the look at the host's record
    without = lockless(next(each for each in (folder, *folder.parents) if each.is_dir()))
    if without:
        return [*found, Checkup("store", str(without), "choose another data folder with PERDURE_HOME or --home")]
    try:
        verdict = judge(folder)
        shared = Settings.load().store_url is not None
        if not shared and verdict.truth is Truth.NEW:
            return [*found, Checkup("store", f"none in {folder} yet; the first memory creates it")]
        if not shared and verdict.lost:
            return [*found, Checkup("store", verdict.said, "perdure recover; until then turns are kept, not captured")]
        with Memory.open(folder, guest=True) as memory:
            # One by one: what was found before a look breaks off is kept.
            for each in _opened(memory):
                found.append(each)
    except PerdureError as error:
        found.append(Checkup("store", str(error), "follow the instructions above, then run perdure verify"))
    return found


def _opened(memory: Memory) -> Iterator[Checkup]:
    engine = memory._engine
    store = engine.store
    yield _store(memory)
    yield _model(memory)
    if store.server is not None:
        yield _server(store, store.server.tenant)
    yield from _findings("sqlite", f"version {checks.sqlite_release()} has no known bugs", checks.sqlite_version(store))
    yield from _findings("permissions", "readable by the owner only", checks.permissions(store))
    yield from _findings("queues", "nothing is set aside", checks.queues(store))
    yield _telemetry(engine)
    yield _index(engine)
    yield from _findings("drift", "the derived index matches the memories", part("lance.drift").drift(store))
    yield _watcher(memory)
    yield from _users(engine)
    yield from _jobs(memory)
    yield _export(engine)
    yield from _extensions(memory)


def _settings() -> Iterator[Checkup]:
    try:
        settings = Settings.load({})
    except PerdureError as error:
        yield Checkup("settings", str(error), "correct or remove it; docs/settings.md lists all settings")
        return
    off = [name for name in ("auto_recall", "auto_capture") if not getattr(settings, name)]
    yield Checkup("settings", f"off: {', '.join(off)}" if off else "recall and capture are on")


def _host(home: str | Path | None, environ: Mapping[str, str]) -> Iterator[Checkup]:
    try:
        recorded = recorded_home()
    except PerdureError as error:
        yield Checkup("host", str(error), "delete that file, and connect the host again")
        return
    if recorded is None:
        yield Checkup("host", "no host has chosen the data folder")
    elif not recorded.is_dir():
        yield Checkup(
            "host", f"the connected host's data folder {recorded} is missing", "connect the host again: perdure connect"
        )
    elif home is None and data_folder(None, environ).resolve() != recorded.resolve():
        fix = f"unset {HOME_VARIABLE}, or set it for the host too"
        yield Checkup(
            "host",
            f"the connected host's memories are in {recorded}, but {HOME_VARIABLE} points to another folder",
            fix,
        )
    else:
        yield Checkup(
            "host", f"the connected host's memories are in {recorded}; check its config with: perdure openclaw status"
        )


def _store(memory: Memory) -> Checkup:
    state, refusal = f"{counted(memory.status().facts, 'memory')} in {memory.status().home}", memory.status().read_only
    if refusal is None:
        return Checkup("store", state)
    return Checkup("store", f"{state}; {refusal}", "make the folder writable, or free space; then restart hosts")


def _server(store: Store, tenant: str) -> Checkup:
    waiting = store.inbox_only()
    state = f"{store.database.about()}, tenant {tenant}"
    return Checkup("server", f"{state}; {counted(waiting, 'turn')} only on this machine" if waiting else state)


def _model(memory: Memory) -> Checkup:
    memory.ready(MODEL_SECONDS)
    state = memory.status().model
    fine = state.startswith(WORKS_WITHOUT)
    return Checkup(
        "model", state, "" if fine else "see perdure model status; until this is fixed, search is by keyword only"
    )


def _telemetry(engine: Engine) -> Checkup:
    seen = notices.last_reporting(engine.store)
    if seen is not None and engine.clock.now() - seen < REPORTING_SECONDS:
        at = dt.datetime.fromtimestamp(seen, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
        fix = f"set {telemetry.VARIABLE}=1 where that program is started; this notice disappears after a day"
        return Checkup(
            "telemetry", f"a program imported onnxruntime before perdure, so it sends telemetry (last seen {at})", fix
        )
    if telemetry.wanted():
        value = os.environ.get(telemetry.VARIABLE, "")
        return Checkup("telemetry", f"ONNX Runtime sends telemetry, as {telemetry.VARIABLE}={value} requests")
    return Checkup("telemetry", "no library sends telemetry")


def _index(engine: Engine) -> Checkup:
    if lacking := engine.feed.lacking():
        return Checkup("index", lacking, REMEDY)
    state = engine.store.outbox_state()
    said = f"{counted(state.waiting, 'memory')} waiting to be indexed"
    if state.problem is not None:
        return Checkup("index", f"{said}: {state.problem}", "free disk space, then run perdure verify --fix")
    if state.oldest is None or engine.store.space() is None:
        return Checkup("index", said)
    behind = engine.clock.now() - state.oldest
    fix = "keep a host that uses this store running; if that does not help, run perdure verify --fix"
    return Checkup("index", f"{said}, the oldest for {behind / 3600:.0f} h", fix if behind > LAG_SECONDS else "")


def _watcher(memory: Memory) -> Checkup:
    memory.settle()
    status = memory.files.status()
    if not status.roots:
        return Checkup("files", "no files to watch")
    state = f"{counted(status.files, 'file')}, watched by {status.watcher}"
    if status.watcher == "polling" and status.watcher_reason:
        return Checkup("files", f"{state}: {status.watcher_reason}", "fix that, or set watch = false to silence this")
    return Checkup("files", state)


def _users(engine: Engine) -> Iterator[Checkup]:
    unseen = engine.store.database.query(listing.unnamed_counts, engine.clock.now())
    if unseen:
        # Nothing is wrong: the owner of the machine may use an agent that has users besides.
        left = ", ".join(f"{counted(count, 'memory')} in {scope}" for scope, count in unseen.items())
        yield Checkup(
            "users", f"named users cannot see {left}; perdure assign gives these memories to one user or to all"
        )


def _jobs(memory: Memory) -> Iterator[Checkup]:
    # The canary, which takes the whole way of a memory, is one of them.
    status = memory.status()
    for failing in status.failing:
        yield Checkup("job", failing, "perdure jobs run " + failing.partition(":")[0])
    if not status.failing:
        yield Checkup("jobs", f"no job has failed; run by {status.timers}")


def _export(engine: Engine) -> Checkup:
    off = "" if engine.settings.jobs.export else "; daily exports are off (jobs.export = 0)"
    last = newest_export(engine.store)
    if last is None:
        return Checkup("export", f"none yet{off or '; a connected host will write one daily'}")
    day = dt.datetime.fromtimestamp(last.at, dt.UTC).date()
    state = f"{last.path.name}: {counted(last.facts, 'memory')}, as of {day}{off}"
    if last.intact:
        return Checkup("export", state)
    return Checkup("export", f"{last.path.name} has changed since it was written", "perdure export --daily")


def _extensions(memory: Memory) -> Iterator[Checkup]:
    status = memory.status()
    for problem in status.problems:
        yield Checkup("extension", problem, "update or uninstall it, or name it in disabled_extensions")
    if not status.problems:
        yield Checkup("extensions", ", ".join(status.extensions) or "none")


def _findings(name: str, fine: str, found: Iterable[Finding]) -> Iterator[Checkup]:
    """Yield the findings of a check of `verify`, one per kind."""
    kinds: dict[str, list[Finding]] = {}
    for finding in found:
        kinds.setdefault(finding.what, []).append(finding)
    for what, those in kinds.items():
        more = f" and {len(those) - 1} more" if len(those) > 1 else ""
        fix = "perdure verify --fix" if those[0].fixable else those[0].hint
        yield Checkup(name, f"{what}: {those[0].where}{more}", fix)
    if not kinds:
        yield Checkup(name, fine)
