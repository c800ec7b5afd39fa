"""What is exported and imported again is the same, and an import harms nothing that is there."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.clock import ManualClock
from perdure.errors import InputError
from perdure.hooks.types import Channel
from perdure.maintenance.exchange import ExportFile, export
from perdure.maintenance.importing import CHUNK, Imported, bring_in
from perdure.maintenance.purge import purge
from perdure.store.fact import Fact
from perdure.store.links import TYPES, link
from perdure.store.scope import Audience
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import MAX_TEXT, StoredVector
from perdure.store.undo import batches, undo
from tests.kit import AUTHOR, add, all_facts

SPACE = VectorSpace("space-1", 2, {"model": "test"})
VECTOR = StoredVector("space-1", b"\0\0\x80\x3f\0\0\0\0")
SECRET = "sk-proj-aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYz"


def lines(path: Path, kind: str | None = None) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [line for line in found if kind in (None, line["type"])]


def rewrite(path: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in change(lines(path))))
    return path


def take(store: Store, path: Path, **options: Any) -> Imported:
    return bring_in(store, ExportFile(path).load(store.key), **options)


@pytest.fixture
def other(tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    opened = Store(tmp_path / "other", clock=clock)
    yield opened
    opened.close()


TIMES = st.none() | st.floats(1, 2e9)
WORDS = st.none() | st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
SCOPES = st.sampled_from([("global", ""), ("user", "owner"), ("agent", "main"), ("custom", "a:b"), ("project", "é")])
FACTS = st.builds(
    lambda scope, **values: Fact(scope=scope[0], scope_target=scope[1], **values),
    SCOPES,
    id=st.uuids().map(str),
    text=st.text(min_size=1, max_size=400).map(lambda text: f"x{text}"),
    why=WORDS, category=st.sampled_from(["fact", "preference", "my own"]), importance=st.floats(0, 1),
    entity=WORDS, key=WORDS, value=WORDS, source=st.sampled_from(["conversation", "file"]),
    channel=st.sampled_from(list(Channel)), created_at=st.floats(1, 2e9), source_date=TIMES,
    decay_class=st.sampled_from(["permanent", "stable", "short", "unheard of"]), expires_at=TIMES,
    decay_freeze_until=TIMES, last_confirmed_at=TIMES, confidence=st.floats(0, 1), summary=WORDS,
    tags=st.lists(st.text(max_size=5), max_size=3).map(tuple), preserve_tags=st.booleans(),
    recall_count=st.integers(0, 99), last_accessed=TIMES, valid_from=TIMES, valid_until=TIMES, superseded_at=TIMES,
    superseded_by=st.none() | st.uuids().map(str), forgotten_at=TIMES, tier=st.sampled_from(["hot", "cold"]),
    provenance_session=WORDS, pinned=st.booleans(), review_state=st.sampled_from(["approved", "pending"]),
    metadata=st.dictionaries(st.text(max_size=5), JSON, max_size=3),
)  # fmt: skip
LINKS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from(TYPES), st.floats(0, 1)), max_size=5)


@contextmanager
def stores(count: int) -> Iterator[list[Store]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        opened = [Store(folder / str(number), clock=ManualClock()) for number in range(count)]
        for store in opened:
            stack.callback(store.close)
        yield opened


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(FACTS, max_size=6, unique_by=lambda fact: fact.id), LINKS)
def test_a_store_that_imports_an_export_exports_the_same(facts: list[Fact], links: list[Any]) -> None:
    with stores(2) as (first, second):
        ids = [fact.id for fact in add(first, *facts)]
        with first.write(AUTHOR) as tx:
            for source, target, kind, strength in links:
                if len(ids) > max(source, target) and source != target:
                    link(tx, ids[source], ids[target], kind, strength)
        before = first.folder / "export.jsonl"
        after = second.folder / "export.jsonl"
        export(first, before)
        report = take(second, before, trust=True)
        export(second, after)

        assert report.added == len(facts)
        assert lines(after, "fact") == lines(before, "fact")
        assert lines(after, "link") == lines(before, "link")
        again = take(second, before, trust=True)
        assert (again.added, again.skipped, again.conflicts) == (0, len(facts), [])


class TestExport:
    def test_holds_every_fact_whatever_its_state(self, store: Store, tmp_path: Path) -> None:
        old, new, gone = add(store, Fact("I live in Porto."), Fact("I live in Lisbon."), Fact("I like tea."))
        with store.write(AUTHOR) as tx:
            tx.supersede(old.id, new.id)
            tx.change(gone.id, "forget", {"forgotten_at": tx.now})
        done = export(store, tmp_path / "all.jsonl")
        found = {line["id"]: line for line in lines(done.path, "fact")}
        assert found[old.id]["superseded_by"] == new.id
        assert found[new.id]["supersedes_id"] == old.id
        assert found[gone.id]["forgotten_at"] == store.clock.now()
        assert (done.facts, done.links, done.vectors, done.journal) == (3, 0, 0, 0)

    def test_is_private_and_never_overwrites(self, store: Store, tmp_path: Path) -> None:
        path = export(store, tmp_path / "all.jsonl").path
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(InputError, match="already exists"):
            export(store, path)

    def test_redacts_what_an_older_perdure_let_through(self, store: Store, tmp_path: Path) -> None:
        add(store, Fact("The key."))
        with store.database.write() as connection:
            run(connection, "UPDATE facts SET text = ?, metadata = ?", (f"Key {SECRET}", json.dumps({"a": [SECRET]})))
        assert SECRET not in export(store, tmp_path / "all.jsonl").path.read_text()

    def test_has_the_journal_and_vectors_only_if_asked_for(self, store: Store, tmp_path: Path) -> None:
        store.adopt_space(SPACE)
        with store.write(AUTHOR) as tx:
            tx.add(Fact("I like tea."), VECTOR)
        plain = export(store, tmp_path / "plain.jsonl").path
        full = export(store, tmp_path / "full.jsonl", vectors=True, journal=True)
        assert "vector" not in lines(plain, "fact")[0]
        assert lines(plain, "journal") == []
        assert (full.vectors, full.journal) == (1, 1)
        assert [line["action"] for line in lines(full.path, "journal")] == ["add"]


class TestImport:
    @pytest.fixture
    def exported(self, store: Store, tmp_path: Path) -> Path:
        add(store, Fact("I live in Lisbon.", channel=Channel.USER), Fact("I like tea.", channel=Channel.USER))
        return export(store, tmp_path / "all.jsonl").path

    def test_a_dry_run_tells_the_same_and_writes_nothing(self, exported: Path, other: Store) -> None:
        told = take(other, exported, dry_run=True)
        assert all_facts(other) == {}
        done = take(other, exported)
        assert replace(told, dry_run=False) == done

    def test_in_a_foreign_store_it_is_never_recalled_unasked(self, exported: Path, other: Store) -> None:
        assert not take(other, exported).trusted
        assert {fact.channel for fact in all_facts(other).values()} == {Channel.IMPORT}

    def test_in_its_own_store_the_seal_vouches_for_it(self, exported: Path, store: Store) -> None:
        with store.database.write() as connection:
            run(connection, "DELETE FROM facts")
        assert take(store, exported).trusted
        assert {fact.channel for fact in all_facts(store).values()} == {Channel.USER}

    @pytest.mark.parametrize("change", ["edited", "cut", "appended", "seal of another"])
    def test_an_altered_file_has_no_seal(self, exported: Path, store: Store, other: Store, change: str) -> None:
        if change == "edited":
            exported.write_bytes(exported.read_bytes().replace(b"Lisbon", b"Madrid"))
        elif change == "cut":
            rewrite(exported, lambda found: found[:-1])
        elif change == "appended":
            rewrite(exported, lambda found: [*found, found[1]])
        else:
            exported.unlink()
            export(other, exported)
        assert not ExportFile(exported).load(store.key).sealed

    def test_trust_can_be_given_later(self, exported: Path, other: Store) -> None:
        take(other, exported)
        report = take(other, exported, trust=True)
        assert (report.added, report.skipped, report.vouched) == (0, 2, 2)
        assert {fact.channel for fact in all_facts(other).values()} == {Channel.USER}

    def test_trust_that_was_given_later_can_be_taken_back(self, exported: Path, other: Store) -> None:
        take(other, exported)
        take(other, exported, trust=True)
        audience = Audience.of()
        with other.write(AUTHOR) as tx:
            undo(tx, next(batches(tx.connection, audience)), audience)
        assert {fact.channel for fact in all_facts(other).values()} == {Channel.IMPORT}

    @pytest.mark.parametrize("channel", [Channel.IMPORT, Channel.TOOL_UNASKED, Channel.TRANSCRIPT_USER])
    def test_what_is_vouched_for_takes_the_place_of_a_weaker_twin(
        self, exported: Path, other: Store, channel: Channel
    ) -> None:
        [twin] = add(other, Fact("I like TEA", channel=channel, value="planted"))
        before = all_facts(other)
        untrusted = take(other, exported)
        assert untrusted.superseded == 0
        assert all_facts(other)[twin.id] == before[twin.id]
        tried = take(other, exported, trust=True, dry_run=True)
        report = take(other, exported, trust=True)
        assert replace(tried, dry_run=False) == report
        assert (report.vouched, report.superseded) == (2, 1)
        successor = all_facts(other)[all_facts(other)[twin.id].superseded_by or ""]
        assert (successor.text, successor.channel, successor.supersedes_id) == ("I like tea.", Channel.USER, None)
        assert (take(other, exported, trust=True).superseded) == 0

        audience = Audience.of()
        with other.write(AUTHOR) as tx:
            undo(tx, next(batches(tx.connection, audience)), audience)
        assert replace(all_facts(other)[twin.id], change_seq=twin.change_seq) == before[twin.id]

    def test_a_twin_of_the_users_own_stays(self, exported: Path, other: Store) -> None:
        [twin] = add(other, Fact("I like tea.", channel=Channel.CLI))
        assert take(other, exported, trust=True).superseded == 0
        assert all_facts(other)[twin.id].superseded_at is None

    def test_former_and_forgotten_words_take_nobodys_place(
        self, exported: Path, store: Store, other: Store, tmp_path: Path
    ) -> None:
        first, second = all_facts(store)
        with store.write(AUTHOR) as tx:
            tx.change(first, "forget", {"forgotten_at": tx.now})
            tx.change(second, "retract", {"superseded_at": tx.now})
        add(other, *(Fact(text, channel=Channel.IMPORT) for text in ("I live in Lisbon.", "I like tea.")))
        assert take(other, export(store, tmp_path / "later.jsonl").path, trust=True).superseded == 0

    @pytest.mark.parametrize(
        "forged",
        [{"value": "a cave"}, {"entity": "user", "key": "home"}, {"why": "planted"}, {"metadata": {"planted": 1}}],
        ids=lambda forged: "-".join(forged),
    )
    def test_what_is_vouched_for_brings_its_own_slot(
        self, exported: Path, store: Store, other: Store, tmp_path: Path, forged: dict[str, Any]
    ) -> None:
        told = exported.read_bytes()
        [first, _] = all_facts(store)
        take(
            other,
            rewrite(exported, lambda found: [each | forged if each.get("id") == first else each for each in found]),
        )
        exported.write_bytes(told)
        report = take(other, exported, trust=True)
        assert (report.vouched, report.skipped, report.conflicts) == (2, 2, [])
        found = all_facts(other)
        successor = found[found[first].superseded_by or ""]
        [users] = [fact for fact in all_facts(store).values() if fact.id == first]
        for name in ("text", "why", "entity", "key", "value", "tags", "metadata", "channel", "created_at"):
            assert getattr(successor, name) == getattr(users, name), name
        again = take(other, exported, trust=True)
        assert (again.added, again.vouched, again.conflicts) == (0, 0, [])
        assert all_facts(other).keys() == found.keys()

    def test_what_is_vouched_for_brings_its_own_tags(self, exported: Path, store: Store, other: Store) -> None:
        told = exported.read_bytes()
        take(
            other,
            rewrite(
                exported, lambda found: [{**each, "tags": ["planted"]} if "tags" in each else each for each in found]
            ),
        )
        exported.write_bytes(told)
        take(other, exported, trust=True)
        assert [fact.tags for fact in all_facts(other).values()] == [fact.tags for fact in all_facts(store).values()]

    def test_what_says_something_else_is_left_alone(self, exported: Path, store: Store) -> None:
        before = all_facts(store)
        exported.write_bytes(exported.read_bytes().replace(b"I live in Lisbon.", b"I live in Madrid."))
        report = take(store, exported, trust=True)
        assert report.conflicts == [fact.id for fact in before.values() if "Lisbon" in fact.text]
        assert (report.added, report.skipped) == (0, 1)
        assert all_facts(store) == before

    def test_a_forgotten_fact_stays_forgotten(self, exported: Path, store: Store) -> None:
        [first, _] = all_facts(store)
        with store.write(AUTHOR) as tx:
            tx.change(first, "forget", {"forgotten_at": tx.now})
        assert take(store, exported).skipped == 2
        assert all_facts(store)[first].forgotten_at is not None

    def test_a_purged_fact_does_not_come_back(self, exported: Path, store: Store) -> None:
        [first, second] = all_facts(store)
        purge(store, [first], AUTHOR)
        report = take(store, exported)
        assert (report.purged, report.skipped, report.added) == (1, 1, 0)
        assert list(all_facts(store)) == [second]

    def test_newer_versions_are_caught_up_with(
        self, exported: Path, store: Store, other: Store, tmp_path: Path
    ) -> None:
        take(other, exported)
        [first, _] = all_facts(store)
        [new] = add(store, Fact("I live in Madrid."))
        with store.write(AUTHOR) as tx:
            tx.supersede(first, new.id)
        report = take(other, export(store, tmp_path / "later.jsonl").path)
        assert (report.added, report.superseded, report.skipped) == (1, 1, 1)
        assert all_facts(other)[first].superseded_by == new.id

    def test_without_trust_nothing_a_user_said_is_superseded(
        self, exported: Path, store: Store, tmp_path: Path
    ) -> None:
        [first, _] = all_facts(store)
        forged = "5d7f2c1e-0000-4000-8000-000000000000"

        def forge(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
            old = next(line for line in found if line.get("id") == first)
            new = {**old, "id": forged, "text": "I live in a cave.", "supersedes_id": first}
            old |= {"superseded_at": 5.0, "superseded_by": forged}
            return [*found[:-1], new]

        report = take(store, rewrite(exported, forge))
        assert (report.trusted, report.superseded) == (False, 0)
        assert all_facts(store)[first].superseded_at is None
        assert all_facts(store)[forged].channel is Channel.IMPORT

    def test_an_explicit_lack_of_expiry_is_kept(self, store: Store, other: Store, tmp_path: Path) -> None:
        [fact] = add(store, Fact("I like tea.", decay_class="short"))
        with store.write(AUTHOR) as tx:
            tx.change(fact.id, "keep", {"expires_at": None})
        take(other, export(store, tmp_path / "all.jsonl").path)
        assert all_facts(other)[fact.id].expires_at is None

    def test_null_scope_is_global(self, exported: Path, other: Store) -> None:
        rewrite(exported, lambda found: [{**line, "scope": None} if "scope" in line else line for line in found])
        take(other, exported)
        assert {(fact.scope, fact.scope_target) for fact in all_facts(other).values()} == {("global", "")}

    def test_broken_off_it_goes_on_where_it_was(self, store: Store, other: Store, tmp_path: Path) -> None:
        add(store, *(Fact(f"fact number {number}") for number in range(CHUNK + 10)))
        path = export(store, tmp_path / "all.jsonl").path
        seen = []

        def break_off() -> None:
            seen.append(1)
            if len(seen) == CHUNK + 5:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            take(other, path, advance=break_off)
        assert len(all_facts(other)) == CHUNK
        report = take(other, path)
        assert (report.added, report.skipped) == (10, CHUNK)
        assert list(all_facts(other)) == list(all_facts(store))

    def test_each_chunk_can_be_undone(self, exported: Path, other: Store) -> None:
        take(other, exported)
        audience = Audience.of()
        with other.write(AUTHOR) as tx:
            [batch] = batches(tx.connection, audience, host="import")
            undo(tx, batch, audience)
        assert all(fact.forgotten_at is not None for fact in all_facts(other).values())

    def test_what_cannot_be_stored_is_named(self, exported: Path, other: Store) -> None:
        def spoil(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
            found[1]["text"] = "x" * (MAX_TEXT + 1)
            found[2]["text"] = " \0 "
            return found

        report = take(other, rewrite(exported, spoil))
        assert report.added == 0
        assert sorted(report.refused.values()) == [
            f"it has {MAX_TEXT + 1} characters; the limit is {MAX_TEXT}",
            "it has no text",
        ]

    @pytest.mark.parametrize("name", ["created_at", "source_date"])
    @pytest.mark.parametrize("time", ["1e18", "-1e18", "1e999", "1" + 400 * "0"])
    def test_what_was_said_at_a_time_that_no_calendar_has_is_refused(
        self, exported: Path, other: Store, name: str, time: str
    ) -> None:
        rewrite(exported, lambda found: [line | {name: "odd"} if "text" in line else line for line in found])
        exported.write_text(exported.read_text().replace('"odd"', time))
        report = take(other, exported)
        assert report.added == 0
        assert all("the limit is 6e+10" in reason for reason in report.refused.values())
        assert len(report.refused) == report.total > 0

    def test_links_to_what_did_not_come_are_left_out(self, store: Store, other: Store, tmp_path: Path) -> None:
        one, two = add(store, Fact("I like tea."), Fact("I like green tea."))
        with store.write(AUTHOR) as tx:
            link(tx, one.id, two.id, "RELATED_TO")
        path = export(store, tmp_path / "all.jsonl").path
        rewrite(path, lambda found: [line for line in found if line.get("id") != two.id])
        report = take(other, path)
        assert (report.links, report.links_skipped, report.missing) == (0, 1, 1)

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("{", "line 3 is not a line of an export"),
            ('{"type": "fact", "id": "a"}', "line 3 has no id or no text"),
            ('{"type": "fact", "id": "a", "text": 5}', "line 3 has a text of type int"),
            ('{"type": "fact", "id": "a", "text": "b", "importance": NaN}', "line 3 is not a line"),
            ('{"type": "fact", "id": "a", "text": "b", "colour": "red"}', "unknown column 'colour'"),
            ('{"type": "fact", "id": "a", "text": "b", "scope": "agent", "scope_target": ""}', "line 3 is not usable"),
            ('{"type": "fact", "id": "a", "text": "b", "channel": "king"}', "line 3 is not usable"),
            ('{"type": "link", "id": "a"}', "line 3 is not a link"),
        ],
    )
    def test_a_wrong_line_is_named_and_nothing_is_imported(
        self, exported: Path, other: Store, line: str, message: str
    ) -> None:
        content = exported.read_text().splitlines()
        exported.write_text("\n".join([*content[:2], line, *content[2:]]))
        with pytest.raises(InputError, match=message):
            take(other, exported)
        assert all_facts(other) == {}

    @pytest.mark.parametrize("name", ["format", "schema"])
    def test_the_file_of_a_newer_perdure_is_refused(self, exported: Path, other: Store, name: str) -> None:
        rewrite(exported, lambda found: [{**found[0], name: 999}, *found[1:]])
        with pytest.raises(InputError, match=f"{name} 999.*upgrade"):
            take(other, exported)


class TestVectors:
    @pytest.fixture
    def exported(self, store: Store, tmp_path: Path) -> Path:
        store.adopt_space(SPACE)
        with store.write(AUTHOR) as tx:
            tx.add(Fact("I like tea."), VECTOR)
        return export(store, tmp_path / "all.jsonl", vectors=True).path

    def test_are_taken_over_in_the_same_space(self, exported: Path, other: Store) -> None:
        other.adopt_space(SPACE)
        assert take(other, exported).vectors == 1
        assert vectors(other) == [("space-1", VECTOR.blob)]

    def test_bring_their_space_to_a_store_without_one(self, exported: Path, other: Store) -> None:
        assert take(other, exported, trust=True).vectors == 1
        assert other.space() == SPACE

    def test_of_another_space_are_left(self, exported: Path, other: Store) -> None:
        other.adopt_space(VectorSpace("space-2", 2, {}))
        report = take(other, exported, trust=True)
        assert (report.added, report.vectors) == (1, 0)
        assert vectors(other) == []

    def test_of_another_length_are_refused(self, exported: Path, other: Store) -> None:
        rewrite(exported, lambda found: [{**line, "vector": "AAAA"} if "vector" in line else line for line in found])
        with pytest.raises(InputError, match="does not have 2 dimensions"):
            take(other, exported)


def vectors(store: Store) -> list[tuple[Any, ...]]:
    with store.database.read() as connection:
        return run(connection, "SELECT embedding_id, vector FROM vectors")
