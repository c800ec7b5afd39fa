"""Step three: which candidates have evidence enough, and which are meant by another name."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from perdure.ranking.gates import Evidence, Gate
from perdure.recall.doubts import COST, Asking, doubts, stems
from perdure.recall.legs import Found
from perdure.recall.query import Query
from perdure.store.fact import Fact

NO_EVIDENCE = "no evidence"
DOUBTFUL = "doubtful"
"""What the verdicts of those that did not pass begin with."""
NAMING = frozenset(
    {"name", "nickname", "alias", "aka", "called", "code name", "codename", "abbreviation", "short name"}
)
"""Slots whose value is another name of their entity."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """The candidates that passed.

    Attributes:
        passed: their ids.
        renamed: those that the prompt means by another name, and the facts that say that name. They answer together,
            so they stay however far behind the best they are.
        verdicts: why the others did not pass, by id.
    """

    passed: Set[str]
    renamed: Set[str]
    verdicts: Mapping[str, str]


def sift(query: Query, found: Found) -> Sifted:
    """Hold each candidate against the gate, and against what speaks against it."""
    gate = Gate(found.floor if found.floor is not None else 1.0)
    asking = Asking.of(query.text, query.names)
    renamed = _by_another_name(asking, found, gate)
    verdicts: dict[str, str] = {}
    for fact_id in found.facts.keys() - renamed:
        evidence = found.evidence[fact_id]
        reason = _doubted(asking, found.facts[fact_id], evidence, gate) if gate.verdict(evidence) else NO_EVIDENCE
        if reason:
            verdicts[fact_id] = reason
    return Sifted(found.facts.keys() - verdicts.keys(), renamed, verdicts)


def _doubted(asking: Asking, fact: Fact, evidence: Evidence, gate: Gate) -> str | None:
    """Return why a fact with evidence has too little of it, or None."""
    if evidence.named:
        return None
    text, subject = _told(fact), None if fact.entity is None else _entity(fact)
    if _is_naming(fact):
        subject = f"{fact.entity} {fact.value}"
        # Who uses the other name knows it: what links the two names tells nothing more.
        if stems(fact.value) & asking.terms and not stems(fact.entity) <= asking.terms:
            text = f"{fact.value} {_key(fact)}"
    against = doubts(asking, text, subject, evidence.coverage)
    needed = gate.floor + sum(COST[each] for each in against)
    if not against or (evidence.coverage >= gate.coverage if evidence.cosine is None else evidence.cosine >= needed):
        return None
    return f"{DOUBTFUL}: {'; '.join(against)} (a cosine of {needed:.2f} would be enough)"


def _by_another_name(asking: Asking, found: Found, gate: Gate) -> set[str]:
    """Return the facts that the prompt means by another name, and those that say so.

    "The staging server is called heron" makes "heron answers on port 8443" an answer to "Which port is the staging
    server on?", if that shares a word with the prompt beside the names, or comes near the floor.
    """
    renamed: set[str] = set()
    told: dict[str, frozenset[str]] = {}
    for naming in filter(_is_naming, found.facts.values()):
        if not (found.evidence[naming.id].rare or gate.verdict(found.evidence[naming.id])):
            continue
        for other in (stems(naming.entity), stems(naming.value)):
            own = stems(_told(naming)) - other
            if not other or other & asking.terms or not own & asking.terms:
                continue
            told = told or {fact.id: stems(_told(fact)) for fact in found.facts.values()}
            for fact_id, words in told.items():
                if fact_id != naming.id and other <= words:
                    cosine = found.evidence[fact_id].cosine
                    near = cosine is not None and cosine >= gate.support * gate.floor
                    if near or (asking.terms & words) - own:
                        renamed |= {fact_id, naming.id}
    return renamed


def _is_naming(fact: Fact) -> bool:
    return bool(_entity(fact) and fact.value and _key(fact).casefold() in NAMING)


def _told(fact: Fact) -> str:
    """Return what a fact says, with the words of its slot."""
    return " ".join((fact.text, _entity(fact), _key(fact), fact.value or ""))


def _entity(fact: Fact) -> str:
    return "" if fact.entity is None or fact.entity.casefold() == "user" else fact.entity


def _key(fact: Fact) -> str:
    return (fact.key or "").replace("_", " ")
