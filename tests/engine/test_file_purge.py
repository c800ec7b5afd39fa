"""A purge reaches conversations and the index, and names what is not ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.api.memory import Memory
from tests.kit import OpenMemory

SAID = "My zanzibar password hint is the colour of the old bicycle."
OTHER = "The heron database is the one for staging."


@pytest.fixture
def memory(open_memory: OpenMemory, tmp_path: Path) -> Memory:
    return open_memory(workspace=tmp_path / "workspace", watch=False)


def files_with(home: Path, text: str) -> list[str]:
    return sorted(path.name for path in home.rglob("*") if path.is_file() and text.encode() in path.read_bytes())


def test_what_is_purged_leaves_the_record_and_the_index(memory: Memory, tmp_path: Path) -> None:
    fact = memory.store(SAID)
    memory.files.add_transcript([{"role": "user", "content": SAID}, {"role": "user", "content": OTHER}], "one")
    memory.files.sync()
    memory.files.embed()
    assert memory.files.search("zanzibar password hint").results
    purged = memory.admin.purge(fact.id)
    assert purged.state == "certified"
    assert purged.kept == ()
    answer = memory.files.search("zanzibar password hint bicycle")
    assert all("zanzibar" not in result.snippet for result in answer.results)
    assert memory.files.search("which is the staging database").results
    memory.close()
    assert files_with(tmp_path / "home", "zanzibar password") == []


def test_what_stands_in_the_owners_own_file_is_named(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "MEMORY.md").write_text(f"# Notes\n\n{SAID}\n")
    memory.files.sync()
    fact = memory.store(SAID)
    purged = memory.admin.purge(fact.id)
    assert purged.state == "certified"
    assert [kind for _, kind in purged.kept] == [
        "index: the text is in a file or session file that perdure does not own"
    ]
    assert memory.files.search("zanzibar password hint").results
    memory.close()
