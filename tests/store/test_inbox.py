"""What was acknowledged is there after any death, each entry whole and once."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.errors import StoreClosedError, StoreUnavailableError
from perdure.store.inbox import Inbox
from perdure.store.inbox_lines import Entry, damaged_turns, drop

LIVING = """
import sys
from pathlib import Path
from perdure.store.inbox import Inbox

inbox = Inbox(Path(sys.argv[1]))
print(inbox.append({"text": "from the living"})["id"], flush=True)
sys.stdin.read()
"""


def left_behind(folder: Path, *texts: str) -> Path:
    """Return the file of a process that ended before its entries were dealt with."""
    inbox = Inbox(folder)
    for text in texts:
        inbox.append({"text": text})
    inbox.close()
    [path] = folder.glob("*.jsonl")
    return path


def adopted(folder: Path) -> list[str]:
    inbox = Inbox(folder)
    texts = [entry["text"] for entries in inbox.adopt() for entry in entries]
    inbox.close()
    return texts


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class TestOwnFile:
    def test_an_entry_gets_an_id_and_waits_until_it_is_finished(self, tmp_path: Path) -> None:
        inbox = Inbox(tmp_path)
        first, second = inbox.append({"text": "a"}), inbox.append({"text": "b"})
        assert first["text"] == "a"
        assert first["id"] != second["id"]
        assert {first["id"].partition(":")[0]} == inbox.files()
        assert inbox.waiting == 2
        inbox.finish(first["id"])
        inbox.finish(first["id"])
        inbox.finish("unknown:1")
        assert inbox.waiting == 1
        inbox.close()

    def test_no_file_without_an_entry(self, tmp_path: Path) -> None:
        inbox = Inbox(tmp_path / "inbox")
        inbox.empty()
        assert inbox.files() == frozenset()
        inbox.close()
        assert files(tmp_path / "inbox") == []

    def test_is_emptied_only_when_nothing_waits(self, tmp_path: Path) -> None:
        inbox = Inbox(tmp_path)
        first = inbox.append({"text": "a heron"})
        [path] = tmp_path.glob("*.jsonl")
        inbox.empty()
        assert b"a heron" in path.read_bytes()
        inbox.finish(first["id"])
        inbox.empty()
        assert b"a heron" not in path.read_bytes()
        assert inbox.append({"text": "b"})["id"] != first["id"]
        inbox.close()
        assert adopted(tmp_path) == ["b"]

    def test_goes_away_when_all_is_dealt_with(self, tmp_path: Path) -> None:
        inbox = Inbox(tmp_path)
        inbox.finish(inbox.append({"text": "a"})["id"])
        inbox.close()
        inbox.close()
        assert files(tmp_path) == []

    def test_takes_nothing_after_closing(self, tmp_path: Path) -> None:
        inbox = Inbox(tmp_path)
        inbox.close()
        with pytest.raises(StoreClosedError):
            inbox.append({"text": "a"})
        assert files(tmp_path) == []

    def test_several_threads_append_whole_lines(self, tmp_path: Path) -> None:
        inbox = Inbox(tmp_path)
        said = [[f"{thread}-{number} " + "x" * 500 for number in range(25)] for thread in range(4)]
        threads = [
            threading.Thread(target=lambda texts: [inbox.append({"text": text}) for text in texts], args=(texts,))
            for texts in said
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        inbox.close()
        assert sorted(adopted(tmp_path)) == sorted(text for texts in said for text in texts)

    def test_a_folder_that_is_gone_is_named(self, tmp_path: Path) -> None:
        inbox = Inbox(tmp_path / "inbox")
        (tmp_path / "inbox").rmdir()
        (tmp_path / "inbox").write_text("a file now")
        with pytest.raises(StoreUnavailableError):
            inbox.append({"text": "a"})
        inbox.close()


class TestAdoption:
    def test_takes_over_what_was_left_and_removes_the_file(self, tmp_path: Path) -> None:
        left_behind(tmp_path, "a", "b")
        assert adopted(tmp_path) == ["a", "b"]
        assert files(tmp_path) == []
        assert adopted(tmp_path) == []

    def test_never_its_own_file(self, tmp_path: Path) -> None:
        inbox = Inbox(tmp_path)
        inbox.append({"text": "a"})
        assert list(inbox.adopt()) == []
        inbox.close()

    def test_keeps_the_file_until_the_caller_is_through_with_it(self, tmp_path: Path) -> None:
        path = left_behind(tmp_path, "a")
        first, second = Inbox(tmp_path), Inbox(tmp_path)
        taking = first.adopt()
        [entry] = next(taking)
        assert entry["text"] == "a"
        assert list(second.adopt()) == []
        assert path.exists()
        taking.close()  # type: ignore[attr-defined]
        assert [entries[0]["text"] for entries in second.adopt()] == ["a"]
        assert not path.exists()

    def test_a_living_process_keeps_its_file_and_a_killed_one_leaves_it(self, tmp_path: Path) -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", LIVING, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with process:
            assert process.stdout is not None
            entry_id = process.stdout.readline().strip()
            assert adopted(tmp_path) == []
            assert len(list(tmp_path.glob("*.jsonl"))) == 1
            process.kill()
        inbox = Inbox(tmp_path)
        assert list(inbox.adopt()) == [[{"text": "from the living", "id": entry_id}]]
        inbox.close()
        assert files(tmp_path) == []


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
keys = texts.filter(lambda key: key != "id")
entries = st.lists(st.dictionaries(keys, texts | st.integers() | st.none()), min_size=1, max_size=4)


class TestDamage:
    @settings(max_examples=60, deadline=None)
    @given(entries)
    def test_whatever_an_entry_holds_it_comes_back(self, said: list[Entry]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            inbox = Inbox(Path(folder))
            acknowledged = [inbox.append(entry) for entry in said]
            inbox.close()
            later = Inbox(Path(folder))
            assert list(later.adopt()) == [acknowledged]
            later.close()

    def test_a_lone_surrogate_costs_one_character(self, tmp_path: Path) -> None:
        left_behind(tmp_path, "half \ud83d emoji")
        assert adopted(tmp_path) == ["half ? emoji"]

    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def test_a_torn_last_line_is_skipped(self, data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = left_behind(Path(folder), "whole", "torn")
            content = path.read_bytes()
            start, end = content.index(b"\n") + 1, content.rindex(b"\n")
            torn = content[: data.draw(st.integers(start, end - 1))]
            path.write_bytes(torn + bytes(data.draw(st.sampled_from([1, 500]))))
            assert adopted(Path(folder)) == ["whole"]
            assert damaged_turns(Path(folder)) == []

    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def test_a_last_line_of_which_the_disk_has_some_sectors_is_skipped(self, data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = left_behind(Path(folder), "whole", "torn" * 400)
            content = bytearray(path.read_bytes())
            start, end = content.index(b"\n") + 1, content.rindex(b"\n") + 1
            sectors = sorted({start, *range(512, end, 512), end})
            lost = data.draw(st.sets(st.sampled_from(sectors[:-1]), min_size=1))
            for first, beyond in pairwise(sectors):
                if first in lost:
                    content[first:beyond] = bytes(beyond - first)
            path.write_bytes(content)
            assert adopted(Path(folder)) == ["whole"]
            assert damaged_turns(Path(folder)) == []

    @settings(max_examples=100, deadline=None)
    @given(st.data())
    def test_no_flipped_bit_loses_a_turn_without_a_trace(self, data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = left_behind(Path(folder), "first", "second", "third")
            content = bytearray(path.read_bytes())
            place = data.draw(st.integers(0, content.rindex(b"\n")))
            content[place] ^= 1 << data.draw(st.integers(0, 7))
            path.write_bytes(content)
            said = ["first", "second", "third"]
            captured = adopted(Path(folder))
            assert set(captured) <= set(said)
            assert bool(damaged_turns(Path(folder))) == (captured != said)
            assert not path.exists()

    def test_a_damaged_line_is_kept_as_it_is_for_the_owner_alone(self, tmp_path: Path) -> None:
        path = left_behind(tmp_path, "first", "The staging database is called heron.", "third")
        content = path.read_bytes().replace(b"called heron", b"called h\x1b[ron")
        path.write_bytes(content)
        assert adopted(tmp_path) == ["first", "third"]
        kept = path.with_suffix(".damaged")
        assert kept.read_bytes() == content.split(b"\n")[1] + b"\n"
        assert os.name != "posix" or kept.stat().st_mode & 0o777 == 0o600
        [turn] = damaged_turns(tmp_path)
        assert turn.text == "The staging database is called h [ron."

    def test_what_is_shown_of_it_has_no_secret(self, tmp_path: Path) -> None:
        path = left_behind(tmp_path, "My password is 'Xk7-aardvark-99' and I like tea.")
        path.write_bytes(path.read_bytes().replace(b"like tea", b"like tee"))
        assert adopted(tmp_path) == []
        [turn] = damaged_turns(tmp_path)
        assert "aardvark" not in turn.text
        assert "like tee" in turn.text

    def test_a_file_that_was_cut_off_is_damaged(self, tmp_path: Path) -> None:
        path = left_behind(tmp_path, "first", "second", "third")
        path.write_bytes(path.read_bytes()[: path.read_bytes().index(b"second") + 3])
        assert adopted(tmp_path) == ["first"]
        assert [turn.text for turn in damaged_turns(tmp_path)] == ["sec"]

    def test_who_dies_on_the_way_leaves_nothing_twice(self, tmp_path: Path) -> None:
        path = left_behind(tmp_path, "first", "second")
        path.write_bytes(path.read_bytes().replace(b"first", b"farst"))
        inbox = Inbox(tmp_path)
        taking = inbox.adopt()
        next(taking)
        taking.close()  # type: ignore[attr-defined]
        inbox.close()
        assert adopted(tmp_path) == ["second"]
        assert [turn.text for turn in damaged_turns(tmp_path)] == ["farst"]

    def test_it_goes_when_its_owner_says_so(self, tmp_path: Path) -> None:
        path = left_behind(tmp_path, "first", "second")
        path.write_bytes(path.read_bytes().replace(b"first", b"farst"))
        adopted(tmp_path)
        assert drop(tmp_path) == 1
        assert files(tmp_path) == []
        assert drop(tmp_path) == 0

    @pytest.mark.parametrize("content", [b"", b"\n\n\n", b"\0" * 4096, b"{}\n", b"00000000 {}\n", b"zzz\xff\xfe\n"])
    def test_what_was_never_an_entry_is_skipped(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "foreign.jsonl").write_bytes(content)
        assert adopted(tmp_path) == []
