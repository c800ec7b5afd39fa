"""Whatever a caller asks, it hears of nothing whose scope it may not read, and not even that there is such a thing.

An entry point of the facade joins by one line in `READS` or `WRITES`.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.api.admin import Admin
from perdure.api.aliases import Aliases
from perdure.api.files import Files
from perdure.api.memory import Memory
from perdure.api.turn_history import PastTurn
from perdure.api.turns import Turns
from perdure.api.upkeep import Proposals, Upkeep
from perdure.errors import NotFoundError, PerdureError
from perdure.hooks.types import TurnContext
from perdure.store.listing import Filter
from perdure.store.scope import Scope
from perdure.store.sql import run
from tests.kit import for_each
from tests.scopes.conftest import CALLERS, START, Canary, House

Entry = Callable[[Memory, Canary, TurnContext], object]


def added_and_removed(memory: Memory, folder: Path) -> bool:
    memory.files.add(folder)
    return memory.files.remove(folder)


def explained(memory: Memory, word: str) -> object:
    """Return why what came up did, without what differs from turn to turn."""
    memory.recall(f"Where does the {word} sing?")
    return [(each.id, each.text, each.verdict) for each in memory.why().considered]


def brought(turns: Iterable[PastTurn]) -> object:
    """Return what came up in turns, which the caller has asked for with words of its own."""
    return sorted({(turn.texts, tuple(sorted(turn.came)), tuple(sorted(turn.marks))) for turn in turns})


def worked(memory: Memory, canary: Canary, context: TurnContext) -> bool:
    """Tell what an agent has done in a turn."""
    call = {"type": "tool_use", "id": "a", "input": {"command": canary.word}}
    result = {"role": "tool", "tool_call_id": "a", "content": "", "exit_code": 0}
    memory.turns.did(lambda: [{"role": "assistant", "content": [call]}, result], context)
    return memory.settle()


def marked(memory: Memory, canary: Canary, context: TurnContext) -> object:
    """Mark a canary in a turn of the caller's own."""
    return [memory.turns.mark(turn.id, canary.facts[1], True).marks for turn in played(memory, context)]


def played(memory: Memory, context: TurnContext) -> Sequence[PastTurn]:
    """Play a turn and return it."""
    memory.turns.before("Who sings in the harbour?", context)
    memory.settle()
    return memory.turns.past(1)


def refused(memory: Memory, canary: Canary) -> str:
    """Return why a canary did not come up."""
    memory.recall(f"Where does the {canary.word} sing?")
    return memory.why_not(canary.facts[1])


READS: Mapping[str, Entry] = {
    "Memory.get": lambda memory, canary, context: memory.get(canary.facts[1]),
    "Memory.get, former version": lambda memory, canary, context: memory.get(canary.facts[0]),
    "Memory.get, beginning": lambda memory, canary, context: memory.get(canary.facts[1][:8]),
    "Memory.get_all": lambda memory, canary, context: memory.get_all(limit=1000),
    "Memory.get_all, tag": lambda memory, canary, context: memory.get_all(tag=canary.tag),
    "Memory.search": lambda memory, canary, context: memory.search(f"Where does the {canary.word} sing?", limit=100),
    "Memory.history": lambda memory, canary, context: memory.history(canary.facts[1][:8]),
    "Admin.has": lambda memory, canary, context: memory.admin.has(canary.facts[1][:8]),
    "Memory.lookup": lambda memory, canary, context: memory.lookup(canary.entity),
    "Memory.lookup, key": lambda memory, canary, context: memory.lookup(canary.entity, "alias"),
    "Memory.lookup, as of": lambda memory, canary, context: memory.lookup(canary.entity, as_of=START + 3000.0),
    "Memory.lookup, superseded": lambda memory, canary, context: memory.lookup(canary.entity, include_superseded=True),
    "Memory.lookup, tag": lambda memory, canary, context: memory.lookup(canary.entity, tag=canary.tag),
    "Memory.recall": lambda memory, canary, context: memory.recall(f"Where does the {canary.word} sing?"),
    "Memory.recall, text": lambda memory, canary, context: memory.recall(f"The {canary.word} sings in the harbour."),
    "Memory.recall, tag": lambda memory, canary, context: memory.recall("sings in the harbour", tag=canary.tag),
    "Memory.recall, as of": lambda memory, canary, context: memory.recall(canary.word, as_of=START + 3000.0),
    "Memory.recall, superseded": lambda memory, canary, context: memory.recall(canary.word, include_superseded=True),
    "Turns.before": lambda memory, canary, context: memory.turns.before(f"Who is {canary.word}?", context),
    "Turns.past": lambda memory, canary, context: brought(played(memory, context)),
    "Turns.one": lambda memory, canary, context: brought(memory.turns.one(turn.id) for turn in played(memory, context)),
    "Turns.replay": lambda memory, canary, context: sorted(
        {each.text for turn in played(memory, context) for each in memory.turns.replay(turn.id).considered}
    ),
    "Memory.why": lambda memory, canary, context: explained(memory, canary.word),
    "Memory.why_not": lambda memory, canary, context: refused(memory, canary),
    "Admin.evaluate": lambda memory, canary, context: memory.admin.evaluate(2).to_dict(),
    "Aliases.list": lambda memory, canary, context: memory.aliases.list(),
    "Aliases.remove, dry": lambda memory, canary, context: memory.aliases.remove(canary.word, dry_run=True),
    "Memory.lookup, other name": lambda memory, canary, context: memory.lookup(canary.word),
    "Memory.related": lambda memory, canary, context: memory.related(canary.facts[1], 10),
    "Memory.related, as of": lambda memory, canary, context: memory.related(canary.facts[1], 10, as_of=START + 3000.0),
    "Admin.triggers": lambda memory, canary, context: memory.admin.triggers(canary.facts[1]),
    "Memory.recall, trigger": lambda memory, canary, context: memory.recall(
        f"Who nests beside the {canary.word}? Where does it sing?"
    ),
    "Admin.live_ids": lambda memory, canary, context: sorted(memory.admin.live_ids()),
    "Memory.status": lambda memory, canary, context: memory.status(),
    "Admin.changes": lambda memory, canary, context: memory.admin.changes(),
    "Admin.list": lambda memory, canary, context: memory.admin.list(limit=1000),
    "Admin.list, superseded": lambda memory, canary, context: memory.admin.list(limit=1000, include_superseded=True),
    "Admin.list, as of": lambda memory, canary, context: memory.admin.list(limit=1000, as_of=START + 3000.0),
    "Admin.list, tag": lambda memory, canary, context: memory.admin.list(tag=canary.tag),
    "Admin.list, entity": lambda memory, canary, context: memory.admin.list(Filter(entity=canary.entity)),
    "Admin.list, scope": lambda memory, canary, context: memory.admin.list(Filter(scope=canary.scope)),
    "Admin.search": lambda memory, canary, context: memory.admin.search(f"Where does the {canary.word} sing?"),
    "Admin.search, superseded": lambda memory, canary, context: memory.admin.search(
        "sings in the harbour", limit=1000, include_superseded=True
    ),
    "Admin.search, scope": lambda memory, canary, context: memory.admin.search("sings", Filter(scope=canary.scope)),
    "Admin.inventory": lambda memory, canary, context: memory.admin.inventory(),
    "Admin.stats": lambda memory, canary, context: memory.admin.stats(),
    "Admin.stats, scope": lambda memory, canary, context: memory.admin.stats(Filter(scope=canary.scope)),
    "Admin.review": lambda memory, canary, context: (memory.admin.review(), memory.admin.list()),
    "Admin.approve, dry": lambda memory, canary, context: memory.admin.approve(canary.facts[1], dry_run=True),
    "Admin.replaced": lambda memory, canary, context: memory.admin.replaced(),
    "Admin.take_back, dry": lambda memory, canary, context: memory.admin.take_back(canary.facts[0], dry_run=True),
    "Admin.inbox": lambda memory, canary, context: memory.admin.inbox(),
    "Admin.drop_turns, dry": lambda memory, canary, context: memory.admin.drop_turns(
        f"turn-of-{canary.word}", dry_run=True
    ),
    "Admin.audit": lambda memory, canary, context: memory.admin.audit(),
    "Admin.classify, dry": lambda memory, canary, context: (memory.admin.classify(dry_run=True), memory.admin.list()),
    "Files.search": lambda memory, canary, context: memory.files.search(f"Where is the {canary.word}?"),
    "Files.search, all": lambda memory, canary, context: memory.files.search(
        "Who sat on the old bridge and nests in the old willow?", max_results=100, min_score=0.0
    ),
    "Files.search, sessions": lambda memory, canary, context: memory.files.search(
        f"{canary.word} sat on the old bridge", sources=["sessions"]
    ),
    "Files.read": lambda memory, canary, context: memory.files.read("MEMORY.md"),
    "Files.status": lambda memory, canary, context: memory.files.status(deep=True),
    "Files.paths": lambda memory, canary, context: [memory.files.read(path) for path in memory.files.paths()],
    "Files.prompt_sections": lambda memory, canary, context: memory.files.prompt_sections(),
    "Upkeep.checkpoints": lambda memory, canary, context: memory.upkeep.checkpoints(),
    "Upkeep.restore": lambda memory, canary, context: memory.upkeep.restore(),
    "Upkeep.reflect, dry": lambda memory, canary, context: memory.upkeep.reflect(days=36_500.0, dry_run=True),
    "Upkeep.consolidate, dry": lambda memory, canary, context: memory.upkeep.consolidate(dry_run=True),
    "Upkeep.distill, dry": lambda memory, canary, context: memory.upkeep.distill(dry_run=True),
    "Proposals.list": lambda memory, canary, context: memory.upkeep.proposals.list(everything=True),
    "Proposals.find, dry": lambda memory, canary, context: memory.upkeep.proposals.find(dry_run=True),
}
"""Entry points that change nothing."""

WRITES: Mapping[str, Entry] = {
    "Memory.update": lambda memory, canary, context: memory.update(canary.facts[1], importance=0.9),
    "Memory.update, text": lambda memory, canary, context: memory.update(canary.facts[1][:8], text="Other words."),
    "Memory.update, triggers": lambda memory, canary, context: memory.update(canary.facts[1], triggers=["at dawn"]),
    "Memory.pin": lambda memory, canary, context: memory.pin(canary.facts[1]),
    "Memory.link": lambda memory, canary, context: memory.link(canary.facts[1], memory.store("Mine.").id),
    "Memory.link, to": lambda memory, canary, context: memory.link(memory.store("Mine.").id, canary.facts[1]),
    "Memory.unlink": lambda memory, canary, context: memory.unlink(canary.facts[0], canary.facts[1]),
    "Memory.store, text": lambda memory, canary, context: memory.store(
        f"The {canary.word} sings in the harbour at night."
    ),
    "Memory.store, slot": lambda memory, canary, context: memory.store(
        f"It sings, says {canary.word}.", entity=canary.entity, key="alias", value=canary.word, tags=[canary.tag]
    ),
    "Memory.store, scope": lambda memory, canary, context: memory.store("Mine.", scope=str(canary.scope)),
    "Memory.store, supersedes": lambda memory, canary, context: memory.store("A new one.", supersedes=canary.facts[1]),
    "Memory.add": lambda memory, canary, context: memory.add(f"The {canary.word} sings at noon.", tags=[canary.tag]),
    "Memory.add, messages": lambda memory, canary, context: memory.add(
        [{"role": "user", "content": f"My fish is called {canary.word}."}]
    ),
    "Turns.mark": lambda memory, canary, context: marked(memory, canary, context),
    "Turns.after": lambda memory, canary, context: (
        memory.turns.after([{"role": "user", "content": f"My bird is called {canary.word}."}], True, context),
        memory.settle(),
    ),
    "Turns.did": lambda memory, canary, context: worked(memory, canary, context),
    "Turns.before_compaction": lambda memory, canary, context: (
        memory.turns.before_compaction([{"role": "user", "content": f"My cat is called {canary.word}."}], context),
        memory.settle(),
    ),
    "Memory.undo, session": lambda memory, canary, context: memory.undo(session=f"of-{canary.word}"),
    "Admin.reject": lambda memory, canary, context: memory.admin.reject(canary.facts[1]),
    "Admin.take_back": lambda memory, canary, context: memory.admin.take_back(canary.facts[0]),
    "Admin.approve": lambda memory, canary, context: memory.admin.approve(canary.facts[1]),
    "Admin.classify": lambda memory, canary, context: memory.admin.classify(),
    "Admin.audit, fix": lambda memory, canary, context: memory.admin.audit(fix=True),
    "Aliases.add": lambda memory, canary, context: memory.aliases.add(f"box of {canary.entity}", canary.word),
    "Aliases.remove": lambda memory, canary, context: memory.aliases.remove(canary.word, canary.entity),
    "Memory.forget": lambda memory, canary, context: memory.forget(canary.facts[1]),
    "Memory.unforget": lambda memory, canary, context: memory.unforget(canary.facts[1]),
    "Admin.forget_many, dry": lambda memory, canary, context: memory.admin.forget_many(
        Filter(scope=canary.scope), dry_run=True
    ),
    "Admin.forget_many": lambda memory, canary, context: memory.admin.forget_many(Filter(scope=canary.scope)),
    "Memory.delete": lambda memory, canary, context: memory.delete(canary.facts[1]),
    "Upkeep.checkpoint": lambda memory, canary, context: memory.upkeep.checkpoint("Move the nest."),
    "Upkeep.consolidate": lambda memory, canary, context: memory.upkeep.consolidate(cosine=0.5),
    "Upkeep.reflect": lambda memory, canary, context: memory.upkeep.reflect(days=36_500.0),
    "Upkeep.distill": lambda memory, canary, context: memory.upkeep.distill(),
    "Proposals.find": lambda memory, canary, context: memory.upkeep.proposals.find(),
    "Proposals.accept": lambda memory, canary, context: memory.upkeep.proposals.accept(canary.facts[1]),
    "Proposals.refuse": lambda memory, canary, context: memory.upkeep.proposals.refuse(canary.facts[1]),
    "Files.add": lambda memory, canary, context: added_and_removed(memory, Path("/nowhere") / canary.word),
    "Files.add_transcript": lambda memory, canary, context: memory.files.add_transcript(
        [{"role": "user", "content": f"My bird is called {canary.word}."}], f"{canary.session} {uuid.uuid4()}"
    ),
    "Files.append_note": lambda memory, canary, context: memory.files.append_note(f"Heard of {canary.word}."),
    "Files.flush_due": lambda memory, canary, context: memory.files.flush_due(
        100_000, 50_000, 0, f"{canary.session} {uuid.uuid4()}"
    ),
    "Files.remove": lambda memory, canary, context: memory.files.remove(canary.nest),
    "Memory.undo": lambda memory, canary, context: memory.undo(),
    "Admin.drop_turns": lambda memory, canary, context: memory.admin.drop_turns(f"turn-of-{canary.word}"),
    "Admin.purge": lambda memory, canary, context: memory.admin.purge(canary.facts[1]),
}
"""Entry points that change something, in an order in which each still finds something to change."""

NOTHING_OF_FACTS = {
    "Memory.open", "Memory.for_user", "Memory.close", "Memory.ready", "Memory.settle", "Admin.sync_index",
    "Admin.embed", "Memory.admin", "Memory.upkeep", "Memory.aliases",
    "Memory.files", "Memory.turns", "Upkeep.proposals", "Turns.session_start", "Turns.session_end", "Turns.foresee",
    "Turns.adopt", "Admin.notices",
}  # fmt: skip
"""These take and return nothing of facts."""
OPENING = {"Turns.opening", "Turns.before_tool", "Turns.looked"}
"""Bring up what stands whatever is asked, and what an agent did; tests of their own ask them."""
OF_ALL = {"Admin.evaluate"}
"""These ask for no canary, and take long."""
WHOLE_STORE = {
    "Admin.verify", "Admin.prune", "Admin.jobs", "Admin.run_job", "Admin.librarian",
    "Admin.vault", "Admin.backup", "Admin.export", "Admin.import_from", "Files.sync", "Files.embed",
    "Admin.scrub", "Admin.scopes", "Admin.assign",
}  # fmt: skip
"""These are for who owns the folder: they work on all of it, by files or behind a passphrase."""

KNOWN: dict[str, str] = {}
COUNTED: dict[str, str] = {}
PHANTOM = Canary(Scope("user", "nobody"), "canaryzzzz", "Cage99", "tag99", (str(uuid.uuid4()), str(uuid.uuid4())))
"""Like a canary, but never stored."""


def entries(of: Mapping[str, Entry], known: Mapping[str, str]) -> list[object]:
    return [
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=known[name])) if name in known else name
        for name in of
    ]


def heard(entry: Entry, memory: Memory, canary: Canary, context: TurnContext) -> str:
    """Return all that an entry point returns or raises, in lower case, without what the caller itself has said."""
    try:
        answer = repr(entry(memory, canary, context))
    except PerdureError as error:
        answer = f"{type(error).__name__}: {error}"
    answer = answer.lower()
    ids = (*canary.facts, *(fact_id[:8] for fact_id in canary.facts))
    said = (*ids, canary.word, canary.entity, canary.tag, str(canary.nest))
    for number, part in enumerate((*said, str(canary.scope))):
        answer = answer.replace(part.lower(), f"<{number}>")
    return answer


def plain(answer: str) -> str:
    """Return an answer without what differs from call to call: new ids, fences, times and running numbers."""
    answer = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\b[0-9a-f]{12,}\b", "<id>", answer)
    return re.sub(r"\b(seq|change_seq|changes|outbox|access_count|reinforced_count)=\d+", r"\1=<n>", answer)


def leaks(house: House, name: str, entry: Entry, caller: str, asked: list[Canary]) -> list[str]:
    """Ask for each canary as a caller; return what it must not have heard."""
    memory, context = house.caller(caller), house.callers[caller][0]
    hidden = house.hidden_from(caller)
    found = []
    for canary in asked:
        answer = heard(entry, memory, canary, context)
        found += [
            f"{caller} asking {name} for {canary.scope} heard of {other.scope}"
            for other in hidden
            if any(secret in answer for secret in other.secrets)
        ]
    return found


@pytest.mark.parametrize("name", entries(READS, KNOWN))
def test_reading_tells_nothing_of_what_is_hidden(house: House, embedded_house: House, name: str) -> None:
    for each in (house, embedded_house):
        asked = each.canaries[:1] if name in OF_ALL else each.canaries
        assert [leak for caller in CALLERS for leak in leaks(each, name, READS[name], caller, asked)] == []


@pytest.mark.parametrize("name", entries(READS, KNOWN))
def test_what_is_hidden_is_answered_like_what_is_not_there(house: House, name: str) -> None:
    for caller in CALLERS:
        memory, context = house.caller(caller), CALLERS[caller][0]
        nothing = plain(heard(READS[name], memory, PHANTOM, context))
        for canary in house.hidden_from(caller):
            assert plain(heard(READS[name], memory, canary, context)) == nothing, f"{caller}, {canary.scope}"


def test_a_session_opens_with_what_its_caller_may_hear(tmp_path: Path) -> None:
    house = House(tmp_path / "home", directives={"session_tags": ["bird"]})
    try:
        heard_of = {}
        for caller in CALLERS:
            found = house.caller(caller).turns.opening(CALLERS[caller][0])
            block = found.block.lower() if found else ""
            assert not any(secret in block for canary in house.hidden_from(caller) for secret in canary.secrets), caller
            heard_of[caller] = block
        assert any(canary.word in heard_of["owner"] for canary in house.canaries)
        assert heard_of["a malformed user"] != heard_of["owner"]
    finally:
        house.close()


@for_each("name", [name for name in READS if name != "Memory.status"])
def test_the_canaries_sing_for_those_who_may_hear_them(house: House, name: str) -> None:
    """Without this, answers that are always empty would pass all the rest."""
    context = CALLERS["owner"][0]
    own = next(canary for canary in house.canaries if str(canary.scope) == "user:owner")
    answer = heard(READS[name], house.caller("owner"), own, context)
    assert answer != heard(READS[name], house.caller("a malformed user"), own, context)


@pytest.fixture
def aviary(tmp_path: Path) -> Iterator[House]:
    """A house of one's own, to be changed."""
    house = House(tmp_path / "home")
    yield house
    house.close()


def kept(house: House, canaries: list[Canary]) -> list[tuple[object, ...]]:
    """Return all that there is of canaries: the facts with all columns, their links, their nests and talks."""
    ids = [fact_id for canary in canaries for fact_id in canary.facts]
    marks = ", ".join("?" * len(ids))
    turns = [f"turn-of-{canary.word}" for canary in canaries]
    each = ", ".join("?" * len(turns))
    folders = {folder for canary in canaries for folder in (canary.nest, house.engine.files.log.folder(canary.scope))}
    files = [Path(at, name) for folder in folders for at, _, names in os.walk(folder) for name in names]
    with house.engine.store.database.read() as connection:
        return [
            *run(connection, f"SELECT * FROM facts WHERE id IN ({marks}) ORDER BY seq", ids),
            *run(
                connection,
                f"SELECT * FROM memory_links WHERE source_fact_id IN ({marks}) AND target_fact_id IN ({marks})"
                " ORDER BY id",
                [*ids, *ids],
            ),
            *run(connection, f"SELECT * FROM triggers WHERE fact_id IN ({marks}) ORDER BY id", ids),
            *run(connection, f"SELECT * FROM inbox_parked WHERE entry_id IN ({each}) ORDER BY entry_id", turns),
            *[(root.scope, root.path, root.kind) for root in house.engine.files.sync.roots() if root.path in folders],
            *[(path, path.read_bytes()) for path in sorted(files)],
        ]


@pytest.mark.parametrize("caller", CALLERS)
def test_writing_tells_and_changes_nothing_of_what_is_hidden(aviary: House, caller: str) -> None:
    memory, context = aviary.caller(caller), CALLERS[caller][0]
    hidden = aviary.hidden_from(caller)
    before = kept(aviary, hidden)
    for name, entry in WRITES.items():
        if name in ("Memory.undo", "Admin.forget_many"):
            continue
        assert leaks(aviary, name, entry, caller, hidden) == []
        # As often as a canary: what a caller stores again is its own by then.
        nothing = {plain(heard(entry, memory, PHANTOM, context)) for _ in range(2)}
        assert {plain(heard(entry, memory, canary, context)) for canary in hidden} <= nothing, name
        assert kept(aviary, hidden) == before, name
    readable = [canary for canary in aviary.canaries if canary not in hidden]
    for name, entry in WRITES.items():
        assert leaks(aviary, name, entry, caller, readable) == []
        assert kept(aviary, hidden) == before, name


def test_a_near_text_of_others_is_neither_confirmed_nor_linked(tmp_path: Path) -> None:
    house = House(tmp_path / "home", embedder="hash", compare={"vector": 0.5, "auto_link": 50})
    try:
        for caller in ("owner", "a stranger"):
            memory = house.caller(caller)
            for canary in house.hidden_from(caller):
                fact = memory.store(f"The {canary.word} sings in the harbour at night.")
                assert fact.id not in canary.facts
                assert {found.fact.scope_target for found in memory.related(fact.id)} <= {"", fact.scope_target}
    finally:
        house.close()


COUNTING: Mapping[str, Callable[[Memory], object]] = {
    "Admin.stats": lambda memory: memory.admin.stats(),
    "Admin.list": lambda memory: memory.admin.list(include_superseded=True),
    "Admin.list, offset": lambda memory: memory.admin.list(limit=1, offset=1),
    "Admin.forget_many": lambda memory: memory.admin.forget_many(Filter(after=0.0), dry_run=True),
    "Admin.search": lambda memory: memory.admin.search("Who paints the harbour at night?"),
    "Admin.live_ids": lambda memory: len(memory.admin.live_ids()),
    "Memory.lookup": lambda memory: memory.lookup("Cage0"),
    "Memory.recall, whole text": lambda memory: memory.recall("The canaryaaaa sings in the harbour at night."),
    "Memory.recall": lambda memory: memory.recall("Who paints the harbour at night?"),
    "Admin.changes": lambda memory: [change.action for change in memory.admin.changes() if change.action == "add"],
    "Memory.status": lambda memory: memory.status().facts,
    "Files.status": lambda memory: replace(memory.files.status(), roots=(), last_synced=None),
    "Files.search": lambda memory: memory.files.search("Who nests in the old willow or on a bridge?", min_score=0.0),
}


@pytest.mark.parametrize("name", entries(COUNTING, COUNTED))  # type: ignore[arg-type]
def test_counts_and_scores_are_those_of_a_store_without_the_others(tmp_path: Path, name: str) -> None:
    full, alone = House(tmp_path / "full"), House(tmp_path / "alone", scopes=(Scope("global"),))
    try:
        both = [COUNTING[name](house.caller("a stranger")) for house in (full, alone)]
    finally:
        full.close()
        alone.close()
    assert plain(repr(both[0])) == plain(repr(both[1]))


@pytest.mark.parametrize("caller", CALLERS)
def test_stats_name_only_scopes_that_may_be_read(house: House, caller: str) -> None:
    stats = house.caller(caller).admin.stats()
    scopes = CALLERS[caller][1]
    assert dict(stats.by_scope) == dict.fromkeys(sorted(scopes), 1)
    assert stats.total == len(scopes)


@pytest.mark.parametrize("scope", [None, "user:eva"])
def test_nobody_hides_a_global_fact_from_others_behind_a_private_one(aviary: House, scope: str | None) -> None:
    fact = aviary.canaries[0]
    assert fact.scope == Scope("global")
    with contextlib.suppress(PerdureError):
        aviary.caller("eva").store("This takes its place.", scope=scope, supersedes=fact.facts[1])
    seen = aviary.caller("a stranger").admin.list()
    assert [found.supersedes_id for found in seen] in ([fact.facts[0]], [fact.facts[1]])


def test_who_takes_the_place_of_a_global_fact_in_private_stays_unnamed(aviary: House) -> None:
    fact = aviary.canaries[0]
    private = ""
    with contextlib.suppress(PerdureError):
        private = aviary.caller("eva").store("For me.", scope="user:eva", supersedes=fact.facts[1]).id
    assert aviary.caller("a stranger").get(fact.facts[1]).superseded_by in (None, fact.facts[1])
    assert not private or private not in repr(aviary.caller("a stranger").admin.changes())


def test_callers_whose_id_fails_closed_do_not_hear_of_each_other(aviary: House) -> None:
    one, other = (aviary.caller(name) for name in ("a malformed user", "no agent"))
    recall = one.recall("Where does the heron sing?")
    aviary.engine.settle(30)
    for turn in (None, recall.receipt_id if recall else "0" * 36):
        with pytest.raises(NotFoundError):
            other.why(turn)


def test_every_public_method_is_asked() -> None:
    public = {
        f"{kind.__name__}.{name}"
        for kind in (Memory, Aliases, Upkeep, Proposals, Admin, Files, Turns)
        for name in dir(kind)
        if not name.startswith("_")
    }
    asked = {name.partition(",")[0] for name in (*READS, *WRITES)}
    assert public - asked == NOTHING_OF_FACTS | WHOLE_STORE | OPENING
    assert asked <= public
