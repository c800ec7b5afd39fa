"""Files by HTTP: whole ones, cut ones that go on, other ones, redirects that are followed and that are not."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.errors import EndpointError
from perdure.models.download import download
from perdure.models.endpoint import Address
from tests.loopback import Loopback, Reply, Request, loopback, served

CONTENT = bytes(range(256)) * 1000
SIZE = len(CONTENT)


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback(lambda request: served(CONTENT, request)) as running:
        yield running


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "file.part"


def get(server: Loopback, into: Path, *, redirects: tuple[str, ...] = (), timeout: float = 30.0) -> list[int]:
    """Download; return what `advance` was told."""
    told: list[int] = []
    address = Address(server.url + "/hub/")
    download(address, "/a/file", into, SIZE, redirects=redirects, timeout=timeout, advance=told.append)
    return told


def error_of(server: Loopback, into: Path, *, redirects: tuple[str, ...] = (), timeout: float = 30.0) -> str:
    with pytest.raises(EndpointError) as caught:
        get(server, into, redirects=redirects, timeout=timeout)
    return str(caught.value)


def test_a_file_comes_whole_and_is_counted(server: Loopback, into: Path) -> None:
    told = get(server, into)
    assert into.read_bytes() == CONTENT
    assert sum(told) == SIZE
    [request] = server.requests
    assert (request.path, request.body) == ("/hub/a/file", None)
    assert "Range" not in request.headers


def test_what_is_there_is_not_asked_for_again(server: Loopback, into: Path) -> None:
    into.write_bytes(CONTENT)
    assert sum(get(server, into)) == SIZE
    assert server.requests == []


def test_after_a_cut_it_goes_on_where_it_was(server: Loopback, into: Path) -> None:
    server.answer = lambda request: replace(served(CONTENT, request), cut=100_000)
    assert "the download resumes" in error_of(server, into)
    assert into.read_bytes() == CONTENT[:100_000]
    server.answer = lambda request: served(CONTENT, request)
    assert sum(get(server, into)) == SIZE
    assert server.requests[-1].headers["Range"] == "bytes=100000-"
    assert into.read_bytes() == CONTENT


def test_a_server_that_knows_no_ranges_sends_all_of_it(server: Loopback, into: Path) -> None:
    into.write_bytes(b"x" * 1000)
    server.answer = lambda request: Reply(CONTENT)
    assert sum(get(server, into)) == SIZE
    assert into.read_bytes() == CONTENT


def test_a_part_that_is_longer_than_the_whole_is_thrown_away(server: Loopback, into: Path) -> None:
    into.write_bytes(b"x" * (SIZE + 1))
    assert sum(get(server, into)) == SIZE
    assert into.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(b"", 404), "answered 404: the file is not there"),
        (Reply(b"", 503), "answered 503: try again later"),
        (Reply(b"", 416), "shorter than the part already downloaded"),
        (Reply(CONTENT[:-1]), f"has a file of {SIZE - 1} bytes, expected {SIZE}"),
        (Reply(CONTENT + b"x"), f"has a file of {SIZE + 1} bytes, expected {SIZE}"),
        (
            Reply(CONTENT[7:], 206, {"Content-Range": f"bytes 7-{SIZE - 1}/{SIZE}"}),
            "different byte range than requested",
        ),
    ],
)
def test_what_is_not_the_file_changes_nothing(reply: Reply, message: str, server: Loopback, into: Path) -> None:
    into.write_bytes(CONTENT[:5])
    server.answer = lambda request: reply
    assert message in error_of(server, into)
    assert into.read_bytes() == CONTENT[:5]


def test_a_server_that_hangs_is_given_up(server: Loopback, into: Path) -> None:
    server.hang = True
    assert "sent nothing for too long" in error_of(server, into, timeout=0.2)
    assert not into.exists()


def test_nobody_there(server: Loopback, into: Path) -> None:
    server.close()
    assert "cannot be reached" in error_of(server, into)


class TestRedirects:
    def test_a_server_may_lead_to_itself(self, server: Loopback, into: Path) -> None:
        def answer(request: Request) -> Reply:
            return served(CONTENT, request) if request.path == "/b?x=1" else Reply(b"", 307, {"Location": "/b?x=1"})

        into.write_bytes(CONTENT[:9])
        server.answer = answer
        get(server, into)
        assert into.read_bytes() == CONTENT
        assert [request.headers["Range"] for request in server.requests] == ["bytes=9-"] * 2

    def test_but_not_for_ever(self, server: Loopback, into: Path) -> None:
        server.answer = lambda request: Reply(b"", 302, {"Location": "/again"})
        assert "redirects more than 5 times" in error_of(server, into)
        assert len(server.requests) == 6

    @pytest.mark.parametrize(
        "location",
        [
            "http://files.example.org/file?signature=abcdef",
            "http://example.org/file",
            "https://example.org.evil.test/file",
            "https://evilexample.org/file",
            "https://example.org@evil.test/file",
            "file:///etc/passwd",
            "ftp://example.org/file",
        ],
    )
    def test_elsewhere_only_by_https_and_to_domains_that_were_named(
        self, location: str, server: Loopback, into: Path
    ) -> None:
        server.answer = lambda request: Reply(b"", 302, {"Location": location})
        message = error_of(server, into, redirects=("example.org",))
        assert "which is not followed" in message
        assert "abcdef" not in message, "a signature stays out of messages"

    @pytest.mark.parametrize("location", ["https://example.org:99999/", "https://[::1/"])
    def test_an_address_that_cannot_be_read(self, location: str, server: Loopback, into: Path) -> None:
        server.answer = lambda request: Reply(b"", 302, {"Location": location})
        assert "redirects to an invalid address" in error_of(server, into, redirects=("example.org",))

    def test_another_server_that_was_not_named(self, server: Loopback, into: Path) -> None:
        with loopback(lambda request: Reply(CONTENT)) as other:
            server.answer = lambda request: Reply(b"", 302, {"Location": other.url + "/file"})
            assert "which is not followed" in error_of(server, into, redirects=("127.0.0.1",))
            assert other.connections == 0

    def test_to_a_named_one_by_https(
        self, server: Loopback, into: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        certificate = self_signed(tmp_path / "certificate.pem")
        with loopback(lambda request: served(CONTENT, request), certificate) as other:
            server.answer = lambda request: Reply(b"", 302, {"Location": other.url + "/cdn/file?signature=1"})
            assert "SSLCertVerificationError" in error_of(server, into, redirects=("localhost",))
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
            get(server, into, redirects=("localhost",))
            assert other.requests[-1].path == "/cdn/file?signature=1"
        assert into.read_bytes() == CONTENT


def self_signed(path: Path) -> Path:
    """Write a certificate for localhost and its key into one file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
    return path
