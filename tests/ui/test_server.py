"""`perdure ui` as a process: one server for a caller, found by its socket, ended without loss."""

from __future__ import annotations

import re
import signal
import stat
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from tests.ui.process import Ui

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets and signals")


@pytest.fixture
def runtime() -> Iterator[Path]:
    # The path of a socket has a hundred bytes at the most.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with Memory.open(tmp_path / "home", embedder="none", timers=False) as memory:
        memory.store("The boat is called Heron.")
    return tmp_path / "home"


@pytest.fixture
def ui(home: Path, runtime: Path) -> Iterator[Ui]:
    with Ui(home, runtime, "--no-browser") as started:
        yield started


def got(address: str, cookie: str = "") -> tuple[int, str, str]:
    """Return status, text and cookie of an answer."""
    asked = urllib.request.Request(address, headers={"Cookie": cookie} if cookie else {})
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return answer.status, answer.read().decode(), str(answer.headers.get("Set-Cookie", "")).partition(";")[0]
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), ""


def test_the_printed_address_opens_the_pages_once(ui: Ui) -> None:
    address = ui.address()
    status, welcome, cookie = got(address)
    assert status == 200
    assert got(address)[0] == 403
    led = re.search(r"url=(/[\w-]+)/today", welcome)
    assert led is not None
    base = address.partition("/enter")[0] + led[1]
    assert "The boat is called Heron." in got(f"{base}/memories", cookie)[1]
    assert got(f"{base}/memories")[0] == 403


def test_a_second_start_opens_the_first_and_ends(ui: Ui, home: Path, runtime: Path) -> None:
    first = ui.address()
    with Ui(home, runtime, "--no-browser") as again:
        second = again.address()
        assert again.process.wait(30) == 0
    assert second.partition("?")[0] == first.partition("?")[0]
    assert second != first
    assert got(second)[0] == 200


def test_its_socket_is_for_this_user_alone_and_goes_with_it(ui: Ui, runtime: Path) -> None:
    ui.address()
    [socket] = runtime.rglob("*-ui-*.sock")
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    assert ui.end() == 0
    assert not socket.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly_when_it_is_asked_to(ui: Ui, home: Path, number: int) -> None:
    ui.address()
    assert ui.end(number) in (0, 130)
    with Memory.open(home, embedder="none", timers=False) as memory:
        assert not memory.admin.verify()


def test_the_browser_is_given_a_file_that_only_this_user_reads(home: Path, runtime: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}.new && mv {seen}.new {seen}\n', encoding="ascii")
    browser.chmod(0o700)
    with Ui(home, runtime, browser=f"{browser} %s") as started:
        assert started.process.stdout is not None
        started.process.stdout.readline()
        while not seen.exists():
            assert started.process.poll() is None
        given = seen.read_text(encoding="ascii").strip()
        assert given.startswith("file://")
        assert "token" not in given
        path = Path(given.removeprefix("file://"))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        address = re.search(r"url=(http[^\"]*)\"", path.read_text(encoding="ascii"))
        assert address is not None
        assert got(address[1])[0] == 200


def test_a_port_that_is_taken_is_said(ui: Ui, home: Path, runtime: Path, tmp_path: Path) -> None:
    port = re.search(r":(\d+)/", ui.address())
    assert port is not None
    with Ui(tmp_path / "other", runtime, "--no-browser", "--port", port[1]) as other:
        out, _ = other.process.communicate(timeout=60)
    assert other.process.returncode != 0
    assert f"port {port[1]} cannot be used" in out
