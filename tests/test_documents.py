"""What the documents say is what the code does."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import click
import pytest

from bench.__main__ import benches
from perdure.api.tools import TOOLS
from perdure.cli.main import cli
from perdure.cli.replay import Script
from perdure.engine.settings import check_known
from perdure.hooks.spec import HOOK_NAMES, host_hooks
from perdure.hosts.mcp import tools as mcp
from scripts.reference import PAGES as WRITTEN
from tests.e2e.newcomer import PAGES as FIRST_PAGES
from tests.e2e.newcomer import TUTORIALS
from tests.kit import for_each

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *DOCS)}

FIRST = {path.relative_to(ROOT).as_posix() for path in (*FIRST_PAGES, *TUTORIALS)}
"""Their blocks are processes of their own: tests/test_packaging.py runs them."""
RUN = "python"
READ = ("sh", "toml", "json")
SHOWN = ("text", "console", "py")
"""Languages of code blocks: what is run, what is read by its own parser, what is output or needs what is not here."""


def blocks(document: str, language: str) -> list[str]:
    """Return the fenced code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)


def table(name: str) -> dict[str, str]:
    """Return the rows of a page's tables whose first cell is code: the second cell by the first."""
    rows = re.findall(r"^\| `([^`]+)` \| (.*?) \|", PAGES[f"docs/{name}.md"], re.MULTILINE)
    return dict(rows)


def called(page: str) -> list[str]:
    """Return the calls of perdure and of benches in a page, in shell blocks and in the text."""
    text = PAGES[page]
    lines = [line for block in blocks(text, "sh") for line in block.splitlines()]
    lines += re.findall(r"^ {4}((?:perdure|python -m bench) .*)$", text, re.MULTILINE)
    lines += re.findall(
        r"`((?:perdure|python -m bench)(?: [^`]+)?)`", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    )
    # What stands behind a pipe or a redirection is the shell's; "…" stands for something left out.
    return [re.split(r" [|<>] | #", line)[0] for line in lines if "…" not in line]


def parse(words: list[str], command: click.Command) -> None:
    """Have click parse a call, without running it.

    Raises:
        click.ClickException: it does not parse.
    """
    if isinstance(command, click.Group) and words and not words[0].startswith("-"):
        _, below, rest = command.resolve_command(click.Context(command), words)
        assert below is not None
        return parse(rest, below)
    if words and {"-h", "--help", "--version"}.isdisjoint(words):
        # A text may name a command without its arguments.
        with suppress(click.MissingParameter):
            command.parse_args(click.Context(command, info_name=command.name), list(words))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(PAGES[page], RUN) and page not in FIRST])
def test_the_examples_of_a_page_run_in_their_order(page: str, tmp_path: Path) -> None:
    environment = os.environ | {"PERDURE_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    environment |= {"PERDURE_VAULT_PASSPHRASE": "correct horse battery staple"}
    # The model may still be loading at the first recall of a process, so the examples must work by words too.
    source = "\n".join(blocks(PAGES[page], RUN))
    result = subprocess.run(
        [sys.executable, "-c", source], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    if "print(recall.block)" in source:
        assert "heron" in result.stdout


@for_each("page", PAGES)
def test_every_code_block_is_run_read_or_marked_as_output(page: str) -> None:
    languages = re.findall(r"^```(.*)$", PAGES[page], re.MULTILINE)[::2]
    assert set(languages) <= {RUN, *READ, *SHOWN}
    for source in blocks(PAGES[page], "json"):
        json.loads(source)
    for source in blocks(PAGES[page], "toml"):
        for name in tomllib.loads(source).keys() - {"project"}:
            check_known(name)


@for_each("page", [page for page in PAGES if called(page)])
def test_every_command_in_a_page_parses(page: str) -> None:
    for line in called(page):
        words = shlex.split(line)
        if words[0] == "perdure":
            parse(words[1:], cli)
        elif words[:3] == ["python", "-m", "bench"] and words[3:]:
            parse(words[4:], importlib.import_module(f"bench.{words[3]}").main)


def test_a_wrong_call_in_a_page_would_be_noticed() -> None:
    for wrong in ("no-such-command", "list --no-such-option", "review aprove 1f0c9a3e", "link 1 2 --type LIKES"):
        with pytest.raises(click.ClickException):
            parse(shlex.split(wrong), cli)


@for_each("page", PAGES)
def test_the_files_that_a_page_names_are_there(page: str) -> None:
    for name in re.findall(r"`((?:perdure|tests|bench|docs|scripts)/[\w/.]+\.\w+)`", PAGES[page]):
        assert (ROOT / name).is_file(), name


def test_every_page_is_in_the_site() -> None:
    nav = re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(nav) == [path.name for path in DOCS], "name the page in the nav of mkdocs.yml"


def test_what_the_pages_import_is_what_a_program_may_import() -> None:
    paragraph = PAGES["docs/architecture.md"].partition("**What a program may import**")[2].partition("\n\n")[0]
    allowed = set(re.findall(r"`(perdure[\w.]*)`", paragraph))
    imports = {found for page in PAGES.values() for found in re.findall(r"^\s*from (perdure[\w.]*) import", page, re.M)}
    assert imports - {"perdure"} == allowed - {"perdure"}
    assert all(importlib.util.find_spec(name) for name in allowed)


@for_each("path", WRITTEN)
def test_what_is_written_from_the_code_is_fresh(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == WRITTEN[path](), "it is stale: python -m scripts.reference"


def test_the_hooks_page_has_every_hook_with_its_arguments() -> None:
    rows = table("hooks")
    assert tuple(rows) == HOOK_NAMES
    hooks = host_hooks("perdure")
    for name in HOOK_NAMES:
        taken = [each for each in inspect.signature(getattr(hooks, name)).parameters if each != "self"]
        assert re.findall(r"`(\w+)`", rows[name]) == taken, name


def test_the_tools_page_has_every_tool() -> None:
    assert set(table("tools")) == {tool.name for tool in (*TOOLS, *mcp.TOOLS)}


def test_the_page_of_openclaw_has_every_tool_of_the_manifest() -> None:
    manifest = json.loads((ROOT / "openclaw.plugin.json").read_text(encoding="utf-8"))
    section = PAGES["docs/openclaw.md"].partition("## Tools")[2].partition("\n## ")[0]
    tools = manifest["contracts"]["tools"]
    assert set(tools) <= set(re.findall(r"`(\w+)`", section))
    assert set(tools) <= set(table("tools"))


def test_the_benchmarks_page_has_every_bench() -> None:
    assert set(re.findall(r"python -m bench (\w+)", PAGES["docs/benchmarks.md"])) == set(benches())


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = [line for block in blocks(README, "sh") for line in block.splitlines()]
    assert commands == ["pip install perdure", "perdure demo"]
    assert "`sh scripts/test.sh` runs the tests" in README
    assert "sh scripts/test.sh" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_readme_names_the_versions_of_hosts_that_are_tested() -> None:
    rows = [[cell.strip() for cell in row.split("|")[2:5]] for row in README.splitlines() if row.startswith("| [")]
    assert all(real == "–" for real, _, _ in rows), "no test runs a real language model"
    assert all((program == "–") == (contract == "yes") for _, program, contract in rows)
    e2e = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "e2e").glob("*.py"))
    versions = [program for _, program, _ in rows if re.fullmatch(r"[\d.]+", program)]
    assert len(versions) == 5
    assert all(re.search(rf"[@=]{re.escape(version)}\"", e2e) for version in versions)


def test_a_tutorial_is_short() -> None:
    for page in (FIRST_PAGES[1], *TUTORIALS):
        assert len(page.read_text(encoding="utf-8").split()) < 350, page.name


def test_the_script_in_the_docs_is_valid() -> None:
    document = (ROOT / "docs" / "demo.md").read_text(encoding="utf-8")
    (example,) = blocks(document, "json")
    assert Script.model_validate_json(example).sessions
