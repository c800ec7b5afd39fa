"""The flush: due once per cycle, in known words, and into a note that nothing can mix up."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import InputError, StoreFullError
from perdure.files.notes import DEFAULT_PROMPT, NOTE_BYTES, FlushPolicy, append_daily_note

BERLIN = ZoneInfo("Europe/Berlin")
NOON = dt.datetime(2026, 2, 24, 12, 5, tzinfo=BERLIN).timestamp()
DAY = "memory/2026-02-24.md"
POSIX = pytest.mark.skipif(os.name != "posix", reason="modes, links and limits of POSIX")

WRITER = """
import sys
from pathlib import Path
from zoneinfo import ZoneInfo
from perdure.files.notes import append_daily_note

workspace, name, now = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
for number in range(50):
    append_daily_note(Path(workspace), f"{name}-{number} " + name * 400, float(now), tz=ZoneInfo("Europe/Berlin"))
"""
LIMITED = """
import resource, sys
from pathlib import Path
from perdure.errors import PerdureError
from perdure.files.notes import append_daily_note

resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
try:
    append_daily_note(Path(sys.argv[1]), "x" * 1000, float(sys.argv[2]), tz=None)
except PerdureError as error:
    print(type(error).__name__)
"""


def note(workspace: Path, text: str, title: str = "", now: float = NOON) -> str:
    """Append a note and return what is then in the file."""
    return append_daily_note(workspace, text, now, tz=BERLIN, title=title).read_text(encoding="utf-8")


class TestDue:
    @pytest.mark.parametrize(
        ("total", "window", "compactions", "flushed_at", "due"),
        [
            (175_999, 200_000, 0, None, False),
            (176_000, 200_000, 0, None, True),
            (250_000, 200_000, 0, None, True),
            (176_000, 200_000, 0, 0, False),
            (176_000, 200_000, 1, 0, True),
            (176_000, 200_000, 1, 1, False),
            (176_000, 200_000, 1, 2, False),
            (24_000, 24_000, 0, None, False),
            (1, 24_001, 0, None, True),
            (0, 24_001, 0, None, False),
            (30_000, 8_000, 0, None, False),
            (-1, 200_000, 0, None, False),
            (176_000, 0, 0, None, False),
            (176_000, -5, 0, None, False),
            (176_000, 200_000, -1, None, False),
        ],
    )
    def test_once_per_cycle_from_the_threshold_on(
        self, total: int, window: int, compactions: int, flushed_at: int | None, due: bool
    ) -> None:
        assert FlushPolicy().due(total, window, compactions, flushed_at) is due

    def test_never_when_switched_off(self) -> None:
        assert not FlushPolicy(enabled=False).due(199_000, 200_000, 0, None)

    def test_the_threshold_moves_with_the_settings(self) -> None:
        policy = FlushPolicy(reserve_tokens=1_000, soft_tokens=500)
        assert [policy.due(total, 8_000, 0, None) for total in (6_499, 6_500)] == [False, True]

    @given(*[st.integers(-(10**9), 10**9)] * 3, st.none() | st.integers())
    def test_any_numbers_give_an_answer(
        self, total: int, window: int, compactions: int, flushed_at: int | None
    ) -> None:
        due = FlushPolicy().due(total, window, compactions, flushed_at)
        assert not (due and flushed_at is not None and flushed_at >= compactions)
        assert not due or total >= window - 24_000 > 0


class TestPrompts:
    TODAY = dt.date(2026, 2, 24)

    def test_the_placeholders_are_filled(self) -> None:
        prompt, system = FlushPolicy().prompts(self.TODAY)
        assert f"{DAY} (today is 2026-02-24)" in prompt
        assert "{" not in prompt + system
        assert all("NO_REPLY" in text for text in (prompt, system))

    def test_the_prompt_protects_what_is_there(self) -> None:
        assert "MEMORY.md" in DEFAULT_PROMPT
        assert "read-only" in DEFAULT_PROMPT
        assert "Never rewrite" in DEFAULT_PROMPT

    def test_own_words_may_hold_other_braces(self) -> None:
        policy = FlushPolicy(prompt="{date} {path} {} {other} {0} {{date}} }{", system_prompt="{date")
        assert policy.prompts(self.TODAY) == (f"2026-02-24 {DAY} {{}} {{other}} {{0}} {{2026-02-24}} }}{{", "{date")


class TestNote:
    def test_the_first_note_makes_the_file(self, tmp_path: Path) -> None:
        path = append_daily_note(tmp_path, "We chose Express.\n", NOON, tz=BERLIN, title="API gateway")
        assert path == tmp_path / DAY
        assert path.read_bytes() == b"# 2026-02-24\n\n## 12:05 API gateway\n\nWe chose Express.\n"

    def test_further_notes_follow(self, tmp_path: Path) -> None:
        note(tmp_path, "one")
        assert note(tmp_path, "two", now=NOON + 60) == "# 2026-02-24\n\n## 12:05\n\none\n\n## 12:06\n\ntwo\n"

    def test_what_the_agent_wrote_stays(self, tmp_path: Path) -> None:
        (tmp_path / "memory").mkdir()
        (tmp_path / DAY).write_text("by hand, without a line end")
        assert note(tmp_path, "one") == "by hand, without a line end\n## 12:05\n\none\n"

    def test_the_day_is_that_of_the_owner(self, tmp_path: Path) -> None:
        late = dt.datetime(2026, 2, 24, 23, 30, tzinfo=dt.UTC).timestamp()
        assert note(tmp_path, "one", now=late).startswith("# 2026-02-25\n\n## 00:30\n")

    def test_without_a_zone_the_day_is_that_of_the_system(self, tmp_path: Path) -> None:
        local = dt.datetime.fromtimestamp(NOON)
        assert append_daily_note(tmp_path, "one", NOON).name == f"{local:%Y-%m-%d}.md"

    def test_secrets_are_taken_out(self, tmp_path: Path) -> None:
        secret = "sk-ant-" + "a1b2c3d4e5f6a7b8c9d0"
        said = note(tmp_path, f"The key is {secret}.", title=f"{'word ' * 21}{secret}")
        assert secret[:14] not in said
        assert "[redacted anthropic-key]" in said

    def test_a_title_is_one_line(self, tmp_path: Path) -> None:
        said = note(tmp_path, "one", title="a\n# b\n" + "x" * 500)
        assert said.splitlines()[2].startswith("## 12:05 a # b x")
        assert len(said.splitlines()[2]) <= 130

    @pytest.mark.parametrize("text", ["", " \n\t", "\0"])
    def test_a_blank_note_is_refused(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(InputError):
            note(tmp_path, text)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("char", ["x", "漢"])
    def test_a_note_has_a_greatest_length(self, tmp_path: Path, char: str) -> None:
        most = char * (NOTE_BYTES // len(char.encode()))
        assert most in note(tmp_path, most)
        with pytest.raises(InputError, match=str(NOTE_BYTES)):
            note(tmp_path, most + char)

    def test_half_a_character_is_replaced(self, tmp_path: Path) -> None:
        assert "half \ufffd" in note(tmp_path, "half \ud83d")


class TestPlace:
    @POSIX
    def test_what_is_new_is_private_and_what_is_there_keeps_its_mode(self, tmp_path: Path) -> None:
        note(tmp_path, "one")
        assert (tmp_path / "memory").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / DAY).stat().st_mode & 0o777 == 0o600
        (tmp_path / "memory").chmod(0o755)
        (tmp_path / DAY).chmod(0o644)
        note(tmp_path, "two")
        assert (tmp_path / "memory").stat().st_mode & 0o777 == 0o755
        assert (tmp_path / DAY).stat().st_mode & 0o777 == 0o644

    @POSIX
    def test_a_link_in_place_of_the_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "memory").mkdir()
        (tmp_path / "target").write_text("not ours")
        for target in ("target", "missing"):
            (tmp_path / DAY).symlink_to(tmp_path / target)
            with pytest.raises(InputError):
                note(tmp_path, "one")
            (tmp_path / DAY).unlink()
        assert (tmp_path / "target").read_text() == "not ours"
        assert not (tmp_path / "missing").exists()

    @POSIX
    def test_a_link_in_place_of_the_folder_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "memory").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(InputError):
            note(tmp_path, "one")
        assert list((tmp_path / "elsewhere").iterdir()) == []

    @POSIX
    def test_what_is_no_plain_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "memory").mkdir()
        os.mkfifo(tmp_path / DAY)
        with pytest.raises(InputError):
            note(tmp_path, "one")
        reader = os.open(tmp_path / DAY, os.O_RDONLY | os.O_NONBLOCK)
        with pytest.raises(InputError):
            note(tmp_path, "one")
        os.close(reader)
        (tmp_path / DAY).unlink()
        (tmp_path / DAY).mkdir()
        with pytest.raises(InputError):
            note(tmp_path, "one")

    def test_a_file_in_place_of_a_folder_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "memory").write_text("a file")
        with pytest.raises(InputError):
            note(tmp_path, "one")
        with pytest.raises(InputError, match="workspace"):
            note(tmp_path / "memory", "one")

    def test_a_workspace_that_is_missing_is_not_created(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="workspace"):
            note(tmp_path / "missing", "one")
        assert list(tmp_path.iterdir()) == []

    @POSIX
    def test_a_note_that_finds_no_room_leaves_nothing(self, tmp_path: Path) -> None:
        path = append_daily_note(tmp_path, "one", NOON)
        before = path.read_bytes()
        command = [sys.executable, "-c", LIMITED, str(tmp_path), str(NOON)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == StoreFullError.__name__
        assert path.read_bytes() == before

    @POSIX
    def test_a_file_that_another_process_begins_gets_one_first_line(self, tmp_path: Path) -> None:
        import fcntl

        (tmp_path / "memory").mkdir()
        with open(tmp_path / DAY, "w") as begun:
            fcntl.flock(begun, fcntl.LOCK_EX)
            thread = threading.Thread(target=note, args=(tmp_path, "two"))
            thread.start()
            thread.join(0.3)
            assert (tmp_path / DAY).read_text() == ""
            begun.write("# 2026-02-24\n\n## 12:05\n\none\n")
        thread.join()
        assert (tmp_path / DAY).read_text() == "# 2026-02-24\n\n## 12:05\n\none\n\n## 12:05\n\ntwo\n"

    def test_notes_of_several_processes_never_mix(self, tmp_path: Path) -> None:
        names = "abcd"
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, str(tmp_path), name, str(NOON)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in names
        ]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            process.communicate()
            assert process.returncode == 0
        first, *entries = (tmp_path / DAY).read_text().split("\n## 12:05\n\n")
        assert first == "# 2026-02-24\n"
        expected = [f"{name}-{number} {name * 400}\n" for name in names for number in range(50)]
        assert Counter(entries) == Counter(expected)
