"""A key and its value are judged together, however deep they lie."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import InputError
from perdure.secrets.fields import Redactor

SECRET = "zq7heron" + "Kx41"
NAMES = (
    "password", "Passwort", "DB_PASSWORD", "dbPassword", "wifi password 2", "mot de passe", "contraseña", "пароль",
    "密码", "pwd", "pass", "pw", "psk", "apiKey", "api_key", "api-keys", "client_secret", "access_token", "authToken",
    "private key id", "encryption key", "passphrase", "secretAccessKey",
)  # fmt: skip


def redacted(value: Any) -> Any:
    redactor = Redactor()
    return redactor.elsewhere(redactor.value(value))


def texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in texts(part)]
    return [text for item in value for text in texts(item)] if isinstance(value, list) else [str(value)]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_makes_its_value_a_secret(name: str) -> None:
    redactor = Redactor()
    [(key, value)] = redactor.value({name: SECRET}).items()
    assert key == name
    assert value.startswith("[redacted ")
    assert value == f"[redacted {redactor.kinds[0]}]"


@given(st.sampled_from(NAMES), st.data())
def test_at_any_depth(name: str, data: st.DataObject) -> None:
    value: Any = {name: SECRET}
    for _ in range(data.draw(st.integers(0, 6))):
        value = data.draw(st.sampled_from([{"a": value}, [value], [1, value, "x"], {"b": [value], "c": None}]))
    assert SECRET not in " ".join(texts(redacted(value)))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"pin": 4821, "count": 4096}, {"pin": "[redacted pin]", "count": 4096}),
        ({"password": 12345678}, {"password": "[redacted password]"}),
        ({"passwords": ["swordfish", "hunter2"]}, {"passwords": ["[redacted password]", "[redacted password]"]}),
        ({"passwords": {"router": "hunter2", "changed": "2026-01-15", "policy": "strict"}},
         {"passwords": {"router": "[redacted password]", "changed": "2026-01-15", "policy": "strict"}}),
        ([{"name": "DB_PASSWORD", "value": "hunter2"}], [{"name": "DB_PASSWORD", "value": "[redacted password]"}]),
        ({"password": {"value": "swordfish"}}, {"password": {"value": "[redacted password]"}}),
        ([["password", "hunter2"]], [["password", "[redacted password]"]]),
        ({"backup codes": ["abcd-1234", "efgh-5678", "ijkl-9012"]},
         {"backup codes": ["[redacted recovery-code]"] * 3}),
        ({"ssn": "123456789"}, {"ssn": "[redacted ssn]"}),
        ({"card": 4111111111111111}, {"card": "[redacted card]"}),
        ({"password": "correct horse battery staple"}, {"password": "[redacted password]"}),
        ({"note": "my password is hunter2", "again": "hunter2 works", "list": ["it's hunter2"]},
         {"note": "my password is [redacted password]", "again": "[redacted password] works",
          "list": ["it's [redacted password]"]}),
    ],
)  # fmt: skip
def test_what_goes(value: Any, expected: Any) -> None:
    assert redacted(value) == expected
    assert redacted(expected) == expected


@pytest.mark.parametrize(
    "value",
    [
        {"password": True, "token": None, "secret": 3, "pin": 13},
        {"password": "required", "token": "string", "api_key": "YOUR_API_KEY", "secret": "${SECRET}"},
        {"tokens": ["the", "quick2brown"], "token_count": 12345678, "max_tokens": 4096},
        {"key": "value12345", "primary_key": "abc12345", "public_key": "abcdef123456"},
        {"password_policy": "min8chars", "password changed": "2026-01-15", "pinned": "yes 4821"},
        {"name": "Anna", "value": "abc12345"},
        {"password": "[redacted password]"},
    ],
)
def test_what_stays(value: Any) -> None:
    assert redacted(value) == value


def test_a_word_that_is_a_secret_goes_only_as_a_whole() -> None:
    redactor = Redactor()
    redactor.value({"password": "sword"})
    assert redactor.elsewhere("a sword and a swordfish") == "a [redacted password] and a swordfish"


def test_only_json_values_are_taken() -> None:
    with pytest.raises(InputError, match="type bytes; use JSON values only"):
        Redactor().value({"a": [b"x"]})
