"""Reading facts: by id, by slot, by words. Every query passes the scope guard and the live filter."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.errors import AmbiguousIdError, InputError, NotFoundError, refused
from perdure.ranking.decay import OLD_AGE, OLD_AGE_FACTOR
from perdure.regex import lazy
from perdure.store.fact import SELECT, Fact, folded_slot, from_row, join_tags, live_sql, read_facts
from perdure.store.scope import OWNERS, Audience, Scope
from perdure.store.sql import Connection, Dialect, dialect, marks, run
from perdure.store.vocabulary import LONGEST, alike, fact_frequencies, may_be_misspelt, meant, rarest, stem, weight
from perdure.text.normalise import match_query, match_terms

_CONFIDENCE = (
    "facts.confidence * CASE WHEN facts.expires_at IS NOT NULL AND ? > facts.last_confirmed_at"
    f" + {OLD_AGE} * (facts.expires_at - facts.last_confirmed_at) THEN {OLD_AGE_FACTOR} ELSE 1 END"
)
"""`perdure.ranking.decay.confidence_at` in SQL."""
_BEST_FIRST = f"ORDER BY {_CONFIDENCE} DESC, coalesce(facts.source_date, facts.created_at) DESC, facts.seq DESC LIMIT ?"
_NAME = lazy(r"[^\W_]+(?:'[^\W_]+)*")
SLOT_WORDS = 3
MAX_NAME_WORDS = 60
"""A question's slots are looked for in its first words, up to so many in a row."""
MIN_PREFIX = 8
MISSPELT = 4
"""Unknown words of a query that are looked up among the known ones: each costs a walk through those of its letter."""
COMMON = 64
"""A word in so many facts need not be counted further."""
RARE = 3
"""A word in at most so many facts is rare: it names something."""


@dataclass(frozen=True, slots=True)
class View:
    """What a reader may see: whose facts, and of which time."""

    audience: Audience
    now: float  # the time of asking, in epoch seconds
    as_of: float | None = None  # answer as of this time instead
    include_superseded: bool = False  # also former versions
    tag: str | Sequence[str] | None = None  # only facts with this tag, or with all of these
    channels: Collection[str] | None = None  # only facts that came in by these channels; None: any
    approved_only: bool = False  # leave out what is pending review or was rejected
    everything: bool = False  # also what is forgotten or expired; for changing it, never for an answer

    def sql(self, dialect: Dialect) -> tuple[str, tuple[Any, ...]]:
        """Return the condition on `facts` that holds for what may be seen, and its values."""
        scope, scope_values = self.audience.sql(dialect.in_scopes)
        live, live_values = live_sql(self.now, as_of=self.as_of, include_superseded=self.include_superseded)
        condition, values = f"{scope} AND {live}", (*scope_values, *live_values)
        if self.everything:
            condition, values = scope, scope_values
        if not isinstance(self.as_of, int | float | None):
            raise InputError(f"as_of is {self.as_of!r}; give epoch seconds")
        if self.tag is not None:
            wanted = [join_tags([tag]) for tag in ([self.tag] if isinstance(self.tag, str) else self.tag)]
            if not wanted or "" in wanted:
                raise InputError("the tag is empty; name one, or leave it out")
            condition += " AND instr(',' || facts.tags || ',', ?) > 0" * len(wanted)
            values += tuple(f",{tag}," for tag in wanted)
        if self.channels is not None:
            condition += f" AND facts.channel IN ({marks(self.channels)})"
            values += tuple(self.channels)
        if self.approved_only:
            condition += " AND facts.review_state = 'approved'"
        return condition, values


@dataclass(frozen=True, slots=True)
class LexicalHit:
    """A fact found by words."""

    fact: Fact
    score: float  # BM25 with its sign turned, so that more is better; comparable within one query only
    coverage: float  # share of the query's weight that its words carry, 0 to 1; comparable between queries
    rare: bool  # whether one of the words is rare in this store


@dataclass(frozen=True, slots=True)
class Lexical:
    """What the words of a query brought."""

    hits: Sequence[LexicalHit]  # the facts, best first
    counts: Mapping[str, int]  # in how many facts each term stands; of the rarest, of those that may be seen
    meant: Mapping[str, str]  # of terms that stand nowhere, the known stem that each is a misspelling of


def by_ids(connection: Connection, ids: Iterable[str], view: View) -> dict[str, Fact]:
    """Return those of the facts that may be seen."""
    wanted = list(ids)
    found = seen(connection, view, f"facts WHERE facts.id IN ({marks(wanted)})", wanted)
    return {fact.id: fact for fact in found}


def every(connection: Connection, view: View) -> list[Fact]:
    """Return all facts that may be seen."""
    return seen(connection, view, "facts WHERE TRUE", ())


def newest(connection: Connection, view: View, limit: int) -> list[Fact]:
    """Return up to `limit` facts that may be seen, those that were stored last first."""
    return seen(connection, view, "facts WHERE TRUE", (), "ORDER BY facts.seq DESC LIMIT ?", (limit,))


def counted(connection: Connection, view: View) -> int:
    """Return how many facts may be seen."""
    condition, values = view.sql(dialect(connection))
    return int(run(connection, f"SELECT count(*) FROM facts WHERE {condition}", values)[0][0])


def said_at(connection: Connection, view: View, at: float, session: str | None) -> list[Fact]:
    """Return the facts that may be seen and were said at a time, epoch seconds, in a session."""
    source = "facts WHERE facts.source_date = ? AND facts.provenance_session IS NOT DISTINCT FROM ?"
    return seen(connection, view, source, (at, session))


def seen(
    connection: Connection, view: View, source: str, values: Sequence[Any], rest: str = "", last: Sequence[Any] = ()
) -> list[Fact]:
    """Return facts that may be seen, from tables under a condition, with the `rest` of the statement behind it."""
    condition, bound = view.sql(dialect(connection))
    return read_facts(connection, f"{source} AND {condition} {rest}", (*values, *bound, *last))


def ids(connection: Connection, view: View) -> set[str]:
    """Return the ids of all facts that may be seen."""
    condition, values = view.sql(dialect(connection))
    return {row[0] for row in run(connection, f"SELECT facts.id FROM facts WHERE {condition}", values)}


def by_prefix(connection: Connection, prefix: object, view: View) -> Fact:
    """Return the fact with this id, or with the only id that begins so; or the one whose id something has."""
    prefix = getattr(prefix, "id", prefix)
    if not isinstance(prefix, str):
        raise refused(prefix, "a memory, or its id as a text", "id")
    prefix = prefix.strip().lower()
    if len(prefix) < MIN_PREFIX or not set(prefix) <= set("0123456789abcdef-"):
        raise InputError(f"id {prefix[:40]!r} must be at least {MIN_PREFIX} hex digits of a fact's id")
    # By its id first: otherwise all that the caller may see is looked through.
    source = "facts WHERE facts.seq IN (SELECT seq FROM facts WHERE id >= ? AND id < ?)"
    found = seen(connection, view, source, (prefix, prefix + "g"), "LIMIT 2")
    if not found:
        raise NotFoundError(f"no fact has the id {prefix[:40]}; a search or a list shows ids")
    if len(found) > 1:
        raise AmbiguousIdError(f"several facts have an id that begins with {prefix[:40]}; give more digits")
    return found[0]


def lookup(
    connection: Connection, entity: str, key: str | None, view: View, limit: int = 20, others: Iterable[str] = ()
) -> list[Fact]:
    """Return the facts in a slot, in whatever case it is written: most confident first, then newest.

    `others` are further names of the entity.
    """
    slot_values = [folded_slot(name) for name in (entity, *others)]
    slot = f"facts.entity_folded IN ({marks(slot_values)})"
    if key is not None:
        slot += " AND facts.key_folded = ?"
        slot_values.append(folded_slot(key))
    return seen(connection, view, f"facts WHERE {slot}", slot_values, _BEST_FIRST, (view.now, limit))


def named(connection: Connection, question: str, view: View, limit: int = 10) -> list[Fact]:
    """Return the facts whose slot a question names, entity and key word by word: most confident first, then newest.

    The user's own slots are named by "my": "my sister's birthday" does not name the user's birthday.
    """
    words = [word.removesuffix("'s") for word in _NAME.findall(folded_slot(question) or "")[:MAX_NAME_WORDS]]
    sizes = range(1, SLOT_WORDS + 1)
    groups = {" ".join(words[at : at + size]) for at in range(len(words)) for size in sizes}
    own = {" ".join(words[at + 1 : at + 1 + size]) for at, word in enumerate(words) if word == "my" for size in sizes}
    source = (
        f"facts {dialect(connection).by_index('facts_entity')}"
        " WHERE facts.entity_folded IN (SELECT value FROM json_each(?))"
        " AND facts.key_folded IN (SELECT value FROM json_each(?))"
    )
    values = (json.dumps(sorted(groups | {"user"})), json.dumps(sorted(groups)))
    facts = seen(connection, view, source, values, _BEST_FIRST, (view.now, 2 * limit))
    return [fact for fact in facts if folded_slot(fact.entity) != "user" or folded_slot(fact.key) in own][:limit]


def enumerated(connection: Connection, audience: Audience) -> Audience:
    """Return an audience that names what it reads, for an index that keeps its scopes apart."""
    if audience != OWNERS:
        return audience
    condition, values = audience.sql(dialect(connection).in_scopes)
    rows = run(connection, f"SELECT DISTINCT scope, scope_target FROM facts WHERE {condition}", values)
    return Audience(frozenset(Scope(*row) for row in rows), audience.home)


def by_hash(connection: Connection, normalized_hash: str, view: View) -> list[Fact]:
    """Return the facts whose normalised text is the same."""
    return seen(connection, view, "facts WHERE facts.normalized_hash = ?", (normalized_hash,))


def by_phrases(connection: Connection, phrases: Iterable[str], view: View, limit: int) -> list[Fact]:
    """Return facts that hold one of the phrases, each a few words in a row: the latest first."""
    # A phrase of FTS5 stands in double quotes; in these there are none.
    match = " OR ".join('"' + phrase.replace('"', " ") + '"' for phrase in phrases)
    return seen(connection, view, *by_words(connection, match), "ORDER BY facts.seq DESC LIMIT ?", (limit,))


def lexical(connection: Connection, query: str, view: View, limit: int) -> Lexical:
    """Return the facts that share words with the query, best first; a misspelt word counts as the one it means."""
    terms = match_terms(query, limit=LONGEST)
    counts = fact_frequencies(connection, terms)
    meant = _meant(connection, [term for term in terms if not counts[term]], view)
    counts = {meant.get(term, term): count for term, count in counts.items()}
    counts |= fact_frequencies(connection, meant.values())
    counts, rows_of = _counted(connection, counts, view)
    weights = {term: weight(count) for term, count in counts.items()}
    # What is in no fact at all still counts in the whole, or one shared word would look like an answer.
    total = sum(weights.values())
    searched = rarest({term: count for term, count in counts.items() if count})
    if not searched:
        return Lexical((), counts, meant)
    condition, values = view.sql(dialect(connection))
    source, match = by_words(connection, match_query(searched))
    rank, ranked = dialect(connection).rank(connection, match_query(searched))
    sql = f"SELECT {SELECT}, facts.seq, {rank} AS rank FROM {source} AND {condition} ORDER BY rank LIMIT ?"
    rows = run(connection, sql, (*ranked, *match, *values, limit))
    found = {row[-2]: (from_row(row[:-2]), -row[-1]) for row in rows}
    for term in searched:
        if term not in rows_of:
            rows_of[term] = _holding(connection, term, list(found))
    hits = []
    for seq, (fact, score) in found.items():
        held = [term for term in searched if seq in rows_of[term]]
        covered = sum(weights[term] for term in held)
        rare = any(counts[term] <= RARE for term in held)
        hits.append(LexicalHit(fact, score, min(1.0, covered / total) if total else 0.0, rare))
    return Lexical(hits, counts, meant)


def _meant(connection: Connection, unknown: Sequence[str], view: View) -> dict[str, str]:
    """Return of the first misspelt terms the known stem that each means: one that stands in a fact that may be seen."""
    found = {}
    for term in [term for term in unknown if may_be_misspelt(term)][:MISSPELT]:
        for near in meant(stem(term), alike(connection, stem(term))):
            if _visible(connection, near, view):
                found[term] = near
                break
    return found


def _counted(
    connection: Connection, counts: dict[str, int], view: View
) -> tuple[dict[str, int], dict[str, frozenset[int]]]:
    """Return how many facts hold each term that is counted, and the rows of each term whose rows are all known.

    Of the rarest terms, which decide, only what the view shows is counted: what others have stored must not
    change what comes up here. Their weight will be that in a store of typical size, whatever the size of this one:
    counting all would cost more than the search, and in a small store the words that it lacks would outweigh
    those that it has.
    """
    rows_of: dict[str, frozenset[int]] = {}
    for term in rarest({term: count for term, count in counts.items() if count}):
        rows = _visible(connection, term, view)
        counts[term] = len(rows)
        if len(rows) < COMMON:
            rows_of[term] = rows
    return counts, rows_of


def _visible(connection: Connection, term: str, view: View) -> frozenset[int]:
    """Return up to `COMMON` rows that hold a term and may be seen."""
    condition, values = view.sql(dialect(connection))
    # One row of JSON: row by row, SQLite and Python would hand each other the interpreter's lock each time.
    source, match = by_words(connection, match_query([term]))
    sql = f"SELECT json_group_array(seq) FROM (SELECT facts.seq FROM {source} AND {condition} LIMIT ?) AS held"
    return frozenset(json.loads(run(connection, sql, (*match, *values, COMMON))[0][0]))


def _holding(connection: Connection, term: str, seqs: Collection[int]) -> frozenset[int]:
    """Return which of the rows hold a term."""
    # The plus: all rows of a rare term are read quicker than a few are looked up in its list.
    held = "SELECT CAST(value AS BIGINT) FROM json_each(?)"
    condition, match = dialect(connection).matching(match_query([term]))
    sql = f"SELECT rowid FROM facts_fts WHERE {condition} AND +rowid IN ({held})"
    return frozenset(seq for (seq,) in run(connection, sql, (*match, json.dumps(list(seqs)))))


def by_words(connection: Connection, match: str) -> tuple[str, tuple[Any, ...]]:
    """Return the facts whose words fit a query of FTS5, as tables under a condition, and its values."""
    condition, values = dialect(connection).matching(match)
    return f"facts_fts JOIN facts ON facts.seq = facts_fts.rowid WHERE {condition}", values
