"""Addresses of databases: one that may hold a password lies in no file and is shown to nobody."""

from __future__ import annotations

import string
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.cli.main import cli
from perdure.engine.config_file import set_setting
from perdure.engine.setting_sources import names_password, server_alone, without_password
from perdure.errors import PerdureError, SettingsError
from tests.kit import for_each

WORD = "hunter2"
"""In each password here."""
TOLD = [
    f"postgresql://u:{WORD}@db.example/d",
    f"postgres://u:{WORD}@db.example",
    f"postgresql://:{WORD}@db.example/d",
    *(f"postgresql://u:a{mark}{WORD}@db.example/d" for mark in "#?/[]:@%&=;, \t\\"),
    *(f"postgresql://u:{WORD}{mark}b@db.example/d" for mark in "#?/[]:@%&=;, \t\\"),
    f"postgresql://u:{WORD}%zz2@db.example/d",
    f"postgresql://u@corp:{WORD}@db.example/d",
    f"postgresql://u:{WORD}",
    f"postgresql://db.example/d?password={WORD}",
    f"postgresql://db.example/d?pass%77ord={WORD}",
    f"postgresql://db.example/d?pass%zzword={WORD}",
    f"postgresql://db.example/d?%20password%20={WORD}",
    f"postgresql://db.example?sslmode=require&sslpassword={WORD}",
    f"postgresql://db.example?oauth_client_secret={WORD}",
    f"postgresql://db.example/d?password=a@{WORD}",
    f"postgresql://db.example?password=a@{WORD}",
    f"postgresql://db.example/d password={WORD}",
    f"postgresql://db.example/d?dbname=postgresql://u:{WORD}@h/d",
    f"host=db.example user=u password={WORD}",
    f"host=db.example password = '{WORD}'",
    f" postgresql://u:{WORD}@db.example/d",
    f"POSTGRESQL://u:{WORD}@db.example/d",
    f"u:{WORD}@db.example/d",
    WORD,
]
PLAIN = {
    "postgresql://perdure@db.example/perdure": "postgresql://db.example/perdure",
    "postgres://perdure@db.example:5432/perdure": "postgres://db.example:5432/perdure",
    "postgresql://db.example": "postgresql://db.example",
    "postgresql:///perdure?host=/run/postgresql&port=5433": "postgresql:///perdure",
    "postgresql://u@[::1]:5432/perdure": "postgresql://[::1]:5432/perdure",
    "postgresql://u@one,two:5433/perdure": "postgresql://one,two:5433/perdure",
    "postgresql://%2Frun%2Fpostgresql/perdure": "postgresql://%2Frun%2Fpostgresql/perdure",
    "postgresql://u%40corp@db.example/p?sslmode=verify-full&passfile=/etc/pgpass": "postgresql://db.example/p",
    "postgresql://u@db.example/p?options=-c%20search_path%3Dperdure": "postgresql://db.example/p",
    "postgresql://u@db.example/p?sslcert=/a.crt&sslkey=/a.key": "postgresql://db.example/p",
}
_part = st.text(string.printable, max_size=6)
_addresses = st.one_of(
    st.builds("postgresql://{}:{}{}{}@{}/{}".format, _part, _part, st.just(WORD), _part, _part, _part),
    st.builds("postgresql://{}/{}?{}={}{}{}".format, _part, _part, st.sampled_from(
        ["password", "sslpassword", "pass%77ord", " password"]), _part, st.just(WORD), _part),
    st.builds("host={} {}password={}{}{}".format, _part, _part, _part, st.just(WORD), _part),
    st.builds("{}postgres://{}:{}@{}{}".format, _part, _part, st.just(WORD), _part, _part),
)  # fmt: skip


@for_each("url", TOLD)
def test_what_may_be_a_password_is_known_refused_in_files_and_not_shown(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert names_password(url)
    assert WORD not in without_password(url) + server_alone(url)
    with pytest.raises(SettingsError, match="has a password") as refused:
        set_setting(tmp_path / "config.toml", "store_url", url)
    assert WORD not in str(refused.value)
    monkeypatch.setenv("PERDURE_STORE_URL", url)
    monkeypatch.setenv("PERDURE_STORE_DIRECT_URL", url)
    calls = (["config", "get", "store_url"], ["config", "show", "--json"], ["config", "show", "--changed"])
    assert WORD not in "".join(CliRunner().invoke(cli, call, catch_exceptions=False).output for call in calls)


@pytest.mark.parametrize("url", PLAIN)
def test_what_holds_none_is_taken_and_shown_as_it_is(tmp_path: Path, url: str) -> None:
    assert not names_password(url)
    assert without_password(url) == url
    assert server_alone(url) == PLAIN[url]
    assert set_setting(tmp_path / "config.toml", "store_url", url) == url


@pytest.mark.parametrize(
    "url", [f"postgresql://u:{WORD}%zz2@127.0.0.1:1/d", f"postgresql://u:a/{WORD}@127.0.0.1:1/d", f"host=h {WORD}"]
)
@pytest.mark.parametrize("call", [["status"], ["doctor"], ["doctor", "--json"], ["list"], ["recall", "who"]])
def test_an_address_that_cannot_be_used_is_told_by_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, call: list[str]
) -> None:
    pytest.importorskip("psycopg_pool")
    monkeypatch.setenv("PERDURE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PERDURE_STORE_URL", url)
    monkeypatch.setenv("PERDURE_EMBEDDER", "none")
    ended = CliRunner().invoke(cli, call)
    assert isinstance(ended.exception, PerdureError | SystemExit | None)
    assert WORD not in f"{ended.output} {ended.exception}"


@given(_addresses)
@example(f"postgresql://u:[{WORD}@h/d")
def test_each_password_that_libpq_finds_is_found(url: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    from psycopg.conninfo import conninfo_to_dict

    held: Mapping[str, object] = {}
    with suppress(psycopg.Error, UnicodeError):
        held = conninfo_to_dict(url)
    secrets = [str(held[name]) for name in ("password", "sslpassword") if held.get(name)]
    assert not secrets or names_password(url)
    assert not any(WORD in secret for secret in secrets) or WORD not in without_password(url)
    if not names_password(url):
        assert f":{WORD}@" not in url


@given(st.text(string.printable, min_size=1, max_size=12))
def test_a_user_and_a_database_of_any_name_are_written_with_codes(name: str) -> None:
    url = f"postgresql://{quote(name, safe='')}@db.example/{quote(name, safe='')}"
    assert not names_password(url)
    assert server_alone(url) == f"postgresql://db.example/{quote(name, safe='')}"
