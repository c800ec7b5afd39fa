"""Conversations with other agents: what a person said in them goes through capture, as it does after a turn.

By itself such a memory is found by those who search for it and replaces nothing. If the person says that the words are
theirs, it counts as what stands in a record of theirs: it comes up unasked, and of two versions the newer one wins,
whichever conversation is read first. What an assistant said is not even read.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from perdure.capture.decide import Action, Decision, own_view
from perdure.capture.describe import CategoryPatterns
from perdure.capture.intake import Limits, take
from perdure.capture.pipeline import Capturer, Quota
from perdure.capture.statements import statements
from perdure.capture.writing import Prepared, Writer, WritingOptions, Written
from perdure.hooks.types import Channel, Message
from perdure.maintenance.importing import FURTHEST, SAMPLE, Load
from perdure.regex import lazy
from perdure.speech.typed import typed as words
from perdure.store.fact import Fact
from perdure.store.inbox_lines import PROJECT
from perdure.store.scope import OWNER, Scope
from perdure.store.search import by_hash
from perdure.store.store import Store
from perdure.store.transaction import Transaction
from perdure.store.undo import IMPORT
from perdure.text.normalise import fingerprint
from perdure.text.pluralize import counted
from perdure.text.timestamps import seconds

HOME = Scope("user", OWNER)
PROGRAM, SUB_AGENT = "headless runs", "sub-agents"
"""What a conversation may be where no person speaks."""
_LONE_TAG = lazy(r"</?[\w-]+[^<>]*>")
"""What stands around an image, in parts of its own."""
_UNLIMITED = Quota(turn=10**9, session=10**9, day=10**9)
"""Nobody writes years of conversations to flood a memory; and the whole import can be undone."""


@dataclass(frozen=True, slots=True)
class Talk:
    """What a person said in one conversation."""

    session: str  # its id
    messages: Sequence[Message]  # the person's, oldest first, as hosts have them: role, content, timestamp
    size: int  # characters or bytes that it takes in the export, for the progress; 0: it is none of its own
    folder: str = ""  # where the agent worked, if it is told
    broken: str = ""  # why it could not be read; empty if it could
    odd: int = 0  # messages in it that could not be read
    passed: str = ""  # what it is, if that is no conversation with a person


@dataclass(frozen=True, slots=True)
class Talks:
    """Conversations that can be imported."""

    kind: str  # one of `perdure.importers.sources.KINDS`
    size: int  # the sum of the sizes of all conversations, about
    read: Callable[[], Iterator[Talk]]  # yields them; may be called again
    notes: Load | None = None  # memories that are beside them, if there are any


@dataclass(slots=True)
class Heard:
    """What an import of conversations did, or would do."""

    kind: str  # where they came from
    dry_run: bool  # whether nothing was written
    mine: bool  # whether the person's messages count as theirs
    conversations: int = 0  # how many were read
    read: int = 0  # what the person said in them
    messages: int = 0  # so much of it is new here
    known: int = 0  # conversations that the hooks of the host captured while they went on; they are left alone
    statements: int = 0  # what is worth keeping in the messages
    added: int | None = None  # memories that are new; None in a dry run, which does not compare them
    secrets: Counter[str] = field(default_factory=Counter)  # how many secrets were left out, by kind
    # when the oldest and the newest message was said, epoch seconds; None: no message says when
    first: float | None = None
    last: float | None = None
    unreadable: int = 0  # conversations that could not be read, and single messages in others
    unread: dict[str, str] = field(default_factory=dict)  # why, by conversation or file
    passed: Counter[str] = field(default_factory=Counter)  # what else is no person's, and how many of it
    sample: list[str] = field(default_factory=list)  # some of what is worth keeping, in a dry run
    batch: str | None = None  # what `undo` takes to take all of it back; None if nothing was added

    def take(self, talk: Talk) -> None:
        """Count what was read of a conversation, and what was not."""
        self.conversations += talk.size > 0
        self.read += len(talk.messages)
        self.unreadable += talk.odd + bool(talk.broken)
        if talk.broken:
            self.unread[talk.session] = talk.broken
        elif talk.odd:
            self.unread[talk.session] = f"{counted(talk.odd, 'message')} in an unknown format"
        if talk.passed:
            self.passed[talk.passed] += 1

    def note(self, at: float | None) -> None:
        """Take note of when a message was said."""
        if at is not None and at <= FURTHEST:
            self.first = at if self.first is None else min(self.first, at)
            self.last = at if self.last is None else max(self.last, at)


def hear(
    store: Store,
    talks: Talks,
    *,
    mine: bool = False,
    dry_run: bool = False,
    batch: str = "",
    categories: CategoryPatterns = (),
    project: Callable[[str], str | None] = lambda folder: None,
    advance: Callable[[int], None] = lambda size: None,
) -> Heard:
    """Import what a person said in conversations. Done again it adds nothing; broken off, it goes on where it was.

    `dry_run`: change nothing; tell what is in them. `batch`: of the journal; one is made without it.
    """
    report = Heard(talks.kind, dry_run, mine, added=None if dry_run else 0)
    channel = Channel.TRANSCRIPT_USER if mine else Channel.IMPORT
    capturer = Capturer(store, _ImportWriter(channel), lambda: (), _UNLIMITED, categories=categories)
    batch = batch or uuid.uuid4().hex
    for talk in talks.read():
        report.take(talk)
        if store.cursor(f"{HOME}\0{talk.session}"):
            report.known += 1
        elif talk.messages:
            entry = _entry(store, talks.kind, talk, channel, report)
            if dry_run:
                texts = [found.text for each in entry["messages"] for found in statements(each["text"])]
                report.statements += len(texts)
                report.sample += texts[: SAMPLE - len(report.sample)]
            elif entry["messages"]:
                scope = project(talk.folder) if talk.folder else None
                written = capturer.process({**entry, "batch": batch, **({PROJECT: scope} if scope else {})})
                report.statements += len(written)
                report.added = (report.added or 0) + sum(each.decision.action is not Action.NOOP for each in written)
        advance(talk.size)
    if report.added:
        report.batch = batch
    return report


def typed(content: Any, kind: str) -> str:
    """Return what a person typed in a message to a coding agent, without what hosts and memory plugins put there.

    `content`: a text, or a list of parts; empty if one of these is the result of a tool.
    """
    parts = content if isinstance(content, list) else [{"type": kind, "text": content}]
    parts = [part for part in parts if isinstance(part, Mapping)]
    if any(part.get("type") == "tool_result" for part in parts):
        return ""
    texts = [part["text"] for part in parts if part.get("type") == kind and isinstance(part.get("text"), str)]
    return "\n".join(text for text in map(words, texts) if text and not _LONE_TAG.fullmatch(text))


def to_remember(text: str) -> str:
    """Return what somebody gave to be remembered in words that say so, unless capture keeps them as they are."""
    text = text.strip().removeprefix("that ")
    return text if any(statements(text)) else f"Remember: {text}"


class _ImportWriter(Writer):
    """Writes what was said in a conversation by its words alone: the worker makes the vectors, as after any import."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(lambda: None, WritingOptions())
        self._channel = channel

    def prepare(self, facts: Sequence[Fact], now: float) -> list[Prepared]:
        return super().prepare([replace(fact, channel=self._channel, source="conversation") for fact in facts], now)

    def write(self, tx: Transaction, prepared: Prepared) -> Written:
        fact = prepared.fact
        if tx.is_forgotten(fact, fact.source_date or 0.0):
            return Written(fact, Decision(Action.NOOP, None, "forgotten before"))
        if self._channel is not Channel.IMPORT:
            return super().write(tx, prepared)
        # Nobody vouches for it, so it takes nobody's place and confirms nothing.
        known = by_hash(tx.connection, fingerprint(fact.text), own_view(fact, tx.now))
        if known or tx.is_purged(fact.text):
            return Written(fact, Decision(Action.NOOP, None, "known"))
        return Written(tx.add(fact), Decision(Action.ADD, None, "imported"))


def _entry(store: Store, kind: str, talk: Talk, channel: Channel, report: Heard) -> Mapping[str, Any]:
    """Return what is new in a conversation as an entry of the inbox, without secrets."""
    cursor = f"{IMPORT}\0{kind}\0{channel.value}\0{talk.session}"
    taken = take(talk.messages, store.cursor(cursor) or "", store.key, talk.session, Limits())
    times = [at for message in talk.messages if (at := seconds(message.get("timestamp"))) is not None]
    report.messages += len(taken.fresh)
    report.secrets.update(taken.left_out)
    for at in times:
        report.note(at)
    return {
        "id": f"{IMPORT}:{kind}:{channel.value}:{talk.session}:{taken.tail}",
        "at": min(times, default=store.clock.now()),
        "session": talk.session,
        "cursor": cursor,
        "tail": taken.tail,
        "scope": str(HOME),
        "host": IMPORT,
        "turn": None,
        "messages": taken.messages,
    }
