"""Reading facts: by id, by slot, by words. Every query passes the scope guard and the live filter."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from perdure.errors import InputError, StoreUnavailableError
from perdure.ranking.decay import OLD_AGE, OLD_AGE_FACTOR
from perdure.regex import lazy
from perdure.store import short_ids
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
_SAID = ("add", "reinforce")
"""In the journal: that a fact was said."""
_NAME = lazy(r"[^\W_]+(?:'[^\W_]+)*")
SLOT_WORDS = 3
MAX_NAME_WORDS = 60
"""A question's slots are looked for in its first words, up to so many in a row."""
MISSPELT = 4
"""Unknown words of a query that are looked up among the known ones: each costs a walk through those of its letter."""
COMMON = 64
"""A word in so many facts need not be counted further."""
RARE = 3
"""A word in at most so many facts is rare: it names something."""
DEEPER = (2, 8)
"""So many times more facts than wanted are asked of another index: of some the reader may see nothing."""
FTS5, AS_SET = "fts5", "as set"


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
    without: str | None = None  # leave out what was derived in this way
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
                raise InputError("the tag is empty; give one, or leave it out")
            condition += " AND instr(',' || facts.tags || ',', ?) > 0" * len(wanted)
            values += tuple(f",{tag}," for tag in wanted)
        if self.channels is not None:
            condition += f" AND facts.channel IN ({marks(self.channels)})"
            values += tuple(self.channels)
        if self.approved_only:
            condition += " AND facts.review_state = 'approved'"
        if self.without is not None:
            condition += " AND facts.extraction_method IS DISTINCT FROM ?"
            values += (self.without,)
        return condition, values


@dataclass(frozen=True, slots=True)
class LexicalHit:
    """A fact found by words."""

    fact: Fact
    score: float  # BM25 with its sign turned, so that more is better; comparable within one query only
    coverage: float  # share of the query's weight that its words carry, 0 to 1; comparable between queries
    rare: bool  # whether one of the words is rare in this store


@runtime_checkable
class WordIndex(Protocol):
    """Finds facts by words, beside the database's own index of words.

    What it returns is a hint: the reader checks each hit against the database, so it may lag behind, but not leak.
    """

    name: str  # in receipts

    def words(self, terms: Sequence[str], view: View, limit: int) -> Sequence[tuple[str, float]]:
        """Return up to `limit` facts that hold one of the terms, best first: each id, and its BM25 as FTS5 has it.

        Raises:
            StoreUnavailableError: it cannot answer now; the message says why.
        """


@dataclass(frozen=True, slots=True)
class Lexical:
    """What the words of a query brought."""

    hits: Sequence[LexicalHit]  # the facts, best first
    counts: Mapping[str, int]  # in how many facts each term stands; of the rarest, of those that may be seen
    meant: Mapping[str, str]  # of terms that stand nowhere, the known stem that each is a misspelling of
    by: str = FTS5  # the name of the index that found them
    why: str = AS_SET  # why it was that one


def by_ids(connection: Connection, ids: Iterable[str], view: View) -> dict[str, Fact]:
    """Return those of the facts that may be seen."""
    wanted = list(ids)
    # By their ids first: of many, all that the caller may see would be looked through.
    source = f"facts WHERE facts.seq IN (SELECT seq FROM facts WHERE id IN ({marks(wanted)}))"
    found = seen(connection, view, source, wanted)
    return {fact.id: fact for fact in found}


def every(connection: Connection, view: View) -> list[Fact]:
    """Return all facts that may be seen."""
    return seen(connection, view, "facts WHERE TRUE", ())


def newest(connection: Connection, view: View, limit: int) -> list[Fact]:
    """Return up to `limit` facts that may be seen, those that were stored last first."""
    return seen(connection, view, "facts WHERE TRUE", (), "ORDER BY facts.seq DESC LIMIT ?", (limit,))


def of_projects(connection: Connection, view: View, limit: int) -> list[Fact]:
    """Return up to `limit` facts of projects that may be seen, those that were stored last first."""
    source = f"facts {dialect(connection).by_index('facts_scope')} WHERE facts.scope = 'project'"
    return seen(connection, view, source, (), "ORDER BY facts.seq DESC LIMIT ?", (limit,))


def told_in(connection: Connection, fact_ids: Collection[str], host: str) -> set[str]:
    """Return which of the facts were said first, or once more, in a host."""
    journal = f"SELECT DISTINCT fact_id FROM journal WHERE fact_id IN ({marks(fact_ids)})"
    return {
        row[0] for row in run(connection, f"{journal} AND host = ? AND action IN (?, ?)", (*fact_ids, host, *_SAID))
    }


def counted(connection: Connection, view: View) -> int:
    """Return how many facts may be seen."""
    condition, values = view.sql(dialect(connection))
    return int(run(connection, f"SELECT count(*) FROM facts WHERE {condition}", values)[0][0])


def forgotten(connection: Connection, view: View, since: float) -> int:
    """Return how many facts, that might be seen otherwise, were forgotten since a time, epoch seconds."""
    condition, values = replace(view, everything=True).sql(dialect(connection))
    sql = f"SELECT count(*) FROM facts WHERE facts.forgotten_at >= ? AND {condition}"
    return int(run(connection, sql, (since, *values))[0][0])


def said_at(connection: Connection, view: View, at: float, session: str | None) -> list[Fact]:
    """Return the facts that may be seen and were said at a time, epoch seconds, in a session."""
    source = "facts WHERE facts.source_date = ? AND facts.provenance_session IS NOT DISTINCT FROM ?"
    return seen(connection, view, source, (at, session))


def captured(connection: Connection, view: View, session: str, since: float) -> list[Fact]:
    """Return the facts that may be seen and were captured in a session since a time, epoch seconds."""
    source = "facts WHERE facts.provenance_session = ? AND facts.created_at >= ?"
    return seen(connection, view, source, (session, since))


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
    """Return the fact with this id, or with the only id that begins so, short or in hex; or whose id something has."""
    near, values = short_ids.condition(short_ids.spans(prefix))
    return short_ids.the_only(seen(connection, view, f"facts WHERE {near}", values, "LIMIT 2"), prefix)


def named_shortly(connection: Connection, ids: Iterable[str], view: View) -> dict[str, str]:
    """Return the shortest names by which a reader finds each of these facts; see `perdure.store.short_ids`."""
    whole = replace(view, everything=True, as_of=None, tag=None, channels=None, approved_only=False)
    return short_ids.short_ids(connection, ids, whole.sql(dialect(connection)))


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
    words, groups = _groups(question)
    sizes = range(1, SLOT_WORDS + 1)
    own = {" ".join(words[at + 1 : at + 1 + size]) for at, word in enumerate(words) if word == "my" for size in sizes}
    source = (
        f"facts {dialect(connection).by_index('facts_entity')}"
        " WHERE facts.entity_folded IN (SELECT value FROM json_each(?))"
        " AND facts.key_folded IN (SELECT value FROM json_each(?))"
    )
    values = (json.dumps(sorted(groups | {"user"})), json.dumps(sorted(groups)))
    facts = seen(connection, view, source, values, _BEST_FIRST, (view.now, 2 * limit))
    return [fact for fact in facts if folded_slot(fact.entity) != "user" or folded_slot(fact.key) in own][:limit]


def entities(
    connection: Connection, question: str, view: View, without: Collection[str] = (), limit: int = 60
) -> list[Fact]:
    """Return the facts whose entity is a word of a question, or a few in a row: most confident first, then newest.

    `without`: entities that are left out, folded.
    """
    named = json.dumps(sorted(_groups(question)[1].difference(without)))
    source = (
        f"facts {dialect(connection).by_index('facts_entity')}"
        " WHERE facts.entity_folded IN (SELECT value FROM json_each(?)) AND facts.key_folded IS NOT NULL"
    )
    return seen(connection, view, source, (named,), _BEST_FIRST, (view.now, limit))


def _groups(question: str) -> tuple[list[str], set[str]]:
    """Return the folded words of a question, and what is made of up to `SLOT_WORDS` of them in a row."""
    words = [word.removesuffix("'s") for word in _NAME.findall(folded_slot(question) or "")[:MAX_NAME_WORDS]]
    sizes = range(1, SLOT_WORDS + 1)
    return words, {" ".join(words[at : at + size]) for at in range(len(words)) for size in sizes}


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


def superseded(connection: Connection, text: str, view: View, since: float, limit: int) -> list[Fact]:
    """Return facts that lost their place since a time, epoch seconds, and share rare words with a text: best first."""
    if not run(connection, "SELECT 1 FROM facts WHERE superseded_at > ? LIMIT 1", (since,)):
        return []
    counts = {term: _held(connection, term) for term in match_terms(text, limit=LONGEST)}
    query = match_query(rarest({term: count for term, count in counts.items() if count}, RARE * COMMON))
    if not query:
        return []
    source, match = by_words(connection, query)
    rank, ranked = dialect(connection).rank(connection, query)
    # Each plus: of all that hold a word neither the row is read nor the rank told but of those.
    gone = f"{source} AND +facts_fts.rowid IN (SELECT seq FROM facts WHERE superseded_at > ?)"
    return seen(connection, view, gone, (*match, since), f"ORDER BY +{rank} LIMIT ?", (*ranked, limit))


def _held(connection: Connection, term: str) -> int:
    """Return in how many facts a term stands, up to `COMMON`: to count all costs as much as a search."""
    condition, match = dialect(connection).matching(match_query([term]))
    sql = f"SELECT count(*) FROM (SELECT rowid FROM facts_fts WHERE {condition} LIMIT ?) AS held"
    return int(run(connection, sql, (*match, COMMON))[0][0])


def lexical(
    connection: Connection, query: str, view: View, limit: int, index: WordIndex | None = None, why: str = AS_SET
) -> Lexical:
    """Return the facts that share words with the query, best first; a misspelt word counts as the one it means.

    They are found by another `index` if it can answer, else by FTS5. How common a word is, the database tells in any
    case. `why`: why there is no other index.
    """
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
        return Lexical((), counts, meant, why=why)
    found, by = {}, FTS5
    if index is not None:
        try:
            found, by = _found_by(index, connection, searched, view, limit), index.name
        except StoreUnavailableError as error:
            why = str(error)
    if by == FTS5:
        found = _found(connection, searched, view, limit)
    rows_of |= _holding(connection, [term for term in searched if term not in rows_of], list(found))
    hits = []
    for seq, (fact, score) in found.items():
        held = [term for term in searched if seq in rows_of[term]]
        covered = sum(weights[term] for term in held)
        rare = any(counts[term] <= RARE for term in held)
        hits.append(LexicalHit(fact, score, min(1.0, covered / total) if total else 0.0, rare))
    return Lexical(hits, counts, meant, by, why)


def _found(connection: Connection, terms: Sequence[str], view: View, limit: int) -> dict[int, tuple[Fact, float]]:
    """Return by their rows the facts that hold one of the terms, best first, with their BM25."""
    condition, values = view.sql(dialect(connection))
    source, match = by_words(connection, match_query(terms))
    rank, ranked = dialect(connection).rank(connection, match_query(terms))
    # Whole rows of the best alone: sorting reads those of all.
    best = f"SELECT facts.seq AS seq, {rank} AS rank FROM {source} AND {condition} ORDER BY rank LIMIT ?"
    sql = (
        f"SELECT {SELECT}, facts.seq, best.rank FROM ({best}) AS best JOIN facts ON facts.seq = best.seq ORDER BY rank"
    )
    rows = run(connection, sql, (*ranked, *match, *values, limit))
    return {row[-2]: (from_row(row[:-2]), -row[-1]) for row in rows}


def _found_by(
    index: WordIndex, connection: Connection, terms: Sequence[str], view: View, limit: int
) -> dict[int, tuple[Fact, float]]:
    """Return the same of another index: what may be seen of the facts that it names."""
    if view.as_of is not None or view.include_superseded or view.everything:
        raise StoreUnavailableError("it covers current memories only")
    if any(" " in term for term in terms):
        raise StoreUnavailableError("it cannot segment scripts without spaces")
    condition, values = view.sql(dialect(connection))
    for asked in (times * limit for times in DEEPER):
        scores = dict(index.words(terms, view, asked))
        named = f"SELECT seq FROM facts WHERE id IN ({marks(scores)})"
        sql = f"SELECT {SELECT}, facts.seq FROM facts WHERE facts.seq IN ({named}) AND {condition}"
        facts = [(row[-1], from_row(row[:-1])) for row in run(connection, sql, (*scores, *values))]
        if len(facts) >= limit or len(scores) < asked:
            best = sorted(facts, key=lambda row: -scores[row[1].id])[:limit]
            return {seq: (fact, scores[fact.id]) for seq, fact in best}
    raise StoreUnavailableError("too few of its hits are visible to the caller")


def _meant(connection: Connection, unknown: Sequence[str], view: View) -> dict[str, str]:
    """Return of the first misspelt terms the known stem that each means: one that stands in a fact that may be seen."""
    found = {}
    for term in [term for term in unknown if may_be_misspelt(term)][:MISSPELT]:
        nearest = meant(stem(term), alike(connection, stem(term)))
        visible = _visible(connection, nearest, view)
        if known := next((near for near in nearest if visible[near]), None):
            found[term] = known
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
    rows_of = _visible(connection, rarest({term: count for term, count in counts.items() if count}), view)
    counts |= {term: len(rows) for term, rows in rows_of.items()}
    return counts, {term: rows for term, rows in rows_of.items() if len(rows) < COMMON}


def _visible(connection: Connection, terms: Sequence[str], view: View) -> dict[str, frozenset[int]]:
    """Return up to `COMMON` rows that hold each term and may be seen."""
    condition, values = view.sql(dialect(connection))
    asked = {term: by_words(connection, match_query([term])) for term in terms}
    found = {term: (f"SELECT facts.seq FROM {source} AND {condition} LIMIT ?", (*match, *values, COMMON))
             for term, (source, match) in asked.items()}  # fmt: skip
    return _rows_of(connection, found)


def _holding(connection: Connection, terms: Sequence[str], seqs: Collection[int]) -> dict[str, frozenset[int]]:
    """Return which of the rows hold each term."""
    asked = {term: dialect(connection).matching(match_query([term])) for term in terms}
    # The plus: all rows of a rare term are read quicker than a few are looked up in its list.
    held, among = "SELECT CAST(value AS BIGINT) FROM json_each(?)", json.dumps(list(seqs))
    found = {term: (f"SELECT rowid AS seq FROM facts_fts WHERE {condition} AND +rowid IN ({held})", (*match, among))
             for term, (condition, match) in asked.items()}  # fmt: skip
    return _rows_of(connection, found)


def _rows_of(connection: Connection, asked: Mapping[str, tuple[str, Sequence[Any]]]) -> dict[str, frozenset[int]]:
    """Return the rows that the statement of each term brings, all in one statement, a row of JSON each.

    Row by row, and statement by statement, SQLite and Python would hand each other the interpreter's lock.
    """
    if not asked:
        return {}
    each = (f"SELECT {at}, json_group_array(seq) FROM ({sql}) AS held" for at, (sql, _) in enumerate(asked.values()))
    rows: dict[int, str] = dict(
        run(connection, " UNION ALL ".join(each), [value for _, values in asked.values() for value in values])
    )
    return {term: frozenset(json.loads(rows[at])) for at, term in enumerate(asked)}


def by_words(connection: Connection, match: str) -> tuple[str, tuple[Any, ...]]:
    """Return the facts whose words fit a query of FTS5, as tables under a condition, and its values."""
    condition, values = dialect(connection).matching(match)
    return f"facts_fts JOIN facts ON facts.seq = facts_fts.rowid WHERE {condition}", values
