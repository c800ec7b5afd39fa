"""The command that a host runs at each event, and the helper behind it: real processes, a real socket."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bench.hooks import end, processes
from perdure import Memory
from perdure.service.client import OK, ask, ask_at, endpoint
from perdure.service.helper import Helper
from tests.hosts.commands import SECRET, helpers, home, hook, payload
from tests.waiting import until

__all__ = ["home"]

QUESTION = "Which editor is my favourite?"


def listening(home: Path) -> bool:
    hook(home, "session-start", payload("session-start", "s0", source="startup"))
    return until(lambda: Path(f"{endpoint(str(home))}.sock").exists())


def known(home: Path) -> list[str]:
    with Memory.open(home) as memory:
        assert memory.settle(60)
        return [fact.text for fact in memory.admin.list()]


def test_a_fact_of_one_session_comes_up_in_the_next(home: Path) -> None:
    assert listening(home)
    assert hook(home, "prompt", payload("prompt", "s1", prompt="My favourite editor is Helix.")) == b""
    asked = payload("prompt", "s2", prompt="Which editor is my favourite?")

    def shown() -> bool:
        # What was said is captured behind the acknowledgement.
        said = hook(home, "prompt", asked.replace(b'"s2"', b'"s%d"' % next(number)))
        return b"Helix" in said and json.loads(said)["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"

    number = iter(range(2, 1_000))
    assert until(shown)
    assert len(helpers(home)) == 1


def test_what_a_program_has_the_host_run_is_not_kept(home: Path) -> None:
    assert listening(home)
    # What the helper has not read when it is killed is lost: a host that waits longer has it.
    for prompt, way in (("My parrot is called Otto.", "sdk-cli"), ("My favourite editor is Helix.", "claude-vscode")):
        hook(home, "prompt", payload("prompt", way, prompt=prompt), patient=True, env=begun(way))
    end(home)
    assert known(home) == ["My favourite editor is Helix."]


def begun(way: str) -> dict[str, str]:
    return {**os.environ, "CLAUDE_CODE_ENTRYPOINT": way}


def test_before_a_tool_runs_a_hook_without_a_helper_says_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_HELPER", "0")
    monkeypatch.setenv("PERDURE_AGENT_LOG", "remind")
    given = {"tool_input": {"command": "make test"}, "tool_use_id": "toolu_1"}
    assert hook(home, "tool", payload("tool", "s1", **given)) == b""
    assert not home.exists()


def test_without_a_helper_words_alone_answer_and_what_is_said_is_kept(home: Path, monkeypatch: Any) -> None:
    with Memory.open(home) as memory:
        memory.store("My favourite editor is Helix.")
    # No socket can be made there, as on a machine that has none.
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/proc")
    monkeypatch.setenv("TMPDIR", "/proc")
    assert b"Helix" in hook(home, "prompt", payload("prompt", "s", prompt=QUESTION), patient=True)
    hook(home, "prompt", payload("prompt", "t", prompt="My favourite cheese is Comte."), patient=True)
    assert not helpers(home)
    until(lambda: not processes(home, b"--host"))
    assert "My favourite cheese is Comte." in known(home)


def test_without_a_helper_a_session_is_opened_once(home: Path, monkeypatch: Any) -> None:
    with Memory.open(home) as memory:
        memory.store("Always answer in metric units.")
    monkeypatch.setenv("PERDURE_HELPER", "0")
    first, second = (
        hook(home, "prompt", payload("prompt", "s", prompt=prompt, prompt_id=prompt[:4]), patient=True)
        for prompt in ("Write a sonnet about rain.", "Now one about snow.")
    )
    assert b"metric" in first
    assert second == b""


def test_the_helper_holds_nothing_of_the_host_but_its_models_address(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://models.example.org")
    reading, writing = os.pipe()
    hook(home, "session-start", payload("session-start", "s1"), pass_fds=[writing])
    os.close(writing)
    assert until(lambda: Path(f"{endpoint(str(home))}.sock").exists())
    # The other end is read to its end, though the helper lives on.
    assert os.read(reading, 1) == b""
    [pid] = helpers(home)
    environ = Path(f"/proc/{pid}/environ").read_bytes()
    assert SECRET.encode() not in environ
    assert b"PERDURE_EMBEDDER=hash" in environ
    assert b"ANTHROPIC_BASE_URL=https://models.example.org" in environ
    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/cwd").resolve() == home


def test_the_socket_is_for_this_user_alone(home: Path) -> None:
    assert listening(home)
    path = Path(f"{endpoint(str(home))}.sock")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_runtime_folder_of_somebody_else_is_not_used(home: Path) -> None:
    folder = Path(os.environ["XDG_RUNTIME_DIR"], f"perdure-{os.getuid()}")
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    with pytest.raises(PermissionError, match="remove it"):
        endpoint(str(home))


def test_many_sessions_at_once_start_one_helper(home: Path) -> None:
    threads = [
        threading.Thread(target=hook, args=(home, "session-start", payload("session-start", f"s{number}")))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert until(lambda: Path(f"{endpoint(str(home))}.sock").exists())
    assert until(lambda: len(helpers(home)) == 1)


def test_what_a_hook_without_a_helper_keeps_is_taken_in_by_the_next(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert listening(home)
    with monkeypatch.context() as alone:
        alone.setenv("PERDURE_HELPER", "0")
        hook(home, "prompt", payload("prompt", "s1", prompt="My favourite editor is Helix."))
        until(lambda: not processes(home, b"--host"))

    def stored() -> bool:
        with Memory.open(home, guest=True) as memory:
            return any("Helix" in fact.text for fact in memory.admin.list())

    assert until(stored)


def test_who_must_be_alone_sends_the_helper_away(home: Path) -> None:
    assert listening(home)
    with Memory.open(home) as memory:
        stored = memory.store("My favourite editor is Helix.")
    done = subprocess.run(
        [sys.executable, "-m", "perdure", "purge", stored.id, "--home", str(home), "--yes", "--json"],
        stdout=subprocess.PIPE, check=True, timeout=60,
    )  # fmt: skip
    assert json.loads(done.stdout)["purges"][0]["state"] == "certified"
    assert not helpers(home)


def test_a_helper_of_another_version_ends(home: Path) -> None:
    assert listening(home)
    [pid] = helpers(home)
    with socket.socket(socket.AF_UNIX) as to:
        to.connect(f"{endpoint(str(home))}.sock")
        to.sendall(b"hook\t0 older\n{}")
        to.shutdown(socket.SHUT_WR)
        assert to.recv(4_096) == b"stale\n"
    assert until(lambda: pid not in helpers(home))


def test_a_killed_helper_is_replaced_and_nothing_is_lost(home: Path) -> None:
    assert listening(home)
    for number, city in enumerate(("Lisbon", "Porto", "Braga")):
        for pid in helpers(home):
            os.kill(pid, signal.SIGKILL)
        hook(home, "prompt", payload("prompt", f"s{number}", prompt=f"My friend Ana{city} lives in {city}."))
    end(home)

    def kept() -> bool:
        # What was killed holds its inbox until the system has ended it.
        with Memory.open(home, scopes=[str(_project())]) as memory:
            assert memory.settle(60)
            said = " ".join(fact.text for fact in memory.admin.list())
        return all(city in said for city in ("Lisbon", "Porto", "Braga"))

    assert until(kept)


@pytest.mark.parametrize("data", [b"", b"not JSON", b"[]", b'{"session_id": null}', b"\xff\xfe", b"{" * 5_000])
def test_whatever_comes_it_says_nothing_and_ends_well(home: Path, data: bytes) -> None:
    assert hook(home, "prompt", data) == b""


def test_a_wrong_call_says_nothing_and_ends_well(home: Path) -> None:
    for arguments in ([], ["prompt"], ["prompt", "--host"], ["dance", "--host", "claude-code"]):
        done = subprocess.run(
            [sys.executable, "-I", "-m", "perdure", "hook", *arguments], input=b"{}", capture_output=True, check=False,
            env={**os.environ, "PERDURE_HOME": str(home)},
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, b"")


def test_a_hook_imports_nothing_heavy(home: Path) -> None:
    assert listening(home)
    code = (
        "import os, sys; end = os._exit\n"
        "def told(code):\n"
        "    os.write(2, ' '.join(sys.modules).encode()); end(code)\n"
        "os._exit = told\n"
        "from perdure.service.client import main\n"
        "main(sys.argv[1:])"
    )
    command = [sys.executable, "-I", "-c", code, "prompt", "--host", "claude-code", "--home", str(home)]
    done = subprocess.run(command, input=payload("prompt", "s1", prompt="Hello there"), capture_output=True, check=True)
    loaded = set(done.stderr.decode().split())
    assert "perdure.service.client" in loaded
    assert not loaded & {
        "numpy",
        "onnxruntime",
        "pydantic",
        "click",
        "apsw",
        "json",
        "socket",
        "re",
        "perdure.api.memory",
    }


def test_an_idle_helper_ends_and_takes_its_socket_away(home: Path) -> None:
    path = f"{endpoint(str(home))}.sock"
    helper = Helper(path, {}, idle=0.0)
    thread = threading.Thread(target=helper.serve)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert not Path(path).exists()


def test_a_request_that_fails_does_not_end_the_helper(home: Path) -> None:
    def fail(body: bytes) -> bytes:
        raise ZeroDivisionError

    helper = Helper(f"{endpoint(str(home))}.sock", {"fail": fail, "echo": lambda body: body})
    thread = threading.Thread(target=helper.serve)
    thread.start()
    assert "ZeroDivisionError" in str(ask(str(home), "fail", b"", 10))
    assert "unknown method" in str(ask(str(home), "dance", b"", 10))
    assert ask(str(home), "echo", b"one\ntwo\0three", 10) == ("ok", b"one\ntwo\0three")
    helper.stop()
    thread.join(60)
    assert not thread.is_alive()


def _project() -> str | None:
    from perdure.engine.repository import project_of

    return project_of("/home/me/repo")


SLOW = """
import signal, sys, time
from perdure.service.helper import Helper

def slow(body):
    print("begun", flush=True)
    time.sleep(5)
    return b"done"

helper = Helper(sys.argv[1], {"slow": slow})
helper.run(helper.serve, lambda: print("closed", flush=True), signal.SIGTERM)
"""


def test_a_signal_lets_what_is_under_way_end_and_closes_what_is_open(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with subprocess.Popen([sys.executable, "-c", SLOW, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert until(path.exists)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(ask_at, str(path), "slow", b"", 30.0)
            assert process.stdout.readline() == "begun\n"
            process.terminate()
            assert answer.result(30) == (OK, b"done")
        assert process.stdout.read() == "closed\n"
    assert process.returncode == 0
