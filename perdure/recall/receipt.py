"""Why each memory came, and why others did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perdure.recall.expand import OFF, Expansion
from perdure.recall.options import LEXICAL, RecallOptions
from perdure.recall.query import Added
from perdure.recall.turn import Candidate, Judge, Passage
from perdure.secrets.redact import redact

VERSION = 1
MAX_QUERY = 500


@dataclass(frozen=True, slots=True)
class Receipt:
    """The record of one recall: ids, scores and the redacted query, never the text of a memory."""

    id: str  # its name; `Recall.receipt_id`
    session: str | None  # of the turn
    at: float  # when, epoch seconds
    query: str  # the prompt
    silence: str | None = None  # why the recall ended without a search, or None
    candidates: Sequence[Candidate] = ()  # everything considered
    states: Mapping[str, str] = field(default_factory=dict)  # by retriever, "ok" or why it returned nothing
    ended: Mapping[str, float] = field(default_factory=dict)  # by retriever, the seconds it took
    words: tuple[str, str] = ("", "")  # the keyword index used, and why
    judge: Judge | None = None  # what judged the candidates; None: nothing was searched for
    aliases: Added = ()  # names in the prompt, each with an alias that was searched too
    expansion: Expansion = OFF  # rewordings of the query
    tokens: int = 0  # of the block
    size: int = 0  # of the block in bytes
    seconds: float = 0.0  # the whole recall

    @property
    def verdicts(self) -> dict[str, str]:
        """Per candidate id, "injected" or what it failed at."""
        return {each.id: each.verdict for each in self.candidates}

    def body(self, options: RecallOptions) -> Mapping[str, Any]:
        """Return the receipt as JSON values."""
        body: dict[str, Any] = {
            "version": VERSION,
            # Redacted before it is cut: half a secret may not look like one any more.
            "query": redact(self.query).text[:MAX_QUERY],
            "silence": self.silence,
            "gate": {
                "floor": self.judge.floor if self.judge else None,
                "threshold": self.judge.threshold if self.judge else None,
                "relative_cut": options.relative_cut,
            },
            "tokens": self.tokens,
            "bytes": self.size,
            "seconds": round(self.seconds, 6),
        }
        if self.aliases:
            body["aliases"] = sorted({fact for _, other in self.aliases for fact in other.facts})
        if self.expansion is not OFF:
            body["expansion"] = {
                "state": self.expansion.state,
                "wordings": [redact(wording).text for wording in self.expansion.wordings],
                "seconds": round(self.expansion.seconds, 6),
            }
        if self.judge is not None:
            body["legs"] = {
                leg: {"state": state, "seconds": round(self.ended.get(leg, 0.0), 6)}
                for leg, state in self.states.items()
            }
            if body["legs"].get(LEXICAL, {}).get("state") == "ok":
                body["legs"][LEXICAL] |= dict(zip(("index", "why"), self.words, strict=True))
            ordered = sorted(self.candidates, key=_best_first)
            reasons = self.judge.reasons(each for each in ordered if each.probability is not None)
            body["candidates"] = [_plain(each, reasons.get(each.id, {})) for each in ordered]
        return body


def _best_first(each: Candidate) -> tuple[float, float, float, float, str]:
    """Return the place of a candidate; of those that the gate stopped before they had a score, by what it saw."""
    return -each.score, -(each.probability or 0.0), -(each.cosine or 0.0), -each.coverage, each.id


def _plain(each: Candidate, reasons: Mapping[str, float]) -> dict[str, Any]:
    told = {"score": round(each.score, 6), "verdict": each.verdict}
    if isinstance(each.memory, Passage):
        return {"id": each.id, **told}
    body = {
        "id": each.id,
        "change_seq": each.memory.change_seq,
        "cosine": None if each.cosine is None else round(each.cosine, 6),
        "coverage": round(each.coverage, 4),
        "named": each.named,
        "rare": each.rare,
    }
    if each.trigger is not None:
        body["trigger"] = each.trigger.id
    if each.probability is not None:
        body |= {"probability": round(each.probability, 4), "reasons": reasons}
    legs = {leg: round(score, 6) for leg, score in each.scores.items()}
    return {**body, "legs": legs, "factors": dict(each.factors), **told}
