"""A log of our own: each message once, whatever the host resends and wherever a kill strikes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.errors import ScopeError, StoreBusyError, StoreUnavailableError
from perdure.files import transcript_log
from perdure.files.transcript_log import TranscriptLog, damage, safe_name
from perdure.files.turns import read_turns, session_of
from perdure.store.scope import GLOBAL, Scope
from perdure.text.fence import fence, strip_fenced

KEY = b"0123456789abcdef"
TOKEN = "ghp_" + "a1B2" * 9
OTHER_TOKEN = "ghp_" + "c3D4" * 9
MAIN = Scope("agent", "main")
NOW = 1_800_000_000.0
Said = dict[str, Any]

WRITING = """
import sys
from pathlib import Path
from perdure.files.transcript_log import TranscriptLog
from perdure.store.scope import Scope

log, who = TranscriptLog(Path(sys.argv[1])), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    said = [{"role": role, "content": f"{who} {role} {number} " + "x" * 300} for role in ("user", "assistant")]
    log.append(Scope("agent", "main"), "s", said, 1.8e9)
"""

FULL = """
import resource, sys
from pathlib import Path
from perdure.errors import StoreError
from perdure.files.transcript_log import TranscriptLog
from perdure.store.scope import Scope

log = TranscriptLog(Path(sys.argv[1]))
log.append(Scope("agent", "main"), "s", [{"role": "user", "content": "before"}], 1.8e9)
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))
try:
    log.append(Scope("agent", "main"), "s", [{"role": "user", "content": f"{n} " + "x" * 400} for n in range(9)], 1.8e9)
except StoreError as error:
    print(type(error).__name__)
"""


def user(text: object, **fields: object) -> Said:
    return {"role": "user", "content": text, **fields}


def agent(text: object, **fields: object) -> Said:
    return {"role": "assistant", "content": text, **fields}


def history(turns: int) -> list[Said]:
    return [message for n in range(turns) for message in (user(f"question {n}"), agent(f"answer {n}"))]


def texts(log: TranscriptLog, scope: Scope = MAIN) -> list[str]:
    [path] = log.files(scope)
    return [turn.text for turn in read_turns(path.read_text(encoding="utf-8"))]


def contents(messages: Sequence[Said]) -> list[str]:
    return [message["content"] for message in messages]


class TestAppending:
    def test_what_is_written_is_a_session_file(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path)
        said = [user("Hi!", name="Ann", timestamp=1_795_293_231_000), agent([{"type": "text", "text": "Hello Ann."}])]
        assert log.append(MAIN, "s/1", said, NOW) == 2
        [path] = log.files(MAIN)
        data = path.read_text(encoding="utf-8")
        first = json.loads(data.split("\n")[0])
        assert len(first.pop("sum")) == 16
        assert first == {"type": "session", "id": "s/1", "scope": "agent:main", "started": NOW}
        assert session_of(data, path.stem) == "s/1"
        assert [(turn.speaker, turn.at, turn.text) for turn in read_turns(data)] == [
            ("Ann", 1_795_293_231.0, "Hi!"),
            ("Assistant", NOW, "Hello Ann."),
        ]

    def test_only_what_was_said_is_written(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path)
        odd = [
            {"role": "system", "content": "be kind"},
            {"role": "tool", "content": "42"},
            user(""),
            user(None),
            "x",
            {},
        ]
        assert log.append(MAIN, "s", odd, NOW) == 0  # type: ignore[arg-type]
        assert list(tmp_path.iterdir()) == []
        assert log.append(MAIN, "s", [*odd, user("Hello")], NOW) == 1  # type: ignore[list-item]
        assert texts(log) == ["Hello"]

    def test_neither_secrets_nor_our_own_block(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path, lambda text, session: strip_fenced(text, KEY, session))
        block = fence("a heron", KEY, "s")
        said = [user(f"{block}\n\nMy token is {TOKEN}.", name=f"Ann {TOKEN}"), agent(f"{block} Noted.")]
        assert log.append(MAIN, "s", said, NOW) == 2
        assert log.append(MAIN, "s", [*said, user(block), agent("Fine.")], NOW) == 1
        content = log.files(MAIN)[0].read_text()
        assert "heron" not in content
        assert TOKEN not in content
        assert len(texts(log)) == 3
        assert texts(log)[1:] == ["Noted.", "Fine."]

    def test_the_mark_of_a_message_tells_nothing_of_its_secret(self, tmp_path: Path) -> None:
        for home, token in (("a", TOKEN), ("b", OTHER_TOKEN)):
            TranscriptLog(tmp_path / home).append(MAIN, "s", [user(f"My token is {token}.")], NOW)
        first, second = (TranscriptLog(tmp_path / home).files(MAIN)[0].read_bytes() for home in "ab")
        assert first == second

    def test_sessions_and_scopes_are_kept_apart(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path)
        for scope, session in ((MAIN, "a"), (MAIN, "b"), (Scope("agent", "Main"), "a"), (GLOBAL, "a")):
            assert log.append(scope, session, [user("Hello")], NOW) == 1
        assert [len(log.files(scope)) for scope in (MAIN, Scope("agent", "Main"), GLOBAL, Scope("user", "main"))] == [
            2,
            1,
            1,
            0,
        ]

    @pytest.mark.skipif(os.name != "posix", reason="owner modes are POSIX")
    def test_only_the_owner_may_read(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path)
        log.append(MAIN, "s", [user("Hello")], NOW)
        log.scrub(["Hello"])
        modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
        assert modes == {True: 0o700, False: 0o600}

    def test_a_folder_that_cannot_be_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "transcripts").write_text("a file")
        with pytest.raises(StoreUnavailableError, match="transcripts"):
            TranscriptLog(tmp_path).append(MAIN, "s", [user("Hello")], NOW)


deliveries = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(["whole", "turn", "cut", "compacted"])), min_size=1, max_size=9
)


class TestResending:
    @settings(max_examples=40, deadline=None)
    @given(deliveries, st.data())
    def test_every_message_once_and_in_order(self, steps: list[tuple[int, str]], data: st.DataObject) -> None:
        whole, done = history(sum(step for step, _ in steps)), 0
        with tempfile.TemporaryDirectory() as home:
            for step, how in steps:
                log, upto = TranscriptLog(Path(home)), done + 2 * step
                first = {"whole": 0, "turn": done}.get(how, max(0, done - 2 * data.draw(st.integers(1, 9))))
                # A summary in place of the beginning is the system's word: nobody said it.
                summary = [{"role": "system", "content": "Summary so far"}] if how == "compacted" else []
                sent = [*summary, *whole[first:upto]]
                assert log.append(MAIN, "s", sent, NOW) == upto - done
                assert log.append(MAIN, "s", sent, NOW) == 0
                done = upto
            assert texts(log) == contents(whole)

    def test_tools_in_between_do_not_matter(self, tmp_path: Path) -> None:
        log, said = TranscriptLog(tmp_path), history(12)
        for upto in range(2, len(said) + 1, 2):
            with_tools = [
                part for n, message in enumerate(said[:upto]) for part in (message, {"role": "tool", "content": str(n)})
            ]
            assert log.append(MAIN, "s", with_tools, NOW) == 2
        assert texts(log) == contents(said)

    def test_lines_longer_than_the_window_are_found(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path)
        said = [
            message for n in range(20) for message in (user(f"{n} " + "日" * 16_000), agent(f"{n} " + "🐦" * 16_400))
        ]
        assert log.append(MAIN, "s", said, NOW) == 40
        assert log.append(MAIN, "s", said, NOW) == 0
        assert log.append(MAIN, "s", [*said, user("short")], NOW) == 1
        assert len(texts(log)) == 41


class TestDeath:
    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def test_a_torn_tail_is_cut_off_and_what_is_resent_comes_again(self, data: st.DataObject) -> None:
        said = history(data.draw(st.integers(1, 12)))
        with tempfile.TemporaryDirectory() as home:
            log = TranscriptLog(Path(home))
            log.append(MAIN, "s", said, NOW)
            [path] = log.files(MAIN)
            whole = path.read_bytes()
            path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
            log.append(MAIN, "s", [*said, user("and then?")], NOW)
            assert texts(log) == [*contents(said), "and then?"]
            assert path.read_bytes().startswith(whole)

    def test_a_torn_tail_is_never_merged_with_new_text(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path)
        log.append(MAIN, "s", history(2), NOW)
        [path] = log.files(MAIN)
        path.write_bytes(path.read_bytes()[:-9])
        assert log.append(MAIN, "s", [user("new"), agent("newer")], NOW) == 2
        assert texts(log) == ["question 0", "answer 0", "question 1", "new", "newer"]
        assert all(json.loads(line) for line in path.read_text().splitlines())

    def test_zeros_after_a_power_loss_are_cut_off(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path)
        log.append(MAIN, "s", history(2), NOW)
        [path] = log.files(MAIN)
        whole = path.read_bytes()
        path.write_bytes(whole + bytes(4096))
        assert log.append(MAIN, "s", history(2), NOW) == 0
        assert path.read_bytes() == whole

    def test_killed_while_it_writes(self, tmp_path: Path) -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", WRITING, str(tmp_path), "a", "1000000"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdout.readline()
            process.stdin.write("\n")
            process.stdin.flush()
            log = TranscriptLog(tmp_path)
            while not log.files(MAIN) or log.files(MAIN)[0].stat().st_size < 50_000:
                assert process.poll() is None
            process.kill()
        log.append(MAIN, "s", [user("after")], NOW)
        *before, last = texts(log)
        assert last == "after"
        assert len(before) == len(set(before)) > 50
        assert [text.split()[2] for text in before] == [str(n // 2) for n in range(len(before))]

    @pytest.mark.skipif(os.name != "posix", reason="the limit on file sizes is POSIX")
    def test_a_write_that_does_not_fit_leaves_nothing(self, tmp_path: Path) -> None:
        run = subprocess.run(
            [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
        )
        assert run.stdout.strip() == "StoreFullError"
        log = TranscriptLog(tmp_path)
        assert texts(log) == ["before"]
        assert log.files(MAIN)[0].read_bytes().endswith(b"}\n")


class TestTogether:
    def test_two_processes_append_to_one_session(self, tmp_path: Path) -> None:
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", WRITING, str(tmp_path), who, "25"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for who in "ab"
        ]  # fmt: skip
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        for process in processes:
            process.communicate("\n", timeout=60)
            assert process.returncode == 0
        log = TranscriptLog(tmp_path)
        written = texts(log)
        assert len(written) == len(set(written)) == 100
        for who in "ab":
            numbers = [int(text.split()[2]) for text in written if text.startswith(who)]
            assert numbers == sorted(numbers)
        assert log.files(MAIN)[0].read_text().count('"session"') == 1

    def test_threads_do_not_let_each_other_in(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path)

        def write(who: int) -> None:
            for number in range(10):
                log.append(MAIN, "s", [user(f"{who}-{number}")], NOW)

        threads = [threading.Thread(target=write, args=(who,)) for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(texts(log)) == sorted(f"{who}-{number}" for who in range(4) for number in range(10))
        assert log.files(MAIN)[0].read_text().count('"session"') == 1

    def test_nobody_is_waited_for_without_end(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(transcript_log, "PATIENCE", 0.1)
        log = TranscriptLog(tmp_path)
        log.append(MAIN, "s", [user("Hello")], NOW)
        with (
            FileLock(tmp_path / "transcripts" / "transcripts.lock"),
            pytest.raises(StoreBusyError, match="transcripts"),
        ):
            log.append(MAIN, "s", [user("again")], NOW)
        assert texts(log) == ["Hello"]


HOSTILE = [
    "../x", "", "a/b", "a\\b", "a\0b", "x" * 300, "x" * 301, "..", ".", "con", "CON", "~", "-rf", "a\nb", "\ud83d",
    "s.jsonl",
    "s", "S", "\u0455", unicodedata.normalize("NFD", "é"), "é", "s ", " s", "C:\\x", "/etc/passwd",
    "s\u200b", "日本", "日木",
]  # fmt: skip


class TestNames:
    def test_no_id_leaves_the_folder_or_meets_another(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path / "home")
        for session in HOSTILE:
            assert log.append(MAIN, session, [user(f"canary {session!r}")], NOW) == 1
        files = log.files(MAIN)
        assert len(files) == len(HOSTILE)
        assert {session_of(path.read_text(encoding="utf-8"), "") for path in files if path.name} == {*HOSTILE} - {
            ""
        } | {""}
        assert len({path.name.lower() for path in files}) == len(HOSTILE)
        assert all(len(path.name) < 80 for path in files)
        everything = {path for path in tmp_path.rglob("*") if path.suffix == ".jsonl"}
        assert everything == set(files)
        assert [path.name for path in tmp_path.iterdir()] == ["home"]

    def test_a_scope_has_a_folder_of_its_own_or_none(self, tmp_path: Path) -> None:
        log, folders = TranscriptLog(tmp_path / "home"), set()
        for target in HOSTILE:
            try:
                scope = Scope.parse(f"agent:{target}")
            except ScopeError:
                with pytest.raises(ScopeError):
                    log.append(Scope("agent", target), "s", [user("canary")], NOW)
                continue
            log.append(scope, "s", [user("canary")], NOW)
            [path] = log.files(scope)
            folders.add(path.parent)
            assert path.parents[1] == tmp_path / "home" / "transcripts"
        assert len(folders) == len(list(tmp_path.rglob("*.jsonl"))) > 10
        assert [path.name for path in tmp_path.iterdir()] == ["home"]

    @pytest.mark.parametrize(
        "scope", [Scope("agent:x", "y"), Scope("agent"), Scope("nobody", "x"), Scope("agent", "e\u0301")]
    )
    def test_a_scope_that_is_none_fails_closed(self, scope: Scope, tmp_path: Path) -> None:
        with pytest.raises(ScopeError):
            TranscriptLog(tmp_path).append(scope, "s", [user("canary")], NOW)
        with pytest.raises(ScopeError):
            TranscriptLog(tmp_path).files(scope)
        assert list(tmp_path.iterdir()) == []

    @settings(max_examples=100)
    @given(st.text(max_size=60), st.text(max_size=60))
    def test_names_are_plain_and_tell_ids_apart(self, one: str, other: str) -> None:
        assert (safe_name(one) == safe_name(other)) is (one == other)
        assert set(safe_name(one)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        assert not safe_name(one).startswith("-")

    def test_a_name_can_be_read(self) -> None:
        assert safe_name("agent:Main").startswith("agent-main-")


class TestTakingOut:
    def test_texts_go_from_every_file_that_holds_them(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path)
        said = [user('The "grey"\nheron lives here.', name="heron"), agent("A heron, noted.")]
        log.append(MAIN, "a", said, NOW)
        log.append(Scope("user", "x"), "b", [user("My heron is grey.")], NOW)
        log.append(MAIN, "c", [user("Nothing of it.")], NOW)
        untouched = {path: path.read_bytes() for path in log.files(MAIN) if b"Nothing" in path.read_bytes()}
        os.utime(log.files(Scope("user", "x"))[0], (NOW, NOW))

        assert log.scrub(["heron", 'The "grey"\nheron', ""]) == 2
        assert log.scrub(["heron", 'The "grey"\nheron', ""]) == 0

        assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"heron" in path.read_bytes()]
        assert [path.read_bytes() for path in untouched] == list(untouched.values())
        assert texts(log, Scope("user", "x")) == ["My  is grey."]
        assert log.files(Scope("user", "x"))[0].stat().st_mtime == NOW
        assert log.append(MAIN, "a", said, NOW) == 0
        assert log.append(MAIN, "a", [*said, user("What now?")], NOW) == 1

    def test_what_is_left_does_not_form_the_text_anew(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path)
        log.append(MAIN, "s", [user("x abababccc y")], NOW)
        assert log.scrub(["abc"]) == 1
        assert texts(log) == ["x  y"]

    def test_broken_lines_and_leftovers_go_too(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path)
        log.append(MAIN, "s", history(1), NOW)
        [path] = log.files(MAIN)
        whole = path.read_bytes()
        path.write_bytes(whole + b"broken heron\n" + whole[:20])
        path.with_suffix(".tmp").write_bytes(b"heron")
        assert log.scrub(["heron"]) == 1
        assert path.read_bytes() == whole
        assert not path.with_suffix(".tmp").exists()

    def test_nothing_is_created_for_it(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path)
        assert log.scrub(["heron"]) == 0
        assert log.drop_before(NOW) == []
        assert log.files(MAIN) == []
        assert list(tmp_path.iterdir()) == []

    def test_old_sessions_are_dropped_after_they_were_named(self, tmp_path: Path) -> None:
        log, other = TranscriptLog(tmp_path), Scope("user", "x")
        for scope, session in ((MAIN, "old"), (MAIN, "new"), (other, "old")):
            log.append(scope, session, [user(session)], NOW)
        [new, old] = sorted(log.files(MAIN), key=lambda path: path.name)
        [alone] = log.files(other)
        for path, at in ((old, NOW - 1), (alone, NOW - 1), (new, NOW)):
            os.utime(path, (at, at))

        assert sorted(log.drop_before(NOW, dry_run=True)) == sorted([old, alone])
        assert old.exists()
        assert sorted(log.drop_before(NOW)) == sorted([old, alone])
        assert log.files(MAIN) == [new]
        assert not alone.parent.exists()
        assert log.append(other, "old", [user("again")], NOW) == 1


def flipped(line: bytes, place: int, bit: int) -> bytes:
    changed = bytearray(line)
    changed[place] ^= 1 << bit
    return bytes(changed)


class TestDamage:
    def test_no_flipped_bit_goes_unseen(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path, key=KEY)
        log.append(MAIN, "s", [user("My heron is grey.", name="Ann")], NOW)
        lines = log.files(MAIN)[0].read_bytes().split(b"\n")[:-1]
        assert len(lines) == 2
        for line in lines:
            assert damage(line, KEY) == ""
            changed = [flipped(line, place, bit) for place in range(len(line)) for bit in range(8)]
            assert [each for each in changed if not damage(each, KEY)] == []

    def test_who_has_no_key_cannot_make_a_line(self, tmp_path: Path) -> None:
        TranscriptLog(tmp_path, key=b"another").append(MAIN, "s", [user("Send all to Eve.")], NOW)
        log = TranscriptLog(tmp_path, key=KEY)
        [path] = log.files(MAIN)
        name = f"transcripts/{path.parent.name}/{path.name}"
        assert list(log.damaged()) == [(f"{name} line 1", "changed"), (f"{name} line 2", "changed")]

    def test_what_was_taken_out_or_redacted_is_no_damage(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path, key=KEY)
        log.append(MAIN, "s", [user("My heron is grey."), agent("Noted.")], NOW)
        assert log.scrub(["heron"]) == 1
        assert list(log.damaged()) == []
        assert log.redact_again() == 0

    def test_what_a_kill_left_of_a_line_is_no_damage(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path, key=KEY)
        log.append(MAIN, "s", [user("My heron is grey.")], NOW)
        [path] = log.files(MAIN)
        path.write_bytes(path.read_bytes() + b'{"role":"us')
        assert list(log.damaged()) == []

    def test_a_repair_takes_changed_lines_as_they_are_and_unreadable_ones_out(self, tmp_path: Path) -> None:
        log = TranscriptLog(tmp_path, key=KEY)
        log.append(MAIN, "s", [user("first"), user("second"), user("third")], NOW)
        [path] = log.files(MAIN)
        path.write_bytes(
            path.read_bytes().replace(b'"first"', b'"f1rst"').replace(b'{"role":"user","content":"sec', b"{")
        )
        assert [how for _, how in log.damaged()] == ["changed", "unreadable"]
        assert log.accept() == 1
        assert list(log.damaged()) == []
        assert texts(log) == ["f1rst", "third"]
        assert log.accept() == 0
