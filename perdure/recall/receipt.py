"""Step seven: why each memory came, and why others did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from perdure.ranking.gates import Evidence
from perdure.recall.expand import OFF, Expansion
from perdure.recall.options import RecallOptions
from perdure.recall.retrievers import Found
from perdure.secrets.redact import redact
from perdure.store.aliases import OtherName, Words
from perdure.store.fact import Fact

VERSION = 1
MAX_QUERY = 500


@dataclass(slots=True)
class Receipt:
    """What happened in one recall. Holds ids, scores and the redacted query, never the text of a memory."""

    id: str  # its name; `Recall.receipt_id`
    session: str | None  # of the turn
    at: float  # when, epoch seconds
    query: str  # what was asked
    silence: str | None = None  # why the whole recall brought nothing before it searched, or None
    verdicts: dict[str, str] = field(default_factory=dict)  # per candidate id, "injected" or what it failed at
    # Per candidate id, its score: fused and adjusted for facts, absolute for passages.
    scores: dict[str, float] = field(default_factory=dict)
    # Per fact id, what the adjustments multiplied its score by.
    factors: dict[str, Mapping[str, float]] = field(default_factory=dict)
    # Of links and the profile, where the database kept them waiting.
    states: dict[str, str] = field(default_factory=dict)
    linked: dict[str, Fact] = field(default_factory=dict)  # facts that no leg found, but a link or the profile
    # Names in what was asked, each with another one that was asked for as well.
    aliases: Sequence[tuple[Words, OtherName]] = ()
    threshold: float | None = None  # the probability from which a memory came up; None where no model judged them
    found: Found | None = None
    expansion: Expansion = OFF  # what was added to the query
    tokens: int = 0  # of the block
    size: int = 0  # of the block in bytes
    seconds: float = 0.0  # the whole recall

    @property
    def telling(self) -> Set[str]:
        """Ids of the facts that tell these names."""
        return frozenset(fact for _, other in self.aliases for fact in other.facts)

    def body(self, options: RecallOptions) -> Mapping[str, Any]:
        """Return the receipt as JSON values."""
        body: dict[str, Any] = {
            "version": VERSION,
            # Redacted before it is cut: half a secret may not look like one any more.
            "query": redact(self.query).text[:MAX_QUERY],
            "silence": self.silence,
            "gate": {
                "floor": self.found.floor if self.found else None,
                "threshold": self.threshold,
                "relative_cut": options.relative_cut,
            },
            "tokens": self.tokens,
            "bytes": self.size,
            "seconds": round(self.seconds, 6),
        }
        if self.aliases:
            body["aliases"] = sorted(self.telling)
        if self.expansion is not OFF:
            body["expansion"] = {
                "state": self.expansion.state,
                "wordings": [redact(wording).text for wording in self.expansion.wordings],
                "seconds": round(self.expansion.seconds, 6),
            }
        if self.found is not None:
            body["legs"] = {
                leg: {"state": state, "seconds": round(self.found.seconds.get(leg, 0.0), 6)}
                for leg, state in {**self.found.states, **self.states}.items()
            }
            body["candidates"] = [self._candidate(fact_id, self.found) for fact_id in self._ordered()]
        return body

    def _ordered(self) -> list[str]:
        return sorted(self.verdicts, key=lambda fact_id: (-self.scores.get(fact_id, 0.0), fact_id))

    def _judged(self, fact_id: str, evidence: Evidence, found: Found) -> dict[str, Any]:
        """Return the probability that a fact helps, and what moved it most."""
        if evidence.probability is None:
            return {}
        row = found.features.get(fact_id)
        reasons = found.gate.reasons(row) if found.gate is not None and row is not None else {}
        return {"probability": round(evidence.probability, 4), "reasons": reasons}

    def _candidate(self, fact_id: str, found: Found) -> dict[str, Any]:
        score = {"score": round(self.scores.get(fact_id, 0.0), 6), "verdict": self.verdicts[fact_id]}
        fact = found.facts.get(fact_id) or self.linked.get(fact_id)
        if fact is None:
            return {"id": fact_id, **score}  # a passage
        evidence = found.evidence.get(fact_id, Evidence())
        return {
            "id": fact_id,
            "change_seq": fact.change_seq,
            "cosine": None if evidence.cosine is None else round(evidence.cosine, 6),
            "coverage": round(evidence.coverage, 4),
            "named": evidence.named,
            "rare": evidence.rare,
            **self._judged(fact_id, evidence, found),
            "legs": {leg: round(scores[fact_id], 6) for leg, scores in found.scores.items() if fact_id in scores},
            "factors": dict(self.factors.get(fact_id, {})),
            **score,
        }
