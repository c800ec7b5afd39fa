"""What a person has today, beside what perdure would bring: their own last prompts, asked again of a store for the day.

The store is filled in the order of time, so that each prompt is answered by what was known before it, lies in a folder
of its own that is removed, and has the settings that need no network. Nothing else is written.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date
from itertools import count, groupby
from pathlib import Path
from statistics import fmean, median
from typing import Any

from perdure.api.turns import Turns
from perdure.clock import ManualClock
from perdure.engine.audiences import audience_of
from perdure.engine.engine import Engine
from perdure.engine.repository import project_of
from perdure.engine.settings import Settings
from perdure.errors import InputError, ModelError, ScopeError
from perdure.files.turns import json_lines, presentable
from perdure.hooks.types import Message, TurnContext
from perdure.importers.conversation_import import HOME, Talk, Talks, hear
from perdure.importers.sources import FORMATS, open_source
from perdure.index.missing import embed_missing
from perdure.index.vector_index import scan
from perdure.maintenance.importing import Incoming, Load, bring_in
from perdure.parts import part
from perdure.secrets.redact import redact
from perdure.store.scope import GLOBAL, Scope, checked_id
from perdure.store.search import View, by_ids
from perdure.store.sql import run
from perdure.text.timestamps import seconds
from perdure.text.tokens import estimate_tokens

NEAREST = 5
"""Memories that a search of another system is taken to bring."""
LINES = 200
"""Of a MEMORY.md, as its hosts read it."""
_STEP = 100
"""Messages and memories that are taken in at once."""
_PATIENCE = 60.0
"""Seconds in which the model is loaded."""
_KEYS = ("prompt", "text", "content")
_Moment = tuple[float, float]
"""Epoch seconds, and what comes first of the same second."""
_ALWAYS: _Moment = (-math.inf, -1)
"""Of what has no date: it counts as known from the first prompt on."""
_Tell = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Source:
    """Where people's memories are before they have perdure."""

    shown: str  # what its own side of a comparison is, in words
    missing: str  # what to do if it is not found
    searched: bool = False  # whether it brings what is nearest to a prompt; else the same with each
    places: Callable[[], Sequence[Path]] = tuple  # where it usually is


_SEARCHED = (
    f"Today: the {NEAREST} memories nearest to the prompt according to perdure's encoder, because "
    "that tool's own search is not run."
    " perdure has the same memories and nothing else."
)
_FILE = (
    f"Today: the first {LINES} lines of the file, in every context, as they are now. perdure has its entries;"
    " undated ones count as known from the first prompt on."
)
SOURCES: Mapping[str, Source] = {
    "claude-mem": Source(
        _SEARCHED, "pass the path of its database, claude-mem.db", True,
        lambda: [_folder("CLAUDE_MEM_DATA_DIR", ".claude-mem") / "claude-mem.db"],
    ),
    "mem0": Source(_SEARCHED, "pass a JSON file with the output of get_all", True),
    "chatgpt": Source(
        "Today: your custom instructions, in every context; an export holds no saved memories. perdure has these"
        " instructions and what you said before the prompt.",
        "pass the path of the export; to get one: Settings > Data controls > Export data",
    ),
    "claude-ai": Source(
        "Today: what Claude remembers about you, in every context, as the export has it; it counts as known from the"
        " first prompt on. perdure has it too, and what you said before the prompt.",
        "pass the path of the export; to get one: Settings > Privacy > Export data",
    ),
    "openclaw": Source(
        _FILE, "pass MEMORY.md or its folder",
        places=lambda: [Path("MEMORY.md"), Path.home() / ".openclaw" / "workspace"],
    ),
    "agent-file": Source(
        _FILE, "pass CLAUDE.md, AGENTS.md or GEMINI.md",
        places=lambda: [Path("CLAUDE.md"), Path("AGENTS.md"), Path("GEMINI.md")],
    ),
    "claude-code": Source(
        "Today: CLAUDE.md and MEMORY.md as they are now, in every context. They stay there: perdure knows what you said"
        " before the prompt, and its tokens are in addition to them.",
        "pass a folder of transcripts",
        places=lambda: [_folder("CLAUDE_CONFIG_DIR", ".claude") / "projects"],
    ),
}  # fmt: skip
"""By their names in `perdure.importers.sources.FORMATS`."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One prompt, and what each side brings for it. All texts are without secrets."""

    at: float | None  # when it was asked, epoch seconds, if that is known
    prompt: str
    today: Sequence[str]  # memories, or names in `Trial.standing`
    today_tokens: int
    perdure: Sequence[str]  # memories
    perdure_tokens: int  # of the block
    opening: Sequence[str]  # memories with which perdure had a session begin, at its first prompt
    opening_tokens: int
    ms: float  # until perdure had it


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of all prompts."""

    source: str  # one of `SOURCES`
    shown: str  # what "today" stands for
    standing: Mapping[str, str]  # what is in every context, by its name
    answered: Sequence[Answered]  # oldest first
    memories: int  # so many perdure had in the end

    def totals(self) -> Mapping[str, Any]:
        """Return the figures over all prompts: means of tokens, counts of prompts, a median of milliseconds."""
        openings = [each.opening_tokens for each in self.answered if each.opening_tokens]
        return {
            "prompts": len(self.answered),
            "memories": self.memories,
            "today_tokens": round(fmean(each.today_tokens for each in self.answered), 1),
            "perdure_tokens": round(fmean(each.perdure_tokens for each in self.answered), 1),
            "perdure_opening_tokens": round(fmean(openings), 1) if openings else 0.0,
            "today_silent": sum(not each.today_tokens for each in self.answered),
            "perdure_silent": sum(not each.perdure_tokens for each in self.answered),
            "perdure_ms": round(median(each.ms for each in self.answered), 1),
        }


@dataclass(frozen=True, slots=True)
class _Said:
    at: _Moment
    text: str
    session: str
    folder: str
    message: Message


@dataclass(frozen=True, slots=True)
class _Had:
    """What a source holds."""

    known: Sequence[tuple[_Moment, _Said | Incoming]]  # what perdure takes in
    asked: Sequence[_Said]
    standing: Mapping[str, str]


def found(source: str, path: Path | None) -> Path:
    """Return where a source is.

    Raises:
        InputError: it is not there, or is something else.
    """
    wanted = SOURCES[source]
    places = [path] if path is not None else wanted.places()
    there = next((place for place in places if place.exists()), None)
    if there is None:
        where = " or ".join(map(str, places))
        looked = f"{where} does not exist" if where else f"{source} has no default location"
        raise InputError(f"{looked}; {wanted.missing}")
    if not FORMATS[source].fits(there):
        raise InputError(f"{there} is not {FORMATS[source].what}; {wanted.missing}")
    return there


def run_trial(
    source: str, place: Path, home: Path, *, most: int, prompts: Path | None = None,
    tell: _Tell = lambda done, total: None,
) -> Trial:  # fmt: skip
    """Ask a source's last prompts again.

    Args:
        source: one of `SOURCES`.
        place: where it is, as `found` returns it.
        home: an empty folder, for the store.
        most: so many prompts.
        prompts: a file with the prompts, a line each, or JSON lines with `prompt` and perhaps `timestamp`; None: those
            of the source, or of coding agents in the same project.
        tell: is told of steps done and steps to do.

    Raises:
        InputError: the source cannot be read, or there are no prompts.
        ModelError: the model cannot be used.
    """
    had = _had(source, place, prompts)
    asked = sorted(had.asked, key=lambda each: each.at)[-most:]
    known = sorted(had.known, key=lambda each: each[0])
    dated = [at for (at, _), _ in known if at > 0]
    clock = ManualClock(min(dated, default=time.time()))
    with closing(Engine(home, Settings(timers=False, watch=False), clock=clock)) as engine:
        if not engine.model.wait(_PATIENCE):
            raise ModelError(f"nothing can be compared without the model: {engine.model.state}")
        desk = _Desk(engine, source, len(known) + len(asked), tell, dict(had.standing))
        answered = []
        for prompt in asked:
            earlier = next((place for place, (at, _) in enumerate(known) if at >= prompt.at), len(known))
            clock.set(time.time() if prompt.at[0] == math.inf else prompt.at[0] or clock.now())
            desk.take([each for _, each in known[:earlier]])
            del known[:earlier]
            answered.append(desk.answer(prompt, source))
        return Trial(source, SOURCES[source].shown, desk.standing, answered, desk.memories())


class _Desk:
    """The store, and both sides of the comparison."""

    def __init__(self, engine: Engine, kind: str, total: int, tell: _Tell, standing: dict[str, str]) -> None:
        self.standing = standing
        self._engine, self._kind, self._total, self._tell, self._done = engine, kind, total, tell, 0

    def take(self, known: Sequence[_Said | Incoming]) -> None:
        """Take in what was said and what was remembered meanwhile, as an import does that its owner vouches for."""
        for begin in range(0, len(known), _STEP):
            self._take(known[begin : begin + _STEP])

    def _take(self, known: Sequence[_Said | Incoming]) -> None:
        store = self._engine.store
        said = [each for each in known if isinstance(each, _Said)]
        talks = [
            Talk(session, [each.message for each in group], 1, folder)
            for (session, folder), group in groupby(said, key=lambda each: (each.session, each.folder))
        ]
        facts = [each for each in known if isinstance(each, Incoming)]
        hear(store, Talks(self._kind, 0, lambda: iter(talks)), mine=True, project=project_of)
        bring_in(store, Load(self._kind, len(facts), lambda: facts, tuple), trust=True)
        while embed_missing(store, self._engine.model.embedder):
            pass
        self._step(len(known))

    def answer(self, prompt: _Said, source: str) -> Answered:
        context = TurnContext(prompt.session, project=project_of(prompt.folder), host=source)
        if source == "claude-code":
            context = part("hosts.command.events").beside_files(context, prompt.folder)
            today, tokens = self._always(prompt, [*context.in_context, *context.in_project])
        elif SOURCES[source].searched:
            today = [presentable(text) for text in self._nearest(prompt, context)]
            tokens = sum(map(estimate_tokens, today))
        else:
            today, tokens = list(self.standing), sum(map(estimate_tokens, self.standing.values()))
        turns = Turns(self._engine, context)
        opening = turns.opening()
        began = time.perf_counter()
        recall = turns.before(prompt.text, context)
        ms = 1e3 * (time.perf_counter() - began)
        self._step(1)
        block, items = (recall.block, recall.items) if recall else ("", ())
        return Answered(
            prompt.at[0] if 0 < prompt.at[0] < math.inf else None, presentable(prompt.text), today, tokens,
            [presentable(item.text) for item in items], estimate_tokens(block),
            [presentable(item.text) for item in opening.items] if opening else [], opening.tokens if opening else 0,
            round(ms, 1),
        )  # fmt: skip

    def memories(self) -> int:
        counted = "SELECT count(*) FROM facts WHERE superseded_at IS NULL AND forgotten_at IS NULL"
        return int(self._engine.store.database.query(run, counted)[0][0])

    def _always(self, prompt: _Said, files: Sequence[tuple[str, str]]) -> tuple[list[str], int]:
        names = []
        for name, text in files:
            # Several projects have a file of this name.
            text = redact(text).text
            other = self.standing.get(name, text) != text
            names.append(f"{name} of {Path(prompt.folder).name}" if other else name)
            self.standing[names[-1]] = text
        return names, sum(estimate_tokens(text) for _, text in files)

    def _nearest(self, prompt: _Said, context: TurnContext) -> list[str]:
        store, embedder = self._engine.store, self._engine.model.embedder()
        view, space = View(audience_of(context), self._engine.clock.now()), store.space()
        if embedder is None or space is None:
            return []
        hits = scan(store.database, space.id, embedder.embed([prompt.text], query=True)[0], view, NEAREST)
        facts = store.database.query(by_ids, [hit.id for hit in hits], view)
        return [facts[hit.id].text for hit in hits if hit.id in facts]

    def _step(self, steps: int) -> None:
        self._done += steps
        self._tell(self._done, self._total)


def _had(source: str, path: Path, prompts: Path | None) -> _Had:
    opened = open_source(path, b"", source)
    talks, load = (opened, opened.notes) if isinstance(opened, Talks) else (None, opened)
    facts = [_dated(each, source) for each in load.facts()] if load else []
    if facts and not any(Scope(each.fact.scope, each.fact.scope_target) in (HOME, GLOBAL) for _, each in facts):
        raise InputError(f"{path} holds several users' memories; pass a file with only one user's memories")
    said = list(_said(talks)) if talks else []
    # Custom instructions are in no conversation, and in every context.
    rules = [each for each in said if each.at == _ALWAYS]
    asked = [each for each in said if each.at != _ALWAYS]
    standing = {}
    if source in ("openclaw", "agent-file"):
        file = path if path.is_file() else path / "MEMORY.md"
        text = file.read_text("utf-8", "replace") if file.is_file() else ""
        standing = {file.name: "\n".join(text.split("\n")[:LINES])}
    elif source == "claude-ai":
        # Neither what is of a project alone nor the projects themselves, which have a date.
        of_all = [
            each.fact.text for at, each in facts if at == _ALWAYS and not each.fact.metadata.get("claude_project")
        ]
        standing = {"What Claude remembers": "\n".join(of_all)}
    elif source == "chatgpt":
        standing = {"Custom instructions": "\n".join(each.text.removeprefix("Remember: ") for each in rules)}
    standing = {name: redact(text).text for name, text in standing.items() if text.strip()}
    heard = [] if SOURCES[source].searched else said
    if prompts is not None:
        asked = list(_listed(prompts))
    elif talks is None:
        folder = Path.cwd() if source == "mem0" else path if path.is_dir() else path.parent
        asked = list(_beside(project_of(folder.absolute())))
    if not asked:
        raise InputError(
            f"no prompts found for {path}; pass a file with one per line, or JSON lines, with --prompts-from FILE"
        )
    return _Had([*facts, *((each.at, each) for each in heard)], asked, standing)


def _dated(incoming: Incoming, kind: str) -> tuple[_Moment, Incoming]:
    at = incoming.fact.source_date
    if at is not None and kind in ("openclaw", "agent-file"):
        # A file's own date is when it was changed last; a day's note says its day.
        try:
            date.fromisoformat(Path(str(incoming.fact.metadata["file"])).name[:10])
        except ValueError:
            return _ALWAYS, replace(incoming, fact=replace(incoming.fact, source_date=None))
    # What was made of a prompt was not known before it.
    return (_ALWAYS if at is None else (at, math.inf)), incoming


def _said(talks: Talks) -> Iterator[_Said]:
    number = count()
    for talk in talks.read():
        at = 0.0
        for message in talk.messages:
            at = seconds(message.get("timestamp")) or at
            moment = (at, next(number)) if talk.size else _ALWAYS
            # Of what every conversation begins with, the date is that of any of them.
            kept = message if talk.size else {**message, "timestamp": None}
            yield _Said(moment, str(message["content"]), _session(talk.session), talk.folder, kept)


def _session(name: str) -> str:
    try:
        return checked_id(name.strip(), "session")
    except ScopeError:
        return hashlib.sha256(name.encode()).hexdigest()


def _beside(project: str | None) -> Iterator[_Said]:
    """Yield what was typed to coding agents in a project on this machine."""
    folders = {"claude-code": _folder("CLAUDE_CONFIG_DIR", ".claude") / "projects",
               "codex": _folder("CODEX_HOME", ".codex") / "sessions"}  # fmt: skip
    for kind, folder in folders.items():
        talks = FORMATS[kind].load(folder, b"") if project and folder.is_dir() else None
        for each in _said(talks) if isinstance(talks, Talks) else ():
            if project_of(each.folder) == project:
                yield each


def _listed(path: Path) -> Iterator[_Said]:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} cannot be read ({type(error).__name__}); give a text file with one prompt per line"
        ) from error
    for number, line in json_lines(text):
        value = _object(line)
        said = line.strip() if value is None else next((value[key] for key in _KEYS if key in value), None)
        if not isinstance(said, str):
            raise InputError(
                f"line {number} of {path} has no prompt; write it as {{'prompt': 'Which database is it?'}}"
            )
        at = seconds((value or {}).get("timestamp")) or math.inf
        yield _Said((at, number), said, "prompts", str(Path.cwd()), {})


def _object(line: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(line) if line.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _folder(variable: str, usual: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / usual)
