"""JSON over HTTP: good answers, bad ones, none; time-outs, cancellation, one more try, keys that stay secret."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from perdure.errors import EndpointError, ModelError, SettingsError
from perdure.models.endpoint import Address, Endpoint, Key
from tests.loopback import Loopback, Reply, Request, loopback

VARIABLE = "MY_TEST_KEY"
SECRET = "sk-proj-Zq8rT2vX5yB7nM4kL9wE"
FINE = Reply({"fine": True})


def then(*replies: Reply) -> Callable[[Request], Reply]:
    """Answer with these, one after the other, then with the last."""
    left = list(replies)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback(lambda request: FINE) as running:
        yield running


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(VARIABLE, SECRET)
    return SECRET


def endpoint(server: Loopback, *, timeout: float = 30.0, path: str = "/v1", key: Key | None = None) -> Endpoint:
    return Endpoint(Address(server.url + path, key), timeout)


def error_of(server: Loopback, reply: Reply, key: Key | None = None, timeout: float = 30.0) -> EndpointError:
    server.answer = lambda request: reply
    with pytest.raises(EndpointError) as caught:
        endpoint(server, key=key, timeout=timeout).post("/x", {})
    return caught.value


def test_json_goes_out_and_comes_back(server: Loopback) -> None:
    assert endpoint(server, path="/v1/").post("/embeddings", {"input": "grüße"}) == {"fine": True}
    [request] = server.requests
    assert (request.path, request.body) == ("/v1/embeddings", {"input": "grüße"})
    assert "Authorization" not in request.headers


def test_the_key_is_read_when_it_is_needed(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = endpoint(server, key=Key(VARIABLE))
    with pytest.raises(ModelError, match=VARIABLE):
        asking.post("/x", {})
    assert server.connections == 0
    monkeypatch.setenv(VARIABLE, f" {SECRET}\n")
    asking.post("/x", {})
    assert server.requests[0].headers["Authorization"] == f"Bearer {SECRET}"
    assert SECRET not in repr(vars(asking))


def test_a_key_that_no_header_can_carry_is_not_repeated(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f"{SECRET}\r\nX-Evil: 1")
    with pytest.raises(ModelError, match=VARIABLE) as caught:
        endpoint(server, key=Key(VARIABLE)).post("/x", {})
    assert SECRET not in str(caught.value)
    assert server.connections == 0


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "no such field"),
        (401, VARIABLE),
        (403, VARIABLE),
        (404, "name of the model"),
        (302, "redirect"),
    ],
)
def test_an_error_is_told_once_with_the_next_step(server: Loopback, secret: str, status: int, advice: str) -> None:
    reply = Reply({"error": {"message": f"no such field {secret}"}}, status, {"Location": "http://127.0.0.1:1/"})
    error = error_of(server, reply, Key(VARIABLE))
    assert error.status == status
    assert advice in str(error)
    assert secret not in str(error)
    assert len(server.requests) == 1


def test_secrets_in_what_a_server_says_are_redacted(server: Loopback) -> None:
    said = "your password is hunter2xyz, key sk-proj-abcdefghijklmnopqrstuvwx1234"
    error = error_of(server, Reply({"message": said}, 400))
    assert "sk-proj-abcdefghijklmnopqrstuvwx1234" not in str(error)
    assert "redacted" in str(error)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_it_is_tried_once_more_and_no_more(server: Loopback, status: int) -> None:
    server.answer = then(Reply(None, status, {"Retry-After": "0"}), FINE)
    assert endpoint(server).post("/x", {}) == {"fine": True}
    assert error_of(server, Reply(None, status, {"Retry-After": "0"})).status == status
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    "after", ["120", format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)], ids=["seconds", "date"]
)
def test_a_wait_beyond_the_timeout_is_not_waited(server: Loopback, after: str) -> None:
    error = error_of(server, Reply(None, 429, {"Retry-After": after}))
    assert len(server.requests) == 1
    assert "try again in" in str(error)


@pytest.mark.parametrize("after", ["soon", "-5", "nan", "Wed, 99 Foo"])
def test_a_wait_that_cannot_be_read_is_a_short_one(server: Loopback, after: str) -> None:
    server.answer = then(Reply(None, 429, {"Retry-After": after}), FINE)
    assert endpoint(server).post("/x", {}) == {"fine": True}


def test_a_server_that_hangs_is_left(server: Loopback) -> None:
    server.hang = True
    with pytest.raises(EndpointError, match="in time") as caught:
        endpoint(server).post("/x", {}, timeout=0.2)
    assert caught.value.sent
    assert caught.value.status is None


def test_a_server_that_trickles_is_left(server: Loopback) -> None:
    server.trickle = True
    with pytest.raises(EndpointError, match="in time"):
        endpoint(server, timeout=0.3).post("/x", {})


def test_a_running_request_can_be_broken_off(server: Loopback) -> None:
    server.hang = True
    asking = endpoint(server, timeout=600)
    raised: list[str] = []

    def ask() -> None:
        with pytest.raises(EndpointError) as caught:
            asking.post("/x", {})
        raised.append(str(caught.value))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    assert server.arrived.wait(30)
    asking.interrupt()
    thread.join(30)
    assert len(raised) == 1
    assert "interrupted" in raised[0]
    server.hang = False
    assert asking.post("/x", {}) == {"fine": True}


def test_a_wait_before_the_second_try_can_be_broken_off(server: Loopback) -> None:
    server.answer = lambda request: Reply(None, 503, {"Retry-After": "500"})
    asking = endpoint(server, timeout=600)
    raised: list[str] = []

    def ask() -> None:
        with pytest.raises(EndpointError) as caught:
            asking.post("/x", {})
        raised.append(str(caught.value))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    assert server.arrived.wait(30)
    while thread.is_alive() and not raised:
        asking.interrupt()
        thread.join(0.05)
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", [b"<html>", b"", b'{"a":', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_json_is_an_error(server: Loopback, body: bytes) -> None:
    assert "did not answer with JSON" in str(error_of(server, Reply(body)))


def test_a_server_that_does_not_run_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(EndpointError, match=f"127.0.0.1:{port} cannot be reached") as caught:
        Endpoint(Address(f"http://127.0.0.1:{port}")).post("/x", {})
    assert not caught.value.sent


def test_an_answer_that_breaks_off_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(EndpointError, match="closed the connection early"):
            Endpoint(Address(f"http://127.0.0.1:{listening.getsockname()[1]}")).post("/x", {}, timeout=30)
        thread.join(30)


@pytest.mark.parametrize(
    "url", ["", "localhost:11434", "ftp://host/v1", "http://", "http://h:99999999", "http://h/?a=1"]
)
def test_an_address_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="address"):
        Address(url)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(SettingsError) as caught:
        Address("https://me:hunter2@host/v1")
    assert "hunter2" not in str(caught.value)
