"""What is wrong in the memories and conversations of another system, before anything of them is taken over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perdure.capture.describe import describe
from perdure.capture.lifetimes import lifetime
from perdure.capture.statements import statements
from perdure.importers.conversation_import import Talks
from perdure.importers.sources import kind_of, open_source
from perdure.maintenance.importing import Load
from perdure.ranking.decay import DAY
from perdure.secrets.redact import redact
from perdure.speech.typed import typed
from perdure.store.fact import Fact, folded_slot, is_single_valued
from perdure.store.safe import safe_fact
from perdure.text.clean import clip
from perdure.text.escape import orders_in
from perdure.text.normalise import fingerprint
from perdure.text.timestamps import seconds

KINDS = ("secret", "injection", "stale", "duplicate", "contradiction")
SHOWN = 120
"""Characters of a text that are shown."""
_STALE_DAYS = 30
"""A day of which a text speaks is past for so long."""
_LONGEST = 16_384
"""Characters of a text that are looked at."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a text."""

    kind: str  # one of `KINDS`
    where: str  # the file, conversation or id that it stands in
    text: str  # its beginning, redacted
    evidence: str  # what speaks against it


@dataclass(frozen=True, slots=True)
class ForeignAudit:
    """What an audit of another system's memories found."""

    kind: str  # what was looked at, one of `perdure.importers.sources.KINDS`
    texts: int  # so many memories, and statements in conversations
    findings: tuple[Finding, ...]  # what is wrong, in the order of the texts; then what contradicts each other
    unreadable: int  # entries that could not be read

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        counts = {kind: sum(each.kind == kind for each in self.findings) for kind in KINDS}
        return {**asdict(self), "counts": counts, "findings": [asdict(each) for each in self.findings]}


@dataclass(frozen=True, slots=True)
class _Text:
    where: str
    text: str
    at: float
    fact: Fact | None = None


def audit_source(
    path: Path, now: float, kind: str | None = None, advance: Callable[[int], None] = lambda count: None
) -> ForeignAudit:
    """Look through what a path holds, and change nothing anywhere.

    `now`: epoch seconds. `kind`: one of `perdure.importers.sources.KINDS`; None: found out.
    """
    desk = _Desk(now)
    # No store is there whose seals could hold, so nothing is vouched for.
    source = open_source(path, b"", kind or kind_of(path))
    load, unreadable = (
        (source, source.unreadable) if isinstance(source, Load) else (source.notes, desk.hear(source, advance))
    )
    for incoming in load.facts() if load is not None else ():
        desk.look(incoming.fact)
        advance(1)
    desk.contradictions()
    return ForeignAudit(source.kind, desk.texts, tuple(desk.findings), unreadable)


class _Desk:
    def __init__(self, now: float) -> None:
        self.texts = 0
        self.findings: list[Finding] = []
        self._now = now
        self._seen: dict[str, str] = {}
        self._slots: dict[tuple[str, str], dict[str, _Text]] = {}

    def hear(self, talks: Talks, advance: Callable[[int], None]) -> int:
        unreadable = 0
        for talk in talks.read():
            unreadable += talk.odd + bool(talk.broken)
            for message in talk.messages:
                text = clip(typed(str(message["content"])), _LONGEST)
                at = seconds(message.get("timestamp")) or self._now
                redaction = redact(text)
                self._secrets(_Text(talk.session, text, at), redaction.kinds)
                self._orders(_Text(talk.session, text, at))
                for each in statements(redaction.text):
                    self._compare(_Text(talk.session, each.text, at))
                    self.texts += 1
                    advance(1)
        return unreadable

    def look(self, fact: Fact) -> None:
        self.texts += 1
        where = str(fact.metadata.get("file") or fact.id)
        text = _Text(where, clip(fact.text, _LONGEST), fact.effective_date, fact)
        self._secrets(text, safe_fact(fact).redacted)
        self._orders(text)
        self._compare(text)

    def contradictions(self) -> None:
        """Tell of each slot that can have one value only, and has several: all but the newest."""
        for (entity, key), values in self._slots.items():
            newest = max(values.values(), key=lambda text: text.at)
            for text in values.values():
                if text is not newest:
                    said = _shown(newest.text)
                    self._add("contradiction", text, f"a different {key} for {entity} was stated later: {said}")

    def _secrets(self, text: _Text, kinds: tuple[str, ...]) -> None:
        if kinds:
            self._add("secret", text, f"holds {', '.join(sorted(set(kinds)))}; an import leaves it out")

    def _orders(self, text: _Text) -> None:
        if found := orders_in(text.text):
            self._add("injection", text, found)

    def _compare(self, text: _Text) -> None:
        if found := _stale(text, self._now):
            self._add("stale", text, found)
            return
        same = fingerprint(text.text)
        if same in self._seen:
            self._add("duplicate", text, f"is also in {self._seen[same]}")
            return
        self._seen[same] = text.where
        for entity, key, value in _values(text):
            if is_single_valued(key):
                known = self._slots.setdefault((folded_slot(entity) or "", folded_slot(key) or ""), {})
                known[folded_slot(value) or ""] = text

    def _add(self, kind: str, text: _Text, evidence: str) -> None:
        self.findings.append(Finding(kind, text.where, _shown(text.text), evidence))


def _stale(text: _Text, now: float) -> str | None:
    fact = text.fact
    if fact is not None and (fact.superseded_at is not None or fact.forgotten_at is not None):
        return "was replaced or forgotten there"
    if fact is not None and fact.expires_at is not None and fact.expires_at <= now:
        return "has expired there"
    past = lifetime(text.text, text.at).freeze_until
    return "the date it mentions has passed" if past is not None and past < now - _STALE_DAYS * DAY else None


def _values(text: _Text) -> Iterator[tuple[str, str, str]]:
    """Yield entity, key and value of what a text says."""
    fact = text.fact
    if fact is not None and fact.entity and fact.key and fact.value:
        yield fact.entity, fact.key, fact.value
        return
    for statement in statements(text.text):
        slot = describe(statement).slot
        if slot is not None and slot.value:
            yield slot.entity, slot.key, slot.value


def _shown(text: str) -> str:
    return redact(" ".join(text.split())).text[:SHOWN]
