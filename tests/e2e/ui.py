"""The local page in a real browser.

    python -m tests.e2e.ui --chromium /usr/bin/chromium [--axe axe.min.js] [--screenshots docs/images]

Needs `pip install playwright`, and Chromium as Debian has it; axe-core comes from npm. Prints a table of steps; exit
code 0 if all of them hold. With --screenshots each page is photographed instead, light and dark, over a store of what
made-up people said.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from perdure.api.memory import Memory
from perdure.api.tools import call_tool
from perdure.hooks.types import Consent, TurnContext
from tests.e2e.steps import Steps
from tests.ui.hostile import memories as hostile_memories
from tests.ui.process import Ui

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
PAGES = ("today", "memories", "turns", "review", "files", "health")
WIDE, NARROW = {"width": 1180, "height": 820}, {"width": 375, "height": 760}
SAID = (
    "I'm allergic to peanuts.", "My sister Ines lives in Porto.", "We deploy on Tuesdays, never on Fridays.",
    "I prefer short answers with an example.", "The staging database is called heron.", "My dog Biscuit is nine.",
    "I take the train to Basel every second Thursday.", "Our tests run with pytest, in two processes.",
    "I do not eat meat, fish is fine.", "The client Nordwind pays within sixty days.",
)  # fmt: skip
ASKED = (
    "What is the staging database called?", "Can you suggest a snack for the trip? Something with nuts maybe.",
    "When do we deploy next?", "What is seven times eight?",
)  # fmt: skip


class Story:
    """A store of made-up people, its page, and a browser that was let in."""

    def __init__(self, folder: Path, ui: Ui, browser: Any, axe: Path | None) -> None:
        self.folder, self.ui, self.browser, self.axe = folder, ui, browser, axe
        self.wrong: list[str] = []
        self.page = self.opened()
        self.page.goto(ui.address())
        self.page.wait_for_url("**/today")
        self.base = self.page.url.removesuffix("/today")

    def opened(self, **options: Any) -> Any:
        """Return a page of a browser context, in which alerts, errors and foreign requests are noted."""
        context = self.browser.new_context(**{"viewport": WIDE} | options)
        page = context.new_page()
        page.on("dialog", self._alerted)
        page.on("pageerror", lambda error: self.wrong.append(f"error {error}"))
        page.on("request", lambda request: self._noted(request.url))
        return page

    def beside(self, **options: Any) -> Any:
        """Return a page of another context with the same cookies."""
        page = self.opened(**options)
        page.context.add_cookies(self.page.context.cookies())
        return page

    def go(self, path: str) -> Any:
        """Open a page of ours and return it."""
        self.page.goto(f"{self.base}/{path}")
        return self.page

    def memory(self) -> Memory:
        """Open the store beside the page."""
        return Memory.open(self.folder / "home", embedder="none", timers=False, watch=False)

    def texts(self) -> list[str]:
        """Return what is remembered."""
        with self.memory() as memory:
            return [fact.text for fact in memory.admin.list(limit=1_000)]

    def _alerted(self, dialog: Any) -> None:
        self.wrong.append(f"alert {dialog.message}")
        dialog.dismiss()

    def _noted(self, url: str) -> None:
        if not url.startswith(self.ui.origin):
            self.wrong.append(f"request {url[:80]}")


step: Steps[Story] = Steps()


@step("a memory is found as one types, and opened with the keyboard")
def find(story: Story) -> None:
    page = story.go("memories")
    page.keyboard.press("/")
    page.keyboard.type("staging")
    page.wait_for_url("**/memories?q=staging")
    assert "heron" in page.locator("#found a.row").first.inner_text()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/memory/*")
    assert "heron" in page.inner_text("h1")


@step("it is edited, and the edit is undone")
def edit(story: Story) -> None:
    page = story.page
    page.fill("#text", "The staging database is called egret.")
    page.click("text=Save")
    assert "egret" in page.inner_text("h1")
    assert page.inner_text("ins") == "egret."
    page.click(".said >> text=Undo")
    assert "The staging database is called heron." in story.texts()


@step("a memory is forgotten, and the button beside it brings it back")
def forget(story: Story) -> None:
    page = story.go("memories?q=Biscuit")
    page.click("#found a.row")
    page.click("text=Forget")
    assert "My dog Biscuit is nine." not in story.texts()
    page.click(".said >> text=Undo")
    assert "My dog Biscuit is nine." in story.texts()


@step("a turn is explained, asked anew and marked")
def turn(story: Story) -> str:
    page = story.go("turns")
    page.click("text=snack for the trip")
    page.click("text=Replay with today's memories")
    assert "The same prompt today" in page.inner_text("main")
    page.fill("#missing", "peanuts")
    page.click("button:has-text('Find')")
    page.click("button:has-text('Should have been recalled')")
    assert "should have been recalled" in page.inner_text(".said")
    with story.memory() as memory:
        [marked] = memory.turns.past(marked=True)
        assert list(marked.marks.values()) == [True]
    return "1 mark"


@step("a memory is removed for good after a second question")
def purge(story: Story) -> None:
    page = story.go("memories?q=Nordwind")
    page.click("#found a.row")
    page.click("text=Delete permanently")
    assert any("Nordwind" in text for text in story.texts())
    page.click("button:has-text('Delete permanently')")
    assert not any("Nordwind" in text for text in story.texts())


@step("what waits is approved and rejected")
def review(story: Story) -> None:
    page = story.go("review")
    assert page.locator("text=Approve").count() == 2
    page.click("text=Approve >> nth=0")
    page.click("text=Reject >> nth=0")
    assert "Nothing is pending." in page.inner_text("main")


@step("all of it is read and used without a script")
def without_script(story: Story) -> None:
    page = story.beside(java_script_enabled=False)
    for name in PAGES:
        page.goto(f"{story.base}/{name}")
        assert page.inner_text("h1")
    page.goto(f"{story.base}/memories")
    page.fill("#q", "train")
    page.click("form.search button")
    page.click("#found a.row")
    page.click("text=Pin")
    assert "Pinned." in page.inner_text(".said")
    page.context.close()


@step("nothing is wider than a telephone")
def narrow(story: Story) -> None:
    page = story.beside(viewport=NARROW)
    for name in (*PAGES, f"memory/{_id(story, 'peanuts')}", _turn(story)):
        page.goto(f"{story.base}/{name}")
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], name
    page.context.close()


@step("axe-core finds no serious fault, light and dark")
def axe(story: Story) -> str:
    if story.axe is None:
        return "not run: --axe names no file"
    checked = 0
    for scheme in ("light", "dark"):
        # Its own page may not run what is not ours: the checker is put in past the policy.
        page = story.beside(color_scheme=scheme, bypass_csp=True)
        for name in (*PAGES, f"memory/{_id(story, 'peanuts')}", _turn(story), "memories?q=nothing+fits+this"):
            page.goto(f"{story.base}/{name}")
            page.add_script_tag(path=str(story.axe))
            found = page.evaluate("axe.run().then(found => found.violations)")
            serious = [each for each in found if each["impact"] in ("serious", "critical")]
            assert not serious, (name, scheme, [(each["id"], each["nodes"][0]["html"][:120]) for each in serious])
            checked += 1
        page.context.close()
    return f"{checked} pages"


@step("a browser that was not let in sees nothing, and the address does not work twice")
def stranger(story: Story) -> None:
    page = story.opened()
    assert page.goto(f"{story.base}/memories").status == 403
    assert page.goto(f"{story.ui.origin}/enter?token=guess").status == 403
    page.context.close()


@step("200 hostile memories run nothing, ask for nothing and break no page")
def hostile(story: Story) -> str:
    with story.memory() as memory:
        for text in hostile_memories(200):
            memory.store(text, entity=text[:90], tags=[text[-30:]])
        ids = [fact.id for fact in memory.admin.list(limit=40)]
    story.wrong.clear()
    names = ["today", "memories", "memories?q=harbour", "review?look=yes", "turns", *(f"memory/{each}" for each in ids)]
    for name in names:
        page = story.go(name)
        assert page.locator("nav").count() == 1, name
        assert page.locator("main h1").count() == 1, name
    assert not story.wrong, story.wrong[:3]
    return f"{len(names)} pages"


def _id(story: Story, word: str) -> str:
    with story.memory() as memory:
        return next(fact.id for fact in memory.admin.list(limit=1_000) if word in fact.text)


def _turn(story: Story) -> str:
    with story.memory() as memory:
        return f"turns/{memory.turns.past(1)[0].id}"


def build(home: Path, *, embedder: str = "auto") -> None:
    """Fill a store with what some made-up people said, asked and had corrected."""
    notes = home.parent / "notes"
    notes.mkdir()
    (notes / "MEMORY.md").write_text("# Staging\n\nThe heron database is backed up at four.\n", encoding="utf-8")
    with Memory.open(home, embedder=embedder, timers=False, watch=False) as memory:
        memory.ready()
        context = TurnContext(session_id="monday")
        for place, text in enumerate(SAID):
            memory.turns.after([{"role": "user", "content": text}], True, TurnContext(session_id=f"day-{place}"))
            memory.settle()
        kept = {fact.text for fact in memory.admin.list()}
        for text in SAID:
            # What capture passes over is shown all the same.
            if text not in kept:
                memory.store(text)
        memory.store("The stand-up is at 9:45.", supersedes=memory.store("The stand-up is at 9:30.").fact.id)
        memory.pin(memory.store("Never put customers' names into commit messages.", category="decision").fact.id)
        for prompt in ASKED:
            memory.turns.before(prompt, context)
        [target] = [fact for fact in memory.admin.list() if "deploy" in fact.text or "Tuesdays" in fact.text][:1]
        for text in ("We deploy on Wednesdays.", "We deploy whenever it is green."):
            call_tool(
                memory, "memory_update", {"memory": target.id, "text": text}, context, consent=Consent.UNAVAILABLE
            )
        memory.files.add(notes)
        memory.files.sync()
        memory.settle()


@contextmanager
def story(chromium: str, axe: Path | None, *, embedder: str = "auto") -> Iterator[Story]:
    """Lend a filled store with its page open in a browser."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(dir="/tmp") as name, sync_playwright() as playwright:
        folder = Path(name)
        build(folder / "home", embedder=embedder)
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        with Ui(folder / "home", folder, "--no-browser", embedder=embedder) as ui:
            yield Story(folder, ui, browser, axe)
            browser.close()


def photograph(told: Story, folder: Path) -> None:
    """Write a picture of each page, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    shown = {name: name for name in PAGES} | {
        "memory": f"memory/{_id(told, '9:45')}", "turn": _turn(told), "files": "files?q=heron",
    }  # fmt: skip
    with told.memory() as memory:
        shown["turn"] = next(f"turns/{each.id}" for each in memory.turns.past() if "snack" in each.query)
    for scheme in ("light", "dark"):
        page = told.beside(color_scheme=scheme, viewport={"width": 1100, "height": 760})
        for name, path in shown.items():
            page.goto(f"{told.base}/{path}")
            page.screenshot(path=str(folder / f"ui-{name}-{scheme}.png"))
        page.context.close()


@click.command()
@click.option("--chromium", default="/usr/bin/chromium", show_default=True, help="The browser.")
@click.option("--axe", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="axe.min.js of axe-core.")
@click.option("--screenshots", type=click.Path(file_okay=False, path_type=Path), help="Only photograph, into here.")
@click.argument("only", nargs=-1)
def main(chromium: str, axe: Path | None, screenshots: Path | None, only: tuple[str, ...]) -> None:
    """Use the local page as a person would; ONLY steps with one of these words in their names."""
    with story(chromium, axe) as told:
        if screenshots:
            photograph(told, screenshots)
            click.echo(f"{len(list(screenshots.glob('ui-*.png')))} pictures in {screenshots}")
            return
        holds = step.run(told, only)
    sys.exit(not holds)


if __name__ == "__main__":
    main()
