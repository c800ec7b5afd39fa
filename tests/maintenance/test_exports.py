"""The day's export: whole or not at all, sealed, seven of them, and nothing in it that was purged or scrubbed."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.clock import ManualClock
from perdure.errors import StoreUnavailableError
from perdure.hooks.types import Channel
from perdure.maintenance import exports
from perdure.maintenance.backup import backups
from perdure.maintenance.exchange import ExportFile, export, seal_of
from perdure.maintenance.exports import daily_export, newest_export
from perdure.maintenance.importing import bring_in
from perdure.maintenance.purge import CERTIFIED, PENDING, certify, purge
from perdure.maintenance.recovery import recover
from perdure.store.fact import Fact
from perdure.store.folder import Presence
from perdure.store.links import link
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author

AUTHOR = Author(Channel.LIBRARY, "test")
DAY = 86_400.0
NAME = "facts-2027-01-15.jsonl"
SECRET = "sk-proj-aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYz"
PURGED = "My neighbour Xylophilus Quagmire owes me seven hundred crowns."


def add(store: Store, *facts: Fact) -> list[str]:
    with store.write(AUTHOR) as tx:
        return [tx.add(fact).id for fact in facts]


def lines(path: Path, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [line for line in found if line["type"] == kind]


def texts(path: Path) -> list[str]:
    return [line["text"] for line in lines(path, "fact")]


def is_sealed(store: Store, path: Path) -> bool:
    return ExportFile(path).load(store.key).sealed


def purged(store: Store, *ids: str) -> str:
    wanted = purge(store, ids, AUTHOR)
    return next(done.state for done in certify(store) if done.id == wanted.id)


class TestWriting:
    def test_it_is_a_sealed_export_in_a_folder_of_its_own(self, store: Store, clock: ManualClock) -> None:
        add(store, Fact("I like tea.", channel=Channel.USER), Fact(f"The key is {SECRET}."))
        path = daily_export(store)
        assert path == store.folder / "exports" / NAME
        assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)] == [0o600, 0o700]
        assert is_sealed(store, path)
        [header] = lines(path, "header")
        assert (header["at"], header["counts"]["facts"]) == (clock.now(), 2)
        assert SECRET.encode() not in path.read_bytes()
        assert os.listdir(path.parent) == [NAME]

    def test_another_store_reads_it_as_any_export(self, store: Store, tmp_path: Path) -> None:
        add(store, Fact("I like tea."), Fact("I live in Lisbon."))
        path = daily_export(store)
        assert path is not None
        other = Store(tmp_path / "other")
        done = bring_in(other, ExportFile(path).load(other.key))
        assert (done.added, done.missing, done.unreadable, done.trusted) == (2, 0, 0, False)
        other.close()

    def test_every_day_has_one_file_and_seven_are_kept(self, store: Store, clock: ManualClock) -> None:
        for day in range(9):
            add(store, Fact(f"Berth {day} is free."))
            daily_export(store)
            add(store, Fact(f"Berth {day} is taken."))
            path = daily_export(store)
            clock.advance(DAY)
        assert path is not None
        assert sorted(os.listdir(path.parent)) == [f"facts-2027-01-{day}.jsonl" for day in range(17, 24)]
        assert len(texts(path)) == 18

    def test_so_many_are_kept_as_are_wanted_and_what_is_not_ours_stays(self, store: Store, clock: ManualClock) -> None:
        folder = store.folder / "exports"
        folder.mkdir()
        others = ["mine.jsonl", "facts-2020.jsonl", "notes.txt", "facts-2020-01-01.jsonl.bak"]
        for name in others:
            (folder / name).write_text("mine")
        for day in range(4):
            add(store, Fact(f"Berth {day} is free."))
            daily_export(store, 2)
            clock.advance(DAY)
        assert sorted(os.listdir(folder)) == sorted([*others, "facts-2027-01-17.jsonl", "facts-2027-01-18.jsonl"])

    def test_nothing_is_written_while_nothing_changes(self, store: Store, clock: ManualClock) -> None:
        [fact_id] = add(store, Fact("I like tea."))
        first = daily_export(store)
        assert first is not None
        before = first.stat()
        clock.advance(DAY)
        assert daily_export(store) is None
        assert (os.listdir(first.parent), first.stat().st_mtime_ns) == ([NAME], before.st_mtime_ns)
        assert daily_export(store, again=True) == first.with_name("facts-2027-01-16.jsonl")
        with store.write(AUTHOR) as tx:
            tx.change(fact_id, "pin", {"pinned": True})
        assert daily_export(store) == first.with_name("facts-2027-01-16.jsonl")

    @pytest.mark.parametrize("harm", [b'"text": "I like t', b'"hmac": "', b'{"type": "header'])
    def test_a_damaged_file_is_written_anew_though_nothing_changed(self, store: Store, harm: bytes) -> None:
        add(store, Fact("I like tea."))
        path = daily_export(store)
        assert path is not None
        whole = path.read_bytes()
        place = whole.index(harm) + len(harm)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert not newest_export(store).intact  # type: ignore[union-attr]
        assert daily_export(store) == path
        assert texts(path) == ["I like tea."]
        assert newest_export(store).intact  # type: ignore[union-attr]

    def test_a_file_that_cannot_be_written_leaves_the_others(self, store: Store, clock: ManualClock) -> None:
        add(store, Fact("I like tea."))
        first = daily_export(store)
        assert first is not None
        clock.advance(DAY)
        add(store, Fact("I live in Lisbon."))
        (first.parent / "facts-2027-01-16.jsonl").mkdir()
        with pytest.raises(StoreUnavailableError):
            daily_export(store, 1)
        assert texts(first) == ["I like tea."]
        assert [name for name in os.listdir(first.parent) if "part" in name] == []

    def test_a_clock_that_was_set_back_does_not_cost_what_was_just_written(
        self, store: Store, clock: ManualClock
    ) -> None:
        for day in range(3):
            add(store, Fact(f"Berth {day} is free."))
            daily_export(store, 3)
            clock.advance(DAY)
        clock.advance(-30 * DAY)
        add(store, Fact("Berth 9 is free."))
        path = daily_export(store, 3)
        assert path is not None
        assert len(texts(path)) == 4
        assert len(os.listdir(path.parent)) == 3

    def test_backups_name_them(self, store: Store) -> None:
        add(store, Fact("I like tea."))
        path = daily_export(store)
        assert [(each.path, each.kind) for each in backups(store.folder)] == [(path, "export")]


class TestPurge:
    @pytest.fixture
    def path(self, store: Store) -> Path:
        facts = (Fact("I like tea."), Fact(PURGED), Fact("I am 40."), Fact("The old plan.", value="an older plan"))
        ids = add(store, *facts)
        with store.write(AUTHOR) as tx:
            for one, other in ((0, 1), (1, 3), (0, 3)):
                link(tx, ids[one], ids[other])
        path = daily_export(store)
        assert path is not None
        return path

    def find(self, store: Store, text: str) -> str:
        with store.database.read() as connection:
            return str(run(connection, "SELECT id FROM facts WHERE text = ?", (text,))[0][0])

    def test_what_was_purged_is_in_no_export_and_the_rest_is_sealed_anew(self, store: Store, path: Path) -> None:
        before = {line["id"]: line for line in lines(path, "fact")}
        gone = self.find(store, PURGED)
        os.utime(path, (5.0, 5.0))
        assert purged(store, gone) == CERTIFIED
        assert path.stat().st_mtime == 5.0, "what it says is as old as it was"
        assert b"Xylophilus" not in path.read_bytes()
        assert gone.encode() not in path.read_bytes()
        assert {line["id"]: line for line in lines(path, "fact")} == {
            name: line for name, line in before.items() if name != gone
        }
        assert len(lines(path, "link")) == 1
        assert lines(path, "header")[0]["counts"] == {"facts": 3, "links": 1, "triggers": 0, "vectors": 0, "journal": 0}
        assert is_sealed(store, path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert ExportFile(path).load(store.key).missing == 0

    def test_a_text_too_short_to_look_for_goes_by_its_id(self, store: Store, path: Path) -> None:
        assert purged(store, self.find(store, "I am 40.")) == CERTIFIED
        assert "I am 40." not in texts(path)
        assert len(texts(path)) == 3

    def test_all_days_and_other_exports_of_the_folder(self, store: Store, path: Path, clock: ManualClock) -> None:
        long = Fact(" ".join(f"Word{number} of the long testament." for number in range(400)))
        [wanted] = add(store, long)
        clock.advance(DAY)
        daily_export(store)
        by_hand = export(store, path.with_name("mine.jsonl"), vectors=True, journal=True).path
        assert purged(store, wanted) == CERTIFIED
        assert [len(texts(each)) for each in sorted(path.parent.iterdir())] == [4, 4, 4]
        assert b"testament" not in b"".join(each.read_bytes() for each in path.parent.iterdir())
        assert is_sealed(store, by_hand)
        assert lines(by_hand, "journal")

    def test_a_memory_that_is_long_gone_and_carried_the_text_goes_too(self, store: Store, path: Path) -> None:
        [carrier] = add(store, Fact(f"As said: {PURGED}"))
        daily_export(store)
        with store.database.write() as connection:
            run(connection, "DELETE FROM facts WHERE id = ?", (carrier,))
        assert purged(store, self.find(store, PURGED)) == CERTIFIED
        assert len(texts(path)) == 3
        assert b"Xylophilus" not in path.read_bytes()

    def test_what_only_refers_to_it_stays(self, store: Store) -> None:
        old, new = add(store, Fact(PURGED), Fact("The debt is paid."))
        with store.write(AUTHOR) as tx:
            tx.supersede(old, new)
        path = daily_export(store)
        assert path is not None
        assert purged(store, old) == CERTIFIED
        assert texts(path) == ["The debt is paid."]

    def test_nothing_is_vouched_for_that_somebody_else_has_changed(self, store: Store, path: Path) -> None:
        path.write_bytes(path.read_bytes().replace(b"I like tea.", b"I like rum."))
        assert purged(store, self.find(store, PURGED)) == CERTIFIED
        assert texts(path) == ["I like rum.", "I am 40.", "The old plan."]
        assert not is_sealed(store, path)

    def test_lines_that_nobody_can_read_go_only_if_they_hold_it(self, store: Store, path: Path) -> None:
        broken = path.with_name("facts-2027-01-14.jsonl")
        broken.write_bytes(b"\xff broken\n{not json " + PURGED.encode() + b"\nthe end")
        assert purged(store, self.find(store, PURGED)) == CERTIFIED
        assert broken.read_bytes() == b"\xff broken\nthe end"

    def test_what_a_killed_process_left_goes(self, store: Store, path: Path) -> None:
        part = path.with_name(f"{NAME}.7.part")
        part.write_text(PURGED)
        assert purged(store, self.find(store, PURGED)) == CERTIFIED
        assert not part.exists()

    def test_an_export_that_holds_nothing_of_it_is_not_touched(self, store: Store, path: Path) -> None:
        [other] = add(store, Fact("Something else altogether."))
        before = path.stat().st_mtime_ns, path.read_bytes()
        assert purged(store, other) == CERTIFIED
        assert (path.stat().st_mtime_ns, path.read_bytes()) == before

    def test_it_waits_like_the_rest_while_another_process_has_the_store_open(self, store: Store, path: Path) -> None:
        wanted = self.find(store, PURGED)
        other = Presence(store.folder)
        assert purged(store, wanted) == PENDING
        other.close()
        assert [each.state for each in certify(store)] == [CERTIFIED]
        assert b"Xylophilus" not in path.read_bytes()

    def test_a_file_of_another_kind_is_named(self, store: Store, path: Path) -> None:
        (path.parent / "note.txt").write_text(PURGED)
        wanted = purge(store, [self.find(store, PURGED)], AUTHOR)
        [done] = [each for each in certify(store) if each.id == wanted.id]
        assert (done.state, done.kept) == (CERTIFIED, (("exports/note.txt", "export"),))

    @settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=40),
                 min_size=1, max_size=6, unique_by=str.casefold),
        st.integers(0, 5),
    )  # fmt: skip
    def test_any_text_goes_and_any_other_stays(self, words: list[str], place: int) -> None:
        with TemporaryDirectory() as folder:
            store = Store(Path(folder), clock=ManualClock())
            try:
                facts = [Fact(f"{number} {word} {number}") for number, word in enumerate(words)]
                ids = add(store, *facts)
                path = daily_export(store)
                assert path is not None
                before = {line["id"]: line for line in lines(path, "fact")}
                removed = purge(store, [ids[place % len(ids)]], AUTHOR)
                assert [each.state for each in certify(store)] == [CERTIFIED]
                left = {line["id"]: line for line in lines(path, "fact")}
                assert left == {name: line for name, line in before.items() if name not in removed.facts}
                assert is_sealed(store, path)
            finally:
                store.close()


def secret_let_through(store: Store, path: Path, text: str) -> str:
    """Put a text into an export that an older redactor let through; return its fact's id."""
    [line] = [line for line in lines(path, "fact") if line["text"] == "I like tea."]

    def old(line: dict[str, Any]) -> dict[str, Any]:
        changed = {"text": text, "metadata": {"a": [text]}, "tags": [text], "summary": f"{text[:30]}…"}
        return {**line, **changed} if line.get("text") == "I like tea." else line

    change_lines(store, path, old)
    return str(line["id"])


def change_lines(store: Store, path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    seal = seal_of(store.key)
    body = b"".join(
        json.dumps(change(json.loads(line)), ensure_ascii=False).encode() + b"\n"
        for line in path.read_bytes().splitlines()[:-1]
    )
    seal.update(body)
    path.write_bytes(body + json.dumps({"type": "seal", "hmac": seal.hexdigest()}).encode() + b"\n")


class TestScrub:
    def test_secrets_that_the_present_redactor_knows_go(self, store: Store) -> None:
        add(store, Fact("I like tea."), Fact("I live in Lisbon."))
        path = daily_export(store)
        assert path is not None
        secret_let_through(store, path, f"The key of the shop is {SECRET}.")
        assert is_sealed(store, path)
        assert exports.redact_again(store) == 1
        assert SECRET.encode() not in path.read_bytes()
        assert SECRET[:8].encode() not in path.read_bytes()
        assert len(texts(path)) == 2
        assert is_sealed(store, path)
        assert exports.redact_again(store) == 0


@pytest.mark.parametrize("gone", ["nothing", "purged"])
def test_a_lost_store_comes_back_from_it(tmp_path: Path, clock: ManualClock, gone: str) -> None:
    store = Store(tmp_path, clock=clock)
    secret, _ = add(store, Fact(PURGED, channel=Channel.USER), Fact("I live in Lisbon.", channel=Channel.USER))
    daily_export(store)
    clock.advance(DAY)
    assert daily_export(store) is None, "what is a day old is as good while nothing changes"
    if gone == "purged":
        assert purged(store, secret) == CERTIFIED
    store.close()
    for path in tmp_path.glob("facts.db*"):
        path.unlink()
    found = recover(tmp_path, apply=True, clock=clock)
    [brought] = found.brought
    assert (brought.source, brought.brings, brought.waits) == (f"exports/{NAME}", 2 if gone == "nothing" else 1, 0)
    again = Store(tmp_path, clock=clock)
    with again.database.read() as connection:
        texts = {row[0] for row in run(connection, "SELECT text FROM facts")}
    again.close()
    assert texts == ({PURGED, "I live in Lisbon."} if gone == "nothing" else {"I live in Lisbon."})


def test_a_store_without_exports_has_none(store: Store) -> None:
    assert newest_export(store) is None
    assert exports.redact_again(store) == 0
    assert purged(store, *add(store, Fact(PURGED))) == CERTIFIED
    assert not (store.folder / "exports").exists()


def test_the_newest_tells_what_is_in_it(store: Store, clock: ManualClock) -> None:
    add(store, Fact("I like tea."), replace(Fact("I live in Lisbon."), pinned=True))
    path = daily_export(store)
    found = newest_export(store)
    assert found is not None
    assert (found.path, found.facts, found.at, found.intact) == (path, 2, clock.now(), True)
