"""Physical removal: a fact, its words, vectors and links go, and nothing of their bytes stays in the data folder.

`purge` takes the rows away at once. Old pages and versions can only go when nobody else has the store open:
until then the purge is `pending`, and `certify` brings it to its end. What it looks for is kept masked until then.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.errors import InputError, NotFoundError, StoreUnavailableError
from perdure.maintenance import remote_purges as elsewhere
from perdure.maintenance.certificate import BEYOND, MIN_TEXT, Needles, Searched, beyond, pieces, search
from perdure.maintenance.exports import take_out
from perdure.parts import part
from perdure.store import llm, receipts, triggers
from perdure.store.folder import STAGES, alone
from perdure.store.inbox_lines import drop as drop_damaged
from perdure.store.inbox_lines import unadopted
from perdure.store.seals import bury, seal
from perdure.store.short_ids import condition, spans, the_only
from perdure.store.sql import Backend, Connection, marks, run
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.text.pluralize import counted

PENDING = "pending"
CERTIFIED = "certified"
Place = tuple[str, str, str]
_BODIES: tuple[Place, ...] = (("receipts", "id", "body"), ("inbox_parked", "entry_id", "entry"))
# A pattern may be of a word of each of its facts. What a person linked by hand is not derived in this sense.
_DERIVED = (
    "SELECT facts.id FROM memory_links JOIN facts ON facts.id = source_fact_id WHERE target_fact_id = ?"
    " AND link_type = 'DERIVED_FROM' AND extraction_method IN ('reflected', 'consolidated')"
)
_TEXTS = ("text", "why", "summary", "value", "metadata", "entity", "key")


@dataclass(frozen=True, slots=True)
class Doomed:
    """A fact that a purge removes, and why: "requested", "the same text", "derived from it" or "contains the text"."""

    id: str
    why: str


@dataclass(frozen=True, slots=True)
class Purge:
    """The progress of a purge."""

    id: str
    asked_at: float  # epoch seconds
    state: str  # "pending" or "certified"
    facts: tuple[str, ...]  # ids of what was removed
    waiting: str | None = None  # what a pending purge waits for
    files: int = 0  # number of files, and bytes, searched for the certificate
    size: int = 0
    # files of the data folder that still contain the text and are not cleaned, with their kind
    kept: tuple[tuple[str, str], ...] = ()
    damaged: int = 0  # how many turns went as well that were damaged and kept aside: no search finds a text in them
    beyond: tuple[str, ...] = BEYOND  # what this search cannot reach


def resolve(connection: Connection, prefix: str) -> str:
    """Return the only id that begins so, of any scope, forgotten and superseded facts included."""
    near, values = condition(spans(prefix))
    [found] = the_only(run(connection, f"SELECT id FROM facts WHERE {near} LIMIT 2", values), prefix)
    return str(found)


def holding(connection: Connection, text: str) -> list[str]:
    """Return the ids of all facts that hold a text in any column, in any case of ASCII letters."""
    quoted = json.dumps(text, ensure_ascii=False)[1:-1]
    forms = [(name, quoted if name == "metadata" else text) for name in _TEXTS]
    condition = " OR ".join(f"instr({name}, ?) > 0 OR instr(lower({name}), lower(?)) > 0" for name, _ in forms)
    values = [form for _, form in forms for _ in range(2)]
    return [row[0] for row in run(connection, f"SELECT id FROM facts WHERE {condition} ORDER BY seq", values)]


def plan(connection: Connection, fact_ids: Iterable[str]) -> list[Doomed]:
    """Return what a purge of these facts removes: them, and every fact that says or carries the same."""
    doomed: dict[str, Doomed] = {}
    for fact_id in fact_ids:
        rows = run(connection, "SELECT text, normalized_hash FROM facts WHERE id = ?", (fact_id,))
        if not rows:
            raise NotFoundError(f"there is no memory {fact_id}; it may have been purged already")
        text, digest = rows[0]
        doomed[fact_id] = Doomed(fact_id, "requested")
        for (same,) in run(connection, "SELECT id FROM facts WHERE normalized_hash = ?", (digest,)):
            doomed.setdefault(same, Doomed(same, "the same text"))
        for (derived,) in run(connection, _DERIVED, (fact_id,)):
            doomed.setdefault(derived, Doomed(derived, "derived from it"))
        for carrier in holding(connection, text) if len(text) >= MIN_TEXT else ():
            doomed.setdefault(carrier, Doomed(carrier, "contains the text"))
    return list(doomed.values())


def bodies(database: Backend) -> tuple[Place, ...]:
    """Return the columns beside the facts in which JSON holds what was said or asked: table, key and column."""
    return (*_BODIES, ("inbox", "entry_id", "entry")) if database.shared else _BODIES


def purge(store: Store, fact_ids: Sequence[str], author: Author) -> Purge:
    """Remove facts for good, over all scopes: they are in no table any more. `certify` until the purge is certified."""
    if not fact_ids:
        raise InputError("no memory is given; give at least one id")
    name = str(uuid.uuid4())
    with store.write(author) as tx:
        ids = [doomed.id for doomed in plan(tx.connection, fact_ids)]
        needles = needles_of(tx.connection, ids)
        for fact_id in ids:
            [(text,)] = run(tx.connection, "SELECT text FROM facts WHERE id = ?", (fact_id,))
            bury(tx.connection, store.key, text)
            tx.remove(fact_id, "purge", {"purge": name})
            for aimed in triggers.drop_holding(tx.connection, text) if len(text) >= MIN_TEXT else ():
                tx.journal("triggers", aimed, detail={"added": [], "removed": []})
        needles = without_survivors(tx.connection, needles)
        _scrub(tx.connection, bodies(store.database), needles.texts, ids)
        detail = json.dumps({"facts": ids, "waiting": "not started yet"})
        row = (name, tx.now, PENDING, detail, needles.masked(store.key, name))
        run(tx.connection, "INSERT INTO purges VALUES (?, ?, ?, ?, ?)", row)
        seal(tx.connection)
    # What keeps them away for good must not die with facts.db.
    store.remember(durable=True)
    return next(purge for purge in purges(store) if purge.id == name)


def purges(store: Store) -> list[Purge]:
    """Return all purges of a store, oldest first."""
    rows = store.database.query(run, "SELECT id, asked_at, state, detail FROM purges ORDER BY asked_at, id")
    out_of_sight = beyond(shared=store.database.shared, elsewhere=store.objects is not None)
    return [_purge(*row, beyond=out_of_sight) for row in rows]


def certify(store: Store, clean: Callable[[Sequence[str]], None] = lambda texts: None) -> list[Purge]:
    """Bring pending purges to their end, if nobody else has the store open, and return them; repeatable after a kill.

    `clean` takes texts out of what is kept beside the store, as the index of files and conversations is.
    """
    with store.database.read() as connection:
        rows = run(connection, "SELECT id, needles, detail FROM purges WHERE state = ?", (PENDING,))
        now, before = elsewhere.state(connection), elsewhere.state(connection, certified=True)
    if not rows:
        return []
    needles = [Needles.unmasked(masked, store.key, name) for name, masked, _ in rows]
    fact_ids = [fact_id for *_, detail in rows for fact_id in json.loads(detail)["facts"]]
    searched, damaged = None, 0
    with elsewhere.turn(), alone(store.folder) as free:
        if free and not all(json.loads(detail).get("scrub") for *_, detail in rows):
            damaged = drop_damaged(store.folder / "inbox")
        waiting = _clean(store, needles, fact_ids, clean) if free else "another process has the store open"
        if waiting is None:
            searched = search(store.folder, needles, shared=store.database.shared)
            waiting = f"the text is still in {', '.join(searched.ours)}" if searched.ours else None
        names = [name for name, *_ in rows]
        _report(store, names, waiting, searched, damaged)
        if waiting is None and store.database.shared and elsewhere.followed(store.folder) in (now, before):
            # Nothing is left here of what others have purged either.
            elsewhere.note(store.folder, now._replace(pending=0))
    return [purge for purge in purges(store) if purge.id in names]


def _clean(
    store: Store, needles: Sequence[Needles], fact_ids: Sequence[str], clean: Callable[[Sequence[str]], None]
) -> str | None:
    """Make old bytes go; return what has to be waited for."""
    for stage in STAGES:
        # A kill has left it there.
        shutil.rmtree(store.folder / stage, ignore_errors=True)
    store.inbox.empty()
    if store.inbox.waiting:
        return f"{counted(store.inbox.waiting, 'turn')} still to be captured"
    held = search(store.folder, needles, ["inbox"]).ours or unadopted(store.folder / "inbox")
    if held:
        return f"{', '.join(held)} has turns of a process that has exited; a running host captures them within a minute"
    texts = [text for some in needles for text in some.texts]
    if store.database.shared:
        # Other machines went on: since the facts were removed a turn may have come in, or been parked.
        store.database.apply(_scrub, bodies(store.database), texts)
    clean(texts)
    take_out(store, fact_ids, patterns=[pattern for some in needles for pattern in some.patterns()])
    # LanceDB compresses texts, keeps old versions, and leaves a deleted row in its file even when it merges files: no
    # search of its files says anything, and the table is built anew.
    try:
        part("lance.drift").drop_index(store)
    except StoreUnavailableError:
        return "the object storage with the LanceDB table cannot be reached; see lance_url"
    return store.database.shed()


def _report(store: Store, names: Iterable[str], waiting: str | None, searched: Searched | None, damaged: int) -> None:
    certified = waiting is None and searched is not None
    found: dict[str, Any] = {"waiting": waiting, "kept": sorted(searched.kept.items()) if searched else []}
    if damaged:
        found["damaged"] = damaged
    if searched is not None:
        found |= {"files": searched.files, "size": searched.size}
    with store.database.write() as connection:
        for name in names:
            run(connection, "UPDATE purges SET detail = json_patch(detail, ?) WHERE id = ?", (json.dumps(found), name))
            if certified:
                run(connection, "UPDATE purges SET state = ?, needles = NULL WHERE id = ?", (CERTIFIED, name))
    if certified:
        store.database.shed(rows=False)


def needles_of(connection: Connection, ids: Sequence[str]) -> Needles:
    """Return what must not be found any more once these facts have gone or changed."""
    rows = run(connection, f"SELECT text, why, summary, value FROM facts WHERE id IN ({marks(ids)})", ids)
    rows += run(connection, f"SELECT text FROM triggers WHERE fact_id IN ({marks(ids)})", ids)
    vectors = run(connection, f"SELECT vector FROM vectors WHERE fact_id IN ({marks(ids)})", ids)
    of_triggers = "SELECT v.vector FROM trigger_vectors v JOIN triggers t ON t.id = v.trigger_id"
    vectors += run(connection, f"{of_triggers} WHERE t.fact_id IN ({marks(ids)})", ids)
    texts = dict.fromkeys(text for row in rows for text in row if text and len(text) >= MIN_TEXT)
    return Needles(tuple(texts), tuple(dict.fromkeys(row[0] for row in vectors)))


def without_survivors(connection: Connection, needles: Needles) -> Needles:
    """Leave out what facts that stay rightly hold: a common reason, a passage that two long texts share."""
    texts = dict.fromkeys(piece for text in needles.texts for piece in pieces(text))
    told = "SELECT 1 FROM triggers WHERE instr(text, ?) > 0"
    kept = tuple(text for text in texts if not holding(connection, text) and not run(connection, told, (text,)))
    same = "SELECT 1 FROM vectors WHERE vector = ? UNION ALL SELECT 1 FROM trigger_vectors WHERE vector = ?"
    vectors = tuple(v for v in needles.vectors if not run(connection, same, (v, v)))
    return Needles(kept, vectors)


def _scrub(connection: Connection, places: Sequence[Place], texts: Sequence[str], ids: Sequence[str] = ()) -> None:
    """Take the texts out of receipts and turns, and whole questions that brought one of the facts up.

    Of other wordings of questions nobody knows what they name, so all of them go.
    """
    bringing_up = receipts.naming(connection, ids)
    for table, name, column in places:
        for row_id, body in run(connection, f"SELECT {name}, {column} FROM {table}"):
            before = json.loads(body)
            after = _without(before, texts)
            if row_id in bringing_up:
                after["query"] = ""
                after.pop("expansion", None)
            if after != before:
                # In ASCII, as half a character in a turn could not be written else.
                sql = f"UPDATE {table} SET {column} = ? WHERE {name} = ?"
                run(connection, sql, (json.dumps(after), row_id))
    llm.clear_said(connection)


def _without(value: Any, texts: Sequence[str]) -> Any:
    match value:
        case str():
            for text in texts:
                value = value.replace(text, "")
            return value
        case dict():
            return {name: _without(item, texts) for name, item in value.items()}
        case list():
            return [_without(item, texts) for item in value]
        case _:
            return value


def _purge(name: str, asked_at: float, state: str, detail: str, *, beyond: tuple[str, ...]) -> Purge:
    found = json.loads(detail)
    kept = tuple((path, kind) for path, kind in found.get("kept", ()))
    waiting = found.get("waiting") if state == PENDING else None
    counts = found.get("files", 0), found.get("size", 0)
    damaged = found.get("damaged", 0)
    return Purge(name, asked_at, state, tuple(found["facts"]), waiting, *counts, kept, damaged, beyond)
