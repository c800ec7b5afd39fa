"""The page of hosts: what it says of the server is so, and its examples remember."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.hosts.mcp.tools import TOOLS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("source", EXAMPLES, ids=lambda source: source.split()[1].split(".")[0])
def test_an_example_remembers_what_is_said_in_it(source: str, tmp_path: Path) -> None:
    for package in ("langchain", "pydantic_ai"):
        if f"from {package}" in source:
            pytest.importorskip(package)
    environment = os.environ | {"PERDURE_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    result = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    with Memory.open(tmp_path / "home", embedder="none") as memory:
        assert memory.settle()
        assert [fact.text for fact in memory.admin.list()] == ["The staging database is called heron."]


def test_the_tools_in_the_page_are_those_of_the_server() -> None:
    listed = re.search(r"^\| tools \| (.*?) \|", PAGE, re.MULTILINE)
    assert listed
    assert {f"`{tool.name}`" for tool in TOOLS} == set(listed[1].split(", "))
