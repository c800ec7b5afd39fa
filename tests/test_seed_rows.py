"""The 41 rows by which perdure is held against the documents that it follows: a test for each, in their order.

A docstring quotes the words of the document. Where perdure does otherwise on purpose, the test holds what it does, says
why that is no worse, and sees that a page of the docs tells it.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pytest

from perdure.api.memory import Memory
from perdure.api.tools import TOOLS, call_tool
from perdure.background.file_watcher import Debounce, FileWatcher
from perdure.background.keeper import TurnGate
from perdure.background.scheduler import Scheduler
from perdure.background.upkeep import export_day
from perdure.cli.main import COMMANDS
from perdure.clock import ManualClock
from perdure.engine.composing import load_extensions
from perdure.engine.settings import Settings
from perdure.errors import AmbiguousIdError, ExtensionError, InputError, NotFoundError, PerdureError, StoreClosedError
from perdure.hooks.fake_host import FakeHost
from perdure.hooks.host import HookRunner
from perdure.hooks.types import Channel, ToolResult, TurnContext
from perdure.index.feeding import CROSSOVER, FEED_FROM
from perdure.lance.indexer import Indexer
from perdure.lance.table import LanceIndex, rows_in
from perdure.maintenance.exports import daily_files
from perdure.models.providers import PROVIDERS, connect
from perdure.plugin.plugin import hookimpls_for
from perdure.ranking.decay import LIFETIMES, REFRESHED_BY_USE
from perdure.recall.receipt import Receipt
from perdure.store import schedule
from perdure.store.fact import Fact
from perdure.store.folder import vault_file
from perdure.store.listing import Filter
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.sql import run
from perdure.store.store import Store
from tests.cli.calling import call, call_json
from tests.faulty import CountingEmbedder
from tests.files.workshop import Workshop
from tests.kit import AUTHOR, DAY, START, bytes_of, put, recalled, say
from tests.loopback import Reply, Request, chat, loopback
from tests.on_postgres import VARIABLE
from tests.waiting import until

DOCS = Path(__file__).parents[1] / "docs"
ME = TurnContext(session_id="s")
WAYS = ("server",) if VARIABLE in os.environ else ("sqlite", "lance")
"""A row runs over SQLite, once more where LanceDB holds the vectors, and over a server, whose tests start these."""


class Desk:
    """A data folder, a clock that the test moves, and one way to keep vectors."""

    def __init__(self, folder: Path, clock: ManualClock, way: str, opened: ExitStack) -> None:
        self.folder, self.clock, self.way, self._opened = folder, clock, way, opened

    def open(self, home: str = "home", **settings: Any) -> Memory:
        """Open a memory on a data folder."""
        given = {"embedder": "hash", "clock": self.clock, "record_sessions": False, **settings}
        given |= {"vector_index": "lance"} if self.way == "lance" else {}
        memory = self._opened.enter_context(Memory.open(self.folder / home, **given))
        memory.ready()
        return memory

    def store(self, home: str = "home") -> Store:
        """Open the store of a data folder beside its memory, as another process would."""
        return self._opened.enter_context(closing(Store(self.folder / home, clock=self.clock)))

    def in_step(self, home: str = "home") -> Store:
        """Have LanceDB's table, if there is to be one, hold what is stored; return the store."""
        store = self.store(home)
        if self.way == "lance":
            feed(store)
        return store


def feed(store: Store) -> None:
    """Bring LanceDB's table up to date, as the worker process does."""
    with closing(Indexer(store, lambda: None, 50, crossover=1_000_000)) as indexer:
        while indexer.step():
            pass


@pytest.fixture(params=WAYS)
def desk(tmp_path: Path, clock: ManualClock, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A desk, in each of the ways."""
    with ExitStack() as opened:
        yield Desk(tmp_path, clock, request.param, opened)


@pytest.fixture
def plain(tmp_path: Path, clock: ManualClock) -> Iterator[Desk]:
    """A desk for what has nothing to do with how vectors are kept."""
    with ExitStack() as opened:
        yield Desk(tmp_path, clock, WAYS[0], opened)


def told(page: str, part: str, *words: str) -> None:
    """See that a part of a page of the docs says these words.

    `part`: its heading, the words in bold that it begins with, or the name of a setting; empty: the page's beginning.
    """
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    if not part:
        found = text.partition("\n## ")[0]
    elif heading := re.search(rf"^(#+) {re.escape(part)}$", text, re.MULTILINE):
        found = re.split(rf"^#{{1,{len(heading[1])}}} ", text[heading.end() :], flags=re.MULTILINE)[0]
    elif row := re.search(rf"^- `{re.escape(part)}\b.*", text, re.MULTILINE):
        found = row[0]
    else:
        found = text[text.index(f"**{part}") :].partition("\n\n")[0]
    for each in words:
        assert " ".join(each.split()) in " ".join(found.split()), f"{page}.md, {part!r}: {each!r}"


def tool(memory: Memory, name: str, said: str = "", /, context: TurnContext = ME, **values: Any) -> ToolResult:
    """Call a tool as a model does, in a turn in which the user said this."""
    return call_tool(memory, name, values, context, said)


def block(memory: Memory, prompt: str, **asked: Any) -> str:
    """Return the block for a prompt; empty: silence."""
    recall = memory.recall(prompt, **asked)
    return recall.block if recall else ""


def looked(memory: Memory, prompt: str, **asked: Any) -> list[Receipt]:
    """Return the receipt of a look at what a prompt would bring up."""
    found: list[Receipt] = []
    memory.recall(prompt, receipt_to=found.append, **asked)
    return found


@pytest.mark.sqlite
def test_row_01_facts_in_sqlite_and_fts5(plain: Desk) -> None:
    """ "SQLite stores the full fact with all metadata"; `facts_fts` "mirrors text, category, entity, key, and value";
    it "uses Porter stemming and Unicode tokenization"; "Triggers keep FTS in sync on every insert/update/delete".

    The words are written in the fact's own transaction, without triggers: what counts is that they are in step.
    """
    columns = {
        "id", "text", "category", "importance", "entity", "key", "value", "source", "created_at", "source_date",
        "decay_class", "expires_at", "confidence", "summary", "tags", "normalized_hash", "recall_count",
        "last_accessed", "valid_from", "valid_until", "superseded_at", "superseded_by", "supersedes_id",
    }  # fmt: skip
    memory = plain.open(embedder="none")
    kept = memory.store(
        "User prefers dark mode at the Café Größe", entity="user", key="preference", value="dark mode",
        tags="ui,preference", decay_class="stable", importance=0.7,
    )  # fmt: skip
    store = plain.store()

    def rows(sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with store.database.read() as connection:
            return sorted(tuple(row) for row in run(connection, sql, values))

    def matching(words: str) -> int:
        return len(rows("SELECT rowid FROM facts_fts WHERE facts_fts MATCH ?", words))

    assert {row[1] for row in rows("PRAGMA table_info(facts)")} >= columns
    [row] = rows("SELECT category, entity, key, value, decay_class, tags, importance, recall_count FROM facts")
    assert row == ("preference", "user", "preference", "dark mode", "stable", "ui,preference", 0.7, 0)
    [(made,)] = rows("SELECT sql FROM sqlite_schema WHERE name = 'facts_fts'")
    assert {"text", "category", "entity", "key", "value"} <= set(re.findall(r"\w+", made.partition("content=")[0]))
    assert "porter unicode61" in made
    for words in ("preferred", "cafe", "grosse", "text:dark", "category:preference", "entity:user", "value:mode"):
        assert matching(words) == 1, words
    for change in (
        lambda: memory.update(kept.id, category="decision"),
        lambda: memory.update(kept.id, text="User prefers light mode"),
        lambda: memory.admin.purge(kept.id),
    ):
        change()
        assert rows("SELECT rowid FROM facts_fts") == rows("SELECT seq FROM facts")
    assert (matching("text:dark"), matching("light"), matching("category:decision")) == (0, 1, 1)


@pytest.mark.sqlite
def test_row_02_vectors_in_lancedb(plain: Desk) -> None:
    """ "Every fact is stored in two places simultaneously": a LanceDB table with id, text, vector, importance,
    category, createdAt, for "approximate nearest neighbor search".

    Otherwise: below 300,000 memories there is no table, since a comparison with all vectors in memory is quicker, takes
    less memory and is always right. With `vector_index="lance"`, or from that size on, all of it is as written.
    """
    texts = ["The heron sleeps in the reeds.", "My boat is called Albatross.", "The cellar floods in spring."]
    small = plain.open("small")
    large = plain.open("large", vector_index="lance")
    for memory in (small, large):
        for text in texts:
            memory.store(text, importance=0.7)
    plain.way = "lance"
    store = plain.in_step("large")
    assert recalled(small, "Where does the heron sleep?")[0] == texts[0]
    assert not (plain.folder / "small" / "lancedb").exists()
    [table] = (plain.folder / "large" / "lancedb").glob("memories_*.lance")
    found = {row["id"]: row for row in rows_in(table, ["id", "text", "importance", "category", "created_at"])}
    facts = {fact.id: fact for fact in large.get_all()}
    assert {name: row["text"] for name, row in found.items()} == {name: fact.text for name, fact in facts.items()}
    assert {(row["category"], row["created_at"]) for row in found.values()} <= {
        (fact.category, START) for fact in facts.values()
    }
    space = store.space()
    assert space is not None
    with closing(LanceIndex(store.lance_folder, space.id, space.dims, create=False)) as index:
        vector = np.array(large.admin.embed(texts[1]), dtype=np.float32)
        nearest = index.search(vector, View(Audience.of(), START), 3)
    assert facts[nearest[0].id].text == texts[1]
    assert recalled(large, "Where does the heron sleep?") == recalled(small, "Where does the heron sleep?")
    assert (CROSSOVER, FEED_FROM) == (300_000, 0.8)
    told("architecture", "LanceDB answers above a crossover", "the matrix is faster", "80% of that size")
    told("settings", "index.crossover", "=300000`", "Number of memories at which search switches to LanceDB")


def test_row_03_scores_salience_and_access(desk: Desk) -> None:
    """ "BM25 rank (60%)", "Freshness (25%)", "Confidence (15%)"; "frequently recalled facts score higher" and "older
    unused memories fade"; a search "bumps recall_count and last_accessed for returned facts; extends TTL for
    stable/active facts".

    Otherwise: a score is how likely a memory helps, times factors. What reached an agent is counted and raises no rank,
    or what comes up often would come up ever more often; what has no end does not fade, as an allergy is no older for
    not being asked for. A deliberate hit of a tool counts as use and extends what use extends, as written.
    """
    memory = desk.open()
    ids = {
        name: memory.store(f"The {name} crane lifts containers in the harbour.", decay_class=name).id
        for name in ("stable", "active", "short", "permanent")
    }
    desk.in_step()
    before = {name: memory.get(each) for name, each in ids.items()}
    ranks = recalled(memory, "Which crane lifts containers in the harbour?")
    desk.clock.advance(3600)
    for _ in range(9):
        memory.turns.before("Does the short crane lift containers?", ME)
    assert memory.settle()
    shown = memory.get(ids["short"])
    assert shown.recall_count >= 9
    assert (shown.access_count, shown.expires_at) == (0, before["short"].expires_at)
    assert recalled(memory, "Which crane lifts containers in the harbour?") == ranks
    told("recall", "Score and order", "A **score** is the probability that a memory helps", "is multiplied by")
    told("recall", "Use counts; merely being shown does not", "which change neither rank nor lifetime")

    for name in ("stable", "active", "short"):
        assert tool(memory, "memory_recall", query=f"Which is the {name} crane in the harbour?").details["memories"]
    assert tool(memory, "memory_recall", memory=ids["permanent"]).details["memories"]
    assert memory.settle()
    for name, each in ids.items():
        after, extended = memory.get(each), LIFETIMES[name] if name in REFRESHED_BY_USE else None
        assert (after.access_count > 0, after.last_accessed) == (True, desk.clock.now()), name
        assert after.expires_at == (before[name].expires_at if extended is None else desk.clock.now() + extended), name

    desk.clock.advance(10 * 365 * DAY)
    assert recalled(memory, "Which crane lifts containers in the harbour?") == [memory.get(ids["permanent"]).text]
    assert memory.get(ids["permanent"]).confidence == 1.0
    told("keeping", "Fading", "applies only to memories that expire")


def test_row_04_merge_of_words_and_vectors(desk: Desk) -> None:
    """ "SQLite results first"; a vector hit is added if it is "Not a duplicate (by ID or by text match with an existing
    result)"; "ties broken by newer effective date"; "the full metadata from SQLite replaces the minimal LanceDB
    metadata"; "trim to the requested number of results".

    "What do I like?" is answered by all likes, up to the limit, in a turn and by the tool.
    """
    memory = desk.open(recall_limit=5)
    heron = memory.store("The staging database is called heron.", entity="staging database", key="name", tags="db")
    wide = desk.open(scopes=["project:x"])
    wide.store("The staging database is called heron.", scope="project:x")
    for number in range(12):
        desk.clock.advance(60)
        memory.store(f"I like the {number}. tune of the suite.")
    desk.in_step()
    [item] = wide.recall("What is the staging database called?").items  # type: ignore[union-attr]
    assert (item.leg, item.category, item.text) == ("sqlite", "entity", heron.text), "once, by its words"
    [near, *_] = memory.search("staging database heron", limit=3)
    assert (near.fact.entity, near.fact.key, near.fact.tags, near.fact.channel) == (
        "staging database", "name", ("db",), Channel.LIBRARY,
    )  # fmt: skip
    tunes = [f"I like the {number}. tune of the suite." for number in reversed(range(12))]
    likes = recalled(memory, "What do I like?")
    assert likes == [tune for tune in tunes if tune in likes], "the newest first"
    assert len(likes) == 5
    listed = tool(memory, "memory_recall", query="What do I like?", limit=10).details["memories"]
    assert len({each["text"] for each in listed} & set(tunes)) == 10


def test_row_05_lookup_by_entity_key_and_tag(desk: Desk) -> None:
    """`lower(entity) = lower('user')`, `lower(key) = lower('preference')`; "SQLite-only — no vector search, no
    embedding cost"; "ordered by confidence (highest first), then by effective date (newest first)"; a tag by `LIKE
    '%,ui,%'`.
    """
    memory = desk.open(embedder="none", compare={"classify": False})
    words: dict[str, Any] = {"entity": "User", "key": "Preference", "channel": Channel.LIBRARY}
    put(
        desk.folder / "home",
        Fact("old", **words, source_date=START - 9), Fact("new", **words, tags=("ui", "dark")),
        Fact("doubted", **words, confidence=0.5, source_date=START + 9, tags=("ui kit",)),
        Fact("over", **words, decay_class="session", expires_at=START - 1), Fact("other", entity="user", key="name"),
    )  # fmt: skip
    former = memory.store("former", entity="user", key="preference", value="tabs")
    memory.store("latest", entity="user", key="preference", value="spaces", supersedes=former.id)
    found = [fact.text for fact in memory.lookup("uSER", "PREFERENCE")]
    assert found == ["latest", "new", "old", "doubted"]
    assert [fact.text for fact in memory.lookup("user", "preference", tag="ui")] == ["new"]
    assert memory.lookup("user", "preference", tag="u") == []
    assert tool(memory, "lookup", entity="USER", key="preference", tag="ui").details["memories"][0]["text"] == "new"


def test_row_06_recall_into_the_context(desk: Desk) -> None:
    """ "accumulate facts until maxTokens (default 800) is reached"; "longer than summaryThreshold (default 300 chars)
    and has a stored summary, inject the summary instead"; full `[sqlite/preference] User prefers dark mode`, short
    `preference: User prefers dark mode`, minimal the bare text; `<memory-context>...</memory-context>`.
    """
    memory = desk.open()
    memory.store("User prefers dark mode")
    long = memory.store("The harbour rules say: " + "no crane is moved before the tide has turned; " * 9)
    memory.update(long.id, summary="No crane moves before the tide.")
    desk.in_step()
    lines = {
        "full": "[sqlite/preference] User prefers dark mode", "short": "preference: User prefers dark mode",
        "minimal": "User prefers dark mode",
    }  # fmt: skip
    for form, line in lines.items():
        shown = block(desk.open(recall_format=form), "Which mode does the user prefer?")
        inner = re.fullmatch(r'<memory-context nonce="\w+">\n[^\n]+\n(.*)\n</memory-context>', shown, re.DOTALL)
        assert inner is not None
        assert inner[1] == line
    assert recalled(memory, "What do the harbour rules say of a crane?") == ["No crane moves before the tide."]
    for number in range(60):
        memory.store(f"Our berth {number} takes a barge of {number + 20} metres on every working day.")
    desk.in_step()
    [receipt] = looked(desk.open(recall_limit=100), "List our berths")
    came = [verdict for verdict in receipt.verdicts.values() if verdict == "injected"]
    assert 700 < receipt.tokens <= 800, "as many as fit, and no more"
    assert 10 < len(came) < 60


def test_row_07_entities_directives_and_session_start(desk: Desk) -> None:
    """ "Optional entity lookup — if your prompt mentions a known entity" ... "lookup facts for that entity are merged
    in"; "targeted recall when the prompt mentions an entity, matches keywords, or matches a task type; optional
    one-time recall at session start".

    What memory knows by a name is looked up without a setting. A greeting takes nothing from the start of a session.
    """
    known = desk.open(embedder="none")
    known.store("The cluster is drained before anything else.", entity="Zephyr", key="order")
    known.store("Otto likes rowing.")
    assert recalled(known, "Please restart Zephyr for me.") == ["The cluster is drained before anything else."]
    assert recalled(known, "A zephyr is a light wind, is it not?") == []
    rules = {
        "entities": ["Otto"], "keywords": ["port"], "tasks": {"deploy": ["rollout"]}, "session_tags": ["welcome"],
    }  # fmt: skip
    memory = desk.open("rules", directives=rules, embedder="none")
    memory.store("Otto likes rowing.")
    memory.store("Port 8080 is taken.")
    memory.store("Each rollout is announced first.")
    memory.store("Anna prefers to be called Captain.", tags=["welcome"])

    def told_in(prompt: str, session: str = "one") -> list[str]:
        recall = memory.turns.before(prompt, TurnContext(session_id=session))
        return [item.text for item in recall.items] if recall else []

    assert told_in("hello there") == []
    assert told_in("Is there anything I ought to know today?") == ["Anna prefers to be called Captain."]
    assert told_in("Is there anything else I ought to know?") == [], "once"
    assert told_in("Dinner with Otto tonight, any ideas?") == ["Otto likes rowing."]
    assert told_in("Which port shall I take?") == ["Port 8080 is taken."]
    assert told_in("We deploy this afternoon.") == ["Each rollout is announced first."]
    assert memory.settle()
    later = desk.open("rules", directives=rules, embedder="none").turns
    assert later.before("What else is there to know?", TurnContext(session_id="one")) is None, "nor in another process"


def test_row_08_capture(desk: Desk) -> None:
    """ "Scan the assistant's reply for memorable content"; "regex triggers look for memorable content"; "skips
    passwords, API keys, SSNs, credit cards"; "skips messages shorter than 10 chars or longer than captureMaxChars
    (default 5000)".

    Otherwise: what the user says is read, and not the reply, or an agent would teach itself; of a longer message the
    beginning and the end are read, and not nothing; rules and fitted heads decide in the place of bare triggers.
    """
    memory = desk.open(compare={"classify": False})
    messages = [
        {"role": "user", "content": "I prefer tea over coffee."},
        {"role": "assistant", "content": "I decided to use PostgreSQL, and I prefer Rust over Go."},
    ]
    memory.turns.after(messages, True, ME)
    said = (
        "I am ill", "My password is hunter2-Mangrove-91x.", "My API key is sk-proj-9fK2mQx7Lr4TnB8vWc3Yz6Hd.",
        "My SSN is 536-90-4399.", "My credit card is 4111 1111 1111 1111.",
        "My sister lives in Porto. " + "The kettle hums along. " * 400 + "My brother lives in Bergen.",
    )  # fmt: skip
    memory.turns.after([{"role": "user", "content": each} for each in said], True, TurnContext(session_id="t"))
    assert memory.settle()
    kept = [fact.text for fact in memory.get_all()]
    assert "I prefer tea over coffee." in kept
    assert {"My sister lives in Porto.", "My brother lives in Bergen."} <= set(kept)
    for never in ("PostgreSQL", "Rust", "I am ill", "hunter2", "sk-proj", "536-90", "4111"):
        assert not any(never in text for text in kept), never
    told("keeping", "", "perdure reads that person's new messages", "needs 10 characters",
         "in a message of more than 5,000 characters, only the beginning, the end and any requests to remember are",
         "Classifiers trained on labelled messages work alongside the rules")  # fmt: skip


def test_row_09_categories_and_slots(plain: Desk) -> None:
    """ "fast regex classifies into: preference, fact, decision, entity, or other. No LLM call."; of "My birthday is Nov
    13": "entity=user, key=birthday, value=Nov 13".
    """
    memory = plain.open(embedder="none")
    for text, category in {
        "I prefer tea over coffee.": "preference", "We decided to use PostgreSQL because of JSONB.": "decision",
        "My e-mail is john@example.com.": "entity", "I live in Graz.": "fact", "Remember that milk!": "other",
    }.items():  # fmt: skip
        say(memory, text, session=category)
        assert [fact.category for fact in memory.get_all() if fact.provenance_session == category] == [category], text
    say(memory, "My birthday is Nov 13")
    [fact] = memory.lookup("user", "birthday")
    assert (fact.entity, fact.key, fact.value, fact.text) == ("user", "birthday", "Nov 13", "My birthday is Nov 13")


DEBIAN = "Our server in the office runs Debian."
SWITCHED = "The office server runs Fedora now, we switched in May."


def _replaces_debian(request: Request) -> Reply:
    prompt = request.body["messages"][-1]["content"]
    shown = json.loads(prompt[prompt.index("{") :])["memories"]
    [name] = [each["id"] for each in shown if each["text"] == DEBIAN]
    operation = {"op": "replace", "target": name, "quote": SWITCHED, "note": SWITCHED}
    return chat(json.dumps({"operations": [operation]}), 40)


def test_row_10_classify_before_write(desk: Desk) -> None:
    """ "ADD — new information, store alongside existing", "UPDATE — new version of an existing fact; supersede the old
    one", "DELETE — retraction of an existing fact; mark it as superseded", "NOOP — already known; don't store";
    "send the new fact + similar existing facts to a cheap LLM"; "Classify-before-write (optional)".

    Otherwise: rules decide, on evidence in the two sentences, by default and without a model: likeness alone would hide
    what is true. A model is asked by the librarian alone, when a conversation is idle.
    """
    memory = desk.open()
    home = memory.store("I live in Graz.")
    assert memory.store("I like the opera.").outcome == "stored"
    desk.in_step()
    moved = memory.store("I moved to Linz.")
    assert (moved.outcome, [fact.id for fact in moved.gone]) == ("replaced", [home.id])
    assert memory.store("I moved to Linz.").outcome == "confirmed"
    squash = memory.store("I play squash.")
    gone = memory.store("I gave up squash.")
    assert gone.outcome == "withdrew"
    assert [fact.id for fact in gone.gone] == [squash.id]
    assert all(memory.get(each.id).superseded_at == START for each in (home, squash))
    assert {fact.text for fact in memory.get_all()} >= {"I like the opera.", "I moved to Linz."}
    with loopback(_replaces_debian) as server:
        asking = desk.open("asking", llm_endpoint=f"{server.url}/v1", llm_model="m", librarian=True)
        asking.store(DEBIAN)
        say(asking, SWITCHED)
        assert server.requests == [], "whoever stores or speaks waits for no model"
        asking.admin.librarian(run=True)
        assert len(server.requests) == 1, "with the new fact and similar existing ones"
        assert [fact.text for fact in asking.get_all()] == [SWITCHED]
    told("keeping", "How statements are compared", "only if the two sentences show evidence of that",
         "The `librarian`, if on, has a language model read doubtful cases later")  # fmt: skip
    told("providers", "What leaves the machine", "| `librarian` | a conversation that was idle for ten minutes")


def test_row_11_tags(desk: Desk) -> None:
    """ "when tags is omitted from memory_store or CLI store, the plugin runs extractTags(text, entity)"; `nibe`,
    `zigbee`, `z-wave`, `auth`, `homeassistant`, `openclaw`, `postgres`, `sqlite`, `lancedb`, `api`, `docker`,
    `kubernetes`, `ha`; "pass tags explicitly to override auto-tagging"; "Stored as a comma-separated string"; with
    a tag "it skips LanceDB and uses only SQLite".
    """
    memory = desk.open()
    for text, tags in {
        "NIBE F1245 uses Modbus TCP on port 502": {"nibe"},
        "Home Assistant Zigbee coordinator on /dev/ttyUSB0": {"homeassistant", "zigbee"},
        "OAuth token for the API endpoint": {"auth", "api"},
        "Z-Wave and OpenClaw beside HA": {"z-wave", "openclaw", "ha"},
        "Postgres, SQLite and LanceDB in Docker on Kubernetes": {
            "postgres", "sqlite", "lancedb", "docker", "kubernetes"
        },
    }.items():  # fmt: skip
        assert set(memory.store(text).tags) == tags, text
    own = tool(memory, "memory_store", text="The NIBE pump hums at night", tags="nibe,modbus,hvac").details["id"]
    assert memory.get(own).tags == ("nibe", "modbus", "hvac")
    store = desk.in_step()
    with store.database.read() as connection:
        assert run(connection, "SELECT tags FROM facts WHERE id = ?", (own,))[0][0] == "nibe,modbus,hvac"
    [receipt] = looked(memory, "Which pump hums at night?", tag="hvac")
    assert receipt.states["lance"] == "tags are searched by keyword"
    found = tool(memory, "memory_recall", query="pump", tag="hvac").details["memories"]
    assert [each["id"] for each in found] == [own]


def test_row_12_links(desk: Desk) -> None:
    """`SUPERSEDES, CAUSED_BY, PART_OF, RELATED_TO, DEPENDS_ON`; strength "0.0 – 1.0, default 1.0"; "follow links in
    both directions up to graph.maxTraversalDepth hops (default 2)"; "If the similarity score exceeds
    graph.autoLinkMinScore (default 0.7), a RELATED_TO link is created automatically".
    """
    memory = desk.open(compare={"classify": False})
    ids = [memory.store(text).id for text in ("The build failed.", "The tool was new.", "Ann chose it.", "She left.")]
    for kind in ("SUPERSEDES", "CAUSED_BY", "PART_OF", "RELATED_TO", "DEPENDS_ON"):
        assert memory.link(ids[0], ids[1], kind).strength == 1.0
    memory.link(ids[2], ids[1], "PART_OF", 0.25)
    memory.link(ids[2], ids[3])
    with pytest.raises(InputError, match="strength"):
        memory.link(ids[0], ids[3], "PART_OF", 1.5)
    assert {found.fact.id: found.depth for found in memory.related(ids[0])} == {ids[1]: 1, ids[2]: 2}
    auto = desk.open("auto", compare={"auto_link": 3})
    first = auto.store("The harbour crane number 1 lifts heavy containers every morning.")
    desk.in_step("auto")
    auto.store("The cellar is damp.")
    second = auto.store("The harbour crane number 2 lifts heavy containers every morning.")
    [link] = auto.related(second.id)
    assert (link.fact.id, link.link.type) == (first.id, "RELATED_TO")


def test_row_13_supersession_and_as_of(desk: Desk) -> None:
    """ "the old fact gets superseded_at, superseded_by, and valid_until set. The new fact gets supersedes_id and
    valid_from. Search filters exclude superseded facts by default."; `valid_from <= @asOf AND (valid_until IS NULL
    OR valid_until > @asOf)`; `--as-of 2026-01-15`.
    """
    memory = desk.open()
    old = memory.store("The staging database is called heron.")
    desk.clock.advance(30 * DAY)
    new = memory.store("The staging database is called egret.", supersedes=old.id)
    desk.in_step()
    before, at = memory.get(old.id), desk.clock.now()
    assert (before.superseded_at, before.superseded_by, before.valid_until) == (at, new.id, at)
    assert (new.supersedes_id, new.valid_from) == (old.id, at)
    question = "What is the staging database called?"
    assert recalled(memory, question) == [new.text]
    assert recalled(memory, question, as_of="2027-01-20") == [old.text]
    assert recalled(memory, question, as_of=at - 1) == [old.text]
    assert recalled(memory, question, as_of=at) == [new.text]
    assert [hit.fact.text for hit in memory.search("staging database", as_of="2027-01-20")] == [old.text]
    assert tool(memory, "memory_recall", query=question, asOf="2027-01-20").details["memories"][0]["id"] == old.id


def test_row_14_four_levels_of_duplicates(desk: Desk) -> None:
    """Exact: `SELECT id FROM facts WHERE text = ? LIMIT 1`; fuzzy: "text is normalized (trim, collapse whitespace,
    lowercase) and SHA-256 hashed"; vector: `hasDuplicate(vector, threshold=0.95)`, "the LanceDB write is skipped
    (SQLite still stores the fact for structured queries)"; and classify-before-write.

    Otherwise: what is so near by its vector, and says the same in every detail, is confirmed, and no second row is
    stored, which would come up beside the first. Fuzzy is on by default.
    """
    memory = desk.open(compare={"vector": 0.85})
    text = "The harbour crane lifts heavy containers every single morning."
    first = memory.store(text)
    desk.in_step()
    for again in (
        text, "  the HARBOUR crane lifts   heavy containers every single morning. ",
        "The harbour crane lifts the heavy containers every single morning.",
    ):  # fmt: skip
        done = memory.store(again)
        assert (done.outcome, done.id) == ("confirmed", first.id), again
    assert memory.store("The harbour crane lifts heavy containers every single evening.").outcome == "stored"
    assert [fact.reinforced_count for fact in memory.get_all()] == [0, 3]
    if desk.way == "lance":
        store = desk.in_step()
        space = store.space()
        assert space is not None
        with closing(LanceIndex(store.lance_folder, space.id, space.dims, create=False)) as index:
            assert len(index.ids()) == 2
    told("keeping", "How statements are compared", "| nothing new is stored | it says the same in every detail")
    told("settings", "compare.vector", "=0.95`", "Minimum cosine for a text to be a duplicate by meaning")
    told("settings", "compare.normalised", "=true`")


def test_row_15_decay_classes_and_pruning(desk: Desk) -> None:
    """ "Hard-deletes expired facts; soft-decays confidence for aging facts"; "deletes any expired facts immediately";
    `decay_class (stable)`, freshness is "how far from expiry". The nine classes live for good; 90, 14 and 2 days;
    24 and 4 hours.

    Otherwise: where nobody names a class a memory is kept for good, unless its own words tell an end, so that no
    allergy ends with the to-do lists. What expired is in no answer from that moment on, and removed a year later: a
    clock may be wrong, and a memory that was ended by mistake comes back.
    """
    memory = desk.open()
    lives = {
        "permanent": None, "durable": 90 * DAY, "stable": 90 * DAY, "normal": 14 * DAY, "active": 14 * DAY,
        "short": 2 * DAY, "session": DAY, "ephemeral": DAY / 6, "checkpoint": DAY / 6,
    }  # fmt: skip
    ids = {name: memory.store(f"Berth {name} is taken.", decay_class=name).id for name in lives}
    for name, life in lives.items():
        assert memory.get(ids[name]).expires_at == (None if life is None else START + life), name
    assert memory.store("I'm allergic to nuts.").expires_at is None
    assert memory.store("I'm staying with Ann for now.").decay_class == "durable"
    desk.in_step()
    desk.clock.advance(3 * DAY)
    question = "Which berth is taken?"
    assert not {"Berth short is taken.", "Berth session is taken."} & set(recalled(memory, question))
    done = memory.admin.prune()
    assert set(done.expired) == {ids[name] for name in ("short", "session", "ephemeral", "checkpoint")}
    assert memory.unforget(ids["short"]).expires_at == desk.clock.now() + 2 * DAY
    desk.clock.advance(366 * DAY)
    assert ids["session"] in memory.admin.prune(confirmed=True).removed
    told("keeping", "How long a memory is kept",
         "Memories are kept forever: whatever is captured, or stored by you or a program, stays",
         "removed after `keep.expired_days` (a year by default)")  # fmt: skip
    told("jobs", "Expiry", "a memory no longer appears in any answer",
         "After `keep.expired_days` (a year by default)")  # fmt: skip


KILLED = """
import os, signal, sys
from perdure import Memory, TurnContext

memory = Memory.open(sys.argv[1], embedder="none", timers=False)
memory._engine.keeper.close()  # what captures is not reached any more
said = [{"role": "user", "content": "My boat is called Albatross."}]
print(memory.turns.after(said, True, TurnContext(session_id="s")), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_row_16_write_ahead_log(desk: Desk) -> None:
    """ "writes to the write-ahead log first (crash protection)"; "removes the WAL entry after successful commit";
    "Replays any uncommitted operations from the write-ahead log".

    Inbox and outbox are that log: a turn stands in the one before it is captured, a vector in the other until LanceDB
    has it. Nothing in them is dropped for its age.
    """
    home = desk.folder / "home"
    killed = subprocess.run([sys.executable, "-c", KILLED, home], capture_output=True, text=True, timeout=60)
    assert (killed.returncode, killed.stdout.strip()) == (-signal.SIGKILL, "1"), killed.stderr
    desk.clock.set(START + 400 * DAY)
    memory = desk.open()
    assert memory.settle()
    assert [fact.text for fact in memory.get_all()] == ["My boat is called Albatross."]
    assert not memory.admin.inbox()
    again = desk.open()
    assert again.settle()
    assert len(again.get_all()) == 1, "once"
    if desk.way == "lance":
        assert again.admin.sync_index()
        store = desk.store()
        assert store.outbox_state().waiting == 0
        [table] = store.lance_folder.glob("*.lance")
        assert [row["text"] for row in rows_in(table, ["text"])] == ["My boat is called Albatross."]


def test_row_17_timers(plain: Desk) -> None:
    """ "These run inside the gateway process — no cron needed": prune "Every 60 minutes", auto-classify "Every 24 hours
    (+ 5 min after startup)", proposal prune "Every 60 minutes", recovery "On startup".
    """
    memory = plain.open(embedder="none")
    engine, wanted = memory._engine, list[str]()
    timers = Scheduler(
        engine.store, engine.timers.jobs, plain.clock, TurnGate(), start_worker=lambda: None, chance=lambda: 0.0
    )  # fmt: skip
    over = memory.store("The crane is out of order.", decay_class="ephemeral")
    ran: dict[str, list[float]] = {}
    for _ in range(25 * 12):
        for name in timers.run_due():
            ran.setdefault(name, []).append(plain.clock.now() - START)
        for name, state in timers.states().items():
            if state.state == "wanted":  # the worker process does it
                wanted.append(name)
                timers.store.database.jot(schedule.ended, name, plain.clock.now(), plain.clock.now() + DAY, took=0.0,
                                          result="done", failed=False)  # fmt: skip
        plain.clock.advance(300)
    assert ran["prune"][:4] == [0, 3600, 7200, 10_800]
    assert ran["classify"] == [300, 300 + DAY]
    assert "classify" in wanted
    assert memory.admin.inventory(states=["expired"]).facts[0].fact.id == over.id
    told(
        "jobs", "", "| `prune` | host | at the start, then hourly | expires memories; drops old receipts, old",
        "conversations and unanswered proposals", "| `classify` | worker | after 5 minutes, then daily",
    )  # fmt: skip


def test_row_18_start_and_stop(plain: Desk) -> None:
    """Start: "replays any pending operations from the write-ahead log", "deletes any expired facts immediately",
    timers, tools, hooks; stop: "prune, classify, and proposal timers are cancelled", then "SQLite, LanceDB, and
    credentials vault (if enabled) are closed cleanly".

    Recovery comes before the prune, since what is recovered may have expired; the timers end before the stores.
    """
    first = plain.open(embedder="none")
    first._engine.keeper.close()
    first.turns.after([{"role": "user", "content": "Remember that I am at the Ibis hotel today."}], True, ME)
    first.close()
    plain.clock.advance(30 * DAY)
    plugin = hookimpls_for(home=plain.folder / "home", embedder="none", timers=True, clock=plain.clock)
    runner = HookRunner()
    runner.register(plugin)
    host = FakeHost(runner)
    host.start()
    store = plain.store()

    def done() -> list[str]:
        with store.database.read() as connection:
            return [row[0] for row in run(connection, "SELECT action FROM journal ORDER BY seq")]

    def ended() -> bool:
        with store.database.read() as connection:
            return bool(run(connection, "SELECT 1 FROM jobs WHERE name = 'prune' AND last_run IS NOT NULL"))

    assert until(lambda: ended() and "expire" in done())
    assert [action for action in done() if action in ("add", "expire")] == ["add", "expire"], "recovered first"
    host.turn("My boat is called Albatross.")
    host.stop()
    assert until(lambda: not any(thread.name == "perdure-timers" for thread in threading.enumerate()))
    store.close()
    left = [path.name for path in (plain.folder / "home").iterdir()]
    assert not any(name.endswith(("-wal", "-shm", "-journal")) for name in left)
    assert "Albatross" in plain.open(embedder="none").recall("What is my boat called?").block  # type: ignore[union-attr]


def test_row_19_tools(plain: Desk) -> None:
    """memory_store, memory_recall, memory_forget, memory_checkpoint, memory_prune, lookup, memory_link,
    memory_reflect; `memory_link(sourceId, targetId, linkType, strength)`; "The memory_store tool accepts a
    supersedes parameter (fact ID)"; "Search and lookup accept an optional tag parameter".

    The parameters of that system are accepted as they are written there.
    """
    names = {tool.name for tool in TOOLS}
    assert names >= {
        "memory_store", "memory_recall", "memory_forget", "memory_checkpoint", "memory_prune", "lookup", "memory_link",
        "memory_reflect", "memory_search", "memory_get",
    }  # fmt: skip
    memory = plain.open(embedder="none", compare={"classify": False})
    asked = "Remember that the pump hums at night, that the pump is new, and that the pump is old."

    def call(name: str, **values: Any) -> ToolResult:
        done = tool(memory, name, asked, **values)
        assert not done.refused, done.text
        return done

    ids = []
    for written in ("stable", "active", "checkpoint"):
        ids.append(call("memory_store", text=f"The pump hums, {written}", decayClass=written, tags="a,b").details["id"])
        assert memory.get(ids[-1]).expires_at == START + (LIFETIMES[written] or 0)
    assert memory.get(ids[0]).tags == ("a", "b")
    assert call("memory_store", text="The pump is new", decay_class="permanent").details["id"]
    assert call("memory_link", sourceId=ids[0], targetId=ids[1], linkType="CAUSED_BY", strength=0.5).details["id"]
    assert len(call("memory_recall", tag="b").details["memories"]) == 3
    new = call("memory_store", text="The pump is old", supersedes=ids[0], entity="pump", key="age", value="old")
    plain.clock.advance(60)
    assert ids[0] not in {each["id"] for each in call("memory_recall", query="pump hums stable").details["memories"]}
    former = call("memory_recall", query="pump hums stable", includeSuperseded=True).details["memories"]
    assert ids[0] in {each["id"] for each in former}
    assert call("memory_recall", query="pump", asOf="2027-01-16").details["memories"]
    assert call("lookup", entity="pump", key="age", asOf="2027-01-16").details["memories"][0]["id"] == new.details["id"]
    assert call("memory_checkpoint", intent="Move it", state="Here").details["id"]
    assert call("memory_forget", memoryId=ids[1]).details["id"] == ids[1]
    assert call("memory_reflect").details["examined"] >= 1
    assert not tool(memory, "memory_prune", "Please prune what has expired from your memory.").refused


def test_row_20_expansion_reflection_consolidation_distillation(plain: Desk) -> None:
    """ "asks the LLM for a short hypothetical answer or expanded query, then embeds that for vector search";
    memory_reflect: "Extract behavioral patterns"; "Consolidation (per cluster)" and "Reflection (per run)"
    "On-demand (CLI)"; "Session distillation (per session)" "On-demand / nightly cron".
    """
    with loopback(lambda request: chat(json.dumps(["the car of the user", "which vehicle do I own"]), 40)) as server:
        asking = plain.open("asking", llm_endpoint=f"{server.url}/v1", llm_model="m")
        asking.store("The car of the user is a red Fiat.")
        found = recalled(asking, "Which automobile belongs to me?", expand=True)
        assert (found, len(server.requests)) == (["The car of the user is a red Fiat."], 1)
    memory = plain.open(compare={"classify": False, "vector": 0}, record_sessions=True)
    for day, text in ((9, "I signed up for a pottery class."), (5, "I bought clay for my pottery class."),
                      (1, "My pottery class was fun again.")):  # fmt: skip
        put(plain.folder / "home", Fact(text, channel=Channel.USER, source_date=START - day * DAY))
    pattern = memory.upkeep.reflect()
    assert pattern.examined == 3
    assert all(fact.text for fact in pattern.patterns)
    for text in ("The harbour crane lifts heavy containers.", "The harbour crane really lifts heavy containers."):
        memory.store(text)
    merged = memory.upkeep.consolidate(cosine=0.85)
    assert len(merged.merges) == 1
    said = [{"role": "user", "content": "My sister lives in Porto.", "timestamp": START - 9e6}]
    memory.files.add_transcript(said, "old")
    assert memory.upkeep.distill().added == 1
    assert {"reflect", "consolidate", "distill"} <= set(COMMANDS)


def test_row_21_vault(plain: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "credentials vault (if enabled)", closed with the stores. Off until it is used, encrypted; recall shows the
    pointer and never the value.
    """
    monkeypatch.setenv("PERDURE_VAULT_PASSPHRASE", "correct horse battery staple")
    monkeypatch.setenv("PERDURE_HOME", str(plain.folder / "home"))
    monkeypatch.setenv("PERDURE_EMBEDDER", "none")
    memory = plain.open(embedder="none")
    assert not vault_file(plain.folder / "home").exists()
    call("vault", "store", "github", "--kind", "token", stdin="qv7-Zephyr-Mangrove-91x\n")
    shown = block(memory, "What is my github token?")
    assert "github" in shown
    assert "qv7-Zephyr" not in shown
    assert b"qv7-Zephyr" not in bytes_of(plain.folder / "home")
    with memory.admin.vault() as vault:
        [record] = vault.records()
        assert vault.get(record.id).value == "qv7-Zephyr-Mangrove-91x"
    with pytest.raises(StoreClosedError):
        vault.records()


def test_row_22_providers(plain: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "Local (embeddinggemma-300m via node-llama-cpp)" preferred, "OpenAI (text-embedding-3-small)", "Gemini
    (gemini-embedding-001)", "Voyage (voyage-4-large)", "Mistral (mistral-embed)"; "All embeddings are
    L2-normalized"; "Embedding provider: openai, gemini, voyage, mistral, local, or auto"; "OpenAI by default; or
    Ollama, ONNX, or Google".

    `local` and `builtin` are the local model; `auto` is, too, and never a remote one.
    """
    models = {name: provider.model for name, provider in PROVIDERS.items()}
    assert {name: models[name] for name in ("openai", "gemini", "google", "voyage", "mistral")} == {
        "openai": "text-embedding-3-small", "gemini": "gemini-embedding-001", "google": "gemini-embedding-001",
        "voyage": "voyage-4-large", "mistral": "mistral-embed",
    }  # fmt: skip
    assert models["ollama"]
    monkeypatch.setenv("VOYAGE_API_KEY", "k")
    with loopback(lambda request: Reply({"data": [{"index": 0, "embedding": [3.0] * 1024}]})) as server:
        [vector] = connect("voyage", url=server.url).embed(["The heron sleeps."])
        assert server.requests[0].body["model"] == "voyage-4-large"
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    extensions = load_extensions(Settings())
    makers = {name: extensions.get("embedders", name) for name in ("local", "builtin", "onnx", "auto")}
    identities = {name: make(Settings(embedder=name)).identity for name, make in makers.items()}
    assert set(identities.values()) == {identities["auto"]}
    assert identities["auto"].model.startswith("perdure-recall-1")
    with pytest.raises(ExtensionError) as refused:
        extensions.get("embedders", "nope")
    assert "voyage" in str(refused.value)
    for page in (str(refused.value), *(path.read_text() for path in DOCS.glob("*.md"))):
        assert not re.search(r"`hash`|\bhash,|embedder = \"hash\"", page), "what is for tests is offered nowhere"
    told("files", "Coming from OpenClaw", "`auto` and `local` both mean the local model, never a remote one")


def test_row_23_command_line(plain: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """`openclaw hybrid-mem store --text "..." --tags "nibe,modbus,hvac"`, `hybrid-mem store --text "..." --supersedes
    <fact-id>`, `openclaw hybrid-mem search "database" --as-of 2026-01-15`; reflection and consolidation "On-demand
    (CLI)". As written, with `perdure` as the command.
    """
    monkeypatch.setenv("PERDURE_HOME", str(plain.folder / "home"))
    monkeypatch.setenv("PERDURE_EMBEDDER", "none")
    [old] = call_json("store", "--text", "The database is heron", "--tags", "nibe,modbus,hvac")["facts"]
    assert old["tags"] == ["nibe", "modbus", "hvac"]
    [new] = call_json("store", "--text", "The database is egret", "--supersedes", old["id"])["facts"]

    def found(*words: str) -> list[str]:
        return [each["fact"]["text"] for each in call_json("search", "database", *words)["results"]]

    assert found() == ["The database is egret"]
    put(plain.folder / "home", Fact("The database is ibis", valid_from=START - 900 * DAY, created_at=START - 900 * DAY,
                                    valid_until=START - 300 * DAY, channel=Channel.LIBRARY))  # fmt: skip
    assert found("--as-of", "2026-01-15") == ["The database is ibis"]
    assert call_json("show", new["id"])["supersedes_id"] == old["id"]
    assert call("reflect").code == call("consolidate").code == 0


def workspace(plain: Desk, **files: str) -> Path:
    """Write MEMORY.md, and notes by their days."""
    folder = plain.folder / "workspace"
    (folder / "memory").mkdir(parents=True)
    for name, text in files.items():
        path = folder / ("MEMORY.md" if name == "memory" else f"memory/{name.removeprefix('d').replace('_', '-')}.md")
        path.write_text(text, encoding="utf-8")
    return folder


PREFERENCES = "## User Preferences\n\n- Preferred language: TypeScript\n- Testing: Vitest with >80% coverage\n"
TODAY = "## Session Notes\n\n- User prefers Express v5 over Fastify\n- Decided on pnpm workspaces\n"


def test_row_24_files_are_indexed(plain: Desk) -> None:
    """ "Both layers are indexed into a SQLite database for fast hybrid search."; sources `["memory"]`; "MEMORY.md —
    Evergreen knowledge", "memory/YYYY-MM-DD.md — Episodic entries".

    Otherwise: conversations are searched by default as well, as most of what is asked for later was said in one and
    noted nowhere. `sources = ["memory"]` is the document's default.
    """
    memory = plain.open(workspace=workspace(plain, memory=PREFERENCES, d2027_01_15=TODAY))
    memory.files.add_transcript([{"role": "user", "content": "The Vitest suite takes an hour."}], "old")
    memory.files.sync()
    assert list((plain.folder / "home").glob("index-*.db"))
    found = {result.path: result.source for result in memory.files.search("Vitest coverage", min_score=0.05).results}
    assert found.pop("MEMORY.md") == "memory"
    assert set(found.values()) == {"sessions"}
    assert memory.files.search("Express or Fastify?").results[0].path == "memory/2027-01-15.md"
    less = plain.open(workspace=plain.folder / "workspace", sources=("memory",))
    assert {each.source for each in less.files.search("Vitest coverage", min_score=0.0).results} == {"memory"}
    assert Settings().sources == ("memory", "sessions")
    told("files", "", "`MEMORY.md` (or `memory.md`), `USER.md` and `memory/**/*.md`")
    told("files", "Conversations", "Conversations are on by default", 'set `sources = ["memory"]`: nothing is recorded')


def test_row_25_watching(tmp_path: Path, clock: ManualClock) -> None:
    """ "watches for file changes using chokidar with a 1500ms debounce"; "The file's hash is compared against the
    stored hash in the files table"; "the file is re-chunked and re-embedded"; "Old chunks for the file are replaced
    with new ones".
    """
    watcher = FileWatcher(lambda: None)
    quiet = Debounce(watcher.debounce, 60)
    quiet.note(0.0)
    quiet.note(1.0)
    assert (watcher.debounce, quiet.due_at) == (1.5, 2.5)
    with closing(Workshop(tmp_path)) as shop:
        note = shop.note("2027-01-15", "The heron sleeps.")
        shop.index.sync(shop.roots)
        [(before,)] = shop.select("SELECT hash FROM files")
        note.write_text("The egret sleeps.")
        shop.index.sync(shop.roots)
        [(after,)] = shop.select("SELECT hash FROM files")
        assert before != after
        assert shop.texts() == ["The egret sleeps."]


def test_row_26_chunking(tmp_path: Path) -> None:
    """ "~400 tokens (~1600 characters)", "~80 tokens between adjacent chunks", "Chunks split at markdown heading
    boundaries when possible"; "Each chunk records its start_line and end_line in the source file"; "if the text
    hasn't changed, the embedding is reused from embedding_cache".

    There is no overlap at a heading that starts a chunk.
    """
    lines = [[f"Line {part}.{line} of the harbour log is this.\n" for line in range(70)] for part in range(2)]
    text = "\n".join(f"## Part {part}\n\n" + "".join(each) for part, each in enumerate(lines))
    with closing(Workshop(tmp_path)) as shop:
        shop.note("2027-01-15", text)
        shop.index.sync(shop.roots)
        rows = shop.select("SELECT text, start_line, end_line FROM chunks ORDER BY start_line")
        embedder = CountingEmbedder()
        assert shop.index.embed(embedder, 1_000) == len(rows)
        shop.note("2027-01-16", text)
        shop.index.sync(shop.roots)
        assert shop.index.embed(embedder, 1_000) == 0, "the same text has its vector"
    written = text.split("\n")
    assert all(len(chunk) <= 1_600 for chunk, *_ in rows)
    assert all("\n".join(written[start - 1 : end]).strip() == chunk.strip() for chunk, start, end in rows)
    [second] = [row for row in rows if row[0].startswith("## Part 1")]
    for (_, _, end), (chunk, start, _) in pairwise(rows):
        repeated = "\n".join(written[start - 1 : end])
        assert (len(repeated) == 0) if chunk == second[0] else (0 < len(repeated) <= 320)


REBUILDING = """
import os, signal, sys
from pathlib import Path
from tests.files.workshop import Workshop

shop, last = Workshop(Path(sys.argv[1])), int(sys.argv[2])
def step(done, total):
    if done >= last:
        os.kill(os.getpid(), signal.SIGKILL)
shop.index.sync(shop.roots, force=True, progress=step)
"""


@pytest.mark.sqlite
@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_row_27_safe_reindex(tmp_path: Path) -> None:
    """ "Creates a temporary database"; "Indexes all files into the temp DB"; "Atomically swaps the temp DB with the
    live DB"; "This prevents data loss if the process crashes mid-reindex."

    The new file becomes live by one row that changes, not by a rename: at any moment the old index is there, or the new
    one, whole.
    """
    with closing(Workshop(tmp_path)) as shop:
        for number in range(120):
            shop.note(f"n{number}", f"Note {number} of the old days.")
        shop.index.sync(shop.roots)
        whole = shop.texts()
        for moment in (0, 60, 119):
            killed = subprocess.run(
                [sys.executable, "-c", REBUILDING, tmp_path, str(moment)], capture_output=True, timeout=60,
                env=os.environ | {"PYTHONPATH": str(DOCS.parent)},
            )  # fmt: skip
            assert killed.returncode == -signal.SIGKILL, killed.stderr
            assert shop.texts() == whole, moment
        generation = shop.index.generations.live()
        shop.index.sync(shop.roots, force=True)
        rebuilt = shop.index.generations.live()
        assert generation is not None
        assert rebuilt is not None
        assert rebuilt.number > generation.number
        assert shop.texts() == whole


def test_row_28_memory_search(plain: Desk) -> None:
    """maxResults `6`, minScore `0.35`, vectorWeight `0.7`, textWeight `0.3`; path, startLine, endLine, score, snippet,
    citation; merge, then decay "score × 0.5^(age/30)", then MMR, then "Remove results below minScore (0.35)",
    "Return top 6 results".

    Otherwise: the weights are equal, which was measured to find more. The threshold comes before decay, so that an old
    note that answers still comes, behind newer ones; its shown score may then be below the limit.
    """
    search = Settings().search
    assert (search.max_results, search.min_score, search.vector_weight, search.half_life_days) == (6, 0.35, 0.5, 30)
    notes = {
        f"d2026_{month:02}_15": f"The staging database was moved in month {month} to a new rack."
        for month in range(3, 11)
    }
    memory = plain.open(
        workspace=workspace(plain, memory=PREFERENCES, **notes, d2027_01_15="The staging database is heron.\n")
    )
    found = memory.files.search("Where is the staging database?").results
    assert len(found) == 6
    [first, *_] = found
    assert (first.path, first.start_line, first.end_line) == ("memory/2027-01-15.md", 1, 1)
    assert set(first.to_dict()) >= {"path", "startLine", "endLine", "score", "snippet", "citation"}
    assert first.score > 0.35 > found[-1].score > 0
    assert found[-1].path.startswith("memory/2026-")
    told(
        "files", "Search", "meaning has the weight `search.vector_weight` (0.5)",
        "`python -m bench notes FILE`",
        "So an old note that matches is still returned, after newer ones, and may show a score below the limit",
    )  # fmt: skip


def test_row_29_memory_get(plain: Desk) -> None:
    """ "Retrieves raw text content from a specific memory file."; path, from, lines; "Both tools only access .md files
    within the workspace MEMORY.md and memory/ directory. Files outside this scope are rejected."
    """
    folder = workspace(plain, memory="one\ntwo\nthree\nfour\n", d2027_01_15="note\n")
    (folder / "secret.md").write_text("outside")
    (folder / "memory" / "data.txt").write_text("no note")
    (folder / "memory" / "linked.md").symlink_to(folder / "secret.md")
    memory = plain.open(workspace=folder)
    assert (
        call_tool(memory, "memory_get", {"path": "MEMORY.md", "from": 2, "lines": 2}, ME).details["text"]
        == "two\nthree"
    )
    assert memory.files.read("memory/2027-01-15.md#L1-L1").text == "note"
    for path in ("secret.md", "../workspace/secret.md", "memory/../secret.md", "/etc/passwd", "memory/data.txt",
                 "memory/linked.md"):  # fmt: skip
        refused = tool(memory, "memory_get", path=path)
        assert refused.refused or "There is no file" in refused.text, path
        assert "outside" not in refused.text
    for query in ("outside", "no note"):
        assert memory.files.search(query, min_score=0.0).results == () or all(
            result.path in ("MEMORY.md", "memory/2027-01-15.md")
            for result in memory.files.search(query, min_score=0.0).results
        )


def test_row_30_citations(plain: Desk) -> None:
    """auto: "Show citations in direct chats; suppress in groups/channels. This is the default."; on: "Always include
    citations with source file and line range."; off: "Never include citations."; `memory/2026-02-24.md#L12-L28`.
    """
    folder = workspace(plain, d2026_02_24="# Servers\n\nThe staging database is heron.\n")
    for mode, shown in (("auto", (True, False)), ("on", (True, True)), ("off", (False, False))):
        memory = plain.open(workspace=folder, search={"citations": mode}, recall_in_groups=True)
        for kind, is_shown in zip(("direct", "group"), shown, strict=True):
            caller = Memory(memory._engine, TurnContext(chat=kind))
            [result] = caller.files.search("staging database heron").results
            assert result.citation == ("memory/2026-02-24.md#L1-L3" if is_shown else None), (mode, kind)
    assert Settings().search.citations == "auto"


def test_row_31_degradation(plain: Desk) -> None:
    """ "Full hybrid search (vector + keyword)", "Vector-only search (pre-computed embeddings still work)", "FTS-only
    search (keyword matching via BM25)", "Memory disabled (returns { disabled: true })"; "New content simply won't
    get embeddings until a provider is configured."

    The rungs are hybrid, keyword, substring and disabled: without a provider no query has a vector, so that rung is
    keyword, and stored vectors stay for when one is back.
    """
    folder = workspace(plain, memory="The staging database is heron.\n")
    with_model = plain.open(workspace=folder, watch=False)
    assert with_model.files.search("staging database").backend == "hybrid"
    with_model.files.embed()
    without = plain.open(workspace=folder, watch=False, embedder="none")
    answer = without.files.search("staging database")
    assert (answer.backend, [result.path for result in answer.results]) == ("keyword", ["MEMORY.md"])
    (folder / "memory" / "2027-01-15.md").write_text("The egret is new.\n")
    assert without.files.search("egret").results[0].path == "memory/2027-01-15.md"
    assert with_model.files.search("egret").backend == "hybrid", "stored vectors stay"
    off = plain.open(sources=())
    assert off.files.search("staging database").to_dict()["disabled"] is True
    told("files", "When search is degraded", "| `hybrid` |", "| `keyword` |", "| `substring` |", "| `disabled` |")


def test_row_32_transcripts(plain: Desk) -> None:
    """ "the system can also index session transcripts (past conversations)"; "converts JSONL transcript files into
    Markdown-like content that can be chunked and embedded alongside memory files"; "Which sources to index: memory
    (files) and/or sessions", default `["memory"]`.

    Otherwise: on by default, since what people ask for later was mostly said and noted nowhere; one setting turns it
    off.
    """
    folder = plain.folder / "sessions"
    folder.mkdir()
    lines = [{"type": "session", "id": "s1"},
             {"type": "message", "message": {"role": "user", "content": "The kayak is kept in Tarifa."}},
             {"type": "message", "message": {"role": "toolResult", "content": "a tool's words on the kayak"}},
             {"type": "message", "message": {"role": "assistant", "content": "Noted."}}]  # fmt: skip
    (folder / "s1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    memory = plain.open()
    memory.files.add(folder, "sessions")
    result = memory.files.search("Where is the kayak kept?").results[0]
    assert (result.source, result.speaker, "Tarifa" in result.snippet) == ("sessions", "User", True)
    assert memory.files.search("a tool's words", min_score=0.5).results == ()
    off = plain.open(sources=("memory",))
    assert off.files.search("Where is the kayak kept?").results == ()
    told("files", "Conversations", "Most of what people later ask about was never written down elsewhere",
         "To turn this off, set `sources = [\"memory\"]`")  # fmt: skip


def test_row_33_flush_before_a_compaction(plain: Desk) -> None:
    """`totalTokens ≥ contextWindow - reserveTokensFloor - softThresholdTokens`, "softThresholdTokens defaults to
    4000"; "The agent is prompted to write important context to memory/YYYY-MM-DD.md"; "The compaction counter is
    updated to prevent repeated flushes".
    """
    memory = plain.open(embedder="none")
    assert (memory.files.flush_due(175_999, 200_000, 0, "s"), Settings().flush.soft_tokens) == (None, 4_000)
    due = memory.files.flush_due(176_000, 200_000, 0, "s")
    assert due is not None
    assert "memory/2027-01-15.md" in due.prompt
    assert memory.files.flush_due(180_000, 200_000, 0, "s") is None, "once"
    assert memory.files.flush_due(180_000, 200_000, 1, "s") is not None, "and again after the compaction"


def test_row_33_a_compaction_is_when_the_librarian_reads(plain: Desk) -> None:
    """What a model would save at a flush, the librarian reads in the form that it always uses, with the one question
    that it would have asked later.
    """
    with loopback(lambda request: chat('{"operations": [{"op": "nothing"}]}')) as server:
        asked: dict[str, Any] = {"llm_endpoint": server.url, "llm_model": "m", "librarian": True, "timers": False}
        memory = plain.open(embedder="none", **asked)
        said = [{"role": "user", "content": "The stall needs two people on Sundays."}]
        memory.turns.after(said, True, ME)
        assert memory.settle()
        assert memory._engine.librarian.run() == "no conversation is idle yet; 1 turn waiting"
        memory.turns.before_compaction(said, ME)
        assert memory.settle()
        for did in ("nothing", "nothing to read"):
            assert memory._engine.librarian.run() == did
        assert len(server.requests) == 1


def test_row_34_system_prompt_and_slot(plain: Desk) -> None:
    """ "Memory is woven into the system prompt at three points. These only appear in full prompt mode." (Memory Recall,
    Project Context, Runtime); "Its full contents are injected into the prompt"; "Plugin slot for memory backend
    (allows alternative implementations)". The slot's value is `perdure`.
    """
    memory = plain.open(embedder="none", workspace=workspace(plain, memory=PREFERENCES))
    full = memory.turns.before("hello", TurnContext(session_id="s", prompt_mode="full"))
    assert full is not None
    assert [section.name for section in full.sections] == ["memory recall", "project context", "runtime"]
    assert "memory_search" in full.sections[0].text
    assert PREFERENCES.strip() in full.sections[1].text
    assert memory.turns.before("hello", TurnContext(session_id="t", prompt_mode="minimal")) is None
    manifest = json.loads((DOCS.parent / "openclaw.plugin.json").read_text())
    assert (manifest["id"], manifest["kind"]) == ("perdure", "memory")


def test_row_35_scopes(desk: Desk) -> None:
    """`global`, `agent:main`, `custom:work`; `(scope = 'x' OR scope = 'y') OR scope IS NULL`; "Double-checks scope
    filter in application layer (defense-in-depth)"; "Application layer defaults null/undefined scope" to `global`.
    """
    scopes = ("global", "custom:work", "custom:home")
    owner, agent = desk.open(scopes=scopes[1:]), desk.open(agent="main")
    for scope in (*scopes, "agent:main"):
        (agent if scope == "agent:main" else owner).store(f"The {scope} crane lifts containers.", scope=scope)
    desk.in_step()
    for opened, read in (
        ({}, {"global"}), ({"agent": "main"}, {"global", "agent:main"}), ({"agent": "other"}, {"global"}),
        ({"scopes": ["custom:work"]}, {"global", "custom:work"}),
    ):  # fmt: skip
        memory = desk.open(recall_limit=20, **opened)
        expected = {f"The {scope} crane lifts containers." for scope in read}
        assert {fact.text for fact in memory.get_all()} == expected
        assert set(recalled(memory, "Which crane lifts containers?")) == expected
        assert {hit.fact.text for hit in memory.search("crane lifts containers")} == expected
    assert Fact("Of nobody in particular.").scope == "global"
    told("moving", "Import", "a missing scope is `global`")


def test_row_36_crud(desk: Desk) -> None:
    """ "Supports full UUID or 8+ hex char prefix"; "errors if ambiguous (>1 match)"; update "Preserves original
    timestamp"; bulk delete "Requires at least scope OR timestamp filter (safety guard)"; import "Preserves original
    id and timestamp", "Validates vector dimensions match"; list `limit = 20, offset = 0`, "sorts by timestamp
    descending".

    Otherwise: new words make a new version with an id of its own, so that the former one stays for `--as-of` and undo.
    The dates are kept.
    """
    memory = desk.open()
    old = memory.store("The staging database is called heron.")
    desk.clock.advance(30 * DAY)
    new = memory.update(old.id[:8], text="The staging database is called egret.")
    assert new.id != old.id
    assert (new.created_at, new.source_date) == (old.created_at, old.source_date)
    said = desk.store()
    with said.write(AUTHOR) as tx:
        dated = tx.add(Fact("Ann moved out.", source_date=START - DAY, scope="user", scope_target="owner",
                            channel=Channel.USER))  # fmt: skip
    again = memory.update(dated.id, text="Ann moved in.")
    assert (again.created_at, again.source_date) == (dated.created_at, START - DAY)
    assert recalled(memory, "What is the staging database called?") == [new.text]
    assert recalled(memory, "What is the staging database called?", as_of="2027-01-20") == [old.text]
    assert memory.forget(again.id[:8]).forgotten_at is not None
    with pytest.raises((InputError, NotFoundError)):
        memory.get(new.id[:7])
    twins = ["aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"]
    put(desk.folder / "home", *(Fact(f"Twin {each[-1]}.", id=each, channel=Channel.LIBRARY) for each in twins))
    with pytest.raises(AmbiguousIdError):
        memory.get("aaaaaaaa")
    with pytest.raises(InputError, match="scope or a date"):
        memory.admin.forget_many(Filter(category="fact"))
    listed = memory.admin.list()
    assert [fact.effective_date for fact in listed] == sorted((fact.effective_date for fact in listed), reverse=True)
    file = desk.folder / "out.jsonl"
    memory.admin.export(file, vectors=True)
    other = desk.open("other")
    other.admin.import_from(file, trust=True)
    assert (other.get(new.id).text, other.get(new.id).created_at) == (new.text, START)
    odd = desk.folder / "odd.jsonl"
    odd.write_text(re.sub(r'"vector": "[^"]+"', '"vector": "AAAA"', file.read_text()))
    with pytest.raises(InputError, match="vector"):
        desk.open("third").admin.import_from(odd, trust=True)
    assert inspect.signature(memory.admin.list).parameters["limit"].default == 20
    told("keeping", "Superseded memories", "with its own id and the dates of the previous one")


@pytest.mark.sqlite
def test_row_37_lancedb_words_with_fallback(plain: Desk) -> None:
    """ "Calls createFtsIndex() — graceful fallback if unavailable"; `table.search(query, "fts")`; "Catches errors
    gracefully, returns [] on failure".

    Where the document goes on with vectors alone, SQLite's own index of words answers.
    """
    texts = ["The heron sleeps in the reeds.", "My boat is called Albatross.", "The cellar floods in spring."]
    memory = plain.open(vector_index="lance", index={"lexical": "lance"})
    for text in texts:
        memory.store(text)
    assert memory.admin.sync_index()

    def answered() -> str:
        kept: list[Receipt] = []
        assert recalled(memory, "Where does the heron sleep?", receipt_to=kept.append)[:1] == texts[:1]
        by: str = memory.why(kept[0]).legs["sqlite"]["index"]
        return by

    # The index is built behind the last row.
    assert until(lambda: answered() == "lance")
    [folder] = (plain.folder / "home" / "lancedb").glob("memories_*.lance")
    table = lancedb.connect(folder.parent).open_table(folder.stem)
    assert [(each.index_type, each.columns) for each in table.list_indices()] == [("FTS", ["text"])]
    assert [row["text"] for row in table.search("heron", query_type="fts").to_arrow().to_pylist()] == texts[:1]
    shutil.rmtree(folder)
    assert answered() == "fts5"


def test_row_38_no_injection(desk: Desk) -> None:
    """ "escapeSqlLiteral() escapes single quotes by doubling them"; "All user-provided strings go through this function
    before SQL interpolation". As the effect: quotes in scopes, tags, ids and texts change no statement, of SQLite
    or of LanceDB.
    """
    evil = "x' OR '1'='1"
    scope = f"custom:{evil}"
    memory = desk.open(scopes=[scope, "custom:plain"])
    kept = memory.store(
        f"The crane {evil} lifts'; DROP TABLE facts; --", scope=scope, tags=[evil], entity=evil, key=evil
    )
    memory.store("The crane of others lifts.", scope="custom:plain")
    desk.in_step()
    reader = desk.open(scopes=[scope])
    assert [fact.id for fact in reader.get_all()] == [kept.id]
    assert [hit.fact.id for hit in reader.search(f"crane lifts {evil}")] == [kept.id]
    assert recalled(reader, f"Which crane {evil} lifts?") == [kept.text]
    assert [fact.id for fact in reader.lookup(evil, evil, tag=evil)] == [kept.id]
    assert desk.open(scopes=["custom:x"]).get_all() == []
    for asked in (evil, f"{'a' * 8}' OR 1=1 --"):
        with pytest.raises((InputError, NotFoundError)):
            reader.get(asked)
    memory.forget(kept.id)
    desk.in_step()
    assert [fact.text for fact in memory.get_all()] == ["The crane of others lifts."]


OPENING = """
import sys
from perdure import Memory

with Memory.open(sys.argv[1], embedder="none", timers=False) as memory:
    memory.store(f"Process {sys.argv[2]} was here.")
"""


@pytest.mark.sqlite
def test_row_39_one_store_of_many_openers(plain: Desk) -> None:
    """ "doInitialize() is guarded by initPromise to prevent concurrent initialization."; "tries openTable("memories")
    first, creates only if missing"; "falls back to openTable". As the effect: many open one new folder, one store
    comes of it.
    """
    home = plain.folder / "new"
    command = [sys.executable, "-c", OPENING, str(home)]
    processes = [subprocess.Popen([*command, str(number)], stderr=subprocess.PIPE) for number in range(3)]
    failed: list[BaseException] = []

    def opened(number: int) -> None:
        try:
            with Memory.open(home, embedder="none", timers=False) as memory:
                memory.store(f"Thread {number} was here.")
        except PerdureError as error:
            failed.append(error)

    threads = [threading.Thread(target=opened, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [(process.wait(60), process.communicate()[1]) for process in processes] == [(0, b"")] * 3
    assert failed == []
    with Memory.open(home, embedder="none", timers=False) as memory:
        assert len(memory.get_all()) == 9
        assert memory.admin.verify() == []


@pytest.mark.sqlite
def test_row_40_daily_exports(plain: Desk) -> None:
    """ "Daily JSONL export"; `memory-backup-YYYY-MM-DD.jsonl`; "Keeps last 7 backups, auto-purges older ones"; "First
    backup: 60 seconds after startup"; "Vectors are NOT included in backups (only text metadata)".

    The file is `exports/facts-YYYY-MM-DD.jsonl`.
    """
    memory = plain.open()
    store, keep = plain.store(), Settings().keep.copies
    for day in range(9):
        memory.store(f"Day {day} has come.")
        export_day(store, keep, lambda: None)
        plain.clock.advance(DAY)
    names = [path.name for path in daily_files(plain.folder / "home")]
    assert names == [f"facts-2027-01-{day}.jsonl" for day in range(23, 16, -1)]
    text = daily_files(plain.folder / "home")[0].read_text()
    assert "Day 8 has come." in text
    assert '"vector"' not in text
    [job] = [job for job in memory._engine.timers.jobs if job.name == "export"]
    assert (job.first, job.every) == (60, DAY)


WITHOUT_NETWORK = """
import socket, sys

def refused(*given, **named):
    raise OSError("there is no network")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refused
from perdure import Memory

with Memory.open(sys.argv[1]) as memory:
    memory.ready()
    memory.store("My daughter is allergic to peanuts.")
    memory.store("The staging database is called heron.")
    memory.store("I cycle to work.")
    for prompt in ("What food is dangerous for my kid?", "How do I commute?"):
        recall = memory.recall(prompt)
        print([item.text for item in recall.items] if recall else [])
"""


def test_row_41_meaning_offline(tmp_path: Path) -> None:
    """ "The local provider runs entirely on the user's machine with no API calls."; "finding facts that are
    semantically similar to a query even when the exact words don't match"; "free with local providers such as
    Ollama or ONNX". With no setting, key or network.
    """
    plainly = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    command = [sys.executable, "-c", WITHOUT_NETWORK, str(tmp_path / "home")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=plainly, check=False)
    assert done.stdout.splitlines() == ["['My daughter is allergic to peanuts.']", "['I cycle to work.']"], done.stderr
