"""What was purged is in no byte of the data folder and comes back by no way; what no search can see is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.clock import ManualClock
from perdure.embed.deterministic import HashEmbedder
from perdure.errors import AmbiguousIdError, InputError, NotFoundError, StoreBusyError
from perdure.hooks.types import Channel
from perdure.index.vector_index import ExactIndex
from perdure.lance.indexer import Indexer
from perdure.maintenance.certificate import Needles
from perdure.maintenance.purge import CERTIFIED, PENDING, Purge, certify, holding, plan, purge, purges, resolve
from perdure.maintenance.verify import verify
from perdure.store import receipts
from perdure.store.fact import Fact
from perdure.store.folder import Presence, alone
from perdure.store.inbox_lines import damaged_turns, line_of
from perdure.store.links import link
from perdure.store.scope import Audience
from perdure.store.seals import is_purged, seal
from perdure.store.search import View
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, Transaction
from perdure.text.normalise import fingerprint

AUTHOR = Author(Channel.LIBRARY, "test")
EMBEDDER = HashEmbedder()
SPACE = VectorSpace(EMBEDDER.identity.id, EMBEDDER.identity.dims, asdict(EMBEDDER.identity))
SECRET = "My neighbour Xylophilus Quagmire owes me seven hundred crowns."
TRACES = [word.encode() for word in ("Xylophilus", "xylophilu", "ylophilus", "Quagmire", "quagmir", "uagmire")]
"""Words that nothing else says, as they are and as the index holds them."""


@pytest.fixture(scope="module", autouse=True)
def private() -> Iterator[None]:
    """Let LanceDB make private files, as the worker process does."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@contextmanager
def changing(store: Store) -> Iterator[Transaction]:
    with store.write(AUTHOR) as tx:
        yield tx
        seal(tx.connection)


def add(store: Store, *facts: Fact) -> list[str]:
    store.adopt_space(SPACE)
    with changing(store) as tx:
        return [tx.add(fact).id for fact in facts]


def sync(store: Store) -> None:
    indexer = Indexer(store, lambda: EMBEDDER, 50)
    while indexer.step():
        pass
    indexer.close()
    with store.database.write() as connection:
        seal(connection)


def others(count: int = 20) -> list[Fact]:
    return [Fact(f"The meeting number {number} is in the blue room on floor {number}.") for number in range(count)]


def traces(folder: Path) -> list[tuple[str, bytes]]:
    """Return where a word of the secret still is. For closed stores: reading a file drops SQLite's locks on it."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [(path.name, trace) for path in files for trace in TRACES if trace in path.read_bytes()]


def the_only(found: list[Purge]) -> Purge:
    [only] = found
    return only


class TestWhatGoes:
    def test_no_byte_is_left_in_any_file(self, store: Store) -> None:
        wanted, *_ = add(store, Fact(SECRET, entity="Xylophilus Quagmire", why="said at lunch"), *others())
        sync(store)
        vector = EMBEDDER.embed([SECRET])[0].tobytes()
        with store.database.write() as connection:
            for name, query, found in (("r1", f"Is it true? {SECRET}", []), ("r2", "And Quagmire?", [{"id": wanted}])):
                receipts.put(connection, name, 1.0, "s1", "user:owner", {"query": query, "candidates": found})
        store.park("e:1", "ValueError", json.dumps({"messages": [{"text": f"Hm. {SECRET} Well."}, {"text": "kept"}]}))
        made = purge(store, [wanted], AUTHOR)
        assert (made.state, made.facts) == (PENDING, (wanted,))
        sync(store)
        assert the_only(certify(store)).state == CERTIFIED
        sync(store)
        assert [finding.where for finding in verify(store)] == ["e:1"]
        with store.database.read() as connection:
            parked = run(connection, "SELECT entry FROM inbox_parked")[0][0]
            known = {each.id: each.body for each in receipts.listed(connection, Audience.of(), 9)}
            assert known["r1"] == {"query": "Is it true? ", "candidates": []}
            assert known["r2"] == {"query": "", "candidates": [{"id": wanted}]}
        assert [message["text"] for message in json.loads(parked)["messages"]] == ["Hm.  Well.", "kept"]
        folder = store.folder
        store.close()
        assert traces(folder) == []
        assert not any(vector[:32] in path.read_bytes() for path in folder.rglob("*") if path.is_file())

    def test_the_same_text_and_what_carries_it_go_with_it(self, store: Store) -> None:
        same, shouted, carrier, told, apart = (
            Fact(SECRET),
            Fact(SECRET.upper(), scope="agent", scope_target="work"),
            Fact(f"He told me: {SECRET} I laughed."),
            Fact("A note about a neighbour.", metadata={"quote": f'"{SECRET}"'}),
            Fact("My neighbour owes me an apology."),
        )
        ids = add(store, same, shouted, carrier, told, apart)
        with store.database.read() as connection:
            doomed = {item.id: item.why for item in plan(connection, ids[:1])}
        assert doomed == {
            ids[0]: "requested",
            ids[1]: "the same text",
            ids[2]: "contains the text",
            ids[3]: "contains the text",
        }
        purge(store, ids[:1], AUTHOR)
        with store.database.read() as connection:
            assert run(connection, "SELECT id FROM facts") == [(ids[4],)]

    def test_short_texts_take_no_others_along(self, store: Store) -> None:
        ids = add(store, Fact("I drink tea"), Fact("I drink tea and coffee"))
        purge(store, ids[:1], AUTHOR)
        with store.database.read() as connection:
            assert run(connection, "SELECT id FROM facts") == [(ids[1],)]

    def test_what_stays_is_as_it_was(self, store: Store) -> None:
        before, wanted, after = add(store, Fact("Before it."), Fact(SECRET), Fact("After it."))
        with changing(store) as tx:
            tx.supersede(before, wanted)
            link(tx, after, wanted)
        purge(store, [wanted], AUTHOR)
        with store.database.read() as connection:
            assert run(connection, "SELECT superseded_by FROM facts WHERE id = ?", (before,)) == [(wanted,)]
            assert run(connection, "SELECT count(*) FROM memory_links") == [(0,)]
            journal = run(connection, "SELECT DISTINCT action FROM journal WHERE fact_id = ?", (wanted,))
        assert ("purge",) in journal
        assert verify(store) == []

    def test_a_common_passage_of_long_texts_does_not_hold_it_up(self, store: Store) -> None:
        shared = "This very long preamble stands in both of them, word for word, from begin to end. " * 8
        wanted, stays = add(store, Fact(shared + SECRET * 8), Fact(shared + "And nothing else."))
        purge(store, [wanted], AUTHOR)
        assert the_only(certify(store)).state == CERTIFIED
        folder = store.folder
        with store.database.read() as connection:
            assert run(connection, "SELECT id FROM facts") == [(stays,)]
        store.close()
        assert traces(folder) == []

    def test_an_unknown_fact_removes_nothing(self, store: Store) -> None:
        [known] = add(store, Fact(SECRET))
        with pytest.raises(NotFoundError):
            purge(store, [known, "00000000-0000-4000-8000-000000000000"], AUTHOR)
        with pytest.raises(InputError):
            purge(store, [], AUTHOR)
        with store.database.read() as connection:
            assert run(connection, "SELECT id FROM facts") == [(known,)]
        assert purges(store) == []

    def test_other_open_stores_no_longer_find_it(self, store: Store, tmp_path: Path) -> None:
        wanted, other = add(store, Fact(SECRET), Fact("The meeting is in the blue room."))
        sync(store)
        elsewhere = Store(store.folder, clock=store.clock)
        index = ExactIndex(elsewhere.database, SPACE.id, SPACE.dims)
        query, view = EMBEDDER.embed([SECRET], query=True)[0], View(Audience.of(), store.clock.now())
        assert [hit.id for hit in index.search(query, view, 5)] == [wanted, other]
        purge(store, [wanted], AUTHOR)
        assert [hit.id for hit in index.search(query, view, 5)] == [other]
        index.close()
        elsewhere.close()


class TestComingBack:
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
    @given(st.text(min_size=1, max_size=80).filter(lambda text: text.strip("\0 \n\t") != ""))
    def test_a_purged_text_is_known_in_any_spelling(self, store: Store, text: str) -> None:
        try:
            [wanted] = add(store, Fact(text))
        except InputError:
            return  # nothing but spaces
        with store.database.read() as connection:
            stored = run(connection, "SELECT text FROM facts WHERE id = ?", (wanted,))[0][0]
        purge(store, [wanted], AUTHOR)
        with store.database.read() as connection:
            assert is_purged(connection, store.key, stored)
            assert is_purged(connection, store.key, f"  {stored.lower()} ")
            assert not is_purged(connection, store.key, f"{stored} and more")

    def test_nobody_can_guess_texts_from_what_is_kept(self, store: Store) -> None:
        purge(store, add(store, Fact(SECRET)), AUTHOR)
        with store.database.read() as connection:
            [(kept,)] = run(connection, "SELECT key FROM tombstones")
        assert kept != fingerprint(SECRET)
        with store.database.read() as connection:
            assert not is_purged(connection, b"another key", SECRET)


class TestCertificate:
    def test_it_waits_for_who_has_the_store_open(self, store: Store) -> None:
        purge(store, add(store, Fact(SECRET)), AUTHOR)
        with elsewhere(store.folder) as process:
            waiting = the_only(certify(store))
            assert (waiting.state, waiting.waiting) == (PENDING, "another process has the store open")
            assert process.poll() is None
        assert the_only(certify(store)).state == CERTIFIED
        assert certify(store) == []

    def test_it_does_not_wait_for_who_was_killed(self, store: Store) -> None:
        purge(store, add(store, Fact(SECRET)), AUTHOR)
        with elsewhere(store.folder) as process:
            process.kill()
            process.wait()
            assert the_only(certify(store)).state == CERTIFIED

    def test_it_waits_for_turns_that_may_say_it(self, store: Store) -> None:
        purge(store, add(store, Fact(SECRET)), AUTHOR)
        entry = store.inbox.append({"messages": [{"text": SECRET}]})
        assert the_only(certify(store)).waiting == "1 turn still to be captured"
        store.inbox.finish(entry["id"])
        assert the_only(certify(store)).state == CERTIFIED

    def test_it_waits_for_turns_of_a_process_that_was_killed(self, store: Store) -> None:
        purge(store, add(store, Fact(SECRET)), AUTHOR)
        left = store.folder / "inbox" / "gone.jsonl"
        left.write_text(json.dumps({"text": SECRET}))
        waiting = the_only(certify(store)).waiting
        assert waiting is not None
        assert waiting.startswith("inbox/gone.jsonl")
        left.unlink()
        assert the_only(certify(store)).state == CERTIFIED

    def test_it_takes_damaged_turns_with_it_as_no_search_finds_a_text_in_them(self, store: Store) -> None:
        inbox = store.folder / "inbox"
        left = inbox / "gone.jsonl"
        left.write_bytes(line_of({"messages": [{"text": SECRET}]}).replace(b"Quagmire", b"Quagmire"[:-1] + b"d"))
        purge(store, add(store, Fact(SECRET)), AUTHOR)
        waiting = the_only(certify(store)).waiting
        assert waiting is not None
        assert waiting.startswith("inbox/gone.jsonl")
        assert [list(entries) for entries in store.inbox.adopt()] == [[]]
        assert len(damaged_turns(inbox)) == 1
        done = the_only(certify(store))
        assert (done.state, done.damaged) == (CERTIFIED, 1)
        assert not any(b"Quagmir" in path.read_bytes() for path in store.folder.rglob("*") if path.is_file())

    def test_it_names_what_it_leaves_alone(self, store: Store) -> None:
        wanted = add(store, Fact(SECRET))
        backups = store.folder / "backups"
        backups.mkdir()
        (backups / "facts-1.db").write_bytes(b"..." + SECRET.encode() + b"...")
        (backups / "facts-2.db").write_bytes(b"nothing of it")
        (store.folder / "index-1.db").write_bytes(SECRET.encode())
        purge(store, wanted, AUTHOR)
        done = the_only(certify(store))
        assert done.state == CERTIFIED
        assert dict(done.kept) == {
            "backups/facts-1.db": "backup or export",
            "index-1.db": "index: the text is in a file or session file that perdure does not own",
        }
        assert done.beyond
        assert done.files > 2

    @pytest.mark.parametrize(
        "point",
        ["transaction.begun:1", "commit.before:1", "commit.after:1"]
        + [f"commit.{when}:{number}" for number in (2, 3) for when in ("before", "after")],
    )
    @pytest.mark.sqlite
    def test_a_kill_on_the_way_is_made_good_at_the_next_start(self, tmp_path: Path, point: str) -> None:
        folder = tmp_path / "killed"
        store = Store(folder, clock=ManualClock())
        [wanted, *_] = add(store, Fact(SECRET), *others())
        sync(store)
        store.close()
        killed = subprocess.run([sys.executable, "-c", PURGING, str(folder), wanted, point], check=False)
        assert killed.returncode == 137
        store = Store(folder, clock=ManualClock())
        if not purges(store):
            purge(store, [wanted], AUTHOR)
        certify(store)
        assert the_only(purges(store)).state == CERTIFIED
        sync(store)
        assert verify(store) == []
        store.close()
        assert traces(folder) == []

    def test_what_it_looks_for_cannot_be_read_while_it_is_pending(self) -> None:
        needles = Needles((SECRET, "Ein zweiter Text: früher"), (b"\1\2\3" * 30,))
        masked = needles.masked(b"key", "name")
        assert not any(trace in masked for trace in TRACES)
        assert Needles.unmasked(masked, b"key", "name") == needles


PURGING = """
import os, sys
from pathlib import Path
os.environ["PERDURE_FAIL_POINT"] = ""
from perdure import failpoints
from perdure.hooks.types import Channel
from perdure.maintenance.purge import certify, purge
from perdure.store.store import Store
from perdure.store.transaction import Author

store = Store(Path(sys.argv[1]))
failpoints._armed, _, number = sys.argv[3].partition(":")
failpoints._fatal = int(number)
purge(store, [sys.argv[2]], Author(Channel.CLI, "test"))
certify(store)
"""
OPEN = """
import sys
from pathlib import Path
from perdure.store.folder import Presence

presence = Presence(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
presence.close()
"""


@contextmanager
def elsewhere(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Have the store open in another process during the block."""
    command = [sys.executable, "-c", OPEN, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        if process.poll() is None:
            process.communicate()


class TestPresence:
    def test_who_works_alone_keeps_others_out(self, tmp_path: Path) -> None:
        with alone(tmp_path) as free:
            assert free
            with pytest.raises(StoreBusyError, match="has been purging"):
                Presence(tmp_path, patience=0.01)
            with alone(tmp_path) as again:
                assert not again

    def test_one_of_this_process_is_the_caller_himself(self, tmp_path: Path) -> None:
        first = Presence(tmp_path)
        with alone(tmp_path) as free:
            assert free
        second = Presence(tmp_path)
        with alone(tmp_path) as free:
            assert not free
        second.close()
        second.close()
        with alone(tmp_path) as free:
            assert free
        first.close()
        assert [path.name for path in (tmp_path / "presence").iterdir()] == ["door.lock"]


class TestNames:
    def test_an_id_may_be_cut_short(self, store: Store) -> None:
        [wanted] = add(store, Fact(SECRET))
        twins = add(store, *(replace(fact, id=f"12345678-{n}") for n, fact in enumerate(others(2))))
        with store.database.read() as connection:
            assert resolve(connection, wanted[:8].upper()) == wanted
            with pytest.raises(AmbiguousIdError):
                resolve(connection, twins[0][:8])
            with pytest.raises(NotFoundError):
                resolve(connection, "ffffffff-0000")
            with pytest.raises(InputError):
                resolve(connection, "1234567")

    def test_what_holds_a_text_is_found_in_every_column(self, store: Store) -> None:
        ids = add(store, Fact("One.", why=SECRET), Fact("Two.", value=SECRET.upper()), Fact("Three."))
        with store.database.read() as connection:
            assert holding(connection, SECRET) == ids[:2]
