"""Memories are text that anybody may have written: on a page they stay text."""

from __future__ import annotations

import html
from html.parser import HTMLParser

import pytest

from perdure.hooks.types import TurnContext
from tests.ui.conftest import Browser
from tests.ui.hostile import memories

NUMBER = 200
TAGS = {
    "html", "head", "meta", "title", "link", "script", "body", "a", "header", "strong", "nav", "form", "input", "main",
    "dialog", "h1", "h2", "h3", "dl", "dt", "dd", "kbd", "button", "p", "small", "ul", "ol", "li", "span", "section",
    "label", "textarea", "aside", "details", "summary", "div", "table", "thead", "tbody", "tr", "th", "td", "del",
    "ins", "em", "blockquote", "cite", "br",
}  # fmt: skip
"""That our templates use."""


class Seen(HTMLParser):
    """Collects what a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.scripts: list[str | None] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "script":
            self.scripts.append(dict(attrs).get("src"))
        for name, value in attrs:
            if name in ("href", "src", "action", "data-rows"):
                self.addresses.append(value or "")
            if name.startswith("on") or name == "style":
                self.handlers.append(name)


@pytest.fixture
def hostile(browser: Browser) -> Browser:
    memory = browser.memory
    for place, text in enumerate(memories(NUMBER)):
        memory.store(text, entity=text[:100], key=f"k{place}", value=text[:100], tags=[text[-20:]], why=text)
    memory.turns.before("What about the harbour? <script>alert(1)</script>", TurnContext(session_id="<svg onload=1>"))
    assert memory.settle()
    return browser


def test_hostile_memories_stay_text_on_every_page(hostile: Browser) -> None:
    facts = hostile.memory.admin.list(limit=NUMBER)
    assert len(facts) == NUMBER
    turn = hostile.memory.turns.past()[0].id
    old = facts[0]
    hostile.press("edit", id=old.id, text=f"{old.text} again")
    pages = [f"memory/{fact.id}" for fact in facts[:40]] + [f"turns/{turn}"]
    found = [hostile.text(page) for page in ("today", "memories", "turns", "review", "files", "health", *pages)]
    found.append(hostile.text("memories", q="harbour <script>alert(1)</script>"))
    found.append(hostile.text("memories", tag="<svg onload=alert(1)>", category="<b>", said="<b>x</b>", undo="<b>"))
    found.append(hostile.text(f"turns/{turn}", replay="yes"))
    found.append(hostile.text("review", look="yes"))
    found.append(hostile.press("purge", id=facts[5].id).text)
    found.append(hostile.get("memory/ffffffff", q="<script>alert(1)</script>").text)
    for page in found:
        seen = Seen(page)
        assert seen.tags <= TAGS
        assert seen.scripts == [f"{hostile.keys.prefix}/static/page.js"]
        assert all(address.startswith((f"{hostile.keys.prefix}/", "#main")) for address in seen.addresses)
        assert not seen.handlers


def test_a_template_in_a_memory_is_not_carried_out(hostile: Browser) -> None:
    [found, *_] = [fact for fact in hostile.memory.admin.list(limit=NUMBER) if "7 * 7" in fact.text]
    assert html.unescape(hostile.text(f"memory/{found.id}")).count(found.text) >= 2
