"""Who gets in: one browser with a token that works once, from our own pages alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.ui.door import TOKEN_SECONDS, Keys
from perdure.ui.pages import pages
from tests.ui.conftest import HOST, PORT, Browser


def stranger(browser: Browser) -> TestClient:
    return TestClient(browser.client.app, base_url=HOST)


def test_a_token_lets_one_browser_in_once(memory: Memory) -> None:
    browser = Browser(memory)
    token = browser.keys.token()
    assert browser.get("today").status_code == 403
    assert browser.client.get("/enter", params={"token": token}).status_code == 200
    assert browser.get("today").status_code == 200
    other = stranger(browser)
    assert other.get("/enter", params={"token": token}).status_code == 403
    assert other.get(f"{browser.keys.prefix}/today").status_code == 403


def test_a_token_is_over_after_a_minute(memory: Memory) -> None:
    clock = ManualClock(1_000.0)
    keys = Keys(clock.now)
    client = TestClient(pages(memory, keys, PORT), base_url=HOST)
    late, soon = keys.token(), keys.token()
    clock.advance(TOKEN_SECONDS)
    assert client.get("/enter", params={"token": soon}).status_code == 200
    clock.advance(1.0)
    assert client.get("/enter", params={"token": late}).status_code == 403


@pytest.mark.parametrize("query", [{}, {"token": ""}, {"token": "guess"}, {"token": ["a", "b"]}])
def test_no_token_lets_nobody_in(memory: Memory, query: dict[str, str]) -> None:
    assert Browser(memory).client.get("/enter", params=query).status_code == 403


def test_the_cookie_is_for_our_pages_alone(memory: Memory) -> None:
    browser = Browser(memory)
    cookie = browser.enter().headers["set-cookie"]
    assert f"Path={browser.keys.prefix}" in cookie
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert Browser(memory).keys.prefix != browser.keys.prefix


@pytest.mark.parametrize(
    "host", ["localhost:43210", "127.0.0.1", "127.0.0.1:1", "evil.example", "evil.example:43210", ""]
)
def test_another_host_is_refused(browser: Browser, host: str) -> None:
    assert browser.client.get(f"{browser.keys.prefix}/today", headers={"Host": host}).status_code == 403
    assert (
        browser.client.get("/enter", params={"token": browser.keys.token()}, headers={"Host": host}).status_code == 403
    )


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1:43210", "file://"])
def test_another_origin_is_refused(browser: Browser, origin: str) -> None:
    assert browser.client.get(f"{browser.keys.prefix}/today", headers={"Origin": origin}).status_code == 403
    assert browser.press("undo", origin=origin).status_code == 403


def test_a_form_without_an_origin_counts_only_if_the_browser_says_it_is_ours(browser: Browser) -> None:
    fact = browser.memory.store("The boat is called Heron.").fact
    path, values = f"{browser.keys.prefix}/forget", {"id": fact.id, "form_token": browser.token()}
    for headers in ({}, {"Origin": "null"}, {"Origin": "null", "Sec-Fetch-Site": "cross-site"}):
        assert browser.client.post(path, data=values, headers=headers).status_code == 403
    assert browser.memory.get(fact.id).forgotten_at is None
    ours = {"Origin": "null", "Sec-Fetch-Site": "same-origin"}
    assert browser.client.post(path, data=values, headers=ours).status_code == 200
    assert not browser.memory.admin.list()


@pytest.mark.parametrize("token", ["", "guess", "é", "0" * 64])
def test_a_form_with_no_token_or_a_stale_one_changes_nothing(browser: Browser, token: str) -> None:
    fact = browser.memory.store("The boat is called Heron.").fact
    assert browser.press("forget", id=fact.id, form_token=token).status_code == 403
    assert [each.id for each in browser.memory.admin.list()] == [fact.id]


def test_a_form_of_an_earlier_start_changes_nothing(browser: Browser) -> None:
    fact = browser.memory.store("The boat is called Heron.").fact
    before = browser.token()
    again = Browser(browser.memory)
    again.enter()
    assert again.press("forget", id=fact.id, form_token=before).status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/", "/today", "/memories", "/static/style.css", "/../etc/passwd", "/prefix/today", "//today", "/%2e%2e/today",
        "/enter/", "/enter/x",
    ],
)  # fmt: skip
def test_what_is_not_below_the_prefix_is_not_there(browser: Browser, path: str) -> None:
    assert browser.client.get(path).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "/nothing", "/static/", "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py",
        "/static/nothing", "/static//etc/passwd", "/memory", "/memory/", "/memory/../today",
        "/turns/..%2f..%2ffacts.db", "/today/x",
    ],
)  # fmt: skip
def test_tricks_with_paths_lead_nowhere(browser: Browser, path: str) -> None:
    answer = browser.client.get(browser.keys.prefix + path, follow_redirects=False)
    assert answer.status_code in (404, 200)
    # The client itself shortens a path with dots to a page of ours.
    assert answer.status_code == 404 or "<title>Today" in answer.text


def test_only_buttons_change_anything(browser: Browser) -> None:
    fact = browser.memory.store("The boat is called Heron.").fact
    for action in ("forget", "undo", "purge", "edit", "pin", "decide", "mark", "export"):
        assert browser.get(action, id=fact.id, sure="yes").status_code == 404
    assert browser.press("today").status_code == 404


def test_every_answer_is_for_this_page_and_this_moment_alone(browser: Browser) -> None:
    answers = [browser.get("today"), browser.get("nothing"), browser.client.get("/"), browser.get("static/style.css")]
    for answer in answers:
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert "access-control-allow-origin" not in answer.headers


def test_the_pages_name_no_other_server(browser: Browser) -> None:
    browser.memory.store("The boat is called Heron.")
    found = [browser.text(page) for page in ("today", "memories", "turns", "review", "files", "health")]
    package = Path(__file__).parents[2] / "perdure" / "ui"
    found += [
        path.read_text(encoding="utf-8") for folder in ("templates", "static") for path in (package / folder).iterdir()
    ]
    for text in found:
        assert not re.search(r"https?://|//[a-z]+\.", text)
        assert not re.search(r"<script(?! src=)|\son\w+=|\sstyle=|javascript:", text)


def test_a_browser_that_asks_for_an_icon_is_told_of_no_fault(browser: Browser) -> None:
    assert browser.client.get("/favicon.ico").status_code == 204
