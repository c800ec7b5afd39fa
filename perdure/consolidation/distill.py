"""Conversations that were recorded and never captured go through capture, oldest first.

How far it is stands in the store beside the facts themselves, so it may be stopped at any moment, and done again it
adds nothing. What people said in them counts as such, but takes the place of nothing said since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perdure.capture.decide import Decision
from perdure.capture.pipeline import Capturer
from perdure.capture.statements import CaptureRule
from perdure.capture.writing import Prepared, Writer, Written
from perdure.errors import InputError
from perdure.files.roots import Root, read_text
from perdure.files.turns import Turn, read_turns, session_of
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.listing import Progress
from perdure.store.scope import Scope
from perdure.store.store import Store
from perdure.store.transaction import Transaction

STEP = 50
"""Messages that are captured in one transaction."""
MAX_BYTES = 50_000_000
"""Longer session files are passed over and named."""


@dataclass(frozen=True, slots=True)
class Distilled:
    """The result of a distillation."""

    sessions: int  # conversations read
    messages: int  # people's messages in them that had not been captured
    added: int  # new facts
    # files that were skipped, with the reason; also conversations captured as they took place
    skipped: Mapping[str, str]


class TranscriptWriter(Writer):
    """Writes what people said in a record: less than their word in a turn, which alone replaces what they said."""

    def __init__(self, writer: Writer) -> None:
        """Write as `writer` does."""
        self._inner = writer

    def prepare(self, facts: Sequence[Fact], now: float) -> list[Prepared]:
        """Prepare facts as those of a transcript."""
        return self._inner.prepare([replace(fact, channel=Channel.TRANSCRIPT_USER) for fact in facts], now)

    def decide(self, tx: Transaction, prepared: Prepared) -> Decision:
        """Decide as ever."""
        return self._inner.decide(tx, prepared)

    def write(self, tx: Transaction, prepared: Prepared) -> Written:
        """Write a fact as ever."""
        return self._inner.write(tx, prepared)


def distill(
    store: Store,
    writer: Writer,
    rules: Callable[[], tuple[CaptureRule, ...]],
    roots: Sequence[Root],
    home: Scope,
    *,
    strip: Callable[[str, str], str] = lambda text, session: text,
    dry_run: bool = False,
    pause: Callable[[], None] = lambda: None,
    progress: Progress = lambda done, total: None,
) -> Distilled:
    """Capture the recorded conversations of a scope.

    `roots`: where files lie; those of sessions of this scope are read.
    """
    capturer = Capturer(store, TranscriptWriter(writer), rules)
    talks, skipped = _talks([root for root in roots if root.kind == "sessions" and root.scope == home], strip)
    sessions = messages = added = 0
    for done, talk in enumerate(talks, 1):
        pause()
        if store.cursor(f"{home}\0{talk.session}"):
            skipped[talk.file] = "captured during the conversation"
            continue
        fresh = [turn for turn in talk.turns if turn.line_start > int(store.cursor(_cursor(home, talk)) or 0)]
        sessions += 1
        messages += len(fresh)
        for start in range(0, len(fresh) if not dry_run else 0, STEP):
            written = capturer.process(_entry(store, home, talk, fresh[start : start + STEP]), pause)
            added += sum(each.decision.action != "noop" for each in written)
        progress(done, len(talks))
    return Distilled(sessions, messages, added, skipped)


@dataclass(frozen=True, slots=True)
class _Talk:
    file: str
    session: str
    turns: tuple[Turn, ...]

    @property
    def began(self) -> float:
        return next((turn.at for turn in self.turns if turn.at is not None), 0.0)


def _talks(roots: Sequence[Root], strip: Callable[[str, str], str]) -> tuple[list[_Talk], dict[str, str]]:
    """Return the conversations of some roots, oldest first, and the files that cannot be read, with the reason."""
    talks, skipped = [], {}
    for root in roots:
        for path in sorted(root.path.glob("*.jsonl")):
            try:
                talks.append(_read(root, path.name, strip))
            except InputError as error:
                skipped[path.name] = str(error)
            except FileNotFoundError:
                skipped[path.name] = "it no longer exists"
    return sorted(talks, key=lambda talk: talk.began), skipped


def _read(root: Root, name: str, strip: Callable[[str, str], str]) -> _Talk:
    data = read_text(root, name, MAX_BYTES)
    session = session_of(data, name.removesuffix(".jsonl"))
    turns = read_turns(data, lambda text: strip(text, session))
    return _Talk(name, session, tuple(turn for turn in turns if turn.role == "user"))


def _cursor(home: Scope, talk: _Talk) -> str:
    return f"distill\0{home}\0{talk.session}"


def _entry(store: Store, home: Scope, talk: _Talk, turns: Sequence[Turn]) -> dict[str, Any]:
    now = store.clock.now()
    return {
        "id": f"distill:{home}:{talk.session}:{turns[-1].line_end}",
        "at": talk.began or now,
        "session": talk.session,
        "cursor": _cursor(home, talk),
        "tail": str(turns[-1].line_end),
        "scope": str(home),
        "host": "distill",
        "turn": None,
        "messages": [{"text": turn.text, "at": turn.at or talk.began or now} for turn in turns],
    }
