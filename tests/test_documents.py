"""What the documents say is what the code does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.cli.main import COMMANDS
from perdure.cli.script import Script
from perdure.plugin.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(document: str, language: str) -> list[str]:
    """Return the fenced code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("source", blocks(README, "python"))
def test_readme_examples_run(source: str, tmp_path: Path) -> None:
    environment = os.environ | {"PERDURE_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    # The model may still be loading at the first recall of a process, so the example must work by words too.
    result = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    if "print(recall.block)" in source:
        assert "heron" in result.stdout


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = [line for block in blocks(README, "sh") for line in block.splitlines()]
    assert commands == ["sh scripts/demo.sh", "sh scripts/test.sh"]
    assert "sh scripts/test.sh" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_every_command_is_in_the_readme() -> None:
    for command in COMMANDS:
        assert f"`perdure {command}" in README


def test_every_setting_is_in_the_docs_with_its_default() -> None:
    document = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    for name, field in Settings.model_fields.items():
        row = re.search(rf"^\| `{name}` \| (.*?) \|", document, re.MULTILINE)
        assert row, f"docs/settings.md has no row for {name}"
        default = field.get_default()
        shown = "" if default in (None, (), {}) else str(default)
        if isinstance(default, bool):
            shown = str(default).lower()
        assert row[1] == (f"`{shown}`" if shown else "unset"), name


def test_the_script_in_the_docs_is_valid() -> None:
    document = (ROOT / "docs" / "demo.md").read_text(encoding="utf-8")
    (example,) = blocks(document, "json")
    assert Script.model_validate_json(example).sessions
